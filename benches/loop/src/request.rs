//! Reading an arm's request, strictly: an arm that sends less than the others would look cheaper
//! than it is, so a request that does not carry the whole conversation is refused.

use std::borrow::Cow;

use bench_arm::{
    Pace,
    conversation::{TEXT_CHUNKS, TOOL_TURNS, call_id, key, tool_answer},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::script::UsageWish;

/// What an arm asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Which turn of the conversation is due.
    pub(crate) turn: usize,
    /// How the answer is to come.
    pub(crate) pace: Pace,
    /// Whether usage is told.
    pub(crate) usage: UsageWish,
}

/// Read a request's body; an error says what is wrong with it.
pub(crate) fn read(body: &[u8]) -> Result<Asked, String> {
    let chat: Chat<'_> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if !chat.stream {
        return Err("stream must be true".into());
    }
    // More than the one is an arm's own loss.
    if chat.tools.is_empty() {
        return Err("expected a tool, found none".into());
    }
    let pace = Pace::of_model(&chat.model).ok_or_else(|| format!("no model {:?}", chat.model))?;
    let usage = match chat.stream_options {
        Some(StreamOptions { include_usage: true }) => UsageWish::Told,
        _ => UsageWish::Untold,
    };
    Ok(Asked { turn: turn_due(&chat.messages)?, pace, usage })
}

/// Checks the conversation and counts what the model has said in it.
fn turn_due(mut messages: &[Said<'_>]) -> Result<usize, String> {
    // What an arm adds after the conversation, such as where a plan stands, is its own affair.
    while let [conversation @ .., last] = messages
        && conversation.len() >= 2
        && last.role == "user"
    {
        messages = conversation;
    }
    let mut rest = messages.iter();
    let mut next = |role: &str| {
        let said = rest.next();
        match said {
            Some(said) if said.role == role => Ok(Some(said)),
            None => Ok(None),
            Some(said) => Err(format!("expected a {role} message, found {}", said.role)),
        }
    };
    next("system")?.ok_or("the system message is missing")?;
    next("user")?.ok_or("the task is missing")?;
    for turn in 0..=TOOL_TURNS {
        let Some(answer) = next("assistant")? else {
            return Ok(turn);
        };
        if answer.content().len() < TEXT_CHUNKS * 4 {
            return Err(format!("the text of turn {turn} is not whole"));
        }
        match answer.tool_calls.as_deref() {
            Some([call]) if call.id == call_id(turn) => {}
            _ => return Err(format!("turn {turn} lost its call")),
        }
        let result = next("tool")?.ok_or_else(|| format!("turn {turn} has no tool result"))?;
        if result.tool_call_id.as_deref() != Some(&call_id(turn)) {
            return Err(format!("the result of turn {turn} names another call"));
        }
        if !result.content().contains(&tool_answer(&key(turn))) {
            return Err(format!("the result of turn {turn} is not the tool's"));
        }
    }
    Err("the conversation is over".into())
}

#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(borrow)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    messages: Vec<Said<'a>>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    tools: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    // Text or a list of parts, as the client likes; only looked into as text.
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Called<'a>>>,
    #[serde(borrow, default)]
    tool_call_id: Option<Cow<'a, str>>,
}

impl Said<'_> {
    fn content(&self) -> &str {
        self.content.map_or("", RawValue::get)
    }
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use bench_arm::conversation::turn_text;
    use serde_json::{Value, json};

    use super::*;

    fn chat(turns: usize) -> Value {
        let mut messages = vec![
            json!({ "role": "system", "content": "s" }),
            json!({ "role": "user", "content": "u" }),
        ];
        for turn in 0..turns {
            messages.push(json!({
                "role": "assistant", "content": turn_text(),
                "tool_calls": [{ "id": call_id(turn), "type": "function", "function": {} }]
            }));
            messages.push(json!({
                "role": "tool", "tool_call_id": call_id(turn), "content": tool_answer(&key(turn))
            }));
        }
        json!({ "model": "bench-free", "stream": true, "messages": messages, "tools": [{}] })
    }

    fn read_json(chat: &Value) -> Result<Asked, String> {
        read(chat.to_string().as_bytes())
    }

    #[test]
    fn the_turn_is_counted_from_the_conversation() {
        for turn in 0..=TOOL_TURNS {
            let asked = read_json(&chat(turn)).unwrap();
            let due = Asked { turn, pace: Pace::Free, usage: UsageWish::Untold };
            assert_eq!(asked, due);
        }
    }

    #[test]
    fn a_conversation_that_was_shortened_is_refused() {
        let mut cut = chat(2);
        cut["messages"][3]["content"] = json!("short");
        assert_eq!(read_json(&cut).unwrap_err(), "the result of turn 0 is not the tool's");
        let mut lost = chat(2);
        lost["messages"].as_array_mut().unwrap().remove(3);
        assert_eq!(read_json(&lost).unwrap_err(), "expected a tool message, found assistant");
    }

    #[test]
    fn what_is_said_after_the_conversation_does_not_count() {
        let mut more = chat(3);
        more["messages"].as_array_mut().unwrap().push(json!({ "role": "user", "content": "TODO" }));
        assert_eq!(read_json(&more).unwrap().turn, 3);
        let mut none = chat(3);
        none["tools"] = json!([]);
        assert_eq!(read_json(&none).unwrap_err(), "expected a tool, found none");
    }

    #[test]
    fn an_unknown_model_is_refused_by_name() {
        let mut other = chat(0);
        other["model"] = json!("gpt");
        assert_eq!(read_json(&other).unwrap_err(), "no model \"gpt\"");
    }
}
