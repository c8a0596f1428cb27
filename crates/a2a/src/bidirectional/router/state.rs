//! How a task stands with the router: folded from the journal, never saved.

use std::{collections::VecDeque, sync::Arc};

use duologue_core::{
    Delivery, Entry, Event, FailureCause, Message, Outcome, Part, Role, ToolResult, ToolStatus,
};
use serde_json::{Value, json};

use super::{
    DECISION, DELEGATED, KNOWN, Settings, Tools,
    command::{self, Command},
    decision::Point,
    prompt::Peer,
    work::{Answer, Stand, Work},
};
use crate::{
    bidirectional::tools::{HUMAN_INPUT, LLM, SUMMARIZE, summary_of},
    client::{Asks, Origin},
};

/// The most questions about one request before it is worked on as it is.
const MOST_CLARIFICATIONS: u32 = 2;

/// The most questions of one step that are answered without a person.
const MOST_HANDLED: u32 = 3;

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
    pub(super) request: Option<Arc<Message>>,
    /// What the user said besides it, before and since.
    pub(super) said: Vec<Arc<Message>>,
    /// What was said besides the request: answers to questions about it.
    pub(super) added: Vec<String>,
    pub(super) misfits: u32,
    pub(super) clarifications: u32,
    pub(super) recoveries: u32,
    pub(super) plans: u32,
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
                let mut said = std::mem::take(&mut self.said);
                said.extend(self.request.take());
                *self = Self { seq: entry.seq, said, ..Self::default() };
                self.begin(tools, message);
            }
            Event::UserRequest { message, .. } => {
                self.said.push(Arc::clone(message));
                self.joined(message);
            }
            Event::Observed { message } if message.role == Role::User => {
                self.said.push(Arc::clone(message));
            }
            Event::FunctionAnswered { function, output, .. } if function == KNOWN => {
                // An unreadable directory is an empty one: the task can still be done here.
                let known =
                    output.as_deref().and_then(|known| serde_json::from_value(known.clone()).ok());
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

    pub(super) fn second_decision(&self, settings: &Settings) -> Phase {
        let point = if settings.decomposition { Point::Decomposition } else { Point::Route };
        Phase::Decide(point)
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
                asks,
                // Two agents that keep each other busy are a person's business.
                answer: if step.handled < MOST_HANDLED { Answer::Unjudged } else { Answer::Human },
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

    pub(super) fn knows(&self, agent: &str) -> bool {
        self.peers.iter().any(|peer| peer.id == agent)
    }

    /// What another agent is asked: the request and what was said about it since.
    pub(super) fn task(&self) -> Vec<Part> {
        let request = self.request.as_deref().map(shown_parts).unwrap_or_default();
        request.into_iter().chain(self.added.iter().map(|text| Part::text(text.as_str()))).collect()
    }
}

pub(super) fn phase_of(action: Action) -> Phase {
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
