//! Tools and turns of Python that several domains share.

use crate::{
    Failure, Tool, Value, python, raise,
    schema::{Model, Type, field},
    toolkit::generic,
};

/// `calculate`, the same in airline and retail.
pub(super) const CALCULATE: Tool = generic(
    "calculate",
    "Work out an arithmetic expression.",
    &[field("expression", Type::Str)
        .about("The expression, such as '2 + 2': numbers, + - * /, parentheses and spaces only.")],
    |_, args| match &args["expression"] {
        Value::Str(expression) => Ok(python::calculate(expression)?.into()),
        other => {
            // Only a text is evaluated, but the letters of anything that has some are looked at.
            for letter in elements(other)? {
                match letter.as_str() {
                    Some(letter) if python::CALCULATED.contains(letter) => {}
                    Some(_) => return raise("Invalid characters in expression"),
                    None => {
                        let kind = python::type_name(&letter);
                        return raise(format!(
                            "'in <string>' requires string as left operand, not {kind}"
                        ));
                    }
                }
            }
            raise("eval() arg 1 must be a string, bytes or code object")
        }
    },
);

/// `transfer_to_human_agents`, the same in airline, retail and others.
pub(super) const TRANSFER: Tool = generic(
    "transfer_to_human_agents",
    "Hand the conversation over to a person, with a summary of what the user needs. Do so only \
     when the user asks for a person, or when the policy and your tools do not let you help.",
    &[field("summary", Type::Str).about("What the user needs.")],
    |_, _| Ok("Transfer successful".into()),
);

/// What `for x in value` goes through.
pub(super) fn elements(value: &Value) -> Result<Vec<Value>, Failure> {
    match value {
        Value::List(items) => Ok(items.to_vec()),
        Value::Str(text) => Ok(text.chars().map(|c| c.to_string().into()).collect()),
        Value::Dict(dict) => Ok(dict.keys().map(Value::from).collect()),
        other => not_iterable(other),
    }
}

/// `value.count(element)`.
pub(super) fn count(value: &Value, element: &Value) -> Result<usize, Failure> {
    match (value, element) {
        (Value::List(items), _) => Ok(items.iter().filter(|item| item.equals(element)).count()),
        (Value::Str(text), Value::Str(part)) => Ok(text.matches(&**part).count()),
        (other, _) => no_attribute(other, "count"),
    }
}

/// `sorted(value)`.
pub(super) fn sorted(value: &Value) -> Result<Value, Failure> {
    let mut items = elements(value)?;
    let mut failure = None;
    items.sort_by(|a, b| {
        python::compare("<", a, b).unwrap_or_else(|error| {
            failure = Some(error);
            std::cmp::Ordering::Equal
        })
    });
    failure.map_or_else(|| Ok(items.into()), Err)
}

/// A list of records that comes as a list of dictionaries. Anything else stays as it came: what
/// then happens to it depends on the tool.
pub(super) struct Records {
    /// The records, or the elements as they came.
    pub items: Vec<Value>,
    /// What came.
    pub given: Value,
    /// Whether they are records.
    pub made: bool,
}

impl Records {
    /// Makes records of dictionaries.
    pub(super) fn read(given: &Value, model: &Model) -> Result<Self, Failure> {
        let items = elements(given)?;
        if items.iter().all(|item| matches!(item, Value::Dict(_))) {
            let items = items.iter().map(|item| model.read(item)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Self { given: items.clone().into(), items, made: true });
        }
        Ok(Self { items, given: given.clone(), made: false })
    }

    /// The records; asking an element that is none for a field is Python's `AttributeError`.
    pub(super) fn with(&self, field: &str) -> Result<&[Value], Failure> {
        match self.items.first() {
            Some(first) if !self.made => no_attribute(first, field),
            _ => Ok(&self.items),
        }
    }
}

/// `'int' object has no attribute 'lower'`.
pub(super) fn no_attribute<T>(value: &Value, name: &str) -> Result<T, Failure> {
    raise(format!("'{}' object has no attribute '{name}'", python::type_name(value)))
}

/// Looks a record up by an id of any type.
pub(super) fn lookup<'a>(section: &'a Value, id: &Value) -> Option<&'a Value> {
    section.entry(id.as_str()?)
}

fn not_iterable<T>(value: &Value) -> Result<T, Failure> {
    raise(format!("'{}' object is not iterable", python::type_name(value)))
}
