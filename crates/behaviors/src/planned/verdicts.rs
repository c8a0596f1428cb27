//! What follows from the answers to asides.

use duologue_core::{Limit, Outcome, OutputSchema};

use super::{
    aside::{Aside, MOST_TRIES},
    classify::{self, ChosenBy, Classification},
    config::{PlannedConfig, Strategy},
    hybrid,
    meta::MetaLook,
    note::{MisfitNote, PlannedNote, ReplanReason, ValidationNote},
    plan::{PlanAnswer, StepAnswer},
    prompt,
    state::{Misfit, PlannedState},
    tried::clip,
    validation::{Occasion, Validation},
};

impl PlannedState {
    /// An aside was answered. What does not fit is given back a few times; then a default is
    /// taken.
    pub(crate) fn aside_answered(&mut self, config: &PlannedConfig, aside: Aside, text: &str) {
        let read = match aside {
            Aside::Classification => {
                OutputSchema::read::<Classification>(text).map(|said| self.classified(&said))
            }
            Aside::Plan => OutputSchema::read::<PlanAnswer>(text)
                .and_then(|plan| plan.check().map(|()| plan))
                .and_then(|plan| self.another(plan))
                .map(|plan| self.planned(plan)),
            Aside::Validation => OutputSchema::read::<Validation>(text)
                .and_then(|validation| validation.check().map(|()| validation))
                .map(|validation| self.validated(config, validation)),
            Aside::Meta => OutputSchema::read::<MetaLook>(text)
                .and_then(|look| look.check().map(|()| look))
                .map(|look| self.looked_at(config, look)),
        };
        match read {
            Ok(()) => self.misfit = None,
            Err(error) => self.did_not_fit(config, aside, error, text),
        }
    }

    /// A plan that did not work is given back once: that is how weak models go in circles. One
    /// that insists may be right, unless a check said what to do instead.
    fn another(&self, plan: PlanAnswer) -> Result<PlanAnswer, String> {
        let failed = self.due_plan.as_ref().is_some_and(|(reason, _)| reason.is_failure());
        if !failed || !self.plan.is_repeated_by(&plan) {
            return Ok(plan);
        }
        let insists = self.misfit.as_ref().is_some_and(|misfit| misfit.aside == Aside::Plan);
        if !insists {
            return Err("these are the steps that did not work. What failed, and why? Plan other \
                        steps, or with other tools."
                .to_owned());
        }
        let suggested = self.validation.iter().flat_map(|validation| &validation.suggestions);
        let steps: Vec<StepAnswer> = suggested
            .filter(|suggestion| !suggestion.trim().is_empty())
            .map(|suggestion| StepAnswer { title: clip(suggestion, 400), tool: String::new() })
            .collect();
        if steps.is_empty() {
            return Ok(plan);
        }
        let reasoning = "The same steps did not work; the check's suggestions take their place.";
        Ok(PlanAnswer { reasoning: reasoning.to_owned(), steps })
    }

    fn did_not_fit(&mut self, config: &PlannedConfig, aside: Aside, error: String, text: &str) {
        let before = self.misfit.take().filter(|misfit| misfit.aside == aside);
        let tries = before.map_or(0, |misfit| misfit.tries) + 1;
        if tries < MOST_TRIES {
            let answer = text.to_owned();
            self.misfit = Some(Misfit { aside, tries, error, answer });
            return;
        }
        let default = match aside {
            Aside::Classification => "the indicator phrases decide",
            Aside::Plan if self.plan.exists() => "the plan stays as it is",
            Aside::Plan => "the task is the plan's only step",
            Aside::Validation => "the task counts as not complete",
            Aside::Meta => "nothing changes",
        };
        self.outbox.push_back(PlannedNote::Misfit(MisfitNote {
            aside: aside.name().to_owned(),
            tries,
            error,
            default: default.to_owned(),
        }));
        match aside {
            Aside::Classification => {
                let choice = classify::by_phrases(&self.task_text(), None);
                self.outbox.push_back(PlannedNote::Strategy(choice));
            }
            Aside::Plan if self.plan.exists() => {
                self.due_plan = None;
                self.replans += 1;
            }
            Aside::Plan => {
                let step = StepAnswer { title: clip(&self.task_text(), 400), tool: String::new() };
                self.planned(PlanAnswer { reasoning: default.to_owned(), steps: vec![step] });
            }
            Aside::Validation => {
                self.validated(config, Validation::unknown("The check gave no usable answer."));
            }
            Aside::Meta => self.due_meta = false,
        }
    }

    fn classified(&mut self, said: &Classification) {
        let choice = classify::by_model(said, self.task.as_deref());
        self.outbox.push_back(PlannedNote::Strategy(choice));
    }

    fn validated(&mut self, config: &PlannedConfig, validation: Validation) {
        let occasion = self.due_validation.take().unwrap_or(Occasion::Asked);
        let claim = self.claim.take();
        let note = ValidationNote { occasion, validation: validation.clone() };
        self.outbox.push_back(PlannedNote::Validation(note));
        // What somebody said meanwhile is not part of what was checked.
        if validation.is_complete && self.steered {
            return;
        }
        if validation.is_complete {
            let said = occasion == Occasion::Answer;
            let last_word = claim.unwrap_or(validation.reasoning);
            self.end(Outcome::Completed, (!said).then_some(last_word));
            return;
        }
        let detail = format!("the check said: {}", validation.reasoning);
        self.validation = Some(validation);
        self.live = prompt::live(self);
        if !occasion.is_claim() {
            return;
        }
        if self.strategy == Some(Strategy::Hybrid) && self.mode == Strategy::Simple {
            hybrid::switch(self, Strategy::React, ChosenBy::Hybrid, "the check failed");
        }
        if !self.plan.exists() {
            return;
        }
        self.want_plan(config, ReplanReason::FailedValidation, detail);
        let is_over = self.due_plan.is_none() && self.todo.open() == 0;
        if is_over && self.mode == Strategy::MultiStep {
            self.end(Outcome::LimitReached { limit: Limit::Loops }, None);
        }
    }

    fn looked_at(&mut self, config: &PlannedConfig, look: MetaLook) {
        self.due_meta = false;
        if look.validate_every > 0 {
            self.validate_every = Some(look.validate_every);
        }
        if look.plan_every > 0 {
            self.plan_every = Some(look.plan_every);
        }
        let switch = look.switch().filter(|mode| *mode != self.mode);
        let reason = look.assessment.clone();
        self.outbox.push_back(PlannedNote::Meta(look));
        let Some(mode) = switch else { return };
        hybrid::switch(self, mode, ChosenBy::Meta, &reason);
        // A hybrid stays one; another run takes up the new strategy's bound too.
        if self.strategy != Some(Strategy::Hybrid) {
            self.strategy = Some(mode);
        }
        if mode != Strategy::Simple && !self.plan.exists() {
            self.want_plan(config, ReplanReason::Meta, reason);
        }
    }
}
