//! How a task stands with the router: folded from the journal, never saved.

use std::{collections::VecDeque, sync::Arc};

use duologue_core::{
    Delivery, Entry, Event, FailureCause, Message, Outcome, Part, ToolResult, ToolStatus,
};
use serde_json::{Value, json};

use super::{
    DECISION, DELEGATED, KNOWN, Settings, Tools,
    command::{self, Command},
    decision::{
        Clarity, Decomposition, MOST_TRIES, Point, Recovery, RecoveryKind, Returned, ReturnedKind,
        Risk, Route, RouteKind, ToolDecision, read,
    },
    prompt::Peer,
    work::{Answer, Stand, Work},
};
use crate::{
    bidirectional::tools::{HUMAN_INPUT, LLM, SUMMARIZE, summary_of},
    client::{Asks, Origin},
};

/// The most questions about one request before it is worked on as it is.
const MOST_CLARIFICATIONS: u32 = 2;
/// The most ways out of failures in one task.
const MOST_RECOVERIES: u32 = 3;

/// How a task stands.
#[derive(Debug, Default)]
pub(in crate::bidirectional) struct Routing {
    pub(super) phase: Phase,
    /// The other agents, as they were when the task began.
    pub(super) peers: Vec<Peer>,
    pub(super) work: Option<Work>,
    /// What is wrong with the last answer, where it did not fit.
    pub(super) complaint: Option<String>,
    /// Decisions that are to be written down before anything else.
    pub(super) due: VecDeque<Value>,
    /// Tasks of other agents that are to be written down when nobody is at work.
    pub(super) delegated: VecDeque<Value>,
    /// Whether something was said that no answer has taken in.
    pub(super) has_follow_up: bool,
    /// The number of the last entry, for ids that are the same after a crash.
    pub(super) seq: u64,
    request: Option<Arc<Message>>,
    /// What was said besides the request: answers to questions about it.
    added: Vec<String>,
    misfits: u32,
    clarifications: u32,
    recoveries: u32,
    plans: u32,
}

/// What is to be done next.
#[derive(Clone, Debug, Default)]
pub(super) enum Phase {
    /// Nothing.
    #[default]
    Idle,
    /// Find out who else there is.
    Survey,
    /// Ask the model.
    Decide(Point),
    /// Ask the user what the request means.
    Clarify(String),
    /// Ask the model, then perhaps the user, whether this may be done.
    Risk(Action),
    Confirm(Action, String),
    /// Call a tool.
    Tool(Command, Caller),
    /// Let the model answer, with an instruction of its own if there is one.
    Llm(Option<String>),
    /// Work through the steps.
    Work,
    /// Say this as the answer.
    Say(Vec<Part>),
    /// The answer was given.
    Done,
    /// End the turn so.
    End(Outcome),
}

/// Something that may need a yes.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Tool(Command),
    Work,
}

/// Who wants a tool called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// The request itself.
    Command,
    /// A decision.
    Decision,
}

/// What a call of the router's own is for, by its id.
pub(super) mod call_ids {
    pub(in super::super) const CLARIFY: &str = "clarify";
    pub(in super::super) const CONFIRM: &str = "confirm";
    pub(in super::super) const TOOL: &str = "tool";
    pub(in super::super) const QUESTION: &str = "question";
}

impl Routing {
    pub(super) fn fold(&mut self, settings: &Settings, tools: &Tools, entry: &Entry) {
        self.seq = entry.seq;
        match &entry.event {
            Event::UserRequest { message, delivery: Delivery::Start, .. } => {
                *self = Self { seq: entry.seq, ..Self::default() };
                self.begin(tools, message);
            }
            Event::UserRequest { message, .. } => self.joined(message),
            Event::FunctionAnswered { function, output, .. } if function == KNOWN => {
                // An unreadable directory is an empty one: the task can still be done here.
                let known = output.clone().and_then(|known| serde_json::from_value(known).ok());
                self.peers = known.unwrap_or_default();
                self.phase = self.first_decision(settings);
            }
            Event::Note { topic, .. } => {
                if topic == DECISION {
                    self.due.pop_front();
                } else if topic == DELEGATED {
                    self.delegated.pop_front();
                }
            }
            Event::AgentMessage { message, aside: Some(aside), stop, .. } => {
                if stop.is_some()
                    && let Some(point) = Point::named(aside)
                {
                    self.decided(point, &message.text(), settings, tools);
                }
            }
            Event::AgentMessage { message, aside: None, stop: Some(_), .. }
                if message.tool_calls().next().is_none() =>
            {
                if matches!(self.phase, Phase::Done) {
                    self.has_follow_up = false;
                }
                self.phase = Phase::Done;
            }
            Event::ToolEnded { result, .. } => self.called(settings, result),
            Event::ChildReplied { key, outcome, message, .. } => {
                self.replied(key, outcome, message.as_deref());
            }
            _ => {}
        }
    }

    fn begin(&mut self, tools: &Tools, message: &Arc<Message>) {
        self.request = Some(Arc::clone(message));
        self.phase = match command::parse(&message.text()) {
            None => Phase::Survey,
            Some(Err(problem)) => Phase::End(Outcome::Rejected { reason: problem }),
            Some(Ok(command)) if tools.offered(&command.tool).is_some() => {
                tool_phase(command, Caller::Command)
            }
            Some(Ok(command)) => {
                let names = tools.names().join(", ");
                let reason = format!("there is no tool {} here; there are: {names}", command.tool);
                Phase::End(Outcome::Rejected { reason })
            }
        };
    }

    /// Something was said while the task is worked on. Decisions to come read it; what is decided
    /// is carried out first, and then the model answers.
    fn joined(&mut self, message: &Message) {
        let is_undecided = matches!(
            self.phase,
            Phase::Survey
                | Phase::Clarify(_)
                | Phase::Decide(Point::Clarity | Point::Decomposition | Point::Route | Point::Tool)
        );
        if is_undecided {
            self.added.push(message.text());
        } else {
            self.has_follow_up = true;
        }
    }

    fn first_decision(&self, settings: &Settings) -> Phase {
        if settings.clarification && self.clarifications < MOST_CLARIFICATIONS {
            Phase::Decide(Point::Clarity)
        } else {
            self.second_decision(settings)
        }
    }

    fn second_decision(&self, settings: &Settings) -> Phase {
        let point = if settings.decomposition { Point::Decomposition } else { Point::Route };
        Phase::Decide(point)
    }

    /// A model answered at a decision point.
    fn decided(&mut self, point: Point, text: &str, settings: &Settings, tools: &Tools) {
        let taken = match point {
            Point::Clarity => read(text).map(|answer| self.clarity(&answer, settings)),
            Point::Decomposition => {
                read(text).and_then(|answer| self.decomposition(answer, settings, tools))
            }
            Point::Route => read(text).map(|answer| self.route(answer, settings, tools)),
            Point::Tool => read(text).and_then(|answer| self.tool(answer, settings, tools)),
            Point::Risk => read(text).map(|answer| self.risk(&answer)),
            Point::Returned => read(text).map(|answer| self.returned(&answer)),
            Point::Recovery => read(text).map(|answer| self.recovery(&answer, settings)),
        };
        match taken {
            Ok(()) => {
                self.misfits = 0;
                self.complaint = None;
            }
            Err(problem) => self.misfit(point, problem, settings),
        }
    }

    /// An answer does not fit: ask again, or take the safe default.
    fn misfit(&mut self, point: Point, problem: String, settings: &Settings) {
        self.misfits += 1;
        if self.misfits < MOST_TRIES {
            self.complaint = Some(problem);
            return;
        }
        self.misfits = 0;
        self.complaint = None;
        let decision = match point {
            Point::Clarity => {
                self.phase = self.second_decision(settings);
                "clear"
            }
            Point::Decomposition => {
                self.phase = Phase::Decide(Point::Route);
                "one piece"
            }
            Point::Route | Point::Tool => {
                self.phase = Phase::Llm(None);
                "local llm"
            }
            Point::Risk => {
                let why = "It is not known whether this can be undone.";
                self.needs_yes(why.to_owned());
                "confirm"
            }
            Point::Returned => {
                self.answer_unjudged(Answer::Human);
                "human"
            }
            Point::Recovery => {
                let is_first = self.failed_tries() <= 1;
                self.recover(if is_first { RecoveryKind::Retry } else { RecoveryKind::GiveUp });
                if is_first { "retry" } else { "give up" }
            }
        };
        self.note_decision(point, decision, "default", &problem);
    }

    fn note_decision(&mut self, point: Point, decision: &str, by: &str, why: &str) {
        let note = json!({ "point": point.name(), "decision": decision, "by": by, "why": why });
        self.due.push_back(note);
    }

    fn clarity(&mut self, answer: &Clarity, settings: &Settings) {
        let question = answer.question.trim();
        if answer.is_clear || question.is_empty() {
            self.phase = self.second_decision(settings);
            self.note_decision(Point::Clarity, "clear", "model", "");
        } else {
            self.clarifications += 1;
            self.phase = Phase::Clarify(question.to_owned());
            self.note_decision(Point::Clarity, "unclear", "model", question);
        }
    }

    fn decomposition(
        &mut self,
        answer: Decomposition,
        settings: &Settings,
        tools: &Tools,
    ) -> Result<(), String> {
        // A step that is left of a failed plan is still a step.
        let fewest = if self.plans == 0 { 2 } else { 1 };
        if !answer.needs_steps || answer.steps.len() < fewest {
            self.phase = Phase::Decide(Point::Route);
            self.note_decision(Point::Decomposition, "one piece", "model", "");
            return Ok(());
        }
        let mut steps = answer.steps;
        for step in &mut steps {
            // An agent that nobody knows is this one.
            if !self.knows(&step.agent) {
                step.agent.clear();
            }
        }
        let shown = json!(steps).to_string();
        let work = Work::plan(self.plans + 1, steps)?;
        self.plans += 1;
        self.work = Some(work);
        self.note_decision(Point::Decomposition, "steps", "model", &shown);
        self.phase = self.guarded(Action::Work, settings, tools);
        Ok(())
    }

    fn route(&mut self, answer: Route, settings: &Settings, tools: &Tools) {
        match answer.route {
            RouteKind::Reject => {
                let reason = match answer.reason.trim() {
                    "" => "the agent declined this request".to_owned(),
                    reason => reason.to_owned(),
                };
                self.note_decision(Point::Route, "reject", "model", &reason);
                self.phase = Phase::End(Outcome::Rejected { reason });
            }
            RouteKind::Remote if self.knows(&answer.agent) => {
                let decision = format!("remote:{}", answer.agent);
                self.note_decision(Point::Route, &decision, "model", &answer.reason);
                self.work = Some(Work::single(0, answer.agent, self.task()));
                self.phase = self.guarded(Action::Work, settings, tools);
            }
            RouteKind::Remote => {
                let why = format!("no agent {:?} is known", answer.agent);
                self.note_decision(Point::Route, "local llm", "default", &why);
                self.phase = Phase::Llm(None);
            }
            RouteKind::Local => {
                self.note_decision(Point::Route, "local", "model", &answer.reason);
                self.phase = match tools.names().as_slice() {
                    // There is nothing to choose.
                    [] => Phase::Llm(None),
                    [only] if only == LLM => Phase::Llm(None),
                    _ => Phase::Decide(Point::Tool),
                };
            }
        }
    }

    fn tool(
        &mut self,
        answer: ToolDecision,
        settings: &Settings,
        tools: &Tools,
    ) -> Result<(), String> {
        if tools.offered(&answer.tool_name).is_none() {
            return Err(format!("there is no tool {:?}", answer.tool_name));
        }
        let params = match answer.params {
            Value::Null => json!({}),
            Value::Object(fields) => Value::Object(fields),
            _ => return Err("params is not an object".to_owned()),
        };
        self.note_decision(Point::Tool, &answer.tool_name, "model", &params.to_string());
        let command = Command { tool: answer.tool_name, params };
        self.phase = if command.tool == LLM {
            // The model reads the conversation itself, which is more than a prompt about it.
            Phase::Llm(None)
        } else {
            self.guarded(Action::Tool(command), settings, tools)
        };
        Ok(())
    }

    /// An action, with the question about its risk before it where that is asked.
    fn guarded(&self, action: Action, settings: &Settings, tools: &Tools) -> Phase {
        let may_be_risky = match &action {
            Action::Tool(command) => tools.has_effects(&command.tool),
            Action::Work => true,
        };
        if settings.confirmation && may_be_risky { Phase::Risk(action) } else { phase_of(action) }
    }

    fn risk(&mut self, answer: &Risk) {
        if answer.is_risky {
            self.note_decision(Point::Risk, "confirm", "model", &answer.why);
            self.needs_yes(answer.why.clone());
        } else {
            self.note_decision(Point::Risk, "go on", "model", "");
            if let Phase::Risk(action) = std::mem::take(&mut self.phase) {
                self.phase = phase_of(action);
            }
        }
    }

    fn needs_yes(&mut self, why: String) {
        if let Phase::Risk(action) = std::mem::take(&mut self.phase) {
            self.phase = Phase::Confirm(action, why);
        }
    }

    fn returned(&mut self, answer: &Returned) {
        let words = answer.answer.trim();
        // An answer that is none leaves it to the user.
        if answer.decision == ReturnedKind::HandleDirectly && !words.is_empty() {
            self.note_decision(Point::Returned, "handle directly", "model", words);
            self.answer_unjudged(Answer::Known(vec![Part::text(words)]));
        } else {
            self.note_decision(Point::Returned, "human", "model", "");
            self.answer_unjudged(Answer::Human);
        }
    }

    fn answer_unjudged(&mut self, with: Answer) {
        let Some(work) = &mut self.work else { return };
        let Some(id) = work.unjudged().map(|step| step.id) else { return };
        if let Some(step) = work.step_mut(id)
            && let Stand::Asks { answer, .. } = &mut step.stand
        {
            *answer = with;
        }
    }

    fn recovery(&mut self, answer: &Recovery, settings: &Settings) {
        let is_plan = self.work.as_ref().is_some_and(|work| work.synthesised);
        let failed = self.work.as_ref().and_then(|work| work.failed());
        let at = failed.and_then(|(step, _)| step.agent.clone());
        let action = match answer.action {
            // Somebody who is not there, or failed just now, is nobody else.
            RecoveryKind::AnotherAgent
                if !self.knows(&answer.agent) || at.as_ref() == Some(&answer.agent) =>
            {
                RecoveryKind::GiveUp
            }
            RecoveryKind::Replan if !is_plan || !settings.decomposition => RecoveryKind::GiveUp,
            other => other,
        };
        let name = json!(action);
        let name = name.as_str().unwrap_or_default();
        self.note_decision(Point::Recovery, name, "model", &answer.agent);
        if action == RecoveryKind::AnotherAgent
            && let Some(step) = self.failed_step()
        {
            step.agent = Some(answer.agent.clone());
        }
        self.recover(action);
    }

    fn failed_step(&mut self) -> Option<&mut super::work::WorkStep> {
        let work = self.work.as_mut()?;
        let id = work.failed()?.0.id;
        work.step_mut(id)
    }

    fn failed_tries(&mut self) -> u32 {
        self.failed_step().map_or(0, |step| step.tries)
    }

    fn recover(&mut self, action: RecoveryKind) {
        self.recoveries += 1;
        match action {
            RecoveryKind::Retry | RecoveryKind::AnotherAgent => {
                if let Some(step) = self.failed_step() {
                    step.stand = Stand::Due;
                }
            }
            RecoveryKind::Local => {
                let is_plan = self.work.as_ref().is_some_and(|work| work.synthesised);
                if !is_plan {
                    self.phase = Phase::Llm(None);
                } else if let Some(step) = self.failed_step() {
                    step.agent = None;
                    step.stand = Stand::Due;
                }
            }
            RecoveryKind::Replan => self.phase = Phase::Decide(Point::Decomposition),
            RecoveryKind::GiveUp => {
                let failed = self.work.as_ref().and_then(|work| work.failed());
                if let Some((_, outcome)) = failed {
                    self.phase = Phase::End(outcome.clone());
                }
            }
        }
    }

    /// Whether a failure may still be worked around.
    pub(super) fn may_recover(&self) -> bool {
        self.recoveries < MOST_RECOVERIES
    }

    /// A call has its result.
    fn called(&mut self, settings: &Settings, result: &ToolResult) {
        let purpose = result.call_id.as_str().split('-').next().unwrap_or_default();
        match purpose {
            call_ids::CLARIFY => {
                if result.status == ToolStatus::Ok {
                    self.added.push(words_of(result));
                    self.phase = self.first_decision(settings);
                } else {
                    // Whoever does not want to say more has it done as it is.
                    self.phase = self.second_decision(settings);
                }
            }
            call_ids::CONFIRM => {
                let phase = std::mem::take(&mut self.phase);
                self.phase = match (phase, result.status) {
                    (Phase::Confirm(action, _), ToolStatus::Ok) => phase_of(action),
                    (_, status) => {
                        let words = words_of(result);
                        let reason = format!("the action was not confirmed ({status}): {words}");
                        Phase::End(Outcome::Rejected { reason })
                    }
                };
            }
            call_ids::TOOL => self.tool_ended(result),
            call_ids::QUESTION => self.answered(result),
            _ => {}
        }
    }

    fn tool_ended(&mut self, result: &ToolResult) {
        let Phase::Tool(command, caller) = &self.phase else { return };
        self.phase = match (result.status, caller) {
            // What a person said is for the model to go on with.
            (ToolStatus::Ok, Caller::Decision) if command.tool == HUMAN_INPUT => Phase::Llm(None),
            (ToolStatus::Ok, _) => Phase::Say(result.content.clone()),
            (ToolStatus::Denied, Caller::Command) => {
                Phase::End(Outcome::Rejected { reason: words_of(result) })
            }
            (ToolStatus::Skipped | ToolStatus::Cancelled, _) => Phase::Done,
            (_, Caller::Command) => Phase::End(Outcome::Failed {
                error: format!("{}: {}", result.name, words_of(result)),
                cause: FailureCause::Internal,
            }),
            // The model reads what went wrong and answers as well as it can.
            (_, Caller::Decision) => Phase::Llm(None),
        };
    }

    /// The user answered what another agent asked.
    fn answered(&mut self, result: &ToolResult) {
        let Some(work) = &mut self.work else { return };
        let Some(id) = work.for_human().map(|(step, _)| step.id) else { return };
        let Some(step) = work.step_mut(id) else { return };
        match (&mut step.stand, result.status) {
            (Stand::Asks { answer, .. }, ToolStatus::Ok) => {
                *answer = Answer::Known(result.content.clone());
            }
            (stand, status) => {
                let reason = format!("the question was not answered ({status})");
                *stand = Stand::Failed(Outcome::Aborted { reason });
            }
        }
    }

    /// Somebody who works on a step ended a turn.
    fn replied(&mut self, key: &str, outcome: &Outcome, message: Option<&Message>) {
        let Some(step) = self.work.as_mut().and_then(|work| work.step_of(key)) else { return };
        let origin = message.and_then(Origin::of);
        let task = origin.as_ref().and_then(|origin| origin.task.clone());
        if task.is_some() {
            step.remote_task.clone_from(&task);
        }
        let asks = origin.map(|origin| origin.asks).unwrap_or_default();
        step.stand = match (outcome, asks, message) {
            (Outcome::Completed, Asks::Nothing, message) => {
                step.tries += 1;
                Stand::Done(message.map(shown_parts).unwrap_or_default())
            }
            (Outcome::Completed, asks, message) => Stand::Asks {
                text: message.map(Message::text).unwrap_or_default(),
                is_private: asks == Asks::Credentials,
                answer: Answer::Unjudged,
            },
            (outcome, ..) => {
                step.tries += 1;
                Stand::Failed(outcome.clone())
            }
        };
        if let (Some(agent), Some(task)) = (&step.agent, task) {
            let note = json!({ "step": step.id, "agent": agent, "task": task });
            self.delegated.push_back(note);
        }
    }

    fn knows(&self, agent: &str) -> bool {
        self.peers.iter().any(|peer| peer.id == agent)
    }

    /// What another agent is asked: the request and what was said about it since.
    fn task(&self) -> Vec<Part> {
        let request = self.request.as_deref().map(shown_parts).unwrap_or_default();
        request.into_iter().chain(self.added.iter().map(|text| Part::text(text.as_str()))).collect()
    }
}

fn phase_of(action: Action) -> Phase {
    match action {
        Action::Tool(command) => tool_phase(command, Caller::Decision),
        Action::Work => Phase::Work,
    }
}

/// The phase that calls a tool. Those that only ask the model do so in the open.
fn tool_phase(command: Command, caller: Caller) -> Phase {
    let text = |field: &str| command.params.get(field).and_then(Value::as_str);
    match (command.tool.as_str(), text("text"), text("prompt")) {
        (SUMMARIZE, Some(text), _) => Phase::Llm(Some(summary_of(text))),
        (LLM, Some(prompt), None) | (LLM, _, Some(prompt)) => Phase::Llm(Some(prompt.to_owned())),
        _ => Phase::Tool(command, caller),
    }
}

/// What others may see of a message.
fn shown_parts(message: &Message) -> Vec<Part> {
    let is_shown =
        |part: &&Part| matches!(part, Part::Text { .. } | Part::Data { .. } | Part::File { .. });
    message.parts.iter().filter(is_shown).cloned().collect()
}

fn words_of(result: &ToolResult) -> String {
    super::work::shortened(&result.content)
}
