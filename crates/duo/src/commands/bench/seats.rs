//! Who takes part in a run, on which tasks, with which models.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duologue_bench::{
    Limits, Mode, Protocol, Registry, Task,
    evaluate::{EvaluationType, Judge, LlmJudge},
    llm::{Llm, ModelLlm, from_json},
    run::{NamedLlm, Plan},
};
use duologue_core::{Model, Options};
use serde_json::{Value, json};

use super::{
    Loaded, agent,
    args::{Cast, Choice},
};
use crate::{
    failure::Failure,
    house::{House, OwnTools},
};

/// The tasks that were asked for.
pub(super) fn choose(loaded: &Loaded, choice: &Choice) -> Result<Vec<Arc<Task>>, Failure> {
    let set = &loaded.tasks;
    let has_base = set.splits.iter().any(|(name, _)| name == "base");
    let mut tasks = match &choice.task_split {
        Some(split) => set.split(split)?,
        None if choice.task_ids.is_empty() && has_base => set.split("base")?,
        None => set.tasks.clone(),
    };
    if !choice.task_ids.is_empty() {
        for id in &choice.task_ids {
            if tasks.iter().all(|task| task.id != *id) {
                return Err(Failure::usage(format!("the domain has no task {id:?}")));
            }
        }
        tasks.retain(|task| choice.task_ids.contains(&task.id));
    }
    tasks.truncate(choice.num_tasks.unwrap_or(usize::MAX));
    if tasks.is_empty() {
        return Err(Failure::usage("there is no task to run"));
    }
    Ok(tasks)
}

/// A plan with everybody in their seats.
pub(super) async fn assemble(
    house: &House,
    registry: &Registry,
    loaded: Loaded,
    tasks: Vec<Arc<Task>>,
    cast: &Cast,
    agent_name: Option<String>,
    own_tools: OwnTools,
) -> Result<Plan, Failure> {
    let agent_name = agent_name.unwrap_or_else(|| "llm_agent".to_owned());
    let mut models = Models::of(house);
    let agent_model = cast.agent_llm.clone();
    let (agent_options, agent_args) = options(cast.agent_llm_args.as_ref())?;
    let (agent, agent_llm) = match registry.agent(&agent_name) {
        Ok(_) if own_tools == OwnTools::GoAlong => {
            return Err(Failure::usage(format!(
                "{agent_name} has no tools of its own; --own-tools is for agents of Duologue"
            )));
        }
        Ok(entry) => {
            let model = agent_model.as_deref();
            let llm = match entry.needs_llm {
                true => Some(models.named(model, &agent_options, &agent_args).await?),
                false => None,
            };
            (entry.clone(), llm)
        }
        Err(unknown) => {
            let wanted = agent::Wanted {
                name: &agent_name,
                model: agent_model.as_deref(),
                options: cast.agent_llm_args.is_some().then_some(&agent_options),
                args: &agent_args,
                domain: &loaded.domain,
                own_tools,
            };
            match agent::entry(&mut models, wanted).await? {
                Some(found) => found,
                None => {
                    let ours = house.config().agents.keys().map(String::as_str);
                    let ours = ours.collect::<Vec<_>>().join(", ");
                    return Err(Failure::usage(format!(
                        "{unknown}, of the configuration {ours}, and a2a:URL for one behind A2A"
                    )));
                }
            }
        }
    };
    let user_name = cast.user.clone().unwrap_or_else(|| match agent.mode {
        Mode::Solo => "dummy_user".to_owned(),
        Mode::Dialogue => "user_simulator".to_owned(),
    });
    let user = registry.user(&user_name).map_err(Failure::usage)?.clone();
    let user_model = cast.user_llm.clone().or(agent_model);
    let (user_options, user_args) = options(cast.user_llm_args.as_ref())?;
    let user_llm = match user.needs_llm {
        true => Some(models.named(user_model.as_deref(), &user_options, &user_args).await?),
        false => None,
    };
    let needs_judge = tasks.iter().any(|task| {
        task.evaluation_criteria.as_ref().is_some_and(|criteria| {
            criteria.reward_basis.contains(&duologue_bench::RewardType::NlAssertion)
                && criteria.nl_assertions.as_ref().is_some_and(|list| !list.is_empty())
        })
    });
    let judge_model = cast.judge_llm.clone().or(user_model);
    let judge = match needs_judge {
        true => Some(models.judge(judge_model.as_deref()).await?),
        false => None,
    };
    Ok(Plan {
        domain: loaded.domain,
        tasks,
        agent: (agent_name, agent),
        user: (user_name, user),
        agent_llm,
        user_llm,
        judge,
        trials: 1,
        limits: Limits {
            max_steps: cast.max_steps,
            max_errors: cast.max_errors,
            timeout: cast.timeout.map(Duration::from_secs),
        },
        protocol: match cast.enforce_communication_protocol {
            true => Protocol::Enforced,
            false => Protocol::Free,
        },
        seed: 300,
        concurrency: 1,
        retries: 0,
        evaluation: EvaluationType::All,
        guidelines: loaded.guidelines,
    })
}

/// Models by name, each brought up once.
pub(super) struct Models<'a> {
    pub(super) house: &'a House,
    brought: BTreeMap<String, Arc<dyn Model>>,
}

impl<'a> Models<'a> {
    pub(super) fn of(house: &'a House) -> Self {
        Self { house, brought: BTreeMap::new() }
    }

    /// A model by its name, or the usual one.
    pub(super) async fn model(
        &mut self,
        name: Option<&str>,
    ) -> Result<(String, Arc<dyn Model>), Failure> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.house.plan()?.model,
        };
        if let Some(model) = self.brought.get(&name) {
            return Ok((name, Arc::clone(model)));
        }
        let model = self.house.model(&name).await?;
        self.brought.insert(name.clone(), Arc::clone(&model));
        Ok((name, model))
    }

    pub(super) async fn named(
        &mut self,
        name: Option<&str>,
        options: &Options,
        args: &Value,
    ) -> Result<NamedLlm, Failure> {
        let (name, model) = self.model(name).await?;
        let llm: Arc<dyn Llm> = Arc::new(ModelLlm { model, options: options.clone() });
        Ok(NamedLlm { name, args: from_json(args), llm })
    }

    pub(super) async fn judge(&mut self, name: Option<&str>) -> Result<Arc<dyn Judge>, Failure> {
        let (options, args) = options(None)?;
        let llm = self.named(name, &options, &args).await?;
        Ok(Arc::new(LlmJudge::new(llm.llm)))
    }
}

/// Settings of a model; without any it answers as surely as it can.
fn options(args: Option<&Value>) -> Result<(Options, Value), Failure> {
    let args = args.cloned().unwrap_or_else(|| json!({"temperature": 0.0}));
    let options = serde_json::from_value(args.clone())
        .map_err(|error| Failure::usage(format!("these settings are not for a model: {error}")))?;
    Ok((options, args))
}
