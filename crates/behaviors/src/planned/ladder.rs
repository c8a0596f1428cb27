//! The ladder: what is done about being stuck, each time a little more.

use duologue_core::{Outcome, RunId};

use super::{
    config::PlannedConfig,
    note::{PlannedNote, ReplanReason, StuckNote},
    prompt,
    state::PlannedState,
    stuck::{Rung, Sign},
};

/// Take the next rung. A finished TODO item brings a run back to the ground.
pub(crate) fn climb(state: &mut PlannedState, config: &PlannedConfig, run: RunId, sign: Sign) {
    let rung = next_rung(state, config, run);
    state.rung = Some(rung);
    let detail = match rung {
        Rung::Hint => format!("{sign}; the model is told"),
        Rung::Replan => format!("{sign}; another plan is made"),
        Rung::HandUp => format!("{sign}; whoever runs this agent has to decide"),
        Rung::AskHuman => format!("{sign}; a person is asked"),
        Rung::Stop => format!("{sign}; nothing helped"),
    };
    state.outbox.push_back(PlannedNote::Stuck(StuckNote { sign, rung, detail }));
    match rung {
        Rung::Hint => state.notice = Some(prompt::hint(&sign)),
        Rung::Replan => {
            state.want_plan(config, ReplanReason::Stuck, format!("the run is stuck: {sign}"));
        }
        Rung::AskHuman => state.question = Some(prompt::question(state, &sign)),
        Rung::HandUp | Rung::Stop => {
            let summary = prompt::summary(state, &sign);
            state.end(Outcome::Stuck { summary }, None);
        }
    }
}

fn next_rung(state: &PlannedState, config: &PlannedConfig, run: RunId) -> Rung {
    let replans = !state.is_planned_out(config);
    match state.rung {
        None => Rung::Hint,
        Some(Rung::Hint) if replans => Rung::Replan,
        // A run under another one is that one's to redirect; only the root asks people.
        Some(Rung::Hint | Rung::Replan) if run != RunId::ROOT => Rung::HandUp,
        Some(Rung::Hint | Rung::Replan) if config.ask_human => Rung::AskHuman,
        Some(_) => Rung::Stop,
    }
}
