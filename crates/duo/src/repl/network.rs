//! Others, as the chat knows them: who it is connected to, whom it is served to.

use duologue_a2a::{Remote, Serving};
use duologue_core::{Answer, Message, Outcome, Part, Reply, Session, SessionOptions};
use serde_json::Value;

use super::Repl;
use crate::{conversation::converse, failure::Failure, house::Listen, terminal::visible};

/// The others of a chat.
#[derive(Default)]
pub(super) struct Network {
    /// The agent that `:remote` talks to.
    pub(super) connection: Option<Connection>,
    /// The chat's own agent as a server.
    pub(super) serving: Option<Serving>,
}

/// An agent elsewhere that the chat is connected to.
pub(super) struct Connection {
    pub(super) remote: Remote,
    /// Its address, as short as it can be.
    pub(super) place: String,
    /// Its address, as a session remembers it.
    address: String,
    /// The conversation with it, once something was said. It has a journal like any other.
    session: Option<Session>,
}

/// An agent that can be connected to.
pub(super) struct Place {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) health: String,
}

impl Connection {
    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.remote.card().name
    }
}

impl Repl {
    /// All agents that can be connected to, in the order of `:servers`.
    pub(super) fn places(&self) -> Result<Vec<Place>, Failure> {
        let known = self.house.directory()?.list();
        let mut places: Vec<Place> = known
            .into_iter()
            .map(|agent| Place {
                health: agent.health.word().to_owned(),
                name: agent.name,
                url: agent.url,
            })
            .collect();
        for (name, remote) in &self.house.config().remotes {
            if !places.iter().any(|place| short(&place.url) == short(&remote.url)) {
                let (name, url) = (name.clone(), remote.url.clone());
                places.push(Place { name, url, health: "unknown".to_owned() });
            }
        }
        Ok(places)
    }

    /// Connect to an agent by its number, its id, a name of the configuration, or its address.
    pub(super) async fn connect(&mut self, to: &str) -> Result<(), Failure> {
        let directory = self.house.directory()?;
        let url = match to.parse::<usize>() {
            Ok(number) => {
                let places = self.places()?;
                let at = number.checked_sub(1).and_then(|at| places.get(at));
                let none = || Failure::usage(format!("there is no agent {number} in :servers"));
                at.ok_or_else(none)?.url.clone()
            }
            Err(_) => match directory.get(to) {
                Ok(agent) if agent.id == to => agent.url,
                _ => to.to_owned(),
            },
        };
        let remote = self.house.reach(&url, None).await?;
        let url = self.house.config().remotes.get(&url).map_or(url.as_str(), |known| &known.url);
        let place = short(url);
        // That it can be talked to is what counts; whom it knows is welcome.
        let learned = directory.discover(url).await;
        let address = url.to_owned();
        let connection = Connection { remote, place: place.clone(), address, session: None };
        let text = format!("connected to {} at {place}", connection.name());
        self.network.connection = Some(connection);
        self.say(&visible(&text))?;
        if let Err(error) = learned {
            self.remark(&format!("it is not written into the directory: {error}"))?;
        }
        Ok(())
    }

    /// Say something to the agent that the chat is connected to. What it asks is asked here.
    pub(super) async fn say_there(&mut self, text: &str) -> Result<(), Failure> {
        let session = self.session_there().await?;
        let waits = session.pending().into_iter().next();
        let message = match waits {
            // What it waits for is answered before anything else is said.
            Some(inquiry) => {
                session.answer(&inquiry.id, Answer::text(text), Some("terminal".to_owned()))?;
                None
            }
            None => Some(Message::user(text)),
        };
        let reply = converse(&session, &mut self.screen, message).await?;
        self.show_data(&reply)?;
        if !self.screen.is_terminal() && matches!(reply.outcome, Outcome::Completed) {
            self.screen.answer(&reply.text())?;
        } else if !self.screen.is_terminal() {
            self.say(&reply.outcome.to_string())?;
        }
        if matches!(reply.outcome, Outcome::InputRequired { .. }) {
            self.remark("the other agent waits for an answer; :remote TEXT gives it")?;
        }
        self.log(&session).await
    }

    /// What an answer has besides text: tools of other agents answer with structures.
    fn show_data(&mut self, reply: &Reply) -> Result<(), Failure> {
        for part in reply.message.iter().flat_map(|message| &message.parts) {
            if let Part::Data { value } = part {
                self.say(&visible(&serde_json::to_string_pretty(value)?))?;
            }
        }
        Ok(())
    }

    async fn session_there(&mut self) -> Result<Session, Failure> {
        let store = self.house.store().await?;
        let Some(connection) = &mut self.network.connection else {
            return Err(Failure::usage("not connected; :connect URL connects to an agent"));
        };
        if let Some(session) = &connection.session {
            return Ok(session.clone());
        }
        let address = Value::from(connection.address.clone());
        let metadata = [("remote", address)].into();
        let agent = connection.remote.agent(connection.name());
        let options = SessionOptions { metadata, ..self.house.session_options(&self.plan) };
        let session = Session::start(&agent, store, options)?;
        connection.session = Some(session.clone());
        Ok(session)
    }

    /// Serve the chat's agent to others.
    pub(super) async fn listen(&mut self, port: u16) -> Result<(), Failure> {
        if let Some(serving) = &self.network.serving {
            let url = serving.url();
            return Err(Failure::usage(format!("already served at {url}; :stop ends that")));
        }
        let listen = Listen { port: Some(port), ..Listen::default() };
        let serving = self.house.serve(&self.resident, &listen).await?;
        if let Some(warning) = serving.warning().map(str::to_owned) {
            self.remark(&warning)?;
        }
        self.say(&format!("{} is served at {}", serving.card().name, serving.url()))?;
        self.network.serving = Some(serving);
        Ok(())
    }
}

/// An address without what goes without saying.
pub(super) fn short(url: &str) -> String {
    url.trim_start_matches("http://").trim_end_matches('/').to_owned()
}
