//! `duo bench run`: tasks, agents and simulated users, judged.

use std::{
    collections::BTreeMap,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use duologue_bench::{
    Limits, Mode, Protocol, Registry, Results, Simulation, Task, clock,
    evaluate::{EvaluationType, Judge, LlmJudge},
    llm::{Llm, ModelLlm, from_json},
    run::{Keep, NamedLlm, Plan, Progress, run as run_plan, save},
};
use duologue_core::{Model, Options};
use serde_json::{Value, json};

use super::{
    Loaded, agent,
    args::{Cast, Choice, Run},
    load, show,
};
use crate::{
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::Style,
};

pub(super) async fn run(house: &House, args: Run, agent: Option<String>) -> Done {
    let mut registry = Registry::default();
    let loaded = load(&registry, &args.source.domain, args.source.data)?;
    let tasks = match &args.from {
        Some(file) => forked(&loaded, file, args.simulation.as_deref(), args.at)?,
        None => choose(&loaded, &args.choice)?,
    };
    let mut plan = assemble(house, &mut registry, loaded, tasks, &args.cast, agent).await?;
    plan.trials = args.num_trials.max(1);
    plan.concurrency = args.max_concurrency;
    plan.seed = args.seed;
    plan.retries = args.max_retries;
    let file = args.save_to.unwrap_or_else(|| usual_file(&plan));
    let plan = Arc::new(plan);
    let mut keep = take_up(&plan, &file)?;
    let total = plan.jobs().len();
    let mut screen = Screen::new(house, total, keep.len());
    if !keep.is_empty() {
        let kept = keep.len();
        writeln!(std::io::stderr(), "{kept} of {total} simulations are there already")?;
    }
    let work = run_plan(Arc::clone(&plan), &mut keep, |progress| screen.show(&progress));
    let results = tokio::select! {
        results = work => results.map_err(Failure::new)?,
        _ = tokio::signal::ctrl_c() => {
            screen.clear();
            let file = file.display();
            writeln!(std::io::stderr(), "stopped; the same command with --save-to {file} goes on")?;
            return Ok(Exit::Aborted);
        }
    };
    screen.clear();
    keep.finish(&results).map_err(Failure::new)?;
    show::summary(house, &results)?;
    writeln!(std::io::stdout(), "\nresults: {}", file.display())?;
    Ok(Exit::Completed)
}

/// Tasks that go on from recorded conversations.
fn forked(
    loaded: &Loaded,
    file: &Path,
    simulation: Option<&str>,
    at: Option<usize>,
) -> Result<Vec<Arc<Task>>, Failure> {
    let results = Results::load(file)?;
    let wanted = |s: &&Simulation| simulation.is_none_or(|id| s.id.starts_with(id));
    let mut tasks: Vec<Arc<Task>> = Vec::new();
    for simulation in results.simulations.iter().filter(wanted) {
        let id = &simulation.task_id;
        let task = results.task(id).or_else(|| loaded.tasks.task(id));
        let Some(task) = task else { continue };
        if tasks.iter().any(|known| known.id == *id) {
            continue;
        }
        let messages = simulation.messages();
        let kept = at.unwrap_or_else(|| messages.len().saturating_sub(1)).min(messages.len());
        let kept = messages.get(..kept).unwrap_or_default();
        tasks.push(Arc::new(task.continued_from(kept)));
    }
    if tasks.is_empty() {
        let file = file.display();
        return Err(Failure::usage(format!("{file} has no such simulation of this domain")));
    }
    Ok(tasks)
}

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
    registry: &mut Registry,
    loaded: Loaded,
    tasks: Vec<Arc<Task>>,
    cast: &Cast,
    agent_name: Option<String>,
) -> Result<Plan, Failure> {
    let agent_name = agent_name.unwrap_or_else(|| "llm_agent".to_owned());
    let mut models = Models { house, brought: BTreeMap::new() };
    let agent_model = cast.agent_llm.clone();
    let (agent_options, agent_args) = options(cast.agent_llm_args.as_ref())?;
    let known = registry.agent(&agent_name).cloned();
    let agent = match known {
        Ok(entry) => entry,
        Err(unknown) => {
            let model = models.model(agent_model.as_deref()).await?;
            let found = agent::entry(house, &agent_name, model.1, agent_options.clone())?;
            let names: Vec<&str> = house.config().agents.keys().map(String::as_str).collect();
            found.ok_or_else(|| {
                let names = names.join(", ");
                Failure::usage(format!("{unknown}, and of the configuration {names}"))
            })?
        }
    };
    let user_name = cast.user.clone().unwrap_or_else(|| match agent.mode {
        Mode::Solo => "dummy_user".to_owned(),
        Mode::Dialogue => "user_simulator".to_owned(),
    });
    let user = registry.user(&user_name).map_err(Failure::usage)?.clone();
    let is_ours = registry.agent(&agent_name).is_err();
    let agent_llm = match agent.needs_llm || is_ours {
        true => Some(models.named(agent_model.as_deref(), &agent_options, &agent_args).await?),
        false => None,
    };
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
    pub(super) brought: BTreeMap<String, Arc<dyn Model>>,
}

impl Models<'_> {
    /// A model by its name, or the usual one.
    async fn model(&mut self, name: Option<&str>) -> Result<(String, Arc<dyn Model>), Failure> {
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

    async fn named(
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

/// What an earlier run left in the file; it must have been the same run.
fn take_up(plan: &Plan, file: &Path) -> Result<Keep, Failure> {
    let mut fresh = plan.results();
    if file.exists() {
        let found = Results::load(file)?.info;
        let told = |info: &duologue_bench::simulation::Info| {
            format!(
                "{} with {} ({}) and {} ({}), seed {}",
                info.environment_info.domain_name,
                info.agent_info.implementation,
                info.agent_info.llm.as_deref().unwrap_or("no model"),
                info.user_info.implementation,
                info.user_info.llm.as_deref().unwrap_or("no model"),
                info.seed.unwrap_or_default()
            )
        };
        if told(&found) != told(&fresh.info) {
            return Err(Failure::usage(format!(
                "{} is of another run: {}; this one is {}",
                file.display(),
                told(&found),
                told(&fresh.info)
            )));
        }
        return Keep::in_file(file).map_err(Failure::new);
    }
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    fresh.simulations.clear();
    save(&fresh, file).map_err(Failure::new)?;
    Keep::in_file(file).map_err(Failure::new)
}

fn usual_file(plan: &Plan) -> PathBuf {
    let time: String =
        clock::now().chars().take(19).map(|c| if c == ':' { '-' } else { c }).collect();
    PathBuf::from(format!("bench_{}_{}_{time}.json", plan.domain.name, plan.agent.0))
}

/// What a person sees while it runs: a line that tells how far it is, and what is finished.
struct Screen<'a> {
    house: &'a House,
    total: usize,
    finished: usize,
    running: usize,
    rewards: f64,
    judged: u32,
    cost: f64,
    is_terminal: bool,
}

impl<'a> Screen<'a> {
    fn new(house: &'a House, total: usize, finished: usize) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { house, total, finished, running: 0, rewards: 0.0, judged: 0, cost: 0.0, is_terminal }
    }

    fn show(&mut self, progress: &Progress) {
        match progress {
            Progress::Begun(_) => self.running += 1,
            Progress::Again(job, error) => {
                self.line(&format!("{} begins again: {error}", job.task.id));
            }
            Progress::Finished(simulation) => {
                self.running = self.running.saturating_sub(1);
                self.finished += 1;
                self.count(simulation);
                self.line(&show::simulation_line(self.house, simulation));
            }
        }
        if self.is_terminal {
            let mean = if self.judged > 0 { self.rewards / f64::from(self.judged) } else { 0.0 };
            let status = format!(
                "{}/{} finished · {} running · mean reward {mean:.2} · ${:.4}",
                self.finished, self.total, self.running, self.cost
            );
            let status = self.house.paint.text(Style::Dim, status);
            let _ = write!(std::io::stderr(), "\r\x1b[K{status}");
        }
    }

    fn count(&mut self, simulation: &Simulation) {
        if let Some(info) = &simulation.reward_info {
            self.rewards += info.reward;
            self.judged += 1;
        }
        self.cost += simulation.agent_cost.unwrap_or(0.0) + simulation.user_cost.unwrap_or(0.0);
    }

    fn line(&self, text: &str) {
        self.clear();
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    fn clear(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
