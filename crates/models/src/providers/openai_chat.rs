//! OpenAI's chat wire, which most servers speak: our own client, because it is on the hot path.
//!
//! `genai` speaks this wire too, but costs too much on it. An answer of 50 pieces of text and a tool
//! call, over loopback, in CPU of the client, medians of five rounds of 2,000 answers on one busy
//! machine of two cores (`cargo run --release -p duologue-models --example wire_cost`):
//!
//! | client | per answer | |
//! |---|---|---|
//! | `reqwest` that only parses | 129–152 µs | 1 |
//! | this one | 129–161 µs | 1.0–1.1 |
//! | `genai` 0.7.2 | 368–425 µs | 2.8–2.9 |
//!
//! What makes the difference: events are parsed where they lie in the read, chunks are read into
//! borrowed types and not into trees of values, text that arrives together is one delta, requests
//! are written straight from our types, and watching for silence looks at no clock.

mod body;
mod chunk;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use duologue_core::{Delta, DeltaStream, ErrorClass, Model, ModelError, Price, Request};
use futures::{Stream, StreamExt, future::BoxFuture, stream};
use http_body::Body as _;
use reqwest::{
    Method, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use tokio::time::{Instant, Sleep};

use self::chunk::{Assembler, Read};
use super::{
    errors,
    service::{ModelEntry, Service},
    sse::SseParser,
};

/// How much of a refusal is read.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// How much of an answer that is not streamed is read.
const MAX_UNSTREAMED_BYTES: usize = 16 << 20;

/// How long the end of the stream is waited for once the answer is whole. A connection whose
/// stream was read to its end can be used again.
const DRAIN: Duration = Duration::from_millis(100);

/// Whose rules for the wire apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAI's own, which renames things from time to time.
    OpenAi,
    /// Everybody else's, who stay with what OpenAI began with.
    Compatible,
}

/// A model behind the chat wire.
#[derive(Debug)]
pub(crate) struct OpenAiChat {
    entry: ModelEntry,
    dialect: Dialect,
    url: Url,
    headers: HeaderMap,
}

impl OpenAiChat {
    pub(crate) fn new(entry: ModelEntry, dialect: Dialect) -> Result<Self, ModelError> {
        let service = &entry.service;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(key) = &service.key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.0)).map_err(|_| {
                ModelError::new(
                    ErrorClass::Authentication,
                    format!(
                        "the key of {} has characters that no header can carry",
                        service.provider
                    ),
                )
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        for (name, value) in &service.headers {
            headers.insert(name, value.clone());
        }
        let url = service.url("chat/completions")?;
        Ok(Self { entry, dialect, url, headers })
    }
}

impl Model for OpenAiChat {
    fn name(&self) -> &str {
        &self.entry.name
    }

    fn price(&self) -> Option<Price> {
        self.entry.price
    }

    fn ask(&self, request: Request) -> DeltaStream {
        let body = match body::encode(&self.entry.id, self.dialect, &request) {
            Ok(body) => body,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        // The agent's memory shares the messages: let go of them before the answer is awaited.
        drop(request);
        let service = std::sync::Arc::clone(&self.entry.service);
        let mut post = reqwest::Request::new(Method::POST, self.url.clone());
        *post.headers_mut() = self.headers.clone();
        *post.body_mut() = Some(body.into());
        let sending = service.client.execute(post);
        Box::pin(Answer {
            phase: Phase::Sending(Box::pin(sending)),
            parser: SseParser::default(),
            assembler: Assembler::default(),
            queue: VecDeque::new(),
            failure: None,
            unstreamed: None,
            patience: Patience::new(service.idle_timeout),
            service,
        })
    }
}

/// An answer while it arrives.
struct Answer {
    phase: Phase,
    parser: SseParser,
    assembler: Assembler,
    /// What was read and not yet handed over.
    queue: VecDeque<Delta>,
    /// What ends the stream after the queue.
    failure: Option<ModelError>,
    /// The body of a server that did not stream, though it was asked to.
    unstreamed: Option<Vec<u8>>,
    patience: Patience,
    service: std::sync::Arc<Service>,
}

enum Phase {
    /// Waiting for the head of the answer.
    Sending(BoxFuture<'static, Result<Response, reqwest::Error>>),
    /// Reading why the provider refuses.
    Refused(BoxFuture<'static, ModelError>),
    /// Reading the answer.
    Reading(reqwest::Body),
    /// The answer is whole; only the end of the stream is missing.
    Draining(reqwest::Body),
    /// Nothing more comes.
    Over,
}

impl Stream for Answer {
    type Item = Result<Delta, ModelError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(delta) = this.queue.pop_front() {
                return Poll::Ready(Some(Ok(delta)));
            }
            if let Some(error) = this.failure.take() {
                this.phase = Phase::Over;
                return Poll::Ready(Some(Err(error)));
            }
            match &mut this.phase {
                Phase::Sending(sending) => match sending.as_mut().poll(cx) {
                    Poll::Ready(head) => this.take_head(head),
                    Poll::Pending => std::task::ready!(this.wait(cx)),
                },
                Phase::Refused(reading) => match reading.as_mut().poll(cx) {
                    Poll::Ready(error) => this.failure = Some(error),
                    Poll::Pending => std::task::ready!(this.wait(cx)),
                },
                Phase::Reading(body) => match Pin::new(body).poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Some(bytes) = frame.data_ref() {
                            this.patience.progress();
                            this.take_bytes(bytes);
                        }
                        if matches!(this.phase, Phase::Draining(_)) {
                            // The end is nearly always here already. Whoever drops the stream
                            // once the answer is whole then leaves a connection of use.
                            this.try_drain(cx);
                        }
                    }
                    Poll::Ready(Some(Err(error))) => {
                        let provider = &this.service.provider;
                        this.failure =
                            Some(errors::from_transport(provider, error, &this.service.redactor));
                    }
                    Poll::Ready(None) => this.take_end(),
                    Poll::Pending => std::task::ready!(this.wait(cx)),
                },
                Phase::Draining(_) => {
                    this.try_drain(cx);
                    if matches!(this.phase, Phase::Draining(_)) {
                        std::task::ready!(this.patience.poll(cx));
                        this.phase = Phase::Over;
                    }
                }
                Phase::Over => return Poll::Ready(None),
            }
        }
    }
}

impl Answer {
    /// Wait for more; when it takes too long, that is the failure.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.patience.poll(cx).map(|()| self.failure = Some(self.service.silent()))
    }

    fn take_head(&mut self, head: Result<Response, reqwest::Error>) {
        self.patience.progress();
        match head {
            Ok(response) if response.status().is_success() => {
                let kind = response.headers().get(CONTENT_TYPE);
                if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json")) {
                    self.unstreamed = Some(Vec::new());
                }
                self.phase = Phase::Reading(response.into());
            }
            Ok(response) => {
                let service = std::sync::Arc::clone(&self.service);
                self.phase =
                    Phase::Refused(Box::pin(async move { refusal(response, &service).await }));
            }
            Err(error) => {
                let service = &self.service;
                self.failure =
                    Some(errors::from_transport(&service.provider, error, &service.redactor));
            }
        }
    }

    fn take_bytes(&mut self, bytes: &[u8]) {
        if let Some(whole) = &mut self.unstreamed {
            whole.extend_from_slice(bytes);
            if whole.len() > MAX_UNSTREAMED_BYTES {
                self.failure = Some(self.service.unreadable("an answer without end", ""));
            }
            return;
        }
        let Self { parser, assembler, queue, failure, service, .. } = self;
        let mut done = false;
        let fed = parser.feed(bytes, |data| {
            if !done && failure.is_none() {
                done = take_event(data, assembler, queue, failure, service);
            }
        });
        if fed.is_err() && failure.is_none() {
            *failure = Some(service.unreadable("an event without end", ""));
        }
        if done {
            self.finish();
        }
    }

    /// The body ended. Only an answer that said why it stopped is a whole one.
    fn take_end(&mut self) {
        let Self { parser, assembler, queue, failure, service, .. } = self;
        let mut done = false;
        let mut take = |data: &[u8]| {
            if !done && failure.is_none() {
                done = take_event(data, assembler, queue, failure, service);
            }
        };
        match self.unstreamed.take() {
            Some(whole) => take(&whole),
            None => parser.finish(take),
        }
        if failure.is_none() {
            if done || assembler.is_whole() {
                assembler.done(queue);
            } else {
                *failure = Some(service.cut_off());
            }
        }
        self.phase = Phase::Over;
    }

    /// The answer is whole, though the body has not ended.
    fn finish(&mut self) {
        self.assembler.done(&mut self.queue);
        self.patience = Patience::new(DRAIN);
        self.phase = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Reading(body) => Phase::Draining(body),
            other => other,
        };
    }

    /// Read what is there already, up to the end.
    fn try_drain(&mut self, cx: &mut Context<'_>) {
        while let Phase::Draining(body) = &mut self.phase {
            match Pin::new(body).poll_frame(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(_) => self.phase = Phase::Over,
                Poll::Pending => return,
            }
        }
    }
}

/// Take in one event. True when it says that the answer is whole.
fn take_event(
    data: &[u8],
    assembler: &mut Assembler,
    queue: &mut VecDeque<Delta>,
    failure: &mut Option<ModelError>,
    service: &Service,
) -> bool {
    match assembler.take(data, queue) {
        Ok(Read::More) => false,
        Ok(Read::Done) => true,
        Ok(Read::Refused(error)) => {
            *failure = Some(errors::from_stream(&service.provider, &error, &service.redactor));
            false
        }
        Err(error) => {
            let text = String::from_utf8_lossy(data);
            let what = format!("what is not a chunk of an answer ({error})");
            *failure = Some(service.unreadable(&what, &text));
            false
        }
    }
}

async fn refusal(mut response: Response, service: &Service) -> ModelError {
    let status = response.status();
    let headers = response.headers().clone();
    let mut bytes = Vec::new();
    while bytes.len() < MAX_REFUSAL_BYTES
        && let Ok(Some(more)) = response.chunk().await
    {
        bytes.extend_from_slice(&more);
    }
    let text = String::from_utf8_lossy(&bytes);
    errors::from_status(&service.provider, status, &headers, &text, &service.redactor)
}

/// Notices when nothing happens for too long. A read must cost nothing extra, so it looks at no
/// clock: its timer rings four times in the limit, and silence is when nothing came between four
/// rings.
struct Patience {
    limit: Duration,
    moved: bool,
    silent_rings: u32,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    const RINGS: u32 = 4;

    fn new(limit: Duration) -> Self {
        Self { limit, moved: false, silent_rings: 0, timer: None }
    }

    fn progress(&mut self) {
        self.moved = true;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let step = self.limit / Self::RINGS;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(step)));
        loop {
            std::task::ready!(timer.as_mut().poll(cx));
            self.silent_rings = match std::mem::take(&mut self.moved) {
                true => 0,
                false => self.silent_rings + 1,
            };
            if self.silent_rings >= Self::RINGS {
                return Poll::Ready(());
            }
            timer.as_mut().reset(Instant::now() + step);
        }
    }
}
