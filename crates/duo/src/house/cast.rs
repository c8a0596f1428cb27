//! Agents as the configuration describes them, put together from behaviours, tools and models.

mod bidirectional;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use duologue_behaviors::{DualAct, DualActConfig, Generic, LessonFile, Planned, ReAct};
use duologue_core::{
    Agent, AgentBuilder, Behavior, ChildrenMemory, Mode, Model, Options, Policy, Toolbox,
};
use duologue_models::Recorder;
use serde::{Deserialize, Serialize};

use super::{House, Plan};
use crate::{
    cli::{self, Recording},
    config::{Flag, keys, suggest},
    failure::Failure,
};

/// What an agent is told about itself unless its section says otherwise.
const SYSTEM: &str = "You are a helpful assistant at a command line. Use your tools to look things \
     up and to act rather than guess. Be brief. When a tool fails or is denied, say so plainly.";

/// What R of a dual act is told unless the section says otherwise: the whole task too, because a
/// weak H gives half of it.
const WORK_IN_CONTEXT: &str =
    "{instruction}\n\n{focus_area}\n\nThis belongs to the task: {original_task}";

/// What H of a dual act is told about itself unless it is an agent with a section.
const SUPERVISOR: &str = "You supervise another agent that does the work. You do no work yourself \
     and have no tools for it: you say what is to be done, judge what was concluded, and decide \
     when the task is done.";

/// What the command line says of how an agent works. A session remembers it: an agent that came back
/// with other intervals or models would be another agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct How {
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<keys::Strategy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_every: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validate_every: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_hr_loops: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_h: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_r: Option<String>,
}

impl How {
    /// What the flags say. A model for all is one for H and for R too.
    pub(super) fn asked(flags: &cli::Shared) -> Self {
        let how = &flags.how;
        Self {
            strategy: how.strategy,
            plan_every: how.plan_every,
            validate_every: how.validate_every,
            max_hr_loops: how.max_hr_loops,
            model_h: how.model_h.clone().or_else(|| flags.model.clone()),
            model_r: how.model_r.clone().or_else(|| flags.model.clone()),
        }
    }

    /// The flags as keys of the configuration.
    pub(super) fn flags(how: &cli::How) -> Vec<Flag> {
        let count = |flag, key, value: Option<u64>| {
            let value = i64::try_from(value?).unwrap_or(i64::MAX);
            Some(Flag::new(flag, key, value))
        };
        let text = |flag, key, value: Option<&str>| Some(Flag::new(flag, key, value?));
        let found = [
            text("--strategy", "planned.strategy", how.strategy.map(keys::Strategy::as_str)),
            count("--plan-every", "planned.plan_every", how.plan_every),
            count("--validate-every", "planned.validate_every", how.validate_every),
            count("--max-hr-loops", "dual.max_hr_loops", how.max_hr_loops.map(u64::from)),
            text("--model-h", "dual.model_h", how.model_h.as_deref()),
            text("--model-r", "dual.model_r", how.model_r.as_deref()),
        ];
        found.into_iter().flatten().collect()
    }

    /// This, and where it is silent, what was said earlier.
    pub(super) fn over(self, earlier: Self) -> Self {
        Self {
            strategy: self.strategy.or(earlier.strategy),
            plan_every: self.plan_every.or(earlier.plan_every),
            validate_every: self.validate_every.or(earlier.validate_every),
            max_hr_loops: self.max_hr_loops.or(earlier.max_hr_loops),
            model_h: self.model_h.or(earlier.model_h),
            model_r: self.model_r.or(earlier.model_r),
        }
    }

    /// The same with a model for whom none was named.
    pub(super) fn with_usual_model(self, model: &str) -> Self {
        let or = |named: Option<String>| named.or_else(|| Some(model.to_owned()));
        Self { model_h: or(self.model_h), model_r: or(self.model_r), ..self }
    }

    /// The same with one model for everybody.
    pub(super) fn with_model(self, model: &str) -> Self {
        Self { model_h: Some(model.to_owned()), model_r: Some(model.to_owned()), ..self }
    }
}

/// An agent and all that it is made of, before there are models.
pub(crate) struct Cast<'a> {
    house: &'a House,
    plan: &'a Plan,
    /// Models by their names; empty for an agent that only replays.
    models: BTreeMap<String, Arc<dyn Model>>,
    /// The place that it works at, if that is not this machine.
    outside: Option<Outside>,
}

/// A place other than this machine, such as the environment of a benchmark. Whatever an agent would
/// do here it does there: its tools take the place of the agent's own or stand beside them, its
/// rules follow the agent's own instructions, and what the agent has learned here stays here.
pub(crate) struct Outside {
    /// Its tools, which somebody else carries out.
    pub(crate) tools: Toolbox,
    /// What becomes of the agent's own.
    pub(crate) own_tools: OwnTools,
    /// Its rules.
    pub(crate) rules: String,
    /// What an agent without instructions of its own is told.
    pub(crate) system: &'static str,
    /// How models are to answer, instead of what the agents' sections say.
    pub(crate) options: Option<Options>,
}

/// The tools that an agent's section names, when it works elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnTools {
    /// Nothing of this machine can be reached, so nobody has to be asked.
    StayHere,
    /// They go along, under the same permissions as at home.
    GoAlong,
}

/// One agent of a cast.
#[derive(Clone, Copy)]
struct Role<'a> {
    /// What it is called.
    name: &'a str,
    /// What its section says.
    section: &'a keys::Agent,
    /// Its model's name.
    model: &'a str,
}

impl<'a> Cast<'a> {
    pub(crate) fn new(house: &'a House, plan: &'a Plan) -> Self {
        Self { house, plan, models: BTreeMap::new(), outside: None }
    }

    /// The same agent at another place.
    pub(crate) fn outside(mut self, outside: Outside) -> Self {
        self.outside = Some(outside);
        self
    }

    /// The names of all models that one of the agents speaks with.
    pub(crate) fn model_names(&self) -> Result<BTreeSet<&'a str>, Failure> {
        let mut names = BTreeSet::new();
        self.name_models(self.role(&self.plan.agent, &self.plan.model)?, &mut names)?;
        Ok(names)
    }

    /// A model by its name.
    pub(crate) fn take_model(&mut self, name: &str, model: Arc<dyn Model>) {
        self.models.insert(name.to_owned(), model);
    }

    /// Bring up every model that one of the agents speaks with.
    pub(super) async fn bring_models(&mut self, recording: &Recording) -> Result<(), Failure> {
        let names = self.model_names()?;
        if recording.record.is_some() && names.len() > 1 {
            return Err(Failure::usage(
                "--record takes down one model, and this agent speaks with several",
            ));
        }
        for name in names {
            let model = self.house.model(name).await?;
            let model: Arc<dyn Model> = match &recording.record {
                None => model,
                Some(file) => Arc::new(Recorder::new(model, file).map_err(Failure::usage)?),
            };
            self.take_model(name, model);
        }
        Ok(())
    }

    /// The agent of the plan.
    pub(crate) fn agent(&self) -> Result<Agent, Failure> {
        if let Some(agent) = self.bidirectional()? {
            return Ok(agent.agent().clone());
        }
        Ok(self.build(self.role(&self.plan.agent, &self.plan.model)?)?.build())
    }

    fn role(&self, name: &'a str, model: &'a str) -> Result<Role<'a>, Failure> {
        let agents = &self.house.config().agents;
        let Some(section) = agents.get(name) else {
            let names = || agents.keys().map(String::as_str);
            let hint = match suggest(name, names()) {
                Some(meant) => format!(" (did you mean \"{meant}\"?)"),
                None => format!("; there are {}", names().collect::<Vec<_>>().join(", ")),
            };
            return Err(Failure::usage(format!("unknown agent \"{name}\"{hint}")));
        };
        Ok(Role { name, section, model })
    }

    /// An agent that another is made of. Its model is the one that was asked for, the one that the
    /// whole says, its own, or that of the whole.
    fn member(
        &self,
        whole: Role<'a>,
        name: &'a str,
        asked: Option<&'a String>,
        said: Option<&'a String>,
    ) -> Result<Role<'a>, Failure> {
        let role = self.role(name, whole.model)?;
        let model = asked.or(said).or(role.section.model.as_ref());
        Ok(Role { model: model.map_or(whole.model, String::as_str), ..role })
    }

    fn human(&self, whole: Role<'a>) -> Result<Option<Role<'a>>, Failure> {
        let dual = &whole.section.dual;
        let Some(name) = &dual.human else { return Ok(None) };
        self.member(whole, name, self.plan.how.model_h.as_ref(), dual.model_h.as_ref()).map(Some)
    }

    fn reactive(&self, whole: Role<'a>) -> Result<Vec<Role<'a>>, Failure> {
        let dual = &whole.section.dual;
        let (asked, said) = (self.plan.how.model_r.as_ref(), dual.model_r.as_ref());
        dual.reactive.iter().map(|name| self.member(whole, name, asked, said)).collect()
    }

    /// The model of H or R where it is no agent with a section.
    fn model_of(whole: Role<'a>, asked: Option<&'a String>, said: Option<&'a String>) -> &'a str {
        asked.or(said).map_or(whole.model, String::as_str)
    }

    fn name_models(&self, role: Role<'a>, names: &mut BTreeSet<&'a str>) -> Result<(), Failure> {
        if role.section.behavior != "dual" {
            names.insert(role.model);
            return Ok(());
        }
        let (how, dual) = (&self.plan.how, &role.section.dual);
        match self.human(role)? {
            Some(human) => self.name_models(human, names)?,
            None => {
                names.insert(Self::model_of(role, how.model_h.as_ref(), dual.model_h.as_ref()));
            }
        }
        let reactive = self.reactive(role)?;
        if reactive.is_empty() {
            names.insert(Self::model_of(role, how.model_r.as_ref(), dual.model_r.as_ref()));
        }
        reactive.into_iter().try_for_each(|worker| self.name_models(worker, names))
    }

    fn build(&self, role: Role<'a>) -> Result<AgentBuilder, Failure> {
        let section = role.section;
        let steps = |usual| section.max_steps.map_or(usual, u64::from);
        let tools = || self.tools(section);
        let builder = match section.behavior.as_str() {
            "dual" => return self.dual(role),
            "bidirectional" => {
                return Err(Failure::usage(format!(
                    "the agent \"{}\" is bidirectional and cannot be a part of another",
                    role.name
                )));
            }
            "planned" => self.planned(role, tools()?)?,
            #[cfg(feature = "browser")]
            "browser" => self.house.browsing(
                role.name,
                self.plan_keys(role).to_behavior(section.max_steps),
                &self.plan.workspace,
                section.tools.as_deref(),
            )?,
            #[cfg(not(feature = "browser"))]
            "browser" => return Err(Failure::usage("this duo was built without the browser")),
            "react" => {
                let max_iterations = steps(ReAct::default().max_iterations);
                Agent::builder(role.name, ReAct { max_iterations }).tools(tools()?)
            }
            _ => {
                let max_steps = steps(Generic::default().max_steps);
                Agent::builder(role.name, Generic { max_steps }).tools(tools()?)
            }
        };
        let builder = builder.system(self.system(role)?).budget(section.budget.to_core());
        self.furnish(builder, role)
    }

    /// What an agent can do: by the house's rule here, and by the place's elsewhere. One that is to
    /// have no tools has none anywhere.
    fn tools(&self, section: &keys::Agent) -> Result<Toolbox, Failure> {
        match (&self.outside, section.tools.as_deref()) {
            (Some(_), Some([])) => Ok(Toolbox::new()),
            (Some(outside), named) if outside.own_tools == OwnTools::GoAlong => {
                let own = self.house.tools(&self.plan.workspace, named)?;
                Ok(outside.tools.iter().cloned().fold(own, Toolbox::with_shared))
            }
            (Some(outside), _) => Ok(outside.tools.clone()),
            (None, named) => self.house.tools(&self.plan.workspace, named),
        }
    }

    /// How models are to answer: as the section says, which a measurement may overrule.
    fn options(&self, section: &keys::Agent) -> Options {
        let own = section.options();
        match &self.outside {
            None => own,
            Some(Outside { options: Some(options), .. }) => options.clone(),
            // What is measured answers as surely as it can.
            Some(_) => Options { temperature: own.temperature.or(Some(0.0)), ..own },
        }
    }

    /// What an agent is told: what its section says, or the usual.
    fn system(&self, role: Role<'a>) -> Result<String, Failure> {
        let own = self.house.loaded.system_of(role.name)?;
        let at_home = match role.section.behavior.as_str() {
            #[cfg(feature = "browser")]
            "browser" => super::browsing::SYSTEM,
            _ => SYSTEM,
        };
        let usual = self.outside.as_ref().map_or(at_home, |outside| outside.system);
        Ok(self.with_rules(own.as_deref().unwrap_or(usual)))
    }

    fn with_rules(&self, system: &str) -> String {
        match &self.outside {
            Some(outside) => format!("{system}\n\n<policy>\n{}\n</policy>", outside.rules),
            None => system.to_owned(),
        }
    }

    /// What every agent of the house has.
    fn furnish(&self, builder: AgentBuilder, role: Role<'a>) -> Result<AgentBuilder, Failure> {
        let (config, section) = (self.house.config(), role.section);
        let policy = match &self.outside {
            Some(outside) if outside.own_tools == OwnTools::StayHere => Policy::new(Mode::Full),
            _ => config.permissions.policy().map_err(Failure::usage)?,
        };
        let builder = builder
            .description(section.description.clone().unwrap_or_default())
            .policy(policy)
            .memory(section.memory.to_core(&config.limits))
            .options(self.options(section))
            .retry(config.limits.retry())
            .max_send_backs(config.limits.max_send_backs);
        Ok(match self.models.get(role.model) {
            Some(model) => builder.model(Arc::clone(model)),
            None => builder,
        })
    }

    /// How an agent plans: what its section says, and what was asked for.
    fn plan_keys(&self, role: Role<'a>) -> keys::Planned {
        let how = &self.plan.how;
        let said = &role.section.planned;
        keys::Planned {
            strategy: how.strategy.unwrap_or(said.strategy),
            plan_every: how.plan_every.unwrap_or(said.plan_every),
            validate_every: how.validate_every.unwrap_or(said.validate_every),
            ..said.clone()
        }
    }

    fn planned(&self, role: Role<'a>, tools: Toolbox) -> Result<AgentBuilder, Failure> {
        let planned = self.plan_keys(role);
        let config = planned.to_behavior(role.section.max_steps);
        if !planned.lessons || self.outside.is_some() {
            return Ok(Planned::builder(role.name, config, tools));
        }
        let file = lessons_file(&planned)?;
        Ok(Planned::learning_builder(role.name, config, tools, Arc::new(file)))
    }

    fn dual(&self, role: Role<'a>) -> Result<AgentBuilder, Failure> {
        let (how, dual) = (&self.plan.how, &role.section.dual);
        let human = match self.human(role)? {
            Some(human) => self.build(human)?,
            None => {
                let model = Self::model_of(role, how.model_h.as_ref(), dual.model_h.as_ref());
                let builder = self.plain("human", Generic::default(), Role { model, ..role })?;
                builder.system(self.with_rules(SUPERVISOR))
            }
        };
        let mut reactive = Vec::new();
        for worker in self.reactive(role)? {
            reactive.push(self.build(worker)?.build());
        }
        if reactive.is_empty() {
            let model = Self::model_of(role, how.model_r.as_ref(), dual.model_r.as_ref());
            let worker = Role { name: "reactive", model, ..role };
            let builder = self.planned(worker, self.tools(role.section)?)?;
            reactive.push(self.furnish(builder.system(self.system(role)?), worker)?.build());
        }
        let Some(first) = reactive.first().cloned() else {
            return Err(Failure::new("a dual agent has nobody to work"));
        };
        let usual = DualActConfig::new(human.build(), first);
        let or = |said: &Option<String>, usual: String| said.clone().unwrap_or(usual);
        let config = DualActConfig {
            name: role.name.to_owned(),
            reactive,
            max_hr_loops: how.max_hr_loops.unwrap_or(dual.max_hr_loops),
            human_decision_prompt: or(&dual.human_decision_prompt, usual.human_decision_prompt),
            reactive_task_prompt: or(&dual.reactive_task_prompt, WORK_IN_CONTEXT.to_owned()),
            conclusion_format_prompt: or(
                &dual.conclusion_format_prompt,
                usual.conclusion_format_prompt,
            ),
            memory: if dual.shared_memory {
                ChildrenMemory::Shared
            } else {
                ChildrenMemory::Separate
            },
            human: usual.human,
        };
        let dual = DualAct::new(config).map_err(Failure::usage)?;
        Ok(dual
            .builder()
            .description(role.section.description.clone().unwrap_or_default())
            .budget(role.section.budget.to_core())
            .max_send_backs(self.house.config().limits.max_send_backs))
    }

    fn plain(
        &self,
        name: &str,
        behavior: impl Behavior,
        role: Role<'a>,
    ) -> Result<AgentBuilder, Failure> {
        self.furnish(Agent::builder(name, behavior), role)
    }
}

/// The file with the lessons.
pub(crate) fn lessons_file(planned: &keys::Planned) -> Result<LessonFile, Failure> {
    match &planned.lessons_file {
        Some(file) => Ok(LessonFile::new(file)),
        None => Err(Failure::usage(
            "there is no folder for lessons because HOME is not set; \
             say --set planned.lessons_file=FILE",
        )),
    }
}
