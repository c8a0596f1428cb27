//! Tells one target what happens to one task.

use std::{sync::Arc, time::Duration};

use a2a::StreamResponse;
use reqwest::{
    StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::json;

use super::{Delivered, Pushes, Target};
use crate::{
    task::{Open, Place, TaskView, Tasks, record::DELIVERED},
    v03,
};

/// The header that carries a target's token.
pub(super) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-a2a-notification-token");

pub(super) struct Worker {
    pub(super) pushes: Pushes,
    pub(super) tasks: Tasks,
    pub(super) open: Arc<Open>,
    pub(super) target: String,
}

/// Why a try failed.
struct Failure {
    why: String,
    /// Whether trying again may help.
    may_pass: bool,
}

impl Worker {
    /// Tell what came behind a place, until the task is over or the target is no more.
    pub(super) async fn run(self, behind: Place) {
        let mut watch = match self.tasks.watch_behind(Arc::clone(&self.open), behind).await {
            Ok(watch) => watch,
            Err(error) => {
                let task = self.open.session.id();
                tracing::warn!(%task, %error, "a task's notifications cannot be read");
                return;
            }
        };
        loop {
            let update = match watch.next().await {
                Ok(update) => update,
                Err(error) => {
                    tracing::warn!(task = watch.id(), %error, "notifications stop");
                    return;
                }
            };
            let Some(place) = update.place else { continue };
            // What was written about the target meanwhile counts: it may have moved or be gone.
            let Some(target) = self.current_target().await else { return };
            if place.seq > target.since || target.since == 0 {
                let (attempts, given_up) =
                    self.deliver(&target, &update.response, watch.view()).await;
                let delivered = Delivered {
                    target: target.id,
                    seq: place.seq,
                    part: place.part,
                    attempts,
                    given_up,
                };
                if let Err(error) = self.open.session.note(DELIVERED, json!(delivered)) {
                    tracing::warn!(task = watch.id(), %error, "a delivery was not written down");
                }
            }
            if update.ends() {
                let _ = watch.flush().await;
                return;
            }
        }
    }

    async fn current_target(&self) -> Option<Target> {
        let id = self.open.session.id();
        let entries = duologue_core::read_all(&**self.tasks.store(), id).await.ok()?;
        let view = TaskView::of(id.as_str(), &entries);
        view.targets().get(&self.target).cloned()
    }

    /// Try until it is taken or it is time to give up; how often, and why it was given up.
    async fn deliver(
        &self,
        target: &Target,
        response: &StreamResponse,
        view: &TaskView,
    ) -> (u32, Option<String>) {
        let settings = &self.pushes.0.settings;
        let body = match target.is_old {
            true => serde_json::to_vec(&v03::task(&view.task(None, true))),
            false => serde_json::to_vec(response),
        };
        let (Ok(body), Ok(headers)) = (body, self.headers(target)) else {
            return (0, Some("its credentials cannot be used".to_owned()));
        };
        let mut wait = settings.first_wait;
        let mut attempt = 1;
        loop {
            match self.try_once(target, &headers, &body).await {
                Ok(()) => return (attempt, None),
                Err(failure) if !failure.may_pass || attempt >= settings.attempts => {
                    return (attempt, Some(failure.why));
                }
                Err(_) => {
                    tokio::time::sleep(with_chance(wait)).await;
                    wait = wait.saturating_mul(2).min(settings.longest_wait);
                    attempt += 1;
                }
            }
        }
    }

    async fn try_once(
        &self,
        target: &Target,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<(), Failure> {
        let closed = |_| Failure { why: "the server ends".to_owned(), may_pass: false };
        let _slot = self.pushes.0.slots.acquire().await.map_err(closed)?;
        match self.pushes.0.guard.post(&target.url, headers, body).await {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) => {
                let may_pass = status.is_server_error()
                    || matches!(
                        status,
                        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
                    );
                Err(Failure { why: format!("it answered {status}"), may_pass })
            }
            Err(why) => Err(Failure { why, may_pass: true }),
        }
    }

    fn headers(&self, target: &Target) -> Result<HeaderMap, String> {
        let secrets = self.pushes.secrets(target)?;
        let wrong = |_| "its credentials are not a header".to_owned();
        let mut headers = HeaderMap::new();
        let kind = if target.is_old { "application/json" } else { "application/a2a+json" };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(token) = &secrets.token {
            headers.insert(TOKEN_HEADER, HeaderValue::from_str(token).map_err(wrong)?);
        }
        if let Some(auth) = &secrets.authentication {
            let credentials = auth.credentials.as_deref().unwrap_or_default();
            let text = format!("{} {credentials}", auth.scheme);
            let mut value = HeaderValue::from_str(text.trim()).map_err(wrong)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

/// Half of a wait is certain and half is chance, so that many do not come back at once.
fn with_chance(wait: Duration) -> Duration {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    wait.mul_f64(0.5 + f64::from(nanos % 1_000) / 2_000.0)
}
