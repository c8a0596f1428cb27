//! Calling functions that a user supplied.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use serde_json::Value;

use super::{Driver, Progress};
use crate::{Event, FunctionContext, StoreError, session::now_ms};

/// How long a run that is stopped may take to call off what it began elsewhere.
const FAREWELL: Duration = Duration::from_secs(10);

impl Driver {
    pub(super) async fn invoke(
        &self,
        function: String,
        input: Value,
    ) -> Result<Progress, StoreError> {
        let context = self.function_context();
        let elsewhere = Arc::clone(&context.elsewhere);
        let answer = match self.agent.parts().functions.get(&function) {
            None => Err(format!("there is no function {function}")),
            Some(code) => tokio::select! {
                answer = code(input, context) => answer,
                () = self.cancel.cancelled() => return Ok(Progress::GoOn),
            },
        };
        let (output, error) = match answer {
            Ok(output) => (Some(Box::new(output)), None),
            Err(error) => (None, Some(error)),
        };
        let usage = *elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        self.append(Event::FunctionAnswered { function, output, error, usage })?;
        Ok(Progress::GoOn)
    }

    fn function_context(&self) -> FunctionContext {
        FunctionContext {
            session: self.shared.id.clone(),
            run: self.run,
            cancel: self.cancel.clone(),
            left: self.shared.ledger().left(self.run, now_ms()),
            store: Arc::clone(&self.shared.store),
            elsewhere: Arc::default(),
        }
    }

    /// A run is stopped before its end: let it call off what it began elsewhere. Nobody waits for
    /// that.
    pub(super) fn bid_farewell(&self) {
        let wish = match self.shared.ledger().run(self.run) {
            Some(run) => run.farewell(),
            None => None,
        };
        let Some((function, input)) = wish else { return };
        let Some(code) = self.agent.parts().functions.get(&function) else { return };
        let farewell = code(input, self.function_context());
        tokio::spawn(tokio::time::timeout(FAREWELL, farewell));
    }
}
