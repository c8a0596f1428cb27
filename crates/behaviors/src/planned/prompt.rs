//! What a planned agent's model is told besides the conversation.

use std::{fmt::Write as _, sync::Arc};

use duologue_core::{Message, MessageId, Part, Profile, Role, ToolSpec};

use super::{
    aside::Aside,
    classify::indicator,
    lessons::Lesson,
    state::{Misfit, PlannedState},
    stuck::Sign,
    todo::TodoStatus,
    tools::{ASK_HUMAN, TODO_MANAGER, VALIDATOR},
    tried::clip,
    validation::Validation,
};

/// The system prompt: what the author wrote, and how to work.
pub(crate) fn system(profile: &Profile) -> String {
    let has = |name: &str| profile.tools.iter().any(|tool| tool.name == name);
    let mut text = profile.system.clone();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(
        "Work in steps. In each step first say in one or two sentences what you know, what is \
         missing and what you do next (thought), then call the tool that does it (action). \
         Several independent calls may go together. Read what the tools gave (observation) before \
         you think again. When a call failed, find out why and change something; do not repeat it \
         unchanged.\n\
         Special tools:\n\
         - planner: makes a plan for a task with several parts.\n\
         - require_planning: asks for another plan when the approach does not work.\n",
    );
    if has(TODO_MANAGER) {
        text.push_str("- todo_manager: tracks progress; complete or skip items by their id.\n");
    }
    if has(VALIDATOR) {
        text.push_str("- validator: checks whether the task is complete.\n");
    }
    if has(ASK_HUMAN) {
        text.push_str("- ask_human: asks the person what only they can know.\n");
    }
    text.push_str("- done: ends the task. When it is complete, call done with a summary.\n");
    let names: Vec<&str> = profile.tools.iter().map(|tool| tool.name.as_str()).collect();
    let _ = write!(text, "All tools: {}.", names.join(", "));
    text
}

/// A message for one request alone. Its id is fixed: it never enters the conversation.
pub(crate) fn ephemeral(id: &str, text: String) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId::from(id),
        role: Role::User,
        name: None,
        parts: vec![Part::text(text)],
        metadata: duologue_core::Metadata::new(),
    })
}

/// The one live copy of the list and the last check.
pub(crate) fn live(state: &PlannedState) -> Option<Arc<Message>> {
    let mut text = String::new();
    if !state.todo.items.is_empty() {
        text.push_str(&state.todo.to_text());
    }
    if let Some(item) = state.todo.items.iter().find(|item| item.status == TodoStatus::Open) {
        let _ = write!(text, "\nNext: {}", item.title);
        let step = state.plan.steps.iter().find(|step| item.step.as_ref() == Some(&step.id));
        if let Some(tool) = step.and_then(|step| step.tool.as_ref()) {
            let _ = write!(text, " (with {tool})");
        }
    }
    if let Some(validation) = &state.validation {
        let _ = write!(text, "\n\nLast check: not complete. {}", validation.reasoning);
        for suggestion in &validation.suggestions {
            let _ = write!(text, "\n- Suggestion: {suggestion}");
        }
    }
    let text = text.trim_start();
    (!text.is_empty())
        .then(|| ephemeral("planned-state", format!("Where the task stands now:\n\n{text}")))
}

/// What the model is asked beside the conversation.
pub(crate) fn aside(aside: Aside, state: &PlannedState, abilities: &str) -> Arc<Message> {
    let mut text = match aside {
        Aside::Classification => classification(state),
        Aside::Plan => plan(state, abilities),
        Aside::Validation => validation(state),
        Aside::Meta => meta(state),
    };
    if let Some(misfit) = state.misfit.as_ref().filter(|misfit| misfit.aside == aside) {
        let Misfit { error, answer, .. } = misfit;
        let answer = clip(answer, 1_000);
        let _ = write!(text, "\n\nYour last answer did not fit: {error}\nIt was: {answer}");
    }
    text.push_str("\n\nAnswer with JSON of the given shape alone.");
    ephemeral("planned-aside", text)
}

fn classification(state: &PlannedState) -> String {
    let task = state.task_text();
    let mut text =
        "Before you begin: what kind of task is this? Do not work on it yet.\n".to_owned();
    let _ = write!(text, "Task: {task}");
    if let Some(phrase) = indicator(&task) {
        let _ = write!(text, "\nHint: it says {phrase:?}, which often needs explicit reasoning.");
    }
    text
}

/// What tools do, in the first sentence of each: asides are made without the tools themselves.
pub(crate) fn abilities(tools: &[Arc<ToolSpec>]) -> String {
    let line = |tool: &Arc<ToolSpec>| {
        let (first, _) = tool.description.split_once(". ").unwrap_or((&tool.description, ""));
        format!("\n- {}: {}", tool.name, clip(first.trim_end_matches('.'), 160))
    };
    tools.iter().map(line).collect()
}

fn plan(state: &PlannedState, abilities: &str) -> String {
    let task = state.task_text();
    let mut text = format!(
        "Make a plan for what is still to be done. Few steps, each of which can be checked; say \
         in words what each does, and name the tool that does it. One deed a step: reading \
         something and writing something are two steps. Do not work on it yet.\n\
         Task: {task}"
    );
    if !abilities.is_empty() {
        let _ = write!(text, "\n\nThe tools that there are:{abilities}");
    }
    if let Some((_, detail)) = state.due_plan.as_ref().filter(|(_, detail)| !detail.is_empty()) {
        let _ = write!(text, "\n\nWhy a plan is made now: {detail}");
    }
    if state.plan.exists() {
        let _ =
            write!(text, "\n\nThe plan so far; finished items are kept:\n{}", state.todo.to_text());
    }
    let tried = state.tried.to_text();
    if !tried.is_empty() {
        let _ = write!(text, "\n\nWhat was tried, and what came of it:\n{tried}");
    }
    if let Some(validation) = &state.validation {
        let _ = write!(text, "\n\nThe last check: {}", validation.reasoning);
        for suggestion in &validation.suggestions {
            let _ = write!(text, "\n- {suggestion}");
        }
    }
    lessons(state.lessons.as_deref().unwrap_or_default(), &mut text);
    text
}

fn lessons(lessons: &[Lesson], text: &mut String) {
    if lessons.is_empty() {
        return;
    }
    text.push_str("\n\nWhat similar tasks taught:");
    for Lesson { task, plan, worked, outcome, .. } in lessons {
        let verdict = if *worked { "worked" } else { "did not work" };
        let plan = if plan.is_empty() { "no plan".to_owned() } else { plan.join("; ") };
        let (task, plan) = (clip(task, 200), clip(&plan, 400));
        let _ = write!(text, "\n- {task:?} by {plan:?}: {verdict} ({})", clip(outcome, 200));
    }
}

fn validation(state: &PlannedState) -> String {
    let task = state.task_text();
    let mut text = format!(
        "Check the work: is the task complete? Judge by what the tools gave, not by what was said \
         about it: a call that failed did nothing. If something is missing, say what to do next.\nTask: {task}"
    );
    let tried = state.tried.to_text();
    if !tried.is_empty() {
        let _ = write!(text, "\n\nWhat was done last, and what came of it:\n{tried}");
    }
    if !state.todo.items.is_empty() {
        let _ = write!(text, "\n\n{}", state.todo.to_text());
    }
    text
}

fn meta(state: &PlannedState) -> String {
    format!(
        "Look at the run itself, not at the task: does this way of working get there? You may \
         switch the strategy (simple: directly; multi_step: by a plan; react: thought and action \
         in turn) and set how often the work is checked and re-planning is considered.\n\
         Strategy: {}. Steps so far: {}. Re-planned: {} times. {}\nThe last steps:\n{}",
        state.mode,
        state.iterations,
        state.replans,
        state.todo.to_text(),
        state.tried.to_text(),
    )
}

pub(crate) fn hint(sign: &Sign) -> String {
    format!(
        "You seem to be stuck: {sign}. Do not do the same again. Find out what is different from \
         what you expected, and try another way; call require_planning if the plan is wrong."
    )
}

/// What the model is told after an answer that ended nothing.
pub(crate) const NOT_DONE: &str = "The task is not finished by an answer. If it is complete, call \
     done with a summary; otherwise go on with the next action.";

/// What the model is told when no item is left and nobody checks.
pub(crate) const ALL_FINISHED: &str = "No TODO item is left. If the task is complete, call done \
     with a summary; otherwise add what is missing.";

/// What a person is asked when nothing else helped.
pub(crate) fn question(state: &PlannedState, sign: &Sign) -> String {
    format!(
        "I am stuck: {sign}. How shall I go on?\n\nTask: {}\n\nWhat I tried last:\n{}",
        clip(&state.task_text(), 400),
        state.tried.to_text()
    )
}

/// What is left for whoever picks up a run that stopped.
pub(crate) fn summary(state: &PlannedState, sign: &Sign) -> String {
    let mut text = format!("{sign}, after {} steps.", state.iterations);
    if !state.todo.items.is_empty() {
        let _ = write!(text, "\n{}", state.todo.to_text());
    }
    if let Some(Validation { reasoning, .. }) = &state.validation {
        let _ = write!(text, "\nLast check: {reasoning}");
    }
    let _ = write!(text, "\nLast steps:\n{}", state.tried.to_text());
    text
}
