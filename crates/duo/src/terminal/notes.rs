//! What behaviours write down about their work, as lines for people.

use duologue_behaviors::{
    ConclusionNote, DecidedBy, Decision, DecisionNote, PlannedNote, ReplanNote, StuckNote, Todo,
    TodoItem, TodoStatus, ValidationNote,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Paint, Style, clip, visible};

/// How much of a text one line shows.
const LINE_CHARS: usize = 160;

/// A note in the words of the behaviour that wrote it.
#[derive(Debug)]
pub(crate) enum Shown {
    /// As lines.
    Lines(String),
    /// As the list that it changes.
    Todo(Todo),
    /// Not at all: something else says the same.
    Nothing,
}

/// How a note is shown; `None` if nobody here knows its topic.
pub(crate) fn note(paint: Paint, topic: &str, data: &Value) -> Option<Shown> {
    let lines = match topic {
        "hr_loop" => return Some(Shown::Nothing),
        DecisionNote::TOPIC => match read(data) {
            Some(note) => decision(paint, &note),
            None => routed(paint, &read(data)?),
        },
        ConclusionNote::TOPIC => conclusion(paint, &read(data)?),
        _ => match PlannedNote::read(topic, data)? {
            PlannedNote::Todo(todo) => return Some(Shown::Todo(todo)),
            note => planned(paint, &note),
        },
    };
    Some(Shown::Lines(lines))
}

fn read<T: DeserializeOwned>(data: &Value) -> Option<T> {
    T::deserialize(data).ok()
}

/// What a router decided at one of its points.
#[derive(Deserialize)]
struct Routed {
    point: String,
    decision: String,
    by: String,
    #[serde(default)]
    why: String,
}

fn routed(paint: Paint, note: &Routed) -> String {
    let by = if note.by == "model" { "" } else { " (by default)" };
    let title = paint.text(Style::Bold, format!("◆ {}: ", visible(&note.point)));
    let why = match note.why.trim() {
        "" => String::new(),
        why => paint.text(Style::Dim, format!(" · {}", line(why))),
    };
    format!("{title}{}{by}{why}", line(&note.decision))
}

fn decision(paint: Paint, note: &DecisionNote) -> String {
    let (word, what, reasoning) = match &note.decision {
        Decision::Continue { instruction, reasoning } => ("continue", instruction, reasoning),
        Decision::Redirect { instruction, reasoning, .. } => ("redirect", instruction, reasoning),
        Decision::Terminate { answer, reasoning } => ("terminate", answer, reasoning),
        Decision::AskHuman { question, reasoning } => ("ask the user", question, reasoning),
        Decision::Impossible { reason, reasoning } => ("impossible", reason, reasoning),
    };
    let by = match note.by {
        DecidedBy::Human => "H",
        DecidedBy::Function => "ƒ",
        DecidedBy::Default => "default",
    };
    let what = if what.trim().is_empty() { String::new() } else { format!(": {}", line(what)) };
    let mut text = paint.text(Style::Bold, format!("◆ {by} decides: {word}")) + &what;
    for why in [Some(reasoning), note.because.as_ref()].into_iter().flatten() {
        if !why.trim().is_empty() {
            text.push_str(&paint.text(Style::Dim, format!("\n  {}", line(why))));
        }
    }
    text
}

fn conclusion(paint: Paint, note: &ConclusionNote) -> String {
    let conclusion = &note.conclusion.conclusion;
    let who = match note.conclusion.by.strip_prefix("reactive") {
        Some(number) => format!("R{number}"),
        None => note.conclusion.by.clone(),
    };
    let sure = conclusion.confidence.map(|sure| format!(" ({:.0} % sure)", sure * 100.0));
    let title = format!("◇ {who} concludes{}", sure.unwrap_or_default());
    let mut text = match &conclusion.error {
        Some(error) => paint.text(Style::Bad, format!("{title}: {}", line(error))),
        None => format!("{}: {}", paint.text(Style::Bold, title), line(&conclusion.summary)),
    };
    for name in conclusion.artifacts.keys() {
        text.push_str(&paint.text(Style::Dim, format!("\n  + {}", line(name))));
    }
    text
}

fn planned(paint: Paint, note: &PlannedNote) -> String {
    let dim = |text: String| paint.text(Style::Dim, text);
    match note {
        PlannedNote::Strategy(choice) => {
            dim(format!("· strategy {}: {}", choice.strategy, line(&choice.reason)))
        }
        PlannedNote::Plan(plan) => {
            let steps = plan.steps.len();
            let title = match plan.revision {
                0 | 1 => format!("· plan with {steps} steps"),
                again => format!("· plan {again} with {steps} steps"),
            };
            dim(format!("{title}: {}", line(&plan.reasoning)))
        }
        PlannedNote::Todo(todo) => todo_lines(paint, todo).join("\n"),
        PlannedNote::Validation(ValidationNote { validation, .. }) => {
            let (style, mark, word) = if validation.is_complete {
                (Style::Good, "✔", "complete")
            } else {
                (Style::Warning, "✘", "not complete")
            };
            let mut text = paint.text(style, format!("{mark} checked: {word}"));
            text.push_str(&dim(format!(" · {}", line(&validation.reasoning))));
            for suggestion in &validation.suggestions {
                text.push_str(&dim(format!("\n  → {}", line(suggestion))));
            }
            text
        }
        PlannedNote::Replan(ReplanNote { detail, refused, .. }) => {
            let word = if *refused { "no more re-planning" } else { "re-planning" };
            paint.text(Style::Warning, format!("↺ {word}: {}", line(detail)))
        }
        PlannedNote::Stuck(StuckNote { detail, .. }) => {
            paint.text(Style::Warning, format!("⚠ stuck: {}", line(detail)))
        }
        PlannedNote::Meta(look) => dim(format!("· looked at the run: {}", line(&look.assessment))),
        PlannedNote::Misfit(misfit) => paint.text(
            Style::Warning,
            format!("⚠ {}: {}; {}", misfit.aside, line(&misfit.error), line(&misfit.default)),
        ),
    }
}

/// The list, an item a line.
pub(crate) fn todo_lines(paint: Paint, todo: &Todo) -> Vec<String> {
    todo.items.iter().map(|item| item_line(paint, item)).collect()
}

/// What is finished, in a word.
pub(crate) fn todo_summary(paint: Paint, todo: &Todo) -> String {
    let text = format!("· todo: {} of {} finished", todo.finished(), todo.items.len());
    paint.text(Style::Dim, text)
}

/// An item on a line.
pub(crate) fn item_line(paint: Paint, item: &TodoItem) -> String {
    let (style, mark) = match item.status {
        TodoStatus::Open => (None, "☐"),
        TodoStatus::Done => (Some(Style::Good), "☑"),
        TodoStatus::Skipped => (Some(Style::Dim), "☒"),
    };
    let mark = style.map_or_else(|| mark.to_owned(), |style| paint.text(style, mark));
    let title = line(&item.title);
    match item.status {
        TodoStatus::Open => format!("  {mark} {title}"),
        _ => format!("  {mark} {}", paint.text(Style::Dim, title)),
    }
}

fn line(text: &str) -> String {
    clip(&visible(text), LINE_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(topic: &str, data: Value) -> String {
        match note(Paint::plain(), topic, &data) {
            Some(Shown::Lines(lines)) => lines,
            Some(Shown::Todo(todo)) => todo_lines(Paint::plain(), &todo).join("\n"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn decisions_and_conclusions_read_as_who_and_what() {
        let data = json!({
            "loop": 1, "by": "human", "action": "redirect", "instruction": "Look at b.txt",
            "focus_area": "b.txt", "reasoning": "a.txt is done",
        });
        assert_eq!(
            shown("decision", data),
            "◆ H decides: redirect: Look at b.txt\n  a.txt is done"
        );
        let data = json!({
            "loop": 1, "by": "reactive-2", "summary": "Three lines.", "confidence": 0.8,
            "artifacts": {"count": 3},
        });
        assert_eq!(
            shown("conclusion", data),
            "◇ R-2 concludes (80 % sure): Three lines.\n  + count"
        );
    }

    #[test]
    fn a_list_is_shown_with_what_is_finished() {
        let data = json!({"items": [
            {"id": "s1", "title": "read\u{1b}[2J", "step": "s1", "status": "done"},
            {"id": "s2", "title": "write", "status": "open"},
            {"id": "t1", "title": "tidy", "status": "skipped"},
        ]});
        assert_eq!(shown("todo", data), "  ☑ read[2J\n  ☐ write\n  ☒ tidy");
    }

    #[test]
    fn a_topic_of_somebody_else_is_left_to_others() {
        assert!(note(Paint::plain(), "weather", &json!({"sky": "blue"})).is_none());
        assert!(note(Paint::plain(), "decision", &json!({"sky": "blue"})).is_none());
    }
}
