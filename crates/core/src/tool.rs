//! Tools: what an agent can do besides talking.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{CallId, Part, SessionId};

/// What running a tool does to the world. It decides what happens to a call that was running when
/// the process died, and what runs in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing: it only looks. Runs again after a crash.
    Pure,
    /// The same as running it once, if it is given the same key. Runs again after a crash with
    /// that key.
    Idempotent,
    /// Something that must not happen twice by accident. Never repeated after a crash.
    SideEffect,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::SideEffect => "side effect",
        })
    }
}

/// Who carries a tool's calls out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// The tool's own code.
    #[default]
    Local,
    /// A person, who is asked a question.
    Human,
    /// Somebody outside, such as the environment of a benchmark.
    External,
}

/// How far a tool's effects can go. Permissions and the guard against untrusted text look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The conversation, or files inside the workspace folder.
    Workspace,
    /// Anything on this machine.
    #[default]
    Machine,
    /// Other machines.
    Network,
}

/// Who wrote what a tool gives back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authors {
    /// This program, or the person whose machine it is.
    #[default]
    Known,
    /// Anybody, such as the authors of a web page. A session that read it is tainted: what it
    /// wants to send elsewhere may be their wish and not its person's.
    Strangers,
}

/// What one call would do, as the tool itself sees it at that moment. [`Policy::verdict`] decides
/// by it.
///
/// [`Policy::verdict`]: crate::Policy::verdict
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Risk {
    /// What the spec says: its effect and its reach.
    #[default]
    AsDeclared,
    /// Nothing beyond what the tool's owner allowed beforehand.
    Harmless,
    /// Something that a person should know of, at a place that was allowed beforehand.
    Grave {
        /// What, as the end of "it asks because …".
        reason: String,
    },
    /// It sends something to a place that nobody allowed beforehand.
    SendsTo {
        /// Where to.
        target: String,
    },
}

/// What a tool says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name, as models call it.
    pub name: String,
    /// What it does and when to use it, for a model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// What running it does.
    pub effect: Effect,
    /// How far that can go.
    #[serde(default)]
    pub reach: Reach,
    /// Who runs it.
    #[serde(default)]
    pub execution: Execution,
    /// Who wrote what it gives back.
    #[serde(default)]
    pub authors: Authors,
    /// How long one call may take.
    pub timeout: Duration,
}

impl ToolSpec {
    /// How long a call may take unless the tool says otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

    /// A tool that runs here, without effects, with the usual timeout.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
            effect: Effect::Pure,
            reach: Reach::Machine,
            execution: Execution::Local,
            authors: Authors::Known,
            timeout: Self::DEFAULT_TIMEOUT,
        }
    }
}

/// Something that an agent can call.
///
/// Most tools are one call of [`tool`]; implement the trait for what that cannot say.
pub trait Tool: Send + Sync {
    /// What it says about itself.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Whether the arguments fit, before anything runs. The error is for the model, which may try
    /// again: say what is wrong and where.
    fn check(&self, arguments: &Value) -> Result<(), String>;

    /// What a call with these arguments would do, where that depends on more than the tool. It is
    /// asked right before the permissions are, and must answer at once.
    fn risk(&self, _arguments: &Value, _session: &SessionId) -> Risk {
        Risk::AsDeclared
    }

    /// Carry out a call whose arguments were checked.
    fn call(&self, arguments: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput>;
}

/// What a tool gives back: content, or an error that the model is told.
pub type ToolOutput = Result<Content, ToolError>;

/// What a call was made in.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The session that the call belongs to.
    pub session: SessionId,
    /// The call.
    pub call_id: CallId,
    /// The same for every try of this call, also after a crash; unique to it otherwise.
    pub idempotency_key: String,
    /// Cancelled when the turn is. Child processes must end then.
    pub cancel: CancellationToken,
    /// Reads what earlier calls of the session gave, whole.
    pub results: Arc<dyn ResultReader>,
    /// How the call asks a person something before it can go on.
    pub questions: Questions,
}

/// A call's way to ask a person something in the middle of its work.
///
/// The call ends with what [`ask`](Self::ask) gives back, and the question waits like any other,
/// also over a restart. Then the call is made again, with the [`answers`](Self::answers) so far.
///
/// ```
/// use duologue_core::{Content, Part, ToolContext, ToolOutput};
///
/// async fn book(context: ToolContext) -> ToolOutput {
///     match context.questions.answers() {
///         [] => Err(context.questions.ask("Window or aisle?", ["window", "aisle"])),
///         [Some(seat), ..] => Ok(Content(seat.clone())),
///         [None, ..] => Ok("Not booked: they would not say.".into()),
///     }
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Questions {
    answers: Arc<[Option<Vec<Part>>]>,
    asked: Arc<Mutex<Option<Question>>>,
}

/// What a call asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) choices: Vec<String>,
}

impl Questions {
    pub(crate) fn answered(answers: Arc<[Option<Vec<Part>>]>) -> Self {
        Self { answers, asked: Arc::default() }
    }

    /// The place of a call that was asked these things before, for whoever makes calls without a
    /// session.
    pub fn with_answers(answers: Vec<Option<Vec<Part>>>) -> Self {
        Self::answered(answers.into())
    }

    /// What the call asked last and was not taken yet, with the choices.
    pub fn asked(&self) -> Option<(String, Vec<String>)> {
        self.take().map(|Question { text, choices }| (text, choices))
    }

    /// What the questions of this call were answered so far, in order; `None` where the person
    /// would not say.
    pub fn answers(&self) -> &[Option<Vec<Part>>] {
        &self.answers
    }

    /// Ask. The call must end with the error that this gives.
    pub fn ask<C: Into<String>>(
        &self,
        text: impl Into<String>,
        choices: impl IntoIterator<Item = C>,
    ) -> ToolError {
        let text = text.into();
        let error = ToolError(format!("nobody was asked: {text}"));
        let choices = choices.into_iter().map(Into::into).collect();
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Question { text, choices });
        error
    }

    pub(crate) fn take(&self) -> Option<Question> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Finds what an earlier call gave, as the journal has it.
pub trait ResultReader: Send + Sync + fmt::Debug {
    /// The result's text, whole, or `None` if there is no such call.
    fn result_text(&self, call: CallId) -> BoxFuture<'static, Option<String>>;
}

/// What a tool produced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content(pub Vec<Part>);

/// Why a tool failed, in words that the model can act on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl ToolError {
    /// An error with its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<std::io::Error> for ToolError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self(vec![Part::text(text)])
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self(vec![Part::text(text)])
    }
}

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        Self(vec![Part::Data { value }])
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self(parts)
    }
}

/// A tool from a function, the short way to write one.
///
/// The arguments are a type that derives `Deserialize` and `JsonSchema`; its doc comments are what
/// the model reads about each of them.
///
/// ```
/// use duologue_core::{Effect, tool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     /// The first summand.
///     a: f64,
///     /// The second.
///     b: f64,
/// }
///
/// let add = tool("add", "Adds two numbers.", Effect::Pure, |args: Add, _| async move {
///     Ok((args.a + args.b).to_string())
/// });
/// ```
pub fn tool<A, F, Fut, C>(
    name: impl Into<String>,
    description: impl Into<String>,
    effect: Effect,
    function: F,
) -> FunctionTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<C, ToolError>> + Send,
    C: Into<Content>,
{
    let mut spec = ToolSpec::new(name, description, parameters_of::<A>());
    spec.effect = effect;
    FunctionTool { spec: Arc::new(spec), function, arguments: std::marker::PhantomData }
}

/// The JSON Schema of a type, as tools declare their parameters.
pub fn parameters_of<A: JsonSchema>() -> Value {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("title");
        fields.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    shorten(&mut schema);
    schema
}

/// Leave out what costs tokens and tells a model nothing: formats of Rust's numbers, defaults that
/// are null, and null beside the type of an argument that may be left out anyway.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_number_format = |format: &str| {
                ["int", "uint", "float", "double"].iter().any(|kind| format.starts_with(kind))
            };
            if fields.get("format").and_then(Value::as_str).is_some_and(is_number_format) {
                fields.remove("format");
            }
            if fields.get("default") == Some(&Value::Null) {
                fields.remove("default");
            }
            let only_type = match fields.get("type").and_then(Value::as_array).map(Vec::as_slice) {
                Some([one, Value::String(null)]) if null == "null" => Some(one.clone()),
                _ => None,
            };
            if let Some(one) = only_type {
                fields.insert("type".into(), one);
            }
            fields.values_mut().for_each(shorten);
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// A tool made from a function by [`tool`].
pub struct FunctionTool<A, F> {
    spec: Arc<ToolSpec>,
    function: F,
    arguments: std::marker::PhantomData<fn(A)>,
}

impl<A, F> FunctionTool<A, F> {
    /// The same tool with another timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        Arc::make_mut(&mut self.spec).timeout = timeout;
        self
    }

    /// The same tool with another reach.
    #[must_use]
    pub fn reach(mut self, reach: Reach) -> Self {
        Arc::make_mut(&mut self.spec).reach = reach;
        self
    }

    /// The same tool, whose results others wrote.
    #[must_use]
    pub fn authors(mut self, authors: Authors) -> Self {
        Arc::make_mut(&mut self.spec).authors = authors;
        self
    }

    /// The same tool, carried out by somebody else: its function is never called.
    #[must_use]
    pub fn execution(mut self, execution: Execution) -> Self {
        Arc::make_mut(&mut self.spec).execution = execution;
        self
    }
}

impl<A, F, Fut, C> Tool for FunctionTool<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<C, ToolError>> + Send,
    C: Into<Content>,
{
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        read_arguments::<A>(arguments).map(|_| ())
    }

    fn call(&self, arguments: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let arguments = read_arguments::<A>(&arguments).map_err(ToolError)?;
            (self.function)(arguments, context).await.map(Into::into)
        })
    }
}

pub(crate) fn read_arguments<A: DeserializeOwned>(arguments: &Value) -> Result<A, String> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let path = error.path().to_string();
        if path == "." {
            error.into_inner().to_string()
        } else {
            format!("{path}: {}", error.inner())
        }
    })
}

/// The tools of an agent, by name, in the order they were added.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    specs: Arc<[Arc<ToolSpec>]>,
}

impl Toolbox {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same box with one more tool. A tool of the same name is replaced.
    #[must_use]
    pub fn with(self, tool: impl Tool + 'static) -> Self {
        self.with_shared(Arc::new(tool))
    }

    /// The same box with one more shared tool. A tool of the same name is replaced.
    #[must_use]
    pub fn with_shared(mut self, tool: Arc<dyn Tool>) -> Self {
        let name = tool.spec().name.clone();
        match self.tools.iter_mut().find(|other| other.spec().name == name) {
            Some(place) => *place = tool,
            None => self.tools.push(tool),
        }
        self.specs = self.tools.iter().map(|tool| Arc::clone(tool.spec())).collect();
        self
    }

    /// The tool of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// All tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// What all tools say about themselves, shared.
    pub fn specs(&self) -> &Arc<[Arc<ToolSpec>]> {
        &self.specs
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs.iter().map(|spec| &spec.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Page {
        /// Which file.
        path: String,
        /// From which line.
        #[serde(default)]
        offset: Option<u32>,
    }

    #[test]
    fn a_schema_says_what_a_model_needs_and_no_more() {
        let expected = json!({
            "type": "object",
            "properties": {
                "path": { "description": "Which file.", "type": "string" },
                "offset": { "description": "From which line.", "type": "integer", "minimum": 0 },
            },
            "required": ["path"],
        });
        assert_eq!(parameters_of::<Page>(), expected);
    }

    #[test]
    fn arguments_that_do_not_fit_are_told_with_their_place() {
        let read = tool("read", "", Effect::Pure, |_: Page, _| async { Ok("") });
        let wrong = json!({"path": "x", "offset": "one"});
        let error = read.check(&wrong).unwrap_err();
        assert!(error.starts_with("offset: invalid type: string \"one\""), "{error}");
        assert_eq!(read.check(&json!({"path": "x", "offset": null})), Ok(()));
    }
}
