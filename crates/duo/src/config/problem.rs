//! What is wrong with a configuration, in words that say where and what to do.

use std::fmt;

use super::{origin::Origin, suggest};

/// Everything that is wrong, at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct ConfigError {
    /// At least one, in the order of the layers and lines.
    pub(crate) problems: Vec<Problem>,
}

/// One thing that is wrong. Shown as `duologue.toml:12: tools.enabled: unknown tool "ehco" …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Who said it.
    pub(crate) origin: Origin,
    /// About which key; empty when it is about the whole.
    pub(crate) key: String,
    /// What is wrong, and what to do.
    pub(crate) what: String,
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Default => f.write_str("configuration")?,
            origin => write!(f, "{origin}")?,
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// That a word is unknown, with what was meant, or else with what there is.
pub(crate) fn unknown<'a>(
    what: &str,
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let word_shown = quoted(word);
    if let Some(meant) = suggest(word, known.clone()) {
        return format!("unknown {what} {word_shown} (did you mean \"{meant}\"?)");
    }
    match listed(known) {
        list if list.is_empty() => format!("unknown {what} {word_shown}"),
        list => format!("unknown {what} {word_shown}; there are {list}"),
    }
}

/// Words in quotes with commas between them.
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(quoted).collect();
    quoted.join(", ")
}

/// The most characters of somebody's text that an error repeats.
const SHOWN_CHARS: usize = 80;

/// A text in quotes, on one line, without anything that a terminal would act on, and not too long.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown = escaped(text.chars().take(SHOWN_CHARS));
    let left = text.chars().count().saturating_sub(SHOWN_CHARS);
    if left > 0 {
        shown.push_str(&format!("… and {left} more characters"));
    }
    format!("\"{shown}\"")
}

/// Characters as a TOML string has them between its quotes.
pub(crate) fn escaped(text: impl Iterator<Item = char>) -> String {
    let mut escaped = String::new();
    for c in text {
        match c {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            // Also the marks that turn the direction of writing, which hide what a text says.
            c if c.is_control()
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                escaped.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => escaped.push(c),
        }
    }
    escaped
}
