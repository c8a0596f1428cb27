//! `duo bidirectional`: an agent that serves others and calls them, as earlier ones of its kind were
//! started.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{card, seed_file::SeedFile, send, serve};
use crate::{
    cli::{Chat, Run},
    commands,
    config::Flag,
    failure::{Done, Failure},
    house::{Given, House},
    repl::{self, Start},
};

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo bidirectional                               talk with it\n  \
    duo bidirectional bidirectional_agent.toml      configured by such a file\n  \
    duo bidirectional localhost:8080                and connect to another agent\n  \
    duo bidirectional --listen 4200                 and serve it meanwhile\n  \
    duo bidirectional my.toml --serve               serve it and nothing else\n  \
    duo bidirectional --message \"What is 6*7?\"      one message, then exit\n  \
    duo bidirectional localhost:8080 --get-card\n  \
    duo bidirectional localhost:8080 --send-task \"What is 6*7?\"\n\n\
    Inside, :help lists the commands. It is the chat of duo chat with an agent that routes: what \
    it can do itself, what another agent should do, and what it declines.")]
pub(crate) struct Bidirectional {
    /// A configuration file, or the agent to connect to.
    #[arg(value_name = "CONFIG|HOST:PORT")]
    pub(crate) what: Option<String>,

    /// Serve the agent while you talk with it; without a port, on the configured one.
    #[arg(long, value_name = "PORT", num_args = 0..=1)]
    pub(crate) listen: Option<Option<u16>>,

    /// Serve the agent and nothing else.
    #[arg(long, conflicts_with_all = ["listen", "message", "get_card", "send_task"])]
    pub(crate) serve: bool,

    /// Answer one message and exit.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["get_card", "send_task"])]
    pub(crate) message: Option<String>,

    /// Show the other agent's card and exit.
    #[arg(long, conflicts_with = "send_task")]
    pub(crate) get_card: bool,

    /// Send a task to the other agent, see it through and exit.
    #[arg(long, value_name = "TEXT")]
    pub(crate) send_task: Option<String>,

    /// Print JSON, where there is something to print.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the argument is.
enum What {
    File(PathBuf),
    Agent(String),
    Nothing,
}

impl Bidirectional {
    fn what(&self) -> What {
        match &self.what {
            None => What::Nothing,
            Some(text) if text.ends_with(".toml") || Path::new(text).is_file() => {
                What::File(text.into())
            }
            Some(text) => What::Agent(text.clone()),
        }
    }

    fn file(&self) -> Result<Option<SeedFile>, Failure> {
        match self.what() {
            What::File(file) => SeedFile::read(&file).map(Some),
            What::Agent(_) | What::Nothing => Ok(None),
        }
    }

    /// What the house is opened with.
    pub(crate) fn given(&self) -> Result<Given, Failure> {
        let Some(file) = self.file()? else {
            let agent = Flag::new("duo bidirectional", "agent", "bidirectional");
            return Ok(Given { settings: vec![agent], claude_key: None });
        };
        let name = self.what.as_deref().unwrap_or_default();
        Ok(Given {
            settings: file.settings(name),
            claude_key: file.claude_key().map(str::to_owned),
        })
    }
}

pub(crate) async fn bidirectional(house: House, args: Bidirectional) -> Done {
    let file = args.file()?.unwrap_or_default();
    let target = match args.what() {
        What::Agent(place) => Some(place),
        What::File(_) | What::Nothing => file.target().map(str::to_owned),
    };
    let there = || {
        target.clone().ok_or_else(|| {
            Failure::usage("say which agent: duo bidirectional HOST:PORT, or client.target_url")
        })
    };
    let is_told = args.serve || args.listen.is_some() || args.message.is_some();
    let mode = if is_told || args.get_card || args.send_task.is_some() {
        super::seed_file::Mode::default()
    } else {
        file.mode
    };
    if args.get_card || mode.get_agent_card {
        let args = card::Card { place: there()?, json: args.json };
        return card::card(&house, args).await;
    }
    if let Some(text) = args.send_task.or(mode.remote_task) {
        let args = send::Send::plain(there()?, text, args.json);
        return send::send(&house, args).await;
    }
    if let Some(task) = args.message.or(mode.message) {
        let args = Run { task, json: args.json, verbose: false, recording: Default::default() };
        return commands::run::run(&house, args).await;
    }
    if args.serve || mode.repl == Some(false) {
        let args = serve::Serve { port: None, grpc_port: None, host: None, json: args.json };
        return serve::serve(&house, args).await;
    }
    let usual = u16::try_from(house.config().server.port).unwrap_or_default();
    let start = Start { listen: args.listen.map(|port| port.unwrap_or(usual)), connect: target };
    repl::chat_with(house, Chat::default(), &start).await
}
