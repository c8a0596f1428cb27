//! The reference page, `docs/configuration.md`, made from the keys.

use super::{
    environment,
    keys::Config,
    provenance::inline,
    schema::{Key, Kind, Section, Spec},
};

/// What stands before the keys. The example is loaded by a test.
const INTRODUCTION: &str = include_str!("introduction.md");

/// The whole page. `docs/configuration.md` is this text; a test compares them.
pub(crate) fn docs_markdown() -> String {
    let reserved = environment::RESERVED.map(|name| format!("`{name}`")).join(", ");
    let mut page = INTRODUCTION.replace("{reserved}", &reserved);
    page.push_str("\n## Keys\n");
    section(&mut page, Config::SPEC, &mut Vec::new());
    page
}

/// A section's own keys, then the sections in it.
fn section(page: &mut String, spec: &'static Spec, at: &mut Vec<&'static str>) {
    let heading =
        if at.is_empty() { "Top of the file".into() } else { format!("`[{}]`", at.join(".")) };
    page.push_str(&format!("\n### {heading}\n\n{}\n", paragraph(spec.doc)));
    for key in spec.keys.iter().filter(|key| !opens_a_section(key.kind)) {
        page.push_str(&entry(spec, key, at));
    }
    for key in spec.keys {
        at.push(key.name);
        match key.kind {
            Kind::Table(inner) => section(page, inner, at),
            Kind::Named(inner) => {
                at.push(inner.placeholder);
                section(page, inner, at);
                at.pop();
            }
            _ => {}
        }
        at.pop();
    }
}

fn opens_a_section(kind: Kind) -> bool {
    matches!(kind, Kind::Table(_) | Kind::Named(_))
}

fn entry(spec: &Spec, key: &Key, at: &[&'static str]) -> String {
    let mut path = at.to_vec();
    path.push(key.name);
    let mut entry = format!("\n- **`{}`**: {}", key.name, paragraph(key.doc));
    if let Kind::Choice(words) | Kind::PathOr(words) = key.kind {
        for known in words {
            entry.push_str(&format!("\n  - `\"{}\"`: {}", known.word, paragraph(known.doc)));
        }
    }
    let kind = match key.kind {
        Kind::Choice(_) => "one of the words above".into(),
        Kind::PathOr(_) => "a path, or one of the words above".into(),
        Kind::Inherited(from, _) => format!("a table with the keys of `[{from}]`"),
        kind => kind.words(),
    };
    let default = match spec.default_of(key) {
        Some(value) => format!("default `{}`", inline(&value)),
        None if spec.required.contains(&key.name) => "required".into(),
        None => "no default".into(),
    };
    // A table has no variable of its own, only its keys have.
    let variable = match key.kind {
        Kind::Inherited(..) | Kind::Map(_) => String::new(),
        _ if path.iter().any(|name| name.chars().all(char::is_uppercase)) => {
            format!(" · `{}{}`", environment::PREFIX, path.join("__").to_uppercase())
        }
        _ => format!(" · `{}`", environment::variable(&path)),
    };
    entry.push_str(&format!("\n\n  *{}* · {default}{variable}\n", emphasis(&kind)));
    entry
}

/// Doc comments as one paragraph.
fn paragraph(doc: &str) -> String {
    let lines: Vec<&str> = doc.lines().map(str::trim).collect();
    lines.join(" ").trim().to_owned()
}

/// Text inside emphasis, where stars and dollars would mean something.
fn emphasis(text: &str) -> String {
    text.replace('*', "\\*")
}
