//! Putting a scenario's agents together.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duologue_behaviors::{DualAct, DualActConfig, Generic, Planned, PlannedConfig, ReAct};
use duologue_core::{Agent, AgentBuilder, Budget, ChildrenMemory, Mode, Policy, Retry, Toolbox};
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
            "dual" => self.dual(path, script)?,
            other => {
                let known = "generic, react, planned, dual";
                return Err(format!("{path}: unknown kind {other:?}; there are: {known}"));
            }
        };
        Ok(builder.budget(budget(script)).policy(policy(path, script)?).build())
    }

    fn dual(&mut self, path: &str, script: &AgentScript) -> Result<AgentBuilder, String> {
        let below = |key: &str| match path {
            "main" => key.to_owned(),
            parent => format!("{parent}/{key}"),
        };
        let human = script.human.as_ref().ok_or_else(|| format!("{path}: a dual needs a human"))?;
        let human = self.agent(&below("human"), human)?;
        let mut reactive = Vec::new();
        if let Some(one) = &script.reactive {
            reactive.push(self.agent(&below("reactive"), one)?);
        }
        for (at, one) in script.reactives.iter().enumerate() {
            reactive.push(self.agent(&below(&format!("reactive-{}", at + 1)), one)?);
        }
        let first =
            reactive.first().ok_or_else(|| format!("{path}: a dual needs a reactive"))?.clone();
        let mut config = DualActConfig { reactive, ..DualActConfig::new(human, first) };
        for (name, value) in &script.options {
            let text = value.as_str().unwrap_or_default().to_owned();
            match name.as_str() {
                "max_hr_loops" => {
                    let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
                    config.max_hr_loops = number.ok_or(format!("{path}: {name}: {value}"))?;
                }
                "human_decision_prompt" => config.human_decision_prompt = text,
                "reactive_task_prompt" => config.reactive_task_prompt = text,
                "conclusion_format_prompt" => config.conclusion_format_prompt = text,
                "memory" if text == "shared" => config.memory = ChildrenMemory::Shared,
                "memory" if text == "separate" => config.memory = ChildrenMemory::Separate,
                _ => return Err(format!("{path}: a dual has no option {name}: {value}")),
            }
        }
        Ok(DualAct::new(config).map_err(|error| format!("{path}: {error}"))?.builder())
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
