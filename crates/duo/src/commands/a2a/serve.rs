//! `duo serve`: an agent of the configuration as a server.

use std::{io::Write, time::Duration};

use clap::Args;
use duologue_a2a::Serving;
use serde_json::json;

use crate::{
    cli::Recording,
    exit::Exit,
    failure::{Done, Failure},
    house::{House, Listen, Plan},
    terminal::Style,
};

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo serve\n  \
    duo serve --agent planned --port 4200 --grpc-port 4300\n  \
    duo serve --port 0 --json | head -1       a free port, told as JSON\n\n\
    Ctrl-C stops it. Tasks are kept in the journal: those that were in the middle go on when the \
    same agent is served again. Callers are told apart by [server] callers or jwks_file; without, \
    the server listens on this machine only. What the agent asks, approvals too, its callers \
    answer: serve with --permissions read-only where they are not to be trusted with that.")]
pub(crate) struct Serve {
    /// The port of JSON-RPC, HTTP+JSON and gRPC; 0 is a free one.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// One more port, for gRPC alone.
    #[arg(long, value_name = "PORT")]
    pub(crate) grpc_port: Option<u16>,

    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<String>,

    /// Print where it listens as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn serve(house: &House, args: Serve) -> Done {
    crate::log::begin();
    let plan = house.plan()?;
    let resident = house.resident(&plan, &Recording::default()).await?;
    let listen = Listen { host: args.host, port: args.port, grpc_port: args.grpc_port };
    let serving = house.serve(&resident, &listen).await?;
    let directory = house.directory()?;
    let refreshing = match house.config().a2a.refresh_seconds {
        0 => None,
        seconds => Some(directory.refresh_every(Duration::from_secs(seconds))),
    };
    // Who reads that it is served may stop it at once.
    let told = until_told()?;
    tell(house, &plan, &serving, args.json)?;
    told.await?;
    if !args.json {
        writeln!(std::io::stderr(), "stopping")?;
    }
    if let Some(refreshing) = refreshing {
        refreshing.stop().await;
    }
    serving.stop().await;
    Ok(Exit::Completed)
}

fn tell(house: &House, plan: &Plan, serving: &Serving, as_json: bool) -> Result<(), Failure> {
    // The server's own warning was logged.
    if let Some(notice) = house.serving_notice() {
        writeln!(std::io::stderr(), "{}", house.paint.text(Style::Warning, notice))?;
    }
    if serving.resumed() > 0 {
        let tasks = if serving.resumed() == 1 { "task" } else { "tasks" };
        let text =
            format!("going on with {} {tasks} left in the middle earlier", serving.resumed());
        writeln!(std::io::stderr(), "{}", house.paint.text(Style::Dim, text))?;
    }
    let mut out = std::io::stdout().lock();
    let grpc = serving.grpc_address().to_string();
    if as_json {
        let told = json!({
            "agent": plan.agent,
            "model": plan.model,
            "url": serving.url(),
            "grpc": grpc,
            "card": format!("{}/.well-known/agent-card.json", serving.url()),
            "resumed": serving.resumed(),
        });
        writeln!(out, "{told}")?;
    } else {
        let title = house.paint.text(Style::Bold, serving.url());
        writeln!(out, "{} ({}) is served at {title}, gRPC at {grpc}", plan.agent, plan.model)?;
        let hint = format!("duo send {} \"hello\" talks to it; Ctrl-C stops it", serving.url());
        writeln!(out, "{}", house.paint.text(Style::Dim, hint))?;
    }
    out.flush()?;
    Ok(())
}

/// Listen for signals from now on; what is given waits until somebody wants the program to end.
fn until_told() -> Result<impl Future<Output = Result<(), Failure>>, Failure> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            Ok(())
        })
    }
    #[cfg(not(unix))]
    Ok(async { Ok(tokio::signal::ctrl_c().await?) })
}
