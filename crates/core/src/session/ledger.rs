//! The ledger: all runs of a session, folded from its journal.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::RandomState;
use serde_json::Value;

use crate::{
    Agent, Answer, Authors, Budget, CUT_NOTE, CallId, ChildrenMemory, Delivery, Entry, Event,
    Grant, Inquiry, InquiryKind, Message, MessageId, RunId, RunState, Step, Usage,
    behavior::Machine, session::GIVEN_BUDGET,
};

/// What a journal adds up to: every run with its state and its behaviour at work.
pub(crate) struct Ledger {
    runs: Vec<Run>,
    pub(crate) next_seq: u64,
    pub(crate) last_at: i64,
    /// Tools that somebody approved for the rest of the session, and whose words had been read
    /// by then.
    grants: HashMap<String, Authors, RandomState>,
    /// Whose words the session has read.
    read: Authors,
    /// Ids that were given to calls; a model that repeats one gets another.
    call_ids: HashSet<CallId, RandomState>,
    /// What the session was given to use when it began, besides what its agent may.
    given: Budget,
    /// The names of the models that answered, each kept once for all its entries.
    models: Vec<Arc<str>>,
    /// Ids of requests, so that mail is not delivered twice.
    requests: HashSet<MessageId, RandomState>,
}

/// One run.
pub(crate) struct Run {
    pub(crate) state: RunState,
    pub(crate) agent: Agent,
    pub(crate) parent: Option<RunId>,
    pub(crate) children: BTreeMap<String, RunId>,
    /// How many tasks it was given, and how many of them its parent heard the end of.
    pub(crate) tasks: u32,
    pub(crate) replies: u32,
    /// What its children said, where they share their memory.
    shared: Vec<Arc<Message>>,
    machine: Box<dyn Machine>,
}

impl Run {
    fn new(id: RunId, agent: Agent, parent: Option<RunId>) -> Self {
        let parts = agent.parts();
        Self {
            state: RunState::new(id, parts.memory.clone()),
            machine: Arc::clone(&parts.pattern).start(),
            agent,
            parent,
            children: BTreeMap::new(),
            tasks: 0,
            replies: 0,
            shared: Vec::new(),
        }
    }

    pub(crate) fn decide(&self) -> Step {
        self.machine.decide(&self.state)
    }

    /// What calls off what the run began elsewhere.
    pub(crate) fn farewell(&self) -> Option<(String, Value)> {
        self.machine.farewell(&self.state)
    }
}

impl Ledger {
    pub(crate) fn new(agent: Agent) -> Self {
        Self {
            runs: vec![Run::new(RunId::ROOT, agent, None)],
            next_seq: 0,
            last_at: 0,
            grants: HashMap::default(),
            read: Authors::Known,
            call_ids: HashSet::default(),
            given: Budget::default(),
            models: Vec::new(),
            requests: HashSet::default(),
        }
    }

    /// A model's name, to be written into an entry.
    pub(crate) fn model_named(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.models.iter().find(|known| ***known == *name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = Arc::from(name);
        self.models.push(Arc::clone(&name));
        name
    }

    pub(crate) fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.get(id.0 as usize)
    }

    fn run_mut(&mut self, id: RunId) -> Option<&mut Run> {
        self.runs.get_mut(id.0 as usize)
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter()
    }

    /// The run that the next child gets.
    pub(crate) fn next_run(&self) -> RunId {
        RunId(u32::try_from(self.runs.len()).unwrap_or(u32::MAX))
    }

    /// Whether somebody approved a tool for the session.
    pub(crate) fn grant(&self, tool: &str) -> Grant {
        match self.grants.get(tool) {
            None => Grant::None,
            Some(read) if *read == self.read => Grant::Standing,
            Some(_) => Grant::BeforeStrangers,
        }
    }

    /// Whose words the session has read.
    pub(crate) fn read(&self) -> Authors {
        self.read
    }

    pub(crate) fn knows_call(&self, id: &CallId) -> bool {
        self.call_ids.contains(id)
    }

    pub(crate) fn knows_request(&self, id: &MessageId) -> bool {
        self.requests.contains(id)
    }

    /// Children whose parents have not heard the end of their last task, the deepest first: the
    /// parent, what it calls the child, and the child.
    pub(crate) fn children_at_work(&self) -> Vec<(RunId, String, RunId)> {
        let at_work = self.runs.iter().rev().filter(|run| run.tasks > run.replies);
        at_work
            .filter_map(|run| {
                let (parent, key) = self.name_of(run)?;
                Some((parent.state.id(), key.to_owned(), run.state.id()))
            })
            .collect()
    }

    /// The parent of a run and what it calls it.
    fn name_of(&self, run: &Run) -> Option<(&Run, &str)> {
        let parent = self.run(run.parent?)?;
        let id = run.state.id();
        let (key, _) = parent.children.iter().find(|(_, child)| **child == id)?;
        Some((parent, key))
    }

    /// What a run may use by itself: what its agent may, and for the root what the session was
    /// given.
    pub(crate) fn budget_of(&self, run: &Run) -> Budget {
        let own = run.agent.parts().budget;
        if run.parent.is_none() { own.min(self.given) } else { own }
    }

    /// What a run may still use, by its own budget and those above it.
    pub(crate) fn left(&self, id: RunId, now: i64) -> Budget {
        let runs = self.with_ancestors(id);
        runs.map(|run| self.budget_of(run).left(run.state.spent(), now))
            .fold(Budget::default(), Budget::min)
    }

    /// What all runs wait for.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Inquiry> {
        self.runs.iter().flat_map(|run| run.state.pending())
    }

    /// A run and those above it, the root last.
    pub(crate) fn with_ancestors(&self, id: RunId) -> impl Iterator<Item = &Run> {
        std::iter::successors(self.run(id), |run| run.parent.and_then(|parent| self.run(parent)))
    }

    /// Take in the next entry.
    pub(crate) fn fold(&mut self, entry: &Entry) {
        self.next_seq = entry.seq + 1;
        self.last_at = self.last_at.max(entry.at);
        match &entry.event {
            Event::SessionStarted { metadata, .. } => {
                let given = metadata.get(GIVEN_BUDGET).cloned();
                self.given =
                    given.and_then(|given| serde_json::from_value(given).ok()).unwrap_or_default();
            }
            Event::ChildStarted { child, key, .. } => self.start_child(entry.run, *child, key),
            Event::ChildReplied { child, .. } => {
                if let Some(run) = self.run_mut(*child) {
                    run.replies += 1;
                }
            }
            Event::UserRequest { message, delivery, .. } => {
                self.requests.insert(message.id.clone());
                if let Some(run) = self.run_mut(entry.run)
                    && *delivery == Delivery::Start
                {
                    run.tasks += 1;
                }
            }
            Event::AgentMessage { message, usage, .. } => {
                self.call_ids.extend(message.tool_calls().map(|call| call.id.clone()));
                self.spend(entry.run, 1, *usage);
            }
            Event::FunctionAnswered { usage, .. } => self.spend(entry.run, 0, *usage),
            Event::ExternalActionResult { id, answer: Answer::ApproveAlways, .. } => {
                let tool = self.pending().find(|inquiry| inquiry.id == *id).and_then(|inquiry| {
                    match &inquiry.kind {
                        InquiryKind::Approval { call, .. } => Some(call.name.clone()),
                        _ => None,
                    }
                });
                let read = self.read;
                self.grants.extend(tool.map(|tool| (tool, read)));
            }
            Event::ToolStarted { authors: Authors::Strangers, .. } => {
                self.read = Authors::Strangers;
            }
            // A resumed process took up all runs, not the one that the entry stands in.
            Event::SessionResumed { .. } => {
                for run in &mut self.runs {
                    run.state.fold(entry);
                }
            }
            _ => {}
        }
        if let Some(run) = self.run_mut(entry.run) {
            if !matches!(entry.event, Event::SessionResumed { .. }) {
                run.state.fold(entry);
            }
            run.machine.fold(entry);
        }
        self.share(entry);
    }

    /// Count what a run used, for it and those above it.
    fn spend(&mut self, run: RunId, steps: u64, usage: Usage) {
        let mut at = Some(run);
        while let Some(run) = at.and_then(|id| self.run_mut(id)) {
            let spent = run.state.spent_mut();
            spent.steps += steps;
            spent.usage += usage;
            at = run.parent;
        }
    }

    /// Children that share their memory read what the others say and what their tools gave.
    fn share(&mut self, entry: &Entry) {
        let Some((parent, key)) = self.run(entry.run).and_then(|run| self.name_of(run)) else {
            return;
        };
        if parent.agent.parts().children_memory == ChildrenMemory::Separate {
            return;
        }
        let Some(run) = self.run(entry.run) else { return };
        let Some(text) = overheard(&entry.event, run.state.memory().result_chars) else {
            return;
        };
        let mut message = Message::user(format!("[{key}] {text}")).with_name(key);
        message.id = MessageId::from(format!("shared-{}", entry.seq));
        let message = Arc::new(message);
        let parent = parent.state.id();
        let others = self.run(parent).into_iter().flat_map(|run| run.children.values());
        let others: Vec<RunId> = others.copied().filter(|id| *id != entry.run).collect();
        for other in others {
            if let Some(run) = self.run_mut(other) {
                run.state.overhear(Arc::clone(&message));
            }
        }
        if let Some(run) = self.run_mut(parent) {
            run.shared.push(message);
        }
    }

    fn start_child(&mut self, parent: RunId, child: RunId, key: &str) {
        if child != self.next_run() {
            return;
        }
        let Some(run) = self.run_mut(parent) else {
            return;
        };
        // An agent that no longer has this child keeps the place, so that later runs keep theirs.
        let agent = run.agent.child(key).unwrap_or_else(|| run.agent.clone());
        run.children.insert(key.to_owned(), child);
        let shared = run.shared.clone();
        let mut run = Run::new(child, agent, Some(parent));
        // Who comes later reads what was said before.
        for message in shared {
            run.state.overhear(message);
        }
        self.runs.push(run);
    }
}

/// What other children read of an entry, tool results cut to so many characters.
fn overheard(event: &Event, result_chars: usize) -> Option<String> {
    match event {
        Event::AgentMessage { message, aside: None, .. } => {
            let mut text = message.text();
            for call in message.tool_calls() {
                let gap = if text.is_empty() { "" } else { "\n" };
                text.push_str(&format!("{gap}calls {} {}", call.name, call.arguments));
            }
            (!text.is_empty()).then_some(text)
        }
        Event::ToolEnded { result, .. } => {
            let whole = result.prompt_text();
            let mut text: String = whole.chars().take(result_chars).collect();
            if text.len() < whole.len() {
                let id = &result.call_id;
                text.push_str(&format!("\n{CUT_NOTE} read_result with call_id \"{id}\" reads on]"));
            }
            Some(format!("{} gave ({}): {text}", result.name, result.status))
        }
        _ => None,
    }
}
