//! Budgets: how much a task may use, children included.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Limit, Usage};

/// What a task may use. A missing bound is no bound. A child run is held to its own budget and to
/// what is left of its parents'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Model calls.
    pub steps: Option<u64>,
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub cost_microusd: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
}

/// What a task has used so far, its children's share included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Model calls.
    pub steps: u64,
    /// Tokens and money.
    pub usage: Usage,
    /// When the task began, in milliseconds since 1970.
    pub since: i64,
    /// How often somebody granted the budget again, for each bound.
    pub grants: Grants,
}

/// How often each bound was granted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    steps: u32,
    tokens: u32,
    cost: u32,
    time: u32,
}

impl Grants {
    pub(crate) fn add(&mut self, limit: Limit) {
        let count = match limit {
            Limit::Steps | Limit::Loops => &mut self.steps,
            Limit::Tokens => &mut self.tokens,
            Limit::Cost => &mut self.cost,
            Limit::Time => &mut self.time,
        };
        *count = count.saturating_add(1);
    }
}

impl Budget {
    /// The first bound that is used up, with words for a person.
    pub fn breach(&self, spent: &Spent, now: i64) -> Option<(Limit, String)> {
        let times = |bound: u64, grants: u32| bound.saturating_mul(u64::from(grants) + 1);
        if let Some(bound) = self.steps.map(|n| times(n, spent.grants.steps))
            && spent.steps >= bound
        {
            return Some((Limit::Steps, format!("{} of {bound} steps", spent.steps)));
        }
        if let Some(bound) = self.tokens.map(|n| times(n, spent.grants.tokens))
            && spent.usage.tokens() >= bound
        {
            return Some((Limit::Tokens, format!("{} of {bound} tokens", spent.usage.tokens())));
        }
        if let Some(bound) = self.cost_microusd.map(|n| times(n, spent.grants.cost))
            && spent.usage.cost_microusd >= bound
        {
            let dollars = |micro: u64| micro as f64 / 1e6;
            let used = dollars(spent.usage.cost_microusd);
            return Some((Limit::Cost, format!("${used:.4} of ${:.4}", dollars(bound))));
        }
        if self.time_left(spent, now) == Some(Duration::ZERO) {
            let used = now.saturating_sub(spent.since) as f64 / 1e3;
            return Some((Limit::Time, format!("{used:.1} s")));
        }
        None
    }

    /// The tighter of both, bound by bound.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        fn tighter<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            }
        }
        Self {
            steps: tighter(self.steps, other.steps),
            tokens: tighter(self.tokens, other.tokens),
            cost_microusd: tighter(self.cost_microusd, other.cost_microusd),
            time: tighter(self.time, other.time),
        }
    }

    /// What is left of it. A missing bound stays missing.
    #[must_use]
    pub fn left(&self, spent: &Spent, now: i64) -> Self {
        let left = |bound: Option<u64>, grants: u32, used: u64| {
            let bound = bound?.saturating_mul(u64::from(grants) + 1);
            Some(bound.saturating_sub(used))
        };
        let (grants, usage) = (&spent.grants, &spent.usage);
        Self {
            steps: left(self.steps, grants.steps, spent.steps),
            tokens: left(self.tokens, grants.tokens, usage.tokens()),
            cost_microusd: left(self.cost_microusd, grants.cost, usage.cost_microusd),
            time: self.time_left(spent, now),
        }
    }

    /// How much time is left, where time is bounded.
    pub fn time_left(&self, spent: &Spent, now: i64) -> Option<Duration> {
        let bound = self.time?.saturating_mul(spent.grants.time.saturating_add(1));
        let used = Duration::from_millis(now.saturating_sub(spent.since).try_into().unwrap_or(0));
        Some(bound.saturating_sub(used))
    }
}
