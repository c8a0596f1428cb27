//! Sending to a remote agent and waiting for it, through broken connections and restarts too.

use std::time::{Duration, Instant};

use a2a::{
    A2AError, Artifact, CancelTaskRequest, GetTaskRequest, Message, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task,
    error_code,
};
use futures::StreamExt;

use super::Remote;
use crate::task::{delegation::DELEGATION, state::is_settled};

/// How long a remote agent that has a task of ours and does not answer is tried.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long one is tried that nothing was sent to. It may be starting again.
pub(crate) const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// The waits between two looks at a task, the first and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The longest wait before something is sent again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Remote {
    /// Send a message. What comes back may still be at work; [`follow`](Self::follow) waits for it.
    pub async fn send(&self, message: Message) -> Result<SendMessageResponse, A2AError> {
        let configuration = SendMessageConfiguration {
            accepted_output_modes: None,
            task_push_notification_config: None,
            history_length: None,
            return_immediately: Some(true),
        };
        let request = SendMessageRequest {
            message,
            configuration: Some(configuration),
            metadata: None,
            tenant: self.0.face.tenant.clone(),
        };
        self.0.transport.send_message(&self.0.params, &request).await
    }

    /// Send a message, and again if nothing comes back: the other agent may be starting again. Only
    /// one that knows a message by its key is sent it twice.
    pub(crate) async fn send_surely(
        &self,
        message: &Message,
        patience: Duration,
    ) -> Result<SendMessageResponse, A2AError> {
        let patience = if self.knows_keys() { patience } else { Duration::ZERO };
        patiently(patience, is_final, || self.send(message.clone())).await
    }

    /// Whether it is one of ours, which takes a message with a key once however often it comes.
    fn knows_keys(&self) -> bool {
        let declared = self.0.card.capabilities.extensions.iter().flatten();
        declared.into_iter().any(|extension| extension.uri == DELEGATION)
    }

    /// Wait until a task is over or waits for somebody. A connection that breaks is made again, and
    /// nothing is lost by it: the task itself is asked how it stands.
    pub async fn follow(&self, task: &str) -> Result<Task, A2AError> {
        let mut wait = FIRST_WAIT;
        let mut silent_since: Option<Instant> = None;
        let can_stream = self.0.card.capabilities.streaming.unwrap_or_default();
        loop {
            match self.task(task).await {
                Ok(found) if is_settled(&found.status.state) => return Ok(found),
                Ok(_) => {
                    silent_since = None;
                    // A stream saves looking again and again. However it ends, the task is asked.
                    if can_stream && self.listen(task).await.is_ok() {
                        wait = FIRST_WAIT;
                        continue;
                    }
                }
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    let since = *silent_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > PATIENCE {
                        return Err(error);
                    }
                }
            }
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(LONGEST_WAIT);
        }
    }

    /// A task as it is now.
    pub async fn task(&self, task: &str) -> Result<Task, A2AError> {
        let request = GetTaskRequest {
            id: task.to_owned(),
            history_length: None,
            tenant: self.0.face.tenant.clone(),
        };
        self.0.transport.get_task(&self.0.params, &request).await
    }

    /// Listen until something settles or the stream ends.
    async fn listen(&self, task: &str) -> Result<(), A2AError> {
        let request =
            SubscribeToTaskRequest { id: task.to_owned(), tenant: self.0.face.tenant.clone() };
        let mut updates = self.0.transport.subscribe_to_task(&self.0.params, &request).await?;
        while let Some(update) = updates.next().await {
            let state = match update? {
                StreamResponse::Task(task) => task.status.state,
                StreamResponse::StatusUpdate(update) => update.status.state,
                StreamResponse::Message(_) => return Ok(()),
                StreamResponse::ArtifactUpdate(_) => continue,
            };
            if is_settled(&state) {
                return Ok(());
            }
        }
        // A stream that ends in the middle is no reason to listen again at once.
        Err(A2AError::internal("the stream ended"))
    }

    /// Stop a task.
    pub async fn cancel(&self, task: &str) -> Result<Task, A2AError> {
        let request = CancelTaskRequest {
            id: task.to_owned(),
            metadata: None,
            tenant: self.0.face.tenant.clone(),
        };
        self.0.transport.cancel_task(&self.0.params, &request).await
    }
}

/// Try until it works, it is plain that it never will, or patience ends.
pub(crate) async fn patiently<T, E, F: Future<Output = Result<T, E>>>(
    patience: Duration,
    is_final: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    let began = Instant::now();
    let mut wait = FIRST_WAIT;
    loop {
        match attempt().await {
            Err(error) if !is_final(&error) && began.elapsed() < patience => {}
            done => return done,
        }
        tokio::time::sleep(wait).await;
        wait = wait.saturating_mul(2).min(LONGEST_PAUSE);
    }
}

/// Whether asking again would give the same.
fn is_final(error: &A2AError) -> bool {
    error.code != error_code::INTERNAL_ERROR
}

/// What a task gave: its artifacts, or the words that it ended with.
pub(crate) fn answer_of(task: &Task) -> Vec<a2a::Part> {
    let artifacts = task.artifacts.iter().flatten();
    let parts: Vec<a2a::Part> =
        artifacts.flat_map(|artifact: &Artifact| artifact.parts.iter().cloned()).collect();
    if !parts.is_empty() {
        return parts;
    }
    if let Some(message) = &task.status.message {
        return message.parts.clone();
    }
    // Some agents say their answer in the conversation and nowhere else.
    let history = task.history.iter().flatten();
    let last = history.rev().find(|message| message.role == a2a::Role::Agent);
    last.map(|message| message.parts.clone()).unwrap_or_default()
}
