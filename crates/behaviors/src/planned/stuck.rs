//! Being stuck: seen in calls, arguments and results, never in prose.

use std::{
    collections::VecDeque,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

use duologue_core::{Part, ToolCall, ToolResult, ToolStatus};
use serde::{Deserialize, Serialize};

use super::config::StuckLimits;

/// What shows that a run is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "sign", rename_all = "snake_case")]
pub enum Sign {
    /// The same call gave the same result again and again.
    RepeatedCall {
        /// How often in a row.
        times: usize,
    },
    /// The model spoke again and again without calling anything.
    NoAction {
        /// How often in a row.
        times: usize,
    },
    /// The same few calls came round with the same results.
    Cycle {
        /// How many steps it has.
        length: usize,
    },
    /// The same error came again.
    SameError {
        /// How often in a row.
        times: usize,
    },
    /// Different calls gave the same result.
    SameObservation {
        /// How often in a row.
        times: usize,
    },
    /// No TODO item was finished for long.
    NoTodoProgress {
        /// For so many steps.
        steps: u64,
    },
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RepeatedCall { times } => {
                write!(f, "the same call gave the same result {times} times in a row")
            }
            Self::NoAction { times } => {
                write!(f, "{times} answers in a row called no tool and did not finish the task")
            }
            Self::Cycle { length } => {
                write!(f, "the same {length} calls came round again with the same results")
            }
            Self::SameError { times } => write!(f, "the same error came {times} times in a row"),
            Self::SameObservation { times } => {
                write!(f, "{times} different calls in a row gave the same result")
            }
            Self::NoTodoProgress { steps } => {
                write!(f, "no TODO item was finished in {steps} steps")
            }
        }
    }
}

/// What is done about it, each time a little more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The model is told.
    Hint,
    /// Another plan is made, with what was tried.
    Replan,
    /// The turn ends as stuck, so that whoever runs this agent redirects it.
    HandUp,
    /// A person is asked.
    AskHuman,
    /// The turn ends as stuck.
    Stop,
}

/// What one step called and what came of it, as numbers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// How many calls it had.
    calls: usize,
    call: u64,
    result: u64,
    /// The error, if every call failed.
    error: Option<u64>,
}

impl Trace {
    /// The trace of a step's calls with their results. An answer without calls has none of either.
    pub(crate) fn of<'a>(pairs: impl IntoIterator<Item = (&'a ToolCall, &'a ToolResult)>) -> Self {
        let (mut call, mut result) = (DefaultHasher::new(), DefaultHasher::new());
        let mut error = DefaultHasher::new();
        let (mut calls, mut failed) = (0usize, 0usize);
        for (wanted, got) in pairs {
            calls += 1;
            (&wanted.name, &wanted.arguments).hash(&mut call);
            got.status.hash(&mut result);
            got.content.iter().for_each(|part| hash_part(part, &mut result));
            if !matches!(got.status, ToolStatus::Ok | ToolStatus::Skipped) {
                failed += 1;
                (&wanted.name, got.status).hash(&mut error);
                got.content.iter().for_each(|part| hash_part(part, &mut error));
            }
        }
        let all_failed = calls > 0 && failed == calls;
        Self {
            calls,
            call: call.finish(),
            result: result.finish(),
            error: all_failed.then(|| error.finish()),
        }
    }
}

fn hash_part(part: &Part, hasher: &mut DefaultHasher) {
    match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.hash(hasher),
        Part::Data { value } => value.hash(hasher),
        Part::File { media_type, name, .. } => (media_type, name).hash(hasher),
        Part::ToolCall(call) => (&call.name, &call.arguments).hash(hasher),
        Part::ToolResult(result) => {
            result.content.iter().for_each(|part| hash_part(part, hasher));
        }
    }
}

/// The last steps of a run, as far as they can show that it is stuck.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// The newest last.
    recent: VecDeque<Trace>,
    since_progress: u64,
}

impl History {
    /// Take in a step.
    pub(crate) fn push(&mut self, trace: Trace, limits: &StuckLimits) {
        let kept = limits
            .repeated_call
            .max(limits.same_error)
            .max(limits.same_observation)
            .max(limits.longest_cycle.saturating_mul(2))
            .min(MOST_KEPT);
        self.recent.push_back(trace);
        while self.recent.len() > kept {
            self.recent.pop_front();
        }
    }

    /// Count a step towards those without progress.
    pub(crate) fn tick(&mut self) {
        self.since_progress += 1;
    }

    /// A TODO item was finished.
    pub(crate) fn progressed(&mut self) {
        self.since_progress = 0;
    }

    /// Something new is tried: what was before is no evidence any more.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
        self.since_progress = 0;
    }

    /// The sign that the last step completed, if one.
    pub(crate) fn sign(&mut self, limits: &StuckLimits, items_are_open: bool) -> Option<Sign> {
        let enough = |times: usize, limit: usize| limit > 0 && times >= limit;
        let repeated = self.in_a_row(|a, b| a.call == b.call && a.result == b.result);
        if enough(repeated, limits.repeated_call) {
            let is_silent = self.recent.back().is_some_and(|trace| trace.calls == 0);
            return Some(match is_silent {
                true => Sign::NoAction { times: repeated },
                false => Sign::RepeatedCall { times: repeated },
            });
        }
        if let Some(length) = self.cycle(limits.longest_cycle) {
            return Some(Sign::Cycle { length });
        }
        let errors = self.in_a_row(|a, b| a.error.is_some() && a.error == b.error);
        if errors > 1 && enough(errors, limits.same_error) {
            return Some(Sign::SameError { times: errors });
        }
        let same = self.in_a_row(|a, b| a.result == b.result);
        if enough(same, limits.same_observation) {
            return Some(Sign::SameObservation { times: same });
        }
        let steps = self.since_progress;
        if items_are_open && limits.no_todo_progress > 0 && steps >= limits.no_todo_progress {
            self.since_progress = 0;
            return Some(Sign::NoTodoProgress { steps });
        }
        None
    }

    /// How many of the newest steps are alike.
    fn in_a_row(&self, alike: impl Fn(&Trace, &Trace) -> bool) -> usize {
        let mut newest_first = self.recent.iter().rev();
        let Some(last) = newest_first.next() else { return 0 };
        1 + newest_first.take_while(|trace| alike(last, trace)).count()
    }

    /// The length of the cycle that has just come round for the second time.
    fn cycle(&self, longest: usize) -> Option<usize> {
        let steps = self.recent.len();
        (2..=longest).find(|length| {
            let Some(start) = steps.checked_sub(2 * length) else { return false };
            let first = self.recent.iter().skip(start).take(*length);
            let mut pairs = first.zip(self.recent.iter().skip(start + length));
            let is_alike = pairs.all(|(a, b)| a.call == b.call && a.result == b.result);
            // One call over and over is a repetition, not a cycle.
            is_alike && self.in_a_row(|a, b| a.call == b.call) < *length
        })
    }
}

/// The most steps that are remembered, whatever the limits say.
const MOST_KEPT: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn step(call: u8, status: ToolStatus, text: &str) -> Trace {
        let call = ToolCall::new("c", "look", json!({ "at": call }));
        let result = ToolResult::text(&call, status, text);
        Trace::of([(&call, &result)])
    }

    /// After which step which sign comes first.
    fn first_sign(steps: &[(u8, &str)], limits: &StuckLimits) -> Option<(usize, Sign)> {
        let mut history = History::default();
        steps.iter().enumerate().find_map(|(at, (call, text))| {
            let status = if text.starts_with('!') { ToolStatus::Error } else { ToolStatus::Ok };
            history.push(step(*call, status, text), limits);
            history.sign(limits, false).map(|sign| (at + 1, sign))
        })
    }

    #[test]
    fn each_sign_comes_when_its_limit_is_reached_and_not_before() {
        let limits = StuckLimits::default();
        let repeated = [(1, "a"), (1, "a"), (1, "a")];
        assert_eq!(first_sign(&repeated, &limits), Some((3, Sign::RepeatedCall { times: 3 })));
        let polling = [(1, "a"), (1, "b"), (1, "c"), (1, "d"), (1, "e")];
        assert_eq!(first_sign(&polling, &limits), None, "a call whose result changes is progress");
        let errors = [(1, "!no"), (2, "!no")];
        assert_eq!(first_sign(&errors, &limits), Some((2, Sign::SameError { times: 2 })));
        let other_errors = [(1, "!no"), (1, "!nope"), (1, "!no")];
        assert_eq!(first_sign(&other_errors, &limits), None);
        let same = [(1, ""), (2, ""), (3, ""), (4, "")];
        assert_eq!(first_sign(&same, &limits), Some((4, Sign::SameObservation { times: 4 })));
    }

    #[test]
    fn cycles_of_two_to_five_calls_are_found_when_they_come_round() {
        let limits = StuckLimits::default();
        for length in 2..=5u8 {
            let texts = ["a", "b", "c", "d", "e"];
            let steps: Vec<(u8, &str)> =
                (0..20).map(|at| at % length).map(|n| (n, texts[usize::from(n)])).collect();
            let length = usize::from(length);
            let expected = Some((2 * length, Sign::Cycle { length }));
            assert_eq!(first_sign(&steps, &limits), expected);
        }
        let six: Vec<(u8, &str)> = (0..18)
            .map(|at| at % 6)
            .map(|n| (n, ["a", "b", "c", "d", "e", "f"][usize::from(n)]))
            .collect();
        assert_eq!(first_sign(&six, &limits), None);
        let changing = [(1, "a"), (2, "b"), (1, "c"), (2, "d"), (1, "e"), (2, "f")];
        assert_eq!(first_sign(&changing, &limits), None, "results are part of a cycle");
    }

    #[test]
    fn steps_without_a_finished_item_count_only_while_items_are_open() {
        let limits = StuckLimits { no_todo_progress: 2, ..StuckLimits::default() };
        let mut history = History::default();
        history.tick();
        history.tick();
        assert_eq!(history.sign(&limits, false), None);
        assert_eq!(history.sign(&limits, true), Some(Sign::NoTodoProgress { steps: 2 }));
        assert_eq!(history.sign(&limits, true), None, "told once, counted anew");
        history.tick();
        history.progressed();
        history.tick();
        assert_eq!(history.sign(&limits, true), None);
    }

    #[test]
    fn a_limit_of_zero_turns_a_sign_off() {
        let off = StuckLimits {
            repeated_call: 0,
            longest_cycle: 0,
            same_error: 0,
            same_observation: 0,
            no_todo_progress: 0,
        };
        assert_eq!(first_sign(&[(1, "!a"); 40], &off), None);
    }

    proptest! {
        #[test]
        fn detection_is_total_and_gives_the_same_signs_every_time(
            steps in prop::collection::vec((0u8..4, 0u8..3, any::<bool>(), any::<bool>()), 0..60),
            limits in (0usize..6, 0usize..8, 0usize..5, 0usize..6, 0u64..9),
        ) {
            let limits = StuckLimits {
                repeated_call: limits.0,
                longest_cycle: limits.1,
                same_error: limits.2,
                same_observation: limits.3,
                no_todo_progress: limits.4,
            };
            let run = || {
                let mut history = History::default();
                let signs: Vec<_> = steps
                    .iter()
                    .map(|(call, text, fails, open)| {
                        let status = if *fails { ToolStatus::Error } else { ToolStatus::Ok };
                        history.push(step(*call, status, &text.to_string()), &limits);
                        history.tick();
                        history.sign(&limits, *open)
                    })
                    .collect();
                prop_assert!(history.recent.len() <= MOST_KEPT);
                Ok(signs)
            };
            prop_assert_eq!(run()?, run()?);
        }
    }
}
