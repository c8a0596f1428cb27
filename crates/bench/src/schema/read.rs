//! Reading loose input into the shapes of a domain, as pydantic's lax mode does.

use super::{
    Default, Extra, Model, Type,
    dates::{read_date, read_datetime},
};
use crate::{Dict, Key, Value, python};

impl Model {
    /// Reads a record at a place of the input; problems are added to the list.
    pub(super) fn read_at(&self, input: &Value, place: &str, problems: &mut Vec<String>) -> Value {
        let Value::Dict(given) = input else {
            problem(problems, place, "Input should be a valid dictionary", "model_type", input);
            return Value::None;
        };
        if self.extra == Extra::Forbid {
            for (key, value) in given.iter() {
                if self.fields.iter().all(|field| field.name != &**key) {
                    let place = inside(place, key);
                    problem(
                        problems,
                        &place,
                        "Extra inputs are not permitted",
                        "extra_forbidden",
                        value,
                    );
                }
            }
        }
        let record: Dict = self
            .fields
            .iter()
            .map(|field| {
                let place = inside(place, field.name);
                let value = match given.get(field.name) {
                    Some(value) => field.ty.read(value, &place, problems),
                    None => match field.default.value(&field.ty) {
                        Some(value) => value,
                        None => {
                            problem(problems, &place, "Field required", "missing", input);
                            Value::None
                        }
                    },
                };
                (Key::Static(field.name), value)
            })
            .collect();
        record.into()
    }
}

impl Type {
    /// Whether a value fits, after conversion.
    pub fn accepts(&self, input: &Value) -> bool {
        let mut problems = Vec::new();
        self.read(input, "", &mut problems);
        problems.is_empty()
    }

    fn read(&self, input: &Value, place: &str, problems: &mut Vec<String>) -> Value {
        let (read, wanted, kind) = match self {
            Self::Any => return input.clone(),
            Self::Str => (
                matches!(input, Value::Str(_)).then(|| input.clone()),
                "valid string",
                "string_type",
            ),
            Self::Int => (read_int(input), "valid integer", "int_parsing"),
            Self::Float => (read_float(input), "valid number", "float_parsing"),
            Self::Bool => (read_bool(input), "valid boolean", "bool_parsing"),
            Self::Date => (read_date(input), "valid date", "date_parsing"),
            Self::DateTime => (read_datetime(input), "valid datetime", "datetime_parsing"),
            Self::Literal(texts) | Self::Enum(_, texts) => {
                if input.as_str().is_some_and(|text| texts.contains(&text)) {
                    return input.clone();
                }
                let wanted = alternatives(texts);
                problem(
                    problems,
                    place,
                    &format!("Input should be {wanted}"),
                    "literal_error",
                    input,
                );
                return Value::None;
            }
            Self::Optional(inner) => {
                return if input.is_none() {
                    Value::None
                } else {
                    inner.read(input, place, problems)
                };
            }
            Self::List(inner) => match input {
                Value::List(items) => {
                    let items = items.iter().enumerate();
                    return Value::list(items.map(|(at, item)| {
                        inner.read(item, &inside(place, &at.to_string()), problems)
                    }));
                }
                _ => (None, "valid list", "list_type"),
            },
            Self::Dict(inner) => match input {
                Value::Dict(dict) => return read_dict(dict, inner, place, problems),
                _ => (None, "valid dictionary", "dict_type"),
            },
            Self::Keyed(keys, inner) => match input {
                Value::Dict(dict) => {
                    for key in dict.keys().filter(|key| !keys.contains(&&***key)) {
                        let wanted = format!("Input should be {}", alternatives(keys));
                        problem(problems, &inside(place, key), &wanted, "literal_error", input);
                    }
                    return read_dict(dict, inner, place, problems);
                }
                _ => (None, "valid dictionary", "dict_type"),
            },
            Self::Object => (
                matches!(input, Value::Dict(_)).then(|| input.clone()),
                "valid dictionary",
                "dict_type",
            ),
            Self::Model(model) => return model.read_at(input, place, problems),
            Self::Union(types) => {
                let mut tried = Vec::new();
                for ty in *types {
                    let before = tried.len();
                    let value = ty.read(input, place, &mut tried);
                    if tried.len() == before {
                        return value;
                    }
                }
                problems.append(&mut tried);
                return Value::None;
            }
        };
        read.unwrap_or_else(|| {
            problem(problems, place, &format!("Input should be a {wanted}"), kind, input);
            Value::None
        })
    }
}

impl Default {
    /// The value, unless something must be given.
    pub(crate) fn value(&self, ty: &Type) -> Option<Value> {
        Some(match self {
            Self::Required => return None,
            Self::None => Value::None,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::Str(value) => (*value).into(),
            Self::List => Value::list([]),
            Self::Dict => Value::empty_dict(),
            Self::Model => match ty {
                Type::Model(model) => model.with_defaults().ok()?,
                _ => return None,
            },
            Self::Made(make) => make(),
        })
    }
}

fn read_dict(dict: &Dict, inner: &Type, place: &str, problems: &mut Vec<String>) -> Value {
    let entries = dict.iter();
    let read: Dict = entries
        .map(|(key, value)| (key.clone(), inner.read(value, &inside(place, key), problems)))
        .collect();
    read.into()
}

#[allow(clippy::cast_possible_truncation)]
fn read_int(input: &Value) -> Option<Value> {
    match input {
        Value::Int(_) => Some(input.clone()),
        Value::Bool(value) => Some(Value::Int(i64::from(*value))),
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => {
            Some(Value::Int(*number as i64))
        }
        Value::Str(text) => {
            let text = text.trim();
            let whole = match text.split_once('.') {
                Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => whole,
                _ => text,
            };
            whole.replace('_', "").parse().ok().map(Value::Int)
        }
        _ => None,
    }
}

fn read_float(input: &Value) -> Option<Value> {
    match input {
        Value::Str(text) => text.trim().replace('_', "").parse().ok().map(Value::Float),
        other => other.as_f64().map(Value::Float),
    }
}

fn read_bool(input: &Value) -> Option<Value> {
    let truth = match input {
        Value::Bool(value) => *value,
        Value::Int(1) => true,
        Value::Int(0) => false,
        Value::Float(number) if *number == 1.0 => true,
        Value::Float(number) if *number == 0.0 => false,
        Value::Str(text) => match text.to_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => true,
            "false" | "f" | "no" | "n" | "off" | "0" => false,
            _ => return None,
        },
        _ => return None,
    };
    Some(Value::Bool(truth))
}

fn inside(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn alternatives(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("'{text}'")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => String::new(),
    }
}

fn problem(problems: &mut Vec<String>, place: &str, text: &str, kind: &str, input: &Value) {
    problems.push(format!(
        "{place}\n  {text} [type={kind}, input_value={}, input_type={}]",
        python::repr(input),
        python::type_name(input)
    ));
}

#[cfg(test)]
mod tests {
    use crate::{
        Value,
        python::{Layout, dumps, loads},
        schema::{Default, Model, Type, field},
    };

    static POINT: Model = Model::strict(
        "Point",
        &[
            field("x", Type::Float),
            field("n", Type::Int).or(Default::Int(3)),
            field("kind", Type::Literal(&["a", "b"])).or(Default::Str("a")),
            field("when", Type::Optional(&Type::DateTime)).or(Default::None),
        ],
    );

    fn read(text: &str) -> Result<String, String> {
        let value = POINT.read(&loads(text).unwrap()).map_err(|failure| failure.to_string())?;
        Ok(dumps(&value, Layout::Line))
    }

    #[test]
    fn input_is_converted_completed_and_put_in_order() {
        assert_eq!(
            read(r#"{"n": "7", "x": 65, "when": "2025-01-15T10:30:00"}"#).unwrap(),
            r#"{"x": 65.0, "n": 7, "kind": "a", "when": "2025-01-15 10:30:00"}"#
        );
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let error = read(r#"{"x": "far", "kind": "c", "z": 1}"#).unwrap_err();
        assert!(error.starts_with("3 validation errors for Point"), "{error}");
        assert!(error.contains("Input should be 'a' or 'b'"), "{error}");
        assert!(error.contains("Extra inputs are not permitted"), "{error}");
        assert!(POINT.read(&Value::None).is_err());
    }
}
