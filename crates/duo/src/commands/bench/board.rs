//! What a person sees while a run goes on: a table with a row for each task, drawn in place.
//!
//! Without a terminal nothing is drawn; what matters afterwards is in the summary and the file.

use std::{
    collections::HashMap,
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

use duologue_bench::{
    Simulation, Task,
    metrics::is_success,
    run::{Job, Keep, Plan, Progress},
};
use unicode_width::UnicodeWidthStr;

use crate::{
    house::House,
    terminal::{Style, clip},
};

/// The shortest time between two drawings.
const PAUSE: Duration = Duration::from_millis(80);
/// How wide the names of tasks may get.
const WIDEST_NAME: usize = 40;
/// Trials that are shown one by one; more are counted.
const MOST_MARKS: usize = 10;

/// The table.
pub(super) struct Board<'a> {
    house: &'a House,
    rows: Vec<Row>,
    places: HashMap<String, usize>,
    trials: u32,
    total: usize,
    begun: Instant,
    drawn_at: Option<Instant>,
    /// How many lines are on the screen.
    lines: usize,
    /// How often a row changed.
    touches: u64,
    is_terminal: bool,
}

/// A task.
#[derive(Default)]
struct Row {
    name: String,
    rewards: Vec<Option<f64>>,
    /// Trials under way and how many steps they have.
    running: Vec<(u32, u32)>,
    cost: f64,
    /// When it last changed, by count.
    touched: u64,
}

impl<'a> Board<'a> {
    pub(super) fn new(house: &'a House, plan: &Plan, keep: &Keep) -> Self {
        let row = |task: &std::sync::Arc<Task>| Row { name: task.id.clone(), ..Row::default() };
        let rows: Vec<Row> = plan.tasks.iter().map(row).collect();
        let places = rows.iter().enumerate().map(|(at, row)| (row.name.clone(), at)).collect();
        let mut board = Self {
            house,
            rows,
            places,
            trials: plan.trials,
            total: plan.jobs().len(),
            begun: Instant::now(),
            drawn_at: None,
            lines: 0,
            touches: 0,
            is_terminal: std::io::stderr().is_terminal(),
        };
        for simulation in keep.in_order(&plan.jobs()) {
            board.finished(&simulation);
        }
        board
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        match progress {
            Progress::Begun(job) => self.step(job, 0),
            Progress::Step(job, steps) => self.step(job, *steps),
            Progress::Again(job, error) => {
                self.clear();
                let line = format!("{} begins again: {error}", job.task.id);
                let line = self.house.paint.text(Style::Warning, line);
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            Progress::Finished(simulation) => self.finished(simulation),
        }
        let is_due = self.drawn_at.is_none_or(|drawn| drawn.elapsed() >= PAUSE);
        if self.is_terminal && is_due {
            self.draw();
        }
    }

    /// Takes the table off the screen.
    pub(super) fn clear(&mut self) {
        if self.lines > 0 {
            let _ = write!(std::io::stderr(), "\x1b[{}A\r\x1b[J", self.lines);
            self.lines = 0;
        }
    }

    fn step(&mut self, job: &Job, steps: u32) {
        let Some(row) = self.row(&job.task.id) else { return };
        match row.running.iter_mut().find(|(trial, _)| *trial == job.trial) {
            Some(running) => running.1 = steps,
            None => row.running.push((job.trial, steps)),
        }
    }

    fn finished(&mut self, simulation: &Simulation) {
        let Some(row) = self.row(&simulation.task_id) else { return };
        let trial = simulation.trial.unwrap_or_default();
        row.running.retain(|(running, _)| *running != trial);
        row.rewards.push(simulation.reward_info.as_ref().map(|info| info.reward));
        row.cost += simulation.agent_cost.unwrap_or(0.0) + simulation.user_cost.unwrap_or(0.0);
    }

    fn row(&mut self, task: &str) -> Option<&mut Row> {
        self.touches += 1;
        let row = self.rows.get_mut(*self.places.get(task)?)?;
        row.touched = self.touches;
        Some(row)
    }

    fn draw(&mut self) {
        let (width, height) = crossterm::terminal::size().unwrap_or((80, 24));
        let lines = self.table(usize::from(width).max(20), usize::from(height).max(6));
        self.clear();
        let mut out = std::io::stderr().lock();
        for line in &lines {
            let _ = writeln!(out, "{line}");
        }
        let _ = out.flush();
        self.lines = lines.len();
        self.drawn_at = Some(Instant::now());
    }

    /// The lines of the table, as many as fit.
    fn table(&self, width: usize, height: usize) -> Vec<String> {
        let paint = self.house.paint;
        // Where not all tasks fit, those that changed last do, in their order.
        let room = height.saturating_sub(4).max(1);
        let mut shown: Vec<(usize, &Row)> = self.rows.iter().enumerate().collect();
        shown.sort_by_key(|(at, row)| (row.running.is_empty(), u64::MAX - row.touched, *at));
        shown.truncate(room);
        shown.sort_by_key(|(at, _)| *at);
        let names = shown.iter().map(|(_, row)| row.name.width());
        let name = names.max().unwrap_or(4).clamp(4, WIDEST_NAME.min(width / 2));
        let mark = usize::try_from(self.trials).unwrap_or(MOST_MARKS).clamp(6, MOST_MARKS + 1);
        let head = format!("{}  {}  reward  now", pad("task", name), pad("trials", mark));
        let mut lines = vec![paint.text(Style::Bold, clip(&head, width))];
        for (_, row) in &shown {
            let style = match row.mean() {
                _ if !row.running.is_empty() => Style::Tool,
                Some(mean) if is_success(mean) => Style::Good,
                Some(_) => Style::Warning,
                None => Style::Dim,
            };
            let mean = row.mean().map_or_else(|| "–".to_owned(), |mean| format!("{mean:.2}"));
            let line = format!(
                "{}  {}  {}  {}",
                pad(&clip(&row.name, name), name),
                pad(&row.marks(self.trials), mark),
                pad(&mean, 6),
                row.now(self.trials)
            );
            lines.push(paint.text(style, clip(line.trim_end(), width)));
        }
        let hidden = self.rows.len() - shown.len();
        if hidden > 0 {
            lines.push(paint.text(Style::Dim, format!("… and {hidden} more tasks")));
        }
        lines.push(paint.text(Style::Dim, clip(&self.status(), width)));
        lines
    }

    fn status(&self) -> String {
        let rewards: Vec<f64> =
            self.rows.iter().flat_map(|row| row.rewards.iter().flatten().copied()).collect();
        let finished: usize = self.rows.iter().map(|row| row.rewards.len()).sum();
        let running: usize = self.rows.iter().map(|row| row.running.len()).sum();
        let cost: f64 = self.rows.iter().map(|row| row.cost).sum();
        let seconds = self.begun.elapsed().as_secs();
        format!(
            "{finished}/{} finished · {running} running · mean reward {:.2} · ${cost:.4} · {}:{:02}",
            self.total,
            mean(&rewards).unwrap_or_default(),
            seconds / 60,
            seconds % 60
        )
    }
}

impl Row {
    fn mean(&self) -> Option<f64> {
        mean(&self.rewards.iter().flatten().copied().collect::<Vec<f64>>())
    }

    fn marks(&self, trials: u32) -> String {
        if usize::try_from(trials).is_ok_and(|trials| trials > MOST_MARKS) {
            let passed = self.rewards.iter().flatten().filter(|reward| is_success(**reward));
            return format!("{}✓ {}/{trials}", passed.count(), self.rewards.len());
        }
        let mark = |reward: &Option<f64>| match reward {
            Some(reward) if is_success(*reward) => '✓',
            Some(_) => '✗',
            None => '?',
        };
        self.rewards.iter().map(mark).collect()
    }

    fn now(&self, trials: u32) -> String {
        let at = |(trial, steps): &(u32, u32)| match trials {
            1 => format!("step {steps}"),
            _ => format!("trial {trial} step {steps}"),
        };
        self.running.iter().map(at).collect::<Vec<_>>().join(", ")
    }
}

#[allow(clippy::cast_precision_loss, reason = "nobody runs that many trials")]
fn mean(rewards: &[f64]) -> Option<f64> {
    (!rewards.is_empty()).then(|| rewards.iter().sum::<f64>() / rewards.len() as f64)
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}
