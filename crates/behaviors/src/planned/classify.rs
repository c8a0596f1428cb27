//! Choosing a strategy for a task.

use duologue_core::Message;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::{Classifier, PlannedConfig, Strategy};

/// Phrases of a task that ask for explicit reasoning. They are a hint to the model that classifies,
/// and the way to a strategy where no model is asked.
pub const INDICATORS: [&str; 7] = [
    "analyze and",
    "think about",
    "reason through",
    "step by step",
    "explain your thinking",
    "debug",
    "troubleshoot",
];

/// What a request's metadata calls the strategy.
pub const EXECUTION_MODE: &str = "execution_mode";

/// The first indicator phrase in a task.
pub fn indicator(task: &str) -> Option<&'static str> {
    let task = task.to_lowercase();
    INDICATORS.into_iter().find(|phrase| task.contains(phrase))
}

/// What a model says about a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Classification {
    /// What the task takes, in one sentence.
    #[serde(default)]
    pub reasoning: String,
    /// How many single actions with tools it takes, such as reading one file or writing one; 0 for
    /// a plain answer.
    #[serde(default)]
    pub actions: u64,
    /// Whether a plain answer or one single action is enough.
    pub is_simple_task: bool,
    /// How many parts depend on each other.
    pub complexity: Complexity,
    /// Whether each action must be reasoned about before it is taken, as when debugging.
    pub needs_explicit_reasoning: bool,
}

/// How hard a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    /// Straightforward.
    Low,
    /// Several steps that can be seen from the start.
    Medium,
    /// Steps that depend on what earlier ones find.
    High,
}

impl Classification {
    /// The strategy for such a task.
    pub fn strategy(&self) -> Strategy {
        if self.complexity == Complexity::High || self.needs_explicit_reasoning {
            Strategy::React
        } else if self.is_simple_task && self.actions <= 1 {
            Strategy::Simple
        } else {
            Strategy::MultiStep
        }
    }
}

/// Where a strategy came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChosenBy {
    /// The agent's configuration or a flag.
    Option,
    /// The request's `execution_mode`.
    Metadata,
    /// A model that looked at the task.
    Classification,
    /// The indicator phrases.
    Phrases,
    /// The hybrid strategy, during the run.
    Hybrid,
    /// A look at the run itself.
    Meta,
}

/// A strategy and why it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The strategy, or how a hybrid works from now on.
    pub strategy: Strategy,
    /// Who chose.
    pub by: ChosenBy,
    /// Why.
    pub reason: String,
    /// Whether a plan is made before the first step.
    pub plans_first: bool,
}

/// The choice that needs no model; `None` if one must be asked.
pub(crate) fn without_model(config: &PlannedConfig, request: Option<&Message>) -> Option<Choice> {
    let named = |strategy, by, reason: &str| Choice {
        strategy,
        by,
        reason: reason.to_owned(),
        plans_first: plans_first(strategy),
    };
    if let Some(strategy) = config.strategy {
        return Some(named(strategy, ChosenBy::Option, "the agent is set to it"));
    }
    let mode = request.and_then(|request| request.metadata.get(EXECUTION_MODE));
    if let Some(strategy) = mode.and_then(Value::as_str).and_then(|mode| mode.parse().ok()) {
        return Some(named(strategy, ChosenBy::Metadata, "the request asks for it"));
    }
    match config.classifier {
        Classifier::Model => None,
        Classifier::Phrases => {
            let task = request.map(Message::text).unwrap_or_default();
            Some(by_phrases(&task, ignored_mode(request)))
        }
    }
}

/// The choice by phrases; `note` goes before the reason.
pub(crate) fn by_phrases(task: &str, note: Option<String>) -> Choice {
    let (strategy, reason) = match indicator(task) {
        Some(phrase) => (Strategy::React, format!("the task says {phrase:?}")),
        None => (Strategy::Hybrid, "no phrase of the task says how to go about it".to_owned()),
    };
    let reason = note.map_or(reason.clone(), |note| format!("{note}; {reason}"));
    Choice { strategy, by: ChosenBy::Phrases, reason, plans_first: plans_first(strategy) }
}

/// The choice that follows from what a model said.
pub(crate) fn by_model(said: &Classification, request: Option<&Message>) -> Choice {
    let strategy = said.strategy();
    let reason = match ignored_mode(request) {
        Some(note) => format!("{note}; {}", said.reasoning),
        None => said.reasoning.clone(),
    };
    Choice {
        strategy,
        by: ChosenBy::Classification,
        reason,
        // Working by a plan takes one; reasoning about a simple task does not.
        plans_first: match strategy {
            Strategy::React => !said.is_simple_task,
            _ => plans_first(strategy),
        },
    }
}

/// A word about an `execution_mode` that names no strategy.
fn ignored_mode(request: Option<&Message>) -> Option<String> {
    let mode = request?.metadata.get(EXECUTION_MODE)?;
    match mode.as_str() {
        Some("auto") => None,
        Some(text) => text.parse::<Strategy>().err().map(|error| error.to_string()),
        None => Some(format!("{EXECUTION_MODE} must be a text, not {mode}")),
    }
}

fn plans_first(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::MultiStep | Strategy::React)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_complexity_and_explicit_reasoning_select_react() {
        let of = |is_simple_task, complexity, needs_explicit_reasoning| {
            let reasoning = String::new();
            Classification {
                reasoning,
                actions: 1,
                is_simple_task,
                complexity,
                needs_explicit_reasoning,
            }
            .strategy()
        };
        assert_eq!(of(true, Complexity::Low, false), Strategy::Simple);
        assert_eq!(of(true, Complexity::Low, true), Strategy::React);
        assert_eq!(of(false, Complexity::Medium, false), Strategy::MultiStep);
        assert_eq!(of(false, Complexity::High, false), Strategy::React);
    }

    #[test]
    fn a_task_of_several_actions_begins_with_a_plan_even_if_it_is_called_simple() {
        let said = Classification {
            reasoning: String::new(),
            actions: 2,
            is_simple_task: true,
            complexity: Complexity::Low,
            needs_explicit_reasoning: false,
        };
        let choice = by_model(&said, None);
        assert_eq!((choice.strategy, choice.plans_first), (Strategy::MultiStep, true));
        let reasoned = Classification { needs_explicit_reasoning: true, ..said };
        let choice = by_model(&reasoned, None);
        assert_eq!((choice.strategy, choice.plans_first), (Strategy::React, false));
    }

    #[test]
    fn every_phrase_of_the_seed_is_found_whatever_its_case() {
        for phrase in INDICATORS {
            let task = format!("Please {} this", phrase.to_uppercase());
            assert_eq!(indicator(&task), Some(phrase));
        }
        assert_eq!(indicator("rename a file"), None);
    }
}
