//! Scripts in files: YAML or JSON, checked to the last key.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use duologue_core::{ErrorClass, ModelError, Price, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::{Order, Rule, Scripted, Turn, TurnCall, turn::TurnArguments};

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The text is not a script.
    #[error("{origin}: {problem}")]
    Malformed {
        /// The file, or what stands for one.
        origin: String,
        /// What is wrong, and where.
        problem: String,
    },
    /// A rule's pattern is not one.
    #[error("when: {pattern:?} is not a pattern: {problem}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// A script as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileScript {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    order: FileOrder,
    #[serde(default)]
    looped: bool,
    #[serde(default)]
    price: Option<Price>,
    #[serde(default)]
    rules: Vec<FileTurn>,
    #[serde(default)]
    turns: Vec<FileTurn>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileOrder {
    #[default]
    Position,
    Calls,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileFrom {
    User,
    Tool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTurn {
    /// Rules only: what they are for.
    #[serde(default)]
    when: Option<String>,
    #[serde(default)]
    from: Option<FileFrom>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    calls: Vec<FileCall>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    stop: Option<StopReason>,
    #[serde(default)]
    error: Option<FileError>,
    #[serde(default)]
    delay_ms: Option<u64>,
    #[serde(default)]
    expect: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    arguments: Option<Value>,
    /// Arguments as the model would stream them, JSON or not.
    #[serde(default)]
    raw: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileError {
    class: ErrorClass,
    #[serde(default)]
    message: String,
    #[serde(default)]
    retry_after_ms: Option<u64>,
}

impl Scripted {
    /// The script in a file, JSON if its name ends so and YAML otherwise. It is by position.
    ///
    /// ```yaml
    /// name: demo                  # the model is then scripted/demo
    /// rules:                      # tried first; the first that fits wins
    ///   - when: '/what is (.+)\?/i' # a text, or an expression between slashes
    ///     from: user              # or tool; leave it out for both, and for what an agent is told
    ///                             # besides the conversation, such as its TODO list
    ///     reasoning: I should calculate that.
    ///     calls: [{ name: calculator, arguments: { expression: $1 } }]
    ///   - when: ''                # fits everything
    ///     tool: calculator        # results of this tool only
    ///     text: There you are.
    /// turns:                      # one for each answer, when no rule fits
    ///   - error: { class: rate_limited, message: slow down, retry_after_ms: 100 }
    ///   - text: Hello.
    ///     expect: hi              # the last message must contain it
    ///     delay_ms: 20            # before every word
    ///     usage: { input_tokens: 10, output_tokens: 2 }
    ///   - calls: [{ name: echo, raw: '{"text": ' }] # what is not JSON
    /// looped: false               # begin again after the last turn
    /// order: position             # or calls
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ScriptError::Unreadable { path: path.to_owned(), error })?;
        let origin = path.display().to_string();
        let script = if path.extension().is_some_and(|ext| ext == "json") {
            serde_json::from_str(&text).map_err(|error| malformed(&origin, &error))?
        } else {
            read_yaml(&origin, &text)?
        };
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        script_of(script, &origin, &stem.unwrap_or_default())
    }

    /// The script in a text of YAML, which JSON is too. `name` is what it is called unless it says.
    pub fn from_yaml(name: &str, text: &str) -> Result<Self, ScriptError> {
        script_of(read_yaml(name, text)?, name, name)
    }
}

fn read_yaml(origin: &str, text: &str) -> Result<FileScript, ScriptError> {
    serde_saphyr::from_str(text).map_err(|error| malformed(origin, &error))
}

fn malformed(origin: &str, problem: &impl ToString) -> ScriptError {
    ScriptError::Malformed { origin: origin.to_owned(), problem: problem.to_string() }
}

fn script_of(script: FileScript, origin: &str, name: &str) -> Result<Scripted, ScriptError> {
    let wrong = |problem: String| malformed(origin, &problem);
    let mut turns = Vec::new();
    for (at, turn) in script.turns.into_iter().enumerate() {
        if turn.when.is_some() || turn.from.is_some() || turn.tool.is_some() {
            let problem = "`when`, `from` and `tool` belong to rules";
            return Err(wrong(format!("turns[{at}]: {problem}")));
        }
        turns.push(turn_of(turn).map_err(|problem| wrong(format!("turns[{at}]: {problem}")))?);
    }
    let order = match script.order {
        FileOrder::Position => Order::Position,
        FileOrder::Calls => Order::Calls,
    };
    if turns.is_empty() && script.rules.is_empty() {
        return Err(wrong("a script needs turns or rules".to_owned()));
    }
    let mut model =
        Scripted::with_order(turns, order).named(script.name.as_deref().unwrap_or(name));
    model.is_looped = script.looped;
    model.price = script.price;
    for (at, rule) in script.rules.into_iter().enumerate() {
        let rule = rule_of(rule).map_err(|problem| wrong(format!("rules[{at}]: {problem}")))?;
        model.rules.push(rule);
    }
    Ok(model)
}

fn rule_of(mut rule: FileTurn) -> Result<Rule, String> {
    let (from, tool) = (rule.from.take(), rule.tool.take());
    let when = rule.when.take().ok_or("a rule needs a `when`")?;
    let made = Rule::new(&when, turn_of(rule)?).map_err(|error| error.to_string())?;
    Ok(match (from, tool) {
        (Some(FileFrom::User), Some(_)) => {
            return Err("a rule is from the user or from a tool, not both".to_owned());
        }
        (_, Some(tool)) => made.from_tool(tool),
        (Some(FileFrom::User), None) => made.from_user(),
        (Some(FileFrom::Tool), None) => made.from_tools(),
        (None, None) => made,
    })
}

fn turn_of(turn: FileTurn) -> Result<Turn, String> {
    let calls = turn.calls.into_iter().map(call_of).collect::<Result<Vec<_>, _>>()?;
    if turn.text.is_none() && turn.reasoning.is_none() && calls.is_empty() && turn.error.is_none() {
        return Err("a turn needs a text, a reasoning, calls or an error".to_owned());
    }
    Ok(Turn {
        text: turn.text,
        reasoning: turn.reasoning,
        calls,
        usage: turn.usage,
        stop: turn.stop,
        error: turn.error.map(|error| {
            let mut made = ModelError::new(error.class, error.message);
            made.retry_after = error.retry_after_ms.map(Duration::from_millis);
            made
        }),
        delay: turn.delay_ms.map(Duration::from_millis),
        expect: turn.expect,
    })
}

fn call_of(call: FileCall) -> Result<TurnCall, String> {
    let arguments = match (call.arguments, call.raw) {
        (Some(_), Some(_)) => {
            return Err(format!("the call of {} has both arguments and raw", call.name));
        }
        (Some(value), None) => TurnArguments::Value(value),
        (None, Some(text)) => TurnArguments::Raw(text),
        (None, None) => TurnArguments::Value(Value::Object(serde_json::Map::new())),
    };
    Ok(TurnCall { id: call.id, name: call.name, arguments })
}
