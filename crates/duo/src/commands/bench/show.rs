//! `duo bench view`, `metrics`, `compare`, `domain`: reading what there is.

use std::{io::Write, path::PathBuf};

use duologue_bench::{
    Message, Registry, Results, Simulation,
    evaluate::REMARKS,
    metrics::{Comparison, Metrics, is_success},
    python,
    simulation::RewardInfo,
    toolkit::Kind,
};

use super::{
    args::{Compare, Domain, View},
    load,
};
use crate::{
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::{Style, clip},
};

/// How much of a tool's answer is shown.
const ANSWER: usize = 300;
/// How many of pass^k are shown; the last one always is.
const MOST_PASSES: usize = 8;

/// One line about a simulation.
pub(super) fn simulation_line(house: &House, simulation: &Simulation) -> String {
    let reward = simulation.reward_info.as_ref().map(|info| info.reward);
    let (style, mark) = match reward {
        Some(reward) if is_success(reward) => (Style::Good, "✓"),
        Some(_) => (Style::Bad, "✗"),
        None => (Style::Warning, "?"),
    };
    let reward = reward.map_or_else(|| "–".to_owned(), |reward| format!("{reward:.2}"));
    let line = format!(
        "{mark} {reward}  {}  trial {}  {}  {} messages  {:.1} s",
        clip(&simulation.task_id, 60),
        simulation.trial.unwrap_or(0),
        simulation.termination_reason.name(),
        simulation.messages().len(),
        simulation.duration
    );
    let line = house.paint.text(style, line);
    match simulation.extra.get(REMARKS) {
        Some(remarks) => {
            let remarks = python::repr(remarks);
            format!("{line} {}", house.paint.text(Style::Dim, clip(&remarks, 160)))
        }
        None => line,
    }
}

/// The scores of results, as a table.
pub(super) fn summary(house: &House, results: &Results) -> Result<(), Failure> {
    let metrics = Metrics::of(results);
    let mut out = std::io::stdout().lock();
    let info = &results.info;
    let title = format!(
        "{} · {} ({}) · {} ({})",
        results.domain().unwrap_or("?"),
        info.agent_info.implementation,
        info.agent_info.llm.as_deref().unwrap_or("no model"),
        info.user_info.implementation,
        info.user_info.llm.as_deref().unwrap_or("no model")
    );
    writeln!(out, "{}", house.paint.text(Style::Bold, title))?;
    let interval = metrics.interval.map(|width| format!(" ± {width:.3}")).unwrap_or_default();
    writeln!(
        out,
        "{} simulations of {} tasks, mean reward {:.3}{interval} (95 % over tasks)",
        metrics.simulations,
        metrics.tasks.len(),
        metrics.average_reward
    )?;
    let last = metrics.pass_hat.len();
    for (k, value) in (1..).zip(&metrics.pass_hat) {
        if k <= MOST_PASSES || k == last {
            writeln!(out, "  pass^{k} {value:.3}")?;
        }
    }
    let ends: Vec<String> =
        metrics.terminations.iter().map(|(end, count)| format!("{} {count}", end.name())).collect();
    writeln!(out, "  ended by: {}", ends.join(", "))?;
    if metrics.infrastructure_errors > 0 {
        let count = metrics.infrastructure_errors;
        writeln!(out, "  left out: {count} that broke off for reasons around them")?;
    }
    if metrics.unjudged > 0 {
        let note = format!("  left out: {} that could not be judged: see `view`", metrics.unjudged);
        writeln!(out, "{}", house.paint.text(Style::Warning, note))?;
    }
    if let (Some(agent), Some(user)) = (metrics.average_agent_cost, metrics.average_user_cost) {
        writeln!(out, "  cost each: agent ${agent:.4}, user ${user:.4}")?;
    }
    let flagged = results
        .simulations
        .iter()
        .filter(|s| s.extra.get(REMARKS).is_some_and(|remarks| remarks["flags"].truthy()));
    let flagged = flagged.count();
    if flagged > 0 {
        let note = format!("  {flagged} passed without the agent calling a tool: see `view`");
        writeln!(out, "{}", house.paint.text(Style::Warning, note))?;
    }
    Ok(())
}

pub(super) fn metrics(house: &House, files: &[PathBuf]) -> Done {
    for file in files {
        let results = Results::load(file)?;
        summary(house, &results)?;
        let mut out = std::io::stdout().lock();
        for (id, task) in Metrics::of(&results).tasks {
            writeln!(
                out,
                "    {:>3}/{:<3} {:.2}  {}",
                task.successes,
                task.trials,
                task.average_reward(),
                clip(&id, 100)
            )?;
        }
    }
    Ok(Exit::Completed)
}

pub(super) fn compare(house: &House, args: &Compare) -> Done {
    let (first, second) = (Results::load(&args.first)?, Results::load(&args.second)?);
    let comparison = Comparison::of(&Metrics::of(&first), &Metrics::of(&second));
    let mut out = std::io::stdout().lock();
    if comparison.tasks == 0 {
        return Err(Failure::usage("the two files have no task in common"));
    }
    writeln!(
        out,
        "on {} tasks: {:.3} → {:.3} ({:+.3}), p = {:.3}{}",
        comparison.tasks,
        comparison.first,
        comparison.second,
        comparison.second - comparison.first,
        comparison.p_value,
        if comparison.p_value < 0.05 { ", significant" } else { ", could be chance" }
    )?;
    for (id, before, after) in &comparison.differing {
        let style = if after > before { Style::Good } else { Style::Bad };
        let line = format!("  {before:.2} → {after:.2}  {}", clip(id, 100));
        writeln!(out, "{}", house.paint.text(style, line))?;
    }
    Ok(Exit::Completed)
}

pub(super) fn view(house: &House, args: View) -> Done {
    let results = Results::load(&args.file)?;
    let shown: Vec<&Simulation> = results
        .simulations
        .iter()
        .filter(|s| args.task.as_ref().is_none_or(|task| s.task_id == *task))
        .filter(|s| args.simulation.as_ref().is_none_or(|id| s.id.starts_with(id.as_str())))
        .collect();
    if shown.is_empty() {
        return Err(Failure::usage("there is no such simulation in the file"));
    }
    let whole = args.task.is_some() || args.simulation.is_some();
    let mut out = std::io::stdout().lock();
    for simulation in shown {
        let id: String = simulation.id.chars().take(8).collect();
        writeln!(out, "{id}  {}", simulation_line(house, simulation))?;
        if whole {
            if let Some(task) = results.task(&simulation.task_id) {
                writeln!(out, "{}\n", house.paint.text(Style::Dim, task))?;
            }
            for message in simulation.messages() {
                message_lines(house, message, args.full, &mut out)?;
            }
            match &simulation.reward_info {
                Some(info) if args.full => {
                    writeln!(out, "{}", serde_json::to_string_pretty(info)?)?;
                }
                Some(info) => reward_lines(house, info, &mut out)?,
                None => {}
            }
        }
    }
    Ok(Exit::Completed)
}

/// How a simulation was judged, as a person reads it.
pub(super) fn reward_lines(
    house: &House,
    info: &RewardInfo,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let parts = info.reward_breakdown.iter().flatten();
    let parts: Vec<String> =
        parts.map(|(kind, part)| format!("{} {part:.2}", kind.name())).collect();
    writeln!(out, "{}", house.paint.text(Style::Bold, parts.join(" × ")))?;
    let mut check = |met: bool, what: String| {
        let (style, mark) = if met { (Style::Good, "✓") } else { (Style::Bad, "✗") };
        let line = format!("  {mark} {}", clip(&what, ANSWER));
        writeln!(out, "{}", house.paint.text(style, line))
    };
    if let Some(db) = &info.db_check {
        check(db.db_match, "the databases are as expected".to_owned())?;
    }
    for found in info.action_checks.iter().flatten() {
        let arguments = python::dumps(&found.action.arguments, python::Layout::Line);
        check(found.action_match, format!("{}({arguments})", found.action.name))?;
    }
    for found in info.env_assertions.iter().flatten() {
        check(found.met, format!("{} holds", found.env_assertion.func_name))?;
    }
    for found in info.communicate_checks.iter().flatten() {
        check(found.met, format!("{:?} was told", found.info))?;
    }
    for found in info.nl_assertions.iter().flatten() {
        check(found.met, found.nl_assertion.clone())?;
    }
    Ok(())
}

/// A message as a person reads it.
pub(super) fn message_lines(
    house: &House,
    message: &Message,
    full: bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let (who, style) = match message {
        Message::System(_) => ("system", Style::Dim),
        Message::Assistant(_) => ("agent", Style::Bold),
        Message::User(_) => ("user", Style::Bold),
        Message::Tool(answer) if answer.error => ("tool", Style::Bad),
        Message::Tool(_) => ("tool", Style::Dim),
    };
    let who = house.paint.text(style, format!("{who:>6}"));
    if let Some(content) = message.content().filter(|content| !content.is_empty()) {
        let content = match message {
            Message::Tool(_) if !full => clip(content, ANSWER),
            _ => content.to_owned(),
        };
        writeln!(out, "{who} {content}")?;
    }
    for call in message.tool_calls() {
        let arguments = python::dumps(&call.arguments, python::Layout::Line);
        let call = house.paint.text(Style::Tool, format!("{}({arguments})", call.name));
        writeln!(out, "{who} {call}")?;
    }
    Ok(())
}

pub(super) fn domain(house: &House, registry: &Registry, args: Domain) -> Done {
    let mut out = std::io::stdout().lock();
    let Some(name) = args.name else {
        for name in registry.domains() {
            let embedded = registry.domain(name).is_ok_and(|entry| entry.is_embedded());
            let note = if embedded { "embedded" } else { "needs the data of τ²-bench" };
            writeln!(out, "{name:<20} {}", house.paint.text(Style::Dim, note))?;
        }
        return Ok(Exit::Completed);
    };
    let loaded = load(registry, &name, args.data)?;
    if let Some(id) = &args.task {
        let task = loaded.tasks.task(id);
        let task = task.ok_or_else(|| Failure::usage(format!("there is no task {id:?}")))?;
        writeln!(out, "{task}")?;
        return Ok(Exit::Completed);
    }
    let domain = &loaded.domain;
    let sides = [("agent", Some(&domain.agent)), ("user", domain.user.as_ref())];
    if args.json {
        let schemas: serde_json::Map<String, serde_json::Value> = sides
            .iter()
            .filter_map(|(side, kit)| {
                let tools = kit.as_ref()?.shown().map(|tool| tool.schema()).collect();
                Some(((*side).to_owned(), serde_json::Value::Array(tools)))
            })
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&schemas)?)?;
        return Ok(Exit::Completed);
    }
    writeln!(out, "{}\n", domain.policy.trim_end())?;
    for (side, kit) in sides {
        let Some(kit) = kit else { continue };
        writeln!(out, "{}", house.paint.text(Style::Bold, format!("Tools of the {side}")))?;
        for tool in kit.shown() {
            let params: Vec<&str> = tool.params.iter().map(|param| param.name).collect();
            let name =
                house.paint.text(Style::Tool, format!("{}({})", tool.name, params.join(", ")));
            let kind = match tool.kind {
                Kind::Read => "reads",
                Kind::Write => "writes",
                Kind::Think => "thinks",
                Kind::Generic => "other",
            };
            writeln!(out, "  {name} {kind}: {}", clip(tool.description, 100))?;
        }
    }
    let splits: Vec<String> =
        loaded.tasks.splits.iter().map(|(name, ids)| format!("{name} {}", ids.len())).collect();
    writeln!(out, "{} tasks; splits: {}", loaded.tasks.tasks.len(), splits.join(", "))?;
    Ok(Exit::Completed)
}
