//! Rules: a script that reacts to what is said instead of counting turns.

use std::sync::Arc;

use duologue_core::{Message, Role};
use regex::{Captures, Regex};
use serde_json::Value;

use super::{
    ScriptError, said,
    turn::{Turn, TurnArguments},
};

/// An answer for every message that fits a pattern. The first rule that fits wins.
#[derive(Clone, Debug)]
pub struct Rule {
    pattern: Pattern,
    from: From,
    turn: Turn,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// Anywhere in the text, in upper or lower case.
    Text(String),
    Regex(Regex),
}

/// Whose message a rule is for.
#[derive(Clone, Debug, PartialEq)]
enum From {
    Anyone,
    User,
    /// Any tool, or the one of this name.
    Tool(Option<String>),
}

impl Rule {
    /// A rule for messages that contain a text, in upper or lower case, or that fit a regular
    /// expression written as `/…/` or `/…/i`.
    ///
    /// In the turn's texts and in its arguments, `$1` is what the first group of the expression
    /// found, `${name}` a named one, `$0` all of it, and `$$` a dollar sign.
    pub fn new(when: &str, turn: impl Into<Turn>) -> Result<Self, ScriptError> {
        let pattern = match expression(when) {
            Some(expression) => Pattern::Regex(Regex::new(&expression).map_err(|error| {
                ScriptError::BadPattern { pattern: when.to_owned(), problem: error.to_string() }
            })?),
            None => Pattern::Text(when.to_lowercase()),
        };
        Ok(Self { pattern, from: From::Anyone, turn: turn.into() })
    }

    /// The same rule for messages of people only.
    #[must_use]
    pub fn from_user(mut self) -> Self {
        self.from = From::User;
        self
    }

    /// The same rule for results of tools only.
    #[must_use]
    pub fn from_tools(mut self) -> Self {
        self.from = From::Tool(None);
        self
    }

    /// The same rule for results of one tool only.
    #[must_use]
    pub fn from_tool(mut self, name: impl Into<String>) -> Self {
        self.from = From::Tool(Some(name.into()));
        self
    }

    /// The turn for what was said last, or for what is said besides the conversation, if the rule
    /// fits it. The latter is from nobody in particular.
    pub(super) fn answer(
        &self,
        last: Option<&Arc<Message>>,
        besides: &[Arc<Message>],
    ) -> Option<Turn> {
        let besides = matches!(self.from, From::Anyone).then_some(besides).unwrap_or_default();
        last.into_iter().chain(besides).find_map(|message| self.answer_to(message))
    }

    fn answer_to(&self, message: &Arc<Message>) -> Option<Turn> {
        let fits = match &self.from {
            From::Anyone => true,
            From::User => message.role == Role::User,
            From::Tool(None) => message.role == Role::Tool,
            From::Tool(Some(name)) => message.tool_results().any(|result| result.name == *name),
        };
        if !fits {
            return None;
        }
        let text = said(message);
        match &self.pattern {
            Pattern::Text(part) => text.to_lowercase().contains(part).then(|| self.turn.clone()),
            Pattern::Regex(regex) => {
                regex.captures(&text).map(|found| fill(self.turn.clone(), &found))
            }
        }
    }
}

/// `/…/` and `/…/i` as the expression that they are.
fn expression(when: &str) -> Option<String> {
    let inner = when.strip_prefix('/')?;
    let (body, flags) = inner.rsplit_once('/')?;
    match flags {
        "" => Some(body.to_owned()),
        flags if flags.chars().all(|flag| "imsx".contains(flag)) => {
            Some(format!("(?{flags}){body}"))
        }
        _ => None,
    }
}

fn fill(mut turn: Turn, found: &Captures<'_>) -> Turn {
    for text in [&mut turn.text, &mut turn.reasoning].into_iter().flatten() {
        *text = expand(text, found);
    }
    for call in &mut turn.calls {
        match &mut call.arguments {
            TurnArguments::Raw(text) => *text = expand(text, found),
            TurnArguments::Value(value) => fill_value(value, found),
        }
    }
    turn
}

fn fill_value(value: &mut Value, found: &Captures<'_>) {
    match value {
        Value::String(text) => *text = expand(text, found),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, found)),
        Value::Object(fields) => fields.values_mut().for_each(|item| fill_value(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn expand(text: &str, found: &Captures<'_>) -> String {
    let mut out = String::new();
    found.expand(text, &mut out);
    out
}
