//! What the harness asks of an arm.

use clap::{Args, ValueEnum};

/// How many conversations an arm holds, where, and how many at once.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// The mock server, such as `http://127.0.0.1:4000/v1`.
    #[arg(long)]
    pub url: String,
    /// Conversations that are measured.
    #[arg(long)]
    pub agents: usize,
    /// Conversations before them that are not.
    #[arg(long)]
    pub warm_up: usize,
    /// Conversations under way at the same time.
    #[arg(long)]
    pub at_once: usize,
    /// Whether the server holds the conversations until all have come.
    #[arg(long)]
    pub pace: Pace,
    /// Worker threads of the arm's runtime.
    #[arg(long)]
    pub threads: usize,
}

impl Orders {
    /// The same orders as command line arguments.
    pub fn to_args(&self) -> Vec<String> {
        vec![
            format!("--url={}", self.url),
            format!("--agents={}", self.agents),
            format!("--warm-up={}", self.warm_up),
            format!("--at-once={}", self.at_once),
            format!("--pace={}", self.pace.word()),
            format!("--threads={}", self.threads),
        ]
    }
}

/// How the mock server answers. An arm asks for it by the model's name, which every framework
/// lets its user choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pace {
    /// As fast as it can.
    Free,
    /// In the middle of the last answer it waits until every conversation has come that far, so
    /// that all are in flight at one moment.
    Held,
}

impl Pace {
    /// The model's name that asks for this pace.
    pub fn model(self) -> &'static str {
        match self {
            Self::Free => "bench-free",
            Self::Held => "bench-held",
        }
    }

    /// The pace that a model's name asks for.
    pub fn of_model(name: &str) -> Option<Self> {
        [Self::Free, Self::Held].into_iter().find(|pace| pace.model() == name)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held => "held",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        orders: Orders,
    }

    #[test]
    fn orders_survive_the_command_line() {
        let orders = Orders {
            url: "http://127.0.0.1:4000/v1".into(),
            agents: 1_000,
            warm_up: 10,
            at_once: 64,
            pace: Pace::Held,
            threads: 2,
        };
        let args = std::iter::once("arm".to_owned()).chain(orders.to_args());
        assert_eq!(Program::parse_from(args).orders, orders);
    }

    #[test]
    fn a_pace_is_found_by_its_model_name() {
        for pace in [Pace::Free, Pace::Held] {
            assert_eq!(Pace::of_model(pace.model()), Some(pace));
        }
        assert_eq!(Pace::of_model("gpt"), None);
    }
}
