//! Replays: a recorded session gone through again without a model, a tool or a hook.
//!
//! The same journal must give the same decisions. A replay folds the entries one by one and, at
//! each place where the driver did what a behaviour had decided, asks the behaviour again.

use std::sync::Arc;

use crate::{Agent, Entry, Event, Outcome, RunId, Step, session::Ledger};

/// The first place where an agent would not do what the journal says it did.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("entry {seq} ({kind}): the journal says that the agent {recorded}; now it would {decided}")]
pub struct Divergence {
    /// The entry.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
    /// What the agent did.
    pub recorded: String,
    /// What it would do now.
    pub decided: String,
}

/// Go through a session again; how many decisions were asked for and came out the same.
pub fn replay(agent: &Agent, entries: &[Arc<Entry>]) -> Result<usize, Divergence> {
    let mut ledger = Ledger::new(agent.clone());
    let mut checked = 0;
    for entry in entries {
        if let Some(run) = deciding_run(&ledger, entry) {
            let decided = ledger.run(run).map(|run| run.decide());
            if let Some(decided) = decided {
                compare(entry, &decided)?;
                checked += 1;
            }
        }
        ledger.fold(entry);
    }
    Ok(checked)
}

/// The run whose decision led to an entry, where one did.
fn deciding_run(ledger: &Ledger, entry: &Entry) -> Option<RunId> {
    let decided = match &entry.event {
        // An answer that was cut off is followed by the same question again.
        Event::AgentMessage { .. }
        | Event::ToolStarted { .. }
        | Event::FunctionAnswered { .. }
        | Event::ChildStarted { .. }
        | Event::ChildReplied { .. } => true,
        // Notes from outside the agent are nobody's decision.
        Event::Note { topic, .. } => topic != "input_refused" && !topic.starts_with('@'),
        // Other outcomes are the driver's: a cancellation, a failure, a budget, an open question.
        Event::AgentResponseEnd { outcome, .. } => matches!(
            outcome,
            Outcome::Completed
                | Outcome::Rejected { .. }
                | Outcome::Impossible { .. }
                | Outcome::Stuck { .. }
        ),
        _ => false,
    };
    let is_open = ledger.run(entry.run).is_some_and(|run| run.state.is_open());
    (decided && is_open).then_some(entry.run)
}

fn compare(entry: &Entry, decided: &Step) -> Result<(), Divergence> {
    let (same, recorded) = match (&entry.event, decided) {
        (Event::AgentMessage { aside, .. }, Step::Ask(ask)) => {
            (aside.as_deref() == ask.aside.as_deref(), "asked the model".to_owned())
        }
        (Event::AgentMessage { message, .. }, Step::Say(said)) => {
            (message.parts == said.parts, "said something of its own".to_owned())
        }
        (Event::AgentMessage { .. }, _) => (false, "asked the model".to_owned()),
        (Event::ToolStarted { name, .. }, step) => {
            (*step == Step::Call, format!("ran the tool {name}"))
        }
        (Event::FunctionAnswered { function, .. }, step) => {
            let same = matches!(step, Step::Invoke { function: now, .. } if now == function);
            (same, format!("called the function {function}"))
        }
        (Event::ChildStarted { key, .. }, step) => {
            let same = matches!(step, Step::Run(turns) if turns.iter().any(|t| t.key == *key));
            (same, format!("ran its child {key}"))
        }
        (Event::ChildReplied { .. }, step) => {
            (matches!(step, Step::Run(_)), "heard from a child".to_owned())
        }
        (Event::Note { topic, data }, step) => {
            let same = matches!(step, Step::Note { topic: t, data: d } if t == topic && d == data);
            (same, format!("noted something about {topic}"))
        }
        (Event::AgentResponseEnd { outcome, .. }, step) => {
            (matches!(step, Step::End(now) if now == outcome), format!("ended: {outcome}"))
        }
        _ => (true, String::new()),
    };
    if same {
        return Ok(());
    }
    let decided = match decided {
        Step::Ask(ask) => match &ask.aside {
            None => "ask the model".to_owned(),
            Some(aside) => format!("ask the model for the {aside}"),
        },
        Step::Call => "run the open calls".to_owned(),
        Step::Skip { .. } => "skip calls".to_owned(),
        Step::Settle(_) => "answer calls itself".to_owned(),
        Step::Wait => "wait".to_owned(),
        Step::Run(turns) => {
            let keys: Vec<&str> = turns.iter().map(|turn| turn.key.as_str()).collect();
            format!("run {}", keys.join(", "))
        }
        Step::Invoke { function, .. } => format!("call the function {function}"),
        Step::Note { topic, .. } => format!("note something about {topic}"),
        Step::Say(_) => "say something of its own".to_owned(),
        Step::End(outcome) => format!("end: {outcome}"),
    };
    Err(Divergence { seq: entry.seq, kind: entry.event.kind().to_owned(), recorded, decided })
}
