//! Plans: the steps that a task is to be done in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most steps of a plan.
pub(crate) const MOST_STEPS: usize = 50;

/// A plan. Step ids are unique in a task, over all its plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Which plan of the task it is, from 1. 0 means that there is none.
    pub revision: u32,
    /// What is to be done, in order.
    pub steps: Vec<PlanStep>,
    /// Why so.
    pub reasoning: String,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What TODO items refer to.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// The tool whose success finishes the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// A plan as the model gives it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct PlanAnswer {
    /// Why this is the way to go, in one or two sentences.
    pub(crate) reasoning: String,
    /// What is still to be done, in order. Few steps, each of which can be checked.
    pub(crate) steps: Vec<StepAnswer>,
}

/// A step as the model gives it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct StepAnswer {
    /// What is to be done.
    pub(crate) title: String,
    /// The name of the tool, if one successful call of it finishes the step and nothing else is
    /// to be done. Empty otherwise.
    #[serde(default)]
    pub(crate) tool: String,
}

impl PlanAnswer {
    /// Whether it can be worked with.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.steps.is_empty() {
            return Err("steps: there must be at least one".to_owned());
        }
        if self.steps.len() > MOST_STEPS {
            return Err(format!("steps: {} are too many; at most {MOST_STEPS}", self.steps.len()));
        }
        if let Some(at) = self.steps.iter().position(|step| step.title.trim().is_empty()) {
            return Err(format!("steps[{at}].title: must not be empty"));
        }
        if let Some(step) = self.steps.iter().find(|step| is_only_number(step.title.trim())) {
            let title = step.title.trim();
            return Err(format!("the title {title:?} says nothing; say in words what to do"));
        }
        Ok(())
    }
}

/// Whether a title is the id of a step and nothing else.
fn is_only_number(title: &str) -> bool {
    let digits = title.strip_prefix('s').unwrap_or(title);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

/// A title without the id of the step that it was before, which models copy from the list.
fn without_number(title: &str) -> &str {
    let bare = title.strip_prefix('s').and_then(|rest| {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.strip_prefix(": ").filter(|rest| !rest.trim().is_empty())
    });
    bare.map_or(title, str::trim)
}

impl Plan {
    /// Whether there is a plan at all.
    pub fn exists(&self) -> bool {
        self.revision > 0
    }

    /// Whether an answer says the same again: the same steps by the same tools, in order.
    pub(crate) fn is_repeated_by(&self, answer: &PlanAnswer) -> bool {
        let same = |step: &PlanStep, again: &StepAnswer| {
            step.title.eq_ignore_ascii_case(again.title.trim())
                && step.tool.as_deref().unwrap_or_default() == again.tool.trim()
        };
        self.steps.len() == answer.steps.len()
            && self.steps.iter().zip(&answer.steps).all(|(step, again)| same(step, again))
    }

    /// Put another plan in the place of this one. `numbered` counts the steps of all plans.
    pub(crate) fn replace(&mut self, answer: PlanAnswer, numbered: &mut u32) {
        self.revision += 1;
        self.reasoning = answer.reasoning;
        self.steps = answer
            .steps
            .into_iter()
            .map(|step| {
                *numbered += 1;
                let tool = step.tool.trim();
                PlanStep {
                    id: format!("s{numbered}"),
                    title: without_number(step.title.trim()).to_owned(),
                    tool: (!tool.is_empty()).then(|| tool.to_owned()),
                }
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_in_words_what_is_to_be_done() {
        let plan = |title: &str| PlanAnswer {
            reasoning: String::new(),
            steps: vec![StepAnswer { title: title.to_owned(), tool: String::new() }],
        };
        for empty in ["s1", " s12 ", "3", ""] {
            assert!(plan(empty).check().is_err(), "{empty:?}");
        }
        for good in ["s1: copy the file", "sort 3 files", "stop", "s"] {
            assert_eq!(plan(good).check(), Ok(()), "{good:?}");
        }
    }
}
