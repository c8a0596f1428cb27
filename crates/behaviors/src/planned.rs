//! Planned ReAct: classify, plan, act, check, plan again, and notice being stuck.
//!
//! ```text
//!  task ─▶ choose a strategy ─▶ plan ─▶ step: thought and action ─▶ results ─▶ TODO, signs
//!                                ▲          ▲                                   │
//!                                │          └── suggestions, hints ◀── check ◀──┤ due
//!                                └────────────── why, and what was tried ◀──────┘
//! ```
//!
//! One model call a step. Checks and plans are asides with a structured answer, made only when
//! they are due. The special tools' calls are answered by the behaviour itself, because only it
//! knows the plan and the list; so a batch stays one unit, every call has its result in the
//! journal, and folding the same entries gives the same list.

mod aside;
mod classify;
mod config;
mod hybrid;
mod ladder;
mod lessons;
mod meta;
mod note;
mod plan;
mod prompt;
mod state;
mod stuck;
mod todo;
mod tools;
mod tried;
mod validation;
mod verdicts;

use std::sync::Arc;

use duologue_core::{
    Agent, AgentBuilder, Ask, Behavior, CallState, Entry, Latest, Limit, Message, MessageId,
    Metadata, Outcome, Part, Phase, Profile, Role, RunState, Step, ToolCall, ToolChoice,
    ToolResult, ToolSelection, ToolStatus, Toolbox,
};
use serde_json::{Value, json};

use self::{
    aside::{Aside, Shapes},
    tools::Special,
};
pub use self::{
    classify::{
        Choice, ChosenBy, Classification, Complexity, EXECUTION_MODE, INDICATORS, indicator,
    },
    config::{Classifier, PlannedConfig, Strategy, StuckLimits, UnknownStrategy},
    lessons::{Lesson, LessonError, LessonFile, LessonStore, similarity},
    meta::{MetaLook, MetaStrategy},
    note::{MisfitNote, PlannedNote, ReplanNote, ReplanReason, StuckNote, ValidationNote},
    plan::{Plan, PlanStep},
    state::PlannedState,
    stuck::{Rung, Sign},
    todo::{Todo, TodoItem, TodoStatus},
    validation::{Occasion, Validation},
};

/// The planned pattern of behaviour.
///
/// ```
/// use duologue_behaviors::{Planned, PlannedConfig};
/// use duologue_core::Toolbox;
///
/// let agent = Planned::builder("worker", PlannedConfig::default(), Toolbox::new())
///     .system("You keep the books.")
///     .build();
/// assert_eq!(agent.behavior(), "planned");
/// assert!(agent.tools().get("todo_manager").is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Planned {
    config: PlannedConfig,
    shapes: Shapes,
    /// What its own tools do, a line each, for whoever plans.
    abilities: Arc<str>,
    /// The tools for a task that needs no plan; all, where they are not known.
    simple: ToolSelection,
}

impl Default for Planned {
    fn default() -> Self {
        Self::new(PlannedConfig::default())
    }
}

impl Planned {
    /// The behaviour alone. An agent needs the special tools too: see [`builder`](Self::builder).
    pub fn new(config: PlannedConfig) -> Self {
        Self {
            config,
            shapes: Shapes::new(&[]),
            abilities: Arc::default(),
            simple: ToolSelection::All,
        }
    }

    /// How it is set up.
    pub fn config(&self) -> &PlannedConfig {
        &self.config
    }

    /// A planned agent with these tools and the special ones.
    pub fn builder(
        name: impl Into<Arc<str>>,
        config: PlannedConfig,
        tools: Toolbox,
    ) -> AgentBuilder {
        let own: Vec<String> = tools.specs().iter().map(|spec| spec.name.clone()).collect();
        let abilities = prompt::abilities(tools.specs()).into();
        let tools = Self::with_special_tools(&config, tools);
        let shapes = Shapes::new(&own);
        // A task that needs no plan is not tempted with tools for one.
        let kept = own.into_iter().chain(tools::FOR_ALL.map(str::to_owned)).collect();
        let simple = ToolSelection::Only(kept);
        Agent::builder(name, Self { config, shapes, abilities, simple }).tools(tools)
    }

    /// A planned agent that learns from its tasks.
    pub fn learning_builder(
        name: impl Into<Arc<str>>,
        mut config: PlannedConfig,
        tools: Toolbox,
        store: Arc<dyn LessonStore>,
    ) -> AgentBuilder {
        config.lessons = true;
        let keeper = Arc::clone(&store);
        Self::builder(name, config, tools)
            .function(lessons::RECALL, move |input| {
                let store = Arc::clone(&store);
                async move {
                    let task = input.get("task").and_then(Value::as_str).unwrap_or_default();
                    let found = store.recall(task).map_err(|error| error.to_string())?;
                    serde_json::to_value(found).map_err(|error| error.to_string())
                }
            })
            .function(lessons::KEEP, move |input| {
                let store = Arc::clone(&keeper);
                async move {
                    let lesson =
                        serde_json::from_value(input).map_err(|error| error.to_string())?;
                    store.keep(&lesson).map_err(|error| error.to_string())?;
                    Ok(Value::Null)
                }
            })
    }

    /// The box with the special tools added, for an agent that is put together by hand.
    pub fn with_special_tools(config: &PlannedConfig, tools: Toolbox) -> Toolbox {
        tools::with_special_tools(config, tools)
    }
}

impl Behavior for Planned {
    type State = PlannedState;

    fn name(&self) -> &'static str {
        "planned"
    }

    fn system_instruction(&self, profile: &Profile) -> String {
        prompt::system(profile)
    }

    fn fold(&self, state: &mut PlannedState, entry: &Entry) {
        state.fold(&self.config, entry);
    }

    fn decide(&self, run: &RunState, state: &PlannedState) -> Step {
        if let Some(note) = state.outbox.front() {
            return note.step();
        }
        if state.todo_is_due {
            return PlannedNote::todo_step(&state.todo);
        }
        match run.latest() {
            Latest::Nothing => Step::End(Outcome::Completed),
            Latest::Calls => self.calls(run, state),
            Latest::Input | Latest::Answer => self.next(run, state),
        }
    }
}

impl Planned {
    /// What to do when no call is open.
    fn next(&self, run: &RunState, state: &PlannedState) -> Step {
        if let Some(ending) = &state.ending {
            return self.finish(run, state, &ending.outcome, ending.say.as_deref());
        }
        let Some(strategy) = state.strategy else {
            return match classify::without_model(&self.config, state.task.as_deref()) {
                Some(choice) => PlannedNote::Strategy(choice).step(),
                None => self.aside(Aside::Classification, state),
            };
        };
        if state.due_validation.is_some() {
            return match state.look_due(&self.config) {
                Some(tool) => look(run, state, tool),
                None => self.aside(Aside::Validation, state),
            };
        }
        if state.iterations >= self.config.most_steps(strategy) {
            let outcome = Outcome::LimitReached { limit: Limit::Steps };
            return self.finish(run, state, &outcome, None);
        }
        if state.due_plan.is_some() {
            if self.config.lessons && state.lessons.is_none() {
                let input = json!({ "task": state.task_text() });
                return Step::Invoke { function: lessons::RECALL.to_owned(), input };
            }
            return self.aside(Aside::Plan, state);
        }
        if state.due_meta {
            return self.aside(Aside::Meta, state);
        }
        if let Some(question) = &state.question {
            return ask_human(run, state, question);
        }
        let mut extra: Vec<Arc<Message>> = state.live.iter().cloned().collect();
        if let Some(notice) = &state.notice {
            extra.push(prompt::ephemeral("planned-notice", notice.clone()));
        }
        let tools = match strategy {
            Strategy::Simple => self.simple.clone(),
            _ => ToolSelection::All,
        };
        let tool_choice = if state.must_act { ToolChoice::Required } else { ToolChoice::Auto };
        Step::Ask(Ask { extra, tools, tool_choice, ..Ask::default() })
    }

    fn aside(&self, aside: Aside, state: &PlannedState) -> Step {
        Step::Ask(Ask {
            extra: vec![prompt::aside(aside, state, &self.abilities)],
            tools: ToolSelection::None,
            output: Some(self.shapes.of(aside).clone()),
            aside: Some(aside.name().to_owned()),
            ..Ask::default()
        })
    }

    /// Deal with the open calls: `done` sends the others away, special ones are answered here, the
    /// rest runs.
    fn calls(&self, run: &RunState, state: &PlannedState) -> Step {
        let calls = run.batch().map(duologue_core::Batch::calls).unwrap_or_default();
        let is_open = |state: &&CallState| !matches!(state.phase, Phase::Done(_));
        let is_expected = |state: &CallState| {
            let is_it = |name: &str| run.expected().is_some_and(|expected| expected.name == name);
            is_it(&state.call.name) && state.call.arguments.is_object()
        };
        if calls.iter().any(is_expected) {
            return Step::Call;
        }
        let special = |call: &ToolCall| Special::read(&self.config, &call.name, &call.arguments);
        let is_done =
            |state: &&CallState| matches!(special(&state.call), Some(Ok(Special::Done(_))));
        if let Some(done) = calls.iter().find(is_done).filter(|_| !state.steered) {
            let others = calls.iter().filter(is_open).filter(|other| other.call.id != done.call.id);
            let others: Vec<_> = others.map(|other| other.call.id.clone()).collect();
            if !others.is_empty() {
                let reason = "Skipped: done was called beside it.".to_owned();
                return Step::Skip { calls: others, reason };
            }
        }
        let mut todo = None;
        let mut results = Vec::new();
        for CallState { call, .. } in calls.iter().filter(is_open) {
            let answer = match special(call) {
                None => continue,
                Some(Err(error)) => {
                    let text = format!("The arguments of {} do not fit: {error}", call.name);
                    ToolResult::text(call, ToolStatus::Invalid, text)
                }
                Some(Ok(special)) => {
                    let todo = todo.get_or_insert_with(|| state.todo.clone());
                    match self.answer(&special, state, todo) {
                        Ok(text) => ToolResult::text(call, ToolStatus::Ok, text),
                        Err(text) => ToolResult::text(call, ToolStatus::Error, text),
                    }
                }
            };
            results.push(answer);
        }
        if results.is_empty() { Step::Call } else { Step::Settle(results) }
    }

    /// What the model is told about a special call. Folding its result does what it asked for.
    fn answer(
        &self,
        special: &Special,
        state: &PlannedState,
        todo: &mut Todo,
    ) -> Result<String, String> {
        match special {
            Special::Planner(_) | Special::RequirePlanning(_) => {
                if state.is_planned_out(&self.config) {
                    let times = state.replans;
                    return Err(format!(
                        "This task was planned again {times} times, which is the most. Go on with \
                         the plan that there is, or call done."
                    ));
                }
                Ok("A plan is made before the next step.".to_owned())
            }
            Special::Validator => Ok("The work is checked before the next step.".to_owned()),
            Special::Todo(request) => todo.apply(request, &state.plan),
            Special::Done(_) if state.steered => {
                Err("Somebody said more meanwhile. Read it first.".to_owned())
            }
            Special::Done(_) if state.doubts_done(&self.config) => {
                Ok("TODO items are open, so the work is checked before the task ends.".to_owned())
            }
            Special::Done(_) => Ok("Done.".to_owned()),
        }
    }

    /// End the task: keep what it taught, say the last word, end.
    fn finish(
        &self,
        run: &RunState,
        state: &PlannedState,
        outcome: &Outcome,
        say: Option<&str>,
    ) -> Step {
        if self.config.lessons && !state.lesson_kept {
            let plan = state.plan.steps.iter().map(|step| step.title.clone()).collect();
            let strategy = state.strategy.unwrap_or_default();
            let lesson = Lesson::new(state.task_text(), strategy, plan, outcome);
            let input = serde_json::to_value(lesson).unwrap_or_default();
            return Step::Invoke { function: lessons::KEEP.to_owned(), input };
        }
        if let Some(text) = say {
            return Step::Say(own_message(run, state, Part::text(text)));
        }
        match run.reminder().filter(|_| *outcome == Outcome::Completed) {
            Some(ask) => Step::Ask(ask),
            None => Step::End(outcome.clone()),
        }
    }
}

/// The ladder's question, as a call of the person's tool: so it waits, survives a restart and is
/// answered like any other.
fn ask_human(run: &RunState, state: &PlannedState, question: &str) -> Step {
    let id = format!("ask-{}-{}-{}", run.id(), run.turn(), state.iterations);
    let call = ToolCall::new(id, tools::ASK_HUMAN, json!({ "question": question }));
    Step::Say(own_message(run, state, Part::from(call)))
}

/// A look at the world before the work is checked, as a call like any other.
fn look(run: &RunState, state: &PlannedState, tool: &str) -> Step {
    let id = format!("look-{}-{}-{}", run.id(), run.turn(), state.iterations);
    let call = ToolCall::new(id.clone(), tool, json!({}));
    Step::Say(Message { id: MessageId::from(id), ..own_message(run, state, Part::from(call)) })
}

/// A message of the agent's own. Its id comes from where the run stands, not from chance.
fn own_message(run: &RunState, state: &PlannedState, part: Part) -> Message {
    let id = format!("planned-{}-{}-{}", run.id(), run.turn(), state.iterations);
    Message {
        id: MessageId::from(id),
        role: Role::Assistant,
        name: None,
        parts: vec![part],
        metadata: Metadata::new(),
    }
}
