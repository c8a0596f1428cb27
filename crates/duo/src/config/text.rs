//! Values from texts that need not be TOML: environment variables and `--set`.

use super::{
    origin::Origin,
    raw::{Body, Raw, parse_value},
    schema::Kind,
};

/// What quotes, and spaces around it, are to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// They are part of the text, as in an environment variable.
    Literal,
    /// Quotes may stand around it, and spaces do not count, as in TOML.
    Toml,
}

/// Read a text as what the key wants. What does not fit stays a text, and the check says so.
pub(crate) fn read(text: &str, kind: Option<Kind>, quotes: Quotes, origin: &Origin) -> Raw {
    let trimmed = text.trim();
    let as_text = || Raw {
        origin: origin.clone(),
        body: Body::Text(match quotes {
            Quotes::Literal => text.into(),
            Quotes::Toml => trimmed.into(),
        }),
    };
    let toml = || parse_value(trimmed, origin);
    match kind {
        Some(kind) if kind.is_text() => match quotes {
            Quotes::Toml if trimmed.starts_with(['"', '\'']) => toml().unwrap_or_else(as_text),
            _ => as_text(),
        },
        Some(Kind::List(item)) if !trimmed.starts_with('[') => {
            let items = items(trimmed).into_iter();
            Raw {
                origin: origin.clone(),
                body: Body::List(
                    items.map(|text| read(text, Some(*item), quotes, origin)).collect(),
                ),
            }
        }
        Some(Kind::Flag) => match trimmed {
            "1" => flag(true, origin),
            "0" => flag(false, origin),
            _ => toml().unwrap_or_else(as_text),
        },
        _ => toml().unwrap_or_else(as_text),
    }
}

fn flag(flag: bool, origin: &Origin) -> Raw {
    Raw { origin: origin.clone(), body: Body::Flag(flag) }
}

/// The items between commas. A comma inside parentheses belongs to a rule's pattern.
fn items(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str, kind: Kind, quotes: Quotes) -> Body {
        read(text, Some(kind), quotes, &Origin::Default).body
    }

    fn texts(list: &[&str]) -> Body {
        let items = list
            .iter()
            .map(|text| Raw { origin: Origin::Default, body: Body::Text((*text).into()) });
        Body::List(items.collect())
    }

    #[test]
    fn a_text_needs_no_quotes_and_keeps_its_own() {
        let text = |text: &str| Body::Text(text.into());
        assert_eq!(body("5", Kind::Text, Quotes::Toml), text("5"));
        assert_eq!(body("a b=c", Kind::Text, Quotes::Toml), text("a b=c"));
        assert_eq!(body("\"a\\tb\"", Kind::Text, Quotes::Toml), text("a\tb"));
        assert_eq!(body("\"a", Kind::Text, Quotes::Toml), text("\"a"));
        assert_eq!(body("\"a\"", Kind::Text, Quotes::Literal), text("\"a\""));
    }

    #[test]
    fn lists_are_toml_or_have_commas() {
        let kind = Kind::List(&Kind::Rule);
        let both = texts(&["shell(a, b)", "echo"]);
        assert_eq!(body("shell(a, b), echo", kind, Quotes::Literal), both);
        assert_eq!(body("['shell(a, b)', \"echo\"]", kind, Quotes::Literal), both);
        assert_eq!(body("", kind, Quotes::Literal), texts(&[]));
    }

    #[test]
    fn numbers_and_flags_are_read_and_other_texts_stay_texts() {
        let count = Kind::Count { min: 0, max: 9 };
        assert_eq!(body(" 1_000 ", count, Quotes::Literal), Body::Integer(1000));
        assert_eq!(body("four", count, Quotes::Literal), Body::Text("four".into()));
        assert_eq!(body("5 6", count, Quotes::Literal), Body::Text("5 6".into()));
        assert_eq!(body("5\nx = 1", count, Quotes::Literal), Body::Text("5\nx = 1".into()));
        assert_eq!(body("1", Kind::Flag, Quotes::Literal), Body::Flag(true));
        assert_eq!(body("false", Kind::Flag, Quotes::Literal), Body::Flag(false));
    }
}
