//! The table that a person reads.

use std::fmt::Write;

use bench_arm::{Bar, Report, figure, median};

use crate::{contest::Score, plan::Phase};

/// The table of all scores; the first one is the reference of the ratios.
pub(crate) fn render(scores: &[Score], crowds: &[u32], notes: &[String]) -> String {
    let mut header: Vec<String> =
        ["arm", "CPU µs/step", "× raw", "first event µs"].map(str::to_owned).into();
    header.extend(crowds.iter().map(|agents| format!("KB/agent, {agents}")));
    header.push("request bytes".into());

    let reference = scores.first();
    let rows = scores.iter().map(|score| {
        let mut row = vec![
            score.name.clone(),
            with_range(&values(score, Phase::Busy, |report| report.cpu_us_per_step)),
            ratio(score, reference),
            number(&values(score, Phase::Alone, |report| report.first_event_us)),
        ];
        row.extend(crowds.iter().map(|agents| {
            number(&values(score, Phase::Crowd(*agents), |report| report.kb_per_agent))
        }));
        row.push(format!("{:.0}", score.request_bytes));
        row
    });
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let mut table = align(&rows);
    for note in notes {
        let _ = write!(table, "\n{note}");
    }
    table
}

/// The figures that have a bar.
pub(crate) fn note_figures(scores: &[Score], crowds: &[u32]) {
    let named = |name: &str| scores.iter().find(|score| score.name == name);
    let (raw, memory) = (named("raw"), named("memory"));
    for (arm, over, most) in [("memory", raw, 1.5), ("sqlite", raw, 2.0), ("planned", memory, 1.3)]
    {
        if let (Some(score), Some(over)) = (named(arm), over)
            && let Some(ratio) = cpu_ratio(score, over)
        {
            let what = format!("loop: CPU per step, {arm} × {}", over.name);
            figure(&what, ratio, Bar::AtMost(most));
        }
    }
    for (arm, agents) in
        ["memory", "sqlite"].iter().flat_map(|arm| crowds.iter().map(move |n| (arm, n)))
    {
        let Some(score) = named(arm) else { continue };
        let held = values(score, Phase::Crowd(*agents), |report| report.kb_per_agent);
        if !held.is_empty() {
            let what = format!("loop: KB per agent of {agents}, {arm}");
            figure(&what, median(held), Bar::AtMost(80.0));
        }
    }
}

fn values(score: &Score, phase: Phase, of: impl Fn(&Report) -> f64) -> Vec<f64> {
    let matching = score.reports.iter().filter(|(taken, _)| *taken == phase);
    matching.map(|(_, report)| of(report)).collect()
}

fn number(values: &[f64]) -> String {
    if values.is_empty() {
        return "–".into();
    }
    format!("{:.0}", median(values.iter().copied()))
}

fn with_range(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    match values {
        [] | [_] => number(values),
        _ => format!("{} ({least:.0}–{most:.0})", number(values)),
    }
}

/// Ratios are taken inside each repeat, where both arms met the same machine, and then the median.
fn ratio(score: &Score, reference: Option<&Score>) -> String {
    let ratio = reference.and_then(|reference| cpu_ratio(score, reference));
    ratio.map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}"))
}

fn cpu_ratio(score: &Score, reference: &Score) -> Option<f64> {
    let cpu = |report: &Report| report.cpu_us_per_step;
    let ours = values(score, Phase::Busy, cpu);
    let theirs = values(reference, Phase::Busy, cpu);
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

/// Columns under each other: the first to the left, numbers to the right.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(name: &str, cpu: [f64; 3], first_event_us: f64, kb_per_agent: f64) -> Score {
        let report = |cpu_us_per_step| Report {
            cpu_us_per_step,
            first_event_us,
            kb_per_agent,
            seconds: 1.0,
        };
        let mut reports: Vec<_> = cpu.map(|cpu| (Phase::Busy, report(cpu))).into();
        reports.push((Phase::Alone, report(1.0)));
        reports.push((Phase::Crowd(1_000), report(1.0)));
        Score { name: name.into(), reports, request_bytes: 2_000.0 }
    }

    #[test]
    fn the_table_shows_medians_and_ratios_inside_repeats() {
        let scores = [
            score("raw", [100.0, 200.0, 400.0], 90.0, 48.0),
            score("agent", [150.0, 220.0, 800.0], 120.0, 77.0),
        ];
        let table = render(&scores, &[1_000, 10_000], &["a note".into()]);
        assert_eq!(
            table,
            "arm      CPU µs/step  × raw  first event µs  KB/agent, 1000  KB/agent, 10000  request bytes\n\
             raw    200 (100–400)   1.00              90              48                –           2000\n\
             agent  220 (150–800)   1.50             120              77                –           2000\n\
             \na note"
        );
    }
}
