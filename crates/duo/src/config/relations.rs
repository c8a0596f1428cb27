//! What keys say about each other, once all layers are together.

use std::path::Path;

use super::{
    dirs::Dirs,
    keys::{Agent, Config},
    origin::Origin,
    path,
    problem::{Problem, listed, unknown},
    schema::{Kind, Section, Spec},
    sources::{Sources, Vocabulary},
    tree::{Leaf, Table},
};

/// Fill in the defaults that depend on the platform, the working folder or a chosen name.
pub(crate) fn fill_in(tree: &mut Table, sources: &Sources, problems: &mut Vec<Problem>) {
    for (section, key, word, file) in [
        (None, "journal", Some("sqlite"), "journal.db"),
        (Some("repl"), "history", None, "history.txt"),
        (Some("planned"), "lessons_file", None, "lessons.jsonl"),
        (Some("browser"), "state", None, "browser"),
        (Some("a2a"), "directory", None, "agents.json"),
    ] {
        let table = match section {
            Some(section) => tree.tables.entry(section.into()).or_default(),
            None => &mut *tree,
        };
        data_file(table, key, word, &sources.dirs, file, problems);
    }
    if let Some(workspace) = tree.leaves.get_mut("workspace")
        && workspace.origin == Origin::Default
        && let Some(cwd) = sources.cwd.to_str()
    {
        workspace.value = cwd.into();
    }
    let behaviors = &sources.vocabulary.behaviors;
    by_name(tree, "agents", "behavior", |name| behaviors.iter().any(|behavior| behavior == name));
}

/// Every behaviour is an agent without a section.
pub(crate) fn add_usual_agents(tree: &mut Table, vocabulary: &Vocabulary) {
    let agents = tree.tables.entry("agents".into()).or_default();
    for behavior in &vocabulary.behaviors {
        agents.tables.entry(behavior.clone()).or_insert_with(|| {
            let mut agent = Table::defaults(Agent::SPEC);
            agent.set_default("behavior", behavior.as_str());
            agent
        });
    }
}

/// Replace the word for "the usual place" by that place.
fn data_file(
    table: &mut Table,
    key: &str,
    word: Option<&str>,
    dirs: &Dirs,
    file: &str,
    problems: &mut Vec<Problem>,
) {
    let leaf = table.leaves.get_mut(key);
    if leaf.as_deref().and_then(Leaf::text) != word {
        return;
    }
    let place = dirs.data_file(file);
    match (place.as_deref().and_then(Path::to_str), leaf) {
        (Some(place), Some(leaf)) => leaf.value = place.into(),
        (Some(place), None) => table.set_default(key, place),
        // Without a history nothing is lost; without a journal everything would be.
        (None, None) => {}
        (None, Some(leaf)) => problems.push(Problem {
            origin: leaf.origin.clone(),
            key: key.into(),
            what: "no home folder is known to put it into; set it to a file, or to \"memory\""
                .into(),
        }),
    }
}

/// Where a section's name is a word for one of its keys, that is the key's default.
fn by_name(tree: &mut Table, section: &str, key: &str, is_word: impl Fn(&str) -> bool) {
    let Some(sections) = tree.tables.get_mut(section) else {
        return;
    };
    for (name, table) in &mut sections.tables {
        let said = table.leaves.get(key).map(|leaf| &leaf.origin);
        if is_word(name) && said.is_none_or(|origin| *origin == Origin::Default) {
            table.set_default(key, name.as_str());
        }
    }
}

/// Check what keys say about each other.
pub(crate) fn check(tree: &Table, vocabulary: &Vocabulary, problems: &mut Vec<Problem>) {
    let mut problem = |origin: &Origin, key: &[&str], what: String| {
        problems.push(Problem { origin: origin.clone(), key: path::shown(key), what });
    };
    let empty = Table::default();
    let agents = tree.tables.get("agents").unwrap_or(&empty);
    let providers = tree.tables.get("providers").unwrap_or(&empty);

    if let Some(leaf) = tree.leaves.get("agent")
        && let Some(name) = leaf.text()
    {
        let behaviors = vocabulary.behaviors.iter().map(String::as_str);
        let mut known: Vec<&str> =
            behaviors.chain(agents.tables.keys().map(String::as_str)).collect();
        known.sort_unstable();
        known.dedup();
        if !known.contains(&name) {
            problem(&leaf.origin, &["agent"], unknown("agent", name, known));
        }
    }

    let mut models = vec![(vec!["model"], tree)];
    for (name, agent) in &agents.tables {
        models.push((vec!["agents", name.as_str(), "model"], agent));
        if let Some(dual) = agent.tables.get("dual") {
            models.push((vec!["agents", name.as_str(), "dual", "model_h"], dual));
            models.push((vec!["agents", name.as_str(), "dual", "model_r"], dual));
        }
    }
    if let Some(dual) = tree.tables.get("dual") {
        models.push((vec!["dual", "model_h"], dual));
        models.push((vec!["dual", "model_r"], dual));
    }
    for (key, table) in models {
        let Some(leaf) = key.last().and_then(|name| table.leaves.get(*name)) else {
            continue;
        };
        let model = leaf.text().filter(|model| !vocabulary.is_model_word(model));
        let Some((provider, _)) = model.and_then(|model| model.split_once('/')) else {
            continue;
        };
        let known = vocabulary.providers.iter().chain(providers.tables.keys());
        let known = known.map(String::as_str);
        if !vocabulary.providers.is_empty() && !known.clone().any(|known| known == provider) {
            problem(&leaf.origin, &key, unknown("provider", provider, known));
        }
    }

    casts(tree, agents, vocabulary, problems);
    let mut problem = |origin: &Origin, key: &[&str], what: String| {
        problems.push(Problem { origin: origin.clone(), key: path::shown(key), what });
    };
    let remotes = tree.tables.get("remotes").unwrap_or(&empty);
    for (section, named) in [("agents", agents), ("providers", providers), ("remotes", remotes)] {
        for (name, table) in &named.tables {
            if !path::is_bare(name) {
                let what = "the name may have letters, digits, \"-\" and \"_\"".to_owned();
                problem(&table.origin, &[section, name.as_str()], what);
            }
        }
    }

    for (name, provider) in &providers.tables {
        let is_usual = vocabulary.providers.contains(name);
        let has_place = provider.leaves.contains_key("base_url");
        if !vocabulary.providers.is_empty() && !is_usual && !has_place {
            let known = vocabulary.providers.iter().map(String::as_str);
            let what = match super::suggest(name, known) {
                Some(meant) => {
                    format!("a new provider needs a base_url (did you mean \"{meant}\"?)")
                }
                None => "a new provider needs a base_url".to_owned(),
            };
            problem(&provider.origin, &["providers", name.as_str()], what);
        }
    }
    required(tree, Config::SPEC, &mut Vec::new(), problems);
}

/// Whether the agents that dual ones are made of are there, and none is a part of itself.
fn casts(tree: &Table, agents: &Table, vocabulary: &Vocabulary, problems: &mut Vec<Problem>) {
    let mut known: Vec<&str> = vocabulary.behaviors.iter().map(String::as_str).collect();
    known.extend(agents.tables.keys().map(String::as_str));
    known.sort_unstable();
    known.dedup();
    let named = |leaf: &Leaf| -> Vec<String> {
        let list = leaf.value.as_array().cloned().unwrap_or_else(|| vec![leaf.value.clone()]);
        list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let top = tree.tables.get("dual");
    let sections = agents
        .tables
        .iter()
        .map(|(name, agent)| (vec!["agents", name.as_str(), "dual"], agent.tables.get("dual")));
    for (at, dual) in sections.chain([(vec!["dual"], top)]) {
        for key in ["human", "reactive"] {
            let Some(leaf) = dual.and_then(|dual| dual.leaves.get(key)) else { continue };
            for name in named(leaf) {
                if !known.contains(&name.as_str()) {
                    let key: Vec<&str> = at.iter().copied().chain([key]).collect();
                    problems.push(Problem {
                        origin: leaf.origin.clone(),
                        key: path::shown(&key),
                        what: unknown("agent", &name, known.iter().copied()),
                    });
                }
            }
        }
    }
    // Whom an agent is made of, as it will be once sections have inherited.
    let is_dual = |name: &str| {
        let said = agents.tables.get(name).and_then(|agent| agent.leaves.get("behavior"));
        said.and_then(Leaf::text).unwrap_or(name) == "dual"
    };
    let members = |name: &str| -> Vec<String> {
        let own = agents.tables.get(name).and_then(|agent| agent.tables.get("dual"));
        let said = |key: &str| {
            let in_section =
                |dual: Option<&Table>| dual.and_then(|dual| dual.leaves.get(key)).cloned();
            in_section(own).or_else(|| in_section(top))
        };
        ["human", "reactive"].into_iter().filter_map(said).flat_map(|leaf| named(&leaf)).collect()
    };
    let mut told: Vec<String> = Vec::new();
    for name in known {
        let is_new = !told.iter().any(|other| other == name);
        let mut seen: Vec<String> = Vec::new();
        let mut open = if is_dual(name) && is_new { members(name) } else { Vec::new() };
        while let Some(member) = open.pop() {
            if member == name {
                let origin = agents.tables.get(name).map(|agent| agent.origin.clone());
                problems.push(Problem {
                    origin: origin.unwrap_or_default(),
                    key: path::shown(&["agents", name, "dual"]),
                    what: "the agent would be a part of itself".to_owned(),
                });
                // Once for all that are in the circle.
                told.append(&mut seen);
                break;
            }
            if is_dual(&member) && !seen.contains(&member) {
                open.extend(members(&member));
                seen.push(member);
            }
        }
    }
}

/// Whether every section that the user made has what it needs.
fn required(table: &Table, spec: &'static Spec, at: &mut Vec<String>, problems: &mut Vec<Problem>) {
    for key in spec.keys {
        let Some(inner) = table.tables.get(key.name) else {
            continue;
        };
        at.push(key.name.into());
        if let Kind::Table(spec) = key.kind {
            required(inner, spec, at, problems);
        }
        let Kind::Named(spec) = key.kind else {
            at.pop();
            continue;
        };
        for (name, inner) in &inner.tables {
            at.push(name.clone());
            let wanted = spec.required.iter().copied();
            let missing: Vec<&str> =
                wanted.filter(|key| !inner.leaves.contains_key(*key)).collect();
            if !missing.is_empty() {
                problems.push(Problem {
                    origin: inner.origin.clone(),
                    key: path::shown(at),
                    what: format!("{} must be set too", listed(missing)),
                });
            }
            required(inner, spec, at, problems);
            at.pop();
        }
        at.pop();
    }
}
