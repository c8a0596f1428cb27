//! `duo agents`: the agents that are known elsewhere.

use std::io::Write;

use clap::{Args, Subcommand};
use duologue_a2a::{Health, KnownAgent};

use super::exchange::json_line;
use crate::{
    commands::sessions::local_time,
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::{Paint, Style, clip, visible},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// List the agents that are known.
    #[command(after_help = "Examples:\n  duo agents list\n  duo agents list --json | jq .url")]
    List {
        /// Print JSON lines, with the cards.
        #[arg(long)]
        json: bool,
    },
    /// Get to know an agent, and those that it knows.
    #[command(after_help = "Example:\n  duo agents add http://localhost:4201")]
    Add(Place),
    /// Forget an agent.
    #[command(after_help = "Example:\n  duo agents remove agent-two")]
    Remove(Known),
    /// Look whether agents answer: one, or all that are known.
    #[command(after_help = "Examples:\n  duo agents ping\n  duo agents ping agent-two\n\n\
        The exit code is 1 if one does not answer.")]
    Ping {
        /// Its id or its address.
        #[arg(value_name = "AGENT")]
        place: Option<String>,

        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Place {
    /// A name of [remotes], an address, or a host and a port.
    #[arg(value_name = "AGENT")]
    pub(crate) place: String,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Known {
    /// Its id or its address.
    #[arg(value_name = "AGENT")]
    pub(crate) place: String,
}

pub(crate) async fn agents(house: &House, command: Agents) -> Done {
    let directory = house.directory()?;
    for warning in directory.warnings() {
        writeln!(std::io::stderr(), "{}", house.paint.text(Style::Warning, warning))?;
    }
    match command {
        Agents::List { json } => {
            let known = directory.list();
            for agent in &known {
                tell(house.paint, agent, json)?;
            }
            if known.is_empty() && !json {
                writeln!(std::io::stderr(), "no agents yet; `duo agents add URL` adds one")?;
            }
        }
        Agents::Add(args) => {
            let remotes = &house.config().remotes;
            let address = remotes.get(&args.place).map_or(&args.place, |remote| &remote.url);
            let agent = directory.discover(address).await.map_err(Failure::new)?;
            tell(house.paint, &agent, args.json)?;
        }
        Agents::Remove(args) => {
            let agent = directory.remove(&args.place).await.map_err(Failure::usage)?;
            writeln!(std::io::stdout(), "forgot {} at {}", agent.id, visible(&agent.url))?;
        }
        Agents::Ping { place, json } => {
            let ids = match place {
                Some(place) => vec![place],
                None => directory.list().into_iter().map(|agent| agent.id).collect(),
            };
            let mut exit = Exit::Completed;
            for id in ids {
                let agent = directory.ping(&id).await.map_err(Failure::usage)?;
                tell(house.paint, &agent, json)?;
                if agent.health != Health::Up {
                    exit = Exit::Failed;
                }
            }
            return Ok(exit);
        }
    }
    Ok(Exit::Completed)
}

fn tell(paint: Paint, agent: &KnownAgent, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return json_line(agent);
    }
    let (style, health) = match &agent.health {
        Health::Up => {
            let latency = agent.latency_ms.map(|ms| format!(" {ms} ms")).unwrap_or_default();
            (Style::Good, format!("up{latency}"))
        }
        Health::Unknown => (Style::Dim, "unknown".to_owned()),
        Health::Down { error, .. } => (Style::Bad, format!("down: {}", clip(error, 80))),
    };
    let seen = match agent.last_seen {
        Some(at) => format!("seen {}", local_time(at)),
        None => "never seen".to_owned(),
    };
    let line = format!(
        "{}  {}  {}  {}  {}",
        paint.text(Style::Bold, visible(&agent.id)),
        visible(&agent.name),
        visible(&agent.url),
        paint.text(style, visible(&health)),
        paint.text(Style::Dim, seen)
    );
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
