//! The task router: who does what is asked, decided point by point.
//!
//! ```text
//! request ─▶ clear? ─▶ steps? ─▶ local / remote / reject ─▶ which tool ─▶ answer
//!              │          │              │
//!            user     plan: steps    other agent ─▶ asks back? ─▶ known here, or the user
//!                     side by side       └─ fails? ─▶ again, another, local, another plan
//! ```
//!
//! Every decision is a structure that a model fills in, is journalled as a note with who made it,
//! and has a safe default. The router is a behaviour: a killed agent goes on where it was.

mod command;
mod decision;
mod prompt;
mod quote;
mod state;
mod verdict;
mod work;

use std::sync::Arc;

use duologue_core::{
    Ask, Behavior, ChildTurn, Effect, Entry, Latest, Message, Outcome, Part, Role, RunState, Step,
    ToolCall, ToolSpec,
};
use serde_json::{Value, json};

pub(super) use self::prompt::Peer;
use self::{
    decision::Point,
    state::{Action, Phase, Routing, call_ids},
    work::Work,
};
use super::tools::HUMAN_INPUT;
use crate::{
    client::{ANSWERS, ASK_CREDENTIALS, Asks},
    task::delegation,
};

/// The topic of notes about decisions.
pub(crate) const DECISION: &str = "decision";
/// The topic of notes about tasks that were given to other agents.
pub(crate) const DELEGATED: &str = "delegated";
/// The function that tells who else there is.
pub(super) const KNOWN: &str = "known_agents";
/// The function that calls off what waits elsewhere.
pub(super) const CALL_OFF: &str = "call_off_delegated";
/// The tool whose approval is the user's yes to something risky.
pub(super) const CONFIRM: &str = "confirm_action";

/// Which of the router's experimental decisions are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Ask back when a request is vague.
    pub clarification: bool,
    /// Work on requests of several parts in steps.
    pub decomposition: bool,
    /// Look for a way out when another agent fails.
    pub recovery: bool,
    /// Ask for a yes before something risky is done.
    pub confirmation: bool,
}

/// The tools that decisions and commands may name.
#[derive(Clone, Debug)]
pub(super) struct Tools(Vec<Arc<ToolSpec>>);

impl Tools {
    pub(super) fn new(specs: Vec<Arc<ToolSpec>>) -> Self {
        Self(specs)
    }

    fn offered(&self, name: &str) -> Option<&ToolSpec> {
        self.0.iter().find(|spec| spec.name == name).map(|spec| &**spec)
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|spec| spec.name.clone()).collect()
    }

    fn has_effects(&self, name: &str) -> bool {
        self.offered(name).is_some_and(|spec| spec.effect != Effect::Pure)
    }

    fn specs(&self) -> Vec<&ToolSpec> {
        self.0.iter().map(|spec| &**spec).collect()
    }
}

/// The behaviour.
pub(super) struct TaskRouter {
    settings: Settings,
    tools: Tools,
}

impl TaskRouter {
    pub(super) fn new(settings: Settings, tools: Tools) -> Self {
        Self { settings, tools }
    }
}

impl Behavior for TaskRouter {
    type State = Routing;

    fn name(&self) -> &'static str {
        "bidirectional"
    }

    fn fold(&self, state: &mut Routing, entry: &Entry) {
        state.fold(&self.settings, &self.tools, entry);
    }

    fn decide(&self, run: &RunState, state: &Routing) -> Step {
        if let Some(decision) = state.due.front() {
            return Step::Note { topic: DECISION.to_owned(), data: decision.clone() };
        }
        // Side by side work is one step, however many answers come of it.
        let is_at_work = matches!(state.phase, Phase::Work)
            && state.work.as_ref().is_some_and(|work| work.ready().next().is_some());
        if let Some(task) = state.delegated.front()
            && !is_at_work
        {
            return Step::Note { topic: DELEGATED.to_owned(), data: task.clone() };
        }
        if run.latest() == Latest::Calls {
            return Step::Call;
        }
        match &state.phase {
            Phase::Idle => Step::End(Outcome::Completed),
            Phase::Survey => Step::Invoke { function: KNOWN.to_owned(), input: Value::Null },
            Phase::Decide(point) => self.ask(*point, run, state),
            Phase::Risk(_) => self.ask(Point::Risk, run, state),
            Phase::Clarify(question) => {
                call(state, call_ids::CLARIFY, HUMAN_INPUT, json!({ "question": question }))
            }
            Phase::Confirm(action, why) => {
                let action = described(action, state);
                call(state, call_ids::CONFIRM, CONFIRM, json!({ "action": action, "why": why }))
            }
            Phase::Tool(command, _) => {
                call(state, call_ids::TOOL, &command.tool, command.params.clone())
            }
            // The expected answer ends the task like any other.
            Phase::Llm(_) if run.is_concluded() => Step::End(Outcome::Completed),
            Phase::Llm(instruction) => answer(instruction.as_deref()),
            Phase::Work => self.work(run, state),
            Phase::Say(parts) => Step::Say(Message::new(Role::Assistant, parts.clone())),
            Phase::Done => match run.reminder() {
                Some(reminder) => Step::Ask(reminder),
                // What was said meanwhile is answered by the model, from all that is known by now.
                None if state.has_follow_up => answer(None),
                None => Step::End(Outcome::Completed),
            },
            Phase::End(outcome) => Step::End(outcome.clone()),
        }
    }

    fn farewell(&self, _: &RunState, state: &Routing) -> Option<(String, Value)> {
        let waiting: Vec<Value> = state
            .work
            .iter()
            .flat_map(Work::waiting_elsewhere)
            .map(|(agent, task)| json!({ "agent": agent, "task": task }))
            .collect();
        (!waiting.is_empty()).then(|| (CALL_OFF.to_owned(), json!(waiting)))
    }
}

impl TaskRouter {
    /// Ask the model to decide.
    fn ask(&self, point: Point, run: &RunState, state: &Routing) -> Step {
        let specs = self.tools.specs();
        let work = state.work.as_ref();
        let failed = work.and_then(|work| work.failed().map(|(step, how)| (work, step, how)));
        let text = match (point, &state.phase) {
            (Point::Clarity, _) => prompt::clarity(),
            (Point::Decomposition, _) => prompt::decomposition(&specs, &state.peers, failed),
            (Point::Route, _) => prompt::route(&specs, &state.peers),
            (Point::Tool, _) => prompt::tool(&specs),
            (Point::Risk, Phase::Risk(action)) => prompt::risk(&described(action, state)),
            (Point::Returned, _) => match work.and_then(Work::unjudged) {
                Some(step) => prompt::returned(step, &question_of(step)),
                None => return self.work(run, state),
            },
            (Point::Recovery, _) => match failed {
                Some((work, step, how)) => {
                    prompt::recovery(&specs, &state.peers, step, how, work.synthesised)
                }
                None => return self.work(run, state),
            },
            (Point::Risk, _) => return Step::End(Outcome::Completed),
        };
        let agents: Vec<&str> = state.peers.iter().map(|peer| peer.id.as_str()).collect();
        let mut extra = vec![Arc::new(Message::user(text))];
        if let Some(problem) = &state.complaint {
            extra.push(Arc::new(Message::user(prompt::misfit(point, problem))));
        }
        let ask = Ask {
            extra,
            output: Some(point.shape(&agents, &specs)),
            aside: Some(point.name().to_owned()),
            ..Ask::default()
        };
        Step::Ask(ask.without_tools())
    }

    /// The next piece of work.
    fn work(&self, run: &RunState, state: &Routing) -> Step {
        let Some(work) = &state.work else { return Step::End(Outcome::Completed) };
        let turns: Vec<ChildTurn> = work
            .ready()
            .map(|step| ChildTurn {
                key: work.key_of(step),
                input: order(run, work, step),
                expects: None,
            })
            .collect();
        if !turns.is_empty() {
            return Step::Run(turns);
        }
        if work.unjudged().is_some() {
            return self.ask(Point::Returned, run, state);
        }
        if let Some((step, question)) = work.for_human() {
            let from = step.agent.as_deref().unwrap_or("another agent");
            let question = format!("{from} asks: {question}");
            let asks = step.asks();
            let tool = if asks == Asks::Credentials { ASK_CREDENTIALS } else { HUMAN_INPUT };
            return call(state, call_ids::QUESTION, tool, asks.arguments(&question));
        }
        if let Some((_, outcome)) = work.failed() {
            if self.settings.recovery && state.may_recover() {
                return self.ask(Point::Recovery, run, state);
            }
            return Step::End(outcome.clone());
        }
        match work.results() {
            Some(_) if work.synthesised => answer(Some(&prompt::synthesis(work))),
            Some(results) => {
                let parts = results.iter().flat_map(|(_, parts)| parts.iter().cloned());
                Step::Say(Message::new(Role::Assistant, parts.collect()))
            }
            None => Step::End(Outcome::Stuck { summary: "no step can be worked on".to_owned() }),
        }
    }
}

/// Let the model answer the user.
fn answer(instruction: Option<&str>) -> Step {
    let extra = instruction.map(|text| Arc::new(Message::user(text))).into_iter().collect();
    Step::Ask(Ask { extra, ..Ask::default() }.without_tools())
}

/// Call a tool in the router's own name.
fn call(state: &Routing, purpose: &str, tool: &str, arguments: Value) -> Step {
    // Decided from the journal alone, so the same after a crash.
    let id = format!("{purpose}-{}", state.seq);
    let call = ToolCall::new(id.as_str(), tool, arguments);
    Step::Say(Message::new(Role::Assistant, vec![Part::from(call)]))
}

/// What whoever works on a step is told.
fn order(run: &RunState, work: &Work, step: &work::WorkStep) -> Message {
    let mut message = Message::new(Role::User, work.order_for(step));
    if let Some(request) = run.request() {
        delegation::carry(request, &mut message);
    }
    if matches!(step.stand, work::Stand::Asks { .. }) {
        message.metadata.insert(ANSWERS.to_owned(), Value::Bool(true));
    }
    let references = work.references(step);
    if !references.is_empty() {
        crate::task::convert::refer_to(&mut message, &references);
    }
    message
}

fn question_of(step: &work::WorkStep) -> String {
    match &step.stand {
        work::Stand::Asks { text, .. } => text.clone(),
        _ => String::new(),
    }
}

/// What is about to be done, for a model or a person.
fn described(action: &Action, state: &Routing) -> String {
    match action {
        Action::Tool(command) => format!("call {} with {}", command.tool, command.params),
        Action::Work => {
            let steps = state.work.iter().flat_map(|work| &work.steps).map(|step| {
                let who = step.agent.as_deref().unwrap_or("this agent");
                format!("{who}: {}", work::shortened(&step.task))
            });
            steps.collect::<Vec<_>>().join("\n")
        }
    }
}
