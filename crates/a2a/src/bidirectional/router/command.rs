//! Commands: requests that name a tool, and need no decision.

use serde_json::{Map, Value};

use crate::bidirectional::tools::{LIST_SERVERS, SHOW_AGENT_CARD};

/// What a request that begins with `:` asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Command {
    pub(super) tool: String,
    pub(super) params: Value,
}

/// Read `:tool NAME JSON`, `:NAME JSON`, `:card` and `:servers`. `None` for everything that is not
/// meant as a command.
pub(super) fn parse(text: &str) -> Option<Result<Command, String>> {
    let rest = text.trim().strip_prefix(':')?;
    if !rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let (word, after) = split(rest);
    let (tool, params) = match word {
        "tool" => {
            let (name, params) = split(after);
            if name.is_empty() {
                return Some(Err("write :tool NAME JSON".to_owned()));
            }
            (name, params)
        }
        "card" => (SHOW_AGENT_CARD, after),
        "servers" => (LIST_SERVERS, after),
        name => (name, after),
    };
    let params = match params {
        "" => Ok(Value::Object(Map::new())),
        text => serde_json::from_str::<Value>(text)
            .map_err(|error| format!("the parameters of {tool} are not JSON: {error}")),
    };
    Some(params.map(|params| Command { tool: tool.to_owned(), params }))
}

fn split(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_are_told_from_what_only_looks_like_one() {
        let command = |text: &str| parse(text).unwrap().unwrap();
        let list = command(r#":tool list_agents {"format": "simple"}"#);
        assert_eq!((list.tool.as_str(), list.params), ("list_agents", json!({"format": "simple"})));
        assert_eq!(command(" :card").tool, "show_agent_card");
        assert_eq!(command(":list_agents").params, json!({}));
        assert!(parse(":tool").unwrap().is_err());
        assert!(parse(":tool echo {").unwrap().unwrap_err().contains("not JSON"));
        assert_eq!(parse(":) hello"), None);
        assert_eq!(parse("what is :tool?"), None);
    }
}
