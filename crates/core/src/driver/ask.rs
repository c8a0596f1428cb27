//! Asking the model: hooks, trimming, streaming, trying again.

use std::{sync::Arc, time::Instant};

use futures::StreamExt;

use super::{Driver, Progress};
use crate::{
    Accumulator, Ask, CallId, Completion, Delta, ErrorClass, Event, FailureCause, HookChange,
    HookError, Live, Message, Model, ModelError, OnFull, Options, Outcome, Part, Request,
    StoreError, ToolChoice, ToolSelection, ToolSpec,
    session::{Ledger, now_ms},
};

/// How one try to get an answer ended.
enum Tried {
    Answered(Completion),
    Failed(ModelError),
    /// Cancelled or out of time, with what was said until then.
    Stopped(Completion),
    Hook(Arc<str>, HookError),
}

impl Driver {
    pub(super) async fn ask(&self, ask: Ask) -> Result<Progress, StoreError> {
        let Some(model) = self.agent.parts().model.clone() else {
            let error = format!("the agent {} has no model", self.agent.name());
            return Ok(Progress::End(Outcome::Failed { error, cause: FailureCause::Model }));
        };
        if let Some(outcome) = self.before_step().await? {
            return Ok(Progress::End(outcome));
        }
        self.make_room(&model).await?;
        let mut attempt = 1;
        loop {
            let began = Instant::now();
            match self.try_once(&model, &ask).await {
                Tried::Answered(completion) => {
                    let message = self.said(&model, &ask, completion, began)?;
                    return self.after_step(message).await;
                }
                Tried::Stopped(completion) => {
                    if !completion.message.parts.is_empty() {
                        self.said(&model, &ask, completion, began)?;
                    }
                    return Ok(self.breach()?.map_or(Progress::GoOn, Progress::End));
                }
                Tried::Hook(hook, error) => {
                    self.hook_failed(&hook, "on_text", &error.0)?;
                    let error = format!("the hook {hook} failed on a text: {error}");
                    let cause = FailureCause::Hook;
                    return Ok(Progress::End(Outcome::Failed { error, cause }));
                }
                Tried::Failed(error) => {
                    if error.class == ErrorClass::ContextOverflow && self.halve_prompt()? {
                        continue;
                    }
                    let wait = self.agent.parts().retry.wait(attempt, error.retry_after);
                    let Some(wait) = wait.filter(|_| error.class.is_transient()) else {
                        return Ok(Progress::End(failure(&model, &error, attempt)));
                    };
                    self.append(Event::ModelRetried {
                        attempt,
                        error: error.to_string(),
                        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    })?;
                    self.shared.show(|| Live::Restart { run: self.run });
                    tokio::select! {
                        () = tokio::time::sleep(wait) => attempt += 1,
                        () = self.cancel.cancelled() => return Ok(Progress::GoOn),
                    }
                }
            }
        }
    }

    async fn before_step(&self) -> Result<Option<Outcome>, StoreError> {
        for (hook, function) in self.hooks().before_step() {
            match function(self.hook_context()).await {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let message = Arc::new(message);
                    self.hook_answered(&hook, HookChange::PreStep { message })?;
                }
                Err(error) => {
                    self.hook_failed(&hook, "pre_step", &error.0)?;
                    let error = format!("the hook {hook} failed before a step: {error}");
                    return Ok(Some(Outcome::Failed { error, cause: FailureCause::Hook }));
                }
            }
        }
        Ok(None)
    }

    async fn after_step(&self, message: Arc<Message>) -> Result<Progress, StoreError> {
        for (hook, function) in self.hooks().after_step() {
            match function(self.hook_context(), Arc::clone(&message)).await {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let message = Arc::new(message);
                    self.hook_answered(&hook, HookChange::PostStep { message })?;
                }
                Err(error) => self.hook_failed(&hook, "post_step", &error.0)?,
            }
        }
        Ok(Progress::GoOn)
    }

    /// Ask once and read the stream to its end.
    async fn try_once(&self, model: &Arc<dyn Model>, ask: &Ask) -> Tried {
        let (request, time_left) = {
            let ledger = self.shared.ledger();
            let now = now_ms();
            let time_left = ledger
                .with_ancestors(self.run)
                .filter_map(|run| ledger.budget_of(run).time_left(run.state.spent(), now))
                .min();
            (self.request(&ledger, ask), time_left)
        };
        let out_of_time = async {
            match time_left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(out_of_time);
        let on_text = self.hooks().each_text();
        let context = (!on_text.is_empty()).then(|| self.hook_context());
        let mut answer = Accumulator::default();
        let mut stream = model.ask(request);
        loop {
            let delta = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Tried::Stopped(answer.finish()),
                () = &mut out_of_time => return Tried::Stopped(answer.finish()),
                delta = stream.next() => delta,
            };
            let mut delta = match delta {
                Some(Ok(delta)) => delta,
                Some(Err(error)) => return Tried::Failed(error),
                None => break,
            };
            if let (Delta::Text(text), Some(context)) = (&mut delta, &context) {
                for (hook, function) in &on_text {
                    match function(context, text) {
                        Ok(None) => {}
                        Ok(Some(other)) => *text = other,
                        Err(error) => return Tried::Hook(Arc::clone(hook), error),
                    }
                }
            }
            // What is no part of the conversation is nothing to read along with.
            if ask.aside.is_none() {
                let shown = || Live::Delta { run: self.run, delta: Arc::new(delta.clone()) };
                self.shared.show(shown);
            }
            answer.push(delta);
        }
        // Gives the request back before the answer is folded in, so that the prompt is extended in
        // place.
        drop(stream);
        let completion = answer.finish();
        if completion.stop.is_none() {
            let text = "the answer broke off before its end";
            return Tried::Failed(ModelError::new(ErrorClass::Malformed, text));
        }
        Tried::Answered(completion)
    }

    fn request(&self, ledger: &Ledger, ask: &Ask) -> Request {
        let parts = self.agent.parts();
        let messages = ledger.run(self.run).map(|run| Arc::clone(run.state.window().messages()));
        let tools = match &ask.tools {
            ToolSelection::All => Arc::clone(parts.tools.specs()),
            ToolSelection::None => Arc::default(),
            ToolSelection::Only(names) => {
                let wanted = |spec: &&Arc<ToolSpec>| names.contains(&spec.name);
                parts.tools.specs().iter().filter(wanted).cloned().collect()
            }
        };
        let answer = ledger.run(self.run).and_then(|run| run.state.answer_tool());
        // What is asked on the side is not the answer to the request.
        let answer = answer.filter(|_| ask.aside.is_none());
        let tools = match answer {
            Some(answer) => with_answer(&tools, answer),
            None => tools,
        };
        let mut options = parts.options.clone();
        if ask.tool_choice != ToolChoice::Auto {
            options.tool_choice = ask.tool_choice.clone();
        }
        // Where nothing else can be done, prose first would only be a detour. Models that are told
        // to think must not be forced: providers refuse that.
        if let (Some(answer), [_]) = (answer, &*tools)
            && options.tool_choice == ToolChoice::Auto
            && options.reasoning_effort.is_none()
        {
            options.tool_choice = ToolChoice::One(answer.name.clone());
        }
        if ask.output.is_some() {
            options.output.clone_from(&ask.output);
        }
        Request {
            system: parts.system.clone(),
            messages: messages.unwrap_or_default(),
            extra: ask.extra.clone(),
            tools,
            options,
        }
    }

    /// Write down what the model said.
    fn said(
        &self,
        model: &Arc<dyn Model>,
        ask: &Ask,
        completion: Completion,
        began: Instant,
    ) -> Result<Arc<Message>, StoreError> {
        let Completion { mut message, mut usage, stop } = completion;
        if let Some(price) = model.price() {
            usage.cost_microusd = price.cost_microusd(&usage);
        }
        let mut ledger = self.shared.ledger();
        name_calls_apart(&mut message, &ledger);
        let message = Arc::new(message);
        let event = Event::AgentMessage {
            message: Arc::clone(&message),
            model: ledger.model_named(model.name()),
            usage,
            stop,
            elapsed_ms: elapsed_ms(began),
            aside: ask.aside.as_deref().map(Box::from),
        };
        self.shared.append_locked(&mut ledger, self.run, event)?;
        Ok(message)
    }

    /// Trim the prompt if it is over its bound.
    async fn make_room(&self, model: &Arc<dyn Model>) -> Result<(), StoreError> {
        let (dropped, old) = {
            let ledger = self.shared.ledger();
            let Some(run) = ledger.run(self.run) else {
                return Ok(());
            };
            let memory = run.state.memory();
            let Some(dropped) = run.state.window().excess(memory) else {
                return Ok(());
            };
            let old = match memory.on_full {
                OnFull::Trim => Vec::new(),
                OnFull::Summarize => run.state.window().droppable(dropped),
            };
            (dropped, old)
        };
        let summary = if old.is_empty() { None } else { self.summarize(model, old).await };
        self.append(Event::MemoryTrimmed { dropped, summary })
    }

    /// A summary of messages that leave the prompt. Without one they leave all the same.
    async fn summarize(
        &self,
        model: &Arc<dyn Model>,
        messages: Vec<Arc<Message>>,
    ) -> Option<Arc<Message>> {
        let request = Request {
            system: Some(Arc::from(SUMMARIZE)),
            messages: Arc::new(vec![Arc::new(Message::user(transcript(&messages)))]),
            options: Options { tool_choice: ToolChoice::None, ..Options::default() },
            ..Request::default()
        };
        let mut stream = model.ask(request);
        let mut answer = Accumulator::default();
        loop {
            tokio::select! {
                () = self.cancel.cancelled() => return None,
                delta = stream.next() => match delta {
                    Some(Ok(delta)) => answer.push(delta),
                    Some(Err(_)) => return None,
                    None => break,
                },
            }
        }
        let text = answer.finish().message.text();
        let text = text.trim();
        (!text.is_empty()).then(|| {
            Arc::new(Message::user(format!("Summary of the conversation before this:\n{text}")))
        })
    }

    /// Drop half of the prompt for a model that found it too long; `false` if nothing may go.
    fn halve_prompt(&self) -> Result<bool, StoreError> {
        let mut ledger = self.shared.ledger();
        let half = ledger.run(self.run).and_then(|run| run.state.window().half());
        let Some(dropped) = half else {
            return Ok(false);
        };
        let event = Event::MemoryTrimmed { dropped, summary: None };
        self.shared.append_locked(&mut ledger, self.run, event)?;
        Ok(true)
    }
}

/// Tools, and the one that gives the expected answer.
fn with_answer(tools: &[Arc<ToolSpec>], answer: &Arc<ToolSpec>) -> Arc<[Arc<ToolSpec>]> {
    let others = tools.iter().filter(|spec| spec.name != answer.name);
    others.chain([answer]).cloned().collect()
}

/// What a model is told when it has to summarize.
const SUMMARIZE: &str = "You write down what must not be forgotten of a conversation: what was \
     asked, what was decided, what was found and done, what is still open. Keep names, numbers, \
     paths and exact wording that later steps need. Be short. Answer with the summary alone.";

fn transcript(messages: &[Arc<Message>]) -> String {
    let mut text = String::new();
    for message in messages {
        for part in &message.parts {
            let line = match part {
                Part::Text { text } => text.clone(),
                Part::ToolCall(call) => format!("calls {} {}", call.name, call.arguments),
                Part::ToolResult(result) => {
                    format!("{} gave ({}): {}", result.name, result.status, result.prompt_text())
                }
                Part::Data { value } => value.to_string(),
                Part::Reasoning { .. } | Part::File { .. } => continue,
            };
            text.push_str(&format!("{}: {line}\n", message.role));
        }
    }
    text
}

/// Calls are known by their ids in the whole session, but some models repeat theirs.
fn name_calls_apart(message: &mut Message, ledger: &Ledger) {
    let mut seen: Vec<CallId> = Vec::new();
    for part in &mut message.parts {
        let Part::ToolCall(call) = part else { continue };
        if ledger.knows_call(&call.id) || seen.contains(&call.id) {
            call.id = CallId::from(format!("{}-{}-{}", call.id, ledger.next_seq, seen.len()));
        }
        seen.push(call.id.clone());
    }
}

fn failure(model: &Arc<dyn Model>, error: &ModelError, attempts: u32) -> Outcome {
    let cause = match error.class {
        ErrorClass::Authentication => FailureCause::Authentication,
        _ => FailureCause::Model,
    };
    let tries = if attempts > 1 { format!(" after {attempts} tries") } else { String::new() };
    let error = format!("{}: {}{tries}: {error}", model.name(), error.class);
    Outcome::Failed { error, cause }
}

pub(super) fn elapsed_ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}
