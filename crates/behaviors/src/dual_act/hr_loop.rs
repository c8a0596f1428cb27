//! The loop between H and R as a behaviour: pure, like every other.

use std::sync::Arc;

use duologue_core::{
    Behavior, CalledTool, ChildTurn, Entry, Expectation, Latest, Message, Outcome, Part, Role,
    RunId, RunState, Step, ToolCall,
};
use serde_json::{Value, json};

use super::{
    conclusion::{Accepted, Attributed, Conclusion, ConclusionNote},
    config::{HUMAN, Prompts},
    decision::{DecidedBy, Decision, DecisionNote, Deliberation},
    state::{Finding, HR_LOOP, Heard, LastWords, Stage, State, Work, joined, summary_of},
};

/// The functions that a dual act may have called, by name.
pub(super) mod function {
    pub(in super::super) const DECISION: &str = "decision";
    pub(in super::super) const EXTRACTOR: &str = "conclusion_extractor";
    pub(in super::super) const BEFORE_LOOP: &str = "before_loop";
    pub(in super::super) const AFTER_LOOP: &str = "after_loop";
}

/// The tool that H's questions to the user go through.
pub(super) const ASK_HUMAN: &str = "ask_human";

/// The loop between H and R.
#[derive(Debug)]
pub(super) struct HrLoop {
    pub(super) prompts: Prompts,
    pub(super) max_loops: u32,
    /// What the workers are called.
    pub(super) workers: Vec<String>,
    /// Whether the workers hear what is observed.
    pub(super) shares: bool,
    pub(super) decision: Arc<Expectation>,
    pub(super) conclusion: Arc<Expectation>,
    /// Which functions there are.
    pub(super) decides: bool,
    pub(super) extracts: bool,
    pub(super) calls_before: bool,
    pub(super) calls_after: bool,
}

impl Behavior for HrLoop {
    type State = State;

    fn name(&self) -> &'static str {
        "dual"
    }

    fn fold(&self, state: &mut State, entry: &Entry) {
        state.fold(self, entry);
    }

    fn decide(&self, run: &RunState, state: &State) -> Step {
        // A question to the user, or an answer in the shape that was asked for.
        if run.latest() == Latest::Calls {
            return Step::Call;
        }
        match &state.stage {
            Stage::Idle => Step::End(Outcome::Completed),
            Stage::Briefing => {
                Step::Note { topic: HR_LOOP.to_owned(), data: json!({"loop": state.loops}) }
            }
            Stage::Deciding { correction } => self.deliberate(run, state, correction.as_deref()),
            Stage::Decided(decision, by) => note_decision(state, decision.clone(), *by, None),
            Stage::Undecided(because) => {
                let decision = Decision::by_default(&task(run), &state.conclusions);
                note_decision(state, decision, DecidedBy::Default, Some(because.clone()))
            }
            Stage::Starting => invoke(
                function::BEFORE_LOOP,
                json!({
                    "loop": state.loops,
                    "instruction": state.instruction,
                    "focus_area": state.focus_area,
                }),
            ),
            Stage::Working(works) => self.let_work(run, state, works),
            Stage::Concluding(heard, done) => conclude(state, heard, done),
            Stage::Reviewing => invoke(
                function::AFTER_LOOP,
                json!({"loop": state.loops, "conclusions": state.conclusions}),
            ),
            Stage::Asking(question) => Step::Say(question_to_user(run, state, question)),
            Stage::Shaping(answer) => match run.expected() {
                Some(expected) => shape(answer, expected),
                // Nobody asked for a shape, so the answer is said as it is.
                None => Step::Say(last_message(run, state, &LastWords::Text(answer.clone()))),
            },
            Stage::Closing(_, words) => Step::Say(last_message(run, state, words)),
            Stage::Ending(outcome) => Step::End(outcome.clone()),
        }
    }
}

impl HrLoop {
    /// One piece of work for each worker.
    pub(super) fn work(&self) -> Vec<Work> {
        self.workers.iter().map(|key| Work::new(key)).collect()
    }

    /// Let H decide, or the function in its place.
    fn deliberate(&self, run: &RunState, state: &State, correction: Option<&str>) -> Step {
        if self.decides {
            let deliberation = Deliberation {
                original_task: task(run),
                loops: state.loops,
                conclusions: state.conclusions.clone(),
                news: state.briefing.clone(),
            };
            return invoke(function::DECISION, json!(deliberation));
        }
        let input = match correction {
            Some(error) => Message::user(format!(
                "That decision does not fit: {error}. Decide again by calling {}.",
                Decision::TOOL
            )),
            None => self.brief_human(run, state),
        };
        let expects = Some(Arc::clone(&self.decision));
        Step::Run(vec![ChildTurn { key: HUMAN.to_owned(), input, expects }])
    }

    fn brief_human(&self, run: &RunState, state: &State) -> Message {
        let all = &state.conclusions;
        let artifacts = |conclusion: &Conclusion| match conclusion.artifacts.is_empty() {
            true => String::new(),
            false => json!(conclusion.artifacts).to_string(),
        };
        let prompt = self.prompts.decision.fill(&[
            ("original_task", &task(run)),
            ("instruction", &state.instruction),
            ("summary", &summary_of(all)),
            ("steps", &joined(all, steps)),
            (
                "suggested_next_action",
                &joined(all, |c| c.suggested_next_action.clone().unwrap_or_default()),
            ),
            (
                "confidence",
                &joined(all, |c| {
                    c.confidence.map(|confidence| confidence.to_string()).unwrap_or_default()
                }),
            ),
            ("artifacts", &joined(all, artifacts)),
        ]);
        let mut text = prompt.trim_end().to_owned();
        for news in &state.briefing {
            text.push_str(&format!("\n\n{news}"));
        }
        for (worker, called) in &state.called {
            text.push_str(&format!("\n\n{}", on_record(worker, called)));
        }
        let (loops, most) = (state.loops, self.max_loops);
        if loops == 0 {
            text.push_str(
                "\n\nNothing was done yet. If anything has to be done or looked up, continue and \
                 hand the worker the whole task. Terminate only if you can give the whole answer by yourself.",
            );
        }
        if !state.called.is_empty() {
            text.push_str(
                "\n\nGo through the task part by part: which call on record did it? A part that makes or \
                 changes something and has no call on record is not done, however sure the worker \
                 is. If one is not done, continue with exactly that part as the instruction. \
                 Terminate only when every part is done.",
            );
        }
        text.push_str(&format!(
            "\n\nThe worker has worked {loops} of at most {most} times. Decide by calling {}.",
            Decision::TOOL
        ));
        let mut parts = vec![Part::text(text)];
        if loops == 0 {
            parts.extend(enclosed(run));
        }
        Message::new(Role::User, parts)
    }

    /// Give the workers that have not ended yet their turns.
    fn let_work(&self, run: &RunState, state: &State, works: &[Work]) -> Step {
        let due = works.iter().filter(|work| work.is_due());
        let turns = due.map(|work| ChildTurn {
            key: work.key.clone(),
            input: match &work.correction {
                None => self.instruct(run, state),
                Some(error) => Message::user(format!(
                    "That conclusion does not fit: {error}. Conclude again by calling {}.",
                    Conclusion::TOOL
                )),
            },
            expects: (!self.extracts).then(|| Arc::clone(&self.conclusion)),
        });
        Step::Run(turns.collect())
    }

    fn instruct(&self, run: &RunState, state: &State) -> Message {
        let task = task(run);
        let values = [
            ("original_task", task.as_str()),
            ("instruction", &state.instruction),
            ("focus_area", &state.focus_area),
        ];
        let mut texts = vec![self.prompts.task.fill(&values)];
        if self.shares {
            texts.extend(state.worker_news.iter().map(|text| format!("Observed: {text}")));
        }
        texts.extend(state.guidance.clone());
        texts.push(self.prompts.format.fill(&values));
        let texts = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        let mut parts = vec![Part::text(texts.collect::<Vec<&str>>().join("\n\n"))];
        if state.loops == 1 {
            parts.extend(enclosed(run));
        }
        Message::new(Role::User, parts)
    }
}

/// What the user asked for.
fn task(run: &RunState) -> String {
    run.request().map(|request| request.text()).unwrap_or_default()
}

/// What the user sent besides text.
fn enclosed(run: &RunState) -> impl Iterator<Item = Part> {
    let parts = run.request().into_iter().flat_map(|request| &request.parts);
    parts.filter(|part| !matches!(part, Part::Text { .. })).cloned()
}

fn steps(conclusion: &Conclusion) -> String {
    let lines = conclusion.steps.iter().map(|step| format!("- {step}"));
    lines.collect::<Vec<String>>().join("\n")
}

/// What the journal knows of a worker's doings, whatever it says of them itself.
fn on_record(worker: &str, called: &[CalledTool]) -> String {
    if called.is_empty() {
        return format!(
            "On record: {worker} called no tool at all, so it looked nothing up and changed \
             nothing, whatever it says."
        );
    }
    let calls: Vec<String> = called
        .iter()
        .map(|call| {
            let CalledTool { name, arguments, status } = call;
            format!("- {name} {arguments} → {status}")
        })
        .collect();
    format!("On record: these are all the calls that {worker} made.\n{}", calls.join("\n"))
}

fn invoke(function: &str, input: Value) -> Step {
    Step::Invoke { function: function.to_owned(), input }
}

fn note_decision(
    state: &State,
    decision: Decision,
    by: DecidedBy,
    because: Option<String>,
) -> Step {
    let note = DecisionNote { number: state.loops, by, decision, because };
    Step::Note { topic: DecisionNote::TOPIC.to_owned(), data: json!(note) }
}

/// Read what the next worker left, or write down what it came to.
fn conclude(state: &State, heard: &[Heard], done: &[Attributed]) -> Step {
    let Some(Heard { by, finding }) = heard.get(done.len()) else {
        return Step::End(Outcome::Completed);
    };
    let conclusion = match finding {
        Finding::Concluded(conclusion) => conclusion.clone(),
        Finding::Unread(message) => {
            return invoke(function::EXTRACTOR, json!({"by": by, "message": message}));
        }
        Finding::Fatal(outcome) => Conclusion::of_outcome(outcome, None),
    };
    let conclusion = Attributed { by: by.clone(), conclusion };
    let note = ConclusionNote { number: state.loops, conclusion };
    Step::Note { topic: ConclusionNote::TOPIC.to_owned(), data: json!(note) }
}

/// H's question as a call of this agent, so that it waits like any other.
fn question_to_user(run: &RunState, state: &State, question: &str) -> Message {
    let number = state.questions_ever;
    let id = match run.id() {
        RunId::ROOT => format!("question-{number}"),
        RunId(run) => format!("question-{number}-of-{run}"),
    };
    let call = ToolCall::new(id, ASK_HUMAN, json!({"question": question}));
    Message::new(Role::Assistant, vec![Part::from(call)])
}

/// Have H put the answer into the shape that this agent's own caller wants.
fn shape(answer: &str, expected: &Arc<Expectation>) -> Step {
    let name = &expected.name;
    let text = format!("The task is done. Give its result by calling {name}. It is:\n{answer}");
    let expects = Some(Arc::clone(expected));
    Step::Run(vec![ChildTurn { key: HUMAN.to_owned(), input: Message::user(text), expects }])
}

/// The answer, with what was accepted as data and in the shape that was asked for.
fn last_message(run: &RunState, state: &State, words: &LastWords) -> Message {
    let (text, shaped) = match words {
        LastWords::Text(text) => (text, None),
        LastWords::Shaped(text, value) => (text, Some(value)),
    };
    let mut parts = vec![Part::text(text)];
    if !state.conclusions.is_empty() {
        let conclusions = state.conclusions.clone();
        parts.push(Part::data(json!(Accepted { loops: state.loops, conclusions })));
    }
    if let (Some(value), Some(expected)) = (shaped, run.expected()) {
        let id = format!("answer-{}-{}", run.id().0, run.turn());
        parts.push(Part::from(ToolCall::new(id, &expected.name, value.clone())));
    }
    Message::new(Role::Assistant, parts)
}
