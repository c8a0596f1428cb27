//! `duo tools`: what an agent can do, and what it may.

use std::io::Write;

use duologue_core::{Execution, Situation, ToolSpec, Verdict};
use serde_json::json;

use crate::{
    cli::Tools,
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::{Style, clip},
};

pub(crate) async fn tools(house: &House, args: Tools) -> Done {
    house.bring_servers().await?;
    let config = house.config();
    let section = config.agents.get(&config.agent);
    let named = section.and_then(|agent| agent.tools.as_deref());
    let toolbox = match section.map(|agent| agent.behavior.as_str()) {
        #[cfg(feature = "browser")]
        Some("browser") => house.browsing_tools(&config.workspace, named)?,
        _ => house.tools(&config.workspace, named)?,
    };
    let policy = config.permissions.policy().map_err(Failure::usage)?;
    let permission = |spec: &ToolSpec| match spec.execution {
        Execution::Human => "asks you",
        Execution::External => "elsewhere",
        Execution::Local => match policy.verdict(spec, &json!({}), &Situation::default()) {
            Verdict::Allow => "runs",
            Verdict::Ask { .. } => "asks",
            Verdict::Deny { .. } => "refused",
        },
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        let list: Vec<_> = toolbox
            .specs()
            .iter()
            .map(|spec| json!({"spec": &**spec, "permission": permission(spec)}))
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&list)?)?;
        return Ok(Exit::Completed);
    }
    for spec in toolbox.specs().iter() {
        let name = house.paint.text(Style::Tool, format!("{:<14}", spec.name));
        let about = clip(&spec.description, 80);
        writeln!(out, "{name} {:<12} {:<10} {about}", spec.effect, permission(spec))?;
    }
    let mode = serde_json::to_value(policy.mode())?;
    let mode = mode.as_str().unwrap_or_default();
    let off: Vec<&str> = duologue_tools::names()
        .iter()
        .copied()
        .filter(|name| toolbox.get(name).is_none())
        .collect();
    writeln!(out)?;
    let note = format!(
        "agent {}, permissions {mode}, workspace {}",
        config.agent,
        config.workspace.display()
    );
    writeln!(out, "{}", house.paint.text(Style::Dim, note))?;
    if !off.is_empty() && named.is_none() {
        let note = format!("off: {} (turn on with --set 'tools.enabled=[\"…\"]')", off.join(", "));
        writeln!(out, "{}", house.paint.text(Style::Dim, note))?;
    }
    Ok(Exit::Completed)
}
