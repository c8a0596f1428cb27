//! How Python shows values as text.

use std::fmt::Write;

use super::number::float_repr;
use crate::{Dict, Value};

/// Python's `str(value)`.
pub fn str_of(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        other => repr(other),
    }
}

/// Python's `repr(value)`.
pub fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(value, &mut out);
    out
}

/// The name of the value's Python type.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::None => "NoneType",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Str(_) => "str",
        Value::List(_) => "list",
        Value::Dict(_) => "dict",
    }
}

/// `"user_id"` as `"User Id"`: the title that pydantic gives a field.
pub fn title_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut after_letter = false;
    for letter in name.chars() {
        if letter == '_' {
            out.push(' ');
            after_letter = false;
        } else if after_letter {
            out.extend(letter.to_lowercase());
        } else {
            out.extend(letter.to_uppercase());
            after_letter = letter.is_alphabetic();
        }
    }
    out.trim().to_owned()
}

fn write_repr(value: &Value, out: &mut String) {
    match value {
        Value::None => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Float(number) => out.push_str(&float_repr(*number)),
        Value::Str(text) => write_str_repr(text, out),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_repr(item, out);
            }
            out.push(']');
        }
        Value::Dict(dict) => write_dict_repr(dict, out),
    }
}

fn write_dict_repr(dict: &Dict, out: &mut String) {
    out.push('{');
    for (at, (key, value)) in dict.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_str_repr(key, out);
        out.push_str(": ");
        write_repr(value, out);
    }
    out.push('}');
}

fn write_str_repr(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || (0x7f..0xa1).contains(&(c as u32)) || c == '\u{ad}' => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            // Separators and private letters; Python shows what is printable as it is.
            c if matches!(c as u32, 0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f
                | 0x3000 | 0xe000..=0xf8ff | 0xfeff | 0xfff0..=0xfffb) =>
            {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_python_writes_them() {
        let value = Value::dict([
            ("a", Value::list([Value::None, true.into(), 1.into(), 2.5.into()])),
            ("it's", "say \"hi\"\n".into()),
        ]);
        assert_eq!(repr(&value), r#"{'a': [None, True, 1, 2.5], "it's": 'say "hi"\n'}"#);
        assert_eq!(str_of(&"plain".into()), "plain");
    }

    #[test]
    fn titles_are_pydantics() {
        assert_eq!(title_case("user_id"), "User Id");
        assert_eq!(title_case("address1"), "Address1");
        assert_eq!(title_case("last_4_digits"), "Last 4 Digits");
    }
}
