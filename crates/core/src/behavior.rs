//! Behaviours: the pure part of an agent, which says what to do next and does nothing itself.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    CallId, Entry, Expectation, Message, Outcome, OutputSchema, RunState, ToolChoice, ToolResult,
    ToolSpec,
};

/// A pattern of behaviour: what users implement for their own kind of agent.
///
/// Both methods are pure: no I/O, no clock, no randomness. The same journal gives the same
/// decisions, which is what makes a killed run resumable and a recorded one replayable.
///
/// ```
/// use duologue_core::{Ask, Behavior, Latest, Outcome, RunState, Step};
///
/// /// Answers once, without tools.
/// struct Oracle;
///
/// impl Behavior for Oracle {
///     type State = ();
///
///     fn name(&self) -> &'static str {
///         "oracle"
///     }
///
///     fn decide(&self, run: &RunState, _: &()) -> Step {
///         match run.latest() {
///             Latest::Input => Step::Ask(Ask::default().without_tools()),
///             _ => Step::End(Outcome::Completed),
///         }
///     }
/// }
/// ```
pub trait Behavior: Send + Sync + 'static {
    /// What the behaviour remembers besides what every run remembers. It is never saved: it is
    /// folded from the journal.
    type State: Default + Send + 'static;

    /// Its name, as configurations spell it.
    fn name(&self) -> &'static str;

    /// The system prompt. Unless overridden it is what the agent's author wrote.
    fn system_instruction(&self, profile: &Profile) -> String {
        profile.system.clone()
    }

    /// Take in an entry of this run that was just written.
    fn fold(&self, state: &mut Self::State, entry: &Entry) {
        let _ = (state, entry);
    }

    /// What to do next.
    fn decide(&self, run: &RunState, state: &Self::State) -> Step;

    /// The run is stopped before its end: a function of the agent that calls off what was begun
    /// elsewhere, and its input. It is called once, nobody waits for it, and its answer is not
    /// written down.
    fn farewell(&self, run: &RunState, state: &Self::State) -> Option<(String, Value)> {
        let _ = (run, state);
        None
    }
}

/// What a behaviour may know of its agent.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The agent's name.
    pub name: Arc<str>,
    /// What its author wrote as the system prompt.
    pub system: String,
    /// Its tools.
    pub tools: Arc<[Arc<ToolSpec>]>,
}

/// What an agent wants to happen next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the model.
    Ask(Ask),
    /// Run the calls of the model's last message that have no result yet.
    Call,
    /// Give calls of the batch a result without running them.
    Skip {
        /// Which.
        calls: Vec<CallId>,
        /// What the model is told.
        reason: String,
    },
    /// Give calls of the batch results that the behaviour worked out itself: for tools that are
    /// about its own state, such as a list of what is left to do.
    Settle(Vec<ToolResult>),
    /// Wait for the answers that are still open.
    Wait,
    /// Let other agents work. They run side by side; the next decision is due when all have ended.
    Run(Vec<ChildTurn>),
    /// Call a user-supplied function and journal what it answers.
    Invoke {
        /// Its name.
        function: String,
        /// What it is given.
        input: Value,
    },
    /// Write something down.
    Note {
        /// What it is about.
        topic: String,
        /// What it says.
        data: Value,
    },
    /// Say something that no model said, as the agent's own message.
    Say(Message),
    /// End the turn.
    End(Outcome),
}

/// A question to the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ask {
    /// Messages for this request alone, after the conversation.
    pub extra: Vec<Arc<Message>>,
    /// Which tools the model may use.
    pub tools: ToolSelection,
    /// Whether it must.
    pub tool_choice: ToolChoice,
    /// The shape that the answer must have.
    pub output: Option<OutputSchema>,
    /// What the answer is for, when it is not part of the conversation.
    pub aside: Option<String>,
}

impl Ask {
    /// The same question without tools.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.tools = ToolSelection::None;
        self
    }
}

/// Which of an agent's tools a request carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolSelection {
    /// All of them.
    #[default]
    All,
    /// None.
    None,
    /// Those with these names.
    Only(Vec<String>),
}

/// A turn of a child agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildTurn {
    /// What the parent calls the child; the same key is the same conversation.
    pub key: String,
    /// What the child is told. A turn that a crash or a question left in the middle goes on
    /// instead: the child is not told twice.
    pub input: Message,
    /// The shape that its answer must have, where it must have one.
    pub expects: Option<Arc<Expectation>>,
}

/// A behaviour at work, with its state's type hidden.
pub(crate) trait Machine: Send {
    fn fold(&mut self, entry: &Entry);
    fn decide(&self, run: &RunState) -> Step;
    fn farewell(&self, run: &RunState) -> Option<(String, Value)>;
}

/// A behaviour with its state's type hidden.
pub(crate) trait Pattern: Send + Sync {
    fn name(&self) -> &'static str;
    fn system_instruction(&self, profile: &Profile) -> String;
    fn start(self: Arc<Self>) -> Box<dyn Machine>;
}

struct AtWork<B: Behavior> {
    behavior: Arc<B>,
    state: B::State,
}

impl<B: Behavior> Machine for AtWork<B> {
    fn fold(&mut self, entry: &Entry) {
        self.behavior.fold(&mut self.state, entry);
    }

    fn decide(&self, run: &RunState) -> Step {
        self.behavior.decide(run, &self.state)
    }

    fn farewell(&self, run: &RunState) -> Option<(String, Value)> {
        self.behavior.farewell(run, &self.state)
    }
}

impl<B: Behavior> Pattern for B {
    fn name(&self) -> &'static str {
        Behavior::name(self)
    }

    fn system_instruction(&self, profile: &Profile) -> String {
        Behavior::system_instruction(self, profile)
    }

    fn start(self: Arc<Self>) -> Box<dyn Machine> {
        Box::new(AtWork { behavior: self, state: B::State::default() })
    }
}
