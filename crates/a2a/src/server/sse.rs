//! Streams over HTTP: server-sent events with ids, so that a client that lost its connection can say
//! where it was.

use std::{convert::Infallible, time::Duration};

use a2a::A2AError;
use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, StreamExt};
use serde::Serialize;

use crate::{service::UpdateStream, task::Update};

/// How often a quiet stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The updates as events; what one says is for the binding to put.
pub(super) fn events<T: Serialize>(
    updates: UpdateStream,
    put: impl Fn(Result<&Update, &A2AError>) -> T + Send + 'static,
) -> Response {
    let events = updates.map(move |update| {
        let place = update.as_ref().ok().and_then(|update| update.place);
        let event = match place {
            Some(place) => Event::default().id(place.to_text()),
            None => Event::default(),
        };
        let body = put(update.as_ref());
        // A value that we made ourselves can be written.
        let text = serde_json::to_string(&body).unwrap_or_default();
        Ok::<_, Infallible>(event.data(text))
    });
    respond(events)
}

fn respond(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("");
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    let headers = response.headers_mut();
    headers.insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    response
}
