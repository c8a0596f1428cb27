//! Environment variables as a layer: `DUOLOGUE_` and the path of a key in capitals.

use std::sync::Arc;

use super::{
    origin::Origin,
    path,
    problem::{Problem, quoted},
    raw::Raw,
    schema::{Kind, Spec},
    sources::Sources,
    text::{self, Quotes},
    tree::Table,
};

/// How every variable of ours begins.
pub(crate) const PREFIX: &str = "DUOLOGUE_";

/// Variables that are no keys. One that ends in `*` stands for all that begin so.
pub(crate) const RESERVED: [&str; 11] = [
    "DUOLOGUE_A2A_TOKEN",
    "DUOLOGUE_A2A_TOOLS",
    "DUOLOGUE_AIMOCK",
    "DUOLOGUE_BROWSER",
    "DUOLOGUE_LOG",
    "DUOLOGUE_MCP_DEPTH",
    "DUOLOGUE_MCP_TOOLS",
    "DUOLOGUE_MINIWOB",
    "DUOLOGUE_MINIWOB_SEEDS",
    "DUOLOGUE_MODELS",
    "DUOLOGUE_TEST_*",
];

/// The variable of a key outside of named sections.
pub(crate) fn variable(path: &[&str]) -> String {
    format!("{PREFIX}{}", path.join("_").to_uppercase())
}

/// The variables as a layer. `below` are the layers so far, whose names a variable may speak of.
pub(crate) fn layer(
    sources: &Sources,
    root: &'static Spec,
    below: &Table,
    problems: &mut Vec<Problem>,
) -> Raw {
    let mut layer = Raw::table(Origin::Environment(PREFIX.into()));
    let named = sources.environment.iter();
    for (name, value) in named.filter(|(name, _)| name.starts_with(PREFIX) && !is_reserved(name)) {
        let origin = Origin::Environment(Arc::from(name.as_str()));
        let mut problem = |key: &[String], what: String| {
            problems.push(Problem { origin: origin.clone(), key: path::shown(key), what });
        };
        // Set to nothing is how a shell unsets for one command.
        if value.is_empty() {
            continue;
        }
        let Some(value) = value.to_str() else {
            problem(&[], "is not Unicode".into());
            continue;
        };
        let Some(key) = key_of(name, root, below) else {
            problem(&[], unknown(name, root));
            continue;
        };
        let raw = text::read(value, root.kind_at(&key), Quotes::Literal, &origin);
        match layer.put(&key, raw) {
            Ok(None) => {}
            Ok(Some(other)) => {
                problem(&key, format!("{} sets the same key: unset one", other.origin));
            }
            Err(depth) => {
                let parent = path::shown(key.get(..depth).unwrap_or_default());
                problem(&key, format!("another variable sets {parent} to something else"));
            }
        }
    }
    layer
}

fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| match reserved.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *reserved,
    })
}

/// The key that a variable sets. With `__` every dot is spelled out; without, `_` may be a dot or
/// itself, and the keys there are decide.
fn key_of(name: &str, root: &'static Spec, below: &Table) -> Option<Vec<String>> {
    let rest = name.strip_prefix(PREFIX)?;
    if !rest.contains("__") {
        let fixed = root.fixed_keys();
        let (path, _) = fixed.iter().find(|(path, _)| variable(path) == name)?;
        return Some(path.iter().map(|name| (*name).to_owned()).collect());
    }
    let mut key: Vec<String> = Vec::new();
    let mut table = Some(below);
    for segment in rest.split("__") {
        let kind = root.kind_at(&key);
        let spelled = match kind {
            Some(Kind::Named(_)) => chosen_name(segment, table, '_'),
            Some(Kind::Map(_)) => chosen_name(segment, table, '-'),
            _ => segment.to_lowercase(),
        };
        table = table.and_then(|table| table.tables.get(&spelled));
        key.push(spelled);
    }
    Some(key)
}

/// The name that a user chose and that a variable can only hint at, having neither small letters
/// nor dashes. A new name is spelled in small letters.
fn chosen_name(segment: &str, table: Option<&Table>, dash: char) -> String {
    let hint = |name: &str| name.replace(['-', '.', '/', ':', ' '], "_").to_uppercase();
    let wanted = segment.to_uppercase();
    let known = table.into_iter().flat_map(|table| table.tables.keys().chain(table.leaves.keys()));
    known
        .into_iter()
        .find(|name| hint(name) == wanted)
        .cloned()
        .unwrap_or_else(|| segment.to_lowercase().replace('_', &dash.to_string()))
}

fn unknown(name: &str, root: &'static Spec) -> String {
    let fixed = root.fixed_keys();
    let known: Vec<String> = fixed.iter().map(|(path, _)| variable(path)).collect();
    match super::suggest(name, known.iter().map(String::as_str)) {
        Some(meant) => format!("there is no such setting (did you mean {meant}?)"),
        None => format!(
            "there is no such setting; unset it, or spell out the dots of the key that it is for \
             as __, as in {}",
            quoted("DUOLOGUE_AGENTS__NAME__MODEL")
        ),
    }
}
