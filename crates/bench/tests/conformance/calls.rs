//! Every tool call: its content byte for byte, its error, and the databases at the end.

use std::{collections::HashMap, sync::Arc};

use duologue_bench::{Mode, Requestor, Results, Task, ToolCall, Value};

use crate::support::{Check, Goldens, db_hash, same, started, text};

pub fn tool_calls(goldens: &Goldens) -> Check {
    let Some(sessions) = goldens.lines("tool_calls.jsonl") else {
        return Check::absent("tool_calls.jsonl");
    };
    let mut check = Check::new("tool_calls.jsonl");
    let mut recorded = Recorded::default();
    for session in &sessions {
        let name = text(&session["domain"]);
        let Some((domain, tasks)) = goldens.domain(&name) else {
            check.wait(&name);
            continue;
        };
        let id = text(&session["task_id"]);
        let label =
            || format!("{name} {} {id} {}", text(&session["kind"]), text(&session["sim_id"]));
        let task = match session.entry("source") {
            Some(source) => recorded.task(goldens, &text(source), &text(&session["sim_id"])),
            None => None,
        };
        let task = task.or_else(|| tasks.task(&id).cloned());
        let Some(task) = task else {
            check.case(label, Err("no such task".to_owned()));
            continue;
        };
        let mode = if session["solo"].truthy() { Mode::Solo } else { Mode::Dialogue };
        let mut environment = started(domain, mode, &task);
        for (at, call) in session["calls"].items().iter().enumerate() {
            let answer = environment.respond(&ToolCall {
                id: String::new(),
                name: text(&call["name"]),
                arguments: call["arguments"].clone(),
                requestor: if call["requestor"] == "user" {
                    Requestor::User
                } else {
                    Requestor::Assistant
                },
            });
            let golden = text(&call["content"]);
            let mut result = same("error", Value::Bool(answer.error), call["error"].clone());
            if !(answer.error && is_interpreters(&golden)) {
                result = result.and(same("content", answer.content.unwrap_or_default(), golden));
            }
            check.case(
                || format!("{} call {at} {} {:?}", label(), text(&call["name"]), call["arguments"]),
                result,
            );
        }
        let ends = same("final_db_hash", db_hash(&environment), text(&session["final_db_hash"]));
        let ends = ends.and_then(|()| {
            let golden = session["final_user_db_hash"].as_str().map(str::to_owned);
            same("final_user_db_hash", environment.user_db_hash(), golden)
        });
        check.case(|| format!("{} at the end", label()), ends);
    }
    check
}

/// Whether an error is in the words of Python's interpreter or of pydantic: only that it is an
/// error counts then.
fn is_interpreters(content: &str) -> bool {
    [
        "validation error",
        "positional argument",
        "keyword argument",
        "unsupported operand",
        "not supported between instances",
        "object is not",
        "object has no attribute",
        "must be",
        "indices",
        "unhashable",
        "can only concatenate",
        "multiple values",
        "could not convert",
        "invalid literal",
        "not iterable",
        "bad operand",
    ]
    .iter()
    .any(|wording| content.contains(wording))
}

/// Simulations as recorded, with their tasks.
#[derive(Default)]
pub struct Recorded(HashMap<String, Option<Results>>);

impl Recorded {
    pub fn results(&mut self, goldens: &Goldens, source: &str) -> Option<&Results> {
        let results = self.0.entry(source.to_owned()).or_insert_with(|| {
            goldens.results_file(source).map(|path| Results::load(&path).unwrap())
        });
        results.as_ref()
    }

    /// The task of a simulation, where the file holds it.
    fn task(&mut self, goldens: &Goldens, source: &str, simulation: &str) -> Option<Arc<Task>> {
        let results = self.results(goldens, source)?;
        let simulation = results.simulations.iter().find(|s| s.id == simulation)?;
        results.task(&simulation.task_id).cloned()
    }
}
