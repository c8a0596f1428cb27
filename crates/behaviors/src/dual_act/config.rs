//! What a dual act is made of.

use duologue_core::{Agent, ChildrenMemory};

use super::prompt::Prompt;

/// Two agents and how they work together.
#[derive(Clone, Debug)]
pub struct DualActConfig {
    /// The name of the agent that the two make up.
    pub name: String,
    /// H, which decides. Any agent, with tools or without.
    pub human: Agent,
    /// R, which works. Any agent; several work side by side on the same instruction.
    pub reactive: Vec<Agent>,
    /// The most runs of R in one task.
    pub max_hr_loops: u32,
    /// What H reads when it is to decide. It may have `{original_task}`, `{instruction}`,
    /// `{summary}`, `{steps}`, `{suggested_next_action}`, `{confidence}` and `{artifacts}`.
    pub human_decision_prompt: String,
    /// What R reads when it is to work. It may have `{original_task}`, `{instruction}` and
    /// `{focus_area}`.
    pub reactive_task_prompt: String,
    /// What R reads about how to conclude. It may have the same as the task.
    pub conclusion_format_prompt: String,
    /// Whether H and R read each other's words and results, or only what is passed on.
    pub memory: ChildrenMemory,
}

/// Why two agents do not make a dual act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DualActError {
    /// The bound on the loops leaves no room to work.
    #[error("max_hr_loops is 0, so R could never work; give it at least 1")]
    NoLoops,
    /// There is nobody to work.
    #[error("there is no reactive agent; give it at least one")]
    NoReactive,
    /// A prompt has a placeholder that nothing stands for.
    #[error("{prompt}: unknown placeholder {{{placeholder}}}; it may have {}", list(.allowed))]
    UnknownPlaceholder {
        /// The prompt.
        prompt: &'static str,
        /// The placeholder.
        placeholder: String,
        /// What it may have.
        allowed: &'static [&'static str],
    },
}

fn list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{{{name}}}")).collect();
    names.join(", ")
}

impl DualActConfig {
    /// One H, one R, five loops, separate memories and the usual prompts.
    pub fn new(human: Agent, reactive: Agent) -> Self {
        Self {
            name: "dual-act".to_owned(),
            human,
            reactive: vec![reactive],
            max_hr_loops: 5,
            human_decision_prompt: HUMAN_DECISION.to_owned(),
            reactive_task_prompt: REACTIVE_TASK.to_owned(),
            conclusion_format_prompt: CONCLUSION_FORMAT.to_owned(),
            memory: ChildrenMemory::Separate,
        }
    }

    /// What the parent calls its workers: `reactive`, or `reactive-1` and so on.
    pub(super) fn workers(&self) -> Vec<String> {
        match self.reactive.len() {
            1 => vec![REACTIVE.to_owned()],
            many => (1..=many).map(|number| format!("{REACTIVE}-{number}")).collect(),
        }
    }
}

/// What the parent calls H.
pub(super) const HUMAN: &str = "human";
/// What the parent calls R.
pub(super) const REACTIVE: &str = "reactive";

/// The three prompts, read and checked.
#[derive(Clone, Debug)]
pub(super) struct Prompts {
    pub(super) decision: Prompt,
    pub(super) task: Prompt,
    pub(super) format: Prompt,
}

impl Prompts {
    pub(super) fn of(config: &DualActConfig) -> Result<Self, DualActError> {
        let decision = Prompt::new(
            "human_decision_prompt",
            &config.human_decision_prompt,
            &[
                "original_task",
                "instruction",
                "summary",
                "steps",
                "suggested_next_action",
                "confidence",
                "artifacts",
            ],
        )?;
        let work = &["original_task", "instruction", "focus_area"];
        let task = Prompt::new("reactive_task_prompt", &config.reactive_task_prompt, work)?;
        let format =
            Prompt::new("conclusion_format_prompt", &config.conclusion_format_prompt, work)?;
        Ok(Self { decision, task, format })
    }
}

const HUMAN_DECISION: &str = "\
You supervise a worker and decide what happens next with this task:
{original_task}

What the worker concluded last (empty before it has worked):
Summary: {summary}
Steps:
{steps}
Suggested next action: {suggested_next_action}
Confidence: {confidence}
Artifacts: {artifacts}

Judge whether the task is done. If it is, terminate with the whole answer. If not, say what the \
worker does next, or redirect it when its approach does not lead anywhere.";

const REACTIVE_TASK: &str = "\
{instruction}

{focus_area}";

const CONCLUSION_FORMAT: &str = "\
Do the work with your tools; only what they did and found counts. When you are done, or cannot \
get further, report what came of it: a summary that can be judged without seeing your work, the \
steps you took, what should be done next if anything, how sure you are from 0 to 1, and what you \
made.";
