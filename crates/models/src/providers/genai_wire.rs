//! The wires that `genai` speaks for us: Anthropic, Gemini, OpenAI's responses, Ollama's own.
//!
//! `genai` writes the requests and reads the streams. What it leaves to us is here and in the two
//! files below: error classes and waits, fragments of arguments instead of the text so far, streams
//! that end too early, and whose signature is whose.

mod answer;
mod request;

use std::sync::Arc;

use duologue_core::{DeltaStream, ErrorClass, Model, ModelError, Price, Request};
use futures::{StreamExt, stream};
use genai::{
    Client, Headers, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    resolver::{AuthData, Endpoint},
};

use self::answer::Answer;
use super::service::{ModelEntry, Service};

/// A wire that is spoken by `genai`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    Anthropic,
    Gemini,
    Responses,
    Ollama,
}

impl Tongue {
    fn adapter(self) -> AdapterKind {
        match self {
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Gemini => AdapterKind::Gemini,
            Self::Responses => AdapterKind::OpenAIResp,
            Self::Ollama => AdapterKind::Ollama,
        }
    }

    /// What a signature begins with in our messages. A conversation may go on with another
    /// provider, which must not be sent a proof that it cannot check.
    fn seal(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic:",
            Self::Gemini => "gemini:",
            Self::Responses => "openai-responses:",
            Self::Ollama => "ollama:",
        }
    }
}

/// A model behind one of those wires.
#[derive(Debug)]
pub(crate) struct GenaiModel {
    entry: ModelEntry,
    tongue: Tongue,
    client: Client,
    target: ServiceTarget,
    headers: Headers,
}

impl GenaiModel {
    pub(crate) fn new(entry: ModelEntry, tongue: Tongue) -> Result<Self, ModelError> {
        let service = &entry.service;
        let client =
            Client::builder().with_reqwest(service.client.clone()).build().map_err(|error| {
                let text = service.redactor.clean(&error.to_string());
                ModelError::new(ErrorClass::BadRequest, text)
            })?;
        let key = service.key.as_ref().map_or("", |key| &key.0);
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(service.base_url.as_str()),
            auth: AuthData::Key(key.to_owned()),
            model: ModelIden::new(tongue.adapter(), &*entry.id),
        };
        let headers: Vec<(String, String)> = service
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect();
        Ok(Self { tongue, client, target, headers: Headers::from(headers), entry })
    }

    fn service(&self) -> &Arc<Service> {
        &self.entry.service
    }
}

impl Model for GenaiModel {
    fn name(&self) -> &str {
        &self.entry.name
    }

    fn price(&self) -> Option<Price> {
        self.entry.price
    }

    fn ask(&self, request: Request) -> DeltaStream {
        let (chat, options) = match request::convert(&request, self.tongue, &self.entry.id) {
            Ok(converted) => converted,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        // The agent's memory shares the messages: let go of them before the answer is awaited.
        drop(request);
        let options = options
            .with_extra_headers(self.headers.clone())
            .with_stream_header_timeout(self.service().idle_timeout)
            .with_stream_read_timeout(self.service().idle_timeout);
        let (client, target) = (self.client.clone(), self.target.clone());
        Box::pin(Answer::new(self.tongue, Arc::clone(self.service()), options, move |options| {
            Box::pin(async move {
                client
                    .exec_chat_stream(target, chat, Some(&options))
                    .await
                    .map(|answer| answer.stream)
            })
        }))
    }
}
