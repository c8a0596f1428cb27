//! The agent directory: who else there is, and how they are.
//!
//! Agents come in by their address, or because another agent told of them. What is known is kept in
//! a file, and looked after in the background.

mod file;
mod known;
mod learn;
mod merge;
mod refresh;

use std::{
    collections::{BTreeSet, HashMap},
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use a2a::AgentCard;
use url::Url;

pub use known::{Health, KnownAgent, Skill};
pub use refresh::{Refreshed, Refreshing};

use self::{
    known::wished_id,
    merge::{Agents, merged},
};
use crate::{
    Credentials, Remote, RemoteError,
    card::id_in,
    client::{FIRST_PATIENCE, parse_address},
};

/// The most agents of a directory.
pub(crate) const MOST_AGENTS: usize = 1_000;
/// How long an agent may take to show its card.
const PATIENCE: Duration = Duration::from_secs(10);

/// The agents that are known here. Clones are the same directory.
///
/// ```no_run
/// # async fn example() -> Result<(), duologue_a2a::DirectoryError> {
/// use duologue_a2a::Directory;
///
/// let directory = Directory::open("data/agent_directory.json")?;
/// let agent = directory.add("localhost:4201").await?;
/// println!("{} is {} ms away", agent.name, agent.latency_ms.unwrap_or_default());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Directory(Arc<Inner>);

struct Inner {
    path: Option<PathBuf>,
    state: Mutex<State>,
    /// One at a time writes the file.
    writing: tokio::sync::Mutex<()>,
    warnings: Vec<String>,
}

#[derive(Default)]
struct State {
    agents: Agents,
    /// The file as it was when it was last read or written.
    kept: Agents,
    /// Agents of the file that are this one: they are not listed here, and are left there.
    oneself: Agents,
    /// Connections by the agents' addresses.
    remotes: HashMap<String, Remote>,
    /// Whose directory it is: its ids and addresses.
    own_ids: BTreeSet<String>,
    own_urls: BTreeSet<String>,
    /// Secrets by address; the empty one is for all.
    credentials: HashMap<String, Credentials>,
    /// How long an agent is waited for that something is to be sent to.
    patience: Option<Duration>,
}

/// Why the directory did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Its file cannot be read or written.
    #[error("the agent directory {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Nobody is known by this id.
    #[error("no agent {id:?} is known{}", known_ids(.known))]
    Unknown {
        /// The id.
        id: String,
        /// Who is known.
        known: Vec<String>,
    },
    /// The agent cannot be reached.
    #[error("{0}")]
    Unreachable(#[from] RemoteError),
    /// It is the agent whose directory this is.
    #[error("{0} is this agent itself")]
    Oneself(String),
    /// There are too many already.
    #[error("the directory is full: it holds {MOST_AGENTS} agents; remove some first")]
    Full,
    /// Another agent told something that is not taken from it.
    #[error("{teacher} was asked for the agents that it knows: {why}")]
    Lesson {
        /// The other agent.
        teacher: String,
        /// What is wrong.
        why: String,
    },
}

fn known_ids(known: &[String]) -> String {
    match known {
        [] => "; the directory is empty".to_owned(),
        known => format!("; known are: {}", known.join(", ")),
    }
}

impl Directory {
    /// A directory that lasts as long as the process.
    pub fn in_memory() -> Self {
        Self::with(None, file::Loaded::default())
    }

    /// The directory of a file, which is made when there is something to write. What cannot be read
    /// of it is kept aside and told by [`warnings`](Self::warnings).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DirectoryError> {
        let path = path.as_ref().to_owned();
        let loaded = file::load(&path)
            .map_err(|source| DirectoryError::File { path: path.clone(), source })?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        Ok(Self::with(Some(path), loaded))
    }

    fn with(path: Option<PathBuf>, loaded: file::Loaded) -> Self {
        let agents = by_id(loaded.agents);
        let state = Mutex::new(State { kept: agents.clone(), agents, ..State::default() });
        let writing = tokio::sync::Mutex::default();
        Self(Arc::new(Inner { path, state, writing, warnings: loaded.warnings }))
    }

    /// What a person should know about the file.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Whose directory it is, so that it does not list itself.
    pub fn set_own(&self, id: &str, url: Option<&str>) {
        let mut state = self.state();
        state.own_ids.insert(id.to_owned());
        if let Some(url) = url.and_then(|url| parse_address(url).ok()) {
            state.own_urls.insert(place_of(&url));
        }
    }

    /// Secrets for the agent at an address, or for all whose address has none of its own. They are
    /// never written to the file.
    pub fn set_credentials(&self, url: Option<&str>, credentials: Credentials) {
        let place = url.and_then(|url| parse_address(url).ok()).map(|url| place_of(&url));
        self.state().credentials.insert(place.unwrap_or_default(), credentials);
    }

    /// How long an agent that does not answer is tried when something is to be sent to it: it may
    /// be starting again. 10 s otherwise.
    pub fn set_patience(&self, patience: Duration) {
        self.state().patience = Some(patience);
    }

    pub(crate) fn patience(&self) -> Duration {
        self.state().patience.unwrap_or(FIRST_PATIENCE)
    }

    /// All agents, by their ids.
    pub fn list(&self) -> Vec<KnownAgent> {
        self.state().agents.values().cloned().collect()
    }

    /// One of them, by its id or its address.
    pub fn get(&self, id: &str) -> Result<KnownAgent, DirectoryError> {
        let state = self.state();
        let place = || parse_address(id).ok().map(|url| place_of(&url));
        let found = state.agents.get(id).or_else(|| {
            let place = place()?;
            state.agents.values().find(|agent| is_at(agent, &place))
        });
        found.cloned().ok_or_else(|| DirectoryError::Unknown {
            id: id.to_owned(),
            known: state.agents.keys().cloned().collect(),
        })
    }

    /// Get to know the agent at an address: fetch its card and write it down.
    pub async fn add(&self, address: &str) -> Result<KnownAgent, DirectoryError> {
        let url = parse_address(address)?;
        let place = place_of(&url);
        if self.state().own_urls.contains(&place) {
            return Err(DirectoryError::Oneself(address.to_owned()));
        }
        let began = Instant::now();
        let remote = self.reach(&url).await?;
        let latency = millis(began);
        let agent = self.enter(remote.card(), &url, latency)?;
        self.state().remotes.insert(agent.url.clone(), remote);
        self.save().await?;
        Ok(agent)
    }

    /// Take in a card that was fetched from an address.
    fn enter(
        &self,
        card: &AgentCard,
        url: &Url,
        latency: u64,
    ) -> Result<KnownAgent, DirectoryError> {
        let now = now_ms();
        let place = place_of(url);
        let mut state = self.state();
        if id_in(card).is_some_and(|id| state.own_ids.contains(&id)) {
            return Err(DirectoryError::Oneself(url.to_string()));
        }
        let wish = wished_id(card);
        let here = state.agents.values().find(|agent| is_at(agent, &place));
        let here = here.map(|agent| agent.id.clone());
        // An agent that declares its id and is gone from where it was has moved.
        let moved = state.agents.get(&wish).is_some_and(|agent| {
            id_in(card).is_some() && matches!(agent.health, Health::Down { .. })
        });
        let id = match here {
            Some(id) => id,
            None if moved => wish,
            None => state.free_id(&wish),
        };
        if !state.agents.contains_key(&id) && !state.make_room() {
            return Err(DirectoryError::Full);
        }
        let agent = state
            .agents
            .entry(id.clone())
            .or_insert_with(|| KnownAgent::new(id, card.name.clone(), address_of(url), now));
        agent.url = address_of(url);
        // Whoever adds it knows it themselves.
        agent.learned_from = None;
        agent.seen(card, latency, now);
        Ok(agent.clone())
    }

    /// Forget an agent.
    pub async fn remove(&self, id: &str) -> Result<KnownAgent, DirectoryError> {
        let agent = self.get(id)?;
        {
            let mut state = self.state();
            state.agents.remove(&agent.id);
            state.remotes.remove(&agent.url);
        }
        self.save().await?;
        Ok(agent)
    }

    /// Look how an agent is: fetch its card again. That it cannot be reached is written down and is
    /// no error: the answer's health says so.
    pub async fn ping(&self, id: &str) -> Result<KnownAgent, DirectoryError> {
        let agent = self.look_at(&self.get(id)?.id).await?;
        self.save().await?;
        Ok(agent)
    }

    /// Fetch an agent's card and write down what came of it, in memory.
    async fn look_at(&self, id: &str) -> Result<KnownAgent, DirectoryError> {
        let known = self.get(id)?;
        let url = parse_address(&known.url)?;
        let began = Instant::now();
        let reached = match learn::may_be_reached(self, &known, &url).await {
            Ok(()) => self.reach(&url).await.map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        let latency = millis(began);
        let mut state = self.state();
        let oneself = reached
            .as_ref()
            .is_ok_and(|remote| id_in(remote.card()).is_some_and(|id| state.own_ids.contains(&id)));
        if oneself {
            state.agents.remove(id);
            return Err(DirectoryError::Oneself(known.url));
        }
        // Somebody may have removed it meanwhile.
        let Some(agent) = state.agents.get_mut(id) else { return Ok(known) };
        match &reached {
            Ok(remote) => agent.seen(remote.card(), latency, now_ms()),
            Err(error) => agent.missed(error.clone(), now_ms()),
        }
        let agent = agent.clone();
        match reached {
            Ok(remote) => state.remotes.insert(agent.url.clone(), remote),
            Err(_) => state.remotes.remove(&agent.url),
        };
        Ok(agent)
    }

    /// A connection to an agent, by its id or address. It is kept for the next time.
    pub async fn connect(&self, id: &str) -> Result<Remote, DirectoryError> {
        let agent = self.get(id)?;
        if let Some(remote) = self.state().remotes.get(&agent.url) {
            return Ok(remote.clone());
        }
        let url = parse_address(&agent.url)?;
        let began = Instant::now();
        let reached = match learn::may_be_reached(self, &agent, &url).await {
            Ok(()) => self.reach(&url).await,
            Err(why) => Err(RemoteError::Address(agent.url.clone(), why)),
        };
        let latency = millis(began);
        let mut state = self.state();
        if let Some(known) = state.agents.get_mut(&agent.id) {
            match &reached {
                Ok(remote) => known.seen(remote.card(), latency, now_ms()),
                // It may be tried again and again in a moment, which says no more than once.
                Err(_) if matches!(known.health, Health::Down { .. }) => {}
                Err(error) => known.missed(error.to_string(), now_ms()),
            }
        }
        let remote = reached?;
        state.remotes.insert(agent.url, remote.clone());
        Ok(remote)
    }

    async fn reach(&self, url: &Url) -> Result<Remote, RemoteError> {
        let credentials = {
            let state = self.state();
            let own = state.credentials.get(&place_of(url));
            own.or_else(|| state.credentials.get("")).cloned().unwrap_or_default()
        };
        match tokio::time::timeout(PATIENCE, Remote::connect(url.as_str(), &credentials)).await {
            Ok(remote) => remote,
            Err(_) => Err(RemoteError::Card {
                url: url.to_string(),
                why: format!("it takes longer than {} s", PATIENCE.as_secs()),
            }),
        }
    }

    /// Write the file, with what other processes wrote into it since it was last read.
    pub async fn save(&self) -> Result<(), DirectoryError> {
        self.meet_the_file(Write::Yes).await
    }

    /// Take in what other processes wrote into the file.
    pub async fn reread(&self) -> Result<(), DirectoryError> {
        self.meet_the_file(Write::No).await
    }

    async fn meet_the_file(&self, write: Write) -> Result<(), DirectoryError> {
        let Some(path) = self.0.path.clone() else { return Ok(()) };
        let _turn = self.0.writing.lock().await;
        let (directory, file) = (self.clone(), path.clone());
        let met = tokio::task::spawn_blocking(move || directory.merge_with(&file, write)).await;
        let met = met.unwrap_or_else(|error| Err(io::Error::other(error)));
        met.map_err(|source| DirectoryError::File { path, source })
    }

    fn merge_with(&self, path: &Path, write: Write) -> io::Result<()> {
        // Held until the file is written, so that nobody writes in between.
        let _lock = file::lock(path)?;
        let loaded = file::load(path)?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let whole: Vec<KnownAgent> = {
            let mut state = self.state();
            let (own, others) = by_id(loaded.agents).into_iter().partition(|(_, agent)| {
                let is_own = |place: &String| is_at(agent, place);
                state.own_ids.contains(&agent.id) || state.own_urls.iter().any(is_own)
            });
            state.oneself = own;
            // A file that is gone says nothing of anybody.
            if !path.exists() {
                state.kept.clear();
            }
            state.agents = merged(&state.agents, &state.kept, &others);
            // A file that was not written is as it was.
            state.kept = if write == Write::Yes { state.agents.clone() } else { others };
            let mut whole = state.oneself.clone();
            whole.extend(state.agents.clone());
            whole.into_values().collect()
        };
        match write {
            Write::Yes => file::save(path, &whole),
            Write::No => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the file is only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Yes,
    No,
}

fn by_id(agents: Vec<KnownAgent>) -> Agents {
    agents.into_iter().map(|agent| (agent.id.clone(), agent)).collect()
}

impl State {
    /// An id that nobody has, like the wished one.
    fn free_id(&self, wish: &str) -> String {
        let is_free = |id: &String| {
            !self.agents.contains_key(id)
                && !self.oneself.contains_key(id)
                && !self.own_ids.contains(id)
        };
        let numbered = (2..).map(|number| format!("{wish}-{number}"));
        let mut ids = std::iter::once(wish.to_owned()).chain(numbered);
        ids.find(is_free).unwrap_or_else(|| wish.to_owned())
    }

    /// Make room for one more, if need be at the cost of one that was only heard of.
    fn make_room(&mut self) -> bool {
        if self.agents.len() < MOST_AGENTS {
            return true;
        }
        let heard_of =
            |agent: &&KnownAgent| agent.learned_from.is_some() && agent.last_seen.is_none();
        let oldest = self.agents.values().filter(heard_of).min_by_key(|agent| agent.added_at);
        let Some(oldest) = oldest.map(|agent| agent.id.clone()) else { return false };
        self.agents.remove(&oldest);
        true
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory")
            .field("path", &self.0.path)
            .field("agents", &self.state().agents.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// An address as it is written down.
fn address_of(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// What makes two addresses the same place. The names of this machine are one; several agents of a
/// host differ by port or path.
fn place_of(url: &Url) -> String {
    let host = match url.host() {
        Some(url::Host::Domain("localhost")) => "127.0.0.1".to_owned(),
        Some(url::Host::Ipv4(ip)) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        Some(url::Host::Ipv6(ip)) if ip.is_loopback() || ip.is_unspecified() => {
            "127.0.0.1".to_owned()
        }
        Some(host) => host.to_string(),
        None => String::new(),
    };
    let port = url.port_or_known_default().unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/.well-known/agent-card.json").unwrap_or(path);
    format!("{}://{host}:{port}{path}", url.scheme())
}

fn is_at(agent: &KnownAgent, place: &str) -> bool {
    Url::parse(&agent.url).is_ok_and(|url| place_of(&url) == place)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_the_same_however_they_are_written() {
        let place = |text: &str| place_of(&parse_address(text).unwrap());
        assert_eq!(place("localhost:4200"), place("http://127.0.0.1:4200/"));
        assert_eq!(place("http://a.example/"), place("http://a.example:80"));
        assert_ne!(place("http://a.example/one"), place("http://a.example/two"));
        assert_ne!(place("localhost:4200"), place("localhost:4201"));
    }

    #[tokio::test]
    async fn a_broken_file_is_kept_aside_and_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agents.json");
        std::fs::write(&path, "{ not json").unwrap();
        let directory = Directory::open(&path).unwrap();
        assert!(directory.list().is_empty());
        assert!(directory.warnings()[0].contains("broken-"), "{:?}", directory.warnings());
        directory.save().await.unwrap();
        let kept = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let kept: Vec<_> = kept.filter(|file| file.to_string_lossy().contains("broken")).collect();
        assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), "{ not json");
    }

    #[tokio::test]
    async fn one_broken_entry_does_not_cost_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agents.json");
        let text = r#"{"version": 1, "agents": [
            {"id": "a", "name": "A", "url": "http://localhost:1", "from_later": true},
            {"id": "b"}]}"#;
        std::fs::write(&path, text).unwrap();
        let directory = Directory::open(&path).unwrap();
        let ids: Vec<String> = directory.list().into_iter().map(|agent| agent.id).collect();
        assert_eq!(ids, ["a"]);
        assert_eq!(directory.warnings().len(), 2);
    }

    #[test]
    fn a_full_directory_makes_room_only_at_the_cost_of_hearsay() {
        let mut state = State::default();
        for number in 0..MOST_AGENTS {
            let id = format!("a{number}");
            let agent = KnownAgent::new(id.clone(), "A".into(), "http://x".into(), 1);
            state.agents.insert(id, agent);
        }
        assert!(!state.make_room());
        state.agents.get_mut("a7").unwrap().learned_from = Some("a1".into());
        assert!(state.make_room());
        assert!(!state.agents.contains_key("a7"));
    }
}
