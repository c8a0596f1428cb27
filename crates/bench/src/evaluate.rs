//! How a simulation is judged.
//!
//! The trajectory's calls are replayed in one environment, the expected actions in another; what
//! counts is compared. Databases are compared without hashing them: they share what neither wrote.

mod checks;
mod judge;
mod llm_judge;
mod remarks;

use std::sync::Arc;

pub use judge::{Judge, JudgeError, Verdict};
pub use llm_judge::LlmJudge;
pub use remarks::{KEY as REMARKS, complete_part, suspicions};

use crate::{
    Domain, Environment, EvaluationCriteria, Failure, InitialState, Message, Mode, Replay,
    RewardType, Task, Value,
    simulation::{AssertionCheck, Breakdown, DbCheck, NlAssertionCheck, RewardInfo, Simulation},
};
use checks::{action_checks, all_met, communicate_checks};

/// Which parts are judged and count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvaluationType {
    /// The environment only.
    Env,
    /// What was told only.
    Communicate,
    /// The actions only.
    Action,
    /// Everything; what the task names counts.
    #[default]
    All,
    /// The natural-language assertions only.
    NlAssertions,
    /// Everything, the natural-language assertions always; what the task names counts.
    AllWithNlAssertions,
    /// Everything but the natural-language assertions; all of it counts.
    AllIgnoreBasis,
    /// Everything; all of it counts.
    AllWithNlAssertionsIgnoreBasis,
}

/// Why a simulation could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The trajectory cannot be replayed.
    #[error("the trajectory cannot be replayed: {0}")]
    Replay(#[from] Failure),
    /// A judgement needs a model and there is none.
    #[error("task {task} has natural-language assertions to judge: name a model for the judge")]
    NoJudge {
        /// The task.
        task: String,
    },
    /// The judging model failed.
    #[error(transparent)]
    Judge(#[from] JudgeError),
}

/// Judges simulations of one domain.
pub struct Evaluator<'a> {
    /// The domain.
    pub domain: &'a Arc<Domain>,
    /// Whether the agent worked alone.
    pub mode: Mode,
    /// Which parts are judged.
    pub kind: EvaluationType,
    /// What happens when a recorded answer differs from today's.
    pub replay: Replay,
}

/// A judgement as far as it goes without a model.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Judged so far.
    pub reward_info: RewardInfo,
    /// Whether natural-language assertions are still to be judged.
    pub needs_judge: bool,
    parts: Parts,
}

/// The reward of each evaluator, before the basis is applied.
#[derive(Clone, Debug, Default)]
struct Parts {
    env: Option<(f64, Breakdown)>,
    action: Option<f64>,
    communicate: Option<f64>,
}

impl Evaluator<'_> {
    /// An evaluator of everything.
    pub fn new(domain: &Arc<Domain>, mode: Mode) -> Evaluator<'_> {
        Evaluator { domain, mode, kind: EvaluationType::All, replay: Replay::Strict }
    }

    /// Judges a simulation, with a model where it takes one.
    pub async fn evaluate(
        &self,
        simulation: &Simulation,
        task: &Task,
        judge: Option<&dyn Judge>,
    ) -> Result<RewardInfo, EvaluateError> {
        let judgement = self.without_judge(simulation, task)?;
        if !judgement.needs_judge {
            return Ok(self.complete(judgement, task, None));
        }
        let Some(judge) = judge else {
            return Err(EvaluateError::NoJudge { task: task.id.clone() });
        };
        let assertions = nl_assertions(task);
        let verdicts = judge.judge(simulation.messages(), assertions).await?;
        let checks = assertions
            .iter()
            .zip(verdicts)
            .map(|(assertion, verdict)| NlAssertionCheck {
                nl_assertion: assertion.clone(),
                met: verdict.met,
                justification: verdict.reasoning,
            })
            .collect();
        Ok(self.complete(judgement, task, Some(checks)))
    }

    /// Judges everything that takes no model.
    pub fn without_judge(
        &self,
        simulation: &Simulation,
        task: &Task,
    ) -> Result<Judgement, EvaluateError> {
        let finished = |reward, note: String| Judgement {
            reward_info: RewardInfo {
                reward,
                info: Some(Value::dict([("note", note.into())])),
                ..RewardInfo::default()
            },
            needs_judge: false,
            parts: Parts::default(),
        };
        let reason = simulation.termination_reason;
        if !reason.is_regular() {
            return Ok(finished(
                0.0,
                format!("Simulation terminated prematurely. Termination reason: {}", reason.name()),
            ));
        }
        let Some(criteria) = &task.evaluation_criteria else {
            return Ok(finished(1.0, "No evaluation criteria".to_owned()));
        };
        self.components(simulation.messages(), task, criteria)
    }

    /// Judges the parts, whatever the termination: the reward of a run that stopped early is 0,
    /// but its parts tell how far it came.
    pub fn components(
        &self,
        trajectory: &[Message],
        task: &Task,
        criteria: &EvaluationCriteria,
    ) -> Result<Judgement, EvaluateError> {
        let mut info = RewardInfo::default();
        let mut parts = Parts::default();
        let mut notes = [Value::None, Value::None, Value::None];
        let note = |text: &str| Value::dict([("note", text.into())]);
        if self.judges(EvaluationType::Env) {
            let (reward, breakdown) = self.environment(trajectory, task, criteria, &mut info)?;
            if breakdown.is_none() {
                notes[0] = note("No expected actions or env assertions");
            }
            parts.env = Some((reward, breakdown.unwrap_or_default()));
        }
        if self.judges(EvaluationType::Action) {
            match criteria.actions.as_deref() {
                Some(actions @ [_, ..]) => {
                    let checks = action_checks(self.domain, trajectory, actions);
                    parts.action = Some(all_met(checks.iter().map(|check| check.action_match)));
                    info.action_checks = Some(checks);
                }
                _ => {
                    notes[2] = note("No actions to evaluate");
                    parts.action = Some(1.0);
                }
            }
        }
        if self.judges(EvaluationType::Communicate) {
            match criteria.communicate_info.as_deref() {
                Some(wanted @ [_, ..]) => {
                    let checks = communicate_checks(trajectory, wanted);
                    parts.communicate = Some(all_met(checks.iter().map(|check| check.met)));
                    info.communicate_checks = Some(checks);
                }
                _ => {
                    notes[1] = note("No communicate_info to evaluate");
                    parts.communicate = Some(1.0);
                }
            }
        }
        let [env, communicate, action] = notes;
        info.info = Some(Value::dict([
            ("env", env),
            ("nl", Value::None),
            ("communicate", communicate),
            ("action", action),
        ]));
        let needs_judge = self.judges_nl(criteria) && !nl_assertions(task).is_empty();
        Ok(Judgement { reward_info: info, needs_judge, parts })
    }

    /// Puts the parts together.
    pub fn complete(
        &self,
        judgement: Judgement,
        task: &Task,
        nl_checks: Option<Vec<NlAssertionCheck>>,
    ) -> RewardInfo {
        let Judgement { mut reward_info, parts, .. } = judgement;
        let Some(criteria) = task.evaluation_criteria.as_ref() else { return reward_info };
        // A run that stopped early has no parts and is already judged.
        if parts.env.is_none()
            && parts.action.is_none()
            && parts.communicate.is_none()
            && self.kind != EvaluationType::NlAssertions
        {
            return reward_info;
        }
        let mut nl = None;
        if self.judges_nl(criteria) {
            let checks = nl_checks.unwrap_or_default();
            nl = Some(all_met(checks.iter().map(|check| check.met)));
            if checks.is_empty()
                && let Some(info) = &mut reward_info.info
            {
                let note = Value::dict([("note", "No nl_assertions to evaluate".into())]);
                info.set("nl", note);
            }
            reward_info.nl_assertions = Some(checks);
        }
        let basis = self.basis(criteria);
        let counts = |kinds: &[RewardType]| kinds.iter().any(|kind| basis.contains(kind));
        let mut breakdown = Breakdown::new();
        let mut reward = 1.0;
        if let Some((part, parts)) = parts.env
            && counts(&[RewardType::Db, RewardType::EnvAssertion])
        {
            reward *= part;
            breakdown.extend(parts);
        }
        for (kind, part) in [
            (RewardType::Action, parts.action),
            (RewardType::NlAssertion, nl),
            (RewardType::Communicate, parts.communicate),
        ] {
            if let Some(part) = part
                && counts(&[kind])
            {
                reward *= part;
                breakdown.insert(kind, part);
            }
        }
        reward_info.reward = reward;
        reward_info.reward_basis = Some(basis);
        reward_info.reward_breakdown = Some(breakdown);
        reward_info
    }

    fn environment(
        &self,
        trajectory: &[Message],
        task: &Task,
        criteria: &EvaluationCriteria,
        info: &mut RewardInfo,
    ) -> Result<(f64, Option<Breakdown>), Failure> {
        if criteria.actions.is_none() && criteria.env_assertions.is_none() {
            info.db_check = Some(DbCheck { db_match: true, db_reward: 1.0 });
            return Ok((1.0, None));
        }
        let mut predicted = self.replayed(trajectory, task)?;
        let gold = expected(self.domain, task, self.replay)?;
        let (agent_same, user_same) = predicted.same_databases(&gold);
        let db_match = agent_same && user_same;
        let db_reward = if db_match { 1.0 } else { 0.0 };
        info.db_check = Some(DbCheck { db_match, db_reward });
        let mut checks = Vec::new();
        for assertion in criteria.env_assertions.iter().flatten() {
            let met = predicted.holds(assertion)?;
            checks.push(AssertionCheck {
                env_assertion: assertion.clone(),
                met,
                reward: if met { 1.0 } else { 0.0 },
            });
        }
        let assertion_reward = all_met(checks.iter().map(|check| check.met));
        info.env_assertions = Some(checks);
        let mut breakdown = Breakdown::new();
        let mut reward = 1.0;
        for (kind, part) in
            [(RewardType::Db, db_reward), (RewardType::EnvAssertion, assertion_reward)]
        {
            // What the task does not name is shown and does not count, even where all else does.
            if criteria.reward_basis.contains(&kind) {
                breakdown.insert(kind, part);
                reward *= part;
            }
        }
        Ok((reward, Some(breakdown)))
    }

    /// The environment as the trajectory leaves it.
    pub fn replayed(&self, trajectory: &[Message], task: &Task) -> Result<Environment, Failure> {
        let mut environment = Environment::for_task(self.domain, self.mode, Some(task))?;
        environment.set_state(task.initial_state.as_ref(), trajectory, self.replay)?;
        Ok(environment)
    }

    fn judges(&self, part: EvaluationType) -> bool {
        self.kind == part
            || matches!(
                self.kind,
                EvaluationType::All
                    | EvaluationType::AllWithNlAssertions
                    | EvaluationType::AllIgnoreBasis
                    | EvaluationType::AllWithNlAssertionsIgnoreBasis
            )
    }

    fn judges_nl(&self, criteria: &EvaluationCriteria) -> bool {
        match self.kind {
            EvaluationType::NlAssertions
            | EvaluationType::AllWithNlAssertions
            | EvaluationType::AllWithNlAssertionsIgnoreBasis => true,
            EvaluationType::All => criteria.reward_basis.contains(&RewardType::NlAssertion),
            _ => false,
        }
    }

    fn basis(&self, criteria: &EvaluationCriteria) -> Vec<RewardType> {
        use RewardType::{Action, Communicate, Db, EnvAssertion, NlAssertion};
        match self.kind {
            EvaluationType::All | EvaluationType::AllWithNlAssertions => {
                criteria.reward_basis.clone()
            }
            EvaluationType::AllIgnoreBasis => vec![Db, EnvAssertion, Action, Communicate],
            EvaluationType::AllWithNlAssertionsIgnoreBasis => {
                vec![Db, EnvAssertion, Action, Communicate, NlAssertion]
            }
            EvaluationType::Env => vec![Db, EnvAssertion],
            EvaluationType::Action => vec![Action],
            EvaluationType::Communicate => vec![Communicate],
            EvaluationType::NlAssertions => vec![NlAssertion],
        }
    }
}

/// The environment as the expected actions leave it: never solo, never brought in step, errors
/// swallowed.
pub fn expected(domain: &Arc<Domain>, task: &Task, replay: Replay) -> Result<Environment, Failure> {
    let mut gold = Environment::for_task(domain, Mode::Dialogue, Some(task))?;
    let initial = task.initial_state.as_ref();
    let history = initial.and_then(history_of).unwrap_or_default();
    gold.set_state(initial, history, replay)?;
    for action in task.actions() {
        // An expected action that fails is a mistake of the task, not of the agent.
        let _ = gold.take(action);
    }
    Ok(gold)
}

fn history_of(state: &InitialState) -> Option<&[Message]> {
    state.message_history.as_deref()
}

fn nl_assertions(task: &Task) -> &[String] {
    let criteria = task.evaluation_criteria.as_ref();
    criteria.and_then(|criteria| criteria.nl_assertions.as_deref()).unwrap_or_default()
}
