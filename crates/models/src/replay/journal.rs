//! The answers that a run of a journal was given, and what it was told before each.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use duologue_core::{
    CUT_NOTE, Delivery, Delta, Entry, Event, HookChange, Message, MessageId, ModelError, Part,
    Request, Role, RunId, StopReason, ToolResult, Usage,
};

use super::{Answer, difference, miss};

/// What a run was answered, in order.
pub(super) struct JournalAnswers {
    run: RunId,
    answers: Vec<Recorded>,
    given: AtomicUsize,
}

enum Recorded {
    /// An answer of the conversation, with what had entered since the last one.
    Said {
        message: Arc<Message>,
        model: String,
        usage: Usage,
        stop: Option<StopReason>,
        told: Told,
    },
    /// A summary of what left the prompt. What it was asked with is not in the journal.
    Summary(String),
}

/// What entered a conversation since the agent last spoke.
#[derive(Clone, Debug, Default)]
struct Told {
    messages: Vec<Arc<Message>>,
    results: BTreeMap<String, Arc<ToolResult>>,
    /// Messages may have left the prompt since.
    trimmed: bool,
}

impl JournalAnswers {
    pub(super) fn of(entries: &[Arc<Entry>], run: RunId) -> Self {
        let mut answers = Vec::new();
        let mut told = Told::default();
        let mut request: Option<MessageId> = None;
        for entry in entries.iter().filter(|entry| entry.run == run) {
            match &entry.event {
                Event::UserRequest { message, delivery, .. } => {
                    if *delivery == Delivery::Start {
                        request = Some(message.id.clone());
                    }
                    told.messages.push(Arc::clone(message));
                }
                Event::Observed { message } => told.messages.push(Arc::clone(message)),
                Event::ToolEnded { result, .. } => {
                    told.results.insert(result.call_id.to_string(), Arc::clone(result));
                }
                Event::HookAnswered { change, .. } => told.hooked(change, &mut request),
                Event::MemoryTrimmed { summary, .. } => {
                    told.trimmed = true;
                    answers.extend(
                        summary.as_ref().map(|summary| Recorded::Summary(bare(&summary.text()))),
                    );
                }
                Event::AgentMessage { message, model, usage, stop, aside, .. } => {
                    // Words that a behaviour put into the agent's mouth have no model.
                    if !model.is_empty() {
                        answers.push(Recorded::Said {
                            message: Arc::clone(message),
                            model: model.to_string(),
                            usage: *usage,
                            stop: stop.clone(),
                            told: told.clone(),
                        });
                    }
                    // Asides and empty answers do not enter the prompt.
                    if aside.is_none() && !message.parts.is_empty() {
                        told = Told::default();
                    }
                }
                _ => {}
            }
        }
        Self { run, answers, given: AtomicUsize::new(0) }
    }

    /// The model that answered first.
    pub(super) fn model(&self) -> &str {
        let models = self.answers.iter().find_map(|answer| match answer {
            Recorded::Said { model, .. } => Some(model.as_str()),
            Recorded::Summary(_) => None,
        });
        models.unwrap_or("empty")
    }

    pub(super) fn answer(&self, request: &Request) -> Result<Answer, ModelError> {
        let at = self.given.fetch_add(1, Ordering::Relaxed);
        match self.answers.get(at) {
            None => Err(miss(format!(
                "the journal has {} answers for run {} and all were given",
                self.answers.len(),
                self.run
            ))),
            Some(Recorded::Summary(text)) => {
                Ok(vec![Ok(Delta::Text(text.clone())), Ok(Delta::Stop(StopReason::Completed))])
            }
            Some(Recorded::Said { message, usage, stop, told, .. }) => {
                told.check(request).map_err(|difference| {
                    miss(format!(
                        "answer {} of run {} was given to something else:\n{difference}",
                        at + 1,
                        self.run
                    ))
                })?;
                Ok(deltas(message, *usage, stop.clone()))
            }
        }
    }
}

impl Told {
    fn hooked(&mut self, change: &HookChange, request: &mut Option<MessageId>) {
        match change {
            HookChange::PreReply { message } => {
                let old = request.replace(message.id.clone());
                let place =
                    self.messages.iter_mut().rev().find(|told| Some(&told.id) == old.as_ref());
                if let Some(place) = place {
                    *place = Arc::clone(message);
                }
            }
            HookChange::PreStep { message }
            | HookChange::PostStep { message }
            | HookChange::SentBack { message } => self.messages.push(Arc::clone(message)),
            HookChange::PostReply { .. }
            | HookChange::PreTool { .. }
            | HookChange::Refused { .. }
            | HookChange::PostTool { .. }
            | HookChange::Failed { .. } => {}
        }
    }

    /// Compare with what a request tells after the last answer; the error is the difference.
    fn check(&self, request: &Request) -> Result<(), String> {
        let since = request
            .messages
            .iter()
            .rposition(|message| message.role == Role::Assistant)
            .map_or(0, |last| last + 1);
        let asked: Vec<&Arc<Message>> = request.messages.iter().skip(since).collect();
        let asked_results: BTreeMap<String, &ToolResult> = asked
            .iter()
            .flat_map(|message| message.tool_results())
            .map(|result| (result.call_id.to_string(), result))
            .collect();
        let asked_messages: Vec<&Arc<Message>> =
            asked.into_iter().filter(|message| message.role != Role::Tool).collect();
        if self.same_messages(&asked_messages) && self.same_results(&asked_results) {
            return Ok(());
        }
        let asked_results: Vec<&ToolResult> = asked_results.into_values().collect();
        let recorded =
            shown(self.messages.iter(), self.results.values().map(AsRef::as_ref), &asked_results);
        let asked = shown(asked_messages.into_iter(), asked_results.iter().copied(), &[]);
        Err(difference(&recorded, &asked))
    }

    fn same_messages(&self, asked: &[&Arc<Message>]) -> bool {
        let same =
            |a: &Message, b: &Message| (a.role, &a.name, &a.parts) == (b.role, &b.name, &b.parts);
        if self.trimmed {
            // A summary may be new, and anything may be gone.
            return true;
        }
        self.messages.len() == asked.len()
            && self.messages.iter().zip(asked).all(|(a, b)| same(a, b))
    }

    fn same_results(&self, asked: &BTreeMap<String, &ToolResult>) -> bool {
        self.results.len() == asked.len()
            && self.results.iter().zip(asked).all(|((a_id, a), (b_id, b))| {
                a_id == b_id && a.status == b.status && same_text(a, b)
            })
    }
}

/// Whether a result is the recorded one, or its beginning with a note that it was cut.
fn same_text(recorded: &ToolResult, asked: &ToolResult) -> bool {
    let (recorded, asked) = (recorded.prompt_text(), asked.prompt_text());
    recorded == asked || kept(&asked).is_some_and(|kept| recorded.starts_with(kept))
}

/// What was kept of a text that was cut.
fn kept(text: &str) -> Option<&str> {
    let (kept, _) = text.rsplit_once(CUT_NOTE)?;
    Some(kept.strip_suffix('\n').unwrap_or(kept))
}

/// Messages and results as lines. A result that was asked cut is shown as it was asked, so that only
/// real differences are left.
fn shown<'a>(
    messages: impl Iterator<Item = &'a Arc<Message>>,
    results: impl Iterator<Item = &'a ToolResult>,
    cut: &[&ToolResult],
) -> String {
    let mut text = String::new();
    for result in results {
        let as_asked =
            cut.iter().find(|asked| asked.call_id == result.call_id && same_text(result, asked));
        let body = as_asked.map_or_else(|| result.prompt_text(), |asked| asked.prompt_text());
        text.push_str(&format!(
            "result of {} {} ({}): {body}\n",
            result.call_id, result.name, result.status
        ));
    }
    for message in messages {
        let name = message.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let mut body = message.text();
        for part in message.parts.iter().filter(|part| !matches!(part, Part::Text { .. })) {
            body.push_str(&format!("\n    {}", serde_json::to_string(part).unwrap_or_default()));
        }
        text.push_str(&format!("{}{name}: {body}\n", message.role));
    }
    text
}

/// A finished message as the deltas that make it again.
fn deltas(message: &Message, usage: Usage, stop: Option<StopReason>) -> Answer {
    let mut deltas = Vec::new();
    let mut index = 0;
    for part in &message.parts {
        match part {
            Part::Text { text } => deltas.push(Delta::Text(text.clone())),
            Part::Reasoning { text, signature } => {
                deltas.push(Delta::Reasoning(text.clone()));
                deltas.extend(signature.clone().map(Delta::ReasoningSignature));
            }
            Part::ToolCall(call) => {
                deltas.push(Delta::CallStart {
                    index,
                    id: Some(call.id.clone()),
                    name: call.name.clone(),
                });
                let fragment = match &call.arguments {
                    // Kept as the model sent it, because it was not JSON.
                    serde_json::Value::String(text) => text.clone(),
                    value => value.to_string(),
                };
                deltas.push(Delta::CallArguments { index, fragment });
                deltas.extend(
                    call.signature
                        .clone()
                        .map(|signature| Delta::CallSignature { index, signature }),
                );
                index += 1;
            }
            // Models do not say these.
            Part::ToolResult(_) | Part::Data { .. } | Part::File { .. } => {}
        }
    }
    deltas.push(Delta::Usage(usage));
    deltas.push(Delta::Stop(stop.unwrap_or_else(|| StopReason::Other("cut off".to_owned()))));
    deltas.into_iter().map(Ok).collect()
}

/// A summary without the line that introduces it in the prompt.
fn bare(summary: &str) -> String {
    match summary.split_once('\n') {
        Some((first, rest)) if first.ends_with(':') => rest.to_owned(),
        _ => summary.to_owned(),
    }
}
