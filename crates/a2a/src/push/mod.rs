//! Notifications: what happens to a task, posted to where its client wants to hear of it.
//!
//! Nothing waits for them. A worker for each target reads the journal like any other watcher, posts,
//! tries again for a while, and writes down what it delivered; after a restart it goes on behind
//! that. Where a client listens is in the journal too, its secrets sealed.

mod address;
mod vault;
mod worker;

pub(crate) use address::is_public;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use a2a::{A2AError, AuthenticationInfo, TaskPushNotificationConfig};
use duologue_core::Session;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Semaphore;

use self::{address::Guard, vault::Vault};
use crate::{
    fault,
    task::{Open, Place, TaskView, Tasks, record::TARGET},
};

/// How notifications are sent.
#[derive(Clone, Debug)]
pub struct PushSettings {
    /// Whether they are sent at all.
    pub enabled: bool,
    /// Whether addresses of this machine and of private networks may be posted to.
    pub allow_private: bool,
    /// How long one try may take.
    pub timeout: Duration,
    /// How often a notification is tried in all.
    pub attempts: u32,
    /// The wait after the first failure; it doubles with each.
    pub first_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
    /// The most targets of one task.
    pub most_targets: usize,
    /// How many posts may be under way at once.
    pub most_at_once: usize,
    /// What seals the targets' secrets in the journal. Without one, they are lost when the process
    /// ends, and what is left to tell then cannot be told.
    pub key: Option<[u8; 32]>,
}

impl Default for PushSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            allow_private: false,
            timeout: Duration::from_secs(15),
            attempts: 6,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
            most_targets: 10,
            most_at_once: 64,
            key: None,
        }
    }
}

/// Where a client wants to hear of its task, as the journal has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) url: String,
    /// Its token and credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
    /// Whether it is told in the words of version 0.3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_old: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_deleted: bool,
    /// The entry that it was written in.
    #[serde(skip)]
    pub(crate) since: u64,
}

/// What is not for everybody to read.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Secrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authentication: Option<AuthenticationInfo>,
}

/// How far a target was told, as the journal has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Delivered {
    pub(crate) target: String,
    /// The update's entry, and which of its updates it was.
    pub(crate) seq: u64,
    pub(crate) part: u32,
    /// How often it was tried.
    pub(crate) attempts: u32,
    /// Why it was given up, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) given_up: Option<String>,
}

/// All notifications of a server.
#[derive(Clone)]
pub(crate) struct Pushes(Arc<Inner>);

struct Inner {
    settings: PushSettings,
    vault: Vault,
    guard: Guard,
    slots: Semaphore,
    /// Which targets have a worker.
    at_work: Mutex<HashSet<(String, String)>>,
}

impl Pushes {
    pub(crate) fn new(settings: PushSettings) -> Result<Self, A2AError> {
        let vault = Vault::new(settings.key)?;
        let guard = Guard::new(settings.allow_private, settings.timeout)?;
        let slots = Semaphore::new(settings.most_at_once.max(1));
        Ok(Self(Arc::new(Inner { settings, vault, guard, slots, at_work: Mutex::default() })))
    }

    /// An error unless notifications are sent at all.
    pub(crate) fn check_enabled(&self) -> Result<(), A2AError> {
        if self.0.settings.enabled {
            return Ok(());
        }
        Err(A2AError::push_notification_not_supported())
    }

    /// What a client asked for, checked and with its secrets sealed.
    pub(crate) fn target(&self, config: &TaskPushNotificationConfig) -> Result<Target, A2AError> {
        self.check_enabled()?;
        self.0.guard.check_url(&config.url).map_err(|why| fault::invalid("url", why))?;
        let secrets =
            Secrets { token: config.token.clone(), authentication: config.authentication.clone() };
        let has_secrets = secrets.token.is_some() || secrets.authentication.is_some();
        Ok(Target {
            id: match config.id.as_deref() {
                None | Some("") => a2a::new_message_id(),
                Some(id) => id.to_owned(),
            },
            url: config.url.clone(),
            sealed: if has_secrets { Some(self.0.vault.seal(&secrets)?) } else { None },
            is_old: false,
            is_deleted: false,
            since: 0,
        })
    }

    /// Write a target down.
    pub(crate) fn note(&self, session: &Session, target: &Target) -> Result<(), A2AError> {
        session.note(TARGET, json!(target)).map_err(|error| fault::of_session(&error))
    }

    /// Write down that a target is no more.
    pub(crate) fn note_deleted(&self, session: &Session, id: &str) -> Result<(), A2AError> {
        let gone = Target {
            id: id.to_owned(),
            url: String::new(),
            sealed: None,
            is_old: false,
            is_deleted: true,
            since: 0,
        };
        self.note(session, &gone)
    }

    /// Whether a task may have one more target.
    pub(crate) fn check_room(
        &self,
        targets: &BTreeMap<String, Target>,
        id: &str,
    ) -> Result<(), A2AError> {
        let most = self.0.settings.most_targets;
        if targets.len() < most || targets.contains_key(id) {
            return Ok(());
        }
        Err(fault::invalid("id", format!("a task has at most {most} notification targets")))
    }

    /// A target as its client gave it.
    pub(crate) fn config(&self, task: &str, target: &Target) -> TaskPushNotificationConfig {
        let secrets = self.secrets(target).unwrap_or_default();
        TaskPushNotificationConfig {
            url: target.url.clone(),
            id: Some(target.id.clone()),
            task_id: task.to_owned(),
            token: secrets.token,
            authentication: secrets.authentication,
            tenant: None,
        }
    }

    fn secrets(&self, target: &Target) -> Result<Secrets, String> {
        match &target.sealed {
            None => Ok(Secrets::default()),
            Some(sealed) => self.0.vault.open(sealed),
        }
    }

    /// Let each target of a task have its worker.
    pub(crate) fn attend(&self, tasks: &Tasks, open: &Arc<Open>, view: &TaskView) {
        if !self.0.settings.enabled {
            return;
        }
        for target in view.targets().values() {
            let behind = match view.delivered(&target.id) {
                Some(delivered) if delivered.seq > target.since => {
                    Place { seq: delivered.seq, part: delivered.part }
                }
                _ => Place { seq: target.since, part: u32::MAX },
            };
            // Nothing more will happen to a task that is over and told.
            if view.state().is_terminal() && behind.seq >= view.status_seq() {
                continue;
            }
            let key = (open.session.id().as_str().to_owned(), target.id.clone());
            let is_new =
                self.0.at_work.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
            if is_new {
                let worker = worker::Worker {
                    pushes: self.clone(),
                    tasks: tasks.clone(),
                    open: Arc::clone(open),
                    target: target.id.clone(),
                };
                let pushes = self.clone();
                tokio::spawn(async move {
                    worker.run(behind).await;
                    let mut at_work =
                        pushes.0.at_work.lock().unwrap_or_else(PoisonError::into_inner);
                    at_work.remove(&key);
                });
            }
        }
    }
}
