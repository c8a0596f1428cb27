//! Running tasks: many at once, each trial with its seed, finished ones kept through a kill.

mod keep;

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};

pub use keep::{Journal, Keep, KeepError, save};

use crate::{
    Domain, Environment, Extra, Limits, Mode, Orchestrator, Protocol, Replay, Results, Simulation,
    SimulationError, Task, Termination, Value, clock,
    evaluate::{self, EvaluateError, EvaluationType, Evaluator, Judge},
    llm::Llm,
    orchestrator::Record,
    registry::{AgentEntry, Casting, UserEntry},
    simulation::{AgentInfo, EnvironmentInfo, Info, UserInfo},
    users::Guidelines,
};

/// What is run, and with whom.
#[derive(Clone)]
pub struct Plan {
    /// The domain.
    pub domain: Arc<Domain>,
    /// The tasks.
    pub tasks: Vec<Arc<Task>>,
    /// The agent's name and how it is made.
    pub agent: (String, AgentEntry),
    /// The user's name and how it is made.
    pub user: (String, UserEntry),
    /// The agent's model.
    pub agent_llm: Option<NamedLlm>,
    /// The user's model.
    pub user_llm: Option<NamedLlm>,
    /// Who judges natural-language assertions.
    pub judge: Option<Arc<dyn Judge>>,
    /// How often each task is run.
    pub trials: u32,
    /// The bounds of a conversation.
    pub limits: Limits,
    /// Whether the protocol is enforced.
    pub protocol: Protocol,
    /// The seed of all.
    pub seed: u32,
    /// How many conversations go on at once.
    pub concurrency: usize,
    /// How often a conversation that broke off is begun again.
    pub retries: u32,
    /// What is judged.
    pub evaluation: EvaluationType,
    /// What simulated users are told.
    pub guidelines: Guidelines,
}

/// A model with its name and settings, as results tell them.
#[derive(Clone)]
pub struct NamedLlm {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub args: Value,
    /// The model.
    pub llm: Arc<dyn Llm>,
}

/// One run of one task.
#[derive(Clone, Debug)]
pub struct Job {
    /// The task.
    pub task: Arc<Task>,
    /// Which trial.
    pub trial: u32,
    /// Its seed.
    pub seed: i64,
}

/// What happens while a plan is run.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A conversation begins, or goes on where a kill left it.
    Begun(Job),
    /// It came so many steps far.
    Step(Job, u32),
    /// It broke off and begins again.
    Again(Job, String),
    /// It is over and judged.
    Finished(Arc<Simulation>),
}

impl Plan {
    /// Whether the agent works alone.
    pub fn mode(&self) -> Mode {
        self.agent.1.mode
    }

    /// All runs, trial by trial.
    pub fn jobs(&self) -> Vec<Job> {
        let seeds = clock::trial_seeds(self.seed, self.trials.try_into().unwrap_or(usize::MAX));
        let trials = (0..).zip(seeds);
        let jobs = trials.flat_map(|(trial, seed)| {
            self.tasks.iter().map(move |task| Job { task: Arc::clone(task), trial, seed })
        });
        jobs.collect()
    }

    /// Results without simulations.
    pub fn results(&self) -> Results {
        let llm = |llm: &Option<NamedLlm>| match llm {
            Some(llm) => (Some(llm.name.clone()), Some(llm.args.clone())),
            None => (None, None),
        };
        let (agent_llm, agent_args) = llm(&self.agent_llm);
        let (user_llm, user_args) = llm(&self.user_llm);
        let user_guidelines = match self.domain.user.is_some() {
            true => &self.guidelines.with_tools,
            false => &self.guidelines.plain,
        };
        let policy = match (self.mode(), &self.domain.solo_policy) {
            (Mode::Solo, Some(policy)) => policy.clone(),
            _ => self.domain.policy.clone(),
        };
        Results {
            timestamp: Some(clock::now()),
            info: Info {
                git_commit: format!("duologue {}", env!("CARGO_PKG_VERSION")),
                num_trials: self.trials,
                max_steps: self.limits.max_steps,
                max_errors: self.limits.max_errors,
                user_info: UserInfo {
                    implementation: self.user.0.clone(),
                    llm: user_llm,
                    llm_args: user_args,
                    global_simulation_guidelines: Some(user_guidelines.clone()),
                    extra: Extra::new(),
                },
                agent_info: AgentInfo {
                    implementation: self.agent.0.clone(),
                    llm: agent_llm,
                    llm_args: agent_args,
                    extra: Extra::new(),
                },
                environment_info: EnvironmentInfo {
                    domain_name: self.domain.name.clone(),
                    policy,
                    extra: Extra::new(),
                },
                seed: Some(self.seed.into()),
                extra: Extra::new(),
            },
            tasks: self.tasks.clone(),
            simulations: Vec::new(),
            extra: Extra::new(),
        }
    }
}

/// Runs a plan. What `keep` already has is not run again, and what was begun goes on; every step and
/// all that is finished is kept at once.
///
/// # Errors
/// Where results cannot be kept: nothing that is run could be found again.
pub async fn run(
    plan: Arc<Plan>,
    keep: &mut Keep,
    mut told: impl FnMut(Progress),
) -> Result<Results, KeepError> {
    let jobs = plan.jobs().into_iter().filter(|job| !keep.has(&job.task.id, job.trial));
    let jobs: Vec<Job> = jobs.collect();
    let jobs = jobs.into_iter().map(|job| (keep.take_unfinished(&id_of(&plan, &job)), job));
    let jobs: Vec<(Vec<Record>, Job)> = jobs.collect();
    let journal = keep.journal();
    let (told_by, mut news) = tokio::sync::mpsc::unbounded_channel();
    let mut work = stream::iter(jobs)
        .map(|(earlier, job)| {
            let scribe = Scribe { journal: journal.clone(), told: told_by.clone() };
            let plan = Arc::clone(&plan);
            tokio::spawn(async move { simulate(&plan, job, earlier, &scribe).await })
        })
        .buffer_unordered(plan.concurrency.max(1));
    loop {
        tokio::select! {
            Some(progress) = news.recv() => told(progress),
            finished = work.next() => match finished {
                None => break,
                // A defect in one conversation must not lose the others; it is simply not kept.
                Some(Err(_)) => {}
                Some(Ok(simulation)) => {
                    while let Ok(progress) = news.try_recv() {
                        told(progress);
                    }
                    let simulation = Arc::new(simulation?);
                    keep.add(&simulation)?;
                    told(Progress::Finished(simulation));
                }
            },
        }
    }
    let mut results = plan.results();
    results.simulations = keep.in_order(&plan.jobs());
    Ok(results)
}

/// Whoever writes down what happens.
struct Scribe {
    journal: Option<Journal>,
    told: tokio::sync::mpsc::UnboundedSender<Progress>,
}

impl Scribe {
    fn tell(&self, progress: Progress) {
        // Nobody listens once the run was given up.
        let _ = self.told.send(progress);
    }
}

/// How long to wait before a conversation that broke off is begun again.
const PAUSE: Duration = Duration::from_millis(500);

async fn simulate(
    plan: &Plan,
    job: Job,
    mut earlier: Vec<Record>,
    scribe: &Scribe,
) -> Result<Simulation, KeepError> {
    scribe.tell(Progress::Begun(job.clone()));
    let mut attempt = 0;
    let mut simulation = loop {
        let was_begun = !earlier.is_empty();
        match converse(plan, &job, std::mem::take(&mut earlier), scribe).await {
            Ok(simulation) => break simulation,
            Err(Broken::Keep(error)) => return Err(error),
            Err(Broken::Off(error, simulation)) => {
                let simulation = *simulation;
                if error_ends(&error) {
                    break Simulation {
                        termination_reason: Termination::ContextWindowExceeded,
                        ..simulation
                    };
                }
                // Records that do not fit today's domain are no try.
                if was_begun && matches!(error, SimulationError::Record(_)) {
                    scribe.tell(Progress::Again(job.clone(), error.to_string()));
                    continue;
                }
                if attempt >= plan.retries {
                    let mut simulation = Simulation {
                        termination_reason: Termination::InfrastructureError,
                        ..simulation
                    };
                    let reason = Value::dict([("error", error.to_string().into())]);
                    simulation.extra.insert("info".to_owned(), reason);
                    break simulation;
                }
                attempt += 1;
                scribe.tell(Progress::Again(job.clone(), error.to_string()));
                tokio::time::sleep(PAUSE * attempt).await;
            }
        }
    };
    simulation.trial = Some(job.trial);
    simulation.seed = Some(job.seed);
    judge(plan, &job.task, &mut simulation).await;
    Ok(simulation)
}

/// Why a conversation did not come to an end.
enum Broken {
    Off(SimulationError, Box<Simulation>),
    Keep(KeepError),
}

fn error_ends(error: &SimulationError) -> bool {
    let (SimulationError::Agent(error) | SimulationError::User(error)) = error else {
        return false;
    };
    matches!(error, crate::AgentError::Llm(error) if error.is_overflow())
}

async fn converse(
    plan: &Plan,
    job: &Job,
    earlier: Vec<Record>,
    scribe: &Scribe,
) -> Result<Simulation, Broken> {
    let mut orchestrator = match seated(plan, job) {
        Ok(orchestrator) => orchestrator,
        Err(error) => return Err(Broken::Off(error, Box::new(never_begun(plan, job)))),
    };
    let id = id_of(plan, job);
    let mut lost = None;
    let keep = |record: Record| {
        scribe.tell(Progress::Step(job.clone(), record.steps));
        match scribe.journal.as_ref().map(|journal| journal.step(&id, &record)) {
            Some(Err(error)) => {
                let told = error.to_string();
                lost = Some(error);
                Err(told)
            }
            _ => Ok(()),
        }
    };
    let ran = orchestrator.run_recorded(earlier, keep).await;
    match (ran, lost) {
        (_, Some(error)) => Err(Broken::Keep(error)),
        (Ok(simulation), None) => Ok(simulation),
        (Err(error), None) => {
            let simulation = orchestrator.simulation(Termination::UnexpectedError);
            Err(Broken::Off(error, Box::new(simulation)))
        }
    }
}

fn seated(plan: &Plan, job: &Job) -> Result<Orchestrator, SimulationError> {
    let mode = plan.mode();
    let environment = Environment::for_task(&plan.domain, mode, Some(&job.task))?;
    let policy = environment.policy().to_owned();
    let casting = |tools, llm: &Option<NamedLlm>| Casting {
        domain: &plan.domain,
        mode,
        policy: &policy,
        tools,
        task: &job.task,
        llm: llm.as_ref().map(|llm| Arc::clone(&llm.llm)),
        guidelines: &plan.guidelines,
    };
    let agent = (plan.agent.1.make)(casting(plan.domain.agent_tools(mode), &plan.agent_llm))
        .map_err(SimulationError::Agent)?;
    let user = (plan.user.1.make)(casting(plan.domain.user_tools(&job.task), &plan.user_llm))
        .map_err(SimulationError::User)?;
    Ok(Orchestrator::new(environment, agent, user, Arc::clone(&job.task))
        .limits(plan.limits)
        .protocol(plan.protocol)
        .seed(job.seed)
        .id(id_of(plan, job)))
}

/// The same run has the same id, also in another process.
fn id_of(plan: &Plan, job: &Job) -> String {
    let model = |llm: &Option<NamedLlm>| llm.as_ref().map(|l| l.name.clone()).unwrap_or_default();
    let task = serde_json::to_vec(&*job.task).unwrap_or_default();
    let name = format!(
        "{}/{} {}/{} {}/{}/{}/{}",
        plan.domain.name,
        plan.agent.0,
        model(&plan.agent_llm),
        plan.user.0,
        model(&plan.user_llm),
        crate::python::sha256(&task),
        job.trial,
        job.seed
    );
    let hash = crate::python::sha256(name.as_bytes());
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default().to_owned();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

fn never_begun(plan: &Plan, job: &Job) -> Simulation {
    let now = clock::now();
    Simulation {
        id: id_of(plan, job),
        task_id: job.task.id.clone(),
        timestamp: Some(now.clone()),
        start_time: now.clone(),
        end_time: now,
        duration: 0.0,
        termination_reason: Termination::InfrastructureError,
        agent_cost: None,
        user_cost: None,
        reward_info: None,
        messages: Some(Vec::new()),
        trial: Some(job.trial),
        seed: Some(job.seed),
        extra: Extra::new(),
    }
}

/// Judges a simulation where it stands, and remarks on it.
async fn judge(plan: &Plan, task: &Task, simulation: &mut Simulation) {
    let evaluator = Evaluator {
        domain: &plan.domain,
        mode: plan.mode(),
        kind: plan.evaluation,
        replay: Replay::Strict,
    };
    let judged = evaluator.evaluate(simulation, task, plan.judge.as_deref()).await;
    note(&evaluator, task, simulation, judged);
}

/// Writes a judgement into a simulation; where there is none, why.
pub fn note(
    evaluator: &Evaluator<'_>,
    task: &Task,
    simulation: &mut Simulation,
    judged: Result<crate::simulation::RewardInfo, EvaluateError>,
) {
    let mut remarks = Value::empty_dict();
    match judged {
        Ok(info) => simulation.reward_info = Some(info),
        Err(error) => remarks.set("not_judged", error.to_string()),
    }
    if let Ok(Some(more)) = evaluator.remarks(simulation, task) {
        remarks.merge(&more);
    }
    if remarks.truthy() {
        simulation.extra.insert(evaluate::REMARKS.to_owned(), remarks);
    }
}
