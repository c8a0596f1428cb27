//! What R comes to, and how H and the user get to read it.

use std::collections::BTreeMap;

use duologue_core::{Expectation, Message, Outcome, Part, Unfit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What R reports about its work on one instruction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conclusion {
    /// What was accomplished and found, complete enough to be judged without seeing the work.
    pub summary: String,
    /// What was done, step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// What should be done next, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_next_action: Option<String>,
    /// How sure the result is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What was made, by name: values, texts, paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, Value>,
    /// Why the work ended without a result, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub error: Option<String>,
}

/// A conclusion and who came to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attributed {
    /// The child, `reactive` or `reactive-2`.
    pub by: String,
    /// The conclusion.
    #[serde(flatten)]
    pub conclusion: Conclusion,
}

/// The note that a conclusion is written down as, with the topic `conclusion`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConclusionNote {
    /// In which loop, from 1.
    #[serde(rename = "loop")]
    pub number: u32,
    /// Who came to it, and to what.
    #[serde(flatten)]
    pub conclusion: Attributed,
}

impl ConclusionNote {
    /// The topic of the note.
    pub const TOPIC: &'static str = "conclusion";
}

/// What H accepted: the data part of a dual act's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// How many loops it took.
    pub loops: u32,
    /// The conclusions of the last one, in the order they were reached.
    pub conclusions: Vec<Attributed>,
}

impl Accepted {
    /// What the answer of a dual act carries, if anything was concluded.
    pub fn of(message: &Message) -> Option<Self> {
        message.parts.iter().find_map(|part| match part {
            Part::Data { value } => Self::deserialize(value).ok(),
            _ => None,
        })
    }
}

impl Conclusion {
    /// The tool that R concludes with.
    pub const TOOL: &'static str = "conclude";

    /// A conclusion that is only a text.
    pub fn text(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), ..Self::default() }
    }

    /// What work that did not come to its end leaves behind.
    pub fn failed(error: impl Into<String>, last_words: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::text(last_words) }
    }

    pub(super) fn expectation() -> Expectation {
        let text = "Ends your work on this instruction and reports what came of it. Call it when \
             the work is done, or when you cannot get further.";
        Expectation::of::<Self>(Self::TOOL, text)
    }

    /// Read what R said.
    pub(super) fn read(
        expectation: &Expectation,
        message: Option<&Message>,
    ) -> Result<Self, Unfit> {
        let conclusion: Self = expectation.read(message)?;
        match conclusion.confidence {
            Some(confidence) if !(0.0..=1.0).contains(&confidence) => {
                let error = format!("confidence: {confidence} is not between 0 and 1");
                Err(Unfit::Wrong { error })
            }
            _ => Ok(conclusion),
        }
    }

    /// What R's turn came to when it ended otherwise than completed.
    pub(super) fn of_outcome(outcome: &Outcome, message: Option<&Message>) -> Self {
        Self::failed(outcome.to_string(), message.map(Message::text).unwrap_or_default())
    }

    /// The summary with the error, as H reads it.
    pub(super) fn told(&self) -> String {
        match &self.error {
            None => self.summary.clone(),
            Some(error) if self.summary.is_empty() => format!("It did not work: {error}"),
            Some(error) => format!("It did not work: {error}\nThe last words: {}", self.summary),
        }
    }
}
