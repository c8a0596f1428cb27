//! `duo run` with a browser, killed and resumed: no process and no profile stays behind.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::ExitStatus,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use serde_json::Value;

use super::{
    Run,
    crew::{Kind, kill_stranger, was_killed, with_words},
    http, is_interrupted,
};

/// How long one may take.
const LONGEST: Duration = Duration::from_secs(180);
/// How long what was left behind may take to go.
const CLEARED: Duration = Duration::from_secs(20);

const ANSWER: &str = "Order 17 costs 42 euro.";

const SCRIPT: &str = r#"
rules:
  - when: '/visit (\S+)/'
    from: user
    calls: [{ name: navigate, arguments: { url: '$1' } }]
  - when: ''
    tool: navigate
    calls: [{ name: read_markdown, arguments: {} }]
    delay_ms: 300
  - when: '/Order (\d+) costs (\d+) euro/'
    tool: read_markdown
    text: 'Order $1 costs $2 euro.'
    delay_ms: 300
  - when: ''
    tool: read_markdown
    text: 'The page does not say.'
"#;

/// A browser's user: where it works, and the page that it visits.
pub(super) struct Surfer {
    folder: PathBuf,
    temporary: PathBuf,
    page: String,
}

/// What came of a run.
struct Ran {
    status: ExitStatus,
    out: String,
    err: String,
}

impl Surfer {
    pub(super) fn new(run: &Run) -> Result<Self> {
        let folder = run.place.folder("surf")?;
        // The path of a socket in it must be short.
        let temporary = run.place.folder("t")?;
        let address = http::serve(|request, mut stream| {
            // Slow, so that there is a middle of the visit.
            thread::sleep(Duration::from_millis(300));
            let page = match request.path.as_str() {
                "/" => "<title>Orders</title><p>Order 17 costs 42 euro</p>",
                _ => "",
            };
            http::answer(&mut stream, "200 OK", "text/html", page);
        })
        .context("serving a page")?;
        fs::write(folder.join("script.yaml"), SCRIPT)?;
        let config = format!(
            "model = 'script:script.yaml'\njournal = 'journal.db'\nagent = 'surfer'\n\
             [agents.surfer]\nbehavior = 'generic'\ntools = ['navigate', 'read_markdown']\n\
             [permissions]\nmode = 'full'\n[browser]\nallow = ['{address}']\nscreenshots = false\n\
             state = 'state'\n"
        );
        fs::write(folder.join("duologue.toml"), config)?;
        Ok(Self { folder, temporary, page: format!("http://{address}/") })
    }

    /// Visit the page until the fault run is over; how often the answer was found.
    pub(super) fn work(&self, run: &Run) -> usize {
        let mut found = 0;
        while !run.is_over() {
            let kills = run.kills_of(Kind::Chromium);
            match self.visit(run) {
                _ if is_interrupted() => {}
                Ok(ran) if ran.out.trim() == ANSWER => found += 1,
                // Without its browser it may fail, but not without a word.
                Ok(ran) if run.kills_of(Kind::Chromium) > kills && told(&ran) => {}
                Ok(ran) => run.wrong(format!(
                    "duo run with a browser ended with {}: {:?} {:?}",
                    ran.status, ran.out, ran.err
                )),
                Err(error) => run.wrong(format!("duo run with a browser: {error:#}")),
            }
            self.expect_clear(run);
            run.pause(Duration::from_millis(500));
        }
        found
    }

    /// One visit, resumed as often as it is killed.
    fn visit(&self, run: &Run) -> Result<Ran> {
        let task = format!("Please visit {} and tell me the price.", self.page);
        let before = self.newest(run)?;
        let mut ran = self.duo(run, &["run", &task])?;
        while was_killed(ran.status) && !is_interrupted() {
            self.expect_clear(run);
            let newest = self.newest(run)?;
            // Killed before there was a session: begun again, as a person would.
            ran = match newest {
                Some(id) if Some(&id) != before.as_ref() => {
                    self.duo(run, &["sessions", "resume", &id])?
                }
                _ => self.duo(run, &["run", &task])?,
            };
        }
        Ok(ran)
    }

    fn duo(&self, run: &Run, args: &[&str]) -> Result<Ran> {
        let (out, err) = (self.folder.join("run.out"), self.folder.join("run.err"));
        let mut command = run.place.duo(&self.folder, args);
        command.env("TMPDIR", &self.temporary);
        command.stdout(File::create(&out)?).stderr(File::create(&err)?);
        let process = run.crew.start(Kind::Surfer, &mut command).context("starting it")?;
        let Some(status) = process.wait(LONGEST) else {
            process.kill();
            anyhow::bail!("it hangs; so far it said {:?}", fs::read_to_string(&err)?);
        };
        Ok(Ran { status, out: fs::read_to_string(&out)?, err: fs::read_to_string(&err)? })
    }

    /// The session that was used last.
    fn newest(&self, run: &Run) -> Result<Option<String>> {
        let mut command = run.place.duo(&self.folder, &["sessions", "list", "--json", "-n", "1"]);
        let output = command.output().context("listing sessions")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        let first = line.lines().next().map(serde_json::from_str::<Value>).transpose()?;
        Ok(first.and_then(|first| Some(first.get("id")?.as_str()?.to_owned())))
    }

    /// What a run left behind must go by itself.
    fn expect_clear(&self, run: &Run) {
        let began = Instant::now();
        loop {
            let (processes, folders) = (self.browsers().len(), profiles(&self.temporary));
            if processes == 0 && folders == 0 {
                return;
            }
            if began.elapsed() > CLEARED {
                let what =
                    format!("{processes} processes of a browser and {folders} profiles stay");
                run.wrong(what);
                self.clear();
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Kill one of Chromium's processes, if there is one.
    pub(super) fn kill_chromium(&self, rng: &mut Rng) -> bool {
        rng.choice(&self.browsers()).is_some_and(|id| kill_stranger(*id))
    }

    /// End every browser of ours.
    pub(super) fn clear(&self) {
        for id in self.browsers() {
            kill_stranger(id);
        }
        let _ = fs::remove_dir_all(&self.temporary);
        let _ = fs::create_dir_all(&self.temporary);
    }

    fn browsers(&self) -> Vec<nix::unistd::Pid> {
        let profile = format!("--user-data-dir={}", self.temporary.display());
        with_words(&[&profile])
    }
}

fn told(ran: &Ran) -> bool {
    !ran.out.trim().is_empty() || !ran.err.trim().is_empty()
}

fn profiles(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, |all| all.count())
}
