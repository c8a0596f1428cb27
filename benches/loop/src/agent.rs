//! Our arms: a ReAct agent as a user would build one, with nothing switched off.

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use anyhow::{Context, Result, ensure};
use bench_arm::{
    Arm, FirstEvent, Orders, Pace,
    conversation::{STEPS, SYSTEM, TASK, TOOL, TOOL_DESCRIPTION, tool_answer},
};
use duologue_behaviors::ReAct;
use duologue_core::{
    Agent, Delta, Effect, Live, MemoryStore, Outcome, Session, SessionOptions, Store, ToolError,
    Toolbox, tool,
};
use duologue_models::{ProviderConfig, Providers};
use duologue_store::{SqliteOptions, SqliteStore};
use schemars::JsonSchema;
use serde::Deserialize;
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

    fn new(orders: &Orders, store: Arc<dyn Store>, folder: Option<TempDir>) -> Result<Self> {
        let config = ProviderConfig {
            base_url: Some(orders.url.clone()),
            // The server holds a crowd until the last one has come.
            idle_timeout_secs: Some(600),
            ..ProviderConfig::default()
        };
        let configs = BTreeMap::from([("bench".to_owned(), config)]);
        let providers = Providers::with_environment(configs, |_| None)?;
        let agent = |pace: Pace| -> Result<Agent> {
            let model = providers.model(&format!("bench/{}", pace.model()))?;
            let look_up = tool(TOOL, TOOL_DESCRIPTION, Effect::Pure, |it: LookUp, _| async move {
                Ok::<_, ToolError>(tool_answer(&it.key))
            });
            Ok(Agent::builder("clerk", ReAct { max_iterations: STEPS as u64 })
                .system(SYSTEM)
                .model(model)
                .tools(Toolbox::new().with(look_up))
                .build())
        };
        Ok(Self { free: agent(Pace::Free)?, held: agent(Pace::Held)?, store, _folder: folder })
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
