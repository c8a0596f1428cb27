//! Running a batch of calls: each gets exactly one result, whatever happens.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, StreamExt, stream};
use serde_json::Value;

use super::{Driver, Progress, ask::elapsed_ms};
use crate::{
    CallId, CallState, Content, Effect, Event, Execution, HookChange, Inquiry, InquiryKind, Part,
    Phase, PreTool, Questions, Situation, StoreError, Tool, ToolCall, ToolContext, ToolError,
    ToolResult, ToolStatus, Verdict, session::Results, tool::Question,
};

/// How many calls run at the same time.
const MOST_AT_ONCE: usize = 16;

/// How long a tool may take to stop after it was told to.
const GRACE: Duration = Duration::from_millis(500);

/// A call that may run now.
#[derive(Clone)]
struct Cleared {
    call: ToolCall,
    tool: Arc<dyn Tool>,
    /// Whether the arguments are no longer the model's.
    changed: bool,
    /// What its own questions were answered.
    answers: Arc<[Option<Vec<Part>>]>,
    /// The id of its next question.
    question: CallId,
}

/// What became of a call that was looked at.
enum Triage {
    /// It may run.
    Runs(Cleared),
    /// Something was written about it: a result, or a question.
    Written,
}

impl Driver {
    /// Bring every call of the batch as far as it can go now.
    pub(super) async fn run_batch(&self) -> Result<Progress, StoreError> {
        self.conclude()?;
        // Hooks see a call once, though it may wait here for others before it runs.
        let mut cleared: HashMap<CallId, Cleared> = HashMap::new();
        loop {
            if self.cancel.is_cancelled() {
                return Ok(Progress::GoOn);
            }
            let Some(calls) = self.open_calls() else {
                return Ok(Progress::GoOn);
            };
            let mut ready = Vec::new();
            for state in calls {
                let known = cleared.get(&state.call.id).cloned();
                let triage = match (&state.phase, known) {
                    (Phase::New, Some(known)) => Triage::Runs(known),
                    (Phase::New, None) => self.look_at(&state).await?,
                    (Phase::Ready, _) => self.look_again(&state)?,
                    (Phase::Settled(result), _) => {
                        self.ended(Arc::clone(result), 0)?;
                        Triage::Written
                    }
                    (Phase::Asked | Phase::Started(_) | Phase::Done(_), _) => Triage::Written,
                };
                if let Triage::Runs(call) = triage {
                    cleared.insert(call.call.id.clone(), call.clone());
                    ready.push(call);
                }
            }
            if self.open_calls().is_none() {
                return Ok(Progress::GoOn);
            }
            let group = first_group(ready);
            if group.is_empty() {
                return Ok(Progress::End(self.input_required()));
            }
            self.execute(group).await?;
        }
    }

    /// If the model gave the expected answer: take it, and leave what else it called alone.
    fn conclude(&self) -> Result<(), StoreError> {
        let call = {
            let ledger = self.shared.ledger();
            let run = ledger.run(self.run);
            run.and_then(|run| run.state.concluding_call().cloned())
        };
        let Some(call) = call else { return Ok(()) };
        let skipped = "It did not run: the answer was given in the same message.";
        self.settle_calls(ToolStatus::Skipped, skipped, |id| *id != call.id)?;
        self.ended(Arc::new(ToolResult::text(&call, ToolStatus::Ok, "The answer was taken.")), 0)
    }

    /// The calls of the batch, or `None` when it is complete.
    fn open_calls(&self) -> Option<Vec<CallState>> {
        let ledger = self.shared.ledger();
        ledger.run(self.run)?.state.batch().map(|batch| batch.calls().to_vec())
    }

    /// Decide what happens to a new call: it is wrong, refused, asked about, or runs.
    async fn look_at(&self, state: &CallState) -> Result<Triage, StoreError> {
        if let Some(schema) = self.expects(&state.call.name) {
            let text = format!("The answer must be a JSON object that matches {schema}");
            return self.refuse(&state.call, ToolStatus::Invalid, text);
        }
        let Some(tool) = self.agent.tools().get(&state.call.name).cloned() else {
            return self.refuse(&state.call, ToolStatus::Invalid, self.no_such_tool(&state.call));
        };
        let mut call = state.call.clone();
        let mut changed = state.changed;
        if !state.hooked {
            match self.before_tool(&call).await? {
                Some(Some(arguments)) => {
                    call.arguments = arguments;
                    changed = true;
                }
                Some(None) => {}
                None => return Ok(Triage::Written),
            }
        }
        if let Err(error) = check(&*tool, &call.arguments) {
            return self.refuse(&call, ToolStatus::Invalid, error);
        }
        let spec = tool.spec();
        let kind = match spec.execution {
            Execution::Human => question(&call),
            Execution::External => InquiryKind::Execution { call: call.clone() },
            Execution::Local => {
                let situation = self.situation(&*tool, &call);
                match self.agent.policy().verdict(spec, &call.arguments, &situation) {
                    Verdict::Allow => {
                        let (answers, question) = (Arc::default(), state.next_question());
                        let cleared = Cleared { call, tool, changed, answers, question };
                        return Ok(Triage::Runs(cleared));
                    }
                    Verdict::Deny { reason } => return self.forbid(&call, &reason),
                    Verdict::Ask { reason } => InquiryKind::Approval { call: call.clone(), reason },
                }
            }
        };
        let inquiry = Inquiry { id: call.id.clone(), run: self.run, kind };
        self.append(Event::ExternalAction { inquiry: Box::new(inquiry) })?;
        Ok(Triage::Written)
    }

    /// What the permissions look at besides the call.
    fn situation(&self, tool: &dyn Tool, call: &ToolCall) -> Situation {
        let risk = tool.risk(&call.arguments, &self.shared.id);
        let ledger = self.shared.ledger();
        Situation { grant: ledger.grant(&call.name), read: ledger.read(), risk }
    }

    /// The schema of the expected answer, if this is the name that gives it.
    fn expects(&self, name: &str) -> Option<Arc<Value>> {
        let ledger = self.shared.ledger();
        let expected = ledger.run(self.run)?.state.expected()?;
        (expected.name == name).then(|| Arc::clone(&expected.schema))
    }

    /// A call that somebody approved, perhaps with other arguments: what can never run still does
    /// not.
    fn look_again(&self, state: &CallState) -> Result<Triage, StoreError> {
        let call = state.call.clone();
        let Some(tool) = self.agent.tools().get(&call.name).cloned() else {
            return self.refuse(&call, ToolStatus::Invalid, self.no_such_tool(&call));
        };
        if let Err(error) = check(&*tool, &call.arguments) {
            return self.refuse(&call, ToolStatus::Invalid, error);
        }
        if let Some(Verdict::Deny { reason }) =
            self.agent.policy().denial(tool.spec(), &call.arguments)
        {
            return self.forbid(&call, &reason);
        }
        let (changed, question) = (state.changed, state.next_question());
        let answers = state.answers.as_slice().into();
        Ok(Triage::Runs(Cleared { call, tool, changed, answers, question }))
    }

    fn forbid(&self, call: &ToolCall, reason: &str) -> Result<Triage, StoreError> {
        let text = format!("This call is not permitted: {reason}.");
        self.refuse(call, ToolStatus::Denied, text)
    }

    fn refuse(
        &self,
        call: &ToolCall,
        status: ToolStatus,
        text: String,
    ) -> Result<Triage, StoreError> {
        self.ended(Arc::new(ToolResult::text(call, status, text)), 0)?;
        Ok(Triage::Written)
    }

    fn no_such_tool(&self, call: &ToolCall) -> String {
        let names: Vec<&str> =
            self.agent.tools().specs().iter().map(|spec| spec.name.as_str()).collect();
        match names.as_slice() {
            [] => format!("There is no tool {}; there are no tools at all.", call.name),
            names => {
                format!("There is no tool {}. The tools are: {}.", call.name, names.join(", "))
            }
        }
    }

    /// Let hooks see a call. `None` means that one of them stopped it; otherwise the arguments
    /// that the last one put in place, if any did.
    async fn before_tool(&self, call: &ToolCall) -> Result<Option<Option<Value>>, StoreError> {
        let mut call = call.clone();
        let mut changed = None;
        for (hook, function) in self.hooks().before_tool() {
            match function(self.hook_context(), call.clone()).await {
                Ok(PreTool::Go) => {}
                Ok(PreTool::With(arguments)) => {
                    call.arguments = arguments.clone();
                    changed = Some(arguments.clone());
                    let call_id = call.id.clone();
                    let arguments = Box::new(arguments);
                    self.hook_answered(&hook, HookChange::PreTool { call_id, arguments })?;
                }
                Ok(PreTool::Refuse(reason)) => {
                    let call_id = call.id.clone();
                    self.hook_answered(&hook, HookChange::Refused { call_id, reason })?;
                    self.write_settled(&call.id)?;
                    return Ok(None);
                }
                Err(error) => {
                    self.hook_failed(&hook, "pre_tool", &error.0)?;
                    let text = format!("The call did not run: the hook {hook} failed: {error}");
                    self.refuse(&call, ToolStatus::Error, text)?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(changed))
    }

    /// Write the result that the state holds for a call.
    fn write_settled(&self, id: &CallId) -> Result<(), StoreError> {
        let calls = self.open_calls().unwrap_or_default();
        match calls.into_iter().find(|state| state.call.id == *id).map(|state| state.phase) {
            Some(Phase::Settled(result)) => self.ended(result, 0),
            _ => Ok(()),
        }
    }

    /// Run calls side by side. Their start is on record before they run.
    async fn execute(&self, group: Vec<Cleared>) -> Result<(), StoreError> {
        let mut must_flush = false;
        for Cleared { call, tool, changed, .. } in &group {
            let effect = tool.spec().effect;
            must_flush |= effect != Effect::Pure;
            self.append(Event::ToolStarted {
                call_id: call.id.clone(),
                name: call.name.clone(),
                effect,
                arguments: changed.then(|| Box::new(call.arguments.clone())),
                authors: tool.spec().authors,
            })?;
        }
        // What has effects runs only when its call is safe on record: after a crash it must be
        // known under the same id.
        if must_flush {
            self.shared.store.flush(&self.shared.id).await?;
        }
        let mut running = stream::iter(group)
            .map(|cleared| async move {
                let began = Instant::now();
                let result = self.run_one(cleared).await;
                (result, elapsed_ms(began))
            })
            .buffer_unordered(MOST_AT_ONCE);
        while let Some((finish, elapsed)) = running.next().await {
            match finish {
                Finish::Result(result) => {
                    let result = self.after_tool(result).await?;
                    self.ended(result, elapsed)?;
                }
                Finish::Asks(id, Question { text, choices }) => {
                    let kind = InquiryKind::Question { text, choices };
                    let inquiry = Box::new(Inquiry { id, run: self.run, kind });
                    self.append(Event::ExternalAction { inquiry })?;
                }
            }
        }
        Ok(())
    }

    /// Run one call to its result or its question, within its time.
    async fn run_one(&self, cleared: Cleared) -> Finish {
        let Cleared { call, tool, answers, question, .. } = cleared;
        let questions = Questions::answered(answers);
        let stop = self.cancel.child_token();
        let context = ToolContext {
            session: self.shared.id.clone(),
            call_id: call.id.clone(),
            idempotency_key: format!("{}/{}", self.shared.id, call.id),
            cancel: stop.clone(),
            results: Arc::new(Results(Arc::clone(&self.shared))),
            questions: questions.clone(),
        };
        let ToolCall { id: call_id, name, arguments, .. } = call;
        let work = AssertUnwindSafe(tool.call(arguments, context)).catch_unwind();
        tokio::pin!(work);
        let timeout = tool.spec().timeout;
        let ended = tokio::select! {
            biased;
            output = &mut work => Ended::ByItself(output),
            () = self.cancel.cancelled() => Ended::Cancelled,
            () = tokio::time::sleep(timeout) => Ended::TimedOut,
        };
        let (status, content) = match ended {
            Ended::ByItself(Ok(Ok(Content(parts)))) => (ToolStatus::Ok, parts),
            Ended::ByItself(Ok(Err(ToolError(text)))) => {
                if let Some(asked) = questions.take() {
                    return Finish::Asks(question, asked);
                }
                (ToolStatus::Error, vec![Part::text(text)])
            }
            Ended::ByItself(Err(_)) => {
                let text = "The tool broke down; this is a defect of the tool.";
                (ToolStatus::Error, vec![Part::text(text)])
            }
            Ended::Cancelled | Ended::TimedOut => {
                stop.cancel();
                // A moment to clean up; what it says by then is kept.
                let last = tokio::time::timeout(GRACE, &mut work).await;
                let (status, text) = match ended {
                    Ended::TimedOut => {
                        let text = format!("Stopped: it took longer than {timeout:?}.");
                        (ToolStatus::TimedOut, text)
                    }
                    _ => (ToolStatus::Cancelled, "Cancelled while it ran.".to_owned()),
                };
                let mut content = vec![Part::text(text)];
                match last {
                    Ok(Ok(Ok(Content(parts)))) => content.extend(parts),
                    Ok(Ok(Err(ToolError(text)))) => content.push(Part::text(text)),
                    Ok(Err(_)) | Err(_) => {}
                }
                (status, content)
            }
        };
        Finish::Result(ToolResult { call_id, name, status, content })
    }

    async fn after_tool(&self, result: ToolResult) -> Result<Arc<ToolResult>, StoreError> {
        let mut result = Arc::new(result);
        for (hook, function) in self.hooks().after_tool() {
            match function(self.hook_context(), Arc::clone(&result)).await {
                Ok(None) => {}
                Ok(Some(content)) => {
                    let call_id = result.call_id.clone();
                    result = Arc::new(ToolResult { content, ..ToolResult::clone(&result) });
                    self.hook_answered(&hook, HookChange::PostTool { call_id })?;
                }
                Err(error) => self.hook_failed(&hook, "post_tool", &error.0)?,
            }
        }
        Ok(result)
    }

    fn ended(&self, result: Arc<ToolResult>, elapsed_ms: u64) -> Result<(), StoreError> {
        self.append(Event::ToolEnded { result, elapsed_ms })
    }
}

/// What a call came to.
enum Finish {
    Result(ToolResult),
    /// It goes on when this is answered.
    Asks(CallId, Question),
}

/// How a call came to its end.
enum Ended<T> {
    ByItself(T),
    Cancelled,
    TimedOut,
}

/// The calls that may run next, side by side: one with a side effect runs alone and in its order.
fn first_group(ready: Vec<Cleared>) -> Vec<Cleared> {
    let acts = |cleared: &Cleared| cleared.tool.spec().effect == Effect::SideEffect;
    if ready.first().is_some_and(acts) {
        return ready.into_iter().take(1).collect();
    }
    ready.into_iter().take_while(|cleared| !acts(cleared)).collect()
}

fn check(tool: &dyn Tool, arguments: &Value) -> Result<(), String> {
    let wrong = match arguments {
        Value::Object(_) => match tool.check(arguments) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        },
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Err(error) => format!("they are not valid JSON: {error}"),
            Ok(_) => "they must be a JSON object".to_owned(),
        },
        _ => "they must be a JSON object".to_owned(),
    };
    let spec = tool.spec();
    Err(format!(
        "The arguments of {} do not fit: {wrong}. Nothing ran. They must match {}",
        spec.name, spec.parameters
    ))
}

/// The question that a call to a person's tool asks.
fn question(call: &ToolCall) -> InquiryKind {
    let text = call.arguments.get("question").and_then(Value::as_str).unwrap_or_default();
    let choices = call.arguments.get("choices").and_then(Value::as_array);
    let choices = choices.into_iter().flatten().filter_map(Value::as_str);
    InquiryKind::Question {
        text: if text.is_empty() { call.arguments.to_string() } else { text.to_owned() },
        choices: choices.map(str::to_owned).collect(),
    }
}
