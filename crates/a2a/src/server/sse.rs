//! Streams over HTTP: server-sent events with ids, so that a client that lost its connection can say
//! where it was.

use std::{
    convert::Infallible,
    io::Write,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use a2a::A2AError;
use axum::{
    body::{Body, Bytes},
    http::{
        HeaderName,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use futures::Stream;
use serde::Serialize;
use tokio::time::{Instant, Sleep, sleep};

use crate::{service::UpdateStream, task::Update};

/// How often a quiet stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Where a proxy is told not to hold events back.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// A comment, which says nothing but that.
const ALIVE: &[u8] = b":\n\n";
/// What a usual event takes.
const ROOM: usize = 512;
/// Events that are there at once are sent together, up to so many bytes.
const TOGETHER: usize = 16 * 1024;

/// The updates as events; what one says is for the binding to put, in JSON.
pub(super) fn events(
    updates: UpdateStream,
    put: impl Fn(Result<&Update, &A2AError>, &mut Vec<u8>) + Send + Unpin + 'static,
) -> Response {
    let body = Body::from_stream(Events { updates, put, is_over: false, alive: None });
    let headers =
        [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache"), (BUFFERING, "no")];
    (headers, body).into_response()
}

/// Write what a binding puts.
pub(super) fn write(body: &impl Serialize, out: &mut Vec<u8>) {
    // A value that we made ourselves can be written, and to memory.
    let _ = serde_json::to_writer(out, body);
}

struct Events<F> {
    updates: UpdateStream,
    put: F,
    is_over: bool,
    /// When it is time to show that the stream lives. A stream that never waits needs none.
    alive: Option<Pin<Box<Sleep>>>,
}

impl<F> Events<F>
where
    F: Fn(Result<&Update, &A2AError>, &mut Vec<u8>),
{
    fn write(&self, update: &Result<Update, A2AError>, out: &mut Vec<u8>) {
        if let Some(place) = update.as_ref().ok().and_then(|update| update.place) {
            // Writing to memory does not fail.
            let _ = writeln!(out, "id: {place}");
        }
        // JSON as it is written here has no line breaks.
        out.extend_from_slice(b"data: ");
        (self.put)(update.as_ref(), out);
        out.extend_from_slice(b"\n\n");
    }
}

impl<F> Stream for Events<F>
where
    F: Fn(Result<&Update, &A2AError>, &mut Vec<u8>) + Unpin,
{
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut out = Vec::new();
        while !self.is_over && out.len() < TOGETHER {
            match self.updates.as_mut().poll_next(cx) {
                Poll::Ready(Some(update)) => {
                    out.reserve(ROOM);
                    self.write(&update, &mut out);
                }
                Poll::Ready(None) => self.is_over = true,
                Poll::Pending => break,
            }
        }
        if !out.is_empty() {
            if let Some(alive) = &mut self.alive {
                alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            }
            return Poll::Ready(Some(Ok(out.into())));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        let alive = self.alive.get_or_insert_with(|| Box::pin(sleep(KEEP_ALIVE)));
        if alive.as_mut().poll(cx).is_ready() {
            alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return Poll::Ready(Some(Ok(Bytes::from_static(ALIVE))));
        }
        Poll::Pending
    }
}
