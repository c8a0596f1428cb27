//! Structured data off a page, by a JSON Schema and without a model.
//!
//! Arrays of objects come from tables, whose headings are held against the names of properties, and
//! from runs of alike siblings, whose parts are held against them by what they are called (class,
//! id, `itemprop`, label). Objects come from labelled values. What is found is made to fit the type
//! that the schema names.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};
use url::Url;

use super::{
    capture::{Document, Kind, NodeIndex},
    meaning::Meanings,
    page::Page,
    text::tidy,
};
use crate::error::{BrowserError, Result};

/// How many items are read.
const MOST_ITEMS: usize = 2_000;

/// What fits a schema.
pub(crate) fn extract(page: &Page, under: Option<(usize, i64)>, schema: &Value) -> Result<Value> {
    let slots = match under {
        Some((slot, _)) => slot..slot + 1,
        None => 0..page.documents.len(),
    };
    let mut best: Option<(usize, Value)> = None;
    for slot in slots {
        let Some(document) = page.documents.get(slot) else { continue };
        let root = match under {
            Some((_, node)) => (0..document.len()).find(|at| document.backend(*at) == node),
            None => Some(document.root()),
        };
        let reader = Reader { meanings: Meanings::of(document, None), document };
        let Some(found) = root.and_then(|root| reader.read(root, schema)) else { continue };
        let weight = weight(&found);
        if weight > best.as_ref().map_or(0, |(weight, _)| *weight) {
            best = Some((weight, found));
        }
    }
    best.map(|(_, found)| found).ok_or_else(|| {
        BrowserError::cannot(
            "nothing on the page fits the names in the schema; look at the page with snapshot or \
             read_markdown, and name the properties as the page does",
        )
    })
}

/// How much was found.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.values().map(weight).sum(),
        _ => 1,
    }
}

struct Reader<'a> {
    document: &'a Document,
    meanings: Meanings<'a>,
}

/// A property that is looked for.
struct Wanted<'a> {
    name: &'a str,
    /// The name and the title, without case and signs.
    keys: Vec<String>,
    schema: &'a Value,
}

impl Reader<'_> {
    fn read(&self, root: NodeIndex, schema: &Value) -> Option<Value> {
        match schema.get("type").and_then(Value::as_str) {
            Some("array") => {
                let items = schema.get("items")?;
                self.list(root, items).map(Value::Array)
            }
            _ => self.object(root, schema),
        }
    }

    /// One object: its parts by labels, its lists by what they are made of.
    fn object(&self, root: NodeIndex, schema: &Value) -> Option<Value> {
        let wanted = wanted(schema)?;
        let labelled = self.labelled(root);
        let mut fields = Map::new();
        for property in &wanted {
            let found = match property.schema.get("type").and_then(Value::as_str) {
                Some("array" | "object") => self.read(root, property.schema),
                _ => property
                    .keys
                    .iter()
                    .find_map(|key| labelled.get(key))
                    .and_then(|(text, node)| self.fit(text, *node, property.schema))
                    .or_else(|| {
                        let node = self.part(root, property)?;
                        self.value_of(node, property.schema)
                    }),
            };
            if let Some(found) = found {
                fields.insert(property.name.to_owned(), found);
            }
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }

    /// A list: the table or the run of siblings that gives the most.
    fn list(&self, root: NodeIndex, items: &Value) -> Option<Vec<Value>> {
        if items.get("properties").is_none() {
            return self.plain_list(root, items);
        }
        let wanted = wanted(items)?;
        let mut best: Vec<Value> = Vec::new();
        let mut take = |found: Vec<Value>| {
            let weigh = |list: &[Value]| list.iter().map(weight).sum::<usize>();
            if weigh(&found) > weigh(&best) {
                best = found;
            }
        };
        let inside = self.document.descendants(root);
        for node in std::iter::once(root).chain(inside.iter().copied()) {
            if self.document.kind(node) != Kind::Element || self.document.boxed(node).is_none() {
                continue;
            }
            if matches!(self.meanings.role(node), "table" | "grid")
                || self.document.tag(node) == "table"
            {
                take(self.table(node, &wanted));
            } else {
                take(self.siblings(node, &wanted));
            }
        }
        (!best.is_empty()).then_some(best)
    }

    /// Texts of the largest list.
    fn plain_list(&self, root: NodeIndex, items: &Value) -> Option<Vec<Value>> {
        let inside = self.document.descendants(root);
        let lists = inside.iter().filter(|node| matches!(self.document.tag(**node), "ul" | "ol"));
        let read = |list: &NodeIndex| -> Vec<Value> {
            let children = self.document.children(*list);
            let points = children.iter().filter(|node| self.document.tag(**node) == "li");
            points.filter_map(|node| self.value_of(*node, items)).take(MOST_ITEMS).collect()
        };
        lists.map(read).max_by_key(Vec::len).filter(|found| !found.is_empty())
    }

    fn table(&self, table: NodeIndex, wanted: &[Wanted<'_>]) -> Vec<Value> {
        let is_row = |node: &NodeIndex| {
            self.document.tag(*node) == "tr"
                || self.document.attribute(*node, "role") == Some("row")
        };
        let cells = |row: NodeIndex| -> Vec<NodeIndex> {
            let inside = self.document.descendants(row);
            let is_cell = |node: &NodeIndex| {
                matches!(self.document.tag(*node), "td" | "th")
                    || matches!(
                        self.document.attribute(*node, "role"),
                        Some("cell" | "gridcell" | "columnheader" | "rowheader")
                    )
            };
            inside.into_iter().filter(is_cell).collect()
        };
        let rows: Vec<NodeIndex> =
            self.document.descendants(table).into_iter().filter(is_row).collect();
        let Some((head, rest)) = rows.split_first() else { return Vec::new() };
        let heads: Vec<String> =
            cells(*head).iter().map(|cell| key(&self.meanings.text_inside(*cell))).collect();
        let columns: Vec<(usize, &Wanted<'_>)> = wanted
            .iter()
            .filter_map(|property| {
                let at =
                    heads.iter().position(|head| property.keys.contains(head)).or_else(|| {
                        heads.iter().position(|head| {
                            !head.is_empty()
                                && property.keys.iter().any(|key| head.contains(key.as_str()))
                        })
                    })?;
                Some((at, property))
            })
            .collect();
        if columns.is_empty() {
            return Vec::new();
        }
        rest.iter()
            .take(MOST_ITEMS)
            .filter_map(|row| {
                let cells = cells(*row);
                let mut fields = Map::new();
                for (at, property) in &columns {
                    let found =
                        cells.get(*at).and_then(|cell| self.value_of(*cell, property.schema));
                    if let Some(found) = found {
                        fields.insert(property.name.to_owned(), found);
                    }
                }
                (!fields.is_empty()).then_some(Value::Object(fields))
            })
            .collect()
    }

    /// Alike children of a node, read by what their parts are called.
    fn siblings(&self, parent: NodeIndex, wanted: &[Wanted<'_>]) -> Vec<Value> {
        let children: Vec<NodeIndex> = self
            .document
            .children(parent)
            .into_iter()
            .filter(|child| self.document.kind(*child) == Kind::Element)
            .collect();
        if children.len() < 2 {
            return Vec::new();
        }
        let mut groups: HashMap<(&str, &str), Vec<NodeIndex>> = HashMap::new();
        for child in children {
            let class = self.document.attribute(child, "class").unwrap_or_default();
            let class = class.split_ascii_whitespace().next().unwrap_or_default();
            groups.entry((self.document.tag(child), class)).or_default().push(child);
        }
        let Some(group) = groups.into_values().filter(|group| group.len() > 1).max_by_key(Vec::len)
        else {
            return Vec::new();
        };
        group
            .into_iter()
            .take(MOST_ITEMS)
            .filter_map(|item| {
                let mut fields = Map::new();
                for property in wanted {
                    let found = self
                        .part(item, property)
                        .and_then(|node| self.value_of(node, property.schema));
                    if let Some(found) = found {
                        fields.insert(property.name.to_owned(), found);
                    }
                }
                (!fields.is_empty()).then_some(Value::Object(fields))
            })
            .collect()
    }

    /// The part of a node that is called as a property is.
    fn part(&self, root: NodeIndex, property: &Wanted<'_>) -> Option<NodeIndex> {
        let document = self.document;
        let inside = document.descendants(root);
        let elements = inside.iter().copied().filter(|node| document.kind(*node) == Kind::Element);
        let mut loose = None;
        for node in elements {
            for name in
                ["itemprop", "data-field", "data-testid", "name", "id", "class", "aria-label"]
            {
                let Some(said) = document.attribute(node, name) else { continue };
                for word in said.split_ascii_whitespace() {
                    let word = key(word);
                    if property.keys.contains(&word) {
                        return Some(node);
                    }
                    let fits = property.keys.iter().any(|key| {
                        key.len() > 2
                            && (word.ends_with(key.as_str()) || word.starts_with(key.as_str()))
                    });
                    if fits && loose.is_none() {
                        loose = Some(node);
                    }
                }
            }
        }
        let is_address = property.schema.get("format").and_then(Value::as_str) == Some("uri")
            || property.keys.iter().any(|key| matches!(key.as_str(), "url" | "link" | "href"));
        loose.or_else(|| {
            let mut inside = inside.iter().copied();
            match property.keys.first().map(String::as_str) {
                _ if is_address => inside.find(|node| document.tag(*node) == "a"),
                Some("title" | "name" | "heading") => inside.find(|node| {
                    matches!(document.tag(*node), "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "a")
                }),
                _ => None,
            }
        })
    }

    /// Values with labels: `dt`/`dd`, the first cell of rows, fields, and "Label: value".
    fn labelled(&self, root: NodeIndex) -> HashMap<String, (String, NodeIndex)> {
        let document = self.document;
        let mut found = HashMap::new();
        let mut note = |label: &str, value: String, node: NodeIndex| {
            let label = key(label);
            if !label.is_empty() && !value.is_empty() {
                found.entry(label).or_insert((value, node));
            }
        };
        for node in document.descendants(root) {
            match document.tag(node) {
                "dt" => {
                    let value = self.next_sibling(node).filter(|next| document.tag(*next) == "dd");
                    if let Some(value) = value {
                        note(
                            &self.meanings.text_inside(node),
                            self.meanings.text_inside(value),
                            value,
                        );
                    }
                }
                "th" | "td" => {
                    let next = self.next_sibling(node);
                    let first = self.meanings.text_inside(node);
                    if let Some(next) = next.filter(|next| document.tag(*next) == "td") {
                        note(first.trim_end_matches(':'), self.meanings.text_inside(next), next);
                    }
                }
                "input" | "textarea" | "select" => {
                    if let Some(value) = self.meanings.value(node) {
                        note(&self.meanings.name(node), value, node);
                    }
                }
                _ => {}
            }
            let is_block = document.boxed(node).is_some_and(|boxed| !boxed.inline);
            if document.kind(node) == Kind::Element && is_block {
                let text = self.meanings.text_inside(node);
                if let Some((label, value)) = text.split_once(':')
                    && label.len() < 40
                    && text.len() < 200
                {
                    note(label, value.trim().to_owned(), node);
                }
            }
        }
        found
    }

    fn next_sibling(&self, node: NodeIndex) -> Option<NodeIndex> {
        let parent = self.document.parent(node)?;
        let siblings = self.document.own_children(parent);
        let elements = siblings.iter().copied().filter(|n| self.document.kind(*n) == Kind::Element);
        elements.skip_while(|n| *n != node).nth(1)
    }

    /// What a node holds, as a type.
    fn value_of(&self, node: NodeIndex, schema: &Value) -> Option<Value> {
        let text = self.meanings.value(node).unwrap_or_else(|| self.meanings.text_inside(node));
        self.fit(&text, node, schema)
    }

    fn fit(&self, text: &str, node: NodeIndex, schema: &Value) -> Option<Value> {
        let text = tidy(text);
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("string");
        if schema.get("format").and_then(Value::as_str) == Some("uri") {
            return self.address(node).map(Value::String);
        }
        match kind {
            "number" => number(&text).and_then(Number::from_f64).map(Value::Number),
            "integer" => number(&text).map(|number| Value::from(number.round() as i64)),
            "boolean" => {
                if self.document.tag(node) == "input" {
                    return Some(Value::Bool(self.document.is_checked(node)));
                }
                match text.to_lowercase().as_str() {
                    "yes" | "true" | "on" | "✓" | "✔" | "x" => Some(Value::Bool(true)),
                    "no" | "false" | "off" | "" | "✗" | "-" => Some(Value::Bool(false)),
                    _ => None,
                }
            }
            "string" => (!text.is_empty()).then_some(Value::String(text)),
            _ => None,
        }
    }

    /// The address that a node leads to or shows.
    fn address(&self, node: NodeIndex) -> Option<String> {
        let inside = self.document.descendants(node);
        let mut all = std::iter::once(node).chain(inside);
        let said = all.find_map(|node| {
            self.document.attribute(node, "href").or_else(|| self.document.attribute(node, "src"))
        })?;
        Url::parse(&self.document.url).ok()?.join(said).ok().map(String::from)
    }
}

fn wanted(schema: &Value) -> Option<Vec<Wanted<'_>>> {
    let properties = schema.get("properties")?.as_object()?;
    let list = properties.iter().map(|(name, schema)| {
        let title = schema.get("title").and_then(Value::as_str);
        let keys = std::iter::once(name.as_str()).chain(title).map(key).collect();
        Wanted { name, keys, schema }
    });
    Some(list.collect())
}

/// A name without case and signs, so that `unitPrice`, `unit-price` and "Unit price" are one.
fn key(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The first number in a text: `$1,234.50` is 1234.5.
fn number(text: &str) -> Option<f64> {
    let begin = text.find(|c: char| c.is_ascii_digit())?;
    let negative = text.get(..begin)?.trim_end().ends_with(['-', '−']);
    let run: String = text
        .get(begin..)?
        .chars()
        .take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '\u{a0}' | '\''))
        .collect();
    let run = run.trim_end_matches(['.', ',']);
    // The last sign with one or two digits after it, or a single point, divides whole from part.
    let split = run.rfind(['.', ',']).filter(|at| {
        let part = run.len() - at - 1;
        part != 3
            || (run.get(*at..=*at) == Some(".")
                && run.matches('.').count() == 1
                && !run.contains(','))
    });
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let plain = match split {
        Some(at) => format!("{}.{}", digits(run.get(..at)?), digits(run.get(at..)?)),
        None => digits(run),
    };
    plain.parse::<f64>().ok().map(|number| if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, expected) in [
            ("$1,234.50", Some(1234.5)),
            ("1.234,50 €", Some(1234.5)),
            ("12,345", Some(12345.0)),
            ("2.125", Some(2.125)),
            ("-7 °C", Some(-7.0)),
            ("4 of 5", Some(4.0)),
            ("none", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_alike_whatever_their_case_and_signs() {
        assert_eq!(key("unitPrice"), key("Unit price:"));
        assert_eq!(key("unit-price"), "unitprice");
    }
}
