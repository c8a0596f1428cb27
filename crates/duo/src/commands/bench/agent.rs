//! Any agent of Duologue as an agent of the bench: by its section of the configuration, with the
//! environment's tools in place of its own and the domain's rules as its instructions.

use std::sync::Arc;

use duologue_behaviors::{DualAct, DualActConfig, Generic, Planned, ReAct};
use duologue_bench::{
    AgentError, Mode, Seat, SessionSeat, external_tools,
    registry::{AgentEntry, Casting},
};
use duologue_core::{Agent, AgentBuilder, Mode as Permissions, Model, Options, Policy, Toolbox};

use crate::{config::keys, failure::Failure, house::House};

/// What an agent of Duologue is told when it is benched.
const INSTRUCTIONS: &str = "You serve the customers of a company. Help the user with what they ask \
     for, with your tools, and keep to the rules below in everything you do. What you answer is \
     sent to the user.";

/// An agent of the configuration, for the registry. `None` where there is none of this name.
pub(super) fn entry(
    house: &House,
    name: &str,
    model: Arc<dyn Model>,
    options: Options,
) -> Result<Option<AgentEntry>, Failure> {
    let Some(section) = house.config().agents.get(name) else { return Ok(None) };
    let cast = Cast {
        name: name.to_owned(),
        behavior: section.behavior.clone(),
        max_steps: section.max_steps.map(u64::from),
        planned: section.planned.clone(),
        max_hr_loops: section.dual.max_hr_loops,
        own_words: house.loaded.system_of(name)?,
        model,
        options,
    };
    let make = move |casting: Casting<'_>| -> Result<Box<dyn Seat>, AgentError> {
        let agent = cast.agent(&casting)?;
        Ok(Box::new(SessionSeat::new(agent)))
    };
    Ok(Some(AgentEntry { mode: Mode::Dialogue, needs_llm: false, make: Arc::new(make) }))
}

/// What an agent is made of.
struct Cast {
    name: String,
    behavior: String,
    max_steps: Option<u64>,
    planned: keys::Planned,
    max_hr_loops: u32,
    own_words: Option<String>,
    model: Arc<dyn Model>,
    options: Options,
}

impl Cast {
    fn agent(&self, casting: &Casting<'_>) -> Result<Agent, AgentError> {
        let tools = || {
            let tools = external_tools(&casting.tools).into_iter();
            tools.fold(Toolbox::new(), Toolbox::with_shared)
        };
        let own = self.own_words.as_deref().unwrap_or(INSTRUCTIONS);
        let system = format!("{own}\n\n<policy>\n{}\n</policy>", casting.policy);
        let builder = match self.behavior.as_str() {
            "dual" => return self.dual(&system, tools()),
            "planned" => {
                let steps = self.max_steps.and_then(|steps| u32::try_from(steps).ok());
                Planned::builder(&*self.name, self.planned.to_behavior(steps), tools())
            }
            "react" => {
                let max_iterations = self.max_steps.unwrap_or(ReAct::default().max_iterations);
                Agent::builder(&*self.name, ReAct { max_iterations }).tools(tools())
            }
            _ => {
                let max_steps = self.max_steps.unwrap_or(Generic::default().max_steps);
                Agent::builder(&*self.name, Generic { max_steps }).tools(tools())
            }
        };
        Ok(self.furnish(builder).system(system).build())
    }

    fn dual(&self, system: &str, tools: Toolbox) -> Result<Agent, AgentError> {
        let human = self.furnish(Agent::builder("human", Generic::default()));
        let human = human.system("You supervise another agent that serves a customer.").build();
        let max_iterations = self.max_steps.unwrap_or(ReAct::default().max_iterations);
        let worker = self.furnish(Agent::builder("reactive", ReAct { max_iterations }));
        let worker = worker.tools(tools).system(system).build();
        let config = DualActConfig {
            name: self.name.clone(),
            max_hr_loops: self.max_hr_loops,
            ..DualActConfig::new(human, worker)
        };
        let dual = DualAct::new(config).map_err(|error| AgentError::Other(error.to_string()))?;
        Ok(dual.builder().build())
    }

    fn furnish(&self, builder: AgentBuilder) -> AgentBuilder {
        // Everything it can call is the environment's, which is there to be changed.
        builder
            .model(Arc::clone(&self.model))
            .options(self.options.clone())
            .policy(Policy::new(Permissions::Full))
    }
}
