//! The bank's documents and two ways to search them: BM25 and regular expressions.

use std::{collections::HashMap, fs};

use serde::Deserialize;

use super::{
    NAME,
    books::{Answer, say, text},
    expression::{count, expression},
};
use crate::{
    DataDir, DataError, Tool, World, read_json,
    schema::{Type, field},
    toolkit::read,
};

/// A search returns at most this many documents.
const MOST: usize = 10;

/// The documents, ready to be searched.
///
/// They come in the folder's own order, as in the reference: it decides between documents that
/// fit equally well.
#[derive(Default)]
pub(super) struct Knowledge {
    documents: Vec<Document>,
    words: HashMap<String, Word>,
    /// How long documents are, as BM25 weighs it.
    lengths: Vec<f64>,
}

#[derive(Deserialize)]
struct Document {
    id: String,
    title: String,
    content: String,
}

/// A word, how much it tells, and how often it is in which documents.
#[derive(Default)]
struct Word {
    weight: f64,
    uses: Vec<(usize, f64)>,
}

pub(super) static SEARCH_TOOLS: &[Tool] = &[
    read(
        "KB_search",
        "Find documents of the knowledge base by their words.",
        &[field("query", Type::Str).about("What to look for")],
        |world, args| {
            let query = &args["query"];
            let knowledge = knowledge(world);
            let found = match query.truthy() && !text(query, "strip")?.trim().is_empty() {
                true => knowledge.rank(text(query, "lower")?),
                false => Vec::new(),
            };
            let found = if found.is_empty() {
                "No relevant documents found.".to_owned()
            } else {
                knowledge.show(&found)
            };
            // The reference tells how long it took; a conversation that is held again should
            // read the same.
            say!("{found}\n\n[Timing: retrieval=0ms, reranking=0ms, total=0ms]")
        },
    ),
    read(
        "grep",
        "Find documents of the knowledge base by a regular expression, those with most matches \
         first.",
        &[field("pattern", Type::Str).about("The expression, such as 'fee|charge'")],
        grep,
    ),
];

impl Knowledge {
    /// Loads the documents and counts their words.
    pub(super) fn load(data: &DataDir) -> Result<Self, DataError> {
        let folder = data.file(NAME, "documents");
        let files = fs::read_dir(&folder)
            .map_err(|source| DataError::Read { path: folder.clone(), source })?;
        let files = files.filter_map(|file| Some(file.ok()?.path()));
        let files = files.filter(|file| file.extension().is_some_and(|ending| ending == "json"));
        let documents: Vec<Document> =
            files.map(|file| read_json(&file)).collect::<Result<_, _>>()?;
        Ok(Self::index(documents))
    }

    /// BM25 (Okapi), with a floor for words that most documents have.
    fn index(documents: Vec<Document>) -> Self {
        const FLOOR: f64 = 0.25;
        const GROWTH: f64 = 1.5;
        const LENGTH: f64 = 0.75;
        let mut words: HashMap<String, Word> = HashMap::new();
        // Weights are added up in the order in which words turn up, as the reference does.
        let mut order: Vec<String> = Vec::new();
        let mut sizes = Vec::with_capacity(documents.len());
        for (at, document) in documents.iter().enumerate() {
            let mut size = 0_u32;
            for token in document.content.to_lowercase().split_whitespace() {
                size += 1;
                if !words.contains_key(token) {
                    order.push(token.to_owned());
                }
                let word = words.entry(token.to_owned()).or_default();
                match word.uses.last_mut() {
                    Some((last, count)) if *last == at => *count += 1.0,
                    _ => word.uses.push((at, 1.0)),
                }
            }
            sizes.push(f64::from(size));
        }
        let (count, known) = (float(documents.len()), float(order.len()));
        let mut total = 0.0;
        for token in &order {
            if let Some(word) = words.get_mut(token) {
                let uses = float(word.uses.len());
                word.weight = (count - uses + 0.5).ln() - (uses + 0.5).ln();
                total += word.weight;
            }
        }
        let floor = FLOOR * (total / known.max(1.0));
        for word in words.values_mut().filter(|word| word.weight < 0.0) {
            word.weight = floor;
        }
        let average = sizes.iter().sum::<f64>() / count.max(1.0);
        let lengths = sizes.iter();
        let lengths = lengths.map(|size| GROWTH * (1.0 - LENGTH + LENGTH * size / average));
        Self { lengths: lengths.collect(), documents, words }
    }

    /// The documents that fit best, with their scores; there are always some.
    fn rank(&self, query: &str) -> Vec<(&Document, f64)> {
        let mut scores = vec![0.0; self.documents.len()];
        for token in query.to_lowercase().split_whitespace() {
            let Some(word) = self.words.get(token) else { continue };
            for (at, uses) in &word.uses {
                if let (Some(score), Some(length)) = (scores.get_mut(*at), self.lengths.get(*at)) {
                    *score += word.weight * (uses * 2.5 / (uses + length));
                }
            }
        }
        best(self.documents.iter().zip(scores).collect())
    }

    fn show(&self, found: &[(&Document, f64)]) -> String {
        let shown = found.iter().enumerate().map(|(at, (document, score))| {
            let title = if document.title.is_empty() { "Untitled" } else { &document.title };
            format!(
                "{}. {title}\n   ID: {}\n   Score: {score:.4}\n   Content: {}\n",
                at + 1,
                document.id,
                document.content
            )
        });
        shown.collect::<Vec<_>>().join("\n")
    }

    /// All documents in one text.
    pub(super) fn whole(&self) -> String {
        let documents = self.documents.iter();
        let documents = documents.map(|one| format!("## {}\n\n{}", one.title, one.content));
        documents.collect::<Vec<_>>().join("\n\n---\n\n")
    }
}

fn grep(world: &mut World, args: &crate::Args) -> Answer {
    let pattern = text(&args["pattern"], "strip")?;
    let knowledge = knowledge(world);
    let mut found = Vec::new();
    if !pattern.trim().is_empty()
        && let Some(expression) = expression(pattern)
    {
        for document in &knowledge.documents {
            let matches = count(&expression, &document.content);
            if matches > 0 {
                found.push((document, float(matches)));
            }
        }
    }
    if found.is_empty() {
        say!("No matches found for pattern: {pattern}");
    }
    say!("{}", knowledge.show(&best(found)))
}

fn best(mut found: Vec<(&Document, f64)>) -> Vec<(&Document, f64)> {
    found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    found.truncate(MOST);
    found
}

fn knowledge(world: &World) -> &Knowledge {
    static NONE: std::sync::LazyLock<Knowledge> = std::sync::LazyLock::new(Knowledge::default);
    world.assets.downcast_ref().unwrap_or(&NONE)
}

#[allow(clippy::cast_precision_loss, reason = "counts of words and documents")]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knowledge() -> Knowledge {
        let document = |id: &str, content: &str| Document {
            id: id.to_owned(),
            title: format!("About {id}"),
            content: content.to_owned(),
        };
        Knowledge::index(vec![
            document("fees", "Fees are due. Overdraft fees are waived."),
            document("cards", "A lost card is replaced."),
            document("hours", "We are open."),
        ])
    }

    #[test]
    fn the_document_with_the_rarest_words_comes_first() {
        let knowledge = knowledge();
        let found = knowledge.rank("lost CARD");
        assert_eq!(found.first().map(|(one, _)| one.id.as_str()), Some("cards"));
        assert_eq!(found.len(), 3);
    }
}
