//! An answer from `genai` as our deltas.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use duologue_core::{CallId, Delta, ErrorClass, ModelError, StopReason, Usage, with_causes};
use futures::{Stream, future::BoxFuture};
use genai::{
    chat::{ChatOptions, ChatStream, ChatStreamEvent, ContentPart, StreamEnd, ToolCall},
    webc::StreamTimeout,
};
use serde_json::Value;

use super::{
    Tongue,
    request::{BETWEEN_PROOFS, REDACTED},
};
use crate::providers::{errors, service::Service};

type Opening = BoxFuture<'static, Result<ChatStream, genai::Error>>;

/// An answer while it arrives.
pub(super) struct Answer {
    phase: Phase,
    tongue: Tongue,
    service: Arc<Service>,
    queue: VecDeque<Result<Delta, ModelError>>,
    calls: Vec<OpenCall>,
    /// The thought's proof so far; it comes in pieces.
    proof: String,
    /// Gemini's proofs, until it is known whether they belong to a call.
    loose_proofs: Vec<String>,
    /// The last event as it was on the wire: genai's errors leave out what a person needs.
    last_frame: Arc<Mutex<String>>,
}

enum Phase {
    Opening(Opening),
    Reading(Box<ChatStream>),
    Over,
}

/// A tool call under way.
struct OpenCall {
    id: String,
    /// How much of its arguments was handed over.
    sent: usize,
}

impl Answer {
    pub(super) fn new(
        tongue: Tongue,
        service: Arc<Service>,
        options: ChatOptions,
        open: impl FnOnce(ChatOptions) -> Opening,
    ) -> Self {
        let last_frame = Arc::new(Mutex::new(String::new()));
        let keep = Arc::clone(&last_frame);
        let options = options.with_raw_frame_fn(move |_, frame| {
            if let Ok(mut last) = keep.lock() {
                last.clear();
                last.push_str(frame.data);
            }
        });
        Self {
            phase: Phase::Opening(open(options)),
            tongue,
            service,
            queue: VecDeque::new(),
            calls: Vec::new(),
            proof: String::new(),
            loose_proofs: Vec::new(),
            last_frame,
        }
    }
}

impl Stream for Answer {
    type Item = Result<Delta, ModelError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.queue.pop_front() {
                if item.is_err() {
                    this.phase = Phase::Over;
                    this.queue.clear();
                }
                return Poll::Ready(Some(item));
            }
            match &mut this.phase {
                Phase::Opening(opening) => match std::task::ready!(opening.as_mut().poll(cx)) {
                    Ok(stream) => this.phase = Phase::Reading(Box::new(stream)),
                    Err(error) => this.fail(error),
                },
                Phase::Reading(stream) => {
                    match std::task::ready!(Pin::new(stream.as_mut()).poll_next(cx)) {
                        Some(Ok(event)) => this.take(event),
                        Some(Err(error)) => this.fail(error),
                        // Every answer ends in an end event; this one did not.
                        None => this.queue.push_back(Err(this.service.cut_off())),
                    }
                }
                Phase::Over => return Poll::Ready(None),
            }
        }
    }
}

impl Answer {
    fn say(&mut self, delta: Delta) {
        self.queue.push_back(Ok(delta));
    }

    fn take(&mut self, event: ChatStreamEvent) {
        match event {
            ChatStreamEvent::Start | ChatStreamEvent::Heartbeat => {}
            ChatStreamEvent::Chunk(chunk) => {
                self.seal_thought();
                if !chunk.content.is_empty() {
                    self.say(Delta::Text(chunk.content));
                }
            }
            ChatStreamEvent::ReasoningChunk(chunk) => {
                self.seal_thought();
                if !chunk.content.is_empty() {
                    self.say(Delta::Reasoning(chunk.content));
                }
            }
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => match self.tongue {
                Tongue::Gemini => self.loose_proofs.push(chunk.content),
                _ => self.proof.push_str(&chunk.content),
            },
            ChatStreamEvent::ToolCallChunk(chunk) => {
                self.seal_thought();
                self.take_call(chunk.tool_call);
            }
            ChatStreamEvent::End(end) => self.take_end(end),
        }
    }

    /// The proof of a thought is whole when anything else follows it.
    fn seal_thought(&mut self) {
        if !self.proof.is_empty() {
            let proof = std::mem::take(&mut self.proof);
            self.say(Delta::ReasoningSignature(format!("{}{proof}", self.tongue.seal())));
        }
    }

    /// A call as far as it has come: genai repeats what it said before, we say what is new.
    fn take_call(&mut self, call: ToolCall) {
        // Gemini's and Ollama's calls come whole, and genai's stand-ins for their ids repeat.
        let whole = matches!(self.tongue, Tongue::Gemini | Tongue::Ollama);
        let known = self.calls.iter().position(|open| !whole && open.id == call.call_id);
        let index = known.unwrap_or_else(|| self.start_call(&call));
        let text = match &call.fn_arguments {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            value => value.to_string(),
        };
        self.send_arguments(index, &text);
    }

    fn start_call(&mut self, call: &ToolCall) -> usize {
        let index = self.calls.len();
        self.calls.push(OpenCall { id: call.call_id.clone(), sent: 0 });
        let stand_in = call.call_id.is_empty()
            || (self.tongue == Tongue::Gemini && call.call_id.starts_with("call#"));
        self.say(Delta::CallStart {
            index,
            id: (!stand_in).then(|| CallId::from(call.call_id.as_str())),
            name: call.fn_name.clone(),
        });
        if self.tongue == Tongue::Gemini
            && let Some(proof) = call.thought_signatures.as_ref().and_then(|all| all.first())
        {
            self.loose_proofs.retain(|loose| loose != proof);
            self.say(Delta::CallSignature {
                index,
                signature: format!("{}{proof}", self.tongue.seal()),
            });
        }
        index
    }

    fn send_arguments(&mut self, index: usize, text: &str) {
        let Some(call) = self.calls.get_mut(index) else {
            return;
        };
        if let Some(fragment) = text.get(call.sent..).filter(|new| !new.is_empty()) {
            call.sent = text.len();
            let fragment = fragment.to_owned();
            self.say(Delta::CallArguments { index, fragment });
        }
    }

    fn take_end(&mut self, end: StreamEnd) {
        self.seal_thought();
        self.complete_calls(&end);
        self.take_last_proofs(&end);
        if let Some(usage) = end.captured_usage {
            self.say(Delta::Usage(convert_usage(&usage)));
        }
        let stop = end.captured_stop_reason.map(|reason| self.stop_reason(reason));
        match stop {
            // genai makes an end of its own where the provider sent none.
            None => self.queue.push_back(Err(self.service.cut_off())),
            Some(Ok(stop)) => self.say(Delta::Stop(stop)),
            Some(Err(error)) => self.queue.push_back(Err(error)),
        }
        self.phase = Phase::Over;
    }

    /// Calls, or whole arguments, that came only with the end.
    fn complete_calls(&mut self, end: &StreamEnd) {
        if self.tongue != Tongue::Responses {
            return;
        }
        for call in end.captured_tool_calls().unwrap_or_default() {
            let known = self.calls.iter().position(|open| open.id == call.call_id);
            let index = known.unwrap_or_else(|| self.start_call(call));
            if self.calls.get(index).is_some_and(|open| open.sent == 0) {
                let text = match &call.fn_arguments {
                    Value::String(text) => text.clone(),
                    value => value.to_string(),
                };
                self.send_arguments(index, &text);
            }
        }
    }

    /// Proofs that are known only now: they join the last thought, or stand for one of their own.
    fn take_last_proofs(&mut self, end: &StreamEnd) {
        let parts = end.captured_content.iter().flat_map(|content| content.parts());
        let mut proofs: Vec<String> = match self.tongue {
            Tongue::Gemini => std::mem::take(&mut self.loose_proofs),
            Tongue::Responses => {
                parts.filter_map(|part| part.as_thought_signature().map(str::to_owned)).collect()
            }
            Tongue::Anthropic => parts
                .filter_map(|part| match part {
                    ContentPart::Custom(custom) if custom.typ() == Some("redacted_thinking") => {
                        Some(format!("{REDACTED}{}", custom.data.get("data")?.as_str()?))
                    }
                    _ => None,
                })
                .collect(),
            Tongue::Ollama => Vec::new(),
        };
        if proofs.is_empty() {
            return;
        }
        // The last signed thought keeps its own proof, in front.
        if self.tongue == Tongue::Anthropic
            && let Some(signed) = end
                .captured_content
                .iter()
                .flat_map(|content| content.parts())
                .filter_map(ContentPart::as_thought_signature)
                .next_back()
        {
            proofs.insert(0, signed.to_owned());
        }
        let joined = proofs.join(&BETWEEN_PROOFS.to_string());
        self.say(Delta::ReasoningSignature(format!("{}{joined}", self.tongue.seal())));
    }

    fn stop_reason(&self, reason: genai::chat::StopReason) -> Result<StopReason, ModelError> {
        use genai::chat::StopReason as Theirs;
        Ok(match reason {
            Theirs::Completed(_) if self.calls.is_empty() => StopReason::Completed,
            Theirs::Completed(_) | Theirs::ToolCall(_) => StopReason::ToolCalls,
            Theirs::MaxTokens(_) => StopReason::MaxTokens,
            Theirs::ContentFilter(_) => StopReason::ContentFilter,
            Theirs::StopSequence(_) => StopReason::StopText,
            // Gemini stumbled over its own call and said nothing: another try may do better.
            Theirs::Other(word) if word.contains("MALFORMED") || word == "UNEXPECTED_TOOL_CALL" => {
                return Err(self.service.unreadable("a call that it could not form itself", &word));
            }
            // Some servers in Gemini's place have a word of their own for it.
            Theirs::Other(word) if word == "FUNCTION_CALL" => StopReason::ToolCalls,
            Theirs::Other(word) => StopReason::Other(word),
        })
    }

    fn fail(&mut self, error: genai::Error) {
        let last = self.last_frame.lock().map(|frame| frame.clone()).unwrap_or_default();
        let frame: Option<Value> = serde_json::from_str(&last).ok();
        // Gemini withholds the answer to a prompt that it finds offensive, without a candidate.
        let blocked =
            frame.as_ref().and_then(|frame| frame.pointer("/promptFeedback/blockReason")).is_some();
        if self.tongue == Tongue::Gemini && blocked {
            self.say(Delta::Stop(StopReason::ContentFilter));
            self.phase = Phase::Over;
            return;
        }
        // A failed response of OpenAI's reaches us as its bare message; the event has its code.
        let failed = frame
            .as_ref()
            .and_then(|frame| frame.pointer("/response/error"))
            .filter(|error| error.is_object());
        let service = &self.service;
        let error = match failed {
            Some(body) => errors::from_stream(&service.provider, body, &service.redactor),
            None => convert_error(error, service),
        };
        self.queue.push_back(Err(error));
    }
}

fn convert_usage(usage: &genai::chat::Usage) -> Usage {
    let count =
        |number: Option<i32>| number.and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
    let prompt = usage.prompt_tokens_details.as_ref();
    let completion = usage.completion_tokens_details.as_ref();
    let reasoning = count(completion.and_then(|details| details.reasoning_tokens));
    Usage {
        input_tokens: count(usage.prompt_tokens),
        // A Gemini answer of thoughts alone has only those.
        output_tokens: count(usage.completion_tokens).max(reasoning),
        cached_tokens: count(prompt.and_then(|details| details.cached_tokens)),
        reasoning_tokens: reasoning,
        cost_microusd: 0,
    }
}

/// genai's errors in our classes. Its own texts may repeat a request, so only known parts pass.
fn convert_error(error: genai::Error, service: &Service) -> ModelError {
    use genai::Error as Theirs;
    let provider = service.provider.as_str();
    match error {
        Theirs::HttpError { status, body, headers, .. } => {
            errors::from_status(provider, status, &headers, &body, &service.redactor)
        }
        Theirs::WebStream { error, .. } => convert_cause(error, service),
        Theirs::ChatResponse { body, .. } => {
            errors::from_stream(provider, &body, &service.redactor)
        }
        Theirs::StreamParse { serde_error, .. } => {
            service.unreadable("what is not a piece of an answer", &serde_error.to_string())
        }
        Theirs::JsonValueExt(error) => {
            service.unreadable("what is not a piece of an answer", &error.to_string())
        }
        Theirs::WebModelCall { webc_error, .. } | Theirs::WebAdapterCall { webc_error, .. } => {
            convert_cause(Box::new(webc_error), service)
        }
        Theirs::RequiresApiKey { .. }
        | Theirs::NoAuthData { .. }
        | Theirs::NoAuthResolver { .. } => {
            ModelError::new(ErrorClass::Authentication, format!("{provider} needs a key"))
        }
        other => {
            let words = errors::shorten(&other.to_string());
            ModelError::new(
                ErrorClass::BadRequest,
                service.redactor.clean(&format!("{provider} cannot be asked this: {words}")),
            )
        }
    }
}

/// What was behind an error of the transport.
fn convert_cause(cause: genai::BoxError, service: &Service) -> ModelError {
    let cause = match cause.downcast::<genai::Error>() {
        Ok(error) => return convert_error(*error, service),
        Err(cause) => cause,
    };
    let cause = match cause.downcast::<StreamTimeout>() {
        Ok(_) => return service.silent(),
        Err(cause) => cause,
    };
    match cause.downcast::<reqwest::Error>() {
        Ok(error) => errors::from_transport(&service.provider, *error, &service.redactor),
        Err(cause) => service.unreadable("what cannot be read", &with_causes(&*cause)),
    }
}
