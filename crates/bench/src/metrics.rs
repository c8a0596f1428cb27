//! Scores over many simulations.

use std::collections::BTreeMap;

use crate::{Results, Simulation, Termination};

/// Whether a reward counts as a success.
pub fn is_success(reward: f64) -> bool {
    (reward - 1.0).abs() <= 1e-6
}

/// pass^k: the chance that k of n trials, of which c succeeded, all succeed. `None` where there are
/// fewer than k trials.
pub fn pass_hat_k(trials: u64, successes: u64, k: u64) -> Option<f64> {
    if trials < k {
        return None;
    }
    Some(binomial(successes, k) / binomial(trials, k))
}

#[allow(clippy::cast_precision_loss)]
fn binomial(n: u64, k: u64) -> f64 {
    if k > n {
        return 0.0;
    }
    let k = k.min(n - k);
    // Exact as long as it fits; every partial product is a binomial coefficient.
    let whole = (0..k).try_fold(1u128, |product, i| {
        product.checked_mul(u128::from(n - i)).map(|p| p / u128::from(i + 1))
    });
    match whole {
        Some(whole) => whole as f64,
        None => (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (i + 1) as f64),
    }
}

/// The scores of a file of results.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// How many simulations count.
    pub simulations: usize,
    /// How many broke off for reasons around them; they do not count.
    pub infrastructure_errors: usize,
    /// How many could not be judged; they do not count either.
    pub unjudged: usize,
    /// The mean reward.
    pub average_reward: f64,
    /// The half width of its 95 % confidence interval, over tasks; `None` for fewer than two tasks.
    pub interval: Option<f64>,
    /// pass^1, pass^2, …
    pub pass_hat: Vec<f64>,
    /// The mean cost of the agent's model, where all costs are known.
    pub average_agent_cost: Option<f64>,
    /// The same of the user's.
    pub average_user_cost: Option<f64>,
    /// How often simulations ended how.
    pub terminations: BTreeMap<Termination, usize>,
    /// The scores of each task.
    pub tasks: BTreeMap<String, TaskMetrics>,
}

/// The scores of one task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskMetrics {
    /// How often it was run.
    pub trials: u64,
    /// How often it succeeded.
    pub successes: u64,
    /// The sum of its rewards.
    pub total_reward: f64,
}

impl TaskMetrics {
    /// The mean reward.
    #[allow(clippy::cast_precision_loss)]
    pub fn average_reward(&self) -> f64 {
        self.total_reward / (self.trials.max(1) as f64)
    }
}

impl Metrics {
    /// The scores of results.
    pub fn of(results: &Results) -> Self {
        Self::of_simulations(&results.simulations)
    }

    /// The scores of simulations.
    #[allow(clippy::cast_precision_loss)]
    pub fn of_simulations(simulations: &[Simulation]) -> Self {
        let regular: Vec<&Simulation> = simulations
            .iter()
            .filter(|s| s.termination_reason != Termination::InfrastructureError)
            .collect();
        let counted: Vec<&Simulation> =
            regular.iter().copied().filter(|s| s.reward_info.is_some()).collect();
        let mut tasks: BTreeMap<String, TaskMetrics> = BTreeMap::new();
        let mut terminations = BTreeMap::new();
        let mut total = 0.0;
        for simulation in &counted {
            let reward = simulation.reward_info.as_ref().map_or(0.0, |info| info.reward);
            let task = tasks.entry(simulation.task_id.clone()).or_default();
            task.trials += 1;
            task.successes += u64::from(is_success(reward));
            task.total_reward += reward;
            total += reward;
            *terminations.entry(simulation.termination_reason).or_default() += 1;
        }
        let count = counted.len().max(1) as f64;
        let cost = |of: fn(&Simulation) -> Option<f64>| {
            let costs: Option<Vec<f64>> = counted.iter().map(|s| of(s)).collect();
            costs.filter(|costs| !costs.is_empty()).map(|costs| costs.iter().sum::<f64>() / count)
        };
        let most = tasks.values().map(|task| task.trials).min().unwrap_or(0);
        let pass_hat = (1..=most).map(|k| {
            let each = tasks.values();
            let each = each.filter_map(|task| pass_hat_k(task.trials, task.successes, k));
            each.sum::<f64>() / tasks.len().max(1) as f64
        });
        Self {
            simulations: counted.len(),
            infrastructure_errors: simulations.len() - regular.len(),
            unjudged: regular.len() - counted.len(),
            average_reward: total / count,
            interval: half_width(
                &tasks.values().map(TaskMetrics::average_reward).collect::<Vec<_>>(),
            ),
            pass_hat: pass_hat.collect(),
            average_agent_cost: cost(|s| s.agent_cost),
            average_user_cost: cost(|s| s.user_cost),
            terminations,
            tasks,
        }
    }
}

/// The half width of the 95 % confidence interval of a mean. Trials of one task depend on each
/// other, so tasks are the sample.
#[allow(clippy::cast_precision_loss)]
fn half_width(sample: &[f64]) -> Option<f64> {
    if sample.len() < 2 {
        return None;
    }
    let count = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / count;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some(1.96 * (variance / count).sqrt())
}

/// How two runs differ on the tasks that both have.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// How many tasks both have.
    pub tasks: usize,
    /// The mean reward of the first, on those.
    pub first: f64,
    /// The mean reward of the second.
    pub second: f64,
    /// The chance of a difference at least as large if there were none.
    pub p_value: f64,
    /// The tasks on which they differ, with both means.
    pub differing: Vec<(String, f64, f64)>,
}

/// Up to this many differing tasks all possibilities are counted; beyond, a sample is drawn.
const EXACT_UP_TO: usize = 16;
const DRAWS: u64 = 20_000;

impl Comparison {
    /// Compares two runs task by task: a sign-flip permutation test of the means.
    #[allow(clippy::cast_precision_loss)]
    pub fn of(first: &Metrics, second: &Metrics) -> Self {
        let both: Vec<(&String, f64, f64)> = first
            .tasks
            .iter()
            .filter_map(|(id, a)| {
                let b = second.tasks.get(id)?;
                Some((id, a.average_reward(), b.average_reward()))
            })
            .collect();
        let count = both.len().max(1) as f64;
        let differing: Vec<(String, f64, f64)> = both
            .iter()
            .filter(|(_, a, b)| (a - b).abs() > 1e-9)
            .map(|(id, a, b)| ((*id).clone(), *a, *b))
            .collect();
        let differences: Vec<f64> = differing.iter().map(|(_, a, b)| b - a).collect();
        Self {
            tasks: both.len(),
            first: both.iter().map(|(_, a, _)| a).sum::<f64>() / count,
            second: both.iter().map(|(_, _, b)| b).sum::<f64>() / count,
            p_value: sign_flip(&differences),
            differing,
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn sign_flip(differences: &[f64]) -> f64 {
    let seen = differences.iter().sum::<f64>().abs() - 1e-9;
    let as_large = |signs: u64| {
        let flipped = differences
            .iter()
            .enumerate()
            .map(|(at, difference)| if signs >> at & 1 == 1 { -difference } else { *difference });
        flipped.sum::<f64>().abs() >= seen
    };
    if differences.len() <= EXACT_UP_TO {
        let all = 1u64 << differences.len();
        return (0..all).filter(|signs| as_large(*signs)).count() as f64 / all as f64;
    }
    // The same draws each time: the same runs have the same p value.
    let mut chance = fastrand::Rng::with_seed(42);
    let mut draw = || {
        let flipped = differences.iter().map(|d| if chance.bool() { -d } else { *d });
        flipped.sum::<f64>().abs() >= seen
    };
    let hits = (0..DRAWS).filter(|_| draw()).count();
    (hits + 1) as f64 / (DRAWS + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(rewards: &[(&str, f64)]) -> Metrics {
        let simulations: Vec<Simulation> = rewards
            .iter()
            .map(|(task, reward)| {
                let json = format!(
                    r#"{{"id": "x", "task_id": "{task}", "termination_reason": "user_stop",
                        "reward_info": {{"reward": {reward}}}}}"#
                );
                serde_json::from_str(&json).unwrap()
            })
            .collect();
        Metrics::of_simulations(&simulations)
    }

    #[test]
    fn pass_hat_averages_over_tasks_and_goes_as_far_as_all_have_trials() {
        let metrics = metrics(&[("a", 1.0), ("a", 0.0), ("b", 1.0), ("b", 1.0), ("b", 1.0)]);
        assert_eq!(metrics.pass_hat, [0.75, 0.5]);
        assert_eq!(metrics.average_reward, 0.8);
    }

    #[test]
    fn a_difference_on_few_tasks_is_not_significant() {
        let a = metrics(&[("a", 1.0), ("b", 0.0), ("c", 0.0)]);
        let b = metrics(&[("a", 1.0), ("b", 1.0), ("c", 1.0)]);
        let comparison = Comparison::of(&a, &b);
        assert_eq!(comparison.differing.len(), 2);
        assert_eq!(comparison.p_value, 0.5);
        let tasks: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let all = |reward| metrics(&tasks.iter().map(|t| (t.as_str(), reward)).collect::<Vec<_>>());
        assert!(Comparison::of(&all(0.0), &all(1.0)).p_value < 0.001);
    }
}
