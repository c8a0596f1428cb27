//! Takes keys out of any text that leaves a provider: errors end up in terminals and journals.

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex};

/// What stands where a key stood.
const MARK: &str = "[redacted]";

/// Shorter secrets would blot out ordinary words.
const MIN_SECRET_BYTES: usize = 6;

/// What keys look like even where they are not known: in the query or the user part of an address,
/// after `Bearer`, after the name of a key header, or by the prefixes that providers give them.
static KEY_LIKE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
        (?P<query> [?&;] (?:[a-z_-]* (?:key|token|secret|signature|password)) = ) [^&\s"'<>)\]]+
      | (?P<user> ://) [^/\s@"']+ @
      | (?P<bearer> \b bearer \s+) [^\s"',;]{6,}
      | (?P<header> \b (?:x-api-key|x-goog-api-key|api-key|authorization) ["']? \s* [:=] \s* ["']?
            (?: (?:basic|bearer) \s+ )?) [^\s"',;]{6,}
      | \b (?:sk|pk|rk|gsk|xai|hf)[-_] [a-z0-9_*-]{6,}
      | \b AIza [a-z0-9_-]{16,}
        "#,
    )
    .ok()
});

/// Knows the keys of one provider.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    secrets: Vec<Box<str>>,
}

impl Redactor {
    /// A redactor for these secrets, whatever they look like.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut secrets: Vec<Box<str>> = secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= MIN_SECRET_BYTES)
            .map(Into::into)
            .collect();
        // A secret that contains another goes first, or its rest would stay.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// The text without the secrets, and without what looks like one.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for secret in &self.secrets {
            if text.contains(&**secret) {
                text = Cow::Owned(text.replace(&**secret, MARK));
            }
        }
        match KEY_LIKE.as_ref() {
            Some(pattern) => pattern
                .replace_all(&text, |found: &Captures<'_>| {
                    let kept =
                        ["query", "bearer", "header"].iter().find_map(|name| found.name(name));
                    match (kept, found.name("user")) {
                        (_, Some(scheme)) => format!("{}{MARK}@", scheme.as_str()),
                        (Some(kept), _) => format!("{}{MARK}", kept.as_str()),
                        (None, None) => MARK.to_owned(),
                    }
                })
                .into_owned(),
            None => text.into_owned(),
        }
    }
}

/// A redactor shows how much it knows, never what.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_key_is_taken_out_wherever_it_stands() {
        let redactor = Redactor::new(["my-odd-key", "my-odd-key-2"]);
        assert_eq!(
            redactor.clean("got my-odd-key-2, not {\"k\":\"my-odd-key\"}"),
            "got [redacted], not {\"k\":\"[redacted]\"}"
        );
    }

    #[test]
    fn what_looks_like_a_key_is_taken_out_though_it_is_not_known() {
        let redactor = Redactor::default();
        for (text, clean) in [
            (
                "https://h/v1beta/models?alt=sse&key=abc&x=1",
                "https://h/v1beta/models?alt=sse&key=[redacted]&x=1",
            ),
            ("GET /a?api_key=abc failed", "GET /a?api_key=[redacted] failed"),
            ("https://ada:secret@host/v1", "https://[redacted]@host/v1"),
            ("Authorization: Bearer abcdefgh", "Authorization: Bearer [redacted]"),
            ("{\"x-api-key\": \"abcdefgh\"}", "{\"x-api-key\": \"[redacted]\"}"),
            (
                "Incorrect API key provided: sk-proj-ab***yz.",
                "Incorrect API key provided: [redacted].",
            ),
            ("key AIzaSyA1234567890abcdefgh is bad", "key [redacted] is bad"),
        ] {
            assert_eq!(redactor.clean(text), clean);
        }
    }

    #[test]
    fn ordinary_words_stay() {
        let text = "model qwen3 not found; the key point: tokens=5, see https://h/docs?page=2";
        assert_eq!(Redactor::new(["", "ab"]).clean(text), text);
    }
}
