//! `cargo xtask bench all`: every figure that has a bar, in one table.

use std::{fmt::Write as _, fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use super::Bench;
use crate::house;

/// The variable by which a benchmark learns where its figures are collected.
pub(super) const FIGURES: &str = "DUOLOGUE_BENCH_FIGURES";

const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- bench all: begin -->";
const END: &str = "<!-- bench all: end -->";

/// Run them all, print the table and write it into the page.
pub(super) fn run(options: &[Bench]) -> Result<()> {
    let collected = collected();
    if collected.exists() {
        fs::remove_file(&collected).context("removing the figures of the last run")?;
    }
    let mut failed = Vec::new();
    for bench in options {
        // One that cannot run here must not hide the others.
        if let Err(error) = super::measure(bench, Some(&collected)) {
            eprintln!("{error:#}");
            failed.push(format!("{error:#}"));
        }
    }
    let lines = fs::read_to_string(&collected).context("reading the figures")?;
    let figures = lines.lines().map(Figure::read).collect::<Result<Vec<_>>>()?;
    let table = table(&figures);
    println!("\n{table}");
    let page = house::root().join(PAGE);
    let text = fs::read_to_string(&page).with_context(|| format!("reading {PAGE}"))?;
    fs::write(&page, replaced(&text, &table)?).with_context(|| format!("writing {PAGE}"))?;
    println!("written into {PAGE}");
    let missed = figures.iter().filter(|figure| !figure.holds()).count();
    if missed > 0 || !failed.is_empty() {
        bail!("{missed} figures miss their bar, {} benchmarks did not run", failed.len());
    }
    Ok(())
}

fn collected() -> PathBuf {
    house::target().join("bench-figures.tsv")
}

/// One figure and its bar, as a benchmark notes it.
#[derive(Debug, PartialEq)]
struct Figure {
    what: String,
    value: f64,
    sense: Sense,
    bar: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sense {
    AtMost,
    AtLeast,
}

impl Figure {
    fn read(line: &str) -> Result<Self> {
        let odd = || format!("not a figure: {line:?}");
        let fields: Vec<&str> = line.split('\t').collect();
        let &[what, value, sense, bar] = fields.as_slice() else { bail!(odd()) };
        let sense = match sense {
            "<=" => Sense::AtMost,
            ">=" => Sense::AtLeast,
            _ => bail!(odd()),
        };
        Ok(Self {
            what: what.to_owned(),
            value: value.parse().with_context(odd)?,
            sense,
            bar: bar.parse().with_context(odd)?,
        })
    }

    fn holds(&self) -> bool {
        match self.sense {
            Sense::AtMost => self.value <= self.bar,
            Sense::AtLeast => self.value >= self.bar,
        }
    }
}

fn table(figures: &[Figure]) -> String {
    let mut table = "| figure | measured | bar | |\n|---|---|---|---|\n".to_owned();
    for figure in figures {
        let Figure { what, value, sense, bar } = figure;
        let sense = match sense {
            Sense::AtMost => "at most",
            Sense::AtLeast => "at least",
        };
        let sign = if figure.holds() { "✔" } else { "✘" };
        let _ = writeln!(table, "| {what} | {value} | {sense} {bar} | {sign} |");
    }
    table
}

/// The page with another table between its marks.
fn replaced(page: &str, table: &str) -> Result<String> {
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let Some((before, after)) = parts else {
        bail!("{PAGE} has no place for the table: {BEGIN} … {END}");
    };
    Ok(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_judged_by_their_bar() {
        let at_most = Figure::read("send × bare\t1.90\t<=\t2").unwrap();
        assert!(at_most.holds());
        assert!(!Figure { value: 2.1, ..at_most }.holds());
        assert!(!Figure::read("tasks per s\t2999.00\t>=\t3000").unwrap().holds());
        for odd in ["", "a\tb\t<=\t1", "a\t1\t=\t1", "a\t1\t<="] {
            assert!(Figure::read(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn the_table_takes_the_place_of_the_last_one() {
        let figures = [Figure { what: "a".into(), value: 1.5, sense: Sense::AtMost, bar: 1.0 }];
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let page = replaced(&page, &table(&figures)).unwrap();
        assert!(page.contains("| a | 1.5 | at most 1 | ✘ |"), "{page}");
        assert!(
            page.starts_with("before\n") && page.ends_with("\nafter\n") && !page.contains("old")
        );
        assert!(replaced("no marks", "").is_err());
    }
}
