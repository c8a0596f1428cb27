//! The language model as the participants of a simulation use it.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use duologue_core as core;
use duologue_core::{Accumulator, ErrorClass, Model, Options, Part, Role, ToolSpec};
use futures::{StreamExt, future::BoxFuture};
use serde_json::Value as Json;

use crate::{Message, Requestor, Tool, ToolCall, Utterance, Value, python};

/// Whoever answers a prompt.
pub trait Llm: Send + Sync {
    /// Answers.
    fn generate<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Generated, LlmError>>;
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    /// The instructions.
    pub system: &'a str,
    /// The conversation, the answering side as `assistant`.
    pub messages: &'a [Message],
    /// The tools that may be called.
    pub tools: &'a ToolList,
    /// Whether a tool must be called.
    pub choice: Choice,
    /// The seed.
    pub seed: Option<i64>,
}

/// Whether a tool must be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// As the model likes.
    Auto,
    /// One must be.
    Required,
}

/// What was answered, as the provider sent it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generated {
    /// The text.
    pub content: Option<String>,
    /// The calls; none is `None`.
    pub tool_calls: Option<Vec<RawCall>>,
    /// What it cost, in dollars.
    pub cost: Option<f64>,
    /// The tokens it took.
    pub usage: Option<Value>,
    /// What the model thought before it spoke.
    pub reasoning: Option<String>,
    /// How long it took, in seconds.
    pub seconds: Option<f64>,
}

/// A call as the provider sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct RawCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// A dictionary, or the text of one.
    pub arguments: Value,
}

/// Why a model gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LlmError {
    /// The provider failed.
    #[error("{class}: {message}")]
    Provider {
        /// How.
        class: ErrorClass,
        /// What it said.
        message: String,
    },
    /// The arguments of a call are no dictionary.
    #[error("the arguments of {tool} are no JSON object: {arguments}")]
    Arguments {
        /// The tool.
        tool: String,
        /// What was sent.
        arguments: String,
    },
}

impl LlmError {
    /// Whether the conversation outgrew the model.
    pub fn is_overflow(&self) -> bool {
        matches!(self, Self::Provider { class: ErrorClass::ContextOverflow, .. })
    }
}

/// Tools as models are told of them.
#[derive(Clone, Debug, Default)]
pub struct ToolList {
    specs: Vec<Arc<ToolSpec>>,
    shared: OnceLock<Arc<[Arc<ToolSpec>]>>,
}

impl ToolList {
    /// These tools.
    pub fn new(tools: impl IntoIterator<Item = &'static Tool>) -> Self {
        let spec = |tool: &'static Tool| {
            let parameters = crate::schema::parameters(tool.params);
            Arc::new(ToolSpec::new(tool.name, tool.description, parameters))
        };
        Self { specs: tools.into_iter().map(spec).collect(), shared: OnceLock::new() }
    }

    /// The same and one more.
    #[must_use]
    pub fn with(mut self, spec: ToolSpec) -> Self {
        self.specs.push(Arc::new(spec));
        Self { specs: self.specs, shared: OnceLock::new() }
    }

    /// What models are told.
    pub fn specs(&self) -> &Arc<[Arc<ToolSpec>]> {
        self.shared.get_or_init(|| self.specs.clone().into())
    }

    /// Whether there is a tool of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.specs.iter().any(|spec| spec.name == name)
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|spec| spec.name.as_str())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }
}

impl Generated {
    /// The answer as a message of somebody.
    pub fn into_utterance(self, requestor: Requestor) -> Result<Utterance, LlmError> {
        let read = |call: RawCall| -> Result<ToolCall, LlmError> {
            let arguments = match &call.arguments {
                Value::Str(text) => python::loads(text).unwrap_or(Value::None),
                other => other.clone(),
            };
            if !matches!(arguments, Value::Dict(_)) {
                return Err(LlmError::Arguments {
                    tool: call.name,
                    arguments: python::str_of(&call.arguments),
                });
            }
            Ok(ToolCall { id: call.id, name: call.name, arguments, requestor })
        };
        let tool_calls = match self.tool_calls.filter(|calls| !calls.is_empty()) {
            Some(calls) => Some(calls.into_iter().map(read).collect::<Result<Vec<_>, _>>()?),
            None => None,
        };
        let mut message = Utterance {
            content: self.content,
            tool_calls,
            cost: self.cost,
            usage: self.usage,
            generation_time_seconds: self.seconds,
            ..Utterance::default()
        };
        if let Some(reasoning) = self.reasoning {
            message.extra.insert("reasoning".to_owned(), reasoning.into());
        }
        Ok(message)
    }
}

/// A model of any provider.
#[derive(Clone)]
pub struct ModelLlm {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Its settings.
    pub options: Options,
}

impl Llm for ModelLlm {
    fn generate<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Generated, LlmError>> {
        Box::pin(async move {
            let begun = std::time::Instant::now();
            let mut options = self.options.clone();
            if let Some(seed) = prompt.seed {
                options.seed = u64::try_from(seed).ok();
            }
            if !prompt.tools.is_empty() && prompt.choice == Choice::Required {
                options.tool_choice = core::ToolChoice::Required;
            }
            let request = core::Request {
                system: Some(prompt.system.into()),
                messages: Arc::new(to_core(prompt.messages)),
                tools: Arc::clone(prompt.tools.specs()),
                options,
                ..core::Request::default()
            };
            let completion = self.ask(request).await?;
            Ok(self.generated(&completion, begun.elapsed().as_secs_f64()))
        })
    }
}

/// How often a model is asked when it fails for a while or says nothing at all.
const TRIES: u32 = 4;
/// How long to wait before the second try; it doubles from try to try.
const PAUSE: Duration = Duration::from_secs(1);

impl ModelLlm {
    async fn ask(&self, mut request: core::Request) -> Result<core::Completion, LlmError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let wait = match self.ask_once(request.clone()).await {
                Ok(completion) if completion.message.parts.is_empty() && tries < TRIES => {
                    // The same seed would say nothing again.
                    request.options.seed = request.options.seed.map(|seed| seed.wrapping_add(1));
                    Duration::ZERO
                }
                Ok(completion) => return Ok(completion),
                Err(error) if error.class.is_transient() && tries < TRIES => {
                    error.retry_after.unwrap_or(PAUSE * 2u32.pow(tries - 1))
                }
                Err(error) => {
                    return Err(LlmError::Provider {
                        class: error.class,
                        message: error.message.into_owned(),
                    });
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    async fn ask_once(&self, request: core::Request) -> Result<core::Completion, core::ModelError> {
        let mut deltas = self.model.ask(request);
        let mut answer = Accumulator::default();
        while let Some(delta) = deltas.next().await {
            answer.push(delta?);
        }
        Ok(answer.finish())
    }

    #[allow(clippy::cast_precision_loss)]
    fn generated(&self, completion: &core::Completion, seconds: f64) -> Generated {
        let usage = completion.usage;
        let cost = match self.model.price() {
            Some(price) => price.cost_microusd(&usage),
            None => usage.cost_microusd,
        };
        let mut generated = Generated {
            cost: Some(cost as f64 / 1_000_000.0),
            usage: Some(Value::dict([
                ("completion_tokens", whole(usage.output_tokens)),
                ("prompt_tokens", whole(usage.input_tokens)),
            ])),
            seconds: Some(seconds),
            ..Generated::default()
        };
        let text = completion.message.text();
        generated.content = (!text.is_empty()).then_some(text);
        for part in &completion.message.parts {
            match part {
                Part::ToolCall(call) => {
                    generated.tool_calls.get_or_insert_default().push(RawCall {
                        id: call.id.as_str().to_owned(),
                        name: call.name.clone(),
                        arguments: from_json(&call.arguments),
                    });
                }
                Part::Reasoning { text, .. } if !text.is_empty() => {
                    generated.reasoning.get_or_insert_default().push_str(text);
                }
                _ => {}
            }
        }
        generated
    }
}

fn whole(number: u64) -> Value {
    i64::try_from(number).map_or(Value::None, Value::Int)
}

/// A JSON value of serde's as one of ours.
pub fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::None,
        Json::Bool(truth) => (*truth).into(),
        Json::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().map_or(Value::None, Value::Float),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => Value::list(items.iter().map(from_json)),
        Json::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), from_json(value)))
            .collect::<crate::Dict>()
            .into(),
    }
}

/// Messages of a simulation as a model reads them.
fn to_core(messages: &[Message]) -> Vec<Arc<core::Message>> {
    let mut names = std::collections::HashMap::new();
    let convert = |message: &Message| {
        let (role, parts) = match message {
            Message::System(message) => {
                (Role::System, vec![Part::text(message.content.clone().unwrap_or_default())])
            }
            Message::User(message) => {
                (Role::User, vec![Part::text(message.content.clone().unwrap_or_default())])
            }
            Message::Assistant(message) => {
                let text = message.content.clone().filter(|content| !content.is_empty());
                let mut parts: Vec<Part> = text.map(Part::text).into_iter().collect();
                for call in message.tool_calls.iter().flatten() {
                    names.insert(call.id.clone(), call.name.clone());
                    let arguments = serde_json::to_value(&call.arguments).unwrap_or_default();
                    parts.push(Part::from(core::ToolCall::new(
                        call.id.as_str(),
                        call.name.as_str(),
                        arguments,
                    )));
                }
                (Role::Assistant, parts)
            }
            Message::Tool(message) => {
                let result = core::ToolResult {
                    call_id: message.id.as_str().into(),
                    name: names.get(&message.id).cloned().unwrap_or_default(),
                    status: if message.error {
                        core::ToolStatus::Error
                    } else {
                        core::ToolStatus::Ok
                    },
                    content: vec![Part::text(message.content.clone().unwrap_or_default())],
                };
                (Role::Tool, vec![Part::from(result)])
            }
        };
        Arc::new(core::Message::new(role, parts))
    };
    messages.iter().map(convert).collect()
}
