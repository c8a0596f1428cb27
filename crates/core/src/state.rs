//! The state of a run: what its journal entries add up to.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    Answer, Ask, CallId, CalledTool, Delivery, Effect, Entry, Event, Expectation, HookChange,
    Inquiry, InquiryKind, Limit, Memory, Message, Outcome, Part, RunId, Spent, ToolCall,
    ToolResult, ToolSpec, ToolStatus, Window, expectation::Expected,
};

/// What every run remembers, whatever its behaviour. It is folded from entries and never saved.
#[derive(Debug)]
pub struct RunState {
    id: RunId,
    memory: Memory,
    window: Window,
    latest: Latest,
    batch: Option<Batch>,
    /// What arrived while a batch was open, and enters the prompt after its results.
    deferred: Vec<Held>,
    turn: u32,
    open: bool,
    request: Option<Arc<Message>>,
    last_message: Option<Arc<Message>>,
    outcome: Option<Outcome>,
    steps: u64,
    spent: Spent,
    send_backs: u32,
    /// How many requests joined turns under way.
    steered: u64,
    pending: Vec<Inquiry>,
    refused_budget: Option<Limit>,
    expected: Option<Expected>,
    called: Vec<CalledTool>,
}

/// How many calls of a task are remembered by name.
pub const MOST_CALLED: usize = 20;

/// What a run has to deal with next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Latest {
    /// Nothing has happened yet, or the last turn is over.
    #[default]
    Nothing,
    /// The model has something new to read: a request, results, a message.
    Input,
    /// The model called tools, and not all calls have results.
    Calls,
    /// The model answered without calls.
    Answer,
}

/// The calls of one message. The model is asked again only when each has its result.
#[derive(Clone, Debug)]
pub struct Batch {
    calls: Vec<CallState>,
}

/// One call of a batch.
#[derive(Clone, Debug)]
pub struct CallState {
    /// The call, with the arguments it would run with.
    pub call: ToolCall,
    /// Where it stands.
    pub phase: Phase,
    /// Whether the arguments are no longer the model's.
    pub(crate) changed: bool,
    /// Whether the hooks before it have had their say.
    pub(crate) hooked: bool,
    /// What its own questions were answered; `None` where somebody would not say.
    pub(crate) answers: Vec<Option<Vec<Part>>>,
    /// Whether it waits for the answer to a question of its own.
    pub(crate) asks: bool,
}

impl CallState {
    /// The id of the next question that the call asks by itself. Each has its own, so that an
    /// answer that comes twice is not taken for the next one's.
    pub(crate) fn next_question(&self) -> CallId {
        CallId::from(format!("{}#{}", self.call.id, self.answers.len() + 1))
    }
}

/// Where a call stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Nothing was decided yet.
    New,
    /// Somebody was asked.
    Asked,
    /// It may run.
    Ready,
    /// It runs, or ran when the process died.
    Started(Effect),
    /// Its result came from outside and is yet to be written.
    Settled(Arc<ToolResult>),
    /// It has its result.
    Done(Arc<ToolResult>),
}

#[derive(Debug)]
enum Held {
    Request(Arc<Message>),
    Message(Arc<Message>),
}

impl Batch {
    /// The calls, in the model's order.
    pub fn calls(&self) -> &[CallState] {
        &self.calls
    }

    fn call_mut(&mut self, id: &CallId) -> Option<&mut CallState> {
        self.calls.iter_mut().find(|state| state.call.id == *id)
    }

    /// The call that an inquiry is about: one with its id, or one that asks by itself.
    fn asking_mut(&mut self, id: &CallId) -> Option<&mut CallState> {
        self.calls.iter_mut().find(|state| state.call.id == *id || state.next_question() == *id)
    }

    /// All results, once every call has one.
    fn results(&self) -> Option<Vec<Arc<ToolResult>>> {
        self.calls
            .iter()
            .map(|state| match &state.phase {
                Phase::Done(result) => Some(Arc::clone(result)),
                _ => None,
            })
            .collect()
    }
}

impl RunState {
    pub(crate) fn new(id: RunId, memory: Memory) -> Self {
        Self {
            id,
            memory,
            window: Window::default(),
            latest: Latest::Nothing,
            batch: None,
            deferred: Vec::new(),
            turn: 0,
            open: false,
            request: None,
            last_message: None,
            outcome: None,
            steps: 0,
            spent: Spent::default(),
            send_backs: 0,
            steered: 0,
            pending: Vec::new(),
            refused_budget: None,
            expected: None,
            called: Vec::new(),
        }
    }

    /// Which run it is.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// What has to be dealt with next.
    pub fn latest(&self) -> Latest {
        self.latest
    }

    /// The messages of the next prompt.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The calls that are open.
    pub fn batch(&self) -> Option<&Batch> {
        self.batch.as_ref()
    }

    /// The request that the current task began with.
    pub fn request(&self) -> Option<&Arc<Message>> {
        self.request.as_ref()
    }

    /// What the agent said last in the current task.
    pub fn last_message(&self) -> Option<&Arc<Message>> {
        self.last_message.as_ref()
    }

    /// The tools that a child called in the current task and how the calls ended: the last
    /// [`MOST_CALLED`], without the one that gives the expected answer.
    pub fn called(&self) -> &[CalledTool] {
        &self.called
    }

    /// How many times this run itself asked the model in the current task.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// What the current task used, children included.
    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    /// The number of the current or last turn.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Whether a turn is under way.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// How the last turn ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Whether there is a turn under way, one that waited for answers, or a request that no turn
    /// was begun for before the process ended.
    pub(crate) fn can_go_on(&self) -> bool {
        match &self.outcome {
            None => self.open || self.request.is_some(),
            Some(outcome) => self.open || matches!(outcome, Outcome::InputRequired { .. }),
        }
    }

    /// What this run waits for.
    pub fn pending(&self) -> &[Inquiry] {
        &self.pending
    }

    /// The shape that the current task's answer must have, where it must have one.
    pub fn expected(&self) -> Option<&Arc<Expectation>> {
        self.expected.as_ref().map(|expected| &expected.expectation)
    }

    /// Whether the expected answer was given, which concludes the task. [`latest`](Self::latest) is
    /// then an answer, so a behaviour that ends on answers needs to know nothing of this.
    pub fn is_concluded(&self) -> bool {
        self.expected.as_ref().is_some_and(|expected| expected.is_met)
    }

    /// The question for a model that answered in prose though a structure is expected. `None` when
    /// the answer is in order, or the model was asked often enough: behaviours put this question
    /// before they end on an answer.
    pub fn reminder(&self) -> Option<Ask> {
        let expected = self.expected.as_ref()?;
        (self.latest == Latest::Answer).then(|| expected.reminder()).flatten()
    }

    /// The tool that gives the expected answer.
    pub(crate) fn answer_tool(&self) -> Option<&Arc<ToolSpec>> {
        self.expected.as_ref().map(|expected| &expected.spec)
    }

    /// The call of the open batch that gives the expected answer.
    pub(crate) fn concluding_call(&self) -> Option<&ToolCall> {
        let name = &self.expected()?.name;
        let mut calls = self.batch.as_ref()?.calls.iter().map(|state| &state.call);
        calls.find(|call| call.name == *name && call.arguments.is_object())
    }

    /// How often hooks sent the agent back to work in the current task.
    pub(crate) fn send_backs(&self) -> u32 {
        self.send_backs
    }

    pub(crate) fn steered(&self) -> u64 {
        self.steered
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn refused_budget(&self) -> Option<Limit> {
        self.refused_budget
    }

    pub(crate) fn spent_mut(&mut self) -> &mut Spent {
        &mut self.spent
    }

    /// Take in an entry of this run.
    pub(crate) fn fold(&mut self, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { message, delivery, expects } => {
                self.requested(message, *delivery, expects.as_ref(), entry.at);
            }
            Event::Observed { message } => self.hold(Held::Message(Arc::clone(message))),
            Event::AgentResponseStart { turn } => {
                self.turn = *turn;
                self.open = true;
                self.outcome = None;
            }
            Event::AgentMessage { message, aside: None, stop, .. } => {
                self.answered(message);
                // An answer that was cut off is gone on with, not taken for an end.
                if stop.is_none() {
                    self.latest = Latest::Input;
                }
            }
            Event::AgentMessage { .. } => self.steps += 1,
            Event::ExternalAction { inquiry } => {
                if let Some(state) = self.batch.as_mut().and_then(|b| b.asking_mut(&inquiry.id)) {
                    state.asks = matches!(state.phase, Phase::Started(_));
                    state.phase = Phase::Asked;
                }
                self.pending.push(Inquiry::clone(inquiry));
            }
            Event::ExternalActionResult { id, answer, .. } => self.settled(id, answer),
            Event::ToolStarted { call_id, effect, arguments, .. } => {
                if let Some(state) = self.batch.as_mut().and_then(|b| b.call_mut(call_id)) {
                    state.phase = Phase::Started(*effect);
                    if let Some(arguments) = arguments {
                        state.call.arguments = Value::clone(arguments);
                        state.changed = true;
                    }
                }
            }
            Event::ToolEnded { result, .. } => self.ended(result, entry.seq),
            Event::AgentResponseEnd { outcome, .. } => {
                self.open = false;
                if !matches!(outcome, Outcome::InputRequired { .. }) {
                    self.latest = Latest::Nothing;
                    self.pending.clear();
                }
                self.outcome = Some(outcome.clone());
            }
            Event::HookAnswered { change, .. } => self.hooked(change),
            Event::MemoryTrimmed { dropped, summary } => {
                self.window.trim(*dropped, summary.clone());
            }
            Event::SessionResumed { .. } => self.resumed(),
            Event::SessionStarted { .. }
            | Event::ModelRetried { .. }
            | Event::FunctionAnswered { .. }
            | Event::ChildStarted { .. }
            | Event::ChildReplied { .. }
            | Event::Note { .. }
            | Event::Unknown(_) => {}
        }
    }

    fn requested(
        &mut self,
        message: &Arc<Message>,
        delivery: Delivery,
        expects: Option<&Arc<Expectation>>,
        at: i64,
    ) {
        if delivery == Delivery::Start {
            self.window.begin_task();
            self.request = Some(Arc::clone(message));
            self.last_message = None;
            self.outcome = None;
            self.steps = 0;
            self.called.clear();
            self.send_backs = 0;
            self.refused_budget = None;
            // Its calls have their results by now; a question about the last task's budget is moot.
            self.pending.clear();
            self.spent = Spent { since: at, ..Spent::default() };
            self.expected = expects.map(Expected::new);
        }
        self.hold(Held::Request(Arc::clone(message)));
        if self.batch.is_none() {
            self.latest = Latest::Input;
        }
        self.reopen_answer();
    }

    /// There is more to do, so the answer that was given is not the last.
    fn reopen_answer(&mut self) {
        if let Some(expected) = &mut self.expected {
            expected.is_met = false;
        }
    }

    /// Take in what another child of the same parent said.
    pub(crate) fn overhear(&mut self, message: Arc<Message>) {
        self.hold(Held::Message(message));
    }

    /// Put a message into the prompt, or behind the results that are still due.
    fn hold(&mut self, held: Held) {
        if self.batch.is_some() {
            self.deferred.push(held);
            return;
        }
        match held {
            Held::Request(message) => self.window.push_request(message),
            Held::Message(message) => self.window.push_message(message),
        }
    }

    fn answered(&mut self, message: &Arc<Message>) {
        self.steps += 1;
        self.last_message = Some(Arc::clone(message));
        let calls: Vec<CallState> = message
            .tool_calls()
            .map(|call| CallState {
                call: call.clone(),
                phase: Phase::New,
                changed: false,
                hooked: false,
                answers: Vec::new(),
                asks: false,
            })
            .collect();
        // Providers refuse an empty message, so one never enters a prompt.
        if !message.parts.is_empty() {
            self.window.push_message(Arc::clone(message));
        }
        if calls.is_empty() {
            self.latest = Latest::Answer;
            if let Some(expected) = &mut self.expected {
                expected.prose += 1;
            }
        } else {
            self.batch = Some(Batch { calls });
            self.latest = Latest::Calls;
        }
    }

    fn settled(&mut self, id: &CallId, answer: &Answer) {
        let Some(at) = self.pending.iter().position(|inquiry| inquiry.id == *id) else {
            return;
        };
        let inquiry = self.pending.remove(at);
        if let InquiryKind::Budget { limit, .. } = inquiry.kind {
            match answer {
                Answer::Approve | Answer::ApproveAlways => self.spent.grants.add(limit),
                _ => self.refused_budget = Some(limit),
            }
            return;
        }
        let Some(state) = self.batch.as_mut().and_then(|batch| batch.asking_mut(id)) else {
            return;
        };
        if std::mem::take(&mut state.asks) {
            state.answers.push(match answer {
                Answer::Result { content, is_error: false } => Some(content.clone()),
                _ => None,
            });
            state.phase = Phase::Ready;
            return;
        }
        let result = |status, content| ToolResult {
            call_id: state.call.id.clone(),
            name: state.call.name.clone(),
            status,
            content,
        };
        state.phase = match answer {
            Answer::Approve | Answer::ApproveAlways => Phase::Ready,
            Answer::Edit { arguments } => {
                state.call.arguments = Value::clone(arguments);
                state.changed = true;
                Phase::Ready
            }
            Answer::Deny { reason } => {
                let text = if reason.is_empty() {
                    "The user denied this call.".to_owned()
                } else {
                    format!("The user denied this call: {reason}")
                };
                Phase::Settled(Arc::new(result(ToolStatus::Denied, vec![Part::text(text)])))
            }
            Answer::Result { content, is_error } => {
                let status = if *is_error { ToolStatus::Error } else { ToolStatus::Ok };
                Phase::Settled(Arc::new(result(status, content.clone())))
            }
        };
    }

    fn ended(&mut self, result: &Arc<ToolResult>, seq: u64) {
        let concludes = self.concluding_call().is_some_and(|call| call.id == result.call_id);
        let Some(batch) = &mut self.batch else { return };
        if let Some(state) = batch.call_mut(&result.call_id) {
            // Only a parent asks for it.
            if !concludes && self.id != RunId::ROOT {
                if self.called.len() == MOST_CALLED {
                    self.called.remove(0);
                }
                self.called.push(CalledTool::new(&state.call.arguments, result));
            }
            let question = state.next_question();
            state.phase = Phase::Done(Arc::clone(result));
            self.pending.retain(|inquiry| inquiry.id != result.call_id && inquiry.id != question);
        }
        if let Some(expected) = &mut self.expected
            && concludes
            && result.status == ToolStatus::Ok
        {
            expected.is_met = true;
        }
        let Some(results) = batch.results() else {
            return;
        };
        self.batch = None;
        self.window.push_results(&results, seq, self.memory.result_chars);
        let mut asked_for_more = false;
        for held in std::mem::take(&mut self.deferred) {
            asked_for_more |= matches!(held, Held::Request(_));
            self.hold(held);
        }
        if asked_for_more {
            self.reopen_answer();
        }
        self.latest = if self.is_concluded() { Latest::Answer } else { Latest::Input };
    }

    fn hooked(&mut self, change: &HookChange) {
        match change {
            HookChange::PreReply { message } => {
                if let Some(old) = self.request.replace(Arc::clone(message)) {
                    self.window.replace(&old.id, Arc::clone(message));
                }
            }
            HookChange::PostReply { message } => {
                if let Some(old) = self.last_message.replace(Arc::clone(message)) {
                    self.window.replace(&old.id, Arc::clone(message));
                }
            }
            HookChange::PreStep { message } | HookChange::PostStep { message } => {
                self.hold(Held::Message(Arc::clone(message)));
            }
            HookChange::SentBack { message } => {
                self.send_backs += 1;
                self.hold(Held::Message(Arc::clone(message)));
                self.latest = Latest::Input;
                self.reopen_answer();
            }
            HookChange::PreTool { call_id, arguments } => {
                if let Some(state) = self.batch.as_mut().and_then(|b| b.call_mut(call_id)) {
                    state.call.arguments = Value::clone(arguments);
                    state.changed = true;
                    state.hooked = true;
                }
            }
            HookChange::Refused { call_id, reason } => {
                if let Some(state) = self.batch.as_mut().and_then(|b| b.call_mut(call_id)) {
                    let text = format!("This call was refused: {reason}");
                    let result = ToolResult::text(&state.call, ToolStatus::Denied, text);
                    state.phase = Phase::Settled(Arc::new(result));
                }
            }
            HookChange::PostTool { .. } | HookChange::Failed { .. } => {}
        }
    }

    /// What ran when the process died runs again if that does no harm; the driver settles the rest.
    fn resumed(&mut self) {
        let calls = self.batch.iter_mut().flat_map(|batch| &mut batch.calls);
        for state in calls {
            if matches!(state.phase, Phase::Started(Effect::Pure | Effect::Idempotent)) {
                state.phase = Phase::Ready;
            }
        }
    }
}
