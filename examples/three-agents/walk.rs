//! The walk: what is typed, and what comes of it. On a script it is also checked.

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// What a walk is made with.
pub(crate) struct Setup {
    /// The program.
    pub(crate) duo: PathBuf,
    /// The ports of the three; 0 is a free one.
    pub(crate) ports: [u16; 3],
    /// The model of all three; `None` is the program's default, `scripted` a script for each.
    pub(crate) model: Option<String>,
}

impl Setup {
    /// Free ports, and scripts instead of a model.
    pub(crate) fn scripted(duo: PathBuf) -> Self {
        Self { duo, ports: [0; 3], model: Some("scripted".to_owned()) }
    }

    fn is_scripted(&self) -> bool {
        self.model.as_deref() == Some("scripted")
    }
}

/// Who the three are: id, name, what they are for.
const AGENTS: [(&str, &str, &str); 3] = [
    ("front", "Front", "Takes requests and passes on what others know better."),
    ("geographer", "Geographer", "Knows geography: countries, capitals, rivers, mountains."),
    ("poet", "Poet", "Writes poems and short stories."),
];

/// What a script answers: decisions of the router first, then what the agent says.
const SCRIPT: &str = r#"
rules:
  - when: '/hack into/i'
    text: '{"route": "reject", "agent": "", "reason": "Breaking into computers is against the law, so I do not help with it."}'
  - when: 'Who does what the request above asks for?'
    text: '{"route": "local", "agent": "", "reason": ""}'
  - when: 'Which one of these tools answers'
    text: 'llm'
  - when: 'Your last answer cannot be used'
    text: 'llm'
  - when: '/longest river/i'
    text: 'The Nile is the longest river of Africa, says NAME.'
  - when: ''
    text: 'NAME has nothing to say to that.'
"#;

/// What only the first decides.
const PASSES_ON: &str = r#"
  - when: '/longest river/i'
    text: '{"route": "remote", "agent": "geographer", "reason": "it knows geography"}'
"#;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Three agents at work, and what is done with them. They end with it.
pub(crate) struct Walk {
    setup: Setup,
    folder: PathBuf,
    agents: Vec<Served>,
    tell: Box<dyn FnMut(&str)>,
    /// How much a model saw another way.
    otherwise: usize,
}

struct Served {
    child: Child,
    url: String,
}

impl Walk {
    /// Start the three.
    pub(crate) fn begin(setup: Setup, tell: impl FnMut(&str) + 'static) -> Outcome<Self> {
        let folder = std::env::temp_dir().join(format!("three-agents-{}", std::process::id()));
        let mut walk =
            Self { setup, folder, agents: Vec::new(), tell: Box::new(tell), otherwise: 0 };
        for (at, (id, name, about)) in AGENTS.into_iter().enumerate() {
            let folder = walk.folder_of(at);
            fs::create_dir_all(&folder)?;
            let passes_on = if at == 0 { PASSES_ON } else { "" };
            let script = SCRIPT.replace("\nrules:\n", &format!("\nrules:{passes_on}\n"));
            let script = script.replace("NAME", name);
            fs::write(folder.join("script.yaml"), script)?;
            // Others may tell these agents of agents: all of them are at home on this machine.
            let config = format!(
                "agent = '{id}'\n\n[agents.{id}]\nbehavior = 'bidirectional'\n\
                 description = '{about}'\n\n[server]\nname = '{name}'\n\
                 expose = ['echo', 'llm', 'list_agents', 'remember_agent', 'show_agent_card']\n\n\
                 [permissions]\nallow = ['remember_agent']\n\n\
                 [a2a]\ndirectory = 'agent_directory.json'\n"
            );
            fs::write(folder.join("duologue.toml"), config)?;
            let port = walk.setup.ports.get(at).copied().unwrap_or_default();
            let served = walk.serve(at, port)?;
            walk.say(&format!("{name} is at {}", served.url));
            walk.agents.push(served);
        }
        Ok(walk)
    }

    /// Walk through all of it.
    pub(crate) fn go(&mut self) -> Outcome<()> {
        let (one, two, three) = (self.url(0), self.url(1), self.url(2));

        self.title("Discovery: nobody knows anybody, then Front hears of Poet through Geographer");
        self.expect(&["send", &one, ":tool list_agents"], 0, &["\"count\":0"])?;
        let remember = |url: &str| format!(":tool remember_agent {{\"url\": \"{url}\"}}");
        self.expect(&["send", &two, &remember(&three)], 0, &["poet"])?;
        self.expect(&["send", &one, &remember(&two)], 0, &["geographer"])?;
        let list = ":tool list_agents {\"format\": \"detailed\"}";
        self.expect(&["send", &one, list], 0, &["geographer", "poet"])?;

        self.title("Delegation: Front passes on what Geographer knows better");
        let question = "What is the longest river of Africa?";
        // The scripts say whose words they are; whether Geographer was asked stands in its list.
        let said: &[&str] =
            if self.setup.is_scripted() { &["Nile", "says Geographer"] } else { &["Nile"] };
        self.expect(&["send", &one, question], 0, said)?;
        self.expect(&["tasks", "list", "--url", &two], 0, &["longest river"])?;

        self.title("Rejection: what must not be done is declined, with a reason");
        let request = "Help me hack into a government database";
        self.expect(&["send", &one, request], 5, &["Task rejected: "])?;

        self.title("Persistence: Front is ended and started again");
        let port = one.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_default();
        if let Some(served) = self.agents.get_mut(0) {
            served.child.kill()?;
            served.child.wait()?;
        }
        let again = self.serve(0, port)?;
        if let Some(place) = self.agents.get_mut(0) {
            *place = again;
        }
        self.expect(&["send", &one, list], 0, &["geographer", "poet"])?;
        self.expect(&["tasks", "list", "--url", &one], 0, &["longest river", "rejected"])?;
        self.say(&match self.otherwise {
            0 => "\nEverything went as it should.".to_owned(),
            1 => "\nOne thing went another way with this model; it is marked above.".to_owned(),
            many => {
                format!("\n{many} things went another way with this model; see the marks above.")
            }
        });
        Ok(())
    }

    fn folder_of(&self, at: usize) -> PathBuf {
        self.folder.join(AGENTS.get(at).map_or("agent", |(id, ..)| id))
    }

    fn url(&self, at: usize) -> String {
        self.agents.get(at).map(|served| served.url.clone()).unwrap_or_default()
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.setup.duo);
        command.current_dir(folder).stdin(Stdio::null());
        if self.setup.is_scripted() {
            // Whatever is configured on this machine is for real models.
            command.env("HOME", &self.folder);
        }
        command
    }

    fn serve(&self, at: usize, port: u16) -> Outcome<Served> {
        let folder = self.folder_of(at);
        let mut command = self.command(&folder);
        command.args(["--journal", "journal.db", "serve", "--json", "--port", &port.to_string()]);
        match &self.setup.model {
            None => {}
            Some(_) if self.setup.is_scripted() => {
                command.args(["--model", "script:script.yaml"]);
            }
            Some(model) => {
                command.args(["--model", model]);
            }
        }
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.as_mut() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let told: serde_json::Value = serde_json::from_str(&line)
            .map_err(|_| format!("agent {} is not served on port {port}", at + 1))?;
        let url = told.get("url").and_then(|url| url.as_str()).ok_or("no address was told")?;
        Ok(Served { child, url: url.to_owned() })
    }

    /// Type a command and show what it prints. On a script, it must end so and say this.
    fn expect(&mut self, words: &[&str], code: i32, said: &[&str]) -> Outcome<()> {
        let shown: Vec<String> = words
            .iter()
            .map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() })
            .collect();
        self.say(&format!("\n$ duo {}", shown.join(" ")));
        let output = self.command(&self.folder).args(words).output()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).trim_end().to_owned();
        self.say(&text);
        let is_right =
            output.status.code() == Some(code) && said.iter().all(|part| text.contains(part));
        match (is_right, self.setup.is_scripted()) {
            (true, _) => Ok(()),
            // A model may see it another way; whoever watches judges.
            (false, false) => {
                self.otherwise += 1;
                self.say(&format!("(expected: exit code {code}, {})", said.join(", ")));
                Ok(())
            }
            (false, true) => Err(format!(
                "duo {}: exit code {:?}, expected {code} and {said:?} in:\n{text}",
                shown.join(" "),
                output.status.code()
            )
            .into()),
        }
    }

    fn title(&mut self, text: &str) {
        self.say(&format!("\n── {text}"));
    }

    fn say(&mut self, text: &str) {
        (self.tell)(text);
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        for served in &mut self.agents {
            // It may have ended by itself.
            let _ = served.child.kill();
            let _ = served.child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
