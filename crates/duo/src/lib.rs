//! `duo`: build, run, connect and measure LLM agents.
//!
//! The program is thin: `cli` says what it understands, `house` puts configuration, journal, models,
//! tools and agents together, `commands` has one file per command, `repl` is the chat, and
//! `terminal` is what a person sees.
//!
//! It is a library for one reason: [`bench()`] is the command line of `duo bench` for a program that
//! brings agents, users or domains of its own:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     duo::bench(duologue_bench::Registry::default())
//! }
//! ```

mod approval;
mod cli;
mod commands;
mod config;
mod conversation;
mod exit;
mod failure;
mod house;
#[cfg(feature = "local")]
mod local;
mod log;
mod repl;
mod terminal;

use std::{future::Future, io::Write, process::ExitCode};

use clap::{FromArgMatches as _, Parser as _};
use duologue_bench::Registry;

use cli::{About, Asked, Chat, Cli, Command, Sessions, Shared};
use commands::bench::BenchCli;
use failure::{Done, Failure};
use house::{Given, House};

/// The program `duo`.
pub fn main() -> ExitCode {
    let matches = cli::page::command().get_matches();
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => program(run(cli)),
        Err(error) => error.exit(),
    }
}

/// The command line of `duo bench` with what this registry knows: `run`, `evaluate`, `view` and all
/// the others, with the models and agents of the configuration.
///
/// ```no_run
/// use duologue_bench::{Mode, Registry, Seated, baselines::Idle};
///
/// let mut registry = Registry::default();
/// registry.register_agent("mine", Mode::Dialogue, false, |_| Ok(Box::new(Seated::new(Idle))));
/// duo::bench(registry);
/// ```
pub fn bench(registry: Registry) -> ExitCode {
    let mut cli = BenchCli::parse();
    program(async move {
        let agent = cli.shared.agent.take();
        let house = House::open(&cli.shared, Given::default())?;
        commands::bench::bench(&house, registry, cli.bench, agent).await
    })
}

fn program(work: impl Future<Output = Done>) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(Failure::new(error))),
    };
    let done = runtime.block_on(work);
    // Blocking reads of a terminal must not keep the program alive.
    runtime.shutdown_background();
    end(done)
}

fn end(done: Done) -> ExitCode {
    let exit = match done {
        Ok(exit) => exit,
        Err(failure) if failure.exit() == exit::Exit::Completed => failure.exit(),
        Err(failure) => {
            // Standard error may be closed; there is nobody left to tell then.
            let _ = writeln!(std::io::stderr(), "duo: {failure}");
            failure.exit()
        }
    };
    ExitCode::from(exit as u8)
}

async fn run(cli: Cli) -> Done {
    match cli.asked {
        Some(Asked::About(About::Completions(args))) => commands::completions::completions(&args),
        Some(Asked::About(About::Man(args))) => commands::completions::man(&args),
        Some(Asked::Command(command)) => work(cli.shared, command).await,
        None => work(cli.shared, Command::Chat(Chat::default())).await,
    }
}

async fn work(mut shared: Shared, command: Command) -> Done {
    // The agents of the bench are not all agents of the configuration.
    let is_bench = matches!(command, Command::Bench(_));
    let benched = if is_bench { shared.agent.take() } else { None };
    let given = match &command {
        Command::A2a(command) => command.given()?,
        _ => Given::default(),
    };
    let house = House::open(&shared, given)?;
    match command {
        Command::Run(args) => commands::run::run(&house, args).await,
        Command::Chat(args) => repl::chat(house, args).await,
        Command::Sessions(sessions) => match sessions {
            Sessions::List(args) => commands::sessions::list(&house, args).await,
            Sessions::Show(args) => commands::sessions::show(&house, args).await,
            Sessions::Resume(args) => commands::sessions::resume(&house, args).await,
            Sessions::Answer(args) => commands::sessions::answer(&house, args).await,
            Sessions::Fork(args) => commands::sessions::fork(&house, args).await,
            Sessions::Replay(args) => commands::sessions::replay(&house, args).await,
            Sessions::Export(args) => commands::sessions::export(&house, args).await,
            Sessions::Delete(args) => commands::sessions::delete(&house, args).await,
        },
        Command::Models(args) => commands::models::run(&house, args).await,
        Command::Tools(args) => commands::tools::tools(&house, args).await,
        Command::Config(args) => commands::config::config(&house, args),
        Command::Lessons(args) => commands::lessons::lessons(&house, args).await,
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => commands::mcp::mcp(&house, args).await,
        #[cfg(feature = "browser")]
        Command::Browse(args) => commands::browse::browse(&house, args).await,
        Command::A2a(command) => commands::a2a::run(house, command).await,
        Command::Bench(args) => {
            commands::bench::bench(&house, Registry::default(), args, benched).await
        }
    }
}
