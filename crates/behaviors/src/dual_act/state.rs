//! Where a dual act stands: folded from its entries and never saved.

use std::{collections::BTreeMap, sync::Arc};

use duologue_core::{
    CalledTool, Delivery, Entry, Event, FailureCause, HookChange, Limit, Message, Outcome,
    ToolResult, ToolStatus, Unfit,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    conclusion::{Attributed, Conclusion, ConclusionNote},
    config::HUMAN,
    decision::{DecidedBy, Decision, DecisionNote},
    hr_loop::HrLoop,
};

/// How often an answer that does not fit is given back.
const MOST_MISFITS: u32 = 3;

/// How often H may ask the user in one task.
const MOST_QUESTIONS: u32 = 10;

/// The topic of the notes that mark H's turns, with how many loops there were.
pub(super) const HR_LOOP: &str = "hr_loop";

/// Where a dual act stands.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) stage: Stage,
    /// How often R was run in this task.
    pub(super) loops: u32,
    /// What R concluded in the last loop, in the order it came.
    pub(super) conclusions: Vec<Attributed>,
    /// What the workers really called in the last loop, by worker. What they say of themselves is
    /// held against it.
    pub(super) called: BTreeMap<String, Vec<CalledTool>>,
    /// What R was told last.
    pub(super) instruction: String,
    pub(super) focus_area: String,
    /// What a function before the loop wants R to know.
    pub(super) guidance: Option<String>,
    /// What the user or a hook said and H has not heard yet.
    said: Vec<String>,
    /// What was observed and H, or R, has not heard yet.
    observed: Vec<String>,
    observed_by_workers: Vec<String>,
    /// What R is told besides its instruction, where it hears what is observed.
    pub(super) worker_news: Vec<String>,
    /// What H is told besides its prompt.
    pub(super) briefing: Vec<String>,
    /// How often H's answers did not fit, since the last that did.
    misfits: u32,
    /// Questions to the user, in this task and in all.
    questions: u32,
    pub(super) questions_ever: u32,
}

/// What is to be done next.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Stage {
    /// Nothing.
    #[default]
    Idle,
    /// H is to be told what it has to decide about.
    Briefing,
    /// H, or a function in its place, is to decide.
    Deciding {
        /// What was wrong with its last answer.
        correction: Option<String>,
    },
    /// A decision was made and is to be written down.
    Decided(Decision, DecidedBy),
    /// No decision was made that fits: the default is to be taken.
    Undecided(String),
    /// A function is to be called before R works.
    Starting,
    /// R is to work.
    Working(Vec<Work>),
    /// What R said is to be read and written down.
    Concluding(Vec<Heard>, Vec<Attributed>),
    /// A function is to be called after R has worked.
    Reviewing,
    /// The user is to be asked.
    Asking(String),
    /// H is to put the answer into the shape that was asked for.
    Shaping(String),
    /// The last words are to be said.
    Closing(Outcome, LastWords),
    /// The turn is to end.
    Ending(Outcome),
}

/// One worker in a loop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Work {
    pub(super) key: String,
    pub(super) correction: Option<String>,
    misfits: u32,
    heard: Option<Finding>,
    /// When it was heard, among the others.
    place: usize,
}

/// What a worker left.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Heard {
    pub(super) by: String,
    pub(super) finding: Finding,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Finding {
    Concluded(Conclusion),
    /// For the user's own function to read.
    Unread(Option<Arc<Message>>),
    /// The whole run cannot go on after this.
    Fatal(Outcome),
}

/// What the user reads in the end.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LastWords {
    Text(String),
    /// The answer in the shape that was asked for, beside the text.
    Shaped(String, Value),
}

impl Work {
    pub(super) fn new(key: &str) -> Self {
        Self { key: key.to_owned(), correction: None, misfits: 0, heard: None, place: 0 }
    }

    pub(super) fn is_due(&self) -> bool {
        self.heard.is_none()
    }
}

impl State {
    pub(super) fn fold(&mut self, behavior: &HrLoop, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { message, delivery, .. } => self.requested(message, *delivery),
            Event::Observed { message } => {
                self.observed.push(message.text());
                self.observed_by_workers.push(message.text());
            }
            Event::Note { topic, data } => self.noted(behavior, topic, data),
            Event::ChildReplied { key, outcome, message, called, .. } => {
                if let (Stage::Working(_), Some(called)) = (&self.stage, called) {
                    self.called.entry(key.clone()).or_default().extend(called.iter().cloned());
                }
                self.child_replied(behavior, key, outcome, message.as_ref());
            }
            Event::FunctionAnswered { function, output, error, .. } => {
                self.function_answered(behavior, function, output.as_deref(), error.as_deref());
            }
            Event::AgentMessage { .. } => self.spoke(),
            Event::ToolEnded { result, .. } => self.answered(result),
            Event::HookAnswered { change: HookChange::SentBack { message }, .. } => {
                self.said.push(message.text());
                self.stage = Stage::Briefing;
            }
            _ => {}
        }
    }

    fn requested(&mut self, message: &Message, delivery: Delivery) {
        if delivery == Delivery::Steer {
            self.said.push(format!("The user adds: {}", message.text()));
            if matches!(self.stage, Stage::Idle | Stage::Ending(Outcome::Completed)) {
                self.stage = Stage::Briefing;
            }
            return;
        }
        *self = Self {
            stage: Stage::Briefing,
            observed: std::mem::take(&mut self.observed),
            observed_by_workers: std::mem::take(&mut self.observed_by_workers),
            questions_ever: self.questions_ever,
            ..Self::default()
        };
    }

    /// What H has not heard yet.
    fn news(&self) -> Vec<String> {
        let observed = self.observed.iter().map(|text| format!("Observed: {text}"));
        self.said.iter().cloned().chain(observed).collect()
    }

    fn noted(&mut self, behavior: &HrLoop, topic: &str, data: &Value) {
        match topic {
            HR_LOOP if self.stage == Stage::Briefing => {
                // What comes after this entry waits for the next time.
                self.briefing = self.news();
                self.said.clear();
                self.observed.clear();
                self.misfits = 0;
                self.stage = Stage::Deciding { correction: None };
            }
            DecisionNote::TOPIC => {
                if let Ok(note) = DecisionNote::deserialize(data) {
                    self.act_on(behavior, note.decision);
                }
            }
            ConclusionNote::TOPIC => {
                if let Ok(note) = ConclusionNote::deserialize(data) {
                    self.concluded(behavior, note.conclusion);
                }
            }
            _ => {}
        }
    }

    fn act_on(&mut self, behavior: &HrLoop, decision: Decision) {
        match decision {
            Decision::Continue { .. } | Decision::Redirect { .. }
                if self.loops >= behavior.max_loops =>
            {
                self.close(Outcome::LimitReached { limit: Limit::Loops });
            }
            Decision::Continue { instruction, .. } => {
                self.start_loop(behavior, instruction, String::new());
            }
            Decision::Redirect { instruction, focus_area, .. } => {
                self.start_loop(behavior, instruction, focus_area);
            }
            // The user said more while H decided to end: H hears that first.
            Decision::Terminate { .. } | Decision::Impossible { .. } if !self.said.is_empty() => {
                self.stage = Stage::Briefing;
            }
            Decision::Terminate { answer, .. } => {
                let text = if answer.is_empty() { summary_of(&self.conclusions) } else { answer };
                self.stage = Stage::Shaping(text);
            }
            Decision::Impossible { reason, .. } => {
                let words = LastWords::Text(reason.clone());
                self.stage = Stage::Closing(Outcome::Impossible { reason }, words);
            }
            Decision::AskHuman { .. } if self.questions >= MOST_QUESTIONS => {
                self.close(Outcome::LimitReached { limit: Limit::Loops });
            }
            Decision::AskHuman { question, .. } => {
                self.questions += 1;
                self.questions_ever += 1;
                self.stage = Stage::Asking(question);
            }
        }
    }

    fn start_loop(&mut self, behavior: &HrLoop, instruction: String, focus_area: String) {
        self.loops += 1;
        self.instruction = instruction;
        self.focus_area = focus_area;
        self.guidance = None;
        self.called.clear();
        self.worker_news = std::mem::take(&mut self.observed_by_workers);
        self.stage =
            if behavior.calls_before { Stage::Starting } else { Stage::Working(behavior.work()) };
    }

    /// End with what there is to show for it.
    fn close(&mut self, outcome: Outcome) {
        self.stage = if self.conclusions.is_empty() {
            Stage::Ending(outcome)
        } else {
            Stage::Closing(outcome, LastWords::Text(summary_of(&self.conclusions)))
        };
    }

    fn child_replied(
        &mut self,
        behavior: &HrLoop,
        key: &str,
        outcome: &Outcome,
        message: Option<&Arc<Message>>,
    ) {
        let text = message.map(|message| message.text()).unwrap_or_default();
        match &mut self.stage {
            Stage::Deciding { .. } if key == HUMAN => match outcome {
                Outcome::Completed => self.human_decided(behavior, message.map(|m| &**m)),
                other => self.close(other.clone()),
            },
            Stage::Shaping(answer) if key == HUMAN => match outcome {
                Outcome::Completed => {
                    let calls = message.into_iter().flat_map(|message| message.tool_calls());
                    let shaped = calls.map(|call| &call.arguments).find(|value| value.is_object());
                    let words = match shaped {
                        Some(value) => LastWords::Shaped(answer.clone(), value.clone()),
                        None => LastWords::Text(answer.clone()),
                    };
                    self.stage = Stage::Closing(Outcome::Completed, words);
                }
                other => self.close(other.clone()),
            },
            Stage::Working(works) => {
                let place = works.iter().filter(|work| !work.is_due()).count();
                if let Some(work) = works.iter_mut().find(|work| work.key == key && work.is_due()) {
                    work.hear(behavior, outcome, message, &text);
                    work.place = place;
                }
                if works.iter().all(|work| !work.is_due()) {
                    let works = std::mem::take(works);
                    self.all_heard(works);
                }
            }
            _ => {}
        }
    }

    fn human_decided(&mut self, behavior: &HrLoop, message: Option<&Message>) {
        let has_conclusion = !self.conclusions.is_empty();
        self.stage = match Decision::read(&behavior.decision, message, has_conclusion) {
            Ok(decision) => match self.repeated(&decision) {
                Some(error) if self.misfits < MOST_MISFITS => {
                    self.misfits += 1;
                    Stage::Deciding { correction: Some(error) }
                }
                Some(error) => Stage::Undecided(error),
                None => Stage::Decided(decision, DecidedBy::Human),
            },
            Err(Unfit::Wrong { error }) if self.misfits < MOST_MISFITS => {
                self.misfits += 1;
                Stage::Deciding { correction: Some(error) }
            }
            // Prose was already given back as often as is sensible.
            Err(error) => Stage::Undecided(error.to_string()),
        };
    }

    /// What is wrong with telling the workers once more, word for word, what they did without an
    /// error: it would be done twice. Where H has heard something new, it may be meant so.
    fn repeated(&self, decision: &Decision) -> Option<String> {
        let Decision::Continue { instruction, .. } = decision else {
            return None;
        };
        let mut calls = self.called.values().flatten().peekable();
        let is_done = self.briefing.is_empty()
            && calls.peek().is_some()
            && calls.all(|call| call.status == ToolStatus::Ok)
            && self.conclusions.iter().all(|one| one.conclusion.error.is_none());
        (is_done && instruction.trim() == self.instruction.trim()).then(|| {
            "instruction: the worker did exactly this already, and every call of it went well. \
             Terminate with the answer, or name only what is still missing"
                .to_owned()
        })
    }

    /// All workers have ended: read what they left, in the order they came.
    fn all_heard(&mut self, mut works: Vec<Work>) {
        works.sort_by_key(|work| work.place);
        let mut heard = Vec::new();
        for work in works {
            match work.heard {
                Some(Finding::Fatal(outcome)) => return self.close(outcome),
                Some(finding) => heard.push(Heard { by: work.key, finding }),
                None => {}
            }
        }
        self.stage = Stage::Concluding(heard, Vec::new());
    }

    fn concluded(&mut self, behavior: &HrLoop, conclusion: Attributed) {
        let Stage::Concluding(heard, done) = &mut self.stage else {
            return;
        };
        done.push(conclusion);
        if done.len() == heard.len() {
            self.conclusions = std::mem::take(done);
            self.stage = if behavior.calls_after { Stage::Reviewing } else { Stage::Briefing };
        }
    }

    fn function_answered(
        &mut self,
        behavior: &HrLoop,
        name: &str,
        output: Option<&Value>,
        error: Option<&str>,
    ) {
        let failed = |error: &str| {
            let error = format!("the function {name} failed: {error}");
            Outcome::Failed { error, cause: FailureCause::Hook }
        };
        let text = output.and_then(Value::as_str).map(str::to_owned);
        match (&mut self.stage, error) {
            (Stage::Deciding { .. }, Some(error)) => self.close(failed(error)),
            (Stage::Deciding { .. }, None) => {
                let decision = output.map(Decision::deserialize);
                match decision {
                    Some(Ok(decision)) => {
                        self.stage = Stage::Decided(decision, DecidedBy::Function);
                    }
                    Some(Err(error)) => self.close(failed(&error.to_string())),
                    None => self.close(failed("it gave nothing")),
                }
            }
            (Stage::Starting, Some(error)) => self.close(failed(error)),
            (Stage::Starting, None) => {
                self.guidance = text;
                self.stage = Stage::Working(behavior.work());
            }
            // What fails after something is reported, and the entry is the report.
            (Stage::Reviewing, _) => {
                self.said.extend(text);
                self.stage = Stage::Briefing;
            }
            (Stage::Concluding(heard, done), error) => {
                let Some(next) = heard.get_mut(done.len()) else { return };
                let conclusion = match (output.map(Conclusion::deserialize), error) {
                    (_, Some(error)) => Err(error.to_owned()),
                    (Some(Ok(conclusion)), None) => Ok(conclusion),
                    (Some(Err(error)), None) => Err(error.to_string()),
                    (None, None) => Err("it gave nothing".to_owned()),
                };
                let unread = |error: String| {
                    let words = match &next.finding {
                        Finding::Unread(Some(message)) => message.text(),
                        _ => String::new(),
                    };
                    Conclusion::failed(format!("the conclusion could not be read: {error}"), words)
                };
                next.finding = Finding::Concluded(conclusion.unwrap_or_else(unread));
            }
            _ => {}
        }
    }

    /// The agent said something itself.
    fn spoke(&mut self) {
        let outcome = match &self.stage {
            Stage::Shaping(_) => Outcome::Completed,
            Stage::Closing(outcome, _) => outcome.clone(),
            _ => return,
        };
        // The user said more meanwhile, so this was not the last word.
        self.stage = if outcome == Outcome::Completed && !self.said.is_empty() {
            Stage::Briefing
        } else {
            Stage::Ending(outcome)
        };
    }

    /// The user answered H's question, or did not.
    fn answered(&mut self, result: &ToolResult) {
        let Stage::Asking(question) = &self.stage else {
            return;
        };
        let text = result.prompt_text();
        self.said.push(match result.status {
            ToolStatus::Ok => format!("You asked the user: {question}\nThe user answered: {text}"),
            _ => format!("You asked the user: {question}\nThere is no answer: {text}"),
        });
        self.stage = Stage::Briefing;
    }
}

impl Work {
    fn hear(
        &mut self,
        behavior: &HrLoop,
        outcome: &Outcome,
        message: Option<&Arc<Message>>,
        text: &str,
    ) {
        let finding = match outcome {
            Outcome::Completed if behavior.extracts => Finding::Unread(message.cloned()),
            Outcome::Completed => {
                match Conclusion::read(&behavior.conclusion, message.map(|m| &**m)) {
                    Ok(conclusion) => Finding::Concluded(conclusion),
                    Err(Unfit::Wrong { error }) if self.misfits < MOST_MISFITS => {
                        self.misfits += 1;
                        self.correction = Some(error);
                        return;
                    }
                    Err(Unfit::Wrong { error }) => {
                        let error = format!("the conclusion does not fit: {error}");
                        Finding::Concluded(Conclusion::failed(error, text))
                    }
                    // Prose all the way: the text is what there is to judge.
                    Err(Unfit::Missing { .. }) => Finding::Concluded(Conclusion::text(text)),
                }
            }
            Outcome::Failed { cause: FailureCause::Authentication, .. }
            | Outcome::Aborted { .. }
            | Outcome::LimitReached { limit: Limit::Tokens | Limit::Cost | Limit::Time } => {
                Finding::Fatal(outcome.clone())
            }
            other => {
                Finding::Concluded(Conclusion::of_outcome(other, message.map(|message| &**message)))
            }
        };
        self.heard = Some(finding);
    }
}

/// What conclusions say, each with its author where there are several.
pub(super) fn summary_of(conclusions: &[Attributed]) -> String {
    joined(conclusions, |conclusion| conclusion.told())
}

/// One field of all conclusions, each with its author where there are several.
pub(super) fn joined(conclusions: &[Attributed], field: impl Fn(&Conclusion) -> String) -> String {
    match conclusions {
        [one] => field(&one.conclusion),
        many => {
            let line = |one: &Attributed| format!("{}: {}", one.by, field(&one.conclusion));
            many.iter().map(line).collect::<Vec<String>>().join("\n")
        }
    }
}
