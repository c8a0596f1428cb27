//! Work that is given to others, or to this agent piece by piece: steps, what they need, and how
//! they stand.

use duologue_core::{Outcome, Part};

use super::decision::PlannedStep;
use crate::client::Asks;

/// The most steps of a plan.
pub(super) const MOST_STEPS: usize = 5;
/// The most characters of a result that goes into another step or the synthesis.
const LONGEST_RESULT: usize = 8_000;

/// Steps that are worked on.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// Which plan of the task it is, from 1.
    pub(super) number: u32,
    pub(super) steps: Vec<WorkStep>,
    /// Whether the results are put together into one answer.
    pub(super) synthesised: bool,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct WorkStep {
    pub(super) id: u32,
    /// What is to be done.
    pub(super) task: Vec<Part>,
    /// Who does it; this agent if nobody is named.
    pub(super) agent: Option<String>,
    pub(super) after: Vec<u32>,
    pub(super) stand: Stand,
    /// How often it was begun.
    pub(super) tries: u32,
    /// The last task of the other agent.
    pub(super) remote_task: Option<String>,
    /// How many of its questions were answered without a person.
    pub(super) handled: u32,
}

impl WorkStep {
    /// What kind of question the other agent waits with.
    pub(super) fn asks(&self) -> Asks {
        match &self.stand {
            Stand::Asks { asks, .. } => *asks,
            _ => Asks::Nothing,
        }
    }
}

/// How a step stands.
#[derive(Clone, Debug)]
pub(super) enum Stand {
    /// It was not begun, runs, or is to be begun again. One that runs is not told twice.
    Due,
    /// It gave this.
    Done(Vec<Part>),
    /// The other agent asks something.
    Asks { text: String, asks: Asks, answer: Answer },
    /// It ended badly.
    Failed(Outcome),
}

/// How the answer to a question stands.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// Nobody looked at it.
    Unjudged,
    /// A person must be asked.
    Human,
    /// This is it.
    Known(Vec<Part>),
}

impl Work {
    /// One piece of work for another agent, whose answer is the answer.
    pub(super) fn single(number: u32, agent: String, task: Vec<Part>) -> Self {
        let step = WorkStep {
            id: 1,
            task,
            agent: Some(agent),
            after: Vec::new(),
            stand: Stand::Due,
            tries: 0,
            remote_task: None,
            handled: 0,
        };
        Self { number, steps: vec![step], synthesised: false }
    }

    /// A plan, if it is one: what is wrong with it otherwise.
    pub(super) fn plan(number: u32, steps: Vec<PlannedStep>) -> Result<Self, String> {
        if steps.len() > MOST_STEPS {
            return Err(format!("{} steps are too many: at most {MOST_STEPS}", steps.len()));
        }
        let ids: Vec<u32> = steps.iter().map(|step| step.id).collect();
        for (place, step) in steps.iter().enumerate() {
            if ids.iter().take(place).any(|id| *id == step.id) {
                return Err(format!("two steps have the number {}", step.id));
            }
            if step.task.trim().is_empty() {
                return Err(format!("step {} says nothing of what is to be done", step.id));
            }
            if let Some(missing) = step.after.iter().find(|id| !ids.contains(id)) {
                return Err(format!("step {} waits for step {missing}, which is none", step.id));
            }
        }
        let work = Self {
            number,
            steps: steps
                .into_iter()
                .map(|step| WorkStep {
                    id: step.id,
                    task: vec![Part::text(step.task)],
                    agent: (!step.agent.is_empty()).then_some(step.agent),
                    after: step.after,
                    stand: Stand::Due,
                    tries: 0,
                    remote_task: None,
                    handled: 0,
                })
                .collect(),
            synthesised: true,
        };
        // Steps that wait for each other would wait for ever.
        let mut done: Vec<u32> = Vec::new();
        while done.len() < work.steps.len() {
            let free = work.steps.iter().find(|step| {
                !done.contains(&step.id) && step.after.iter().all(|id| done.contains(id))
            });
            match free {
                Some(step) => done.push(step.id),
                None => return Err("steps wait for each other in a circle".to_owned()),
            }
        }
        Ok(work)
    }

    pub(super) fn step_mut(&mut self, id: u32) -> Option<&mut WorkStep> {
        self.steps.iter_mut().find(|step| step.id == id)
    }

    fn is_done(&self, id: u32) -> bool {
        self.steps.iter().any(|step| step.id == id && matches!(step.stand, Stand::Done(_)))
    }

    /// Steps that can be worked on now.
    pub(super) fn ready(&self) -> impl Iterator<Item = &WorkStep> {
        self.steps.iter().filter(|step| match &step.stand {
            Stand::Due => step.after.iter().all(|id| self.is_done(*id)),
            Stand::Asks { answer, .. } => matches!(answer, Answer::Known(_)),
            Stand::Done(_) | Stand::Failed(_) => false,
        })
    }

    /// The first step whose question nobody has looked at.
    pub(super) fn unjudged(&self) -> Option<&WorkStep> {
        self.steps.iter().find(|step| {
            matches!(step.stand, Stand::Asks { answer: Answer::Unjudged, asks: Asks::Input, .. })
        })
    }

    /// The first step whose question is for a person.
    pub(super) fn for_human(&self) -> Option<(&WorkStep, &str)> {
        self.steps.iter().find_map(|step| match &step.stand {
            Stand::Asks { text, answer: Answer::Human, .. } => Some((step, text.as_str())),
            // Credentials and permissions are for nobody else to give.
            Stand::Asks { text, answer: Answer::Unjudged, asks } if *asks != Asks::Input => {
                Some((step, text.as_str()))
            }
            _ => None,
        })
    }

    /// The first step that ended badly.
    pub(super) fn failed(&self) -> Option<(&WorkStep, &Outcome)> {
        self.steps.iter().find_map(|step| match &step.stand {
            Stand::Failed(outcome) => Some((step, outcome)),
            _ => None,
        })
    }

    /// What the steps gave, once all have given something.
    pub(super) fn results(&self) -> Option<Vec<(&WorkStep, &[Part])>> {
        let results = self.steps.iter().map(|step| match &step.stand {
            Stand::Done(parts) => Some((step, parts.as_slice())),
            _ => None,
        });
        results.collect()
    }

    /// What is said to whoever works on a step.
    pub(super) fn order_for(&self, step: &WorkStep) -> Vec<Part> {
        if let Stand::Asks { answer: Answer::Known(parts), .. } = &step.stand {
            return parts.clone();
        }
        let mut parts = step.task.clone();
        for needed in self.steps.iter().filter(|other| step.after.contains(&other.id)) {
            if let Stand::Done(result) = &needed.stand {
                let text = shortened(result);
                parts.push(Part::text(format!("Result of step {}:\n{text}", needed.id)));
            }
        }
        parts
    }

    /// Tasks of the same agent that a step builds on.
    pub(super) fn references(&self, step: &WorkStep) -> Vec<&str> {
        let needed = self.steps.iter().filter(|other| {
            step.after.contains(&other.id) && other.agent == step.agent && step.agent.is_some()
        });
        needed.filter_map(|other| other.remote_task.as_deref()).collect()
    }

    /// What the parent calls whoever works on a step.
    pub(super) fn key_of(&self, step: &WorkStep) -> String {
        let who = match &step.agent {
            Some(agent) => format!("remote:{agent}"),
            None => "local".to_owned(),
        };
        // A single delegation goes on with what was said to the same agent before.
        if self.synthesised { format!("step-{}.{}/{who}", self.number, step.id) } else { who }
    }

    /// The step that a child of this name works on.
    pub(super) fn step_of(&mut self, key: &str) -> Option<&mut WorkStep> {
        let keys: Vec<String> = self.steps.iter().map(|step| self.key_of(step)).collect();
        let place = keys.iter().position(|other| other == key)?;
        self.steps.get_mut(place)
    }

    /// Tasks elsewhere that wait for an answer.
    pub(super) fn waiting_elsewhere(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().filter_map(|step| match step.stand {
            Stand::Asks { .. } => Some((step.agent.as_deref()?, step.remote_task.as_deref()?)),
            _ => None,
        })
    }
}

/// A result as text, cut to what fits beside others.
pub(super) fn shortened(parts: &[Part]) -> String {
    let texts: Vec<String> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.clone()),
            Part::Data { value } => Some(value.to_string()),
            Part::File { name, media_type, .. } => {
                Some(format!("[file {} ({media_type})]", name.as_deref().unwrap_or("unnamed")))
            }
            _ => None,
        })
        .collect();
    let whole = texts.join("\n");
    let mut text: String = whole.chars().take(LONGEST_RESULT).collect();
    if text.len() < whole.len() {
        text.push_str("\n[… cut]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: u32, after: &[u32]) -> PlannedStep {
        PlannedStep { id, task: format!("do {id}"), agent: String::new(), after: after.to_vec() }
    }

    #[test]
    fn plans_that_cannot_be_carried_out_are_refused() {
        let wrong = |steps: Vec<PlannedStep>| Work::plan(1, steps).unwrap_err();
        assert!(wrong(vec![step(1, &[2]), step(2, &[1])]).contains("circle"));
        assert!(wrong(vec![step(1, &[7])]).contains("step 7"));
        assert!(wrong(vec![step(1, &[]), step(1, &[])]).contains("two steps"));
        assert!(wrong((1..=6).map(|id| step(id, &[])).collect()).contains("too many"));
    }

    #[test]
    fn steps_are_ready_when_what_they_need_is_there() {
        let mut work = Work::plan(1, vec![step(1, &[]), step(2, &[]), step(3, &[1, 2])]).unwrap();
        let ready = |work: &Work| work.ready().map(|step| step.id).collect::<Vec<_>>();
        assert_eq!(ready(&work), [1, 2]);
        for id in [1, 2] {
            work.step_mut(id).unwrap().stand = Stand::Done(vec![Part::text(format!("r{id}"))]);
        }
        assert_eq!(ready(&work), [3]);
        let order = work.order_for(&work.steps[2]);
        assert_eq!(shortened(&order), "do 3\nResult of step 1:\nr1\nResult of step 2:\nr2");
    }
}
