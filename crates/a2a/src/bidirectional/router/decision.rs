//! What a model decides for the router, and the shapes in which it must say so.
//!
//! An answer that does not fit is given back once with what is wrong; then the safe default is taken.
//! Nothing is read out of prose.
//!
//! What a decision rests on comes before the verdict: a small model that has to say it decides better
//! than one that begins with its verdict. Clarity is the exception: asked for what is missing, it finds
//! something missing in everything.

use duologue_core::{OutputSchema, ToolSpec, parameters_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How often an answer that does not fit is asked for in all.
pub(super) const MOST_TRIES: u32 = 2;

/// Where the router asks a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// Is the request clear enough to be worked on?
    Clarity,
    /// Does it take several steps, and which?
    Decomposition,
    /// Who does it: this agent, another one, nobody?
    Route,
    /// Which tool of this agent, with what?
    Tool,
    /// Must somebody say yes first?
    Risk,
    /// Another agent asks something: is the answer known here?
    Returned,
    /// A step failed: what now?
    Recovery,
}

impl Point {
    const ALL: [Self; 7] = [
        Self::Clarity,
        Self::Decomposition,
        Self::Route,
        Self::Tool,
        Self::Risk,
        Self::Returned,
        Self::Recovery,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Clarity => "clarity",
            Self::Decomposition => "decomposition",
            Self::Route => "route",
            Self::Tool => "tool",
            Self::Risk => "risk",
            Self::Returned => "returned",
            Self::Recovery => "recovery",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.name() == name)
    }

    /// The shape of its answer.
    pub(super) fn shape(self, agents: &[&str], tools: &[&ToolSpec]) -> OutputSchema {
        let mut schema = match self {
            Self::Clarity => parameters_of::<Clarity>(),
            Self::Decomposition => parameters_of::<Decomposition>(),
            Self::Route => parameters_of::<Route>(),
            Self::Tool => tool_shape(tools),
            Self::Risk => parameters_of::<Risk>(),
            Self::Returned => parameters_of::<Returned>(),
            Self::Recovery => parameters_of::<Recovery>(),
        };
        if self == Self::Route {
            name_routes(&mut schema, agents);
        }
        if self != Self::Tool {
            name_agents(&mut schema, agents);
            return OutputSchema::strict(self.name(), schema);
        }
        OutputSchema { name: self.name().to_owned(), schema: schema.into() }
    }
}

/// Is the request clear enough?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Clarity {
    /// Whether the request can be worked on as it is. Only what cannot be guessed sensibly makes it
    /// unclear.
    pub(super) is_clear: bool,
    /// The one question whose answer makes it clear; empty if it is.
    #[serde(default)]
    pub(super) question: String,
}

/// Does it take several steps?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Decomposition {
    /// The different results that are asked for, a few words each.
    #[serde(default)]
    pub(super) results: Vec<String>,
    /// Whether the request has parts that are best done separately.
    pub(super) needs_steps: bool,
    /// The steps, at most 5; none if it is one piece of work.
    #[serde(default)]
    pub(super) steps: Vec<PlannedStep>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct PlannedStep {
    /// Its number, from 1.
    pub(super) id: u32,
    /// What is to be done, in words that need nothing else to be understood.
    pub(super) task: String,
    /// The id of the agent that does it; empty for this agent.
    #[serde(default)]
    pub(super) agent: String,
    /// The numbers of the steps whose results it needs.
    #[serde(default)]
    pub(super) after: Vec<u32>,
}

/// Who does it?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Route {
    /// What is asked for, in a few words.
    #[serde(default)]
    pub(super) asked_for: String,
    /// Who of the list is there for that, in one sentence; for `reject`, why not, in words for the
    /// user.
    #[serde(default)]
    pub(super) reason: String,
    /// `local` for this agent, `remote:` and an id for another one, `reject` for what must not or
    /// cannot be done.
    pub(super) route: String,
    /// The other agent's id, where the route is only `remote`.
    #[serde(default)]
    #[schemars(skip)]
    pub(super) agent: String,
}

/// What a route means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RouteKind {
    Local,
    /// The agent of this id, if there is one.
    Remote(String),
    Reject,
}

impl Route {
    pub(super) fn kind(&self) -> Result<RouteKind, String> {
        match (self.route.trim(), self.route.trim().split_once(':')) {
            ("local", _) => Ok(RouteKind::Local),
            ("reject", _) => Ok(RouteKind::Reject),
            ("remote", _) => Ok(RouteKind::Remote(self.agent.clone())),
            (_, Some(("remote", id))) => Ok(RouteKind::Remote(id.trim().to_owned())),
            (other, _) => Err(format!("there is no route {other:?}")),
        }
    }
}

/// Which tool?
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct ToolDecision {
    pub(super) tool_name: String,
    #[serde(default)]
    pub(super) params: Value,
}

/// Must somebody say yes first?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Risk {
    /// Whether the action deletes, pays, sends or publishes something, or cannot be undone.
    pub(super) is_risky: bool,
    /// What could go wrong, in one sentence for the user; empty if it is not risky.
    #[serde(default)]
    pub(super) why: String,
}

/// Is the answer known here?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Returned {
    /// The words of the conversation that answer the question, copied; empty if there are none.
    #[serde(default)]
    pub(super) words: String,
    /// `handle_directly` only if the conversation already holds the answer; otherwise
    /// `need_human_input`.
    pub(super) decision: ReturnedKind,
    /// The answer to the question, from the conversation; empty if the user must be asked.
    #[serde(default)]
    pub(super) answer: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReturnedKind {
    HandleDirectly,
    NeedHumanInput,
}

/// What now?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Recovery {
    /// Why it went wrong, in one sentence.
    #[serde(default)]
    pub(super) cause: String,
    /// `retry` for what may work the second time, `another_agent` if one can do the same, `local`
    /// if this agent can, `replan` if the plan itself is wrong, `give_up` if nothing helps.
    pub(super) action: RecoveryKind,
    /// The other agent's id; empty unless the action is `another_agent`.
    #[serde(default)]
    pub(super) agent: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecoveryKind {
    Retry,
    AnotherAgent,
    Local,
    Replan,
    GiveUp,
}

/// A tool's name and arguments that fit one of the tools.
fn tool_shape(tools: &[&ToolSpec]) -> Value {
    let names: Vec<&str> = tools.iter().map(|spec| spec.name.as_str()).collect();
    let params: Vec<&Value> = tools.iter().map(|spec| &spec.parameters).collect();
    json!({
        "type": "object",
        "properties": {
            "tool_name": { "type": "string", "enum": names },
            "params": { "anyOf": params },
        },
        "required": ["tool_name", "params"],
        "additionalProperties": false,
    })
}

/// Let `route` be one that there is.
fn name_routes(schema: &mut Value, agents: &[&str]) {
    if let Some(Value::Object(route)) = schema.pointer_mut("/properties/route") {
        let remote = agents.iter().map(|agent| format!("remote:{agent}"));
        let all: Vec<String> = remote.chain(["local".to_owned(), "reject".to_owned()]).collect();
        route.insert("enum".to_owned(), all.into());
    }
}

/// Let `agent` name these agents, or none.
fn name_agents(schema: &mut Value, agents: &[&str]) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(agent)) =
                fields.get_mut("properties").and_then(|properties| properties.get_mut("agent"))
            {
                let names: Vec<&str> = std::iter::once("").chain(agents.iter().copied()).collect();
                agent.insert("enum".to_owned(), names.into());
            }
            fields.values_mut().for_each(|value| name_agents(value, agents));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_agents(item, agents)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_name_the_agents_and_ask_for_every_field() {
        let shape = Point::Route.shape(&["weather"], &[]);
        let routes = &shape.schema["properties"]["route"]["enum"];
        assert_eq!(*routes, json!(["remote:weather", "local", "reject"]));
        assert_eq!(shape.schema["required"], json!(["asked_for", "reason", "route"]));
        let plan = Point::Decomposition.shape(&["weather"], &[]);
        let step = &plan.schema["properties"]["steps"]["items"];
        assert_eq!(step["properties"]["agent"]["enum"], json!(["", "weather"]));
        assert_eq!(step["additionalProperties"], false);
    }

    #[test]
    fn every_point_is_found_by_its_name() {
        for point in Point::ALL {
            assert_eq!(Point::named(point.name()), Some(point));
        }
    }

    #[test]
    fn prose_is_no_decision() {
        assert!(OutputSchema::read::<Route>("REMOTE: weather").is_err());
        let fenced = "```json\n{\"route\": \"local\"}\n```";
        assert_eq!(OutputSchema::read::<Route>(fenced).unwrap().kind(), Ok(RouteKind::Local));
    }

    #[test]
    fn a_route_names_the_agent_with_it_or_beside_it() {
        let kind = |text: &str| OutputSchema::read::<Route>(text).and_then(|route| route.kind());
        let weather = Ok(RouteKind::Remote("weather".to_owned()));
        assert_eq!(kind(r#"{"route": "remote:weather"}"#), weather);
        assert_eq!(kind(r#"{"route": "remote", "agent": "weather"}"#), weather);
        assert_eq!(kind(r#"{"route": "reject", "reason": "no"}"#), Ok(RouteKind::Reject));
        assert!(kind(r#"{"route": "elsewhere"}"#).is_err());
    }
}
