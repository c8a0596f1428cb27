//! Sections as the types that agents are built from.

use std::time::Duration;

use duologue_behaviors as behaviors;
use duologue_core as core;

use super::keys::{
    Agent, Budget, Classifier, Limits, Memory, Mode, OnFull, Permissions, Planned, Price,
    ReasoningEffort, Strategy, Window,
};

impl Permissions {
    /// The policy. Every rule was checked when the configuration was loaded.
    pub(crate) fn policy(&self) -> Result<core::Policy, core::RuleError> {
        let mut policy = core::Policy::new(self.mode.into());
        for rule in &self.deny {
            policy = policy.deny(rule)?;
        }
        for rule in &self.ask {
            policy = policy.ask(rule)?;
        }
        for rule in &self.allow {
            policy = policy.allow(rule)?;
        }
        Ok(policy)
    }
}

impl Memory {
    /// The memory, with the bound on tool results that stands in `[limits]`.
    pub(crate) fn to_core(&self, limits: &Limits) -> core::Memory {
        core::Memory {
            window: match self.window() {
                Window::Tokens(most) => core::WindowLimit::Tokens(most),
                Window::Messages(most) => core::WindowLimit::Messages(most),
            },
            trim_to: self.trim_to,
            on_full: match self.on_full {
                OnFull::Trim => core::OnFull::Trim,
                OnFull::Summarize => core::OnFull::Summarize,
            },
            result_chars: usize::try_from(limits.tool_output_chars).unwrap_or(usize::MAX),
        }
    }
}

impl Budget {
    /// The bounds. What happens at a breach is for whoever runs the session.
    pub(crate) fn to_core(&self) -> core::Budget {
        core::Budget {
            steps: self.steps,
            tokens: self.tokens,
            cost_microusd: self.cost_usd.map(|dollars| (dollars * 1e6).round() as u64),
            time: self.seconds.map(Duration::from_secs),
        }
    }
}

impl Limits {
    /// How a model that fails is asked again.
    pub(crate) fn retry(&self) -> core::Retry {
        core::Retry { attempts: self.retry_attempts, ..core::Retry::default() }
    }
}

impl Agent {
    /// How its model is to answer.
    pub(crate) fn options(&self) -> core::Options {
        core::Options {
            temperature: self.temperature,
            seed: self.seed,
            max_tokens: self.max_tokens,
            reasoning_effort: self.reasoning_effort.map(Into::into),
            ..core::Options::default()
        }
    }
}

impl Planned {
    /// How the agent goes about a task, with the bound on steps that its section has.
    pub(crate) fn to_behavior(&self, max_steps: Option<u32>) -> behaviors::PlannedConfig {
        let usual = behaviors::PlannedConfig::default();
        let most = |usual| max_steps.map_or(usual, u64::from);
        behaviors::PlannedConfig {
            strategy: self.strategy.to_behavior(),
            classifier: match self.classifier {
                Classifier::Model => behaviors::Classifier::Model,
                Classifier::Phrases => behaviors::Classifier::Phrases,
            },
            validator: self.validator,
            check_done: self.check_done,
            lessons: self.lessons,
            max_simple: most(usual.max_simple),
            max_react: most(usual.max_react),
            max_multi_step: most(usual.max_multi_step),
            max_hybrid: most(usual.max_hybrid),
            validate_every: self.validate_every,
            plan_every: self.plan_every,
            max_replans: self.max_replans,
            meta_every: self.meta_every,
            ..usual
        }
    }
}

impl Strategy {
    /// The strategy, unless it is to be found.
    pub(crate) fn to_behavior(self) -> Option<behaviors::Strategy> {
        match self {
            Self::Auto => None,
            Self::Simple => Some(behaviors::Strategy::Simple),
            Self::MultiStep => Some(behaviors::Strategy::MultiStep),
            Self::React => Some(behaviors::Strategy::React),
            Self::Hybrid => Some(behaviors::Strategy::Hybrid),
        }
    }
}

impl Price {
    /// The price. Cached tokens cost as much as others unless it says otherwise.
    pub(crate) fn to_core(&self) -> core::Price {
        core::Price {
            input: self.input,
            output: self.output,
            cached: self.cached.unwrap_or(self.input),
        }
    }
}

impl From<Mode> for core::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::ReadOnly => Self::ReadOnly,
            Mode::Ask => Self::Ask,
            Mode::AutoEdit => Self::AutoEdit,
            Mode::Full => Self::Full,
        }
    }
}

impl From<ReasoningEffort> for core::ReasoningEffort {
    fn from(effort: ReasoningEffort) -> Self {
        match effort {
            ReasoningEffort::Minimal => Self::Minimal,
            ReasoningEffort::Low => Self::Low,
            ReasoningEffort::Medium => Self::Medium,
            ReasoningEffort::High => Self::High,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Config;
    use super::*;

    #[test]
    fn the_defaults_are_those_of_core() {
        let config = Config::default();
        assert_eq!(config.memory.to_core(&config.limits), core::Memory::default());
        assert_eq!(config.budget.to_core(), core::Budget::default());
        assert_eq!(config.limits.retry(), core::Retry::default());
        assert_eq!(config.permissions.policy(), Ok(core::Policy::default()));
        assert_eq!(Agent::default().options(), core::Options::default());
        let planned = Planned::default().to_behavior(None);
        // The program's usual model is a weak one.
        let usual = behaviors::PlannedConfig { check_done: true, ..Default::default() };
        assert_eq!(planned, usual);
    }

    #[test]
    fn every_bound_and_rule_arrives() {
        let budget = Budget {
            steps: Some(1),
            tokens: Some(2),
            cost_usd: Some(0.3),
            seconds: Some(4),
            ..Budget::default()
        };
        let expected = core::Budget {
            steps: Some(1),
            tokens: Some(2),
            cost_microusd: Some(300_000),
            time: Some(Duration::from_secs(4)),
        };
        assert_eq!(budget.to_core(), expected);
        let permissions = Permissions {
            mode: Mode::Full,
            deny: vec!["shell(rm *)".into()],
            ask: vec!["shell(git push*)".into()],
            allow: vec!["echo".into()],
        };
        let expected = core::Policy::new(core::Mode::Full)
            .deny("shell(rm *)")
            .and_then(|policy| policy.ask("shell(git push*)"))
            .and_then(|policy| policy.allow("echo"));
        assert_eq!(permissions.policy(), expected);
        let memory =
            Memory { window_messages: Some(9), on_full: OnFull::Summarize, ..Memory::default() };
        let memory = memory.to_core(&Limits::default());
        assert_eq!(memory.window, core::WindowLimit::Messages(9));
        assert_eq!(memory.on_full, core::OnFull::Summarize);
    }
}
