//! The hybrid strategy: begin without a plan, plan when the work grows, go directly at the end.

use super::{
    classify::{Choice, ChosenBy},
    config::{PlannedConfig, Strategy},
    note::{PlannedNote, ReplanReason},
    state::PlannedState,
};

/// How many direct steps the last item gets.
const DIRECT_STEPS: u64 = 3;

/// Switch if the work shows that another mode fits better.
pub(crate) fn switch_if_due(state: &mut PlannedState, config: &PlannedConfig) {
    let in_mode = state.iterations - state.mode_since;
    let patience = config.plan_every.max(1);
    match state.mode {
        Strategy::React | Strategy::Simple if state.due_plan.is_some() => {
            switch(state, Strategy::MultiStep, ChosenBy::Hybrid, "a plan is wanted");
        }
        Strategy::React if !state.plan.exists() && in_mode >= patience => {
            switch(state, Strategy::MultiStep, ChosenBy::Hybrid, "the task grew longer");
            let detail = format!("{in_mode} steps without a plan did not finish it");
            state.want_plan(config, ReplanReason::GrewLonger, detail);
        }
        Strategy::MultiStep if state.todo.open() == 1 && state.todo.items.len() > 1 => {
            switch(state, Strategy::Simple, ChosenBy::Hybrid, "one item is left");
        }
        Strategy::Simple if in_mode >= DIRECT_STEPS => {
            switch(state, Strategy::React, ChosenBy::Hybrid, "the last item is not simple");
        }
        _ => {}
    }
}

/// Go on in another mode.
pub(crate) fn switch(state: &mut PlannedState, mode: Strategy, by: ChosenBy, reason: &str) {
    if state.mode == mode {
        return;
    }
    state.mode = mode;
    state.mode_since = state.iterations;
    let reason = reason.to_owned();
    let choice = Choice { strategy: mode, by, reason, plans_first: false };
    state.outbox.push_back(PlannedNote::Strategy(choice));
}
