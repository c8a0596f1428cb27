//! Searches in the documents of the bank: every document, its rank and its score.

use duologue_bench::{Environment, Mode, Requestor, ToolCall};

use crate::support::{Check, Goldens, same, text};

pub fn kb_search(goldens: &Goldens) -> Check {
    let Some(rows) = goldens.lines("kb_search.jsonl") else {
        return Check::absent("kb_search.jsonl");
    };
    let mut check = Check::new("kb_search.jsonl");
    let Some((domain, _)) = goldens.domain("banking_knowledge") else {
        check.wait("banking_knowledge");
        return check;
    };
    let mut environment = Environment::new(domain, Mode::Dialogue).unwrap();
    for row in &rows {
        let name = text(&row["name"]);
        let answer = environment.respond(&ToolCall {
            id: String::new(),
            name: name.clone(),
            arguments: row["arguments"].clone(),
            requestor: Requestor::Assistant,
        });
        let content = answer.content.unwrap_or_default();
        check.case(
            || format!("{name} {:?}", row["arguments"]),
            same("error", answer.error, row["error"].truthy()).and(same(
                "content",
                untimed(&content),
                untimed(&text(&row["content"])),
            )),
        );
    }
    check
}

/// A search without how long it took.
fn untimed(content: &str) -> String {
    content.split("\n\n[Timing: ").next().unwrap_or_default().to_owned()
}
