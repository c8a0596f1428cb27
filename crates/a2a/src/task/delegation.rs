//! Whose hands a request has gone through, so that agents that send each other work do not do so in
//! circles or without end.
//!
//! Every server writes down the request's way with its own address at the end; an agent of ours that
//! passes the request on sends that along, and what is left of its budget.

use std::time::Duration;

use a2a::{A2AError, Task, error_code};
use duologue_core::{Budget, Message, Metadata, Usage};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Value, json};

/// Where a message of the protocol says whose hands it has gone through.
const PATH: &str = "duologue/path";
/// Where it says what may be used for it.
const BUDGET: &str = "duologue/budget";
/// Where a task that came from another agent says what was used for it.
const USAGE: &str = "duologue/usage";
/// The extension that they belong to.
pub(crate) const DELEGATION: &str = "urn:duologue:delegation";
/// Where a journal's message says it.
const KEPT: &str = "a2a_path";

/// The way of a request that has come to this server.
#[derive(Debug)]
pub(super) enum Way {
    /// From whoever asks.
    Straight,
    /// Through the hands of these, this server the last.
    Through(Vec<String>),
}

/// The way of a request that comes to this server, or why it goes no further.
pub(super) fn way_of(message: &a2a::Message, own: &str, deepest: usize) -> Result<Way, A2AError> {
    let mut way: Vec<String> = match message.metadata.as_ref().and_then(|all| all.get(PATH)) {
        None if deepest > 0 => return Ok(Way::Straight),
        None => Vec::new(),
        Some(Value::Array(hops)) => {
            hops.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(_) => {
            return Err(crate::fault::invalid("message.metadata", "duologue/path is a list"));
        }
    };
    let refuse = |why: String| Err(A2AError::new(error_code::UNSUPPORTED_OPERATION, why));
    if way.iter().any(|hop| hop == own) {
        return refuse(format!("This request went in a circle: {} → {own}", way.join(" → ")));
    }
    if way.len() >= deepest {
        return refuse(format!(
            "This request was passed on {} times, which is too often",
            way.len()
        ));
    }
    way.push(own.to_owned());
    Ok(Way::Through(way))
}

/// What is written down with a request that came straight to this server.
pub(super) fn straight(own: &str) -> Metadata {
    Metadata::from([(KEPT, json!([own]))])
}

/// Write a request's way down with it. Most came straight, and share the note of that.
pub(super) fn keep(message: &mut Message, way: Way, straight: &Metadata) {
    match way {
        Way::Straight if message.metadata.is_empty() => message.metadata = straight.clone(),
        Way::Straight => message.metadata.extend(straight.iter().map(|(k, v)| (k, v.clone()))),
        Way::Through(way) => {
            message.metadata.insert(KEPT, way);
        }
    }
}

/// Send a request's way along with it.
pub(crate) fn pass_on(from: &Message, to: &mut a2a::Message) {
    if let Some(way) = from.metadata.get(KEPT) {
        to.metadata.get_or_insert_default().insert(PATH.to_owned(), way.clone());
    }
}

/// Let a message go the way of another.
pub(crate) fn carry(from: &Message, to: &mut Message) {
    if let Some(way) = from.metadata.get(KEPT) {
        to.metadata.insert(KEPT, way.clone());
    }
}

/// What is left of a budget, as agents tell each other.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Given {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    cost_microusd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    time_ms: Option<u64>,
}

/// A whole number. The protocol's metadata knows only floating ones, so `3.0` is one.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    if number.is_finite() && number >= 0.0 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "just looked at"
        )]
        return Ok(Some(number as u64));
    }
    Err(D::Error::custom("a number that is not negative is wanted"))
}

/// What was used for a task, as agents tell each other.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Used {
    #[serde(deserialize_with = "whole")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    cost_microusd: Option<u64>,
}

/// Whether a request was passed on by another agent, which counts what is used for it.
pub(super) fn was_passed_on(message: &Message) -> bool {
    message.metadata.get(KEPT).and_then(Value::as_array).is_some_and(|way| way.len() > 1)
}

/// What was used for a task, for its metadata.
pub(super) fn told_usage(usage: Usage) -> (String, Value) {
    let used = Used {
        input_tokens: Some(usage.input_tokens),
        output_tokens: Some(usage.output_tokens),
        cost_microusd: Some(usage.cost_microusd),
    };
    (USAGE.to_owned(), json!(used))
}

/// What another agent says that it used for a task.
pub(crate) fn usage_of(task: &Task) -> Usage {
    let used = task.metadata.as_ref().and_then(|all| all.get(USAGE)).cloned();
    // What cannot be read is not counted; it is the other agent's word in any case.
    let Used { input_tokens, output_tokens, cost_microusd } =
        used.and_then(|used| serde_json::from_value(used).ok()).unwrap_or_default();
    Usage {
        input_tokens: input_tokens.unwrap_or_default(),
        output_tokens: output_tokens.unwrap_or_default(),
        cost_microusd: cost_microusd.unwrap_or_default(),
        ..Usage::default()
    }
}

/// Send along what may be used for a request.
pub(crate) fn give_budget(left: Budget, message: &mut a2a::Message) {
    if left != Budget::default() {
        let time_ms = left.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let Budget { steps, tokens, cost_microusd, .. } = left;
        let given = Given { steps, tokens, cost_microusd, time_ms };
        message.metadata.get_or_insert_default().insert(BUDGET.to_owned(), json!(given));
    }
    let all = message.metadata.iter().flatten();
    if all.into_iter().any(|(name, _)| name == BUDGET || name == PATH) {
        let extensions = message.extensions.get_or_insert_default();
        if !extensions.iter().any(|uri| uri == DELEGATION) {
            extensions.push(DELEGATION.to_owned());
        }
    }
}

/// What may be used for a request.
pub(super) fn budget_in(message: &a2a::Message) -> Result<Budget, A2AError> {
    let Some(given) = message.metadata.as_ref().and_then(|all| all.get(BUDGET)) else {
        return Ok(Budget::default());
    };
    let given: Given = serde_json::from_value(given.clone()).map_err(|error| {
        crate::fault::invalid("message.metadata", format!("duologue/budget: {error}"))
    })?;
    Ok(Budget {
        steps: given.steps,
        tokens: given.tokens,
        cost_microusd: given.cost_microusd,
        time: given.time_ms.map(Duration::from_millis),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_arrives_as_it_was_sent() {
        let mut sent = a2a::Message::new(a2a::Role::User, vec![a2a::Part::text("x")]);
        give_budget(Budget::default(), &mut sent);
        assert_eq!(sent.extensions, None);
        let left =
            Budget { steps: Some(3), time: Some(Duration::from_millis(1500)), ..Budget::default() };
        give_budget(left, &mut sent);
        assert_eq!(sent.extensions, Some(vec![DELEGATION.to_owned()]));
        assert_eq!(budget_in(&sent).unwrap(), left);
        sent.metadata.get_or_insert_default().insert(BUDGET.to_owned(), json!({"steps": "many"}));
        assert!(budget_in(&sent).is_err());
    }

    #[test]
    fn a_request_passes_once_through_each_server_and_not_through_too_many() {
        let mut came = Message::user("x");
        let mut through = |own: &str| {
            let mut sent = a2a::Message::new(a2a::Role::User, vec![a2a::Part::text("x")]);
            pass_on(&came, &mut sent);
            let way = way_of(&sent, own, 3).map_err(|error| error.message)?;
            keep(&mut came, way, &straight(own));
            Ok::<_, String>(())
        };
        through("a").unwrap();
        through("b").unwrap();
        assert!(through("a").unwrap_err().contains("a → b → a"));
        through("c").unwrap();
        assert!(through("d").unwrap_err().contains("3 times"));
        assert_eq!(came.metadata.get(KEPT), Some(&json!(["a", "b", "c"])));
    }
}
