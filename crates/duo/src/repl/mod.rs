//! `duo chat`: talking with an agent, line by line.

mod commands;
mod editor;
mod keywords;
mod log;
mod network;
mod one_call;

use std::io::{BufRead, IsTerminal};

use duologue_core::{Message, Outcome, Session, SessionId};

use crate::{
    cli::{Chat, Recording},
    commands::sessions::check_at_home,
    conversation::{conclude, converse},
    exit::Exit,
    failure::{Done, Failure},
    house::{House, Plan, Resident},
    terminal::{Screen, Style},
};
use editor::{Editor, Typed};
use log::Logged;
use network::Network;

/// A chat under way. Commands work on it.
pub(crate) struct Repl {
    house: House,
    plan: Plan,
    resident: Resident,
    session: Session,
    screen: Screen,
    recording: Recording,
    network: Network,
    logged: Logged,
}

/// What a command wants to happen afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next line.
    Stay,
    /// The end.
    Leave,
}

pub(crate) async fn chat(house: House, args: Chat) -> Done {
    chat_with(house, args, &Start::default()).await
}

/// What a chat begins with, besides a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start {
    /// Serve the agent on this port.
    pub(crate) listen: Option<u16>,
    /// Connect to this agent.
    pub(crate) connect: Option<String>,
}

/// The same, but first do what was asked for.
pub(crate) async fn chat_with(house: House, args: Chat, start: &Start) -> Done {
    let (plan, id) = match &args.session {
        None => (house.plan()?, None),
        Some(prefix) => {
            let id = house.find(prefix).await?;
            (house.plan_of(&id).await?, Some(id))
        }
    };
    let screen = Screen::new(house.paint, false, false);
    let (resident, session) = hold(&house, &plan, &args.recording, id.as_ref()).await?;
    let recording = args.recording;
    let (network, logged) = (Network::default(), Logged::default());
    let mut repl = Repl { house, plan, resident, session, screen, recording, network, logged };
    let is_typed = std::io::stdin().is_terminal();
    if is_typed {
        repl.banner()?;
    }
    if let Some(port) = start.listen {
        repl.listen(port).await?;
    }
    if let Some(place) = &start.connect {
        // The other agent may come up later; the chat is good without it.
        if let Err(failure) = repl.connect(place).await {
            repl.complain(&failure.to_string())?;
        }
    }
    let done = if is_typed { repl.typed().await } else { repl.piped().await };
    if let Some(serving) = repl.network.serving.take() {
        serving.stop().await;
    }
    done
}

/// Begin a session, or take one up.
async fn hold(
    house: &House,
    plan: &Plan,
    recording: &Recording,
    id: Option<&SessionId>,
) -> Result<(Resident, Session), Failure> {
    let resident = house.resident(plan, recording).await?;
    let options = house.session_options(plan);
    let store = house.store().await?;
    let session = match id {
        None => Session::start(resident.agent(), store, options)?,
        Some(id) => {
            check_at_home(house, id).await?;
            Session::open(resident.agent(), store, id, options).await?
        }
    };
    Ok((resident, session))
}

impl Repl {
    /// A person types.
    async fn typed(&mut self) -> Done {
        let mut editor = Editor::new(self.house.config().repl.history.as_deref());
        self.take_up().await?;
        loop {
            match editor.read(&self.prompt())? {
                Typed::Line(line) if line.trim().is_empty() => {}
                Typed::Line(line) => {
                    if self.take(&line).await? == Next::Leave {
                        return Ok(Exit::Completed);
                    }
                }
                // Ctrl-C on an empty line: people who want out know Ctrl-D, others are told.
                Typed::Interrupt => self.remark("Ctrl-D leaves, :help helps")?,
                Typed::End => return Ok(Exit::Completed),
            }
        }
    }

    /// Go on with what a session was left with: a turn in the middle, a question, or what others
    /// posted for it meanwhile.
    async fn take_up(&mut self) -> Result<(), Failure> {
        let requests = self.session.collect_mail().await?;
        let waits = matches!(self.session.last_outcome(), Some(Outcome::InputRequired { .. }));
        if waits || self.session.is_unfinished() {
            self.turn(None).await?;
        }
        for request in requests {
            self.turn(Some(request)).await?;
        }
        Ok(())
    }

    /// A program types: one request a line, the answers alone on standard output.
    async fn piped(&mut self) -> Done {
        let mut exit = Exit::Completed;
        let lines = std::io::stdin().lock().lines();
        for line in lines {
            let line = line?;
            if line.trim().is_empty() {
                continue;
            }
            if line.starts_with(':') {
                if self.command(&line).await? == Next::Leave {
                    break;
                }
                continue;
            }
            let message = Message::user(line);
            let reply = converse(&self.session, &mut self.screen, Some(message)).await?;
            exit = conclude(&self.session, &mut self.screen, &reply)?;
            self.log(&self.session.clone()).await?;
            if exit != Exit::Completed {
                break;
            }
        }
        Ok(exit)
    }

    async fn take(&mut self, line: &str) -> Result<Next, Failure> {
        let in_words = keywords::command_of(line);
        let line = in_words.as_deref().unwrap_or(line);
        if line.trim_start().starts_with(':') {
            return match self.command(line.trim()).await {
                Ok(next) => Ok(next),
                Err(failure) => {
                    self.complain(&failure.to_string())?;
                    Ok(Next::Stay)
                }
            };
        }
        self.turn(Some(Message::user(line.trim_end()))).await?;
        Ok(Next::Stay)
    }

    async fn command(&mut self, line: &str) -> Result<Next, Failure> {
        let words = line.trim_start_matches(':');
        let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        match commands::find(name) {
            Ok(command) => (command.run)(self, rest.trim()).await,
            Err(problem) => Err(Failure::usage(problem)),
        }
    }

    /// One turn. What goes wrong in it is told and does not end the chat.
    async fn turn(&mut self, message: Option<Message>) -> Result<(), Failure> {
        match converse(&self.session, &mut self.screen, message).await {
            Ok(reply) => {
                if matches!(reply.outcome, Outcome::InputRequired { .. }) {
                    self.remark("it still waits for an answer; :pending asks again")?;
                }
            }
            Err(failure) => self.complain(&failure.to_string())?,
        }
        self.log(&self.session.clone()).await
    }

    /// What stands before the mark: the agent that the chat is connected to.
    fn prompt(&self) -> String {
        match &self.network.connection {
            Some(connection) => format!("{}@{} ", self.plan.agent, connection.place),
            None => String::new(),
        }
    }

    /// Go on with another plan or another session.
    async fn switch(&mut self, plan: Plan, id: Option<SessionId>) -> Result<(), Failure> {
        // The session has to be let go before it can be taken up with another agent, so what can
        // fail is tried first.
        self.house.agent(&plan, &self.recording).await?;
        let same = id.as_ref().is_some_and(|id| id == self.session.id());
        if same {
            let aside = duologue_core::MemoryStore::new();
            let agent = self.house.mute_agent(&plan)?;
            let options = duologue_core::SessionOptions::default();
            self.session = Session::start(&agent, std::sync::Arc::new(aside), options)?;
        }
        (self.resident, self.session) =
            hold(&self.house, &plan, &self.recording, id.as_ref()).await?;
        self.plan = plan;
        Ok(())
    }

    fn banner(&mut self) -> Result<(), Failure> {
        let paint = self.screen.paint();
        let title = paint.text(Style::Bold, "duologue");
        let about = format!(
            "{} · {} · session {} · :help",
            self.plan.agent,
            self.plan.model,
            self.session.id()
        );
        self.screen.line(&format!("{title} {}", paint.text(Style::Dim, about)))?;
        if let Some(notice) = self.house.project_notice() {
            self.remark(&notice)?;
        }
        #[cfg(feature = "local")]
        if let Some(notice) = crate::local::notice(&self.plan.model) {
            self.remark(&notice)?;
        }
        if self.plan.model == "demo" {
            self.remark("this is a script with real tools, not a model; try \"what is 37*12?\"")?;
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.screen.line(text)?)
    }

    fn remark(&mut self, text: &str) -> Result<(), Failure> {
        let text = self.screen.paint().text(Style::Dim, text);
        self.say(&text)
    }

    fn complain(&mut self, text: &str) -> Result<(), Failure> {
        let text = self.screen.paint().text(Style::Bad, text);
        self.say(&text)
    }
}
