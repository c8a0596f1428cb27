//! The mock model's answers, encoded once: every turn is a list of ready-made pieces of an HTTP
//! body, each of which is one write to the socket, as a real model's tokens arrive.

use bench_arm::conversation::{CHUNK, STEPS, TEXT_CHUNKS, TOOL, TOOL_TURNS, call_id, key};
use bytes::Bytes;
use serde_json::{Value, json};

/// The pieces of an answer after which the server holds a conversation.
pub(crate) const HOLD_AFTER: usize = TEXT_CHUNKS / 2;

/// Whether the client asked to be told what the answer used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageWish {
    /// It did.
    Told,
    /// It did not.
    Untold,
}

/// Every answer that the mock model can give.
#[derive(Debug)]
pub(crate) struct Script {
    turns: Vec<Vec<Bytes>>,
    usage: Bytes,
    end: Bytes,
}

impl Script {
    /// Encode all turns.
    pub(crate) fn encode() -> Self {
        let usage = json!({
            "prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960,
            "prompt_tokens_details": { "cached_tokens": 512, "audio_tokens": 0 },
            "completion_tokens_details": {
                "reasoning_tokens": 0, "audio_tokens": 0,
                "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0
            }
        });
        let mut told = envelope(&json!([]));
        if let Some(fields) = told.as_object_mut() {
            fields.insert("usage".into(), usage);
        }
        let mut end = piece("data: [DONE]\n\n").to_vec();
        end.extend_from_slice(b"0\r\n\r\n");
        Self { turns: (0..STEPS).map(turn).collect(), usage: event(&told), end: end.into() }
    }

    /// The pieces of a turn's answer, in order; `None` past the last turn.
    pub(crate) fn answer(
        &self,
        turn: usize,
        wish: UsageWish,
    ) -> Option<impl Iterator<Item = &Bytes>> {
        let usage = (wish == UsageWish::Told).then_some(&self.usage);
        let turn = self.turns.get(turn)?;
        Some(turn.iter().chain(usage).chain([&self.end]))
    }
}

fn turn(turn: usize) -> Vec<Bytes> {
    let text = (0..TEXT_CHUNKS).map(|_| delta(&json!({ "content": CHUNK })));
    let opening = delta(&json!({ "role": "assistant", "content": "", "refusal": null }));
    let mut pieces: Vec<Bytes> = std::iter::once(opening).chain(text).collect();
    if turn < TOOL_TURNS {
        pieces.extend(tool_call(turn));
        pieces.push(finish("tool_calls"));
    } else {
        pieces.push(finish("stop"));
    }
    pieces
}

/// A call as providers stream it: the name first, then the arguments in tokens.
fn tool_call(turn: usize) -> Vec<Bytes> {
    let mut pieces = vec![delta(&json!({ "tool_calls": [{
        "index": 0, "id": call_id(turn), "type": "function",
        "function": { "name": TOOL, "arguments": "" }
    }] }))];
    let key = key(turn);
    let (word, number) = key.split_once('-').unwrap_or((&key, ""));
    for fragment in ["{\"", "key", "\":\"", word, "-", number, "\"}"] {
        pieces.push(delta(&json!({ "tool_calls": [{
            "index": 0, "function": { "arguments": fragment }
        }] })));
    }
    pieces
}

fn delta(delta: &Value) -> Bytes {
    event(&envelope(&json!([
        { "index": 0, "delta": delta, "logprobs": null, "finish_reason": null }
    ])))
}

fn finish(reason: &str) -> Bytes {
    event(&envelope(&json!([
        { "index": 0, "delta": {}, "logprobs": null, "finish_reason": reason }
    ])))
}

fn envelope(choices: &Value) -> Value {
    json!({
        "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", "object": "chat.completion.chunk",
        "created": 1_741_570_283, "model": "bench", "service_tier": "default",
        "system_fingerprint": "fp_fc9f1d7035", "choices": choices, "usage": null
    })
}

fn event(data: &Value) -> Bytes {
    piece(&format!("data: {data}\n\n"))
}

/// One piece of a chunked HTTP body.
fn piece(content: &str) -> Bytes {
    format!("{:x}\r\n{content}\r\n", content.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(script: &Script, turn: usize, wish: UsageWish) -> Vec<String> {
        let pieces = script.answer(turn, wish).unwrap();
        pieces.map(|piece| String::from_utf8(piece.to_vec()).unwrap()).collect()
    }

    #[test]
    fn a_tool_turn_streams_text_a_call_and_the_reason_to_stop() {
        let pieces = text(&Script::encode(), 3, UsageWish::Told);
        let count = |needle: &str| pieces.iter().filter(|piece| piece.contains(needle)).count();
        assert_eq!(count(r#""content":"tok ""#), 50);
        assert_eq!(count(r#""name":"look_up""#), 1);
        assert_eq!(count(r#""id":"call_03""#), 1);
        assert_eq!(count(r#""finish_reason":"tool_calls""#), 1);
        assert_eq!(count(r#""prompt_tokens":900"#), 1);
        assert!(pieces.last().unwrap().ends_with("[DONE]\n\n\r\n0\r\n\r\n"));
    }

    #[test]
    fn usage_is_told_only_on_request_and_the_last_turn_calls_nothing() {
        let pieces = text(&Script::encode(), TOOL_TURNS, UsageWish::Untold).concat();
        assert!(!pieces.contains("prompt_tokens"));
        assert!(!pieces.contains("tool_calls"));
        assert!(Script::encode().answer(STEPS, UsageWish::Told).is_none());
    }
}
