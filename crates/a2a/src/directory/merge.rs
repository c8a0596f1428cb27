//! Two processes with one directory file: what either of them added, removed or saw is kept.
//!
//! Each process remembers the file as it last read or wrote it. What differs from that here was done
//! here, what differs in the file was done elsewhere, and both count.

use std::collections::BTreeMap;

use url::Url;

use super::{KnownAgent, is_at, place_of};

/// Agents by their ids.
pub(super) type Agents = BTreeMap<String, KnownAgent>;

/// What is known once both sides are taken in. `base` is the file as it was when this process last
/// saw it.
pub(super) fn merged(ours: &Agents, base: &Agents, theirs: &Agents) -> Agents {
    let mut all = Agents::new();
    for (id, their) in theirs {
        match (ours.get(id), base.get(id)) {
            (Some(our), _) if is_same(our, their) => {
                all.insert(id.clone(), newer(our, their));
            }
            // Moved here.
            (Some(our), Some(known)) if is_same(known, their) => {
                all.insert(id.clone(), our.clone());
            }
            // Forgotten here.
            (None, Some(known)) if is_same(known, their) => {}
            // Added elsewhere, or another agent that was given the same id there.
            _ => {
                all.insert(id.clone(), their.clone());
            }
        }
    }
    for (id, our) in ours {
        let was_there = base.get(id).is_some_and(|known| is_same(known, our));
        let is_listed = place(our).is_some_and(|place| all.values().any(|one| is_at(one, &place)));
        // Forgotten elsewhere, or known there under another id.
        if was_there || is_listed {
            continue;
        }
        let free = (2..).map(|number| format!("{id}-{number}"));
        let mut ids = std::iter::once(id.clone()).chain(free);
        if let Some(free) = ids.find(|id| !all.contains_key(id)) {
            let agent = KnownAgent { id: free.clone(), ..our.clone() };
            all.insert(free, agent);
        }
    }
    all
}

/// Whether two entries are of the agent at the same place.
fn is_same(one: &KnownAgent, other: &KnownAgent) -> bool {
    place(one) == place(other)
}

fn place(agent: &KnownAgent) -> Option<String> {
    Url::parse(&agent.url).ok().map(|url| place_of(&url))
}

/// The entry of whoever looked last.
fn newer(our: &KnownAgent, their: &KnownAgent) -> KnownAgent {
    let mut agent = if their.last_tried > our.last_tried { their } else { our }.clone();
    // Whoever was added by somebody here is not hearsay.
    if our.learned_from.is_none() || their.learned_from.is_none() {
        agent.learned_from = None;
    }
    agent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(list: &[(&str, u16, i64)]) -> Agents {
        let one = |(id, port, tried): &(&str, u16, i64)| {
            let url = format!("http://localhost:{port}");
            let mut agent = KnownAgent::new((*id).into(), (*id).into(), url, 1);
            agent.last_tried = Some(*tried);
            ((*id).to_owned(), agent)
        };
        list.iter().map(one).collect()
    }

    fn ids(agents: &Agents) -> Vec<&str> {
        agents.keys().map(String::as_str).collect()
    }

    #[test]
    fn what_either_side_added_or_removed_counts() {
        let base = agents(&[("a", 1, 1), ("b", 2, 1), ("c", 3, 1)]);
        let ours = agents(&[("a", 1, 1), ("c", 3, 1), ("here", 4, 1)]);
        let theirs = agents(&[("a", 1, 1), ("b", 2, 5), ("there", 5, 1)]);
        assert_eq!(ids(&merged(&ours, &base, &theirs)), ["a", "here", "there"]);
    }

    #[test]
    fn an_agent_that_moved_keeps_its_id_on_whichever_side_it_was_seen() {
        let (old, new) = (agents(&[("a", 1, 1)]), agents(&[("a", 2, 2)]));
        assert_eq!(merged(&new, &old, &old), new);
        assert_eq!(merged(&old, &old, &new), new);
    }

    #[test]
    fn the_last_look_counts_and_one_place_is_listed_once() {
        let base = agents(&[("a", 1, 1)]);
        let ours = agents(&[("a", 1, 2), ("two", 2, 1), ("same", 3, 1)]);
        let theirs = agents(&[("a", 1, 9), ("second", 2, 1), ("same", 4, 1)]);
        let all = merged(&ours, &base, &theirs);
        assert_eq!(ids(&all), ["a", "same", "same-2", "second"]);
        assert_eq!(all["a"].last_tried, Some(9));
        assert_eq!(all["same-2"].url, "http://localhost:3");
    }
}
