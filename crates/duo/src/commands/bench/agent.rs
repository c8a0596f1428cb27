//! Agents that the registry does not know: those of the configuration, with the environment's tools
//! in place of their own, and those behind A2A.

use std::{io::Write, sync::Arc};

use duologue_a2a::{Credentials, Remote};
use duologue_bench::{
    Attended, Domain, Mode, Registry, SessionSeat, WordsSeat, external_tools,
    llm::{ModelLlm, from_json},
    registry::AgentEntry,
    run::NamedLlm,
};
use duologue_core::{Agent, Attendance, Entry, Event, Options, SessionOptions, Toolbox};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{load, seats::Models};
use crate::{
    failure::Failure,
    house::{Cast, House, Outside, OwnTools, Plan},
    terminal::inquiry_lines,
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
    pub(super) own_tools: OwnTools,
}

/// Where a session of the journal was held, as its first entry tells it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Benched {
    /// The domain.
    domain: String,
}

impl Benched {
    /// The key in the first entry.
    const KEY: &'static str = "bench";

    /// What a session's first entry says of it; `None` where it was not held here.
    pub(crate) fn of(first: Option<&Arc<Entry>>) -> Option<Self> {
        let Event::SessionStarted { metadata, .. } = &first?.event else { return None };
        serde_json::from_value(metadata.get(Self::KEY)?.clone()).ok()
    }

    /// The agent without a model as it was there, for replays.
    pub(crate) fn mute_agent(&self, house: &House, plan: &Plan) -> Result<Agent, Failure> {
        let loaded = load(&Registry::default(), &self.domain, None)?;
        let outside = outside(&loaded.domain, OwnTools::GoAlong, None);
        Cast::new(house, plan).outside(outside).agent()
    }
}

/// A domain as a place for agents.
fn outside(domain: &Domain, own_tools: OwnTools, options: Option<Options>) -> Outside {
    let tools = external_tools(&domain.agent_tools(Mode::Dialogue));
    Outside {
        tools: tools.into_iter().fold(Toolbox::new(), Toolbox::with_shared),
        own_tools,
        rules: domain.policy.clone(),
        system: INSTRUCTIONS,
        options,
    }
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
    let attended = match wanted.own_tools {
        OwnTools::StayHere => None,
        OwnTools::GoAlong => {
            house.bring_servers().await?;
            Some(attended(house, &plan, wanted.domain).await?)
        }
    };
    let place = outside(wanted.domain, wanted.own_tools, wanted.options.cloned());
    let mut cast = Cast::new(house, &plan).outside(place);
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
        let seat = match &attended {
            Some(attended) => SessionSeat::attended(agent.clone(), attended.clone()),
            None => SessionSeat::new(agent.clone()),
        };
        Ok(Box::new(seat) as Box<dyn duologue_bench::Seat>)
    });
    Ok(Some((AgentEntry { mode: Mode::Dialogue, needs_llm: false, make }, llm)))
}

/// Sessions in the journal of the house, which other processes answer.
async fn attended(house: &House, plan: &Plan, domain: &Domain) -> Result<Attended, Failure> {
    if !house.keeps_sessions() {
        return Err(Failure::usage(
            "--own-tools needs a journal in a file: what waits for a yes is answered from another \
             process",
        ));
    }
    let benched = serde_json::to_value(Benched { domain: domain.name.to_string() })?;
    let mut options = house.session_options(plan);
    options.metadata.insert(Benched::KEY.to_owned(), benched);
    let paint = house.paint;
    Ok(Attended {
        store: house.store().await?,
        options: SessionOptions { attendance: Attendance::Attended, ..options },
        waits: Arc::new(move |session, inquiry| {
            // Nobody reads it: the session still waits, and `duo sessions list` tells so.
            let lines = inquiry_lines(paint, session, inquiry);
            let _ = writeln!(std::io::stderr(), "{lines}");
        }),
    })
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
