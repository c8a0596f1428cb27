//! A hand that calls tools, and a server of pages on loopback that counts who asked for what.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use duologue_browser::{Browser, BrowserConfig, Launch, Sites, Source, find_browser};
use duologue_core::{
    CallId, Content, FileSource, Part, ResultReader, SessionId, Tool, ToolContext, Toolbox,
};
use duologue_tools::Workspace;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// Whether there is a browser. Where the test command has set one up, its absence is a failure.
pub fn has_browser() -> bool {
    match find_browser(None) {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os("DUOLOGUE_BROWSER").is_none(), "{error}");
            eprintln!("SKIPPED: {error}; `cargo xtask setup` installs one");
            false
        }
    }
}

/// Somebody who calls tools.
pub struct Hand {
    browser: Browser,
    pub tools: Toolbox,
    pub session: SessionId,
}

#[derive(Debug)]
struct NoResults;

impl ResultReader for NoResults {
    fn result_text(&self, _: CallId) -> BoxFuture<'static, Option<String>> {
        Box::pin(async { None })
    }
}

pub fn config(sites: &[String]) -> BrowserConfig {
    BrowserConfig {
        source: Source::Launch(Launch { size: (1000, 700), ..Launch::default() }),
        sites: Sites::new(sites).unwrap(),
        settle: Duration::from_secs(6),
        ..BrowserConfig::default()
    }
}

impl Hand {
    pub fn new(mut config: BrowserConfig) -> Self {
        let session = SessionId::random();
        // A switch that nobody knows, to find the processes by.
        if let Source::Launch(launch) = &mut config.source {
            launch.switches.push(format!("--DUOLOGUE_TEST={session}"));
        }
        let browser = Browser::new(config);
        let tools = browser.tools().into_iter().fold(Toolbox::new(), Toolbox::with_shared);
        Self { browser, tools, session }
    }

    /// One that may go to a server's pages.
    pub fn at(server: &Server) -> Self {
        Self::new(config(&server.sites()))
    }

    /// One with a folder for files.
    pub fn with_files(server: &Server, folder: &std::path::Path) -> Self {
        let workspace = Some(Workspace::open(folder).unwrap());
        Self::new(BrowserConfig { workspace, ..config(&server.sites()) })
    }

    /// The processes of its browser, which work in a profile folder of this process's making.
    pub fn processes(&self) -> Vec<String> {
        let mine = format!("DUOLOGUE_TEST={}", self.session);
        let all = std::fs::read_dir("/proc").unwrap();
        all.filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.parse::<u32>().ok()?;
            let line = std::fs::read(format!("/proc/{name}/cmdline")).ok()?;
            String::from_utf8_lossy(&line).contains(&mine).then_some(name)
        })
        .collect()
    }

    /// The processes below its browser that draw pages.
    pub fn renderers(&self) -> Vec<String> {
        let parent = |process: &str| -> Option<String> {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            let (_, fields) = stat.rsplit_once(')')?;
            fields.split_whitespace().nth(1).map(str::to_owned)
        };
        let mine = self.processes();
        let is_below = |process: &str| {
            std::iter::successors(parent(process), |above| parent(above))
                .any(|above| mine.contains(&above))
        };
        let all = std::fs::read_dir("/proc").unwrap();
        all.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| {
                let line = std::fs::read(format!("/proc/{name}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains("--type=renderer") && is_below(name)
            })
            .collect()
    }

    /// End its browser.
    pub async fn close(&self) {
        self.browser.close(&self.session).await;
    }

    pub fn tool(&self, name: &str) -> &Arc<dyn Tool> {
        self.tools.get(name).unwrap_or_else(|| panic!("no tool {name}"))
    }

    pub async fn parts(&self, name: &str, arguments: Value) -> Result<Vec<Part>, String> {
        let tool = self.tool(name);
        tool.check(&arguments)?;
        let context = ToolContext {
            session: self.session.clone(),
            call_id: CallId::from("call"),
            idempotency_key: String::new(),
            cancel: tokio_util::sync::CancellationToken::new(),
            results: Arc::new(NoResults),
            questions: duologue_core::Questions::default(),
        };
        let Content(parts) = tool.call(arguments, context).await.map_err(|error| error.0)?;
        Ok(parts)
    }

    /// Call a tool; its text, or its error.
    pub async fn try_call(&self, name: &str, arguments: Value) -> Result<String, String> {
        let parts = self.parts(name, arguments).await?;
        match parts.into_iter().next() {
            Some(Part::Text { text }) => Ok(text),
            other => panic!("{name} gave {other:?}"),
        }
    }

    pub async fn call(&self, name: &str, arguments: Value) -> String {
        match self.try_call(name, arguments.clone()).await {
            Ok(text) => text,
            Err(error) => panic!("{name} {arguments}: {error}"),
        }
    }

    pub async fn snapshot(&self) -> String {
        self.call("snapshot", serde_json::json!({})).await
    }

    pub async fn open(&self, url: &str) -> String {
        self.call("navigate", serde_json::json!({"url": url})).await;
        self.snapshot().await
    }

    pub async fn click(&self, reference: &str) -> String {
        self.call("click", serde_json::json!({"ref": reference})).await
    }
}

/// The reference in the first line that has a text, such as `f1:e7`.
pub fn reference(snapshot: &str, what: &str) -> String {
    find(snapshot, what).unwrap_or_else(|| panic!("no {what:?} in\n{snapshot}"))
}

pub fn find(snapshot: &str, what: &str) -> Option<String> {
    // The last reference before the text, on the first line that has one.
    snapshot.lines().find_map(|line| {
        let at = line.find(what)?;
        references(&line[..at]).last().cloned()
    })
}

pub fn references(text: &str) -> Vec<String> {
    let pattern = regex::Regex::new(r"f\d+:e\d+").unwrap();
    pattern.find_iter(text).map(|found| found.as_str().to_owned()).collect()
}

/// What a request was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub body: String,
}

type Reply = (String, String, Vec<u8>);

/// A server of pages.
pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// One that serves these paths as HTML. `{here}` and `{there}` stand for two origins of it.
    pub async fn with(pages: &[(&str, &str)]) -> Self {
        let pages: HashMap<String, String> =
            pages.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self::of(move |asked, port| {
            let path = asked.path.split('?').next().unwrap_or_default();
            let page = pages.get(path)?;
            let text = page
                .replace("{here}", &format!("http://127.0.0.1:{port}"))
                .replace("{there}", &format!("http://localhost:{port}"));
            Some(("text/html; charset=utf-8".into(), String::new(), text.into_bytes()))
        })
        .await
    }

    pub async fn of(reply: impl Fn(&Asked, u16) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let seen = Arc::clone(&asked);
        let reply = Arc::new(reply);
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let (reply, seen) = (Arc::clone(&reply), Arc::clone(&seen));
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let mut buffer = vec![0; 64 << 10];
                    let (head, length) = loop {
                        let Ok(read) = stream.read(&mut buffer).await else { return };
                        if read == 0 {
                            return;
                        }
                        bytes.extend_from_slice(&buffer[..read]);
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        if let Some((head, _)) = text.split_once("\r\n\r\n") {
                            let length = head
                                .lines()
                                .find_map(|line| {
                                    line.to_lowercase()
                                        .strip_prefix("content-length:")
                                        .and_then(|n| n.trim().parse::<usize>().ok())
                                })
                                .unwrap_or(0);
                            break (head.to_owned(), length);
                        }
                    };
                    while bytes.len() < head.len() + 4 + length {
                        let Ok(read) = stream.read(&mut buffer).await else { return };
                        if read == 0 {
                            break;
                        }
                        bytes.extend_from_slice(&buffer[..read]);
                    }
                    let body = String::from_utf8_lossy(&bytes[head.len() + 4..]).into_owned();
                    let mut words = head.split_whitespace();
                    let request = Asked {
                        method: words.next().unwrap_or_default().to_owned(),
                        path: words.next().unwrap_or_default().to_owned(),
                        body,
                    };
                    if request.path.starts_with("/slow") {
                        tokio::time::sleep(Duration::from_millis(400)).await;
                    }
                    let answer = reply(&request, address.port());
                    if request.path != "/favicon.ico" {
                        seen.lock().unwrap().push(request);
                    }
                    let (status, (kind, more, content)) = match answer {
                        Some(found) => ("200 OK", found),
                        None => (
                            "404 Not Found",
                            ("text/plain".into(), String::new(), b"nothing".to_vec()),
                        ),
                    };
                    let status = if more.starts_with("Location") { "302 Found" } else { status };
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
                         Connection: close\r\n{more}\r\n",
                        content.len()
                    );
                    let _ = stream.write_all(head.as_bytes()).await;
                    let _ = stream.write_all(&content).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, asked, task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn sites(&self) -> Vec<String> {
        vec![self.address.to_string(), format!("localhost:{}", self.address.port())]
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// The bytes of a picture.
pub fn bytes_of(part: &Part) -> Vec<u8> {
    use base64::Engine as _;
    let Part::File { source: FileSource::Base64(data), .. } = part else { panic!("{part:?}") };
    base64::engine::general_purpose::STANDARD.decode(data).unwrap()
}
