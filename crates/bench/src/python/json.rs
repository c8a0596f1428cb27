//! Python's `json`: the exact bytes that are hashed, sent and stored.

use std::{fmt::Write, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
    ser::{SerializeMap, SerializeSeq},
};
use sha2::{Digest, Sha256};

use super::number::float_repr;
use crate::{Dict, Key, Value};

/// How `dumps` lays out its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One line, keys in their order: `json.dumps(value)`.
    Line,
    /// One line, keys sorted: `json.dumps(value, sort_keys=True)`.
    Sorted,
    /// Lines with this indentation: `json.dumps(value, indent=n)`.
    Indented(usize),
}

/// Python's `json.dumps`: ASCII only, `", "` and `": "` between.
pub fn dumps(value: &Value, layout: Layout) -> String {
    let mut out = String::new();
    write(value, layout, 0, &mut out);
    out
}

/// Python's `json.loads`. Text that is no JSON is an error.
pub fn loads(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

/// The text whose hash identifies a database: sorted keys, one line.
///
/// The texts of records (entries of the sections) are kept with them: of a database of thousands
/// only those that a conversation changed are written again.
pub fn canonical_text(database: &Value) -> String {
    let mut out = String::new();
    write_canonical(database, 0, &mut out);
    out
}

/// SHA-256 of the canonical text, in hexadecimal.
pub fn canonical_hash(database: &Value) -> String {
    sha256(canonical_text(database).as_bytes())
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::with_capacity(64), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Records are the values of sections, which are the values of the database.
const SECTION_DEPTH: usize = 1;
const RECORD_DEPTH: usize = 2;

fn write_canonical(value: &Value, depth: usize, out: &mut String) {
    match value {
        // A section that is shared is as it was loaded: its text serves every environment.
        Value::Dict(dict) if depth == SECTION_DEPTH && Arc::strong_count(dict) > 1 => {
            out.push_str(dict.canonical(|dict| {
                let mut out = String::new();
                write_entries(&sorted(dict), &mut out, |value, out| {
                    write_canonical(value, depth + 1, out);
                });
                out
            }));
        }
        Value::Dict(dict) if depth < RECORD_DEPTH => {
            write_entries(&sorted(dict), out, |value, out| write_canonical(value, depth + 1, out));
        }
        Value::Dict(dict) if depth == RECORD_DEPTH => {
            out.push_str(dict.canonical(|_| dumps(value, Layout::Sorted)));
        }
        other => write(other, Layout::Sorted, 0, out),
    }
}

fn write(value: &Value, layout: Layout, depth: usize, out: &mut String) {
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Float(number) => write_float(*number, out),
        Value::Str(text) => write_string(text, out),
        Value::List(items) if items.is_empty() => out.push_str("[]"),
        Value::Dict(dict) if dict.is_empty() => out.push_str("{}"),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                separate(at, layout, depth + 1, out);
                write(item, layout, depth + 1, out);
            }
            break_line(layout, depth, out);
            out.push(']');
        }
        Value::Dict(dict) => {
            if layout == Layout::Sorted {
                return write_entries(&sorted(dict), out, |value, out| {
                    write(value, layout, depth + 1, out);
                });
            }
            out.push('{');
            for (at, (key, value)) in dict.iter().enumerate() {
                separate(at, layout, depth + 1, out);
                write_string(key, out);
                out.push_str(": ");
                write(value, layout, depth + 1, out);
            }
            break_line(layout, depth, out);
            out.push('}');
        }
    }
}

fn sorted(dict: &Dict) -> Vec<(&Key, &Value)> {
    let mut entries: Vec<(&Key, &Value)> = dict.iter().collect();
    entries.sort_unstable_by(|(a, _), (b, _)| str::cmp(a, b));
    entries
}

fn write_entries(
    entries: &[(&Key, &Value)],
    out: &mut String,
    write_value: impl Fn(&Value, &mut String),
) {
    out.push('{');
    for (at, (key, value)) in entries.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_string(key, out);
        out.push_str(": ");
        write_value(value, out);
    }
    out.push('}');
}

fn separate(at: usize, layout: Layout, depth: usize, out: &mut String) {
    match layout {
        Layout::Indented(_) => {
            if at > 0 {
                out.push(',');
            }
            break_line(layout, depth, out);
        }
        _ if at > 0 => out.push_str(", "),
        _ => {}
    }
}

fn break_line(layout: Layout, depth: usize, out: &mut String) {
    if let Layout::Indented(width) = layout {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', width * depth));
    }
}

fn write_float(number: f64, out: &mut String) {
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        out.push_str(&float_repr(number));
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (at, letter) in text.char_indices() {
        if matches!(letter, ' '..='~') && letter != '"' && letter != '\\' {
            continue;
        }
        out.push_str(text.get(plain..at).unwrap_or_default());
        plain = at + letter.len_utf8();
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push_str(text.get(plain..).unwrap_or_default());
    out.push('"');
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Str(text) => serializer.serialize_str(text),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items.iter() {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Dict(dict) => dict.serialize(serializer),
        }
    }
}

impl Serialize for Dict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(&**key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

impl<'de> Deserialize<'de> for Dict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Dict(dict) => Ok(Arc::unwrap_or_clone(dict)),
            other => Err(serde::de::Error::custom(format!(
                "expected a dictionary, found {}",
                super::type_name(&other)
            ))),
        }
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        #[allow(clippy::cast_precision_loss)]
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::str(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::with_capacity(items.size_hint().unwrap_or(0).min(1024));
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut dict = Dict::default();
        while let Some((key, value)) = entries.next_entry::<String, Value>()? {
            dict.insert(key.into(), value);
        }
        Ok(dict.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_pythons_byte_for_byte() {
        let value = loads(r#"{"b": [1, 2.0, null], "a": "é\u007f\"\n😀", "e": {}}"#).unwrap();
        assert_eq!(
            dumps(&value, Layout::Line),
            r#"{"b": [1, 2.0, null], "a": "\u00e9\u007f\"\n\ud83d\ude00", "e": {}}"#
        );
        assert_eq!(
            dumps(&value, Layout::Sorted),
            r#"{"a": "\u00e9\u007f\"\n\ud83d\ude00", "b": [1, 2.0, null], "e": {}}"#
        );
        assert_eq!(
            dumps(&loads(r#"{"a": [1], "b": []}"#).unwrap(), Layout::Indented(2)),
            "{\n  \"a\": [\n    1\n  ],\n  \"b\": []\n}"
        );
    }

    #[test]
    fn a_written_record_is_hashed_anew() {
        let mut db = loads(r#"{"users": {"u1": {"age": 1}, "u2": {"age": 2}}}"#).unwrap();
        let before = canonical_hash(&db);
        assert_eq!(canonical_text(&db), dumps(&db, Layout::Sorted));
        db.at_mut(&["users", "u1"]).unwrap().set("age", 3);
        assert_eq!(canonical_text(&db), dumps(&db, Layout::Sorted));
        assert_ne!(canonical_hash(&db), before);
    }
}
