//! Which tasks there are: a few words about each, folded from their journals and kept in memory, so
//! that a list can be filtered and paged without reading them all.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use a2a::{A2AError, TaskState};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use duologue_core::{Outcome, SessionId};
use foldhash::fast::RandomState;

use super::{record::Birth, state::state_of, view::TaskView};
use crate::{Caller, fault};

/// What a list needs to know of a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    birth: Arc<Birth>,
    pub(crate) state: TaskState,
    /// When it entered that state.
    pub(crate) at: i64,
    created_at: i64,
}

impl Listed {
    /// `None` for a session that is no task.
    pub(crate) fn of(view: &TaskView) -> Option<Self> {
        Some(Self {
            birth: Arc::clone(view.birth()?),
            state: view.state().clone(),
            at: view.status_at(),
            created_at: view.created_at(),
        })
    }

    /// What a view has become by a turn that ended at once. `None` where the outcome alone does not
    /// tell.
    pub(crate) fn ended(view: &TaskView, outcome: &Outcome, at: i64) -> Option<Self> {
        let state = state_of(outcome);
        let birth = Arc::clone(view.born_as().filter(|_| state.is_terminal())?);
        Some(Self { birth, state, at, created_at: view.created_at() })
    }

    pub(crate) fn owner(&self) -> &str {
        self.birth.owner.as_str()
    }
}

/// Which tasks to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) owner: String,
    pub(crate) context: Option<String>,
    pub(crate) state: Option<TaskState>,
    /// Only those that entered their state after this time.
    pub(crate) after: Option<i64>,
}

/// A page of a list.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    pub(crate) ids: Vec<String>,
    pub(crate) next: Option<Cursor>,
    pub(crate) total: usize,
}

/// The last task of a page: the next page begins behind it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    at: i64,
    id: SessionId,
}

impl Cursor {
    pub(crate) fn to_token(&self) -> String {
        BASE64.encode(format!("{}:{}", self.at, self.id))
    }

    pub(crate) fn from_token(token: &str) -> Result<Self, A2AError> {
        let read = || {
            let text = String::from_utf8(BASE64.decode(token).ok()?).ok()?;
            let (at, id) = text.split_once(':')?;
            Some(Self { at: at.parse().ok()?, id: id.into() })
        };
        read().ok_or_else(|| fault::invalid("pageToken", "it is not one that was given out"))
    }
}

/// All tasks of a server.
#[derive(Debug, Default)]
pub(crate) struct Index {
    tasks: HashMap<SessionId, Listed, RandomState>,
    /// By the time of their state, so that a page is cut and not sorted.
    order: BTreeSet<Cursor>,
    /// By owner and conversation, the last begun of each.
    contexts: Named,
    /// By owner and the client's key.
    keys: Named,
    /// Those that are over, the first of them first, where only some of them are kept.
    over: VecDeque<SessionId>,
    keeps: Option<usize>,
}

/// Tasks by names that their owners gave.
type Named = HashMap<Caller, HashMap<Arc<str>, SessionId, RandomState>, RandomState>;

fn name(named: &mut Named, owner: &Caller, name: &Arc<str>, id: &SessionId) {
    // Most owners are known already.
    if !named.contains_key(owner) {
        named.insert(owner.clone(), HashMap::default());
    }
    if let Some(names) = named.get_mut(owner) {
        names.insert(Arc::clone(name), id.clone());
    }
}

fn named<'a>(named: &'a Named, owner: &str, name: &str) -> Option<&'a SessionId> {
    named.get(owner)?.get(name)
}

/// Take a name away, if it still stands for this task.
fn unname(named: &mut Named, owner: &Caller, name: &str, id: &SessionId) {
    if let Some(names) = named.get_mut(owner)
        && names.get(name).is_some_and(|known| known == id)
    {
        names.remove(name);
        if names.is_empty() {
            named.remove(owner);
        }
    }
}

impl Index {
    /// An index for a store that forgets tasks that are over, but for so many.
    pub(crate) fn keeping(keeps: Option<usize>) -> Self {
        Self { keeps, ..Self::default() }
    }

    /// Take in what is known of a task now.
    pub(crate) fn put(&mut self, id: &SessionId, listed: Listed) {
        match self.tasks.get(id) {
            Some(old) => {
                let old = Cursor { at: old.at, id: id.clone() };
                self.order.remove(&old);
            }
            None => {
                if let Some(key) = &listed.birth.key {
                    name(&mut self.keys, &listed.birth.owner, key, id);
                }
                self.begun(id, &listed);
            }
        }
        self.order.insert(Cursor { at: listed.at, id: id.clone() });
        let is_over = listed.state.is_terminal();
        if let (true, Some(keeps)) = (is_over, self.keeps) {
            self.over.push_back(id.clone());
            if self.over.len() > keeps
                && let Some(oldest) = self.over.pop_front()
            {
                self.forget(&oldest);
            }
        }
        self.tasks.insert(id.clone(), listed);
    }

    /// Take in that a task is over. One that was over before stays as it was.
    pub(crate) fn end(&mut self, id: &SessionId, listed: Listed) {
        if !self.tasks.get(id).is_some_and(|known| known.state.is_terminal()) {
            self.put(id, listed);
        }
    }

    fn forget(&mut self, id: &SessionId) {
        let Some(Listed { birth, at, .. }) = self.tasks.remove(id) else { return };
        self.order.remove(&Cursor { at, id: id.clone() });
        unname(&mut self.contexts, &birth.owner, &birth.context, id);
        if let Some(key) = &birth.key {
            unname(&mut self.keys, &birth.owner, key, id);
        }
    }

    /// Keep a key for a task that is about to begin; the task that has it already, if one does.
    pub(crate) fn claim_key(
        &mut self,
        owner: &Caller,
        key: &Arc<str>,
        id: &SessionId,
    ) -> Option<SessionId> {
        if let Some(known) = named(&self.keys, owner.as_str(), key) {
            return Some(known.clone());
        }
        name(&mut self.keys, owner, key, id);
        None
    }

    /// Let go of a key: its task did not begin.
    pub(crate) fn give_up_key(&mut self, owner: &Caller, key: &str) {
        if let Some(keys) = self.keys.get_mut(owner) {
            keys.remove(key);
        }
    }

    /// Remember which task of its conversation was begun last.
    fn begun(&mut self, id: &SessionId, listed: &Listed) {
        let Birth { owner, context, .. } = &*listed.birth;
        let newest = named(&self.contexts, owner.as_str(), context);
        let newest = newest.and_then(|id| self.tasks.get(id));
        if newest.is_none_or(|newest| newest.created_at <= listed.created_at) {
            name(&mut self.contexts, owner, context, id);
        }
    }

    /// The last task that was begun in a conversation.
    pub(crate) fn newest_in(&self, owner: &str, context: &str) -> Option<&str> {
        named(&self.contexts, owner, context).map(SessionId::as_str)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Listed> {
        self.tasks.get(id)
    }

    /// The task that a client began with this key.
    pub(crate) fn with_key(&self, owner: &str, key: &str) -> Option<&str> {
        named(&self.keys, owner, key).map(SessionId::as_str)
    }

    /// A page, the last changed first.
    pub(crate) fn page(&self, filter: &Filter, behind: Option<&Cursor>, size: usize) -> Page {
        let mut page = Page { ids: Vec::new(), next: None, total: 0 };
        let mut last = None;
        let mut is_more = false;
        for cursor in self.order.iter().rev() {
            if !self.tasks.get(&cursor.id).is_some_and(|task| filter.fits(task)) {
                continue;
            }
            page.total += 1;
            if behind.is_some_and(|behind| cursor >= behind) {
                continue;
            }
            if page.ids.len() < size {
                page.ids.push(cursor.id.to_string());
                last = Some(cursor.clone());
            } else {
                is_more = true;
            }
        }
        page.next = last.filter(|_| is_more);
        page
    }
}

impl Filter {
    fn fits(&self, task: &Listed) -> bool {
        task.owner() == self.owner
            && self.context.as_ref().is_none_or(|context| **context == *task.birth.context)
            && self.state.as_ref().is_none_or(|state| *state == task.state)
            && self.after.is_none_or(|after| task.at > after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(owner: &str, context: &str, at: i64) -> Listed {
        let birth = Birth {
            context: context.into(),
            owner: Caller::named(owner),
            key: None,
            by_tasks_send: false,
        };
        Listed { birth: Arc::new(birth), state: TaskState::Completed, at, created_at: at }
    }

    #[test]
    fn pages_follow_each_other_without_gaps_while_tasks_change() {
        let mut index = Index::default();
        for n in 0..7 {
            // Two of each time, so that a page ends between them.
            index.put(&format!("t{n}").into(), listed("ada", "c", n / 2));
        }
        index.put(&"other".into(), listed("bob", "c", 100));
        let filter = Filter { owner: "ada".into(), ..Filter::default() };
        let first = index.page(&filter, None, 3);
        assert_eq!(
            (first.ids.as_slice(), first.total),
            (&["t6", "t5", "t4"].map(String::from)[..], 7)
        );
        // What changes meanwhile moves to the front, and is on no later page.
        index.put(&"t1".into(), listed("ada", "c", 50));
        let token = first.next.unwrap().to_token();
        let behind = Cursor::from_token(&token).unwrap();
        let second = index.page(&filter, Some(&behind), 3);
        assert_eq!(second.ids, ["t3", "t2", "t0"]);
        assert_eq!(second.next, None);
    }

    #[test]
    fn what_the_store_forgets_is_forgotten_whole() {
        let mut index = Index::keeping(Some(2));
        for n in 0..5 {
            let mut listed = listed("ada", &format!("c{n}"), n);
            if n == 0 {
                listed.state = TaskState::InputRequired;
            }
            index.put(&format!("t{n}").into(), listed);
        }
        let filter = Filter { owner: "ada".into(), ..Filter::default() };
        assert_eq!(index.page(&filter, None, 9).ids, ["t4", "t3", "t0"]);
        assert_eq!(index.newest_in("ada", "c1"), None);
        assert_eq!(index.newest_in("ada", "c0"), Some("t0"));
        assert_eq!(index.newest_in("ada", "c4"), Some("t4"));
    }

    #[test]
    fn a_token_that_nobody_gave_out_is_an_error() {
        for token in ["x", "", "bm90LWEtY3Vyc29y"] {
            assert_eq!(
                Cursor::from_token(token).unwrap_err().code,
                a2a::error_code::INVALID_PARAMS
            );
        }
    }
}
