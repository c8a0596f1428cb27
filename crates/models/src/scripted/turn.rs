//! One turn of a script: what the model says, or how it fails.

use std::time::Duration;

use duologue_core::{CallId, Delta, ErrorClass, ModelError, StopReason, Usage};
use serde_json::Value;

/// The longest fragment that arguments are streamed in.
const FRAGMENT_CHARS: usize = 24;

/// What a scripted model says in one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    pub(super) reasoning: Option<String>,
    pub(super) text: Option<String>,
    pub(super) calls: Vec<TurnCall>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: Option<StopReason>,
    pub(super) error: Option<ModelError>,
    pub(super) delay: Option<Duration>,
    pub(super) expect: Option<String>,
}

/// A tool call of a scripted turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: TurnArguments,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TurnArguments {
    Value(Value),
    /// Streamed as it is, whether it is JSON or not.
    Raw(String),
}

impl TurnCall {
    /// A call with arguments.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self { id: None, name: name.into(), arguments: TurnArguments::Value(arguments) }
    }

    /// A call whose arguments are this text, to test what happens when it is not JSON.
    pub fn raw(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: None, name: name.into(), arguments: TurnArguments::Raw(text.into()) }
    }

    /// The same call with an id. Without one, each time it is made it gets a new one.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

impl Turn {
    /// A turn that says something.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// A turn that calls a tool.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::calls([TurnCall::new(name, arguments)])
    }

    /// A turn that calls several tools at once.
    pub fn calls(calls: impl IntoIterator<Item = TurnCall>) -> Self {
        Self { calls: calls.into_iter().collect(), ..Self::default() }
    }

    /// A turn in which the model fails.
    pub fn error(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { error: Some(ModelError::new(class, message.into())), ..Self::default() }
    }

    /// The same turn with one more call.
    #[must_use]
    pub fn and_call(mut self, call: TurnCall) -> Self {
        self.calls.push(call);
        self
    }

    /// The same turn with a thought before it.
    #[must_use]
    pub fn reasoning(mut self, text: impl Into<String>) -> Self {
        self.reasoning = Some(text.into());
        self
    }

    /// The same turn with what it used.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// The same turn with another reason to stop than the obvious one.
    #[must_use]
    pub fn stop(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The same turn with a pause before each of its deltas.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// The same turn, given only if the last message contains this text.
    #[must_use]
    pub fn expect(mut self, text: impl Into<String>) -> Self {
        self.expect = Some(text.into());
        self
    }

    /// The same failing turn with the provider's wish for a pause.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.error = self.error.map(|error| error.retry_after(wait));
        self
    }

    /// The turn as a model streams it: text by words, arguments in fragments.
    pub(super) fn deltas(&self) -> Vec<Result<Delta, ModelError>> {
        let mut deltas = Vec::new();
        deltas.extend(words(self.reasoning.as_deref()).map(|word| Ok(Delta::Reasoning(word))));
        deltas.extend(words(self.text.as_deref()).map(|word| Ok(Delta::Text(word))));
        for (index, call) in self.calls.iter().enumerate() {
            deltas.push(Ok(Delta::CallStart {
                index,
                id: call.id.as_deref().map(CallId::from),
                name: call.name.clone(),
            }));
            let text = match &call.arguments {
                TurnArguments::Value(value) => value.to_string(),
                TurnArguments::Raw(text) => text.clone(),
            };
            deltas.extend(
                fragments(&text).map(|fragment| Ok(Delta::CallArguments { index, fragment })),
            );
        }
        deltas.extend(self.usage.map(|usage| Ok(Delta::Usage(usage))));
        // What was said before an error has been seen, as with a real stream that breaks.
        deltas.push(match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(Delta::Stop(self.stop_reason())),
        });
        deltas
    }

    fn stop_reason(&self) -> StopReason {
        match &self.stop {
            Some(stop) => stop.clone(),
            None if self.calls.is_empty() => StopReason::Completed,
            None => StopReason::ToolCalls,
        }
    }
}

impl From<&str> for Turn {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

fn words(text: Option<&str>) -> impl Iterator<Item = String> {
    text.into_iter().flat_map(|text| text.split_inclusive(char::is_whitespace)).map(str::to_owned)
}

fn fragments(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(FRAGMENT_CHARS).map_or(rest.len(), |(end, _)| end);
        let (head, tail) = rest.split_at_checked(end)?;
        rest = tail;
        (!head.is_empty()).then(|| head.to_owned())
    })
}
