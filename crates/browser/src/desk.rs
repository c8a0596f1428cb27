//! A desk: one browser at work for one session, with its tabs and what is known of them.
//!
//! What the browser reports is folded into [`State`] as it comes (`desk/events.rs`); whoever waits
//! for something looks at the state again after every change.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

pub(crate) use self::{
    settle::Rest,
    state::{Dialog, Download, DownloadState, Frame, State, Tab, TabId},
};
use crate::{
    cdp::{CdpSession, Connection},
    chromium::{Chromium, Launch, Window},
    error::{BrowserError, Result},
    sites::Sites,
    snapshot::refs::{Known, Reference},
};

mod events;
mod guard;
mod settle;
mod state;
mod targets;

/// How long a new tab may take to be ready.
const READY: Duration = Duration::from_secs(20);

/// Where the browser comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It is started here, and ended with the session.
    Launch(Launch),
    /// It runs already, at this address (`http://127.0.0.1:9222`, or the `ws://` address itself).
    /// It is left running.
    Attach(String),
}

impl Default for Source {
    fn default() -> Self {
        Self::Launch(Launch::default())
    }
}

/// One browser at work.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) connection: Connection,
    pub(crate) sites: Sites,
    pub(crate) settle: Duration,
    view: Option<(u32, u32)>,
    state: Mutex<State>,
    version: watch::Sender<u64>,
    chromium: Mutex<Option<Chromium>>,
    /// Downloads arrive here, and files wait here to be uploaded.
    folder: TempDir,
    /// Where the open tabs are written down, to be opened again after a crash.
    record: Option<PathBuf>,
    attached: bool,
}

/// What a desk is set up with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    pub(crate) source: Source,
    pub(crate) sites: Sites,
    pub(crate) settle: Duration,
    pub(crate) record: Option<PathBuf>,
    /// The last number that was given to a document before.
    pub(crate) last_document: u32,
}

/// What outlives the process: written after every call, read when the session comes back.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    tabs: Vec<String>,
    last_document: u32,
}

impl Desk {
    /// Start or find a browser, and open the tabs that were open before a crash, or an empty one.
    pub(crate) async fn open(setting: Setting) -> Result<Arc<Self>> {
        let (chromium, address, view, attached) = match &setting.source {
            Source::Launch(launch) => {
                let chromium = Chromium::start(launch).await?;
                let address = chromium.address.clone();
                let view = (launch.window == Window::Hidden).then_some(launch.size);
                (Some(chromium), address, view, false)
            }
            Source::Attach(address) => (None, websocket_of(address).await?, None, true),
        };
        let (connection, events) = Connection::open(&address).await?;
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("duologue-desk-");
        // What belongs to a browser of its own goes with it, also when this process is killed.
        let folder = match &chromium {
            Some(chromium) => builder.tempdir_in(chromium.folder()),
            None => builder.tempdir(),
        };
        let folder = folder.map_err(|error| BrowserError::NotStarted(error.to_string()))?;
        let desk = Arc::new(Self {
            connection,
            sites: setting.sites,
            settle: setting.settle,
            view,
            state: Mutex::new(State::default()),
            version: watch::Sender::new(0),
            chromium: Mutex::new(chromium),
            folder,
            record: setting.record,
            attached,
        });
        let before = desk.recorded();
        // References of the time before stay stale.
        desk.state().last_document = before.last_document.max(setting.last_document);
        tokio::spawn(events::fold(Arc::downgrade(&desk), events));
        desk.begin(before).await?;
        Ok(desk)
    }

    async fn begin(self: &Arc<Self>, before: Record) -> Result<()> {
        let downloads = self.folder.path().join("downloads");
        std::fs::create_dir_all(&downloads)
            .map_err(|error| BrowserError::NotStarted(error.to_string()))?;
        let params = json!({
            "behavior": "allowAndName",
            "downloadPath": downloads,
            "eventsEnabled": true,
        });
        self.connection.run(None, "Browser.setDownloadBehavior", params).await?;
        let params = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        self.connection.run(None, "Target.setAutoAttach", params).await?;
        if self.attached {
            self.new_tab().await?;
        } else {
            // A browser starts with one tab.
            let ready =
                self.until(READY, |state| state.tabs.iter().any(|tab| tab.ready).then_some(()));
            if ready.await.is_none() {
                self.new_tab().await?;
            }
        }
        for (at, address) in before.tabs.iter().enumerate() {
            if at > 0 {
                self.new_tab().await?;
            }
            // Somebody permitted it when it was first opened.
            self.state().permits.visit(address);
            let _ = self.navigate(address).await;
        }
        if !before.tabs.is_empty() {
            let notice = "the browser was started again and the open pages were loaded anew; what \
                          was entered in them is lost, and older references are stale";
            self.state().notices.push(notice.into());
        }
        Ok(())
    }

    /// What is known now.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tell those who wait that something changed.
    fn touch(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Wait until `look` finds something, looking again after every change; `None` when the time
    /// is over.
    pub(crate) async fn until<T>(
        &self,
        limit: Duration,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut version = self.version.subscribe();
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            if let Some(found) = look(&mut self.state()) {
                return Some(found);
            }
            tokio::select! {
                changed = version.changed() => changed.ok()?,
                () = tokio::time::sleep_until(deadline) => return look(&mut self.state()),
            }
        }
    }

    /// Why the browser can no longer be used, if it cannot.
    pub(crate) fn gone(&self) -> Option<String> {
        let mut chromium = self.chromium.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = chromium.as_mut().and_then(Chromium::ended);
        ended.or_else(|| self.connection.closed())
    }

    /// The tab that tools work on, with its session. Fails while a dialog is open, since the page
    /// stands still then.
    pub(crate) fn current(&self) -> Result<(TabId, CdpSession)> {
        let state = self.state();
        let tab = state.current_tab()?;
        if let Some(dialog) = &tab.dialog {
            return Err(BrowserError::cannot(format!(
                "{dialog} is open and holds the page; answer it with handle_dialog first"
            )));
        }
        if tab.crashed {
            return Err(BrowserError::cannot(
                "the page crashed; navigate loads one again, tab_close closes it",
            ));
        }
        Ok((tab.id, tab.session.clone()))
    }

    /// Open an empty tab and make it the current one.
    pub(crate) async fn new_tab(&self) -> Result<TabId> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created {
            target_id: String,
        }
        self.state().expecting += 1;
        let params = json!({"url": "about:blank"});
        let created = self.connection.call::<Created>(None, "Target.createTarget", params).await;
        let ready = match created {
            Ok(created) => self
                .until(READY, |state| {
                    let tab = state.tabs.iter().find(|tab| tab.target == created.target_id)?;
                    tab.ready.then_some(tab.id)
                })
                .await
                .ok_or_else(|| BrowserError::cannot("the new tab did not come up")),
            Err(error) => Err(error),
        };
        let mut state = self.state();
        state.expecting = state.expecting.saturating_sub(1);
        state.current = ready.clone()?;
        drop(state);
        self.touch();
        ready
    }

    /// Send a command to the current tab.
    pub(crate) async fn call<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T> {
        let (_, session) = self.current()?;
        self.connection.call(Some(&session), method, params).await
    }

    /// Find what a reference means, or say why it means nothing any more.
    pub(crate) fn look_up(&self, reference: Reference) -> Result<Target> {
        let state = self.state();
        let tab = state.current_tab()?;
        let frame = tab.frames.values().find(|frame| frame.number == reference.document);
        let Some(frame) = frame else {
            let elsewhere = state
                .tabs
                .iter()
                .find(|tab| tab.frames.values().any(|frame| frame.number == reference.document));
            return Err(BrowserError::cannot(match elsewhere {
                Some(tab) => format!(
                    "{reference} is in another tab; switch to {} with tab_switch first",
                    tab.id
                ),
                None if reference.document == 0 || reference.document > state.last_document => {
                    format!("there is no {reference}; take a snapshot to see what there is")
                }
                None => format!(
                    "{reference} is stale: the page that it was on is gone (it navigated or was \
                     closed); take a new snapshot"
                ),
            }));
        };
        let Some(known) = frame.refs.get(reference.node) else {
            return Err(BrowserError::cannot(format!(
                "there is no {reference}; take a snapshot to see what there is"
            )));
        };
        Ok(Target {
            reference,
            known: known.clone(),
            frame: frame.id.clone(),
            session: frame.session.clone(),
            tab: tab.id,
        })
    }

    /// An execution context in a frame that scripts of the page cannot reach into.
    pub(crate) async fn world(&self, frame: &str) -> Result<(CdpSession, i64)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct World {
            execution_context_id: i64,
        }
        let (session, number, known) = {
            let state = self.state();
            let found = state
                .frame(frame)
                .ok_or_else(|| BrowserError::cannot("the frame is gone; take a new snapshot"))?;
            (found.session.clone(), found.number, found.world)
        };
        if let Some(world) = known {
            return Ok((session, world));
        }
        let params = json!({"frameId": frame, "worldName": "duologue"});
        let world: World =
            self.connection.call(Some(&session), "Page.createIsolatedWorld", params).await?;
        let mut state = self.state();
        if let Some(found) = state.frame_mut(frame)
            && found.number == number
        {
            found.world = Some(world.execution_context_id);
        }
        Ok((session, world.execution_context_id))
    }

    /// The folder of downloads that were not kept yet.
    pub(crate) fn downloads(&self) -> PathBuf {
        self.folder.path().join("downloads")
    }

    /// A folder for files on their way to a page.
    pub(crate) fn uploads(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn view(&self) -> Option<(u32, u32)> {
        self.view
    }

    /// What was open when the session last ran.
    fn recorded(&self) -> Record {
        let text = self.record.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Write down which addresses are open, the current one last.
    pub(crate) fn keep_record(&self) {
        let Some(file) = &self.record else { return };
        let mut open: Vec<(bool, String)> = {
            let state = self.state();
            let current = state.current;
            let open = state.tabs.iter().map(|tab| (tab.id == current, tab.url().to_owned()));
            open.filter(|(_, url)| url.starts_with("http") || url.starts_with("file")).collect()
        };
        open.sort_by_key(|(current, _)| *current);
        let tabs = open.into_iter().map(|(_, url)| url).collect();
        let record = Record { tabs, last_document: self.state().last_document };
        if let Ok(text) = serde_json::to_string(&record) {
            let _ = write_private(file, text.as_bytes());
        }
    }

    /// A weak hold, for tasks that must not keep the browser open.
    pub(crate) fn weak(self: &Arc<Self>) -> Weak<Self> {
        Arc::downgrade(self)
    }

    /// Say goodbye: a browser that is ours is ended, tabs in somebody else's are closed.
    pub(crate) async fn close(&self) {
        if self.attached {
            let targets: Vec<String> =
                self.state().tabs.iter().map(|tab| tab.target.clone()).collect();
            for target in targets {
                let params = json!({"targetId": target});
                let _ = self.connection.run(None, "Target.closeTarget", params).await;
            }
        }
        if let Some(file) = &self.record {
            let _ = std::fs::remove_file(file);
        }
        let chromium = self.chromium.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = tokio::task::spawn_blocking(move || drop(chromium)).await;
    }
}

/// What a reference points at.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) reference: Reference,
    pub(crate) known: Known,
    pub(crate) frame: String,
    pub(crate) session: CdpSession,
    pub(crate) tab: TabId,
}

/// Write a file that only its owner can read: addresses may hold what others should not see.
fn write_private(file: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let next = file.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&next)?.write_all(content)?;
    std::fs::rename(next, file)
}

/// The WebSocket address of a running browser.
async fn websocket_of(address: &str) -> Result<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    if address.starts_with("ws://") {
        return Ok(address.to_owned());
    }
    let wrong = |why: String| {
        BrowserError::NotStarted(format!(
            "cannot attach to {address}: {why}; start the browser with \
             --remote-debugging-port=9222 and give http://127.0.0.1:9222"
        ))
    };
    let url = url::Url::parse(address).map_err(|error| wrong(error.to_string()))?;
    let host = url.host_str().unwrap_or("127.0.0.1");
    let port = url.port_or_known_default().unwrap_or(9222);
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect((host, port)).await?;
        let request = format!(
            "GET /json/version HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        let mut chunk = [0; 4096];
        // The browser keeps the line open, so its answer ends where the object does.
        while answer.len() < 1 << 20 && !is_whole(&answer) {
            let read = stream.read(&mut chunk).await?;
            if read == 0 {
                break;
            }
            answer.extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
        std::io::Result::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(Duration::from_secs(10), ask)
        .await
        .map_err(|_| wrong("it does not answer".into()))?
        .map_err(|error| wrong(error.to_string()))?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let begin = body.find('{').unwrap_or(0);
    let end = body.rfind('}').map_or(0, |at| at + 1);
    let found: Option<Value> =
        body.get(begin..end).and_then(|json| serde_json::from_str(json).ok());
    let found = found.as_ref().and_then(|value| value.get("webSocketDebuggerUrl")?.as_str());
    found.map(str::to_owned).ok_or_else(|| wrong("it is no browser with DevTools".into()))
}

/// Whether an answer has its head and an object behind it.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.trim());
    body.is_some_and(|body| body.starts_with('{') && body.ends_with('}'))
}

/// When a request began, for those that never end.
pub(crate) type Since = Instant;

/// Requests under way, by their ids.
pub(crate) type Requests = HashMap<String, Since>;
