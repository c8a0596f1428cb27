//! The walk: from place to place with the same agent. On a script everything is also checked.

mod page;
mod places;
mod process;
mod terminal;

use std::{
    error::Error,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

/// What came of something, with an error that tells a person what went wrong.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// Where an agent can work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `duo chat`.
    Chat,
    /// `duo run`.
    Run,
    /// `duo serve`, and another agent that sends it what it was asked.
    Serve,
    /// `duo mcp serve`, and a client of other makers.
    Mcp,
    /// `duo bench run`.
    Bench,
    /// `duo run`, with a page in a browser.
    Browser,
}

impl Place {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Chat, Self::Run, Self::Serve, Self::Mcp, Self::Bench, Self::Browser];

    /// The place of this name.
    #[allow(dead_code, reason = "the command line names places, the test visits all")]
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|place| place.name() == name);
        let names = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("there is no place {name:?}; there are {}", names()))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Run => "run",
            Self::Serve => "serve",
            Self::Mcp => "mcp",
            Self::Bench => "bench",
            Self::Browser => "browser",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Chat => "In a chat",
            Self::Run => "For one task",
            Self::Serve => "Served to another agent, over A2A",
            Self::Mcp => "As a tool of a foreign client, over MCP",
            Self::Bench => "On a benchmark, beside a simulated customer",
            Self::Browser => "With a browser, on a page",
        }
    }
}

/// What a walk is made with.
pub(crate) struct Setup {
    /// The program.
    pub(crate) duo: PathBuf,
    /// The model of everybody; `None` is the program's default, `scripted` a script for each.
    pub(crate) model: Option<String>,
    /// Where the walk goes.
    pub(crate) places: Vec<Place>,
}

impl Setup {
    /// Everywhere, with scripts instead of a model.
    pub(crate) fn scripted(duo: PathBuf) -> Self {
        Self { duo, model: Some("scripted".to_owned()), places: Place::ALL.to_vec() }
    }

    fn is_scripted(&self) -> bool {
        self.model.as_deref() == Some("scripted")
    }
}

/// What the clerk and everybody else need, as files.
const FILES: [(&str, &str); 5] = [
    ("script.yaml", include_str!("../shop/script.yaml")),
    ("customer.yaml", include_str!("../shop/customer.yaml")),
    ("regular.yaml", include_str!("../shop/regular.yaml")),
    ("task.json", include_str!("../shop/task.json")),
    ("client.py", include_str!("../client.py")),
];

/// What a model hears that wants to run something else.
const NOT_THIS: &str = "Not this command. The time is given by the tool clock__current_time. The sale is \
                        entered by the tool shell with: echo 'sale of N euro' >> ledger.txt, with \
                        the amount for N.";

/// What it hears when the sale is entered and it wants to go on.
const NO_MORE: &str = "The sale is entered. Nothing else is to be done.";

/// How often another agent is told so.
const NO_MORE_TIMES: usize = 5;

/// The entry, which nothing of the walk changes.
const ENTRY: &str = include_str!("../shop/duologue.toml");

/// One agent on its way. Everything that was started ends with it.
pub(crate) struct Walk {
    setup: Setup,
    folder: PathBuf,
    tell: Box<dyn FnMut(&str)>,
    /// The calls that were answered, each once.
    answered: Vec<String>,
}

/// A call that waits for a yes.
struct Waiting {
    session: String,
    call: String,
    /// The entry that asks.
    asked_at: u64,
}

/// What came of a place.
enum Visited {
    /// The session that was held there.
    Session(String),
    /// Why it was not visited.
    LeftOut(String),
}

/// What came of the work there.
enum Worked {
    /// It was done, after the call had waited.
    Finished(Waiting),
    /// Something of others is missing.
    Not(String),
}

/// What a command printed, and how it ended.
struct Ran {
    text: String,
    code: Option<i32>,
}

impl Walk {
    /// Put everything in its place.
    pub(crate) fn begin(setup: Setup, tell: impl FnMut(&str) + 'static) -> Outcome<Self> {
        let folder = std::env::temp_dir().join(format!("everywhere-{}", std::process::id()));
        let mut walk = Self { setup, folder, tell: Box::new(tell), answered: Vec::new() };
        fs::create_dir_all(walk.shop())?;
        for (name, text) in FILES {
            fs::write(walk.shop().join(name), text)?;
        }
        let model = walk.model("script.yaml");
        let settings = format!("{model}journal = \"journal.db\"\n\n{ENTRY}");
        fs::write(walk.shop().join("duologue.toml"), settings)?;
        walk.say(ENTRY);
        // A project may start a program once its person has said so.
        walk.expect(&["mcp", "test", "clock", "--yes"], 0, &["1 tools"])?;
        Ok(walk)
    }

    /// Go everywhere; what had to be left out, and why. A model may fail where a script must not:
    /// then the walk tells and goes on.
    pub(crate) fn go(&mut self) -> Outcome<Vec<String>> {
        let (mut sessions, mut left_out) = (Vec::new(), Vec::new());
        let mut failed = 0;
        for place in self.setup.places.clone() {
            self.say(&format!("\n── {}", place.title()));
            match self.visit(place) {
                Ok(Visited::Session(session)) => sessions.push(session),
                Ok(Visited::LeftOut(why)) => {
                    self.say(&format!("Left out: {why}"));
                    left_out.push(format!("{}: {why}", place.name()));
                }
                Err(error) if self.setup.is_scripted() => {
                    return Err(format!("{}: {error}", place.name()).into());
                }
                Err(error) => {
                    failed += 1;
                    self.say(&format!("It did not come to its end here: {error}"));
                }
            }
        }
        self.say("\n── All of them, by one judge");
        let mut words = vec!["bench", "judge", "--task", "task.json"];
        words.extend(sessions.iter().map(String::as_str));
        if !sessions.is_empty() {
            let ran = self.duo(&words)?;
            let fulfilled = ran.text.matches("✓ 1.00").count();
            let line = format!("\n{fulfilled} of {} did all of it.", self.setup.places.len());
            self.say(&line);
            if self.setup.is_scripted() && fulfilled != sessions.len() {
                return Err(line.into());
            }
        }
        let settings = fs::read_to_string(self.shop().join("duologue.toml"))?;
        if !settings.ends_with(ENTRY) {
            return Err("the entry was changed on the way".into());
        }
        match failed {
            0 => Ok(left_out),
            failed => Err(format!("{failed} places were not finished").into()),
        }
    }

    /// One place, from the first word to the last judgement.
    fn visit(&mut self, place: Place) -> Outcome<Visited> {
        let before = self.ledger();
        let waiting = match self.work_at(place)? {
            Worked::Finished(waiting) => waiting,
            Worked::Not(why) => return Ok(Visited::LeftOut(why)),
        };
        self.settled(&waiting.session)?;
        let added = self.ledger().len().saturating_sub(before.len());
        if added != 1 {
            return Err(format!("the sale was entered {added} times").into());
        }
        let entered = self.ledger().pop().unwrap_or_default();
        self.say(&format!("The ledger has one line more: {entered}"));
        self.check(&waiting)?;
        self.read(&waiting)?;
        Ok(Visited::Session(waiting.session))
    }

    /// What the journal says: asked once, allowed once, done once.
    fn check(&mut self, waiting: &Waiting) -> Outcome<()> {
        let entries = self.journal(&waiting.session)?;
        let of_call = |entry: &&Value| {
            let id = entry.get("call_id").or_else(|| entry.get("id"));
            id.and_then(Value::as_str) == Some(waiting.call.as_str())
        };
        let kinds = entries.iter().filter(of_call).filter_map(|entry| entry.get("kind")?.as_str());
        let kinds: Vec<&str> = kinds.collect();
        let right = ["external_action", "external_action_result", "tool_started", "tool_ended"];
        match kinds == right {
            true => Ok(()),
            false => Err(format!("the call was {}", kinds.join(", then ")).into()),
        }
    }

    /// Read the session by the same commands, wherever it was held.
    fn read(&mut self, waiting: &Waiting) -> Outcome<()> {
        let Waiting { session, call, asked_at } = waiting;
        self.expect(
            &["sessions", "show", session],
            0,
            &["needs an approval", "R │ ■ input required", "approved"],
        )?;
        self.expect(&["sessions", "replay", session, "--quiet"], 0, &["decisions the same"])?;
        let at = asked_at.to_string();
        let fork = self.expect(&["sessions", "fork", session, "--at", &at], 0, &[])?;
        let fork = fork.trim().to_owned();
        // The copy ends where the question stands open.
        self.expect(&["sessions", "show", &fork], 0, &["needs an approval", call])?;
        self.expect(&["sessions", "delete", &fork, "--yes"], 0, &["deleted"])?;
        let entries = self.journal(session)?.len();
        self.expect(&["sessions", "export", session, "-o", "out.jsonl"], 0, &[])?;
        let exported = fs::read_to_string(self.shop().join("out.jsonl"))?.lines().count();
        if exported != entries {
            return Err(format!("{exported} of {entries} entries were exported").into());
        }
        // Whether a model did all that was asked for is for whoever watches to see.
        let right: &[&str] = if self.setup.is_scripted() { &["✓ 1.00"] } else { &[] };
        self.expect(&["bench", "judge", session, "--task", "task.json"], 0, right)?;
        Ok(())
    }

    /// Wait until the call that enters the sale waits for a yes. Nothing has happened by then.
    fn waiting(&mut self, ledger: usize) -> Outcome<Waiting> {
        self.waiting_or(ledger, |walk, wrong| walk.deny(wrong, NOT_THIS))
    }

    /// The same. What a model wants to run instead is refused, as whoever reads it would.
    fn waiting_or(
        &mut self,
        ledger: usize,
        refuse: impl Fn(&mut Self, &Waiting) -> Outcome<()>,
    ) -> Outcome<Waiting> {
        let waiting = self.until("a call that waits for a yes", |walk| {
            let list =
                walk.quietly(&["sessions", "list", "--status", "input_required", "--json"])?;
            let Some(line) = list.text.lines().next() else { return Ok(None) };
            let found: Value = serde_json::from_str(line)?;
            let session = text(&found, "id")?.to_owned();
            let Some((waiting, asked)) = walk.open_question(session)? else { return Ok(None) };
            match asked.get("asks").and_then(Value::as_str) {
                Some("approval") => {}
                // The benchmark does that.
                Some("execution") => return Ok(None),
                _ => return Err(format!("it asks for something else: {asked}").into()),
            }
            let command = asked.pointer("/call/arguments/command").and_then(Value::as_str);
            let enters =
                |command: &str| command.contains("sale of") && command.contains(">> ledger");
            if walk.setup.is_scripted() || command.is_some_and(enters) {
                return Ok(Some(waiting));
            }
            if !walk.answered.contains(&waiting.call) {
                walk.answered.push(waiting.call.clone());
                refuse(walk, &waiting)?;
            }
            Ok(None)
        })?;
        match self.ledger().len() {
            now if now == ledger => Ok(waiting),
            _ => Err("the ledger was written before anybody said yes".into()),
        }
    }

    /// The last question of a session that nobody has answered, and the entry that asks it.
    fn open_question(&mut self, session: String) -> Outcome<Option<(Waiting, Value)>> {
        let entries = self.journal(&session)?;
        let asked = entries.iter().rev().find(|entry| entry.get("asks").is_some());
        let Some(asked) = asked else { return Ok(None) };
        let is_answer = |entry: &Value| {
            let kind = entry.get("kind").and_then(Value::as_str);
            kind == Some("external_action_result") && entry.get("id") == asked.get("id")
        };
        if entries.iter().any(is_answer) {
            return Ok(None);
        }
        let call = text(asked, "id")?.to_owned();
        let asked_at = asked.get("seq").and_then(Value::as_u64).ok_or("an entry has no seq")?;
        Ok(Some((Waiting { session, call, asked_at }, asked.clone())))
    }

    /// Say no, from another process than the one that works.
    fn deny(&mut self, waiting: &Waiting, why: &str) -> Outcome<()> {
        let Waiting { session, call, .. } = waiting;
        self.duo(&["sessions", "answer", session, call, "deny", "--reason", why])?;
        Ok(())
    }

    /// Say yes, from another process than the one that works.
    fn approve(&mut self, waiting: &Waiting, ledger: usize) -> Outcome<()> {
        let Waiting { session, call, .. } = waiting;
        if self.waiting(ledger)?.call != *call {
            return Err("it waits for something else than before the kill".into());
        }
        self.answered.push(call.clone());
        self.expect(&["sessions", "answer", session, call, "approve"], 0, &[])?;
        Ok(())
    }

    /// Wait until a session is over, and well.
    fn settled(&mut self, session: &str) -> Outcome<()> {
        let status = self.until("the end of the session", |walk| {
            let list = walk.quietly(&["sessions", "list", "--json"])?;
            let found = list.text.lines().find(|line| line.contains(session));
            let found: Value = serde_json::from_str(found.ok_or("the session is gone")?)?;
            let status = text(&found, "status")?.to_owned();
            if status == "input_required" && !walk.setup.is_scripted() {
                walk.refuse_more(session)?;
            }
            Ok(Some(status).filter(|status| status != "running" && status != "input_required"))
        })?;
        match status.as_str() {
            "completed" => Ok(()),
            other => Err(format!("session {session} ended as {other}").into()),
        }
    }

    /// A model that wants more than it was asked for does not get it.
    fn refuse_more(&mut self, session: &str) -> Outcome<()> {
        let Some((waiting, asked)) = self.open_question(session.to_owned())? else { return Ok(()) };
        let is_approval = asked.get("asks").is_some_and(|asks| asks == "approval");
        if !is_approval || self.answered.contains(&waiting.call) {
            return Ok(());
        }
        self.answered.push(waiting.call.clone());
        self.deny(&waiting, NO_MORE)
    }

    /// All entries of a session.
    fn journal(&mut self, session: &str) -> Outcome<Vec<Value>> {
        let shown = self.quietly(&["sessions", "show", session, "--json"])?;
        shown.text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// The lines of the ledger.
    fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.shop().join("ledger.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Look until something is there.
    fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut Self) -> Outcome<Option<T>>,
    ) -> Outcome<T> {
        let began = Instant::now();
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            if began.elapsed() > self.patience() {
                return Err(format!("{what} never came").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// How long something may take: a model thinks, a script does not.
    fn patience(&self) -> Duration {
        Duration::from_secs(if self.setup.is_scripted() { 30 } else { 1200 })
    }

    /// The folder with the agent's entry and its ledger.
    fn shop(&self) -> PathBuf {
        self.folder.join("shop")
    }

    /// The line of a configuration that names the model.
    fn model(&self, script: &str) -> String {
        match &self.setup.model {
            None => String::new(),
            Some(_) if self.setup.is_scripted() => format!("model = \"script:{script}\"\n"),
            Some(model) => format!("model = \"{model}\"\n"),
        }
    }

    fn command(&self, folder: &Path, words: &[&str]) -> Outcome<Command> {
        let mut command = Command::new(&self.setup.duo);
        command.args(words).current_dir(folder).stdin(Stdio::null());
        command.envs(self.surroundings()?).env_remove("DUOLOGUE_MCP_DEPTH");
        Ok(command)
    }

    /// The variables of everything that is started: `duo` is the program of the walk, and what is
    /// allowed on it stays in its folder.
    fn surroundings(&self) -> Outcome<Vec<(&'static str, OsString)>> {
        let own = self.setup.duo.parent().map(Path::to_owned).unwrap_or_default();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&path)))?;
        let folder = |name: &str| self.folder.join(name).into_os_string();
        let mut all = vec![
            ("PATH", path),
            ("XDG_DATA_HOME", folder("data")),
            ("NO_COLOR", "1".into()),
            ("TERM", "xterm-256color".into()),
        ];
        if self.setup.is_scripted() {
            // Whatever is configured on this machine is for real models.
            all.extend([("HOME", folder("home")), ("XDG_CONFIG_HOME", folder("config"))]);
            all.push(("DUOLOGUE_MODELS", folder("models")));
        }
        Ok(all)
    }

    /// A command in the shop, and what it prints.
    fn quietly(&mut self, words: &[&str]) -> Outcome<Ran> {
        let output = self.command(&self.shop(), words)?.output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok(Ran { text: String::from_utf8_lossy(&text).into_owned(), code: output.status.code() })
    }

    /// The same for a person to see.
    fn duo(&mut self, words: &[&str]) -> Outcome<Ran> {
        self.typed(words);
        let ran = self.quietly(words)?;
        self.say(ran.text.trim_end());
        Ok(ran)
    }

    /// The same, which must end so and say this.
    fn expect(&mut self, words: &[&str], code: i32, said: &[&str]) -> Outcome<String> {
        let Ran { text, code: ended } = self.duo(words)?;
        let missing = said.iter().find(|part| !text.contains(*part));
        if ended == Some(code) && missing.is_none() {
            return Ok(text);
        }
        let missing = missing.map(|part| format!(" without {part:?}")).unwrap_or_default();
        Err(format!("duo {} ended with {ended:?}{missing}:\n{text}", words.join(" ")).into())
    }

    /// Show a command as it would be typed.
    fn typed(&mut self, words: &[&str]) {
        let quoted = |word: &&str| match word.contains(' ') {
            true => format!("'{word}'"),
            false => (*word).to_owned(),
        };
        let words: Vec<String> = words.iter().map(quoted).collect();
        self.say(&format!("\n$ duo {}", words.join(" ")));
    }

    fn say(&mut self, text: &str) {
        (self.tell)(text);
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Outcome<&'a str> {
    let found = value.get(key).and_then(Value::as_str);
    found.ok_or_else(|| format!("there is no {key} in {value}").into())
}
