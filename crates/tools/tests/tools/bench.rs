//! What the tests of this crate share: a folder with tools, and a way to call them.

use std::{path::Path, sync::Arc};

use duologue_core::{CallId, Content, Part, ResultReader, SessionId, Tool, ToolContext};
use duologue_tools::{BuiltinConfig, Workspace, builtin_named};
use futures::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(crate) struct Results(pub(crate) Vec<(CallId, String)>);

impl ResultReader for Results {
    fn result_text(&self, call: CallId) -> BoxFuture<'static, Option<String>> {
        let found = self.0.iter().find(|(id, _)| *id == call).map(|(_, text)| text.clone());
        Box::pin(async move { found })
    }
}

pub(crate) fn context() -> ToolContext {
    ToolContext {
        session: SessionId::random(),
        call_id: CallId::random(),
        idempotency_key: "key".to_owned(),
        cancel: CancellationToken::new(),
        results: Arc::new(Results::default()),
        questions: duologue_core::Questions::default(),
    }
}

/// A workspace in a folder of its own, inside another folder that is outside of it.
pub(crate) struct Bench {
    pub(crate) outer: TempDir,
    pub(crate) config: BuiltinConfig,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("workspace");
        std::fs::create_dir(&root).unwrap();
        let config = BuiltinConfig::new(Workspace::open(&root).unwrap());
        Self { outer, config }
    }

    pub(crate) fn root(&self) -> &Path {
        self.config.workspace.root()
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        builtin_named(name, &self.config).unwrap()
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Result<String, String> {
        call(&*self.tool(name), arguments, context()).await
    }
}

/// Check and call, as a driver does; the error is whichever came.
pub(crate) async fn call(
    tool: &dyn Tool,
    arguments: Value,
    context: ToolContext,
) -> Result<String, String> {
    tool.check(&arguments)?;
    match tool.call(arguments, context).await {
        Ok(Content(parts)) => match parts.as_slice() {
            [Part::Text { text }] => Ok(text.clone()),
            other => panic!("expected one text, got {other:?}"),
        },
        Err(error) => Err(error.0),
    }
}
