//! Every effective value and where it came from, for `duo config`.

use std::sync::Arc;

use serde_json::json;
use toml::Value;

use super::{
    origin::Origin,
    path,
    problem::escaped,
    schema::{Kind, Spec},
    secret,
    tree::{Leaf, Table},
};

/// Every effective value and where it came from. Nothing in it is secret.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Provenance {
    /// The files that were looked for.
    pub(crate) files: Files,
    /// The values, in the order of the reference page.
    pub(crate) rows: Vec<Row>,
}

/// The files that were looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// The user's; `None` if no home folder is known.
    pub(crate) user: Option<File>,
    /// The project's; `None` if no folder has one.
    pub(crate) project: Option<File>,
}

/// A file that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Its name, as a person finds it from the working folder.
    pub(crate) name: Arc<str>,
    /// Whether it is there.
    pub(crate) read: bool,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The path of the key.
    pub(crate) key: String,
    /// The value; `None` is unset.
    pub(crate) value: Option<Value>,
    /// Who said it.
    pub(crate) origin: Origin,
    /// Who said each item, if it is a list.
    pub(crate) items: Vec<Origin>,
}

/// Beginnings of keys that decide what agents may do, and to whom conversations and keys are sent.
const GUARDED: [&str; 9] = [
    "permissions.",
    "tools.",
    "browser.",
    "providers.",
    "mcp_servers.",
    "server.",
    "remotes.",
    "workspace",
    "journal",
];

/// The most characters of a value in the table. JSON has the whole.
const SHOWN_CHARS: usize = 60;

impl Provenance {
    /// What a tree has.
    pub(crate) fn of(tree: &Table, root: &'static Spec, files: Files) -> Self {
        let mut rows = Vec::new();
        collect(&mut rows, tree, root, &mut Vec::new(), Unset::Shown);
        Self { files, rows }
    }

    /// The row of a key.
    pub(crate) fn row(&self, key: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == key)
    }

    /// What the project's file says about what agents may do, and to whom conversations and keys are
    /// sent. Somebody who works in a project of others wants to be told.
    pub(crate) fn grants_of_project(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| {
            matches!(row.origin, Origin::Project(_))
                && GUARDED.iter().any(|guarded| row.key.starts_with(guarded))
        })
    }

    /// A table for people.
    pub(crate) fn render_text(&self) -> String {
        let mut text = String::new();
        for (whose, file) in [("user", &self.files.user), ("project", &self.files.project)] {
            let (name, note) = match file {
                None if whose == "user" => ("none", " (no home folder is known)"),
                None => ("none", " (no duologue.toml here or in a folder above)"),
                Some(file) if file.read => (&*file.name, ""),
                Some(file) => (&*file.name, " (not there)"),
            };
            text.push_str(&format!("{:<14}{name}{note}\n", format!("{whose} file:")));
        }
        text.push('\n');
        let cells: Vec<[String; 3]> = std::iter::once(["KEY", "VALUE", "FROM"].map(String::from))
            .chain(self.rows.iter().map(|row| {
                let value = row.value.as_ref().map_or("(unset)".into(), short);
                [row.key.clone(), value, row.origin.to_string()]
            }))
            .collect();
        let width = |column: fn(&[String; 3]) -> &String| {
            cells.iter().map(|row| column(row).chars().count()).max().unwrap_or(0)
        };
        let (keys, values) = (width(|[key, ..]| key), width(|[_, value, _]| value));
        for [key, value, origin] in &cells {
            text.push_str(&format!("{key:<keys$}  {value:<values$}  {origin}\n"));
        }
        text
    }

    /// The same as JSON.
    pub(crate) fn render_json(&self) -> serde_json::Value {
        let file = |file: &Option<File>| match file {
            None => serde_json::Value::Null,
            Some(file) => json!({"name": &*file.name, "read": file.read}),
        };
        let rows: Vec<serde_json::Value> = self
            .rows
            .iter()
            .map(|row| json!({"key": row.key, "value": row.value, "from": row.origin}))
            .collect();
        json!({
            "files": {"user": file(&self.files.user), "project": file(&self.files.project)},
            "values": rows,
        })
    }
}

/// Whether keys that nobody set are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unset {
    /// They are, to show what could be set.
    Shown,
    /// They are not, as in a section that the user made.
    Left,
}

fn collect(
    rows: &mut Vec<Row>,
    table: &Table,
    spec: &'static Spec,
    at: &mut Vec<String>,
    unset: Unset,
) {
    // Sections come after plain keys, as a file has them.
    let (sections, plain): (Vec<_>, Vec<_>) = spec.keys.iter().partition(|key| {
        matches!(key.kind, Kind::Table(_) | Kind::Inherited(..) | Kind::Named(_) | Kind::Map(_))
    });
    for key in plain {
        at.push(key.name.into());
        let rival_set = spec.rivals.iter().any(|(one, other)| {
            (key.name == *one && table.leaves.contains_key(*other))
                || (key.name == *other && table.leaves.contains_key(*one))
        });
        match table.leaves.get(key.name) {
            Some(leaf) => rows.push(row(leaf, key.kind, at)),
            None if unset == Unset::Shown && !rival_set => rows.push(Row {
                key: path::shown(at),
                value: None,
                origin: Origin::Default,
                items: Vec::new(),
            }),
            None => {}
        }
        at.pop();
    }
    for key in sections {
        let Some(inner) = table.tables.get(key.name) else {
            continue;
        };
        at.push(key.name.into());
        match key.kind {
            Kind::Table(spec) => collect(rows, inner, spec, at, unset),
            Kind::Inherited(_, spec) => collect(rows, inner, spec, at, Unset::Left),
            Kind::Named(spec) => {
                for (name, inner) in &inner.tables {
                    at.push(name.clone());
                    collect(rows, inner, spec, at, Unset::Left);
                    at.pop();
                }
            }
            Kind::Map(kind) => {
                for (name, leaf) in &inner.leaves {
                    at.push(name.clone());
                    rows.push(row(leaf, *kind, at));
                    at.pop();
                }
            }
            _ => {}
        }
        at.pop();
    }
}

fn row(leaf: &Leaf, kind: Kind, at: &[String]) -> Row {
    let value = match (kind, leaf.text()) {
        (Kind::Hidden, text) => secret::redacted(text.unwrap_or_default()).into(),
        _ => leaf.value.clone(),
    };
    Row {
        key: path::shown(at),
        value: Some(value),
        origin: leaf.origin.clone(),
        items: leaf.items.clone(),
    }
}

/// A value on one line, cut with a note if it is long.
fn short(value: &Value) -> String {
    let whole = inline(value);
    let length = whole.chars().count();
    if length <= SHOWN_CHARS {
        return whole;
    }
    let beginning: String = whole.chars().take(SHOWN_CHARS).collect();
    format!("{beginning}… ({length} characters)")
}

/// A value as TOML, on one line, without anything that a terminal would act on.
pub(crate) fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", escaped(text.chars())),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}
