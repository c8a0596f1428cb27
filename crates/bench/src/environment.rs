//! One environment of one conversation: tools, their databases, and how calls are answered.

use std::sync::Arc;

use crate::{
    Action, Assertion, Domain, Failure, FunctionCall, InitialState, Message, Reply, Requestor,
    Task, ToolCall, ToolMessage, Toolkit, Value, World,
    python::{self, canonical_hash},
    raise,
};

/// Who holds the user's tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The user does.
    #[default]
    Dialogue,
    /// The agent does; there is no user.
    Solo,
}

/// What a replay does when a recorded answer differs from today's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// It is an error.
    Strict,
    /// It is noted and the replay goes on.
    Lenient,
}

/// One environment. A fresh one costs nothing but what is written later.
#[derive(Clone)]
pub struct Environment {
    domain: Arc<Domain>,
    /// The databases.
    pub world: World,
    mode: Mode,
}

impl Environment {
    /// A fresh environment of a domain.
    pub fn new(domain: &Arc<Domain>, mode: Mode) -> Result<Self, Failure> {
        Self::for_task(domain, mode, None)
    }

    /// A fresh environment of a domain that knows which task it is for.
    pub fn for_task(
        domain: &Arc<Domain>,
        mode: Mode,
        task: Option<&Task>,
    ) -> Result<Self, Failure> {
        if mode == Mode::Solo && domain.solo_policy.is_none() {
            return raise(format!("{} domain does not support solo mode", domain.name));
        }
        let mut world = World::new(&domain.db, &domain.user_db, Arc::clone(&domain.assets));
        (domain.prepare)(&mut world, task);
        let mut environment = Self { domain: Arc::clone(domain), world, mode };
        environment.sync()?;
        Ok(environment)
    }

    /// The domain.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Who holds the user's tools.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The rules that the agent follows.
    pub fn policy(&self) -> &str {
        match (self.mode, &self.domain.solo_policy) {
            (Mode::Solo, Some(policy)) => policy,
            _ => &self.domain.policy,
        }
    }

    /// SHA-256 of the agent's database.
    pub fn db_hash(&self) -> String {
        canonical_hash(&self.world.db)
    }

    /// SHA-256 of the user's database, where there is one.
    pub fn user_db_hash(&self) -> Option<String> {
        self.world.has_user_db().then(|| canonical_hash(self.world.user_db()))
    }

    /// Whether both environments have the same hashes. Nothing is hashed to find out.
    pub fn same_databases(&self, other: &Self) -> (bool, bool) {
        let user = self.world.has_user_db() == other.world.has_user_db()
            && self.world.user_db().same(other.world.user_db());
        (self.world.db.same(&other.world.db), user)
    }

    /// Calls a tool for somebody, without bringing the sides in step afterwards.
    pub fn make_tool_call(
        &mut self,
        name: &str,
        requestor: Requestor,
        arguments: &Value,
    ) -> Result<Reply, Failure> {
        let domain = Arc::clone(&self.domain);
        let toolkit = match (requestor, self.mode) {
            (Requestor::User, Mode::Solo) => {
                return raise("User tool calls are not allowed in solo mode");
            }
            (Requestor::User, Mode::Dialogue) => match &domain.user {
                Some(toolkit) => toolkit,
                None => return raise("User tools not available"),
            },
            (Requestor::Assistant, Mode::Solo) => match &domain.user {
                Some(toolkit) if toolkit.tool(name).is_some() => toolkit,
                _ => &domain.agent,
            },
            (Requestor::Assistant, Mode::Dialogue) => &domain.agent,
        };
        toolkit.call(&mut self.world, name, arguments)
    }

    /// Answers a call, and brings the sides in step.
    pub fn respond(&mut self, call: &ToolCall) -> ToolMessage {
        let reply = self
            .make_tool_call(&call.name, call.requestor, &call.arguments)
            .and_then(|reply| self.sync().map(|()| reply));
        let (content, error) = match reply {
            Ok(reply) => (reply.content(), false),
            Err(failure) => (format!("Error: {failure}"), true),
        };
        ToolMessage {
            id: call.id.clone(),
            content: Some(content),
            requestor: call.requestor,
            error,
            ..ToolMessage::default()
        }
    }

    /// Takes an expected action: its error is swallowed and the sides are not brought in step.
    pub fn take(&mut self, action: &Action) -> Result<(), Failure> {
        self.make_tool_call(&action.name, action.requestor, &action.arguments).map(|_| ())
    }

    /// Calls any function of the environment.
    pub fn call_function(&mut self, call: &FunctionCall) -> Result<Reply, Failure> {
        let domain = Arc::clone(&self.domain);
        let toolkit = match call.env_type {
            Requestor::Assistant => &domain.agent,
            Requestor::User => match &domain.user {
                Some(toolkit) => toolkit,
                None => {
                    return raise(format!(
                        "'NoneType' object has no attribute '{}'",
                        call.func_name
                    ));
                }
            },
        };
        let reply = toolkit.call_function(&mut self.world, &call.func_name, &call.arguments)?;
        self.sync()?;
        Ok(reply)
    }

    /// Whether an assertion holds.
    pub fn holds(&mut self, assertion: &Assertion) -> Result<bool, Failure> {
        match self.call_function(&assertion.call())? {
            Reply::Plain(Value::Bool(truth)) => Ok(truth == assertion.assert_value),
            other => raise(format!(
                "Function {} returned {other:?} instead of bool",
                assertion.func_name
            )),
        }
    }

    /// Brings both sides in step, as far as the domain has something to bring in step.
    pub fn sync(&mut self) -> Result<(), Failure> {
        (self.domain.sync)(&mut self.world)
    }

    /// Sets the state that a task starts from, then replays what was already called.
    ///
    /// Returns which calls, counted from 0, have a recorded answer that differs from today's.
    pub fn set_state(
        &mut self,
        initial: Option<&InitialState>,
        history: &[Message],
        replay: Replay,
    ) -> Result<Vec<usize>, Failure> {
        if self.mode == Mode::Solo && history.iter().any(|m| matches!(m, Message::User(_))) {
            return raise("User messages are not allowed in solo mode");
        }
        if let Some(data) = initial.and_then(|state| state.initialization_data.as_ref()) {
            if let Some(update) = &data.agent_data {
                self.world.update_agent(update)?;
            }
            if let Some(update) = &data.user_data {
                self.world.update_user(update)?;
            }
        }
        for call in initial.and_then(|s| s.initialization_actions.as_deref()).unwrap_or_default() {
            self.call_function(call)?;
        }
        let mut differing = Vec::new();
        for (at, (call, answer)) in calls_with_answers(history)?.into_iter().enumerate() {
            // A call of a tool that does not exist changed nothing when it was made.
            if !self.is_replayed(&call.name) {
                continue;
            }
            let response = self.respond(call);
            if same_content(response.content.as_deref(), answer.content.as_deref()) {
                continue;
            }
            if replay == Replay::Strict {
                return raise(format!(
                    "Tool call {} with {} returned {:?}, but {:?} was recorded",
                    call.name,
                    python::repr(&call.arguments),
                    response.content.unwrap_or_default(),
                    answer.content.as_deref().unwrap_or_default()
                ));
            }
            differing.push(at);
        }
        self.sync()?;
        Ok(differing)
    }

    /// Makes the calls of a conversation that this environment was in again, all of them: each must
    /// be answered as it was.
    pub fn repeat(&mut self, messages: &[Message]) -> Result<(), Failure> {
        for (call, answer) in calls_with_answers(messages)? {
            let response = self.respond(call);
            if !same_content(response.content.as_deref(), answer.content.as_deref()) {
                return raise(format!(
                    "{} with {} is answered differently now",
                    call.name,
                    python::repr(&call.arguments)
                ));
            }
            self.sync()?;
        }
        Ok(())
    }

    /// Whether a replay calls this tool again: it exists and changes something.
    fn is_replayed(&self, name: &str) -> bool {
        self.toolkits().find_map(|kit| kit.tool(name)).is_some_and(|tool| tool.mutates)
    }

    fn toolkits(&self) -> impl Iterator<Item = &Toolkit> {
        std::iter::once(&self.domain.agent).chain(&self.domain.user)
    }
}

/// Pairs each tool call of a history with its answer.
pub fn calls_with_answers(history: &[Message]) -> Result<Vec<(&ToolCall, &ToolMessage)>, Failure> {
    let mut pairs = Vec::new();
    let mut messages = history.iter();
    while let Some(message) = messages.next() {
        if let Message::Tool(_) = message {
            return raise(
                "Tool message not expected. Tool messages should always follow a tool call.",
            );
        }
        for call in message.tool_calls() {
            match messages.next() {
                Some(Message::Tool(answer)) if answer.id == call.id => pairs.push((call, answer)),
                Some(Message::Tool(answer)) => {
                    return raise(format!(
                        "Tool call id mismatch. Got {} and {}",
                        call.id, answer.id
                    ));
                }
                Some(_) => return raise("Tool message expected. Got another message."),
                None => return raise("Tool message expected. Got None."),
            }
        }
    }
    Ok(pairs)
}

/// Whether two contents say the same: as JSON where they are JSON, else as texts.
fn same_content(a: Option<&str>, b: Option<&str>) -> bool {
    if a == b {
        return true;
    }
    let (Some(a), Some(b)) = (a, b) else { return false };
    match (python::loads(a), python::loads(b)) {
        (Ok(a), Ok(b)) => a.equals(&b),
        _ => false,
    }
}
