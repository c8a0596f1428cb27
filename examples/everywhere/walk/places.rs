//! The places, one after the other: begin, kill, take up again, say yes from elsewhere, finish.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{
    NO_MORE, NO_MORE_TIMES, NOT_THIS, Outcome, Place, Waiting, Walk, Worked, page,
    process::Process, terminal::Terminal, text,
};

/// What the clerk is asked for.
const TASK: &str = "Enter the sale of 50 euro.";

/// What a person at a terminal is asked.
const ASKED: &str = "Run it?";

impl Walk {
    /// Work there until the sale is entered.
    pub(super) fn work_at(&mut self, place: Place) -> Outcome<Worked> {
        let waiting = match place {
            Place::Chat => self.chat()?,
            Place::Run => self.run(TASK, &[])?,
            Place::Serve => self.serve()?,
            Place::Mcp => match python() {
                Some(python) => self.mcp(&python)?,
                None => {
                    let why = "the client of others is not here; `cargo xtask setup` installs it";
                    return Ok(Worked::Not(why.to_owned()));
                }
            },
            Place::Bench => self.bench()?,
            Place::Browser => {
                let looked = self.quietly(&["browse"])?;
                if looked.code != Some(0) {
                    return Ok(Worked::Not(looked.text.trim_end().to_owned()));
                }
                self.browse()?
            }
        };
        Ok(Worked::Finished(waiting))
    }

    fn chat(&mut self) -> Outcome<Waiting> {
        let lines = self.ledger().len();
        let mut terminal = self.terminal(&["chat", "--agent", "clerk"])?;
        self.sees(&mut terminal, "❯")?;
        terminal.press(&format!("{TASK}\r"))?;
        self.sees(&mut terminal, ASKED)?;
        let waiting = self.waiting(lines)?;
        terminal.kill()?;
        self.killed();
        let session = waiting.session.clone();
        let mut terminal = self.terminal(&["chat", "--session", &session])?;
        self.sees(&mut terminal, ASKED)?;
        self.approve(&waiting, lines)?;
        self.sees(&mut terminal, "answered elsewhere")?;
        self.settled(&session)?;
        terminal.leaves(self.patience())?;
        Ok(waiting)
    }

    fn run(&mut self, task: &str, settings: &[&str]) -> Outcome<Waiting> {
        let lines = self.ledger().len();
        let words = [&["run", "--agent", "clerk", task], settings].concat();
        let mut terminal = self.terminal(&words)?;
        self.sees(&mut terminal, ASKED)?;
        let waiting = self.waiting(lines)?;
        terminal.kill()?;
        self.killed();
        let session = waiting.session.clone();
        let words = [&["sessions", "resume", &session], settings].concat();
        let mut terminal = self.terminal(&words)?;
        self.sees(&mut terminal, ASKED)?;
        self.approve(&waiting, lines)?;
        self.sees(&mut terminal, "answered elsewhere")?;
        self.settled(&session)?;
        terminal.ends(self.patience())?;
        Ok(waiting)
    }

    /// Another agent is asked, passes it on, and what the clerk needs travels back the same way.
    fn serve(&mut self) -> Outcome<Waiting> {
        let lines = self.ledger().len();
        let folder = self.desk()?;
        let (clerk, url) = self.served("0")?;
        self.typed(&["agents", "add", &url]);
        let added = self.command(&folder, &["agents", "add", &url])?.output()?;
        self.say(String::from_utf8_lossy(&added.stdout).trim_end());
        let mut desk = self.start(&folder, &["serve", "--json", "--port", "0"])?;
        let desk_url = told_url(&desk.prints("\"url\"", self.patience())?)?;
        let sent = self.expect(&["send", &desk_url, TASK], 3, &["--task"])?;
        let mut words = sent.split_whitespace().skip_while(|word| *word != "--task").skip(1);
        let task = words.next().ok_or("no task was told")?.to_owned();
        // Whoever asked the desk answers the desk.
        let waiting = self.waiting_or(lines, |walk, _| {
            walk.duo(&["send", &desk_url, NOT_THIS, "--task", &task]).map(drop)
        })?;
        clerk.kill()?;
        self.killed();
        let port = url.rsplit(':').next().unwrap_or_default().to_owned();
        let (_clerk, _) = self.served(&port)?;
        self.waiting(lines)?;
        let mut ran = self.duo(&["send", &desk_url, "yes", "--task", &task])?;
        for _ in 0..NO_MORE_TIMES {
            if ran.code != Some(3) || self.setup.is_scripted() {
                break;
            }
            ran = self.duo(&["send", &desk_url, NO_MORE, "--task", &task])?;
        }
        match ran.code {
            Some(0) => Ok(waiting),
            code => Err(format!("the desk ended with {code:?}").into()),
        }
    }

    /// The folder of the other agent.
    fn desk(&mut self) -> Outcome<PathBuf> {
        let folder = self.folder.join("desk");
        fs::create_dir_all(&folder)?;
        let settings = include_str!("../shop/desk.toml");
        let model = self.model("desk.yaml");
        let settings = format!("{model}journal = \"journal.db\"\n{settings}");
        fs::write(folder.join("duologue.toml"), settings)?;
        fs::write(folder.join("desk.yaml"), include_str!("../shop/desk.yaml"))?;
        Ok(folder)
    }

    fn served(&mut self, port: &str) -> Outcome<(Process, String)> {
        let folder = self.shop();
        let words = ["serve", "--agent", "clerk", "--json", "--port", port];
        let mut clerk = self.start(&folder, &words)?;
        let url = told_url(&clerk.prints("\"url\"", self.patience())?)?;
        Ok((clerk, url))
    }

    /// A client whose person only looks on: the call is held until somebody else says yes.
    fn mcp(&mut self, python: &Path) -> Outcome<Waiting> {
        let lines = self.ledger().len();
        let (server, url) = self.offered()?;
        let mut client = self.client(python, &url)?;
        client.prints("asked:", self.patience())?;
        let waiting = self.waiting(lines)?;
        server.kill()?;
        client.kill()?;
        self.killed();
        let (_server, url) = self.offered()?;
        let mut client = self.client(python, &url)?;
        client.prints("asked:", self.patience())?;
        self.approve(&waiting, lines)?;
        self.settled(&waiting.session)?;
        client.prints("answer:", self.patience())?;
        let said = client.ends(self.patience())?;
        self.say(said.trim_end());
        Ok(waiting)
    }

    fn offered(&mut self) -> Outcome<(Process, String)> {
        let folder = self.shop();
        let words = ["mcp", "serve", "--offer", "clerk", "--http", "127.0.0.1:0"];
        let mut server = self.start(&folder, &words)?;
        let url = server.prints("http://", self.patience())?;
        Ok((server, url))
    }

    fn client(&mut self, python: &Path, url: &str) -> Outcome<Process> {
        self.say(&format!("\n$ python client.py {url} order-17 '{TASK}'"));
        let mut client = Command::new(python);
        client.args(["client.py", url, "order-17", TASK]).current_dir(self.shop());
        Process::start(client)
    }

    fn bench(&mut self) -> Outcome<Waiting> {
        let lines = self.ledger().len();
        let folder = self.shop();
        let Benchmark { task, customer } = self.benchmark();
        let mut words = vec!["bench", "run", "--agent", "clerk", "--own-tools"];
        words.extend(["--task-ids", task, "--save-to", "bench.json"]);
        words.extend(customer.iter().flat_map(|customer| ["--user-llm", customer]));
        let mut run = self.start(&folder, &words)?;
        run.prints("needs an approval", self.patience())?;
        let waiting = self.waiting(lines)?;
        run.kill()?;
        self.killed();
        let mut run = self.start(&folder, &words)?;
        run.prints("needs an approval", self.patience())?;
        self.approve(&waiting, lines)?;
        self.settled(&waiting.session)?;
        let said = run.ends(self.patience())?;
        self.say(said.trim_end());
        // The bench judges by its own task, and so does whoever reads the session later.
        let judge = ["bench", "judge", &waiting.session, "--task", task];
        let (told, judged) = (said.contains("mean reward 1.000"), self.duo(&judge)?);
        if !told || !judged.text.contains("✓ 1.00") {
            return Err("the customer was not served".into());
        }
        Ok(waiting)
    }

    /// A model simulates the customer of the task. The default one is too small to be a customer, or
    /// to book what one wants: there a script asks for the sale alone, in a task in which nothing
    /// may be booked.
    fn benchmark(&self) -> Benchmark {
        match &self.setup.model {
            None => Benchmark { task: "too_late_to_cancel", customer: Some("script:regular.yaml") },
            Some(_) if self.setup.is_scripted() => {
                Benchmark { task: "book_tune_up", customer: Some("script:customer.yaml") }
            }
            Some(_) => Benchmark { task: "book_tune_up", customer: None },
        }
    }

    fn browse(&mut self) -> Outcome<Waiting> {
        let address = page::serve()?;
        let task = format!(
            "Call clock__current_time, open http://{address}/sale with navigate, read it with \
             snapshot, then enter the sale that stands there."
        );
        let allow = format!("browser.allow=[\"{address}\"]");
        self.run(&task, &["--set", &allow])
    }

    fn terminal(&mut self, words: &[&str]) -> Outcome<Terminal> {
        self.typed(words);
        let command = self.command(&self.shop(), words)?;
        Terminal::open(&command, self.folder.join("number"))
    }

    /// Wait for a text, and show what came with it.
    fn sees(&mut self, terminal: &mut Terminal, text: &str) -> Outcome<()> {
        let shown = terminal.sees(text, self.patience())?;
        self.say(&shown);
        Ok(())
    }

    fn start(&mut self, folder: &Path, words: &[&str]) -> Outcome<Process> {
        self.typed(words);
        Process::start(self.command(folder, words)?)
    }

    fn killed(&mut self) {
        self.say("\n(kill -9, while it waits for a yes)");
    }
}

/// What the clerk does on a benchmark, and who its customer is.
struct Benchmark {
    task: &'static str,
    customer: Option<&'static str>,
}

/// Where a server says that it listens.
fn told_url(line: &str) -> Outcome<String> {
    let told: Value = serde_json::from_str(line)?;
    Ok(text(&told, "url")?.to_owned())
}

/// A Python that has the official client, as `cargo xtask setup` installs it.
fn python() -> Option<PathBuf> {
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let root = std::env::var_os("DUOLOGUE_MCP_TOOLS").map(PathBuf::from);
    let near = ["../target/tools/mcp", "../../target/tools/mcp"];
    let near = near.iter().map(|path| PathBuf::from(usual).join(path));
    let found = root.into_iter().chain(near).map(|root| root.join("py/bin/python"));
    found.into_iter().find(|python| python.exists())
}
