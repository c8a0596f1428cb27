//! Expectations: an answer with a shape, for whoever steers code by it.
//!
//! A request may say that its answer has to come as a structure. The model is then offered one more
//! tool; calling it gives the answer and ends the task. Nothing is ever read out of prose.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Ask, Message, MessageId, Reach, ToolChoice, ToolSpec, parameters_of, tool::read_arguments,
};

/// How often a model that answers in prose is asked for the structure.
const MOST_REMINDERS: u32 = 3;

/// The shape that the answer to a request must have.
///
/// ```
/// use duologue_core::{Expectation, Message, Part, Role, ToolCall};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
/// struct Verdict {
///     /// From 0 to 10.
///     grade: u8,
/// }
///
/// let expectation = Expectation::of::<Verdict>("grade", "Gives the grade.");
/// let call = ToolCall::new("c1", "grade", serde_json::json!({"grade": 7}));
/// let answer = Message::new(Role::Assistant, vec![Part::from(call)]);
/// assert_eq!(expectation.read::<Verdict>(Some(&answer)), Ok(Verdict { grade: 7 }));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// The name of the tool that gives the answer. A tool of the agent with the same name is not
    /// offered while this is expected.
    pub name: String,
    /// What the answer is for, for the model.
    pub description: String,
    /// The JSON Schema of the answer, which is an object.
    pub schema: Arc<Value>,
}

/// Why an answer is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There is no structured answer at all.
    #[error("the answer was not given by calling {name}")]
    Missing {
        /// What should have been called.
        name: String,
    },
    /// The structure is not the expected one.
    #[error("{error}")]
    Wrong {
        /// What is wrong, and where.
        error: String,
    },
}

impl Expectation {
    /// An answer of a type. The type's doc comments are what the model reads about its fields.
    pub fn of<T: JsonSchema>(name: impl Into<String>, description: impl Into<String>) -> Self {
        let schema = Arc::new(parameters_of::<T>());
        Self { name: name.into(), description: description.into(), schema }
    }

    /// Read the answer out of the message that gave it.
    pub fn read<T: DeserializeOwned>(&self, message: Option<&Message>) -> Result<T, Unfit> {
        let value = message.and_then(|message| message.structured(&self.name));
        let value = value.ok_or_else(|| Unfit::Missing { name: self.name.clone() })?;
        read_arguments(value).map_err(|error| Unfit::Wrong { error })
    }

    /// The tool that a model is offered for it.
    fn spec(&self) -> ToolSpec {
        let parameters = Value::clone(&self.schema);
        let mut spec = ToolSpec::new(self.name.clone(), self.description.clone(), parameters);
        spec.reach = Reach::Workspace;
        spec
    }
}

/// What a run knows of the answer that its task must have.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) expectation: Arc<Expectation>,
    pub(crate) spec: Arc<ToolSpec>,
    /// Whether the answer was given.
    pub(crate) is_met: bool,
    /// How often the model answered in prose instead.
    pub(crate) prose: u32,
}

impl Expected {
    pub(crate) fn new(expectation: &Arc<Expectation>) -> Self {
        let spec = Arc::new(expectation.spec());
        Self { expectation: Arc::clone(expectation), spec, is_met: false, prose: 0 }
    }

    /// The question for a model that answered in prose, as long as asking makes sense.
    pub(crate) fn reminder(&self) -> Option<Ask> {
        if self.is_met || !(1..=MOST_REMINDERS).contains(&self.prose) {
            return None;
        }
        let name = &self.expectation.name;
        let text = format!("Give your answer by calling {name}; text alone does not count.");
        let mut message = Message::user(text);
        message.id = MessageId::from(format!("reminder-{}", self.prose));
        Some(Ask {
            extra: vec![Arc::new(message)],
            tool_choice: ToolChoice::One(name.clone()),
            ..Ask::default()
        })
    }
}
