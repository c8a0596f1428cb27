//! The chunks of an answer, read into borrowed types and put together into deltas.

use std::{borrow::Cow, collections::VecDeque, fmt};

use duologue_core::{CallId, Delta, StopReason, Usage};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::Value;

/// One `data:` event. Only what we use; everything else is passed over unread.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default, deserialize_with = "first_choice")]
    choices: Option<Choice<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    // Servers that do not stream send the whole `message` in the same shape.
    #[serde(borrow, default, alias = "message")]
    delta: Option<Piece<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    /// DeepSeek, llama.cpp, vLLM.
    #[serde(borrow, default)]
    reasoning_content: Option<Text<'a>>,
    /// Ollama, OpenRouter, newer vLLM.
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallPiece<'a>>>,
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    #[serde(default)]
    index: Option<usize>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize)]
struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// A text that is borrowed from the event where it has no escapes. (`Option<Cow<str>>` never
/// borrows under serde's derive.)
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Read)
    }
}

impl Text<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// We ask for one choice, so the list is read without being kept as one.
fn first_choice<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Choice<'de>>, D::Error> {
    struct First;
    impl<'de> Visitor<'de> for First {
        type Value = Option<Choice<'de>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of choices")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let first = list.next_element()?;
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(first)
        }
    }
    deserializer.deserialize_any(First)
}

/// What one event turned out to be.
pub(super) enum Read {
    /// A part of the answer; its deltas are in the queue.
    More,
    /// `[DONE]`.
    Done,
    /// The provider's error.
    Refused(Value),
}

/// Puts chunks together. It keeps only what later chunks refer to.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    calls: Vec<OpenCall>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
}

/// A tool call under way.
#[derive(Debug)]
struct OpenCall {
    /// The server's number for it, which is not always unique.
    wire_index: usize,
    id: Option<Box<str>>,
    /// Arguments that came before the name, which is what a call begins with here.
    early: String,
    started: bool,
}

impl Assembler {
    /// Take in the data of one event and queue what it says.
    pub(super) fn take(
        &mut self,
        data: &[u8],
        queue: &mut VecDeque<Delta>,
    ) -> Result<Read, String> {
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            return Ok(Read::Done);
        }
        if data.is_empty() {
            return Ok(Read::More);
        }
        // Checked once as a whole, or the parser would check every text in it on its own.
        let data = std::str::from_utf8(data).map_err(|error| error.to_string())?;
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(|error| error.to_string())?;
        if let Some(error) = chunk.error {
            return Ok(Read::Refused(error));
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.into());
        }
        if let Some(choice) = chunk.choices {
            if let Some(piece) = choice.delta {
                self.take_piece(piece, queue);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.stop = Some(self.stop_reason(&reason.0));
            }
        }
        Ok(Read::More)
    }

    fn take_piece(&mut self, piece: Piece<'_>, queue: &mut VecDeque<Delta>) {
        // Gateways that know both names send the thought twice.
        let thought = piece.reasoning_content.or(piece.reasoning);
        if let Some(text) = thought.filter(|text| !text.is_empty()) {
            match queue.back_mut() {
                Some(Delta::Reasoning(all)) => all.push_str(&text.0),
                _ => queue.push_back(Delta::Reasoning(text.0.into_owned())),
            }
        }
        for text in [piece.content, piece.refusal].into_iter().flatten() {
            // Text that arrives in one read is one delta: nobody could see the difference.
            match queue.back_mut() {
                _ if text.is_empty() => {}
                Some(Delta::Text(all)) => all.push_str(&text.0),
                _ => queue.push_back(Delta::Text(text.0.into_owned())),
            }
        }
        for (place, call) in piece.tool_calls.into_iter().flatten().enumerate() {
            self.take_call(place, call, queue);
        }
    }

    fn take_call(&mut self, place: usize, piece: CallPiece<'_>, queue: &mut VecDeque<Delta>) {
        let wire_index = piece.index.unwrap_or(place);
        let id = piece.id.filter(|id| !id.is_empty());
        let (name, arguments) = match piece.function {
            Some(function) => (function.name.filter(|name| !name.is_empty()), function.arguments),
            None => (None, None),
        };
        let known = self.calls.iter().rposition(|call| {
            call.wire_index == wire_index
                // Some servers give every call the number 0; a new id with a name is a new call.
                && (id.is_none() || name.is_none() || !call.started
                    || call.id.as_deref() == id.as_ref().map(|id| id.0.as_ref()))
        });
        let index = known.unwrap_or_else(|| {
            self.calls.push(OpenCall {
                wire_index,
                id: None,
                early: String::new(),
                started: false,
            });
            self.calls.len() - 1
        });
        let Some(call) = self.calls.get_mut(index) else {
            return;
        };
        if let Some(id) = id {
            call.id = Some(id.0.into());
        }
        if let Some(name) = name
            && !call.started
        {
            call.started = true;
            queue.push_back(Delta::CallStart {
                index,
                id: call.id.as_deref().map(CallId::from),
                name: name.0.into_owned(),
            });
            if !call.early.is_empty() {
                let fragment = std::mem::take(&mut call.early);
                queue.push_back(Delta::CallArguments { index, fragment });
            }
        }
        let Some(text) = arguments.filter(|text| !text.is_empty()) else {
            return;
        };
        if !call.started {
            call.early.push_str(&text.0);
            return;
        }
        match queue.back_mut() {
            Some(Delta::CallArguments { index: last, fragment }) if *last == index => {
                fragment.push_str(&text.0);
            }
            _ => queue.push_back(Delta::CallArguments { index, fragment: text.0.into_owned() }),
        }
    }

    fn stop_reason(&self, reason: &str) -> StopReason {
        match reason {
            // Some servers say `stop` though they called a tool.
            "stop" if !self.calls.is_empty() => StopReason::ToolCalls,
            "stop" | "eos" => StopReason::Completed,
            "tool_calls" | "function_call" => StopReason::ToolCalls,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::ContentFilter,
            other => StopReason::Other(other.to_owned()),
        }
    }

    /// The stream said that it is done: queue what was held back until now.
    pub(super) fn done(&mut self, queue: &mut VecDeque<Delta>) {
        if let Some(usage) = self.usage.take() {
            queue.push_back(Delta::Usage(usage));
        }
        let usual = match self.calls.is_empty() {
            true => StopReason::Completed,
            false => StopReason::ToolCalls,
        };
        let stop = self.stop.take().unwrap_or(usual);
        queue.push_back(Delta::Stop(stop));
    }

    /// Whether the answer is whole even if `[DONE]` never comes: some servers just close.
    pub(super) fn is_whole(&self) -> bool {
        self.stop.is_some()
    }
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        Self {
            input_tokens: wire.prompt_tokens.unwrap_or_default(),
            output_tokens: wire.completion_tokens.unwrap_or_default(),
            cached_tokens: wire
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens)
                .unwrap_or_default(),
            reasoning_tokens: wire
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens)
                .unwrap_or_default(),
            cost_microusd: 0,
        }
    }
}
