//! The summaries of the sessions that are being written, kept by the writer.
//!
//! A summary is folded from every entry. Its row is written in the same transaction as the entry
//! that changed it, with one exception: in the middle of a turn, when only the count and the time
//! moved, and the time by less than [`MOST_LAG`]. Each row stands in four indexes, and writing all
//! of them for every entry costs more than the entry itself. Readers take the count and the time
//! of a running session from its last entry, so they see no difference; only the place of a
//! session in a list of another process may be late by as much.

use std::{collections::HashMap, mem};

use duologue_core::{Entry, SessionId, SessionSummary};

/// The most that the time in the row of a running session is behind, in milliseconds.
const MOST_LAG: u64 = 5_000;

/// The status of a session in the middle of a turn.
pub(crate) const RUNNING: &str = "running";

/// A session that is being written.
pub(crate) struct Live {
    /// Its number in the file.
    pub(crate) number: i64,
    /// Its summary, up to date.
    summary: SessionSummary,
    /// What its row says.
    saved: SessionSummary,
}

impl Live {
    /// A session as its row tells it, with what its last entry tells.
    pub(crate) fn new(number: i64, saved: SessionSummary, summary: SessionSummary) -> Self {
        Self { number, summary, saved }
    }

    /// The summary, up to date.
    pub(crate) fn summary(&self) -> &SessionSummary {
        &self.summary
    }

    /// Take in the next entry.
    pub(crate) fn fold(&mut self, entry: &Entry) {
        self.summary.fold(entry);
    }

    /// Whether the row says less than the summary.
    fn lags(&self) -> bool {
        self.summary != self.saved
    }

    /// Whether the row must be written now.
    pub(crate) fn is_due(&self) -> bool {
        let (summary, saved) = (&self.summary, &self.saved);
        let only_moved = summary.status == RUNNING
            && summary.status == saved.status
            && summary.title == saved.title
            && summary.agent == saved.agent
            && summary.created_at == saved.created_at
            && summary.forked_from == saved.forked_from
            && summary.updated_at.abs_diff(saved.updated_at) < MOST_LAG;
        !only_moved && self.lags()
    }

    /// The row is written.
    pub(crate) fn saved(&mut self) {
        self.saved.clone_from(&self.summary);
    }
}

/// The sessions that were written lately: the younger half, and the older half that is dropped
/// when the younger one is full. A session that is used again becomes young.
#[derive(Default)]
pub(crate) struct LiveSessions {
    young: HashMap<SessionId, Live>,
    old: HashMap<SessionId, Live>,
}

impl LiveSessions {
    /// How many sessions each half holds.
    const HALF: usize = 8_192;

    /// The session, if it is here.
    pub(crate) fn get(&mut self, id: &SessionId) -> Option<&mut Live> {
        if let Some((id, live)) = self.old.remove_entry(id) {
            self.young.insert(id, live);
        }
        self.young.get_mut(id)
    }

    /// Remember a session.
    pub(crate) fn insert(&mut self, id: SessionId, live: Live) {
        self.old.remove(&id);
        self.young.insert(id, live);
    }

    /// Forget a session that is gone.
    pub(crate) fn remove(&mut self, id: &SessionId) {
        self.young.remove(id);
        self.old.remove(id);
    }

    /// Forget all: they may not be true any more.
    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    /// Make room. What comes back is forgotten and has a row that lags.
    pub(crate) fn make_room(&mut self) -> Vec<Live> {
        if self.young.len() < Self::HALF {
            return Vec::new();
        }
        let dropped = mem::replace(&mut self.old, mem::take(&mut self.young));
        dropped.into_values().filter(Live::lags).collect()
    }

    /// The sessions whose rows lag.
    pub(crate) fn lagging(&mut self) -> impl Iterator<Item = &mut Live> {
        self.young.values_mut().chain(self.old.values_mut()).filter(|live| live.lags())
    }
}

#[cfg(test)]
mod tests {
    use duologue_core::{Event, RunId};

    use super::*;

    fn entry(seq: u64, at: i64, event: Event) -> Entry {
        Entry { seq, at, run: RunId::ROOT, event }
    }

    fn note(seq: u64, at: i64) -> Entry {
        let event = Event::Note { topic: "t".into(), data: serde_json::Value::Null };
        entry(seq, at, event)
    }

    fn live() -> Live {
        let summary = SessionSummary::new(SessionId::from("s"));
        Live::new(1, summary.clone(), summary)
    }

    #[test]
    fn outside_a_turn_every_entry_is_due() {
        let mut live = live();
        assert!(!live.is_due());
        live.fold(&note(0, 1));
        assert!(live.is_due());
    }

    #[test]
    fn within_a_turn_a_row_is_due_when_it_is_late() {
        let mut live = live();
        live.fold(&entry(0, 1, Event::AgentResponseStart { turn: 1 }));
        assert!(live.is_due());
        live.saved();
        live.fold(&note(1, 5_000));
        assert!(live.lags() && !live.is_due());
        live.fold(&note(2, 5_001));
        assert!(live.is_due());
    }

    #[test]
    fn what_is_used_again_stays_and_the_rest_is_forgotten() {
        let mut sessions = LiveSessions::default();
        let kept = SessionId::from("kept");
        sessions.insert(kept.clone(), live());
        for number in 0..3 * LiveSessions::HALF {
            assert!(sessions.get(&kept).is_some());
            sessions.insert(SessionId::from(number.to_string()), live());
            sessions.make_room();
        }
        assert!(sessions.get(&kept).is_some());
        assert!(sessions.young.len() + sessions.old.len() <= 2 * LiveSessions::HALF);
    }
}
