//! Whose hands a request has gone through, so that agents that send each other work do not do so in
//! circles or without end.
//!
//! Every server writes down the request's way with its own address at the end; an agent of ours that
//! passes the request on sends that along.

use a2a::{A2AError, error_code};
use duologue_core::Message;
use serde_json::{Value, json};

/// Where a message of the protocol says whose hands it has gone through.
const PATH: &str = "duologue/path";
/// Where a journal's message says it.
const KEPT: &str = "a2a_path";

/// The way of a request that comes to this server, or why it goes no further.
pub(super) fn way_of(
    message: &a2a::Message,
    own: &str,
    deepest: usize,
) -> Result<Vec<String>, A2AError> {
    let mut way: Vec<String> = match message.metadata.as_ref().and_then(|all| all.get(PATH)) {
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
    Ok(way)
}

/// Write a request's way down with it.
pub(super) fn keep(message: &mut Message, way: &[String]) {
    message.metadata.insert(KEPT.to_owned(), json!(way));
}

/// Send a request's way along with it.
pub(crate) fn pass_on(from: &Message, to: &mut a2a::Message) {
    if let Some(way) = from.metadata.get(KEPT) {
        to.metadata.get_or_insert_default().insert(PATH.to_owned(), way.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_passes_once_through_each_server_and_not_through_too_many() {
        let mut way = Vec::new();
        let mut through = |own: &str| {
            let mut came = Message::user("x");
            keep(&mut came, &way);
            let mut sent = a2a::Message::new(a2a::Role::User, vec![a2a::Part::text("x")]);
            pass_on(&came, &mut sent);
            way_of(&sent, own, 3).map(|next| way = next).map_err(|error| error.message)
        };
        through("a").unwrap();
        through("b").unwrap();
        assert!(through("a").unwrap_err().contains("a → b → a"));
        through("c").unwrap();
        assert!(through("d").unwrap_err().contains("3 times"));
        assert_eq!(way, ["a", "b", "c"]);
    }
}
