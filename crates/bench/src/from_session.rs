//! A session of any Duologue agent as the history of a simulation.
//!
//! What was said between the person and the agent is kept, a question to the person and its answer
//! among it, and so are the calls that somebody carried out, by whichever half of the agent. What an
//! agent did with itself (plans, lists, decisions) stays inside it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use duologue_core::{
    CallId, Entry, Event, InquiryKind, Message as Said, Outcome, Role, RunId, SessionId,
    ToolResult, ToolStatus,
};

use crate::{
    Extra, Message, Requestor, Simulation, Task, Termination, ToolCall, ToolMessage, Utterance,
    llm::from_json,
};

/// The conversation that these entries of a session tell.
pub fn history_of(entries: &[Arc<Entry>]) -> Vec<Message> {
    let mut reader = Reader::default();
    // Which calls were carried out, and which were questions, is known only later.
    for entry in entries {
        match &entry.event {
            Event::ToolStarted { call_id, .. } => {
                reader.calls.insert(call_id.clone(), Kind::CarriedOut);
            }
            Event::ExternalAction { inquiry } => match &inquiry.kind {
                InquiryKind::Question { text, .. } => {
                    reader.calls.insert(inquiry.id.clone(), Kind::Question(text.clone()));
                }
                InquiryKind::Execution { .. } => {
                    reader.calls.insert(inquiry.id.clone(), Kind::CarriedOut);
                }
                _ => {}
            },
            _ => {}
        }
    }
    for entry in entries {
        reader.read(entry);
    }
    reader.finish()
}

/// A session that is over as the simulation of a task, so that it can be judged like one. `None`
/// where it is still going on or waits.
pub fn simulation_of(id: &SessionId, entries: &[Arc<Entry>], task: &Task) -> Option<Simulation> {
    let outcome = entries.iter().rev().find_map(|entry| match &entry.event {
        Event::AgentResponseEnd { outcome, .. } if entry.run == RunId::ROOT => Some(outcome),
        _ => None,
    })?;
    let termination_reason = match outcome {
        Outcome::InputRequired { .. } => return None,
        Outcome::Completed
        | Outcome::Rejected { .. }
        | Outcome::Impossible { .. }
        | Outcome::Stuck { .. } => Termination::AgentStop,
        Outcome::LimitReached { .. } => Termination::MaxSteps,
        Outcome::Aborted { .. } => Termination::UserError,
        Outcome::Failed { .. } => Termination::AgentError,
    };
    let (first, last) = (entries.first()?.at, entries.last()?.at);
    Some(Simulation {
        id: id.as_str().to_owned(),
        task_id: task.id.clone(),
        timestamp: None,
        start_time: String::new(),
        end_time: String::new(),
        duration: Duration::from_millis(last.abs_diff(first)).as_secs_f64(),
        termination_reason,
        agent_cost: None,
        user_cost: None,
        reward_info: None,
        messages: Some(history_of(entries)),
        trial: None,
        seed: None,
        extra: Extra::default(),
    })
}

/// What a call was.
enum Kind {
    CarriedOut,
    Question(String),
}

#[derive(Default)]
struct Reader {
    calls: HashMap<CallId, Kind>,
    messages: Vec<Message>,
    /// The batches that wait for results, by run.
    open: HashMap<RunId, Batch>,
    /// What was said meanwhile.
    held: Vec<Message>,
}

struct Batch {
    content: Option<String>,
    /// The calls that are told.
    calls: Vec<duologue_core::ToolCall>,
    /// All calls of the message.
    all: Vec<CallId>,
    results: HashMap<CallId, Arc<ToolResult>>,
}

impl Reader {
    fn read(&mut self, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { message, .. } | Event::Observed { message }
                if entry.run == RunId::ROOT =>
            {
                self.say(message);
            }
            Event::AgentMessage { message, aside: None, .. } => self.answered(entry.run, message),
            Event::ToolEnded { result, .. } => {
                let Some(batch) = self.open.get_mut(&entry.run) else { return };
                batch.results.insert(result.call_id.clone(), Arc::clone(result));
                if batch.all.iter().all(|id| batch.results.contains_key(id))
                    && let Some(batch) = self.open.remove(&entry.run)
                {
                    self.close(batch);
                }
            }
            _ => {}
        }
    }

    fn say(&mut self, message: &Said) {
        let said = Utterance::text(message.text());
        if !said.has_text() {
            return;
        }
        let message = match message.role {
            Role::Assistant => Message::Assistant(said),
            _ => Message::User(said),
        };
        // Nothing may stand between calls and their answers.
        if self.open.contains_key(&RunId::ROOT) {
            self.held.push(message);
        } else {
            self.messages.push(message);
        }
    }

    fn answered(&mut self, run: RunId, message: &Said) {
        let calls = message.tool_calls().filter(|call| self.calls.contains_key(&call.id));
        let calls: Vec<duologue_core::ToolCall> = calls.cloned().collect();
        let text =
            Some(message.text()).filter(|text| run == RunId::ROOT && !text.trim().is_empty());
        if calls.is_empty() {
            // The words beside an agent's own tools are thoughts, not said to anybody.
            let is_answer = message.tool_calls().next().is_none();
            self.messages.extend(
                text.filter(|_| is_answer).map(|text| Message::Assistant(Utterance::text(text))),
            );
            return;
        }
        let all = message.tool_calls().map(|call| call.id.clone()).collect();
        self.open.insert(run, Batch { content: text, calls, all, results: HashMap::new() });
    }

    /// A question that nobody has answered yet is the last word; calls without answers are left out.
    fn finish(mut self) -> Vec<Message> {
        if let Some(batch) = self.open.remove(&RunId::ROOT) {
            let waits = |id: &CallId| {
                !matches!(self.calls.get(id), Some(Kind::Question(_)))
                    && !batch.results.contains_key(id)
            };
            if !batch.all.iter().any(waits) {
                self.close(batch);
            }
        }
        self.messages
    }

    /// A batch whose calls all have results: calls and their answers, then questions and theirs.
    fn close(&mut self, batch: Batch) {
        let Batch { content, calls, results, .. } = batch;
        let is_call = |id: &CallId| matches!(self.calls.get(id), Some(Kind::CarriedOut));
        let made: Vec<&duologue_core::ToolCall> = calls.iter().filter(|c| is_call(&c.id)).collect();
        if !made.is_empty() {
            let tool_calls = made.iter().map(|call| ToolCall {
                id: call.id.as_str().to_owned(),
                name: call.name.clone(),
                arguments: from_json(&call.arguments),
                requestor: Requestor::Assistant,
            });
            let said = Utterance { content, ..Utterance::calls(tool_calls.collect()) };
            self.messages.push(Message::Assistant(said));
            for result in made.iter().filter_map(|call| results.get(&call.id)) {
                self.messages.push(Message::Tool(ToolMessage {
                    id: result.call_id.as_str().to_owned(),
                    content: Some(result.prompt_text()),
                    requestor: Requestor::Assistant,
                    error: result.status != ToolStatus::Ok,
                    ..ToolMessage::default()
                }));
            }
        }
        for call in &calls {
            let Some(Kind::Question(question)) = self.calls.get(&call.id) else { continue };
            self.messages.push(Message::Assistant(Utterance::text(question.clone())));
            let answer = results.get(&call.id).filter(|result| result.status == ToolStatus::Ok);
            self.messages
                .extend(answer.map(|answer| Message::User(Utterance::text(answer.prompt_text()))));
        }
        self.messages.append(&mut self.held);
    }
}
