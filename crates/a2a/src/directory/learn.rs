//! Learning of agents from agents.
//!
//! Another agent's word is taken for what it is: its list names addresses to look at, and each
//! agent's own card says what it is. An agent of the open network cannot send us to private
//! addresses.

use std::time::Duration;

use duologue_core::Part;
use futures::StreamExt;
use serde::Deserialize;
use serde_json::Value;
use url::{Host, Url};

use super::{Directory, DirectoryError, KnownAgent, now_ms, place_of};
use crate::{
    Remote,
    client::{answer_of, parse_address},
    push::is_public,
    task::convert::parts_from_wire,
};

/// The tool by which agents tell of others.
pub(crate) const LIST_AGENTS: &str = "list_agents";
/// The most agents that are taken from one answer.
const MOST_LEARNED: usize = 100;
/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// How many agents are looked at side by side.
pub(super) const AT_ONCE: usize = 8;

/// What `list_agents` answers.
#[derive(Deserialize)]
struct Lesson {
    #[serde(default)]
    agents: Vec<Value>,
}

/// One agent of it. What cannot be used is passed over.
#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    url: String,
}

impl Directory {
    /// Get to know the agent at an address and those that it knows.
    pub async fn discover(&self, address: &str) -> Result<KnownAgent, DirectoryError> {
        let agent = self.add(address).await?;
        if agent.has_skill(LIST_AGENTS)
            && let Err(error) = self.learn_from(&agent.id).await
        {
            tracing::debug!(%error, "nothing was learned");
        }
        self.get(&agent.id)
    }

    /// Ask an agent whom it knows. The agents that were new and could be reached.
    pub async fn learn_from(&self, id: &str) -> Result<Vec<KnownAgent>, DirectoryError> {
        let new = self.hear(id).await?;
        let looked = futures::stream::iter(new)
            .map(|id| async move { self.look_at(&id).await })
            .buffer_unordered(AT_ONCE)
            .filter_map(|looked| async { looked.ok().filter(|agent| agent.last_seen.is_some()) });
        let mut known: Vec<KnownAgent> = looked.collect().await;
        known.sort_by(|a, b| a.id.cmp(&b.id));
        self.save().await?;
        Ok(known)
    }

    /// Ask an agent whom it knows and write down who is new. Nobody is tried yet.
    pub(super) async fn hear(&self, id: &str) -> Result<Vec<String>, DirectoryError> {
        let teacher = self.get(id)?;
        let remote = self.connect(&teacher.id).await?;
        let wrong = |why: String| DirectoryError::Lesson { teacher: teacher.id.clone(), why };
        let lesson = match tokio::time::timeout(PATIENCE, ask(&remote)).await {
            Ok(lesson) => lesson.map_err(wrong)?,
            Err(_) => return Err(wrong(format!("no answer in {} s", PATIENCE.as_secs()))),
        };
        let is_teacher_public = parse_address(&teacher.url).is_ok_and(|url| !is_private(&url));
        let mut new = Vec::new();
        for told in lesson.agents.into_iter().take(MOST_LEARNED) {
            let Ok(told) = serde_json::from_value::<Told>(told) else { continue };
            let Ok(url) = parse_address(&told.url) else { continue };
            let has_secret = !url.username().is_empty() || url.password().is_some();
            if has_secret || (is_teacher_public && is_private(&url)) {
                tracing::debug!(teacher = teacher.id, url = told.url, "not taken from it");
                continue;
            }
            new.extend(self.hear_of(&told, &url, &teacher.id));
        }
        Ok(new)
    }

    /// Write down an agent that another one told of; its id if it is new.
    fn hear_of(&self, told: &Told, url: &Url, teacher: &str) -> Option<String> {
        let place = place_of(url);
        let mut state = self.state();
        let is_known = state.agents.values().any(|agent| super::is_at(agent, &place))
            || state.own_urls.contains(&place)
            || state.own_ids.contains(&told.id);
        if is_known || !state.make_room() {
            return None;
        }
        let wish = if told.id.is_empty() { &told.name } else { &told.id };
        let id = state.free_id(&super::known::slug(wish));
        let name = if told.name.is_empty() { &told.id } else { &told.name };
        let name = super::known::short(name);
        let mut agent = KnownAgent::new(id.clone(), name, super::address_of(url), now_ms());
        agent.learned_from = Some(teacher.to_owned());
        state.agents.insert(id.clone(), agent);
        Some(id)
    }
}

/// Whether an agent may be tried. One that was only heard of from the open network must not lead
/// into a private one, whatever its name resolves to.
pub(super) async fn may_be_reached(
    directory: &Directory,
    agent: &KnownAgent,
    url: &Url,
) -> Result<(), String> {
    let Some(teacher) = &agent.learned_from else { return Ok(()) };
    let teacher = directory.get(teacher).ok().and_then(|teacher| parse_address(&teacher.url).ok());
    // A teacher that is gone is taken for one of the open network.
    if teacher.is_some_and(|teacher| is_private(&teacher)) {
        return Ok(());
    }
    if is_private(url) {
        return Err("it is an address of a private network".to_owned());
    }
    if let Some(Host::Domain(name)) = url.host() {
        let port = url.port_or_known_default().unwrap_or(80);
        let mut found =
            tokio::net::lookup_host((name, port)).await.map_err(|error| error.to_string())?;
        if found.any(|address| !is_public(address.ip())) {
            return Err("its name leads to a private network".to_owned());
        }
    }
    Ok(())
}

/// Whether an address is one of a private network, as far as can be told without resolving it.
fn is_private(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => !is_public(ip.into()),
        Some(Host::Ipv6(ip)) => !is_public(ip.into()),
        Some(Host::Domain(name)) => {
            name == "localhost" || name.ends_with(".localhost") || !name.contains('.')
        }
        None => true,
    }
}

/// Have the other agent's tool called.
async fn ask(remote: &Remote) -> Result<Lesson, String> {
    let text = format!(":tool {LIST_AGENTS} {{\"format\":\"detailed\"}}");
    let message = a2a::Message::new(a2a::Role::User, vec![a2a::Part::text(text)]);
    let parts = match remote.send(message).await.map_err(|error| error.message)? {
        a2a::SendMessageResponse::Message(message) => message.parts,
        a2a::SendMessageResponse::Task(task) => {
            let task = remote.follow(&task.id).await.map_err(|error| error.message)?;
            answer_of(&task)
        }
    };
    for part in parts_from_wire(&parts) {
        let read = match part {
            Part::Data { value } => serde_json::from_value(value).ok(),
            Part::Text { text } => serde_json::from_str(&text).ok(),
            _ => None,
        };
        if let Some(lesson) = read {
            return Ok(lesson);
        }
    }
    Err("its answer is no list of agents".to_owned())
}
