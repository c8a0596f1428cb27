//! A model that says what a script says: for tests, demonstrations and everything without a key.

mod file;
mod rules;
mod turn;

use std::{
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use duologue_core::{
    Delta, DeltaStream, ErrorClass, Message, Model, ModelError, Price, Request, Role,
};
use futures::{StreamExt, stream};

pub use self::{
    file::ScriptError,
    rules::Rule,
    turn::{Turn, TurnCall},
};

/// A model from a script.
///
/// ```
/// use duologue_models::{Scripted, Turn};
/// use serde_json::json;
///
/// let model = Scripted::new([
///     Turn::call("calculator", json!({ "expression": "6*7" })),
///     Turn::text("It is 42.").expect("42"),
/// ]);
/// ```
///
/// Turns are given in the order of the calls, or by position: the turn is then chosen by counting
/// what the assistant has already said in the request, so that a process that was killed and
/// resumed with a new `Scripted` goes on at the right turn. Files are by position. A prompt that was
/// trimmed has fewer answers in it than were given, so counting starts over: give such a script
/// enough memory, or let it be [`looped`](Scripted::looped).
///
/// A turn that is an error is given before the turn that follows it. By position it is given once
/// by each process, and does not count.
#[derive(Debug)]
pub struct Scripted {
    name: String,
    turns: Vec<Turn>,
    /// The turns as positions see them.
    slots: Vec<Slot>,
    rules: Vec<Rule>,
    order: Order,
    is_looped: bool,
    price: Option<Price>,
    /// Turns given so far, by calls.
    given: AtomicUsize,
    /// Errors given so far, by position.
    errors_given: Mutex<Vec<usize>>,
}

/// How a turn is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Calls,
    Position,
}

/// An answer and the errors that come before it, as indices of turns.
#[derive(Debug)]
struct Slot {
    errors: Range<usize>,
    /// `None` only for errors at the very end.
    answer: Option<usize>,
}

impl Scripted {
    /// A model that gives these turns, one for each call.
    pub fn new<T: Into<Turn>>(turns: impl IntoIterator<Item = T>) -> Self {
        Self::with_order(turns.into_iter().map(Into::into), Order::Calls)
    }

    fn with_order(turns: impl IntoIterator<Item = Turn>, order: Order) -> Self {
        let turns: Vec<Turn> = turns.into_iter().collect();
        let mut slots = Vec::new();
        let mut start = 0;
        for (index, turn) in turns.iter().enumerate() {
            if turn.error.is_none() {
                slots.push(Slot { errors: start..index, answer: Some(index) });
                start = index + 1;
            }
        }
        if start < turns.len() {
            slots.push(Slot { errors: start..turns.len(), answer: None });
        }
        Self {
            name: "scripted/test".to_owned(),
            errors_given: Mutex::new(vec![0; slots.len()]),
            turns,
            slots,
            rules: Vec::new(),
            order,
            is_looped: false,
            price: None,
            given: AtomicUsize::new(0),
        }
    }

    /// The same script, its turns chosen by what the request already holds.
    #[must_use]
    pub fn by_position(mut self) -> Self {
        self.order = Order::Position;
        self
    }

    /// The same script, beginning again when its turns run out. Then give calls no fixed ids.
    #[must_use]
    pub fn looped(mut self) -> Self {
        self.is_looped = true;
        self
    }

    /// The same script with rules, which are tried before the turns.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// The same script under another name, as in `scripted/NAME`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = format!("scripted/{name}");
        self
    }

    /// The same script at a price, to test budgets with.
    #[must_use]
    pub fn priced(mut self, price: Price) -> Self {
        self.price = Some(price);
        self
    }

    /// The turn that answers a request.
    fn choose(&self, request: &Request) -> Result<Turn, ModelError> {
        let last = last_input(request);
        if let Some(turn) = self.rules.iter().find_map(|rule| rule.answer(last, &request.extra)) {
            return Ok(turn);
        }
        let turn = match self.order {
            Order::Calls => self.next_turn(),
            Order::Position => self.turn_at(request),
        };
        let Some(turn) = turn else {
            return Err(ModelError::new(ErrorClass::ReplayMiss, self.out_of_turns(last)));
        };
        if let Some(expected) = &turn.expect {
            let text = last.map(said).unwrap_or_default();
            if !text.contains(expected.as_str()) {
                return Err(ModelError::new(
                    ErrorClass::ReplayMiss,
                    format!(
                        "{}: the script expects {expected:?} in the last message, which is {text:?}",
                        self.name
                    ),
                ));
            }
        }
        Ok(turn.clone())
    }

    fn next_turn(&self) -> Option<&Turn> {
        let at = self.given.fetch_add(1, Ordering::Relaxed);
        let at = if self.is_looped { at.checked_rem(self.turns.len())? } else { at };
        self.turns.get(at)
    }

    fn turn_at(&self, request: &Request) -> Option<&Turn> {
        let said =
            request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let at = if self.is_looped { said.checked_rem(self.slots.len())? } else { said };
        let slot = self.slots.get(at)?;
        if let Ok(mut given) = self.errors_given.lock()
            && let Some(given) = given.get_mut(at)
            && let Some(error) = slot.errors.clone().nth(*given)
        {
            *given += 1;
            return self.turns.get(error);
        }
        self.turns.get(slot.answer?)
    }

    fn out_of_turns(&self, last: Option<&Arc<Message>>) -> String {
        let turns = self.turns.len();
        let text = last.map(said).unwrap_or_default();
        match (turns, self.rules.len()) {
            (0, rules) if rules > 0 => {
                format!("{}: none of the script's {rules} rules fits {text:?}", self.name)
            }
            (turns, _) => format!(
                "{}: the script has {turns} turns and all were given; the last message is {text:?}",
                self.name
            ),
        }
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn ask(&self, request: Request) -> DeltaStream {
        match self.choose(&request) {
            Ok(turn) => play(turn.deltas(), turn.delay),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}

/// What the script reacts to: the last that a person or a tool said in the conversation.
fn last_input(request: &Request) -> Option<&Arc<Message>> {
    let is_input = |message: &&Arc<Message>| matches!(message.role, Role::User | Role::Tool);
    request
        .messages
        .iter()
        .rev()
        .find(is_input)
        .or_else(|| request.extra.iter().rev().find(is_input))
}

/// A message's text, results of tools included.
fn said(message: &Arc<Message>) -> String {
    let results = message.tool_results().map(duologue_core::ToolResult::prompt_text);
    let mut texts: Vec<String> = results.collect();
    let text = message.text();
    if !text.is_empty() || texts.is_empty() {
        texts.push(text);
    }
    texts.join("\n")
}

/// Deltas as a stream, with a pause before each if there is to be one.
pub(crate) fn play(deltas: Vec<Result<Delta, ModelError>>, delay: Option<Duration>) -> DeltaStream {
    let deltas = stream::iter(deltas);
    match delay {
        None => deltas.boxed(),
        Some(delay) => deltas
            .then(move |delta| async move {
                tokio::time::sleep(delay).await;
                delta
            })
            .boxed(),
    }
}

#[cfg(test)]
mod tests;
