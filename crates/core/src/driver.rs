//! The driver: does what a behaviour decides, and writes down what came of it.
//!
//! ```text
//! journal ──fold──▶ state ──decide──▶ step ──driver──▶ model, tools, people
//!    ▲                                                        │
//!    └────────────────────── append ◀─────────────────────────┘
//! ```

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use tokio_util::sync::CancellationToken;

use crate::{
    Agent, Attendance, CallId, Delivery, Effect, Event, Expectation, FailureCause, HookChange,
    HookContext, Inquiry, InquiryKind, Limit, Message, Outcome, Phase, Reply, RunId, Step,
    StopReason, StoreError, ToolResult, ToolStatus, Usage,
    session::{Shared, now_ms},
};

mod ask;
mod batch;
mod child;
mod invoke;

/// The most model calls of one task, whatever its behaviour and budget say.
const MOST_STEPS: u64 = 1_000;

/// The most decisions in a row that need no model, tool, child or function.
const MOST_IDLE_DECISIONS: u32 = 1_000;

/// A request on its way to an agent.
pub(crate) struct Said {
    pub(crate) message: Arc<Message>,
    /// The shape that the answer must have.
    pub(crate) expects: Option<Arc<Expectation>>,
}

/// One turn of a session: take in a request, or go on with what is there, until an outcome.
pub(crate) async fn turn(shared: &Arc<Shared>, request: Option<Said>) -> Result<Reply, StoreError> {
    let driver = Driver::of_root(shared)?;
    driver.settle_interrupted()?;
    match request {
        Some(said) => {
            if driver.can_go_on() {
                driver.bid_farewell();
            }
            driver.leave_unanswered("The user did not answer and asked for something else.")?;
            driver.begin(said).await?;
        }
        None if !driver.can_go_on() => return driver.last_reply(),
        None => driver.reopen()?,
    }
    driver.drive().await?;
    shared.store.flush(&shared.id).await?;
    driver.last_reply()
}

/// End a task that waits for answers, as aborted.
pub(crate) async fn abandon(shared: &Arc<Shared>, reason: String) -> Result<Reply, StoreError> {
    let driver = Driver::of_root(shared)?;
    driver.settle_interrupted()?;
    if driver.can_go_on() {
        driver.bid_farewell();
        driver.leave_unanswered("The task was given up before this was answered.")?;
        driver.reopen()?;
        driver.end(Outcome::Aborted { reason })?;
        shared.store.flush(&shared.id).await?;
    }
    driver.last_reply()
}

/// One run at work.
struct Driver {
    shared: Arc<Shared>,
    run: RunId,
    agent: Agent,
    cancel: CancellationToken,
}

/// What a step led to.
enum Progress {
    /// The next decision is due.
    GoOn,
    /// The turn is to end so.
    End(Outcome),
}

impl Driver {
    /// The driver of a session's root run, for a new turn.
    fn of_root(shared: &Arc<Shared>) -> Result<Self, StoreError> {
        let cancel = shared.renew_cancel();
        let agent = match shared.ledger().run(RunId::ROOT) {
            Some(run) => run.agent.clone(),
            None => return Err(StoreError::Io("the session has no root run".into())),
        };
        Ok(Self { shared: Arc::clone(shared), run: RunId::ROOT, agent, cancel })
    }

    /// Decide and do until the turn ends.
    fn drive(&self) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        async move {
            let mut idle = 0;
            loop {
                if self.cancel.is_cancelled() {
                    return self.abort();
                }
                let (step, steered) = self.decide();
                idle = match step {
                    Step::Note { .. } | Step::Skip { .. } | Step::Settle(_) | Step::Say(_) => {
                        idle + 1
                    }
                    _ => 0,
                };
                if idle > MOST_IDLE_DECISIONS {
                    let error = "the behaviour decides without end".to_owned();
                    let cause = FailureCause::Internal;
                    return self.end(Outcome::Failed { error, cause });
                }
                match self.carry_out(step).await? {
                    Progress::GoOn => {}
                    Progress::End(outcome) => {
                        if let Some(outcome) = self.end_at(outcome, steered)? {
                            return Ok(outcome);
                        }
                    }
                }
            }
        }
        .boxed()
    }

    /// The next step, and how much had been said by then.
    fn decide(&self) -> (Step, u64) {
        match self.shared.ledger().run(self.run) {
            Some(run) => (run.decide(), run.state.steered()),
            None => (Step::End(internal("the run is gone")), 0),
        }
    }

    async fn carry_out(&self, step: Step) -> Result<Progress, StoreError> {
        match step {
            Step::Ask(ask) => match self.breach()? {
                Some(outcome) => Ok(Progress::End(outcome)),
                None => self.ask(ask).await,
            },
            Step::Call => self.run_batch().await,
            Step::Skip { calls, reason } => {
                self.settle_calls(ToolStatus::Skipped, &reason, |id| calls.contains(id))?;
                Ok(Progress::GoOn)
            }
            Step::Settle(results) => {
                self.settle_with(results)?;
                Ok(Progress::GoOn)
            }
            Step::Wait => Ok(Progress::End(self.input_required())),
            Step::Run(turns) => self.run_children(turns).await,
            Step::Invoke { function, input } => self.invoke(function, input).await,
            Step::Note { topic, data } => {
                self.append(Event::Note { topic, data })?;
                Ok(Progress::GoOn)
            }
            Step::Say(message) => {
                self.append(Event::AgentMessage {
                    message: Arc::new(message),
                    model: Arc::default(),
                    usage: Usage::default(),
                    stop: Some(StopReason::Completed),
                    elapsed_ms: 0,
                    aside: None,
                })?;
                Ok(Progress::GoOn)
            }
            Step::End(outcome) => self.finish(outcome).await,
        }
    }

    /// Write a request and begin a turn with it.
    async fn begin(&self, Said { message, expects }: Said) -> Result<(), StoreError> {
        let request = Arc::clone(&message);
        self.append(Event::UserRequest { message, delivery: Delivery::Start, expects })?;
        self.reopen()?;
        for (hook, function) in self.hooks().before_reply() {
            match function(self.hook_context(), Arc::clone(&request)).await {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let message = Arc::new(message);
                    self.hook_answered(&hook, HookChange::PreReply { message })?;
                }
                Err(error) => {
                    self.hook_failed(&hook, "pre_reply", &error.0)?;
                    let error = format!("the hook {hook} failed before the reply: {error}");
                    self.end(Outcome::Failed { error, cause: FailureCause::Hook })?;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Begin a turn, unless one is under way.
    fn reopen(&self) -> Result<(), StoreError> {
        let mut ledger = self.shared.ledger();
        let Some(run) = ledger.run(self.run) else {
            return Ok(());
        };
        if !run.state.is_open() {
            let turn = run.state.turn() + 1;
            self.shared.append_locked(&mut ledger, self.run, Event::AgentResponseStart { turn })?;
        }
        Ok(())
    }

    fn can_go_on(&self) -> bool {
        self.shared.ledger().run(self.run).is_some_and(|run| run.state.can_go_on())
    }

    /// After a crash: mark what was running, and give calls that must not be repeated their result.
    fn settle_interrupted(&self) -> Result<(), StoreError> {
        let in_flight: Vec<(RunId, ToolResult, Effect)> = {
            let ledger = self.shared.ledger();
            if !ledger.run(RunId::ROOT).is_some_and(|run| run.state.is_open()) {
                return Ok(());
            }
            let runs = ledger.runs().filter_map(|run| Some((run.state.id(), run.state.batch()?)));
            runs.flat_map(|(id, batch)| batch.calls().iter().map(move |call| (id, call)))
                .filter_map(|(id, state)| match state.phase {
                    Phase::Started(effect) => {
                        let result =
                            ToolResult::text(&state.call, ToolStatus::Interrupted, INTERRUPTED);
                        Some((id, result, effect))
                    }
                    _ => None,
                })
                .collect()
        };
        let ids: Vec<CallId> = in_flight.iter().map(|(_, r, _)| r.call_id.clone()).collect();
        self.shared.append(RunId::ROOT, Event::SessionResumed { in_flight: ids })?;
        for (run, result, effect) in in_flight {
            if effect == Effect::SideEffect {
                let result = Arc::new(result);
                self.shared.append(run, Event::ToolEnded { result, elapsed_ms: 0 })?;
            }
        }
        Ok(())
    }

    /// Something else comes while something waits for an answer: whatever waited is passed over.
    fn leave_unanswered(&self, why: &str) -> Result<(), StoreError> {
        let waiting: Vec<RunId> = {
            let ledger = self.shared.ledger();
            let open = ledger.runs().filter(|run| run.state.batch().is_some());
            open.map(|run| run.state.id()).collect()
        };
        for run in waiting {
            self.of_run(run).settle_calls(ToolStatus::Skipped, why, |_| true)?;
        }
        // A child does not go on with what it was told before: its parent hears that it was left.
        let at_work = self.shared.ledger().children_at_work();
        for (_, _, child) in &at_work {
            self.of_run(*child).bid_farewell();
        }
        let mut ledger = self.shared.ledger();
        for (parent, key, child) in at_work {
            let outcome = Outcome::Aborted { reason: "it was left unanswered".into() };
            let event = Event::ChildReplied { child, key, outcome, message: None, called: None };
            self.shared.append_locked(&mut ledger, parent, event)?;
        }
        Ok(())
    }

    /// A driver like this one for another run.
    fn of_run(&self, run: RunId) -> Self {
        let agent = self.shared.ledger().run(run).map(|run| run.agent.clone());
        Self {
            shared: Arc::clone(&self.shared),
            run,
            agent: agent.unwrap_or_else(|| self.agent.clone()),
            cancel: self.cancel.clone(),
        }
    }

    /// The outcome that a used-up budget leads to, if one is.
    fn breach(&self) -> Result<Option<Outcome>, StoreError> {
        let mut ledger = self.shared.ledger();
        let now = now_ms();
        let found = ledger.with_ancestors(self.run).find_map(|run| {
            let spent = run.state.spent();
            let (limit, used) = ledger.budget_of(run).breach(spent, now).or_else(|| {
                let used = format!("{} steps", spent.steps);
                (run.state.steps() >= MOST_STEPS).then_some((Limit::Steps, used))
            })?;
            let refused = run.state.refused_budget() == Some(limit);
            let asked = run.state.pending().iter().any(|inquiry| {
                matches!(&inquiry.kind, InquiryKind::Budget { limit: other, .. } if *other == limit)
            });
            let bounded = run.state.steps() >= MOST_STEPS;
            Some((run.state.id(), limit, used, refused || bounded, asked))
        });
        let Some((owner, limit, used, is_final, asked)) = found else {
            return Ok(None);
        };
        if is_final || self.shared.attendance == Attendance::Unattended {
            return Ok(Some(Outcome::LimitReached { limit }));
        }
        if !asked {
            let id = CallId::from(format!("budget-{}", ledger.next_seq));
            let inquiry = Inquiry { id, run: owner, kind: InquiryKind::Budget { limit, used } };
            self.shared.append_locked(
                &mut ledger,
                owner,
                Event::ExternalAction { inquiry: Box::new(inquiry) },
            )?;
        }
        let inquiries = ledger.pending().cloned().collect();
        Ok(Some(Outcome::InputRequired { inquiries }))
    }

    fn input_required(&self) -> Outcome {
        let inquiries = self.shared.ledger().pending().cloned().collect();
        Outcome::InputRequired { inquiries }
    }

    /// The behaviour wants to end: hooks may send it back, or change the last word.
    async fn finish(&self, outcome: Outcome) -> Result<Progress, StoreError> {
        if outcome != Outcome::Completed {
            return Ok(Progress::End(outcome));
        }
        let (message, send_backs) = match self.shared.ledger().run(self.run) {
            Some(run) => (run.state.last_message().cloned(), run.state.send_backs()),
            None => (None, 0),
        };
        if send_backs < self.agent.parts().max_send_backs {
            for (hook, function) in self.hooks().at_end() {
                match function(self.hook_context(), message.clone()).await {
                    Ok(None) => {}
                    Ok(Some(message)) => {
                        let message = Arc::new(message);
                        self.hook_answered(&hook, HookChange::SentBack { message })?;
                        return Ok(Progress::GoOn);
                    }
                    Err(error) => {
                        self.hook_failed(&hook, "before_end", &error.0)?;
                        let error = format!("the hook {hook} failed before the end: {error}");
                        let cause = FailureCause::Hook;
                        return Ok(Progress::End(Outcome::Failed { error, cause }));
                    }
                }
            }
        }
        let Some(message) = message else {
            return Ok(Progress::End(outcome));
        };
        for (hook, function) in self.hooks().after_reply() {
            match function(self.hook_context(), Arc::clone(&message)).await {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let message = Arc::new(message);
                    self.hook_answered(&hook, HookChange::PostReply { message })?;
                }
                Err(error) => self.hook_failed(&hook, "post_reply", &error.0)?,
            }
        }
        Ok(Progress::End(outcome))
    }

    /// Stop: calls without a result get one, and the turn ends as aborted.
    fn abort(&self) -> Result<Outcome, StoreError> {
        self.bid_farewell();
        self.settle_calls(ToolStatus::Cancelled, "Cancelled before it was done.", |_| true)?;
        self.end(Outcome::Aborted { reason: self.shared.cancel_reason() })
    }

    /// End the turn that was decided to end when so much had been said. `None` if somebody has
    /// said more since: that comes first.
    fn end_at(&self, outcome: Outcome, steered: u64) -> Result<Option<Outcome>, StoreError> {
        // A turn that ends for good leaves no call without a result behind.
        if !matches!(outcome, Outcome::InputRequired { .. }) {
            self.settle_calls(ToolStatus::Skipped, "The turn ended before it ran.", |_| true)?;
        }
        let mut ledger = self.shared.ledger();
        let Some(run) = ledger.run(self.run) else { return Ok(Some(outcome)) };
        if outcome == Outcome::Completed && run.state.steered() != steered {
            return Ok(None);
        }
        if run.state.is_open() {
            let turn = run.state.turn();
            let event = Event::AgentResponseEnd { turn, outcome: outcome.clone() };
            self.shared.append_locked(&mut ledger, self.run, event)?;
        }
        Ok(Some(outcome))
    }

    fn end(&self, outcome: Outcome) -> Result<Outcome, StoreError> {
        self.end_at(outcome.clone(), 0).map(|ended| ended.unwrap_or(outcome))
    }

    /// Give open calls a result without running them.
    fn settle_calls(
        &self,
        status: ToolStatus,
        text: &str,
        which: impl Fn(&CallId) -> bool,
    ) -> Result<(), StoreError> {
        let mut ledger = self.shared.ledger();
        let batch = ledger.run(self.run).and_then(|run| run.state.batch());
        let open = batch.into_iter().flat_map(|batch| batch.calls());
        let results: Vec<ToolResult> = open
            .filter(|state| which(&state.call.id))
            .filter_map(|state| match &state.phase {
                Phase::Done(_) => None,
                Phase::Settled(result) => Some(ToolResult::clone(result)),
                _ => Some(ToolResult::text(&state.call, status, text)),
            })
            .collect();
        for result in results {
            let event = Event::ToolEnded { result: Arc::new(result), elapsed_ms: 0 };
            self.shared.append_locked(&mut ledger, self.run, event)?;
        }
        Ok(())
    }

    /// Give open calls the results that the behaviour has for them.
    fn settle_with(&self, results: Vec<ToolResult>) -> Result<(), StoreError> {
        let mut ledger = self.shared.ledger();
        for result in results {
            let batch = ledger.run(self.run).and_then(|run| run.state.batch());
            let mut calls = batch.into_iter().flat_map(|batch| batch.calls());
            let is_open = calls.any(|state| {
                state.call.id == result.call_id && !matches!(state.phase, Phase::Done(_))
            });
            if is_open {
                let event = Event::ToolEnded { result: Arc::new(result), elapsed_ms: 0 };
                self.shared.append_locked(&mut ledger, self.run, event)?;
            }
        }
        Ok(())
    }

    fn last_reply(&self) -> Result<Reply, StoreError> {
        let ledger = self.shared.ledger();
        let Some(run) = ledger.run(self.run) else {
            return Err(StoreError::Io("the run is gone".into()));
        };
        let state = &run.state;
        Ok(Reply {
            turn: state.turn(),
            outcome: state.outcome().cloned().unwrap_or(Outcome::Completed),
            message: state.last_message().cloned(),
            usage: state.spent().usage,
        })
    }

    fn append(&self, event: Event) -> Result<(), StoreError> {
        self.shared.append(self.run, event).map(|_| ())
    }

    fn hooks(&self) -> &crate::Hooks {
        &self.agent.parts().hooks
    }

    fn hook_context(&self) -> HookContext {
        let turn = self.shared.ledger().run(self.run).map_or(0, |run| run.state.turn());
        HookContext {
            session: self.shared.id.clone(),
            run: self.run,
            agent: Arc::clone(&self.agent.parts().name),
            turn,
        }
    }

    fn hook_answered(&self, hook: &str, change: HookChange) -> Result<(), StoreError> {
        self.append(Event::HookAnswered { hook: hook.to_owned(), change })
    }

    fn hook_failed(&self, hook: &str, at: &str, error: &str) -> Result<(), StoreError> {
        let change = HookChange::Failed { at: at.to_owned(), error: error.to_owned() };
        self.hook_answered(hook, change)
    }
}

/// What a model is told about a call that was running when the process ended.
const INTERRUPTED: &str = "Interrupted: the process ended while this call was running. It may or \
     may not have taken effect. Check before you try it again.";

fn internal(error: &str) -> Outcome {
    Outcome::Failed { error: error.to_owned(), cause: FailureCause::Internal }
}
