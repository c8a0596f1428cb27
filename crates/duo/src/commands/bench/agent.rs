//! Agents that the registry does not know: those of the configuration, with the environment's tools
//! in place of their own, and those behind A2A.

use std::sync::Arc;

use duologue_a2a::{Credentials, Remote};
use duologue_bench::{
    Domain, Mode, SessionSeat, WordsSeat, external_tools,
    llm::{ModelLlm, from_json},
    registry::AgentEntry,
    run::NamedLlm,
};
use duologue_core::{Options, Toolbox};
use serde_json::Value;

use super::seats::Models;
use crate::{
    failure::Failure,
    house::{Cast, Outside},
};

/// What an agent without instructions of its own is told when it is benched.
const INSTRUCTIONS: &str = "You serve the customers of a company. Help the user with what they ask \
     for, with your tools, and keep to the rules below in everything you do. What you answer is \
     sent to the user.";

/// How an agent behind A2A is named.
const A2A: &str = "a2a:";

/// The variable with the secret for agents behind A2A that ask for one.
const A2A_TOKEN: &str = "DUOLOGUE_A2A_TOKEN";

/// Which agent, and what for.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    /// The model for all of it; each has its own otherwise.
    pub(super) model: Option<&'a str>,
    /// How models are to answer; what the agents' sections say otherwise.
    pub(super) options: Option<&'a Options>,
    /// The same as results tell it.
    pub(super) args: &'a Value,
    pub(super) domain: &'a Domain,
}

/// An agent for a plan, with its model as results tell it. `None` where there is none of this name.
pub(super) async fn entry(
    models: &mut Models<'_>,
    wanted: Wanted<'_>,
) -> Result<Option<(AgentEntry, Option<NamedLlm>)>, Failure> {
    if let Some(address) = wanted.name.strip_prefix(A2A) {
        return remote(address).await.map(|entry| Some((entry, None)));
    }
    let house = models.house;
    if !house.config().agents.contains_key(wanted.name) {
        return Ok(None);
    }
    let plan = house.plan_for(wanted.name, wanted.model)?;
    let tools = external_tools(&wanted.domain.agent_tools(Mode::Dialogue));
    let mut cast = Cast::new(house, &plan).outside(Outside {
        tools: tools.into_iter().fold(Toolbox::new(), Toolbox::with_shared),
        rules: wanted.domain.policy.clone(),
        system: INSTRUCTIONS,
        options: wanted.options.cloned(),
    });
    let mut first = None;
    for name in cast.model_names()? {
        let (_, model) = models.model(Some(name)).await?;
        first.get_or_insert_with(|| Arc::clone(&model));
        cast.take_model(name, model);
    }
    let agent = cast.agent()?;
    let llm = first.map(|model| NamedLlm {
        name: plan.model.clone(),
        args: from_json(wanted.args),
        llm: Arc::new(ModelLlm { model, options: Options::default() }),
    });
    let make = Arc::new(move |_: duologue_bench::registry::Casting<'_>| {
        Ok(Box::new(SessionSeat::new(agent.clone())) as Box<dyn duologue_bench::Seat>)
    });
    Ok(Some((AgentEntry { mode: Mode::Dialogue, needs_llm: false, make }, llm)))
}

/// An agent behind A2A. It keeps its own model and tools, and is told of the environment's in words.
async fn remote(address: &str) -> Result<AgentEntry, Failure> {
    let credentials = match std::env::var(A2A_TOKEN) {
        Ok(secret) if !secret.is_empty() => Credentials::none().with("*", secret),
        _ => Credentials::none(),
    };
    let remote = Remote::connect(address, &credentials).await.map_err(Failure::usage)?;
    let make = Arc::new(move |casting: duologue_bench::registry::Casting<'_>| {
        let agent = remote.agent("remote");
        let seat = WordsSeat::new(agent, casting.policy, &casting.tools);
        Ok(Box::new(seat) as Box<dyn duologue_bench::Seat>)
    });
    Ok(AgentEntry { mode: Mode::Dialogue, needs_llm: false, make })
}
