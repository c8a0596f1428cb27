//! What H decides.

use duologue_core::{Expectation, Message, Unfit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conclusion::Attributed;

/// What H decides about the task, or about what R concluded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Decision {
    /// R goes on.
    Continue {
        /// With this.
        instruction: String,
        /// Why.
        reasoning: String,
    },
    /// R takes another approach.
    Redirect {
        /// This one.
        instruction: String,
        /// What it should look at above all.
        focus_area: String,
        /// Why.
        reasoning: String,
    },
    /// The task is done.
    Terminate {
        /// What the user is told; if it is empty, what R concluded.
        answer: String,
        /// Why.
        reasoning: String,
    },
    /// Only the user can say.
    AskHuman {
        /// What they are asked.
        question: String,
        /// Why.
        reasoning: String,
    },
    /// The task cannot be done.
    Impossible {
        /// Why not.
        reason: String,
        /// How that became clear.
        reasoning: String,
    },
}

/// Who made a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// H.
    Human,
    /// A function in H's place.
    Function,
    /// Nobody: H gave no decision that fits, and the safe default was taken.
    Default,
}

/// The note that a decision is written down as, with the topic `decision`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionNote {
    /// After how many loops.
    #[serde(rename = "loop")]
    pub number: u32,
    /// Who decided.
    pub by: DecidedBy,
    /// What.
    #[serde(flatten)]
    pub decision: Decision,
    /// Why a default was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl DecisionNote {
    /// The topic of the note.
    pub const TOPIC: &'static str = "decision";
}

/// What a decision is about: what a function in H's place gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deliberation {
    /// What the user asked for.
    pub original_task: String,
    /// How many loops there were.
    pub loops: u32,
    /// What R concluded in the last one, in the order it came; nothing before the first.
    pub conclusions: Vec<Attributed>,
    /// What was said meanwhile: answers to questions, what the user added, what was observed.
    pub news: Vec<String>,
}

impl Decision {
    /// The tool that H decides with.
    pub const TOOL: &'static str = "decide";

    pub(super) fn expectation() -> Expectation {
        let text = "Decides what happens next. continue: the worker goes on with `instruction`. \
             redirect: it takes another approach, `instruction`, and looks at `focus_area`. \
             terminate: the task is done, `answer` is what the user gets to read. ask_human: only \
             the user can answer `question`. impossible: it cannot be done, for `reason`.";
        Expectation::of::<Form>(Self::TOOL, text)
    }

    /// Read what H said. An answer may be left out where a conclusion can stand for it.
    pub(super) fn read(
        expectation: &Expectation,
        message: Option<&Message>,
        has_conclusion: bool,
    ) -> Result<Self, Unfit> {
        let form: Form = expectation.read(message)?;
        form.decision(has_conclusion).map_err(|error| Unfit::Wrong { error })
    }

    /// What is done when H does not decide: work that was concluded without an error is accepted,
    /// otherwise R is given the task itself.
    pub(super) fn by_default(task: &str, conclusions: &[Attributed]) -> Self {
        let reasoning = "No decision was made, so the safe default was taken.".to_owned();
        let is_good = |one: &Attributed| one.conclusion.error.is_none();
        if conclusions.iter().any(is_good) {
            Self::Terminate { answer: String::new(), reasoning }
        } else {
            Self::Continue { instruction: task.to_owned(), reasoning }
        }
    }
}

/// A decision as a model writes it. Providers want an object without alternatives, so this is flat
/// and what belongs together is checked here.
#[derive(Deserialize, JsonSchema)]
struct Form {
    /// What is there, what is missing, and so what happens next; one or two sentences.
    reasoning: String,
    /// What happens next.
    action: Action,
    /// For continue and redirect: what the worker does next.
    #[serde(default)]
    instruction: Option<String>,
    /// For redirect: what the worker looks at above all.
    #[serde(default)]
    focus_area: Option<String>,
    /// For terminate: the whole answer to the user.
    #[serde(default)]
    answer: Option<String>,
    /// For ask_human: the question.
    #[serde(default)]
    question: Option<String>,
    /// For impossible: why the task cannot be done.
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    #[serde(alias = "CONTINUE")]
    Continue,
    #[serde(alias = "REDIRECT")]
    Redirect,
    #[serde(alias = "TERMINATE")]
    Terminate,
    #[serde(alias = "ASK_HUMAN")]
    AskHuman,
    #[serde(alias = "IMPOSSIBLE")]
    Impossible,
}

impl Form {
    fn decision(self, has_conclusion: bool) -> Result<Decision, String> {
        let reasoning = self.reasoning;
        let given = |field: Option<String>| field.filter(|text| !text.trim().is_empty());
        let needs = |field: Option<String>, name: &str, action: &str| {
            given(field).ok_or_else(|| format!("{name}: it is missing, and {action} needs it"))
        };
        Ok(match self.action {
            Action::Continue => {
                let instruction = needs(self.instruction, "instruction", "continue")?;
                Decision::Continue { instruction, reasoning }
            }
            Action::Redirect => Decision::Redirect {
                instruction: needs(self.instruction, "instruction", "redirect")?,
                focus_area: given(self.focus_area).unwrap_or_default(),
                reasoning,
            },
            Action::Terminate if has_conclusion => {
                Decision::Terminate { answer: given(self.answer).unwrap_or_default(), reasoning }
            }
            Action::Terminate => {
                let action = "terminate before anything was done";
                Decision::Terminate { answer: needs(self.answer, "answer", action)?, reasoning }
            }
            Action::AskHuman => {
                let question = needs(self.question, "question", "ask_human")?;
                Decision::AskHuman { question, reasoning }
            }
            Action::Impossible => {
                let reason = needs(self.reason, "reason", "impossible")?;
                Decision::Impossible { reason, reasoning }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use duologue_core::{Part, Role, ToolCall};
    use serde_json::{Value, json};

    use super::*;

    fn read(form: Value, has_conclusion: bool) -> Result<Decision, String> {
        let call = ToolCall::new("c", Decision::TOOL, form);
        let message = Message::new(Role::Assistant, vec![Part::from(call)]);
        Decision::read(&Decision::expectation(), Some(&message), has_conclusion)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_action_needs_what_belongs_to_it() {
        let decision =
            read(json!({"action": "CONTINUE", "reasoning": "r", "instruction": "i"}), false);
        let expected = Decision::Continue { instruction: "i".into(), reasoning: "r".into() };
        assert_eq!(decision, Ok(expected));
        for (form, missing) in [
            (json!({"action": "continue", "reasoning": "r"}), "instruction: it is missing"),
            (json!({"action": "redirect", "reasoning": "r", "instruction": " "}), "instruction: "),
            (json!({"action": "ask_human", "reasoning": "r"}), "question: it is missing"),
            (json!({"action": "impossible", "reasoning": "r"}), "reason: it is missing"),
            (json!({"action": "terminate", "reasoning": "r"}), "answer: it is missing"),
            (json!({"action": "not complete", "reasoning": "r"}), "action: unknown variant"),
            (json!({"action": "continue"}), "missing field `reasoning`"),
        ] {
            let error = read(form, false).unwrap_err();
            assert!(error.starts_with(missing), "{error}");
        }
        assert!(read(json!({"action": "terminate", "reasoning": "r"}), true).is_ok());
    }

    #[test]
    fn a_decision_is_written_down_in_one_flat_object() {
        let decision = Decision::AskHuman { question: "q".into(), reasoning: "r".into() };
        let note = DecisionNote { number: 2, by: DecidedBy::Human, decision, because: None };
        let value = serde_json::to_value(&note).unwrap();
        let expected = json!({
            "loop": 2, "by": "human", "action": "ask_human", "question": "q", "reasoning": "r"
        });
        assert_eq!(value, expected);
        assert_eq!(serde_json::from_value::<DecisionNote>(value).unwrap(), note);
    }

    #[test]
    fn the_schema_is_one_flat_object_as_providers_want_it() {
        let schema = Decision::expectation().schema;
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["reasoning", "action"]));
        let actions = json!(["continue", "redirect", "terminate", "ask_human", "impossible"]);
        assert_eq!(schema["properties"]["action"]["enum"], actions);
        assert!(schema.get("oneOf").is_none());
    }
}
