//! The shapes of a domain's data as tables: what a database may hold, how loose input is read into
//! it, and the JSON Schemas that a model is shown.
//!
//! Reading follows pydantic's lax mode: a whole number fills a float field, `"7"` an integer field,
//! a text never comes from anything but a text.

mod dates;
mod json_schema;
mod read;

pub use json_schema::parameters;

use crate::{Failure, Value, raise};

/// A type of data.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// Anything.
    Any,
    /// A text.
    Str,
    /// A whole number.
    Int,
    /// A float.
    Float,
    /// A truth value.
    Bool,
    /// A date, held as `2025-02-25`.
    Date,
    /// A date with a time, held as `2025-01-15 10:30:00`.
    DateTime,
    /// One of some texts.
    Literal(&'static [&'static str]),
    /// One of some texts, with a name of its own in schemas.
    Enum(&'static str, &'static [&'static str]),
    /// `None` or this.
    Optional(&'static Type),
    /// A list of these.
    List(&'static Type),
    /// A dictionary of these.
    Dict(&'static Type),
    /// A dictionary of these whose keys are some of those.
    Keyed(&'static [&'static str], &'static Type),
    /// A dictionary with anything in it.
    Object,
    /// A record.
    Model(&'static Model),
    /// The first of these that fits.
    Union(&'static [Type]),
}

/// A record with named fields, in the order in which they are written.
#[derive(Debug)]
pub struct Model {
    /// Its name, which errors and schemas tell.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
    /// What happens to fields it does not have.
    pub extra: Extra,
}

/// What happens to unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// They are left out.
    Ignore,
    /// They are an error.
    Forbid,
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// What it is when nothing is given.
    pub default: Default,
    /// What a model is told about it.
    pub description: &'static str,
}

/// What a field or a parameter is when nothing is given.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// Something must be given.
    Required,
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A float.
    Float(f64),
    /// A text.
    Str(&'static str),
    /// An empty list.
    List,
    /// An empty dictionary.
    Dict,
    /// The record of the field's type with all its defaults.
    Model,
    /// Whatever this function makes.
    Made(fn() -> Value),
}

/// A required field.
pub const fn field(name: &'static str, ty: Type) -> Field {
    Field { name, ty, default: Default::Required, description: "" }
}

impl Field {
    /// With a default.
    pub const fn or(self, default: Default) -> Self {
        Self { default, ..self }
    }

    /// With a description.
    pub const fn about(self, description: &'static str) -> Self {
        Self { description, ..self }
    }
}

impl Model {
    /// A record that leaves unknown fields out.
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, extra: Extra::Ignore }
    }

    /// A record that refuses unknown fields.
    pub const fn strict(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, extra: Extra::Forbid }
    }

    /// Reads a record: checks it, converts what may be converted, fills in defaults, orders fields.
    pub fn read(&self, input: &Value) -> Result<Value, Failure> {
        let mut problems = Vec::new();
        let record = self.read_at(input, "", &mut problems);
        if problems.is_empty() {
            return Ok(record);
        }
        let count = problems.len();
        let plural = if count == 1 { "" } else { "s" };
        raise(format!(
            "{count} validation error{plural} for {}\n{}",
            self.name,
            problems.join("\n")
        ))
    }

    /// Makes a record of these fields, as a constructor with keyword arguments does.
    pub fn make<const N: usize>(
        &self,
        fields: [(&'static str, Value); N],
    ) -> Result<Value, Failure> {
        self.read(&Value::dict(fields))
    }

    /// The record with nothing but defaults.
    pub fn with_defaults(&self) -> Result<Value, Failure> {
        self.read(&Value::empty_dict())
    }
}
