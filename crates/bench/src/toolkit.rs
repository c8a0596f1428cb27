//! Tools as tables: names, parameters, kinds, and the functions behind them.

use std::ops::Index;

use serde_json::{Value as Json, json};

use crate::{
    Failure, Value, World,
    python::{self, Layout, dumps},
    raise,
    schema::{self, Field},
};

/// The function behind a tool.
pub type Run = fn(&mut World, &Args) -> Result<Reply, Failure>;

/// One function of one side of an environment.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does, in general.
    pub kind: Kind,
    /// Whether calling it again is part of a replay.
    pub mutates: bool,
    /// Who may see and call it.
    pub access: Access,
    /// What a model is told about it.
    pub description: &'static str,
    /// Its parameters.
    pub params: &'static [Field],
    /// The function.
    pub run: Run,
}

/// What a tool does, in general.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Looks something up.
    Read,
    /// Changes something.
    Write,
    /// Only thinks.
    Think,
    /// Anything else.
    Generic,
}

/// Who may see and call a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is shown to the model.
    Shown,
    /// It is not shown, and can be called by who knows of it.
    Discoverable,
    /// No tool: only initial states and assertions call it.
    Internal,
}

/// The tools of one side of an environment.
#[derive(Clone, Debug)]
pub struct Toolkit {
    /// The name that errors tell.
    pub class: &'static str,
    /// The tools, in their order.
    pub tools: Vec<&'static Tool>,
}

/// The arguments of a call, complete with defaults.
#[derive(Clone, Debug)]
pub struct Args(Vec<(&'static str, Value)>);

/// What a function returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A plain value. A text is sent as it is; numbers in anything else are sent as texts.
    Plain(Value),
    /// A record: numbers in it stay numbers.
    Model(Value),
    /// Several.
    List(Vec<Reply>),
    /// Several with names.
    Dict(Vec<(&'static str, Reply)>),
}

const fn tool(
    name: &'static str,
    kind: Kind,
    description: &'static str,
    params: &'static [Field],
    run: Run,
) -> Tool {
    let mutates = matches!(kind, Kind::Write);
    Tool { name, kind, mutates, access: Access::Shown, description, params, run }
}

/// A tool that looks something up.
pub const fn read(
    name: &'static str,
    description: &'static str,
    params: &'static [Field],
    run: Run,
) -> Tool {
    tool(name, Kind::Read, description, params, run)
}

/// A tool that changes something.
pub const fn write(
    name: &'static str,
    description: &'static str,
    params: &'static [Field],
    run: Run,
) -> Tool {
    tool(name, Kind::Write, description, params, run)
}

/// A tool of another kind.
pub const fn generic(
    name: &'static str,
    description: &'static str,
    params: &'static [Field],
    run: Run,
) -> Tool {
    tool(name, Kind::Generic, description, params, run)
}

/// A function that is no tool.
pub const fn internal(name: &'static str, params: &'static [Field], run: Run) -> Tool {
    Tool { access: Access::Internal, ..tool(name, Kind::Write, "", params, run) }
}

impl Tool {
    /// The same, but not shown.
    pub const fn discoverable(self) -> Self {
        Self { access: Access::Discoverable, ..self }
    }

    /// The same, saying otherwise than its kind whether it belongs to a replay.
    pub const fn mutating(self, mutates: bool) -> Self {
        Self { mutates, ..self }
    }

    /// The schema that a model is shown.
    pub fn schema(&self) -> Json {
        json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": schema::parameters(self.params),
            },
        })
    }

    /// Fills in defaults; too many or too few arguments are Python's `TypeError`.
    pub fn bind(&self, class: &str, arguments: &Value) -> Result<Args, Failure> {
        for (key, _) in arguments.entries() {
            if self.params.iter().all(|param| param.name != &**key) {
                return raise(format!(
                    "{class}.{}() got an unexpected keyword argument '{key}'",
                    self.name
                ));
            }
        }
        let mut missing = Vec::new();
        let mut values = Vec::with_capacity(self.params.len());
        for param in self.params {
            let given = arguments.entry(param.name).cloned();
            match given.or_else(|| param.default.value(&param.ty)) {
                Some(value) => values.push((param.name, value)),
                None => missing.push(format!("'{}'", param.name)),
            }
        }
        match missing.as_slice() {
            [] => Ok(Args(values)),
            [one] => raise(format!(
                "{class}.{}() missing 1 required positional argument: {one}",
                self.name
            )),
            [first @ .., last] => {
                let comma = if first.len() > 1 { "," } else { "" };
                raise(format!(
                    "{class}.{}() missing {} required positional arguments: {}{comma} and {last}",
                    self.name,
                    missing.len(),
                    first.join(", ")
                ))
            }
        }
    }
}

impl Toolkit {
    /// The tools of a table.
    pub fn new(class: &'static str, tools: &'static [Tool]) -> Self {
        Self { class, tools: tools.iter().collect() }
    }

    /// A function by name, tool or not.
    pub fn function(&self, name: &str) -> Option<&'static Tool> {
        self.tools.iter().copied().find(|tool| tool.name == name)
    }

    /// A tool by name, shown or discoverable.
    pub fn tool(&self, name: &str) -> Option<&'static Tool> {
        self.function(name).filter(|tool| tool.access != Access::Internal)
    }

    /// The tools that a model is shown.
    pub fn shown(&self) -> impl Iterator<Item = &'static Tool> {
        self.tools.iter().copied().filter(|tool| tool.access == Access::Shown)
    }

    /// Calls a tool.
    pub fn call(&self, world: &mut World, name: &str, arguments: &Value) -> Result<Reply, Failure> {
        // The reference passes arguments on as keywords, beside two names of its own.
        for taken in ["tool_name", "requestor", "self"] {
            if arguments.entry(taken).is_some() {
                return raise(format!("got multiple values for argument '{taken}'"));
            }
        }
        match self.tool(name) {
            Some(tool) => (tool.run)(world, &tool.bind(self.class, arguments)?),
            None => raise(format!("Tool '{name}' not found.")),
        }
    }

    /// Calls any function, tool or not.
    pub fn call_function(
        &self,
        world: &mut World,
        name: &str,
        arguments: &Value,
    ) -> Result<Reply, Failure> {
        match self.function(name) {
            Some(tool) => (tool.run)(world, &tool.bind(self.class, arguments)?),
            None => raise(format!("'{}' object has no attribute '{name}'", self.class)),
        }
    }
}

/// An argument by name, `None` where the function has no such parameter.
impl Index<&str> for Args {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        static NONE: Value = Value::None;
        self.0.iter().find(|(param, _)| *param == name).map_or(&NONE, |(_, value)| value)
    }
}

impl Args {
    /// An argument as text in a message, as an f-string shows it.
    pub fn shown(&self, name: &str) -> String {
        python::str_of(&self[name])
    }
}

impl Reply {
    /// The content of the tool's message.
    pub fn content(&self) -> String {
        match self {
            Self::Plain(Value::Str(text)) => text.to_string(),
            other => dumps(&other.value(), Layout::Line),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Plain(value) => spelled(value),
            Self::Model(value) => value.clone(),
            Self::List(items) => Value::list(items.iter().map(Self::value)),
            Self::Dict(entries) => entries
                .iter()
                .map(|(key, reply)| (*key, reply.value()))
                .collect::<crate::Dict>()
                .into(),
        }
    }
}

/// Numbers as texts, all the way down.
fn spelled(value: &Value) -> Value {
    match value {
        Value::None | Value::Str(_) => value.clone(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => python::repr(value).into(),
        Value::List(items) => Value::list(items.iter().map(spelled)),
        Value::Dict(dict) => dict
            .iter()
            .map(|(key, value)| (key.clone(), spelled(value)))
            .collect::<crate::Dict>()
            .into(),
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Plain(text.into())
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::Plain(text.into())
    }
}

impl From<bool> for Reply {
    fn from(truth: bool) -> Self {
        Self::Plain(truth.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Default, Type, field};

    static SAY: Tool = read(
        "say",
        "Says it.",
        &[
            field("what", Type::Str),
            field("to", Type::Str),
            field("how", Type::Str),
            field("loud", Type::Bool).or(Default::Bool(false)),
        ],
        |_, args| Ok(args.shown("what").into()),
    );

    fn bind(arguments: &str) -> String {
        let arguments = python::loads(arguments).unwrap();
        SAY.bind("Kit", &arguments).unwrap_err().to_string()
    }

    #[test]
    fn wrong_arguments_are_told_as_python_tells_them() {
        assert_eq!(bind(r#"{"x": 1}"#), "Kit.say() got an unexpected keyword argument 'x'");
        assert_eq!(
            bind(r#"{"to": "you", "how": "so"}"#),
            "Kit.say() missing 1 required positional argument: 'what'"
        );
        assert_eq!(
            bind(r#"{"how": "so"}"#),
            "Kit.say() missing 2 required positional arguments: 'what' and 'to'"
        );
        assert_eq!(
            bind("{}"),
            "Kit.say() missing 3 required positional arguments: 'what', 'to', and 'how'"
        );
    }

    #[test]
    fn numbers_are_spelled_out_but_for_those_in_records() {
        assert_eq!(Reply::from(true).content(), "\"True\"");
        assert_eq!(Reply::Plain(Value::None).content(), "null");
        let record = Value::dict([("n", 1.into()), ("x", 2.5.into())]);
        assert_eq!(Reply::Plain(record.clone()).content(), r#"{"n": "1", "x": "2.5"}"#);
        assert_eq!(Reply::List(vec![Reply::Model(record)]).content(), r#"[{"n": 1, "x": 2.5}]"#);
    }
}
