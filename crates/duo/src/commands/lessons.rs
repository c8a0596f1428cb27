//! `duo lessons`: what planned agents have learned.

use std::io::Write;

use duologue_behaviors::{Lesson, LessonStore};

use crate::{
    cli::Lessons,
    exit::Exit,
    failure::{Done, Failure},
    house::{House, lessons_file},
    terminal::{Style, clip},
};

pub(crate) async fn lessons(house: &House, args: Lessons) -> Done {
    let planned = &house.config().planned;
    let file = lessons_file(planned)?;
    let mut out = std::io::stdout();
    match args {
        Lessons::Where => writeln!(out, "{}", file.path().display())?,
        Lessons::List { like, json } => {
            let all = file.all().map_err(Failure::new)?;
            let shown = match &like {
                None => all.clone(),
                Some(task) => file.recall(task).map_err(Failure::new)?,
            };
            for lesson in &shown {
                // The number is the place among all, which is what `delete` takes.
                let number = all.iter().position(|other| other == lesson).map_or(0, |at| at + 1);
                if json {
                    writeln!(out, "{}", serde_json::to_string(lesson)?)?;
                } else {
                    show(house, number, lesson)?;
                }
            }
            if shown.is_empty() && !json {
                let how = if planned.lessons {
                    "no lesson yet"
                } else {
                    "no lesson; planned agents learn with --set planned.lessons=true"
                };
                writeln!(out, "{how}")?;
            }
        }
        Lessons::Delete { numbers, all } => {
            let known = file.all().map_err(Failure::new)?.len();
            let mut numbers = if all { (1..=known).collect() } else { numbers };
            if let Some(number) = numbers.iter().find(|number| !(1..=known).contains(*number)) {
                return Err(Failure::usage(format!("there is no lesson {number}")));
            }
            // From the end, so that the places of the others stay.
            numbers.sort_unstable_by(|a, b| b.cmp(a));
            numbers.dedup();
            let what = match numbers.len() {
                1 => "one lesson".to_owned(),
                many => format!("{many} lessons"),
            };
            if !house.may_delete(&what)? {
                return Ok(Exit::Aborted);
            }
            for number in numbers {
                file.forget(number - 1).map_err(Failure::new)?;
            }
            writeln!(out, "deleted {what}")?;
        }
    }
    Ok(Exit::Completed)
}

fn show(house: &House, number: usize, lesson: &Lesson) -> std::io::Result<()> {
    let paint = house.paint;
    let (style, mark) = if lesson.worked { (Style::Good, "✔") } else { (Style::Bad, "✘") };
    let mut out = std::io::stdout();
    let Lesson { task, strategy, outcome, plan, .. } = lesson;
    let mark = paint.text(style, mark);
    writeln!(out, "{number:>3} {mark} {} ({strategy}: {outcome})", clip(task, 100))?;
    for (at, step) in plan.iter().enumerate() {
        let line = format!("      {}. {}", at + 1, clip(step, 100));
        writeln!(out, "{}", paint.text(Style::Dim, line))?;
    }
    Ok(())
}
