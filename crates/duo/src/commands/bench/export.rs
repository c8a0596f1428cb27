//! `duo bench export`: a report in one file that opens in a browser.

use std::fmt::Write as _;

use duologue_bench::{
    Message, Results, Simulation,
    metrics::{Metrics, is_success},
    python,
};

use super::args::Export;
use crate::{exit::Exit, failure::Done};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}\
h1,h2{font-weight:600}table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}\
.bar{fill:#3b7dd8}.ok{color:#187a35}.bad{color:#b3261e}details{border-bottom:1px solid #eee;padding:.3em 0}\
.m{margin:.3em 0 .3em 1em;white-space:pre-wrap}.who{color:#777;display:inline-block;width:4em}.tool{color:#666;font-family:monospace;font-size:13px}\
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}td,th,details{border-color:#333}.bar{fill:#6aa3ee}.ok{color:#6fcf87}.bad{color:#f28b82}}";

pub(super) fn export(args: &Export) -> Done {
    let mut html = String::from("<!doctype html><meta charset=utf-8><title>duo bench</title>");
    let _ = write!(html, "<style>{STYLE}</style><h1>duo bench</h1>");
    for file in &args.files {
        let results = Results::load(file)?;
        report(&results, &file.display().to_string(), &mut html);
    }
    std::fs::write(&args.html, html)?;
    Ok(Exit::Completed)
}

fn report(results: &Results, name: &str, html: &mut String) {
    let metrics = Metrics::of(results);
    let info = &results.info;
    let _ = write!(
        html,
        "<h2>{}</h2><p>{} · agent {} ({}) · user {} ({}) · {} simulations · mean reward {:.3}",
        escape(name),
        escape(results.domain().unwrap_or("?")),
        escape(&info.agent_info.implementation),
        escape(info.agent_info.llm.as_deref().unwrap_or("no model")),
        escape(&info.user_info.implementation),
        escape(info.user_info.llm.as_deref().unwrap_or("no model")),
        metrics.simulations,
        metrics.average_reward
    );
    if let Some(width) = metrics.interval {
        let _ = write!(html, " ± {width:.3}");
    }
    html.push_str("</p>");
    let bars: Vec<(String, f64)> =
        (1..).zip(&metrics.pass_hat).map(|(k, value)| (format!("pass^{k}"), *value)).collect();
    plot(&bars, html);
    html.push_str("<h3>Reward by task</h3>");
    let bars: Vec<(String, f64)> =
        metrics.tasks.iter().map(|(id, task)| (id.clone(), task.average_reward())).collect();
    plot(&bars, html);
    html.push_str("<h3>Simulations</h3>");
    for simulation in &results.simulations {
        trajectory(simulation, html);
    }
}

/// Bars from 0 to 1, one below the other.
fn plot(bars: &[(String, f64)], html: &mut String) {
    let height = bars.len() * 18 + 4;
    let _ = write!(html, "<svg width=700 height={height} role=img>");
    for (at, (name, value)) in bars.iter().enumerate() {
        let y = at * 18 + 2;
        let short: String = name.chars().take(44).collect();
        let _ = write!(
            html,
            "<text x=0 y={} font-size=12 fill=currentColor>{}</text>\
             <rect class=bar x=320 y={y} width={:.0} height=14></rect>\
             <text x={:.0} y={} font-size=12 fill=currentColor>{value:.2}</text>",
            y + 12,
            escape(&short),
            value.clamp(0.0, 1.0) * 320.0,
            326.0 + value.clamp(0.0, 1.0) * 320.0,
            y + 12
        );
    }
    html.push_str("</svg>");
}

fn trajectory(simulation: &Simulation, html: &mut String) {
    let reward = simulation.reward_info.as_ref().map_or(0.0, |info| info.reward);
    let class = if is_success(reward) { "ok" } else { "bad" };
    let _ = write!(
        html,
        "<details><summary><span class={class}>{reward:.2}</span> {} · trial {} · {}</summary>",
        escape(&simulation.task_id),
        simulation.trial.unwrap_or(0),
        simulation.termination_reason.name()
    );
    for message in simulation.messages() {
        let (who, class) = match message {
            Message::System(_) => ("system", "m"),
            Message::Assistant(_) => ("agent", "m"),
            Message::User(_) => ("user", "m"),
            Message::Tool(_) => ("tool", "m tool"),
        };
        let mut text = message.content().unwrap_or_default().to_owned();
        for call in message.tool_calls() {
            let arguments = python::dumps(&call.arguments, python::Layout::Line);
            let _ = write!(text, "→ {}({arguments})", call.name);
        }
        let text = escape(&text);
        let _ = write!(html, "<div class=\"{class}\"><span class=who>{who}</span> {text}</div>");
    }
    html.push_str("</details>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
