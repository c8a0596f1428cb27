//! A tool called by hand: through permissions, approvals and the journal like any other call.

use duologue_core::{
    Agent, Behavior, Entry, Event, Latest, Message, Outcome, Part, Role, RunState, Step, ToolCall,
};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// What such a conversation's agent is called.
pub(super) const NAME: &str = "tool";

/// An agent that calls the tool which a request names, and nothing else.
pub(super) fn caller_of(agent: &Agent) -> Agent {
    Agent::builder(NAME, OneCall)
        .tools(agent.tools().clone())
        .policy(agent.policy().clone())
        .build()
}

/// The request for a call: `NAME` or `NAME {…}`.
pub(super) fn request(words: &str) -> Result<Message, Failure> {
    let (name, arguments) = split(words);
    if name.is_empty() {
        return Err(Failure::usage("say which tool: :tool NAME {\"argument\": …}"));
    }
    read(arguments).map_err(|why| Failure::usage(format!("the arguments of {name}: {why}")))?;
    Ok(Message::user(words))
}

fn split(words: &str) -> (&str, &str) {
    let words = words.trim();
    words.split_once(char::is_whitespace).map_or((words, ""), |(name, rest)| (name, rest.trim()))
}

fn read(arguments: &str) -> Result<Value, String> {
    if arguments.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str(arguments) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("they must be an object, such as {\"format\": \"simple\"}".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

struct OneCall;

impl Behavior for OneCall {
    /// Whether the call has its result.
    type State = bool;

    fn name(&self) -> &'static str {
        NAME
    }

    fn fold(&self, done: &mut bool, entry: &Entry) {
        match entry.event {
            Event::UserRequest { .. } => *done = false,
            Event::ToolEnded { .. } => *done = true,
            _ => {}
        }
    }

    fn decide(&self, run: &RunState, done: &bool) -> Step {
        if run.latest() == Latest::Calls {
            return Step::Call;
        }
        let Some(request) = run.request().filter(|_| !done) else {
            return Step::End(Outcome::Completed);
        };
        let text = request.text();
        let (name, arguments) = split(&text);
        match read(arguments) {
            Ok(arguments) => {
                let id = format!("call-{}", request.id);
                let call = ToolCall::new(id.as_str(), name, arguments);
                Step::Say(Message::new(Role::Assistant, vec![Part::from(call)]))
            }
            Err(reason) => Step::End(Outcome::Impossible { reason }),
        }
    }
}
