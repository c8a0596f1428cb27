//! An agent of the house, as it is at home and as others meet it.

use std::sync::Arc;

use duologue_a2a::{BidirectionalAgent, Server, Serving};
use duologue_core::{Agent, Toolbox};

use super::{Cast, House, Listen, Plan};
use crate::{cli::Recording, failure::Failure};

/// An agent of the house.
#[derive(Clone, Debug)]
pub(crate) enum Resident {
    /// One that others meet as it is.
    Plain(Agent),
    /// One that has other tools for others than for who is at home.
    Bidirectional(BidirectionalAgent),
}

impl Resident {
    /// The agent, as it is at home.
    pub(crate) fn agent(&self) -> &Agent {
        match self {
            Self::Plain(agent) => agent,
            Self::Bidirectional(agent) => agent.agent(),
        }
    }
}

impl House {
    /// The agent of a plan, ready to work and to be served.
    pub(crate) async fn resident(
        &self,
        plan: &Plan,
        recording: &Recording,
    ) -> Result<Resident, Failure> {
        if let Some(address) = &plan.remote {
            let remote = self.reach(address, None).await?;
            return Ok(Resident::Plain(remote.agent(plan.agent.as_str())));
        }
        self.bring_servers().await?;
        let mut cast = Cast::new(self, plan);
        cast.bring_models(recording).await?;
        match cast.bidirectional()? {
            Some(agent) => Ok(Resident::Bidirectional(agent)),
            None => Ok(Resident::Plain(cast.agent()?)),
        }
    }

    /// Serve an agent, as `[server]` says.
    pub(crate) async fn serve(
        &self,
        resident: &Resident,
        listen: &Listen,
    ) -> Result<Serving, Failure> {
        let (store, directory) = (self.store().await?, self.directory()?);
        let setup = self.server_setup(listen)?;
        match resident {
            Resident::Bidirectional(agent) => agent.serve(store, setup).await.map_err(Failure::new),
            Resident::Plain(agent) => {
                let server = setup(Server::new(self.exposed(agent)?, store));
                let serving = server.start().await.map_err(Failure::new)?;
                // It is known by its address: names such as `generic` are everybody's.
                directory.set_own(serving.url(), Some(serving.url()));
                Ok(serving)
            }
        }
    }

    /// The agent with the tools that others reach.
    fn exposed(&self, agent: &Agent) -> Result<Agent, Failure> {
        let (Some(names), Some(model)) = (&self.config().server.expose, agent.model()) else {
            return Ok(agent.clone());
        };
        let mut tools = Toolbox::new();
        for name in names {
            let Some(tool) = agent.tools().get(name) else {
                let what = format!("the agent {} has no tool {name:?}", agent.name());
                return Err(self.loaded.error_at("server.expose", None, what).into());
            };
            tools = tools.with_shared(Arc::clone(tool));
        }
        Ok(agent.recast(Arc::clone(model), tools))
    }
}
