//! One provider as it is reached: where, with which key, and how patiently.

use std::{sync::Arc, time::Duration};

use duologue_core::{ErrorClass, ModelError, Price};
use reqwest::{Client, Url, header::HeaderMap};

use super::redact::Redactor;

/// Everything that the models of one provider share.
#[derive(Debug)]
pub(crate) struct Service {
    /// The provider's name, as model names begin with it.
    pub(crate) provider: String,
    /// The address that paths are added to, with a slash at its end.
    pub(crate) base_url: Url,
    /// The key, where there is one.
    pub(crate) key: Option<Key>,
    /// Headers that the configuration adds.
    pub(crate) headers: HeaderMap,
    /// How long nothing may arrive before the request counts as lost.
    pub(crate) idle_timeout: Duration,
    /// Takes the provider's secrets out of error texts.
    pub(crate) redactor: Redactor,
    /// The connection pool.
    pub(crate) client: Client,
}

/// A key that cannot be printed by accident.
#[derive(Clone)]
pub(crate) struct Key(pub(crate) Box<str>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Service {
    /// The address of a path below the base. The query of the base stays: some gateways want one.
    pub(crate) fn url(&self, path: &str) -> Result<Url, ModelError> {
        let mut url = self.base_url.join(path).map_err(|error| {
            let text = format!("{}: no address for {path}: {error}", self.provider);
            ModelError::new(ErrorClass::BadRequest, self.redactor.clean(&text))
        })?;
        url.set_query(self.base_url.query());
        Ok(url)
    }

    /// The error for a stream in which nothing arrived for too long.
    pub(crate) fn silent(&self) -> ModelError {
        ModelError::new(
            ErrorClass::Timeout,
            format!("{} sent nothing for {:?}", self.provider, self.idle_timeout),
        )
    }

    /// The error for a stream that ended before the answer did.
    pub(crate) fn cut_off(&self) -> ModelError {
        ModelError::new(
            ErrorClass::Malformed,
            format!("{} ended the stream in the middle of the answer", self.provider),
        )
    }

    /// The error for something in the stream that cannot be read.
    pub(crate) fn unreadable(&self, what: &str, text: &str) -> ModelError {
        let text = super::errors::shorten(text);
        let words = format!("{} sent {what}: {text}", self.provider);
        ModelError::new(ErrorClass::Malformed, self.redactor.clean(&words))
    }
}

/// What a model is, whichever wire it speaks.
#[derive(Clone, Debug)]
pub(crate) struct ModelEntry {
    /// `provider/model`.
    pub(crate) name: Arc<str>,
    /// The model's own name, as the provider knows it.
    pub(crate) id: Arc<str>,
    /// What it costs, where that is known.
    pub(crate) price: Option<Price>,
    /// Who serves it.
    pub(crate) service: Arc<Service>,
}
