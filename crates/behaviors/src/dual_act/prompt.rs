//! Prompts with named placeholders, checked when they are made and filled in one go.

use super::config::DualActError;

/// A prompt with `{named}` places. `{{` and `}}` stand for braces; a brace that no name follows is
/// only a brace.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prompt(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Place(String),
}

impl Prompt {
    /// Read a prompt in which only these names may occur.
    pub(super) fn new(
        prompt: &'static str,
        text: &str,
        allowed: &'static [&'static str],
    ) -> Result<Self, DualActError> {
        let pieces = pieces(text);
        let unknown = pieces.iter().find_map(|piece| match piece {
            Piece::Place(name) if !allowed.contains(&name.as_str()) => Some(name.clone()),
            _ => None,
        });
        match unknown {
            Some(placeholder) => {
                Err(DualActError::UnknownPlaceholder { prompt, placeholder, allowed })
            }
            None => Ok(Self(pieces)),
        }
    }

    /// Fill it. What is not given is empty; what is given is never read as a prompt again.
    pub(super) fn fill(&self, values: &[(&str, &str)]) -> String {
        let value = |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
        let fill = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Place(name) => value(name).unwrap_or_default().to_owned(),
        };
        self.0.iter().map(fill).collect()
    }
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, here) = rest.split_at(at);
        plain.push_str(before);
        if let Some(after) = here.strip_prefix("{{") {
            plain.push('{');
            rest = after;
        } else if let Some(after) = here.strip_prefix("}}") {
            plain.push('}');
            rest = after;
        } else if let Some((name, after)) = name_at(here) {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::Place(name.to_owned()));
            rest = after;
        } else {
            let (brace, after) = here.split_at(1);
            plain.push_str(brace);
            rest = after;
        }
    }
    plain.push_str(rest);
    pieces.push(Piece::Text(plain));
    pieces
}

/// The name between braces at the start of a text, and what follows it.
fn name_at(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.strip_prefix('{')?.split_once('}')?;
    let is_name = |name: &str| {
        let mut chars = name.chars();
        chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    is_name(name).then_some((name, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: &[&str] = &["task", "summary"];

    #[test]
    fn what_is_not_given_is_empty_and_what_is_given_is_not_read_again() {
        let prompt = Prompt::new("p", "Do {task}. {summary}|", NAMES).unwrap();
        assert_eq!(prompt.fill(&[("task", "{summary}")]), "Do {summary}. |");
    }

    #[test]
    fn braces_that_name_nothing_stay_and_doubled_ones_are_one() {
        let text = r#"{"a": 1} {} {1x} }{ {{task}} {"#;
        let prompt = Prompt::new("p", text, NAMES).unwrap();
        assert_eq!(prompt.fill(&[("task", "x")]), r#"{"a": 1} {} {1x} }{ {task} {"#);
    }

    #[test]
    fn an_unknown_name_is_an_error_that_tells_the_known_ones() {
        let error = Prompt::new("reactive_task_prompt", "Do {tasks}", NAMES).unwrap_err();
        assert_eq!(
            error.to_string(),
            "reactive_task_prompt: unknown placeholder {tasks}; it may have {task}, {summary}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_prompt_or_an_error(text in ".{0,60}") {
            if let Ok(prompt) = Prompt::new("p", &text, NAMES) {
                let filled = prompt.fill(&[]);
                if !text.contains(['{', '}']) {
                    prop_assert_eq!(filled, text);
                }
            }
        }
    }
}
