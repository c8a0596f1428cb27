//! What a planned agent writes into its journal, for whoever reads along.

use duologue_core::Step;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    classify::Choice,
    meta::MetaLook,
    plan::Plan,
    stuck::{Rung, Sign},
    todo::Todo,
    validation::{Occasion, Validation},
};

/// A note of a planned agent. Its topic is its kind: `strategy`, `plan`, `todo`, `validation`,
/// `replan`, `stuck`, `meta`, `misfit`.
///
/// ```
/// use duologue_behaviors::PlannedNote;
/// use duologue_core::Event;
///
/// fn show(event: &Event) {
///     if let Event::Note { topic, data } = event
///         && let Some(PlannedNote::Todo(todo)) = PlannedNote::read(topic, data)
///     {
///         println!("{}", todo.to_text());
///     }
/// }
/// # let _ = show;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "topic", content = "data", rename_all = "snake_case")]
pub enum PlannedNote {
    /// How the task is gone about from now on.
    Strategy(Choice),
    /// A plan was made.
    Plan(Plan),
    /// The TODO list changed; this is all of it.
    Todo(Todo),
    /// The work was checked.
    Validation(ValidationNote),
    /// Another plan is wanted.
    Replan(ReplanNote),
    /// The run is stuck, and something is done about it.
    Stuck(StuckNote),
    /// The model looked at the run itself.
    Meta(MetaLook),
    /// The model's answers did not fit, and a default was taken.
    Misfit(MisfitNote),
}

/// The work was checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationNote {
    /// Why.
    pub occasion: Occasion,
    /// What was found.
    #[serde(flatten)]
    pub validation: Validation,
}

/// Another plan is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplanNote {
    /// By what.
    pub reason: ReplanReason,
    /// Why, for a person.
    pub detail: String,
    /// Whether it is not made, because the task was planned again often enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

/// What calls for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplanReason {
    /// The task begins.
    Start,
    /// The model called `planner`.
    Asked,
    /// The model called `require_planning`.
    Required,
    /// The seed's rule: too many steps for too little.
    SlowProgress,
    /// The work was said to be complete and is not.
    FailedValidation,
    /// The run is stuck.
    Stuck,
    /// A hybrid run has grown longer than it looked.
    GrewLonger,
    /// A look at the run wants to go on by a plan.
    Meta,
}

impl ReplanReason {
    /// Whether the plan so far has shown itself to be wrong.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Required | Self::Stuck | Self::FailedValidation)
    }
}

/// The run is stuck.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckNote {
    /// What shows it.
    #[serde(flatten)]
    pub sign: Sign,
    /// What is done about it.
    pub rung: Rung,
    /// Both, for a person.
    pub detail: String,
}

/// Answers that did not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MisfitNote {
    /// What was asked for.
    pub aside: String,
    /// How often.
    pub tries: u32,
    /// What was wrong at last.
    pub error: String,
    /// What is taken instead.
    pub default: String,
}

impl PlannedNote {
    /// The note in a journal's entry, if it is one of these.
    pub fn read(topic: &str, data: &Value) -> Option<Self> {
        serde_json::from_value(json!({ "topic": topic, "data": data })).ok()
    }

    /// Its topic.
    pub fn topic(&self) -> &'static str {
        match self {
            Self::Strategy(_) => "strategy",
            Self::Plan(_) => "plan",
            Self::Todo(_) => TODO,
            Self::Validation(_) => "validation",
            Self::Replan(_) => "replan",
            Self::Stuck(_) => "stuck",
            Self::Meta(_) => "meta",
            Self::Misfit(_) => "misfit",
        }
    }

    /// The step that writes the list down, without a copy of it in between: it changes with nearly
    /// every step.
    pub(crate) fn todo_step(todo: &Todo) -> Step {
        let data = serde_json::to_value(todo).unwrap_or_default();
        Step::Note { topic: TODO.to_owned(), data }
    }

    /// The step that writes it down.
    pub(crate) fn step(&self) -> Step {
        let data = match self {
            Self::Strategy(data) => serde_json::to_value(data),
            Self::Plan(data) => serde_json::to_value(data),
            Self::Todo(data) => serde_json::to_value(data),
            Self::Validation(data) => serde_json::to_value(data),
            Self::Replan(data) => serde_json::to_value(data),
            Self::Stuck(data) => serde_json::to_value(data),
            Self::Meta(data) => serde_json::to_value(data),
            Self::Misfit(data) => serde_json::to_value(data),
        };
        // None of these types can fail to be JSON: no map with other keys than text is in them.
        Step::Note { topic: self.topic().to_owned(), data: data.unwrap_or_default() }
    }
}

/// The topic of the list's notes.
pub(crate) const TODO: &str = "todo";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back_as_it_was_written() {
        let sign = Sign::Cycle { length: 2 };
        let note = StuckNote { sign, rung: Rung::Hint, detail: "d".into() };
        let note = PlannedNote::Stuck(note);
        let Step::Note { topic, data } = note.step() else { panic!("a note is a note") };
        assert_eq!(data, json!({"sign": "cycle", "length": 2, "rung": "hint", "detail": "d"}));
        assert_eq!(PlannedNote::read(&topic, &data), Some(note));
        assert_eq!(PlannedNote::read("weather", &data), None);
    }
}
