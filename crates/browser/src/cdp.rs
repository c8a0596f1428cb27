//! A thin client of the Chrome DevTools Protocol: one WebSocket, flat sessions.
//!
//! Commands and events are JSON. Nothing is generated: whoever sends a command reads out of its
//! answer what they need. Large answers are kept as text until then, so they are parsed once.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{SinkExt as _, StreamExt as _};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::{Message, protocol::WebSocketConfig};

use crate::error::{BrowserError, Result};

/// How long a command may take. What takes longer by nature says so.
const PATIENCE: Duration = Duration::from_secs(15);

/// A session of the protocol: one page, one frame of another origin, one worker.
pub(crate) type CdpSession = Arc<str>;

/// Something that happened in the browser.
#[derive(Debug)]
pub(crate) struct CdpEvent {
    pub(crate) session: Option<CdpSession>,
    pub(crate) method: String,
    pub(crate) params: Box<RawValue>,
}

impl CdpEvent {
    /// What is said about it, as far as it is read.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.params.get()).ok()
    }
}

/// The line to a browser. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Connection(Arc<Line>);

#[derive(Debug)]
struct Line {
    out: mpsc::UnboundedSender<String>,
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    /// Why nothing more will come.
    closed: Option<String>,
}

type Answer = std::result::Result<Box<RawValue>, Fault>;

#[derive(Debug)]
enum Fault {
    Refused(String),
    Closed(String),
}

#[derive(Deserialize)]
struct Incoming<'a> {
    id: Option<u64>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorText>,
}

#[derive(Deserialize)]
struct ErrorText {
    message: String,
    #[serde(default)]
    data: Option<Value>,
}

impl Connection {
    /// Connect to a browser's WebSocket address. Events come out of the receiver until the line
    /// breaks.
    pub(crate) async fn open(address: &str) -> Result<(Self, mpsc::UnboundedReceiver<CdpEvent>)> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(512 << 20))
            .max_frame_size(Some(512 << 20));
        let connect = tokio_tungstenite::connect_async_with_config(address, Some(config), true);
        let (stream, _) = tokio::time::timeout(PATIENCE, connect)
            .await
            .map_err(|_| BrowserError::NotStarted(format!("{address} does not answer")))?
            .map_err(|error| BrowserError::NotStarted(format!("{address}: {error}")))?;
        let (mut sink, mut source) = stream.split();
        let (out, mut outgoing) = mpsc::unbounded_channel::<String>();
        let (events, incoming) = mpsc::unbounded_channel();
        let line =
            Arc::new(Line { out, next: AtomicU64::new(1), state: Mutex::new(State::default()) });
        tokio::spawn(async move {
            while let Some(text) = outgoing.recv().await {
                if sink.send(Message::text(text)).await.is_err() {
                    break;
                }
            }
            let _ = sink.close().await;
        });
        // A weak hold: when nobody speaks any more, the line closes by itself.
        let reader = Arc::downgrade(&line);
        tokio::spawn(async move {
            let reason = loop {
                match source.next().await {
                    Some(Ok(Message::Text(text))) => {
                        let Some(line) = reader.upgrade() else { return };
                        line.take(&text, &events);
                    }
                    Some(Ok(Message::Close(_))) | None => break "it closed the line".to_owned(),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break error.to_string(),
                }
            };
            if let Some(line) = reader.upgrade() {
                line.close(&reason);
            }
        });
        Ok((Self(line), incoming))
    }

    /// Send a command and read its answer.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        session: Option<&CdpSession>,
        method: &str,
        params: Value,
    ) -> Result<T> {
        self.call_within(session, method, params, PATIENCE).await
    }

    /// The same for a command that may take as long as given.
    pub(crate) async fn call_within<T: DeserializeOwned>(
        &self,
        session: Option<&CdpSession>,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<T> {
        let raw = self.send(session, method, params).wait(patience).await?;
        serde_json::from_str(raw.get()).map_err(|error| BrowserError::Unexpected {
            method: method.to_owned(),
            error: error.to_string(),
        })
    }

    /// Send a command and only see that it worked.
    pub(crate) async fn run(
        &self,
        session: Option<&CdpSession>,
        method: &str,
        params: Value,
    ) -> Result<()> {
        self.send(session, method, params).wait(PATIENCE).await.map(|_| ())
    }

    /// Send a command now; its answer can be waited for later or not at all. Commands arrive in
    /// the order in which they were sent.
    pub(crate) fn send(&self, session: Option<&CdpSession>, method: &str, params: Value) -> Sent {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = oneshot::channel();
        {
            let mut state = self.0.state();
            if let Some(reason) = &state.closed {
                let _ = answer.send(Err(Fault::Closed(reason.clone())));
            } else {
                state.waiting.insert(id, answer);
                let mut message = json!({"id": id, "method": method, "params": params});
                if let (Some(session), Some(fields)) = (session, message.as_object_mut()) {
                    fields.insert("sessionId".into(), Value::from(&**session));
                }
                let _ = self.0.out.send(message.to_string());
            }
        }
        Sent { id, method: method.to_owned(), line: Arc::clone(&self.0), receiver }
    }

    /// Why the line is closed, if it is.
    pub(crate) fn closed(&self) -> Option<String> {
        self.0.state().closed.clone()
    }
}

/// A command under way.
#[derive(Debug)]
pub(crate) struct Sent {
    id: u64,
    method: String,
    line: Arc<Line>,
    receiver: oneshot::Receiver<Answer>,
}

impl Sent {
    /// Wait for the answer.
    pub(crate) async fn wait(mut self, patience: Duration) -> Result<Box<RawValue>> {
        let method = std::mem::take(&mut self.method);
        match tokio::time::timeout(patience, &mut self.receiver).await {
            Ok(Ok(Ok(raw))) => Ok(raw),
            Ok(Ok(Err(Fault::Refused(message)))) => Err(BrowserError::Refused { method, message }),
            Ok(Ok(Err(Fault::Closed(reason)))) => Err(BrowserError::Gone(reason)),
            Ok(Err(_)) => Err(BrowserError::Gone("the line to it broke".to_owned())),
            Err(_) => Err(BrowserError::Silent { method, after: patience }),
        }
    }

    /// Wait for the answer with the usual patience, and only see that it worked.
    pub(crate) async fn done(self) -> Result<()> {
        self.wait(PATIENCE).await.map(|_| ())
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.line.state().waiting.remove(&self.id);
    }
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, text: &str, events: &mpsc::UnboundedSender<CdpEvent>) {
        let Ok(message) = serde_json::from_str::<Incoming<'_>>(text) else { return };
        if let Some(id) = message.id {
            let Some(waiting) = self.state().waiting.remove(&id) else { return };
            let answer = match (message.result, message.error) {
                (_, Some(error)) => Err(Fault::Refused(match error.data {
                    Some(data) => format!("{} ({data})", error.message),
                    None => error.message,
                })),
                (Some(result), None) => Ok(result.to_owned()),
                (None, None) => Ok(empty()),
            };
            let _ = waiting.send(answer);
        } else if let Some(method) = message.method {
            let session = message.session.map(CdpSession::from);
            let params = message.params.map_or_else(empty, RawValue::to_owned);
            let _ = events.send(CdpEvent { session, method, params });
        }
    }

    fn close(&self, reason: &str) {
        let waiting = {
            let mut state = self.state();
            state.closed = Some(reason.to_owned());
            std::mem::take(&mut state.waiting)
        };
        for (_, answer) in waiting {
            let _ = answer.send(Err(Fault::Closed(reason.to_owned())));
        }
    }
}

fn empty() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}
