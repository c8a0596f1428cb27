//! A call under way. It outlives the function that began it when the server asks the person
//! something, because the answer can take its time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, CallToolResult},
    service::{RunningService, ServiceError},
};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::handler::{Ask, Desk, Handler, Place};

/// How long a call waits for a person. The question itself waits on, in the journal.
const MOST_WAIT: Duration = Duration::from_secs(60 * 60);
/// How many calls wait at a time.
const MOST_HELD: usize = 64;

/// A call that was sent.
#[derive(Debug)]
pub(super) struct Call {
    task: AbortOnDropHandle<Result<CallToolResult, ServiceError>>,
    asks: mpsc::Receiver<Ask>,
    desk: Arc<Desk>,
    _place: Place,
}

/// What a call came to.
#[derive(Debug)]
pub(super) enum Came {
    /// It is over.
    Over(Result<CallToolResult, ServiceError>),
    /// The server wants to know something.
    Asks(Ask),
    /// Nothing was heard for too long.
    Silent,
    /// It was cancelled here, and the server is told so.
    Cancelled,
}

impl Call {
    pub(super) fn send(
        service: &Arc<RunningService<RoleClient, Handler>>,
        desk: &Arc<Desk>,
        params: CallToolRequestParams,
    ) -> Self {
        let (place, asks) = desk.take_place();
        desk.sign.send_replace(Instant::now());
        let service = Arc::clone(service);
        let task = tokio::spawn(async move { service.call_tool(params).await });
        let task = AbortOnDropHandle::new(task);
        Self { task, asks, desk: Arc::clone(desk), _place: place }
    }

    /// Wait for what comes next. Dropping the call afterwards cancels it at the server, unless it
    /// is over.
    pub(super) async fn next(&mut self, patience: Duration, cancel: &CancellationToken) -> Came {
        let mut sign = self.desk.sign.subscribe();
        loop {
            let until = *sign.borrow_and_update() + patience;
            tokio::select! {
                biased;
                ended = &mut self.task => {
                    let over = ended.unwrap_or_else(|_| Err(ServiceError::TransportClosed));
                    return Came::Over(over);
                }
                Some(ask) = self.asks.recv() => return Came::Asks(ask),
                () = cancel.cancelled() => return Came::Cancelled,
                () = tokio::time::sleep_until(until) => {
                    if *sign.borrow() + patience <= Instant::now() {
                        return Came::Silent;
                    }
                }
                _ = sign.changed() => {}
            }
        }
    }
}

/// Calls that wait for a person.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<String, (Call, Ask, Instant)>>);

impl Held {
    /// Keep a call until it is asked for under its key.
    pub(super) fn keep(&self, key: String, call: Call, ask: Ask) {
        let now = Instant::now();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, (_, _, since)| now - *since < MOST_WAIT);
        if held.len() >= MOST_HELD {
            let oldest = held.iter().min_by_key(|(_, (_, _, since))| *since);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| held.remove(&key));
        }
        held.insert(key, (call, ask, now));
    }

    /// Take the call of a key back.
    pub(super) fn take(&self, key: &str) -> Option<(Call, Ask)> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.remove(key).map(|(call, ask, _)| (call, ask))
    }

    /// Let go of all: the connection is gone.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
