//! Values as somebody wrote them, each with where, before anyone has checked them.

use std::ops::Range;

use toml::{
    Spanned, Value,
    de::{DeTable, DeValue},
};

use super::origin::Origin;
use super::problem::Problem;

/// A value and who said it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Raw {
    /// Who said it, and on which line.
    pub(crate) origin: Origin,
    /// What it is.
    pub(crate) body: Body,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// A string.
    Text(String),
    /// A whole number. Wider than TOML's, so that one too large can be called that.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A date or time; no key takes one.
    Date,
    /// A list.
    List(Vec<Raw>),
    /// A table, in the order of its names.
    Table(Vec<Field>),
}

/// A key of a table with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// The key.
    pub(crate) name: String,
    /// Where the key stands.
    pub(crate) origin: Origin,
    /// Its value.
    pub(crate) value: Raw,
}

impl Body {
    /// What it is, in an error. Never its content, which may be a secret.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number with a fraction",
            Self::Flag(_) => "true or false",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl Raw {
    /// A value from code, all of it from one origin.
    pub(crate) fn from_value(value: Value, origin: &Origin) -> Self {
        let body = match value {
            Value::String(text) => Body::Text(text),
            Value::Integer(number) => Body::Integer(number.into()),
            Value::Float(number) => Body::Float(number),
            Value::Boolean(flag) => Body::Flag(flag),
            Value::Datetime(_) => Body::Date,
            Value::Array(items) => {
                Body::List(items.into_iter().map(|v| Self::from_value(v, origin)).collect())
            }
            Value::Table(table) => Body::Table(
                table
                    .into_iter()
                    .map(|(name, value)| Field {
                        name,
                        origin: origin.clone(),
                        value: Self::from_value(value, origin),
                    })
                    .collect(),
            ),
        };
        Self { origin: origin.clone(), body }
    }

    /// An empty table.
    pub(crate) fn table(origin: Origin) -> Self {
        Self { origin, body: Body::Table(Vec::new()) }
    }

    /// Put a value at a path, making the tables on the way. What stood there before is given back.
    /// The error is the length of the part of the path that is not a table.
    pub(crate) fn put(&mut self, path: &[String], value: Raw) -> Result<Option<Raw>, usize> {
        let Some((name, rest)) = path.split_first() else {
            return Ok(Some(std::mem::replace(self, value)));
        };
        let Body::Table(fields) = &mut self.body else {
            return Err(0);
        };
        let origin = value.origin.clone();
        if let Some(field) = fields.iter_mut().find(|field| field.name == *name) {
            field.origin = origin;
            return field.value.put(rest, value).map_err(|depth| depth + 1);
        }
        let mut inner = Self::table(origin.clone());
        inner.put(rest, value)?;
        fields.push(Field { name: name.clone(), origin, value: inner });
        Ok(None)
    }
}

/// Read TOML text. A file that cannot be read as TOML gives every syntax error that was found.
pub(crate) fn parse(text: &str, origin: &Origin) -> Result<Raw, Vec<Problem>> {
    let lines = Lines::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let reader = Reader { origin, lines };
        return Ok(Raw { origin: origin.at_line(1), body: reader.table(table.get_ref()) });
    }
    // The errors' own display repeats the line, which may hold a secret.
    let mut problems: Vec<Problem> = Vec::new();
    for error in errors {
        let line = error.span().map_or(1, |span| lines.number(&span));
        let origin = origin.at_line(line);
        // One slip is often met again on the same line; the first is the one to mend.
        if problems.iter().all(|problem| problem.origin != origin) {
            problems.push(Problem {
                origin,
                key: String::new(),
                what: format!("not valid TOML: {}", error.message()),
            });
        }
    }
    problems.sort_by(|a, b| a.origin.cmp(&b.origin));
    Err(problems)
}

/// Read one TOML value, as after `=`. `None` if it is not one.
pub(crate) fn parse_value(text: &str, origin: &Origin) -> Option<Raw> {
    let value = DeValue::parse(text).ok()?;
    let reader = Reader { origin, lines: Lines::of(text) };
    Some(reader.value(&value))
}

struct Reader<'a> {
    origin: &'a Origin,
    lines: Lines,
}

impl Reader<'_> {
    fn value(&self, value: &Spanned<DeValue<'_>>) -> Raw {
        let body = match value.get_ref() {
            DeValue::String(text) => Body::Text(text.to_string()),
            DeValue::Integer(number) => Body::Integer(integer(number.as_str(), number.radix())),
            DeValue::Float(number) => Body::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => Body::Flag(*flag),
            DeValue::Datetime(_) => Body::Date,
            DeValue::Array(items) => Body::List(items.iter().map(|v| self.value(v)).collect()),
            DeValue::Table(table) => self.table(table),
        };
        Raw { origin: self.origin_of(&value.span()), body }
    }

    fn table(&self, table: &DeTable<'_>) -> Body {
        let fields = table.iter().map(|(name, value)| Field {
            name: name.get_ref().to_string(),
            origin: self.origin_of(&name.span()),
            value: self.value(value),
        });
        Body::Table(fields.collect())
    }

    fn origin_of(&self, span: &Range<usize>) -> Origin {
        self.origin.at_line(self.lines.number(span))
    }
}

/// The number, or the nearest one that there is: both are out of any key's range.
fn integer(digits: &str, radix: u32) -> i128 {
    let nearest = if digits.starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(digits, radix).unwrap_or(nearest)
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(ends.map(|(at, _)| at + 1).collect())
    }

    /// The number of the line that a span begins on, from 1.
    fn number(&self, span: &Range<usize>) -> usize {
        self.0.partition_point(|begin| *begin <= span.start) + 1
    }
}
