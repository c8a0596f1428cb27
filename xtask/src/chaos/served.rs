//! `duo serve` under fire: started, killed, started again, and asked how its tasks stand.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    crew::{Crew, Kind, Process},
    http,
    place::Place,
};

/// A server of the fault run.
pub(super) struct Served {
    /// What its jobs begin with.
    pub(super) letter: char,
    folder: PathBuf,
    log: PathBuf,
    port: u16,
    process: Mutex<Option<Process>>,
}

/// What a start told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Started {
    /// How many tasks it took up in the middle.
    pub(super) resumed: u64,
    pub(super) took: Duration,
}

impl Served {
    /// Configure and start a server whose model is at an address and whose journal is in a file.
    pub(super) fn new(
        place: &Place,
        crew: &Crew,
        letter: char,
        model: std::net::SocketAddr,
        journal: &Path,
    ) -> Result<Self> {
        let folder = place.folder(&format!("serve-{letter}"))?;
        let config = format!(
            "model = 'chaos/chaos'\njournal = '{}'\nagent = 'worker'\n\
             [providers.chaos]\nkind = 'openai'\nbase_url = 'http://{model}/v1'\n\
             idle_timeout_seconds = {}\n\
             [agents.worker]\nbehavior = 'generic'\ntools = ['shell']\n\
             [tools]\nenabled = ['shell']\nshell_timeout_seconds = 30\n\
             [permissions]\nmode = 'full'\n[a2a]\nrefresh_seconds = 0\n",
            journal.display(),
            super::model::PATIENCE_SECONDS,
        );
        fs::write(folder.join("duologue.toml"), config).context("writing the configuration")?;
        let log = folder.join("served.log");
        let mut served = Self { letter, folder, log, port: 0, process: Mutex::default() };
        let (told, _) = served.try_start(place, crew)?;
        let url = told.get("url").and_then(Value::as_str).unwrap_or_default();
        served.port = url.rsplit(':').next().unwrap_or_default().parse().context("the port")?;
        Ok(served)
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What it said on standard error so far, all its processes together.
    pub(super) fn log(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Its process, while there is one.
    pub(super) fn process(&self) -> Option<u32> {
        self.slot().as_ref().map(Process::id)
    }

    /// Kill it with `kill -9`.
    pub(super) fn kill(&self) {
        if let Some(process) = self.slot().take() {
            process.kill();
            process.wait(Duration::from_secs(10));
        }
    }

    /// Stop it as a person does; whether it ended in order.
    pub(super) fn stop(&self) -> bool {
        let Some(process) = self.slot().take() else { return false };
        process.interrupt();
        let ended = process.wait(Duration::from_secs(30));
        process.kill();
        ended.is_some_and(|status| status.success())
    }

    /// Start it again. An error has what it said.
    pub(super) fn start(&self, place: &Place, crew: &Crew) -> Result<Started> {
        let (told, took) = self.try_start(place, crew)?;
        let resumed = told.get("resumed").and_then(Value::as_u64);
        Ok(Started { resumed: resumed.context("it does not say what it took up")?, took })
    }

    fn try_start(&self, place: &Place, crew: &Crew) -> Result<(Value, Duration)> {
        let mut log = File::options().create(true).append(true).open(&self.log)?;
        writeln!(log, "--- started")?;
        let before = self.log().len();
        let port = self.port.to_string();
        let mut command = place.duo(&self.folder, &["serve", "--json", "--port", &port]);
        let began = Instant::now();
        let process = crew.start(Kind::Server, command.stdout(Stdio::piped()).stderr(log))?;
        let line = process.first_line();
        let Ok(told) = serde_json::from_str(&line) else {
            process.kill();
            let log = self.log();
            bail!("{}", log.get(before..).unwrap_or_default().trim());
        };
        *self.slot() = Some(process);
        Ok((told, began.elapsed()))
    }

    /// Go through the journal of a task again: does the agent decide the same? An error has what is
    /// different.
    pub(super) fn replay(&self, place: &Place, task: &str) -> Result<()> {
        let mut command = place.duo(&self.folder, &["sessions", "replay", task, "--quiet"]);
        let output = command.stdin(Stdio::null()).output().context("duo sessions replay")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}", output.status, said.trim());
        Ok(())
    }

    fn slot(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Send a message without waiting for its end; the task that it began.
    pub(super) fn send(&self, text: &str) -> io::Result<Value> {
        let id = format!("m-{:016x}", fastrand::u64(..));
        let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        http::call(self.port, "SendMessage", &params)
            .map(|mut told| told.get_mut("task").map(Value::take).unwrap_or_default())
    }

    /// All its tasks, with their answers.
    pub(super) fn tasks(&self) -> io::Result<Vec<Value>> {
        let mut all = Vec::new();
        let mut token = String::new();
        loop {
            let params = json!({
                "pageSize": 100, "includeArtifacts": true, "historyLength": 1, "pageToken": token,
            });
            let mut page = http::call(self.port, "ListTasks", &params)?;
            if let Some(Value::Array(tasks)) = page.get_mut("tasks").map(Value::take) {
                all.extend(tasks);
            }
            match page.get("nextPageToken").and_then(Value::as_str) {
                Some(next) if !next.is_empty() => token = next.to_owned(),
                _ => return Ok(all),
            }
        }
    }
}
