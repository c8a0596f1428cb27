//! Participants without a model: they show what a task's own expectations are worth.
//!
//! `oracle` and `oracle_user` go through the expected actions together: what they do not pass, no
//! agent can be expected to pass. `idle` does nothing: what it passes says nothing about an agent.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    Action, AgentError, Incoming, Message, Mode, Participant, Requestor, Task, ToolCall, Utterance,
    python, users,
};

/// How the oracle asks its user to act.
const PERFORM: &str = "PERFORM ";

/// An agent that takes the expected actions.
#[derive(Clone, Debug)]
pub struct Oracle {
    task: Arc<Task>,
    mode: Mode,
}

impl Oracle {
    /// For a task.
    pub fn new(task: Arc<Task>, mode: Mode) -> Self {
        Self { task, mode }
    }

    fn call(&self, at: usize, action: &Action) -> Utterance {
        Utterance::calls(vec![ToolCall {
            id: format!("oracle_{at}"),
            name: action.name.clone(),
            arguments: action.arguments.clone(),
            requestor: Requestor::Assistant,
        }])
    }
}

/// How many actions were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken(usize);

impl Participant for Oracle {
    type State = Taken;

    fn get_init_state(&self, _: &[Message]) -> Result<Taken, AgentError> {
        Ok(Taken(0))
    }

    fn generate_next_message<'a>(
        &'a self,
        _: Incoming,
        state: Taken,
    ) -> BoxFuture<'a, Result<(Utterance, Taken), AgentError>> {
        let Taken(at) = state;
        let said = match (self.task.actions().get(at), self.mode) {
            (Some(action), Mode::Solo) => self.call(at, action),
            (Some(action), Mode::Dialogue) => match action.requestor {
                Requestor::Assistant => self.call(at, action),
                Requestor::User => {
                    let arguments = python::dumps(&action.arguments, python::Layout::Line);
                    Utterance::text(format!("{PERFORM}{} {arguments}", action.name))
                }
            },
            (None, Mode::Solo) => Utterance::text(users::STOP),
            (None, Mode::Dialogue) => {
                let criteria = self.task.evaluation_criteria.as_ref();
                let told = criteria.and_then(|criteria| criteria.communicate_info.as_ref());
                let told = told.map(|told| told.join(" · ")).unwrap_or_default();
                Utterance::text(format!("That is all. {told}"))
            }
        };
        let said = Utterance { cost: Some(0.0), ..said };
        Box::pin(async move { Ok((said, Taken(at + 1))) })
    }

    fn is_stop(&self, message: &Utterance) -> bool {
        self.mode == Mode::Solo && message.content.as_deref() == Some(users::STOP)
    }
}

/// A user who does what an oracle asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct OracleUser;

impl Participant for OracleUser {
    type State = Taken;

    fn get_init_state(&self, _: &[Message]) -> Result<Taken, AgentError> {
        Ok(Taken(0))
    }

    fn generate_next_message<'a>(
        &'a self,
        message: Incoming,
        state: Taken,
    ) -> BoxFuture<'a, Result<(Utterance, Taken), AgentError>> {
        let Taken(at) = state;
        let text = match &message {
            Incoming::Said(said) => said.content.clone().unwrap_or_default(),
            _ => String::new(),
        };
        let asked = text.strip_prefix(PERFORM).and_then(|asked| asked.split_once(' '));
        let said = match (&message, asked) {
            (_, Some((name, arguments))) => Utterance::calls(vec![ToolCall {
                id: format!("oracle_user_{at}"),
                name: name.to_owned(),
                arguments: python::loads(arguments).unwrap_or_default(),
                requestor: Requestor::User,
            }]),
            (Incoming::Tool(_) | Incoming::Tools(_), _) => Utterance::text("Done."),
            _ if at == 0 => Utterance::text("Please help me."),
            _ => Utterance::text(users::STOP),
        };
        let said = Utterance { cost: Some(0.0), ..said };
        Box::pin(async move { Ok((said, Taken(at + 1))) })
    }

    fn is_stop(&self, message: &Utterance) -> bool {
        users::is_stop(message)
    }
}

/// An agent that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl Participant for Idle {
    type State = ();

    fn get_init_state(&self, _: &[Message]) -> Result<(), AgentError> {
        Ok(())
    }

    fn generate_next_message<'a>(
        &'a self,
        _: Incoming,
        _: (),
    ) -> BoxFuture<'a, Result<(Utterance, ()), AgentError>> {
        let said = Utterance { cost: Some(0.0), ..Utterance::text("I cannot help with that.") };
        Box::pin(async move { Ok((said, ())) })
    }
}
