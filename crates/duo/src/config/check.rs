//! Whether what somebody wrote fits the keys there are.

use std::path::{Path, PathBuf};

use toml::Value;

use super::{
    origin::Origin,
    path,
    problem::{Problem, listed, quoted, unknown},
    raw::{Body, Field, Raw},
    schema::{Kind, Spec, Word},
    secret,
    sources::Vocabulary,
    tree::{Leaf, Table},
};

/// Checks one layer, and gathers everything that is wrong with it.
pub(crate) struct Checker<'a> {
    /// All keys.
    pub(crate) root: &'static Spec,
    /// The names that other parts of the program know.
    pub(crate) vocabulary: &'a Vocabulary,
    /// Where relative paths start.
    pub(crate) base: &'a Path,
    /// What `~` stands for.
    pub(crate) home: Option<&'a Path>,
    /// What is wrong so far.
    pub(crate) problems: Vec<Problem>,
}

impl Checker<'_> {
    /// Check a whole layer. What does not fit is left out and is a problem.
    pub(crate) fn layer(&mut self, raw: Raw) -> Table {
        match raw.body {
            Body::Table(fields) => self.section(self.root, fields, &mut Vec::new()),
            _ => Table::default(),
        }
    }

    fn section(&mut self, spec: &'static Spec, fields: Vec<Field>, at: &mut Vec<String>) -> Table {
        self.rivals(spec, &fields, at);
        let mut table = Table::default();
        for field in fields {
            at.push(field.name.clone());
            match spec.key(&field.name) {
                None => self.unknown_key(spec, &field, at),
                Some(key) => match (key.kind, field.value.body) {
                    (Kind::Table(inner) | Kind::Inherited(_, inner), Body::Table(fields)) => {
                        let mut inner = self.section(inner, fields, at);
                        inner.origin = field.origin;
                        table.tables.insert(field.name, inner);
                    }
                    (Kind::Named(inner), Body::Table(fields)) => {
                        let named = self.named(inner, fields, at);
                        table.tables.insert(field.name, named);
                    }
                    (Kind::Map(kind), Body::Table(fields)) => {
                        let map = self.map(kind, fields, at);
                        table.tables.insert(field.name, map);
                    }
                    (kind, body) => {
                        if let Some(leaf) = self.leaf(kind, body, &field.origin, at) {
                            table.leaves.insert(field.name, leaf);
                        }
                    }
                },
            }
            at.pop();
        }
        table
    }

    fn named(&mut self, spec: &'static Spec, fields: Vec<Field>, at: &mut Vec<String>) -> Table {
        let mut named = Table::default();
        for field in fields {
            at.push(field.name.clone());
            match field.value.body {
                Body::Table(fields) => {
                    let mut inner = self.section(spec, fields, at);
                    inner.origin = field.origin;
                    named.tables.insert(field.name, inner);
                }
                other => {
                    let example = spec.keys.first().map_or("key", |key| key.name);
                    let what = format!(
                        "expected a table, such as [{}] with {example} in it, found {}",
                        path::shown(at),
                        other.words()
                    );
                    self.problem(&field.origin, at, what);
                }
            }
            at.pop();
        }
        named
    }

    fn map(&mut self, kind: &Kind, fields: Vec<Field>, at: &mut Vec<String>) -> Table {
        let mut map = Table::default();
        for field in fields {
            at.push(field.name.clone());
            if let (Kind::Hidden, Body::Text(text)) = (kind, &field.value.body)
                && let Err(what) = secret::check_header(&field.name, text)
            {
                self.problem(&field.origin, at, what);
            } else if let Some(leaf) = self.leaf(*kind, field.value.body, &field.origin, at) {
                map.leaves.insert(field.name, leaf);
            }
            at.pop();
        }
        map
    }

    fn leaf(&mut self, kind: Kind, body: Body, origin: &Origin, at: &[String]) -> Option<Leaf> {
        if let Kind::List(kind) = kind
            && let Body::List(raws) = body
        {
            let wanted = raws.len();
            let (items, values): (Vec<Origin>, Vec<Value>) = raws
                .into_iter()
                .filter_map(|raw| {
                    let value = self.value(*kind, raw.body, &raw.origin, at)?;
                    Some((raw.origin, value))
                })
                .unzip();
            return (values.len() == wanted).then(|| Leaf {
                value: Value::Array(values),
                origin: origin.clone(),
                items,
            });
        }
        let value = self.value(kind, body, origin, at)?;
        Some(Leaf { value, origin: origin.clone(), items: Vec::new() })
    }

    fn value(&mut self, kind: Kind, body: Body, origin: &Origin, at: &[String]) -> Option<Value> {
        let checked = match (kind, body) {
            (Kind::Flag, Body::Flag(flag)) => Ok(Value::Boolean(flag)),
            (Kind::Count { min, max }, Body::Integer(number)) => i64::try_from(number)
                .ok()
                .filter(|number| (min..=max).contains(number))
                .map(Value::Integer)
                .ok_or_else(|| format!("expected {}, found {number}", kind.words())),
            (Kind::Number { .. }, Body::Integer(number)) => in_range(kind, number as f64),
            (Kind::Number { .. }, Body::Float(number)) => in_range(kind, number),
            (kind, Body::Text(text)) if kind.is_text() => self.text(kind, text).map(Value::String),
            (kind, other) => Err(format!("expected {}, found {}", kind.words(), other.words())),
        };
        match checked {
            Ok(value) => Some(value),
            Err(what) => {
                self.problem(origin, at, what);
                None
            }
        }
    }

    /// Check a text, and make it whole if it is a path.
    fn text(&self, kind: Kind, text: String) -> Result<String, String> {
        match kind {
            Kind::Choice(words) => {
                if words.iter().any(|known| known.word == text) {
                    return Ok(text);
                }
                Err(unknown_word(words, &text))
            }
            Kind::Model if self.vocabulary.is_model_word(&text) => Ok(text),
            Kind::Model => match text.split_once('/') {
                Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(text),
                _ => {
                    let found = quoted(&text);
                    let what =
                        format!("expected provider/model, such as \"ollama/qwen3\", found {found}");
                    let words = self.vocabulary.models.iter().map(String::as_str);
                    Err(match super::suggest(&text, words) {
                        Some(meant) => format!("{what} (did you mean \"{meant}\"?)"),
                        None => what,
                    })
                }
            },
            Kind::Tool => self.tool(&text).map(|()| text),
            Kind::Behavior => {
                let known = &self.vocabulary.behaviors;
                if known.contains(&text) {
                    return Ok(text);
                }
                let names = known.iter().map(String::as_str);
                let what = unknown("behavior", &text, names.clone());
                if what.contains("did you mean") {
                    return Err(format!("{what}; there are {}", listed(names)));
                }
                Err(what)
            }
            Kind::Rule => {
                (self.vocabulary.check_rule)(&text)?;
                let tool = text.split('(').next().unwrap_or_default().trim();
                // A rule for a tool that does not exist guards nothing. A star may mean a later one.
                if !tool.contains('*') {
                    self.tool(tool)?;
                }
                Ok(text)
            }
            Kind::Path => self.path(&text),
            Kind::PathOr(words) if words.iter().any(|known| known.word == text) => Ok(text),
            Kind::PathOr(words) => {
                // "sqllite" is a slip, not a file; a file has an ending or a folder.
                if !text.contains(['/', '\\', '.'])
                    && super::suggest(&text, words.iter().map(|known| known.word)).is_some()
                {
                    let what = unknown_word(words, &text);
                    return Err(format!("{what}; a file of that name is \"./{text}\""));
                }
                self.path(&text)
            }
            Kind::Url => secret::check_url(&text).map(|()| text),
            Kind::Variable => secret::check_variable(&text).map(|()| text),
            _ => Ok(text),
        }
    }

    fn tool(&self, name: &str) -> Result<(), String> {
        let known = &self.vocabulary.tools;
        // What an MCP server offers is known only when it runs.
        let is_servers = name.contains("__") || name.starts_with("mcp_");
        if known.is_empty() || is_servers || known.iter().any(|tool| tool == name) {
            return Ok(());
        }
        Err(unknown("tool", name, known.iter().map(String::as_str)))
    }

    fn path(&self, text: &str) -> Result<String, String> {
        if text.is_empty() {
            return Err("expected a path, found an empty string".into());
        }
        let path = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => {
                let home = self.home.ok_or("~ has no meaning here: no home folder is known")?;
                home.join(rest.trim_start_matches(['/', '\\']))
            }
            _ => self.base.join(text),
        };
        // Leaves out "." and doubled slashes; ".." stays, because of links.
        let path: PathBuf = path.components().collect();
        path.into_os_string()
            .into_string()
            .map_err(|_| "the folder that it starts at has a name that is not Unicode".into())
    }

    fn rivals(&mut self, spec: &Spec, fields: &[Field], at: &mut Vec<String>) {
        for (one, other) in spec.rivals {
            let find = |name: &str| fields.iter().find(|field| field.name == name);
            if let (Some(first), Some(second)) = (find(one), find(other)) {
                at.push(other.to_string());
                let what = format!("not together with {one} ({}): keep one of them", first.origin);
                let origin = second.origin.clone();
                self.problem(&origin, at, what);
                at.pop();
            }
        }
    }

    fn unknown_key(&mut self, spec: &'static Spec, field: &Field, at: &[String]) {
        let is_text = matches!(field.value.body, Body::Text(_));
        if is_text && let Some(what) = secret::refusal(at) {
            return self.problem(&field.origin, at, what);
        }
        let names = spec.keys.iter().map(|key| key.name);
        let what = if let Some(meant) = super::suggest(&field.name, names.clone()) {
            format!("unknown key (did you mean \"{meant}\"?)")
        } else if let Some(elsewhere) = self.elsewhere(&field.name) {
            format!("unknown key (did you mean \"{elsewhere}\"?)")
        } else {
            format!("unknown key; there are {}", listed(names))
        };
        self.problem(&field.origin, at, what);
    }

    /// The path of a key of this name in another section.
    fn elsewhere(&self, name: &str) -> Option<String> {
        let fixed = self.root.fixed_keys();
        let (found, _) = fixed.iter().find(|(_, key)| key.name == name)?;
        Some(found.join("."))
    }

    fn problem(&mut self, origin: &Origin, at: &[String], what: String) {
        self.problems.push(Problem { origin: origin.clone(), key: path::shown(at), what });
    }
}

fn in_range(kind: Kind, number: f64) -> Result<Value, String> {
    match kind {
        Kind::Number { min, max } if number.is_finite() && (min..=max).contains(&number) => {
            Ok(Value::Float(number))
        }
        _ => Err(format!("expected {}, found {number}", kind.words())),
    }
}

fn unknown_word(words: &[Word], text: &str) -> String {
    unknown("value", text, words.iter().map(|known| known.word))
}
