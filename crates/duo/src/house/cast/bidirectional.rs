//! An agent that serves others and calls them, from its section.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use duologue_a2a::{BidirectionalAgent, RouterSettings, TOOL_NAMES};
use duologue_core::Model;
use duologue_models::Scripted;

use super::{Cast, Role, SYSTEM};
use crate::failure::Failure;

/// The tools that it has unless its section names others.
const USUAL: [&str; 7] = [
    "echo",
    "llm",
    "summarize",
    "list_agents",
    "remember_agent",
    "list_servers",
    "show_agent_card",
];

impl<'a> Cast<'a> {
    /// The agent of the plan, if it is of this kind.
    pub(in crate::house) fn bidirectional(&self) -> Result<Option<BidirectionalAgent>, Failure> {
        let role = self.role(&self.plan.agent, &self.plan.model)?;
        if role.section.behavior != "bidirectional" {
            return Ok(None);
        }
        self.routing(role).map(Some)
    }

    /// What it is called in directories: its name, or one of its own where the name is everybody's.
    fn id_of(&self, name: &str) -> String {
        if name != "bidirectional" {
            return name.to_owned();
        }
        // The same for as long as it has the same directory.
        let mut hasher = DefaultHasher::new();
        self.house.config().a2a.directory.hash(&mut hasher);
        format!("{name}-{:08x}", hasher.finish() >> 32)
    }

    fn routing(&self, role: Role<'a>) -> Result<BidirectionalAgent, Failure> {
        let (house, config, section) = (self.house, self.house.config(), role.section);
        // An agent that only replays is never asked.
        let mute =
            || Arc::new(Scripted::new(Vec::<duologue_models::Turn>::new())) as Arc<dyn Model>;
        let model = self.models.get(role.model).map_or_else(mute, Arc::clone);
        let named: Vec<&str> = match &section.tools {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => USUAL.to_vec(),
        };
        let (own, others): (Vec<&str>, Vec<&str>) =
            named.into_iter().partition(|name| TOOL_NAMES.contains(name));
        let system = house.loaded.system_of(role.name)?;
        let mut builder =
            BidirectionalAgent::new(self.id_of(role.name), role.name, model, house.directory()?)
                .description(section.description.clone().unwrap_or_default())
                .system(system.unwrap_or_else(|| SYSTEM.to_owned()))
                .options(section.options())
                .policy(config.permissions.policy().map_err(Failure::usage)?)
                .budget(section.budget.to_core())
                .memory(section.memory.to_core(&config.limits))
                .settings(RouterSettings {
                    clarification: config.a2a.clarification,
                    decomposition: config.a2a.decomposition,
                    recovery: config.a2a.recovery,
                    confirmation: config.a2a.confirmation,
                })
                .enabled(own.iter().copied());
        if own.contains(&"execute_command") {
            let shell = house.tools(&self.plan.workspace, Some(&["shell".to_owned()]))?;
            if let Some(shell) = shell.get("shell") {
                builder = builder.commands(Arc::clone(shell));
            }
        }
        let others: Vec<String> = others.into_iter().map(str::to_owned).collect();
        if !others.is_empty() {
            let others = house.tools(&self.plan.workspace, Some(&others))?;
            builder = others.iter().fold(builder, |all, tool| all.tool(Arc::clone(tool)));
        }
        if let Some(exposed) = &config.server.expose {
            builder = builder.expose(exposed.iter().cloned());
        }
        builder.build().map_err(Failure::usage)
    }
}
