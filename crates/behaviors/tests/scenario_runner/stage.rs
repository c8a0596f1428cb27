//! Putting a scenario's agents together.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duologue_behaviors::{Generic, Planned, PlannedConfig, ReAct};
use duologue_core::{Agent, AgentBuilder, Budget, Mode, Policy, Retry, Toolbox};
use serde_json::Value;

use super::{
    script::{AgentScript, Scenario},
    world::{CannedTool, ScriptedModel},
};

/// The agent, and the models and tools behind it by name.
pub struct Stage {
    pub agent: Agent,
    /// By the path of their agent: `main`, `human`, `reactive/human`.
    pub models: BTreeMap<String, Arc<ScriptedModel>>,
    pub tools: BTreeMap<String, Arc<CannedTool>>,
}

impl Stage {
    pub fn new(scenario: &Scenario) -> Result<Self, String> {
        let tools = scenario.tools.iter();
        let tools =
            tools.map(|(name, script)| (name.clone(), Arc::new(CannedTool::new(name, script))));
        let mut crew = Crew { models: BTreeMap::new(), tools: tools.collect() };
        let agent = crew.agent("main", &scenario.agent)?;
        Ok(Self { agent, models: crew.models, tools: crew.tools })
    }
}

struct Crew {
    models: BTreeMap<String, Arc<ScriptedModel>>,
    tools: BTreeMap<String, Arc<CannedTool>>,
}

impl Crew {
    fn agent(&mut self, path: &str, script: &AgentScript) -> Result<Agent, String> {
        let builder = match script.kind.as_str() {
            "generic" => {
                let usual = Generic::default().max_steps;
                let behavior = Generic { max_steps: script.max_steps.unwrap_or(usual) };
                self.alone(path, script, Agent::builder("generic", behavior))?
            }
            "react" => {
                let usual = ReAct::default().max_iterations;
                let behavior = ReAct { max_iterations: script.max_steps.unwrap_or(usual) };
                self.alone(path, script, Agent::builder("react", behavior))?
            }
            "planned" => {
                let options = script.options.clone().into_iter().collect();
                let config: PlannedConfig = serde_json::from_value(Value::Object(options))
                    .map_err(|error| format!("{path}: options: {error}"))?;
                let tools = Planned::with_special_tools(&config, self.toolbox(path, script)?);
                let builder = Agent::builder("planned", Planned::new(config));
                self.alone(path, script, builder)?.tools(tools)
            }
            other => {
                return Err(format!(
                    "{path}: unknown kind {other:?}; there are: generic, react, planned"
                ));
            }
        };
        Ok(builder.budget(budget(script)).policy(policy(path, script)?).build())
    }

    /// An agent that asks a model of its own.
    fn alone(
        &mut self,
        path: &str,
        script: &AgentScript,
        builder: AgentBuilder,
    ) -> Result<AgentBuilder, String> {
        let retry = Retry { first_wait: Duration::from_millis(1), ..Retry::default() };
        let model = Arc::new(ScriptedModel::new(path, script.turns.clone()));
        self.models.insert(path.to_owned(), Arc::clone(&model));
        Ok(builder.model(model).tools(self.toolbox(path, script)?).retry(retry))
    }

    fn toolbox(&self, path: &str, script: &AgentScript) -> Result<Toolbox, String> {
        let is_human = path.rsplit('/').next() == Some("human");
        let names: Vec<String> = match &script.tools {
            Some(names) => names.clone(),
            None if is_human => Vec::new(),
            None => self.tools.keys().cloned().collect(),
        };
        let mut toolbox = Toolbox::new();
        for name in names {
            let tool = self.tools.get(&name);
            let tool = tool.ok_or_else(|| format!("{path}: there is no tool {name}"))?;
            toolbox = toolbox.with_shared(Arc::clone(tool) as _);
        }
        Ok(toolbox)
    }
}

fn budget(script: &AgentScript) -> Budget {
    let steps = script.budget.steps;
    Budget { steps, tokens: script.budget.tokens, ..Budget::default() }
}

fn policy(path: &str, script: &AgentScript) -> Result<Policy, String> {
    let mode = match script.mode.as_deref() {
        None | Some("full") => Mode::Full,
        Some("ask") => Mode::Ask,
        Some("read_only") => Mode::ReadOnly,
        Some("auto_edit") => Mode::AutoEdit,
        Some(other) => return Err(format!("{path}: unknown mode {other:?}")),
    };
    Ok(Policy::new(mode))
}
