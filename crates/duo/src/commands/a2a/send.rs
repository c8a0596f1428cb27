//! `duo send`: a message for an agent elsewhere.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use duologue_a2a::{
    Remote,
    a2a::{Message, Task, TaskState},
};

use super::exchange::{self, Came, Shown};
use crate::{
    approval,
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::{Style, visible},
};

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo send http://localhost:8080 \"What is 37*12?\"\n  \
    duo send localhost:8080 --stream \"Write a poem\"\n  \
    duo send far \"go on\" --task 0f3k…          answer a task that waits\n  \
    duo send far \"…\" --key-env FAR_API_KEY\n\n\
    The exit code tells how the task ended, as for duo run. On a terminal you are asked what the \
    agent asks. Without one, a task that waits ends the command with code 3 and the command that \
    answers it is printed: to an approval, yes, always and no are answers, and anything else is a \
    no with that reason. Ctrl-C cancels the task.")]
pub(crate) struct Send {
    /// A name of [remotes], an address, or a host and a port.
    #[arg(value_name = "AGENT")]
    pub(crate) place: String,

    /// The message.
    pub(crate) text: String,

    /// Show the answer while it is written.
    #[arg(long)]
    pub(crate) stream: bool,

    /// Go on with this task.
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,

    /// Begin a task of this conversation, which knows what was said before.
    #[arg(long, value_name = "ID", conflicts_with = "task")]
    pub(crate) context: Option<String>,

    /// Print every update, and the task, as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// The environment variable with an API key or a token, for whatever the agent asks for.
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_env: Option<String>,
}

impl Send {
    /// A message and nothing else.
    pub(super) fn plain(place: String, text: String, json: bool) -> Self {
        Self { place, text, stream: false, task: None, context: None, json, key_env: None }
    }
}

pub(crate) async fn send(house: &House, args: Send) -> Done {
    if args.text.trim().is_empty() {
        return Err(Failure::usage("the message is empty"));
    }
    let remote = house.reach(&args.place, args.key_env.as_deref()).await?;
    let shown = match (args.json, args.stream) {
        (true, _) => Shown::Json,
        (false, true) => Shown::Stream,
        (false, false) => Shown::Whole,
    };
    let talk = Talk { house, remote: &remote, args: &args, shown };
    let mut task = args.task.clone();
    let mut said = exchange::message(&args.text, args.task.clone(), args.context.clone());
    loop {
        match talk.say(said, &mut task).await? {
            Said::Ended(exit) => return Ok(exit),
            Said::Waits(waiting) => match talk.ask(&waiting)? {
                Some(answer) => {
                    said = exchange::message(&answer, Some(waiting.id), Some(waiting.context_id));
                }
                None => return Ok(Exit::InputRequired),
            },
        }
    }
}

struct Talk<'a> {
    house: &'a House,
    remote: &'a Remote,
    args: &'a Send,
    shown: Shown,
}

enum Said {
    Ended(Exit),
    Waits(Box<Task>),
}

impl Talk<'_> {
    /// Send a message and show what comes of it. Ctrl-C cancels the task.
    async fn say(&self, said: Message, task: &mut Option<String>) -> Result<Said, Failure> {
        let mut begun = task.clone();
        let exchange = {
            let paint = self.house.paint;
            let work = exchange::exchange(self.remote, said, self.shown, paint, &mut begun);
            tokio::select! {
                came = work => Some(came),
                _ = tokio::signal::ctrl_c() => None,
            }
        };
        let came = match exchange {
            Some(came) => came?,
            None => {
                if let Some(id) = &begun {
                    self.remote.cancel(id).await.map_err(exchange::explain)?;
                    self.remark(&format!("cancelled task {id}"))?;
                }
                return Ok(Said::Ended(Exit::Aborted));
            }
        };
        task.clone_from(&begun);
        match came {
            Came::Message(message) => {
                if self.shown != Shown::Json {
                    writeln!(io::stdout(), "{}", visible(&exchange::text_of(&message)))?;
                }
                Ok(Said::Ended(Exit::Completed))
            }
            Came::Task(task) => self.settle(task),
        }
    }

    fn settle(&self, task: Box<Task>) -> Result<Said, Failure> {
        let words = visible(&exchange::words_of(&task.status));
        let paint = self.house.paint;
        match task.status.state {
            TaskState::InputRequired | TaskState::AuthRequired => return Ok(Said::Waits(task)),
            TaskState::Completed => match self.shown {
                Shown::Whole => {
                    writeln!(io::stdout(), "{}", visible(&exchange::answer_of(&task)).trim_end())?;
                }
                // It was shown while it came.
                Shown::Stream | Shown::Json => {}
            },
            TaskState::Rejected => {
                writeln!(
                    io::stderr(),
                    "{}",
                    paint.text(Style::Bad, format!("Task rejected: {words}"))
                )?;
            }
            _ => {
                let state = super::tasks::state_word(&task.status.state);
                let text =
                    if words.is_empty() { state.to_owned() } else { format!("{state}: {words}") };
                writeln!(io::stderr(), "{}", paint.text(Style::Bad, text))?;
            }
        }
        if io::stdout().is_terminal() && self.shown != Shown::Json {
            self.remark(&format!("task {} · context {}", task.id, task.context_id))?;
        }
        Ok(Said::Ended(exchange::exit_of(&task.status)))
    }

    /// Ask whoever sits here, or say how the task is answered.
    fn ask(&self, task: &Task) -> Result<Option<String>, Failure> {
        let question = visible(&exchange::words_of(&task.status));
        let mark = self.house.paint.text(Style::Warning, "?");
        writeln!(io::stderr(), "{mark} {question}")?;
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        if is_terminal
            && self.shown != Shown::Json
            && let Some(answer) = approval::line("answer", "")?
        {
            return Ok(Some(answer));
        }
        let place = &self.args.place;
        let key = match &self.args.key_env {
            Some(variable) => format!(" --key-env {variable}"),
            None => String::new(),
        };
        let command = format!("  duo send {place} \"…\" --task {}{key}", task.id);
        self.remark(&command)?;
        Ok(None)
    }

    fn remark(&self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(io::stderr(), "{}", self.house.paint.text(Style::Dim, visible(text)))?)
    }
}
