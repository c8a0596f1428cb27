//! What a model's decisions lead to, and what happens where it decides nothing that fits.

use duologue_core::{Outcome, OutputSchema, Part};
use serde_json::{Value, json};

use super::{
    Settings, Tools,
    command::Command,
    decision::{
        Clarity, Decomposition, MOST_TRIES, Point, Recovery, RecoveryKind, Returned, ReturnedKind,
        Risk, Route, RouteKind, ToolDecision,
    },
    quote,
    state::{Action, Phase, Routing, phase_of},
    work::{Answer, Stand, Work, WorkStep},
};
use crate::bidirectional::tools::LLM;

/// The most ways out of failures in one task.
const MOST_RECOVERIES: u32 = 3;

impl Routing {
    /// A model answered at a decision point.
    pub(super) fn decided(&mut self, point: Point, text: &str, settings: &Settings, tools: &Tools) {
        let taken = match point {
            Point::Clarity => {
                OutputSchema::read(text).map(|answer| self.clarity(&answer, settings))
            }
            Point::Decomposition => OutputSchema::read(text)
                .and_then(|answer| self.decomposition(answer, settings, tools)),
            Point::Route => {
                OutputSchema::read(text).and_then(|answer| self.route(&answer, settings, tools))
            }
            Point::Tool => {
                OutputSchema::read(text).and_then(|answer| self.tool(answer, settings, tools))
            }
            Point::Risk => OutputSchema::read(text).map(|answer| self.risk(&answer)),
            Point::Returned => OutputSchema::read(text).map(|answer| self.returned(&answer)),
            Point::Recovery => {
                OutputSchema::read(text).map(|answer| self.recovery(&answer, settings))
            }
        };
        match taken {
            Ok(()) => {
                self.misfits = 0;
                self.complaint = None;
            }
            Err(problem) => self.misfit(point, problem, settings),
        }
    }

    /// An answer does not fit: ask again, or take the safe default.
    fn misfit(&mut self, point: Point, problem: String, settings: &Settings) {
        self.misfits += 1;
        if self.misfits < MOST_TRIES {
            self.complaint = Some(problem);
            return;
        }
        self.misfits = 0;
        self.complaint = None;
        let decision = match point {
            Point::Clarity => {
                self.phase = self.second_decision(settings);
                "clear"
            }
            Point::Decomposition => {
                self.phase = Phase::Decide(Point::Route);
                "one piece"
            }
            Point::Route | Point::Tool => {
                self.phase = Phase::Llm(None);
                "local llm"
            }
            Point::Risk => {
                let why = "It is not known whether this can be undone.";
                self.needs_yes(why.to_owned());
                "confirm"
            }
            Point::Returned => {
                self.answer_unjudged(Answer::Human);
                "human"
            }
            Point::Recovery => {
                let is_first = self.failed_tries() <= 1;
                self.recover(if is_first { RecoveryKind::Retry } else { RecoveryKind::GiveUp });
                if is_first { "retry" } else { "give up" }
            }
        };
        self.note_decision(point, decision, "default", &problem);
    }

    fn note_decision(&mut self, point: Point, decision: &str, by: &str, why: &str) {
        let note = json!({ "point": point.name(), "decision": decision, "by": by, "why": why });
        self.due.push_back(note);
    }

    fn clarity(&mut self, answer: &Clarity, settings: &Settings) {
        let question = answer.question.trim();
        if answer.is_clear || question.is_empty() {
            self.phase = self.second_decision(settings);
            self.note_decision(Point::Clarity, "clear", "model", "");
        } else {
            self.clarifications += 1;
            self.phase = Phase::Clarify(question.to_owned());
            self.note_decision(Point::Clarity, "unclear", "model", question);
        }
    }

    fn decomposition(
        &mut self,
        answer: Decomposition,
        settings: &Settings,
        tools: &Tools,
    ) -> Result<(), String> {
        // A step that is left of a failed plan is still a step.
        let fewest = if self.plans == 0 { 2 } else { 1 };
        if !answer.needs_steps || answer.steps.len() < fewest {
            self.phase = Phase::Decide(Point::Route);
            self.note_decision(Point::Decomposition, "one piece", "model", "");
            return Ok(());
        }
        let mut steps = answer.steps;
        for step in &mut steps {
            // An agent that nobody knows is this one.
            if !self.knows(&step.agent) {
                step.agent.clear();
            }
        }
        let shown = json!(steps).to_string();
        let work = Work::plan(self.plans + 1, steps)?;
        self.plans += 1;
        self.work = Some(work);
        self.note_decision(Point::Decomposition, "steps", "model", &shown);
        self.phase = self.guarded(Action::Work, settings, tools);
        Ok(())
    }

    fn route(&mut self, answer: &Route, settings: &Settings, tools: &Tools) -> Result<(), String> {
        match answer.kind()? {
            RouteKind::Reject => {
                let reason = match answer.reason.trim() {
                    "" => "the agent declined this request".to_owned(),
                    reason => reason.to_owned(),
                };
                self.note_decision(Point::Route, "reject", "model", &reason);
                self.phase = Phase::End(Outcome::Rejected { reason });
            }
            RouteKind::Remote(agent) if self.knows(&agent) => {
                let decision = format!("remote:{agent}");
                self.note_decision(Point::Route, &decision, "model", &answer.reason);
                self.work = Some(Work::single(0, agent, self.task()));
                self.phase = self.guarded(Action::Work, settings, tools);
            }
            RouteKind::Remote(agent) => {
                let why = format!("no agent {agent:?} is known");
                self.note_decision(Point::Route, "local llm", "default", &why);
                self.phase = Phase::Llm(None);
            }
            RouteKind::Local => {
                self.note_decision(Point::Route, "local", "model", &answer.reason);
                self.phase = match tools.names().as_slice() {
                    // There is nothing to choose.
                    [] => Phase::Llm(None),
                    [only] if only == LLM => Phase::Llm(None),
                    _ => Phase::Decide(Point::Tool),
                };
            }
        }
        Ok(())
    }

    fn tool(
        &mut self,
        answer: ToolDecision,
        settings: &Settings,
        tools: &Tools,
    ) -> Result<(), String> {
        if tools.offered(&answer.tool_name).is_none() {
            return Err(format!("there is no tool {:?}", answer.tool_name));
        }
        let params = match answer.params {
            Value::Null => json!({}),
            Value::Object(fields) => Value::Object(fields),
            _ => return Err("params is not an object".to_owned()),
        };
        self.note_decision(Point::Tool, &answer.tool_name, "model", &params.to_string());
        let command = Command { tool: answer.tool_name, params };
        self.phase = if command.tool == LLM {
            // The model reads the conversation itself, which is more than a prompt about it.
            Phase::Llm(None)
        } else {
            self.guarded(Action::Tool(command), settings, tools)
        };
        Ok(())
    }

    /// An action, with the question about its risk before it where that is asked.
    fn guarded(&self, action: Action, settings: &Settings, tools: &Tools) -> Phase {
        let may_be_risky = match &action {
            Action::Tool(command) => tools.has_effects(&command.tool),
            Action::Work => true,
        };
        if settings.confirmation && may_be_risky { Phase::Risk(action) } else { phase_of(action) }
    }

    fn risk(&mut self, answer: &Risk) {
        if answer.is_risky {
            self.note_decision(Point::Risk, "confirm", "model", &answer.why);
            self.needs_yes(answer.why.clone());
        } else {
            self.note_decision(Point::Risk, "go on", "model", "");
            if let Phase::Risk(action) = std::mem::take(&mut self.phase) {
                self.phase = phase_of(action);
            }
        }
    }

    fn needs_yes(&mut self, why: String) {
        if let Phase::Risk(action) = std::mem::take(&mut self.phase) {
            self.phase = Phase::Confirm(action, why);
        }
    }

    fn returned(&mut self, answer: &Returned) {
        // What the user did not say is for the user to say.
        let told = match (answer.decision, &self.request) {
            (ReturnedKind::HandleDirectly, Some(request)) => {
                let said = self.said.iter().map(|message| message.text());
                let said = said.chain(self.added.iter().cloned());
                quote::told(&answer.words, &answer.answer, &request.text(), said)
            }
            _ => None,
        };
        if let Some(words) = told {
            self.note_decision(Point::Returned, "handle directly", "model", &words);
            if let Some(step) = self.unjudged_step() {
                step.handled += 1;
            }
            self.answer_unjudged(Answer::Known(vec![Part::text(words)]));
        } else {
            self.note_decision(Point::Returned, "human", "model", "");
            self.answer_unjudged(Answer::Human);
        }
    }

    fn unjudged_step(&mut self) -> Option<&mut WorkStep> {
        let work = self.work.as_mut()?;
        let id = work.unjudged()?.id;
        work.step_mut(id)
    }

    fn answer_unjudged(&mut self, with: Answer) {
        if let Some(step) = self.unjudged_step()
            && let Stand::Asks { answer, .. } = &mut step.stand
        {
            *answer = with;
        }
    }

    fn recovery(&mut self, answer: &Recovery, settings: &Settings) {
        let is_plan = self.work.as_ref().is_some_and(|work| work.synthesised);
        let failed = self.work.as_ref().and_then(|work| work.failed());
        let at = failed.and_then(|(step, _)| step.agent.clone());
        let action = match answer.action {
            // Somebody who is not there, or failed just now, is nobody else.
            RecoveryKind::AnotherAgent
                if !self.knows(&answer.agent) || at.as_ref() == Some(&answer.agent) =>
            {
                RecoveryKind::GiveUp
            }
            RecoveryKind::Replan if !is_plan || !settings.decomposition => RecoveryKind::GiveUp,
            other => other,
        };
        let name = json!(action);
        let name = name.as_str().unwrap_or_default();
        self.note_decision(Point::Recovery, name, "model", &answer.agent);
        if action == RecoveryKind::AnotherAgent
            && let Some(step) = self.failed_step()
        {
            step.agent = Some(answer.agent.clone());
        }
        self.recover(action);
    }

    fn failed_step(&mut self) -> Option<&mut WorkStep> {
        let work = self.work.as_mut()?;
        let id = work.failed()?.0.id;
        work.step_mut(id)
    }

    fn failed_tries(&mut self) -> u32 {
        self.failed_step().map_or(0, |step| step.tries)
    }

    fn recover(&mut self, action: RecoveryKind) {
        self.recoveries += 1;
        match action {
            RecoveryKind::Retry | RecoveryKind::AnotherAgent => {
                if let Some(step) = self.failed_step() {
                    step.stand = Stand::Due;
                }
            }
            RecoveryKind::Local => {
                let is_plan = self.work.as_ref().is_some_and(|work| work.synthesised);
                if !is_plan {
                    self.phase = Phase::Llm(None);
                } else if let Some(step) = self.failed_step() {
                    step.agent = None;
                    step.stand = Stand::Due;
                }
            }
            RecoveryKind::Replan => self.phase = Phase::Decide(Point::Decomposition),
            RecoveryKind::GiveUp => {
                let failed = self.work.as_ref().and_then(|work| work.failed());
                if let Some((_, outcome)) = failed {
                    self.phase = Phase::End(outcome.clone());
                }
            }
        }
    }

    /// Whether a failure may still be worked around.
    pub(super) fn may_recover(&self) -> bool {
        self.recoveries < MOST_RECOVERIES
    }
}
