//! What is said in the benchmark, word for word.
//!
//! The model looks something up ten times and then answers. Every turn is fifty pieces of text;
//! every turn but the last ends in a call of one tool.

use serde_json::{Value, json};

/// How often the model calls the tool before it answers.
pub const TOOL_TURNS: usize = 10;

/// How often the model is asked: the tool turns and the answer.
pub const STEPS: usize = TOOL_TURNS + 1;

/// How many pieces of text the model streams in a turn.
pub const TEXT_CHUNKS: usize = 50;

/// One piece of text.
pub const CHUNK: &str = "tok ";

/// The instructions that open every conversation.
pub const SYSTEM: &str =
    "You answer questions about a warehouse. Look every item up before you answer.";

/// The task that every agent gets.
pub const TASK: &str = "How many of the ten items are in stock?";

/// The tool's name.
pub const TOOL: &str = "look_up";

/// What the model is told about the tool.
pub const TOOL_DESCRIPTION: &str = "Look one item up by its key.";

/// The JSON Schema of the tool's arguments.
pub fn tool_parameters() -> Value {
    json!({
        "type": "object",
        "properties": { "key": { "type": "string", "description": "The item's key." } },
        "required": ["key"],
        "additionalProperties": false
    })
}

/// The id of the call that a turn ends in.
pub fn call_id(turn: usize) -> String {
    format!("call_{turn:02}")
}

/// The key that is looked up in a turn.
pub fn key(turn: usize) -> String {
    format!("item-{turn:02}")
}

/// What the tool answers.
pub fn tool_answer(key: &str) -> String {
    format!("{key}: 12 in stock in hall 3, shelf 7; 4 reserved; the next delivery is on Friday.")
}

/// The text of a whole turn.
pub fn turn_text() -> String {
    CHUNK.repeat(TEXT_CHUNKS)
}
