//! What a planned run remembers, folded from its journal and from nothing else.

use std::{collections::VecDeque, sync::Arc};

use duologue_core::{
    CallId, Delivery, Entry, Event, HookChange, Message, Outcome, RunId, ToolResult, ToolStatus,
};
use serde_json::Value;

use super::{
    aside::Aside,
    config::{PlannedConfig, Strategy},
    hybrid, ladder,
    lessons::{self, Lesson},
    note::{PlannedNote, ReplanNote, ReplanReason, TODO},
    plan::{Plan, PlanAnswer},
    prompt,
    stuck::{History, Rung, Trace},
    todo::{Todo, TodoAction},
    tools::Special,
    tried::TriedSteps,
    validation::{Occasion, Validation},
};

/// The state of a planned run's current task. A new task begins with a fresh one.
#[derive(Debug, Default)]
pub struct PlannedState {
    pub(crate) task: Option<Arc<Message>>,
    /// The tool that gives the answer whoever asked expects.
    expects: Option<String>,
    /// How the task is gone about, once that is known.
    pub(crate) strategy: Option<Strategy>,
    /// The same, or what a hybrid does at present.
    pub(crate) mode: Strategy,
    /// The step after which the mode was taken up.
    pub(crate) mode_since: u64,
    /// Steps of the conversation, asides not counted.
    pub(crate) iterations: u64,
    pub(crate) validate_every: Option<u64>,
    pub(crate) plan_every: Option<u64>,
    pub(crate) plan: Plan,
    /// How many steps all plans had.
    numbered: u32,
    pub(crate) replans: u32,
    pub(crate) todo: Todo,
    todo_changed: bool,
    /// How many items were finished when somebody last looked.
    finished: usize,
    pub(crate) history: History,
    pub(crate) tried: TriedSteps,
    pub(crate) rung: Option<Rung>,
    pub(crate) validation: Option<Validation>,
    pub(crate) due_plan: Option<(ReplanReason, String)>,
    pub(crate) due_validation: Option<Occasion>,
    /// Whether there was a look at the world since the last step.
    looked: bool,
    pub(crate) due_meta: bool,
    pub(crate) misfit: Option<Misfit>,
    /// What the model is told with the next step only.
    pub(crate) notice: Option<String>,
    /// Whether the next step must be an action: words alone did not finish the task.
    pub(crate) must_act: bool,
    /// A question to the person that is yet to be asked.
    pub(crate) question: Option<String>,
    /// What `done` was called with while items were open: the last word, if the check agrees.
    pub(crate) claim: Option<String>,
    /// How the step under way ends the task, if it does.
    last_word: Option<LastWord>,
    open: Option<OpenStep>,
    /// Somebody said something that the model has not answered yet.
    pub(crate) steered: bool,
    pub(crate) ending: Option<Ending>,
    pub(crate) lessons: Option<Vec<Lesson>>,
    pub(crate) lesson_kept: bool,
    /// Notes that are yet to be written.
    pub(crate) outbox: VecDeque<PlannedNote>,
    /// Whether the list as it is now is yet to be written, after the other notes.
    pub(crate) todo_is_due: bool,
    /// The one live copy of the list and the last check, made anew only when they change.
    pub(crate) live: Option<Arc<Message>>,
}

/// A message whose calls do not all have results yet.
#[derive(Debug)]
struct OpenStep {
    message: Arc<Message>,
    left: usize,
    results: Vec<Arc<ToolResult>>,
    asker: Asker,
}

/// Who made the calls of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Model,
    /// The ladder, which asks a person.
    Ladder,
    /// The check, which looks first.
    Check,
}

/// How a step ends a task.
#[derive(Debug)]
enum LastWord {
    /// By `done`; the summary is yet to be said.
    Summary(String),
    /// By the structured answer that was expected.
    Given,
}

/// An answer that did not fit.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) aside: Aside,
    pub(crate) tries: u32,
    pub(crate) error: String,
    pub(crate) answer: String,
}

/// How the task is about to end.
#[derive(Debug)]
pub(crate) struct Ending {
    /// The last word, if it is yet to be said.
    pub(crate) say: Option<String>,
    pub(crate) outcome: Outcome,
}

impl PlannedState {
    /// The TODO list.
    pub fn todo(&self) -> &Todo {
        &self.todo
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn task_text(&self) -> String {
        self.task.as_ref().map(|task| task.text()).unwrap_or_default()
    }

    pub(crate) fn fold(&mut self, config: &PlannedConfig, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { message, delivery: Delivery::Start, expects } => {
                *self = Self {
                    task: Some(Arc::clone(message)),
                    expects: expects.as_ref().map(|expected| expected.name.clone()),
                    ..Self::default()
                };
            }
            Event::UserRequest { delivery: Delivery::Steer, .. } => {
                self.steered = true;
                self.ending = None;
            }
            Event::HookAnswered { change, .. } => match change {
                HookChange::PreReply { message } => self.task = Some(Arc::clone(message)),
                HookChange::SentBack { .. } => self.ending = None,
                _ => {}
            },
            // What was cut off in the middle is asked for again.
            Event::AgentMessage { stop: None, .. } => {}
            Event::AgentMessage { message, aside: Some(aside), .. } => {
                if let Some(aside) = Aside::named(aside) {
                    self.aside_answered(config, aside, &message.text());
                }
            }
            Event::AgentMessage { message, aside: None, model, .. } => {
                let asker = match model.is_empty() {
                    true if self.look_due(config).is_some() => Asker::Check,
                    true => Asker::Ladder,
                    false => Asker::Model,
                };
                self.said(config, entry.run, message, asker);
            }
            Event::ToolEnded { result, .. } => self.tool_ended(config, entry.run, result),
            Event::FunctionAnswered { function, output, .. } => {
                self.function_answered(function, output.as_deref());
            }
            Event::Note { topic, data } => self.noted(topic, data),
            _ => {}
        }
    }

    fn noted(&mut self, topic: &str, data: &Value) {
        if topic == TODO {
            self.todo_is_due = false;
        } else if self.outbox.front().is_some_and(|note| note.topic() == topic) {
            self.outbox.pop_front();
        }
        if self.strategy.is_none()
            && let Some(PlannedNote::Strategy(choice)) = PlannedNote::read(topic, data)
        {
            self.strategy = Some(choice.strategy);
            self.mode = match choice.strategy {
                Strategy::Hybrid => Strategy::React,
                other => other,
            };
            if choice.plans_first {
                self.due_plan = Some((ReplanReason::Start, String::new()));
            }
        }
    }

    fn function_answered(&mut self, function: &str, output: Option<&Value>) {
        match function {
            lessons::RECALL => {
                let found = output.cloned().map(serde_json::from_value::<Vec<Lesson>>);
                self.lessons = Some(found.and_then(Result::ok).unwrap_or_default());
            }
            lessons::KEEP => self.lesson_kept = true,
            _ => {}
        }
    }

    /// The agent said something in the conversation.
    fn said(&mut self, config: &PlannedConfig, run: RunId, message: &Arc<Message>, asker: Asker) {
        if let Some(ending) = &mut self.ending {
            // The last word, or the structure of it that the model was reminded of.
            ending.say = None;
            return;
        }
        match asker {
            Asker::Ladder => self.question = None,
            Asker::Check => self.looked = true,
            Asker::Model => {
                self.iterations += 1;
                self.looked = false;
                self.steered = false;
                self.notice = None;
                self.must_act = false;
            }
        }
        let left = message.tool_calls().count();
        if left > 0 {
            let message = Arc::clone(message);
            self.open = Some(OpenStep { message, left, results: Vec::new(), asker });
        } else {
            self.answered(config, run, message);
        }
    }

    /// The model answered without calls: a claim that the task is complete.
    fn answered(&mut self, config: &PlannedConfig, run: RunId, message: &Arc<Message>) {
        if self.strategy == Some(Strategy::Simple) {
            self.end(Outcome::Completed, None);
            return;
        }
        self.tried.push(Arc::clone(message), Vec::new());
        self.history.push(Trace::of([]), &config.stuck);
        self.history.tick();
        self.notice = Some(prompt::NOT_DONE.to_owned());
        self.must_act = true;
        self.after_step(config, run);
        if config.validator {
            self.due_validation = Some(Occasion::Answer);
        }
    }

    fn tool_ended(&mut self, config: &PlannedConfig, run: RunId, result: &Arc<ToolResult>) {
        let Some(open) = &mut self.open else { return };
        let Some(call) = open.message.tool_calls().find(|call| call.id == result.call_id) else {
            return;
        };
        let special = Special::read(config, &call.name, &call.arguments);
        let is_expected = self.expects.as_ref() == Some(&call.name);
        open.results.push(Arc::clone(result));
        open.left = open.left.saturating_sub(1);
        let is_complete = open.left == 0;
        if result.status == ToolStatus::Ok {
            match special {
                _ if is_expected && !self.steered => self.last_word = Some(LastWord::Given),
                Some(Ok(special)) => self.special_call(config, special),
                _ => {}
            }
        }
        if is_complete && let Some(open) = self.open.take() {
            self.step_over(config, run, open);
        }
    }

    fn special_call(&mut self, config: &PlannedConfig, special: Special) {
        match special {
            Special::Planner(reason) => self.want_plan(config, ReplanReason::Asked, reason),
            Special::RequirePlanning(reason) => {
                self.want_plan(config, ReplanReason::Required, reason);
            }
            Special::Validator => self.due_validation = Some(Occasion::Asked),
            Special::Todo(request) => {
                let is_done = self.todo.apply(&request, &self.plan).is_ok();
                self.todo_changed |= is_done && request.action != TodoAction::Get;
            }
            // Somebody said more since the model decided to end: that comes first.
            Special::Done(_) if self.steered => {}
            Special::Done(summary) if self.doubts_done(config) => {
                self.due_validation = Some(Occasion::Done);
                self.claim = Some(summary);
            }
            Special::Done(summary) => self.last_word = Some(LastWord::Summary(summary)),
        }
    }

    /// Every call of a step has its result.
    fn step_over(&mut self, config: &PlannedConfig, run: RunId, open: OpenStep) {
        match open.asker {
            // What the person said is new: the evidence starts over.
            Asker::Ladder => return self.history.clear(),
            Asker::Check => return self.tried.push(open.message, open.results),
            Asker::Model => {}
        }
        let of_call = |id: &CallId| open.results.iter().find(|result| result.call_id == *id);
        let pairs =
            open.message.tool_calls().filter_map(|call| Some((call, &**of_call(&call.id)?)));
        let mut telling = Vec::new();
        for (call, result) in pairs {
            let special = Special::read(config, &call.name, &call.arguments);
            let is_ok = result.status == ToolStatus::Ok;
            match special {
                None if is_ok => {
                    self.todo_changed |= self.todo.tool_succeeded(&self.plan, &call.name);
                }
                None | Some(Err(_)) => {}
                Some(Ok(Special::Todo(request))) if request.action == TodoAction::Get => {}
                // A special call that did something is no sign of being stuck.
                Some(Ok(_)) if is_ok => continue,
                Some(Ok(_)) => {}
            }
            telling.push((call, result));
        }
        if !telling.is_empty() {
            self.history.push(Trace::of(telling), &config.stuck);
        }
        self.history.tick();
        self.tried.push(Arc::clone(&open.message), open.results);
        self.note_todo();
        match self.last_word.take() {
            Some(LastWord::Summary(summary)) => self.end(Outcome::Completed, Some(summary)),
            Some(LastWord::Given) => self.end(Outcome::Completed, None),
            None => self.after_step(config, run),
        }
    }

    /// Write the list down if it changed.
    fn note_todo(&mut self) {
        if !self.todo_changed {
            return;
        }
        self.todo_changed = false;
        self.todo_is_due = true;
        self.live = prompt::live(self);
    }

    /// What is due after a step.
    fn after_step(&mut self, config: &PlannedConfig, run: RunId) {
        let finished = std::mem::replace(&mut self.finished, self.todo.finished());
        if self.finished > finished {
            self.history.progressed();
            self.rung = None;
            if self.todo.is_finished() {
                if config.validator {
                    self.due_validation = Some(Occasion::AllFinished);
                } else {
                    self.notice = Some(prompt::ALL_FINISHED.to_owned());
                }
            }
        } else if let Some(sign) = self.history.sign(&config.stuck, self.todo.open() > 0) {
            ladder::climb(self, config, run, sign);
        }
        if self.ending.is_some() {
            return;
        }
        let is_due = |every: u64| every > 0 && self.iterations.is_multiple_of(every);
        let validates = is_due(self.validate_every.unwrap_or(config.validate_every));
        let plans = is_due(self.plan_every.unwrap_or(config.plan_every));
        let looks = is_due(config.meta_every);
        if self.mode == Strategy::React {
            if validates && config.validator && self.due_validation.is_none() {
                self.due_validation = Some(Occasion::Interval);
            }
            if plans && self.plan.exists() && self.todo.is_slow(self.iterations) {
                let detail = format!(
                    "{} steps for {} of {} TODO items",
                    self.iterations,
                    self.todo.finished(),
                    self.todo.items.len()
                );
                self.want_plan(config, ReplanReason::SlowProgress, detail);
            }
        }
        self.due_meta |= looks;
        if self.strategy == Some(Strategy::Hybrid) {
            hybrid::switch_if_due(self, config);
        }
    }

    /// The tool to look with before a claim is checked, if that is yet to be done.
    pub(crate) fn look_due<'c>(&self, config: &'c PlannedConfig) -> Option<&'c str> {
        let is_claim = self.due_validation.is_some_and(Occasion::is_claim);
        config.look.as_deref().filter(|_| is_claim && !self.looked && self.ending.is_none())
    }

    /// Whether `done` is checked before it is believed: items are open, and if the check finds
    /// something missing, another plan can still be made.
    pub(crate) fn doubts_done(&self, config: &PlannedConfig) -> bool {
        config.validator
            && config.check_done
            && self.todo.open() > 0
            && !self.is_planned_out(config)
    }

    /// Whether the task was planned again as often as it may be.
    pub(crate) fn is_planned_out(&self, config: &PlannedConfig) -> bool {
        self.plan.exists() && self.replans >= config.max_replans
    }

    /// Have a plan made before the next step.
    pub(crate) fn want_plan(
        &mut self,
        config: &PlannedConfig,
        reason: ReplanReason,
        detail: impl Into<String>,
    ) {
        if self.due_plan.is_some() {
            return;
        }
        let detail = detail.into();
        let refused = self.is_planned_out(config);
        if self.plan.exists() {
            let note = ReplanNote { reason, detail: detail.clone(), refused };
            self.outbox.push_back(PlannedNote::Replan(note));
        }
        if !refused {
            self.due_plan = Some((reason, detail));
        }
    }

    /// A plan was made: the list follows it, and what was tried before is no evidence any more.
    pub(crate) fn planned(&mut self, answer: PlanAnswer) {
        if self.plan.exists() {
            self.replans += 1;
        }
        self.plan.replace(answer, &mut self.numbered);
        self.todo.follow(&self.plan);
        self.todo_changed = true;
        self.finished = self.todo.finished();
        self.history.clear();
        self.due_plan = None;
        self.outbox.push_back(PlannedNote::Plan(self.plan.clone()));
        self.note_todo();
    }

    /// End the task, with a last word if there is one to say.
    pub(crate) fn end(&mut self, outcome: Outcome, say: Option<String>) {
        self.ending = Some(Ending { say, outcome });
    }
}
