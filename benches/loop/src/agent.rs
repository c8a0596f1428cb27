//! Our arms: a ReAct agent as a user would build one, with nothing switched off.

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use anyhow::{Context, Result, ensure};
use bench_arm::{
    Arm, FirstEvent, Orders, Pace,
    conversation::{STEPS, SYSTEM, TASK, TOOL, TOOL_DESCRIPTION, TOOL_TURNS, tool_answer},
};
use duologue_behaviors::{Planned, PlannedConfig, ReAct, Strategy};
use duologue_core::{
    Agent, AgentBuilder, Delta, DeltaStream, Effect, Live, MemoryStore, Model, Outcome, Request,
    Role, Session, SessionOptions, StopReason, Store, ToolError, Toolbox, tool,
};
use duologue_models::{ProviderConfig, Providers};
use duologue_store::{SqliteOptions, SqliteStore};
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

/// Our agent; every conversation is a session of it.
pub(crate) struct OurAgent {
    free: Agent,
    held: Agent,
    store: Arc<dyn Store>,
    /// Keeps the journal's folder until the arm has ended.
    _folder: Option<TempDir>,
}

#[derive(Deserialize, JsonSchema)]
struct LookUp {
    /// The item's key.
    key: String,
}

impl OurAgent {
    /// With the journal in memory.
    pub(crate) fn in_memory(orders: &Orders) -> Result<Self> {
        Self::new(orders, Arc::new(MemoryStore::new()), None)
    }

    /// With the journal in a new SQLite file.
    pub(crate) async fn in_sqlite(orders: &Orders) -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for the journal")?;
        let file = folder.path().join("journal.db");
        let store = SqliteStore::open(file, SqliteOptions::default()).await?;
        Self::new(orders, Arc::new(store), Some(folder))
    }

    /// A planned agent with the journal in memory.
    pub(crate) fn planned(orders: &Orders) -> Result<Self> {
        let store = Arc::new(MemoryStore::new());
        let planned = |model, tools| {
            let config =
                PlannedConfig { strategy: Some(Strategy::React), ..PlannedConfig::default() };
            Planned::builder("clerk", config, tools).model(Arc::new(Asides(model)))
        };
        Self::with(orders, store, None, planned)
    }

    fn new(orders: &Orders, store: Arc<dyn Store>, folder: Option<TempDir>) -> Result<Self> {
        let react = |model, tools| {
            Agent::builder("clerk", ReAct { max_iterations: STEPS as u64 })
                .model(model)
                .tools(tools)
        };
        Self::with(orders, store, folder, react)
    }

    fn with(
        orders: &Orders,
        store: Arc<dyn Store>,
        folder: Option<TempDir>,
        build: impl Fn(Arc<dyn Model>, Toolbox) -> AgentBuilder,
    ) -> Result<Self> {
        let config = ProviderConfig {
            base_url: Some(orders.url.clone()),
            // The server holds a crowd until the last one has come.
            idle_timeout_secs: Some(30 * 60),
            ..ProviderConfig::default()
        };
        let configs = BTreeMap::from([("bench".to_owned(), config)]);
        let providers = Providers::with_environment(configs, |_| None)?;
        let agent = |pace: Pace| -> Result<Agent> {
            let model = providers.model(&format!("bench/{}", pace.model()))?;
            let look_up = tool(TOOL, TOOL_DESCRIPTION, Effect::Pure, |it: LookUp, _| async move {
                Ok::<_, ToolError>(tool_answer(&it.key))
            });
            Ok(build(model, Toolbox::new().with(look_up)).system(SYSTEM).build())
        };
        Ok(Self { free: agent(Pace::Free)?, held: agent(Pace::Held)?, store, _folder: folder })
    }
}

/// A model that answers a planned agent's asides here and leaves the steps to another, so that the
/// server sees the same conversation as with every arm. Every step ticks an item off, and every
/// third is followed by a check: the most that planning does.
struct Asides(Arc<dyn Model>);

impl Model for Asides {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask(&self, request: Request) -> DeltaStream {
        let Some(shape) = &request.options.output else { return self.0.ask(request) };
        let answer = if shape.name == "plan" {
            let step = json!({ "title": "Look the next item up", "tool": TOOL });
            let mut steps = vec![step; TOOL_TURNS];
            steps.push(json!({ "title": "Answer", "tool": "" }));
            json!({ "reasoning": "One after the other.", "steps": steps })
        } else {
            let is_complete = request.messages.last().is_some_and(|last| last.role != Role::Tool);
            json!({
                "is_complete": is_complete, "reasoning": "So it is.", "suggestions": [],
                "confidence": 1
            })
        };
        let deltas = [Delta::Text(answer.to_string()), Delta::Stop(StopReason::Completed)];
        stream::iter(deltas.map(Ok)).boxed()
    }
}

impl Arm for OurAgent {
    async fn converse(&self, pace: Pace, first_event: &mut FirstEvent) -> Result<String> {
        let agent = match pace {
            Pace::Free => &self.free,
            Pace::Held => &self.held,
        };
        let store = Arc::clone(&self.store);
        let session = Session::start(agent, store, SessionOptions::default())?;
        let mut events = session.events();
        let mut reply = pin!(session.reply(TASK));
        let reply = loop {
            tokio::select! {
                reply = &mut reply => break reply?,
                event = events.next() => {
                    if let Live::Delta { delta, .. } = event?
                        && matches!(*delta, Delta::Text(_))
                    {
                        first_event.seen();
                    }
                }
            }
        };
        ensure!(reply.outcome == Outcome::Completed, "the turn ended as {:?}", reply.outcome);
        Ok(reply.text())
    }
}
