//! A model as the judge. Its verdicts are a forced tool call, never prose.

use std::sync::Arc;

use duologue_core::ToolSpec;
use futures::future::BoxFuture;
use serde_json::json;

use super::{Judge, JudgeError, Verdict};
use crate::{
    Message, Requestor, Utterance, Value,
    llm::{Choice, Llm, Prompt, ToolList},
    python,
};

const INSTRUCTIONS: &str = "\
You judge a conversation between a customer and a service agent. You are given statements about it. \
For each statement find out, from the conversation alone, whether it is true of what the agent did \
and said. Give your verdicts by calling `give_verdicts`: one for each statement, in the order of the \
statements, each with a short reason.";

/// How often a judge may give verdicts that do not fit.
const TRIES: usize = 3;

/// A model that judges.
#[derive(Clone)]
pub struct LlmJudge {
    llm: Arc<dyn Llm>,
    tools: ToolList,
}

impl LlmJudge {
    /// A judge.
    pub fn new(llm: Arc<dyn Llm>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {"verdicts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "reason": {"type": "string", "description": "Why, in a sentence"},
                        "holds": {"type": "boolean", "description": "Whether it is true"},
                    },
                    "required": ["reason", "holds"],
                    "additionalProperties": false,
                },
            }},
            "required": ["verdicts"],
            "additionalProperties": false,
        });
        let spec = ToolSpec::new("give_verdicts", "Give your verdicts.", parameters);
        Self { llm, tools: ToolList::default().with(spec) }
    }
}

impl Judge for LlmJudge {
    fn judge<'a>(
        &'a self,
        trajectory: &'a [Message],
        assertions: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, JudgeError>> {
        Box::pin(async move {
            let mut messages =
                vec![Message::User(Utterance::text(question(trajectory, assertions)))];
            let mut problem = String::new();
            for _ in 0..TRIES {
                let prompt = Prompt {
                    system: INSTRUCTIONS,
                    messages: &messages,
                    tools: &self.tools,
                    choice: Choice::Required,
                    seed: None,
                };
                let answer = self.llm.generate(prompt).await;
                let answer = answer.and_then(|answer| answer.into_utterance(Requestor::Assistant));
                match answer {
                    Ok(answer) => match verdicts(&answer, assertions.len()) {
                        Ok(verdicts) => return Ok(verdicts),
                        Err(reason) => problem = reason,
                    },
                    Err(error) => problem = error.to_string(),
                }
                let again = format!("That does not fit: {problem}. Call `give_verdicts` again.");
                messages.truncate(1);
                messages.push(Message::User(Utterance::text(again)));
            }
            Err(JudgeError(problem))
        })
    }
}

fn question(trajectory: &[Message], assertions: &[String]) -> String {
    let mut text = String::from("<conversation>\n");
    for message in trajectory {
        let role = match message {
            Message::System(_) => "system",
            Message::Assistant(_) => "agent",
            Message::User(_) => "customer",
            Message::Tool(_) => "tool",
        };
        if let Some(content) = message.content().filter(|content| !content.trim().is_empty()) {
            text.push_str(&format!("{role}: {content}\n"));
        }
        for call in message.tool_calls() {
            let arguments = python::dumps(&call.arguments, python::Layout::Line);
            text.push_str(&format!("{role} calls {}: {arguments}\n", call.name));
        }
    }
    text.push_str("</conversation>\n<statements>\n");
    for (at, assertion) in assertions.iter().enumerate() {
        text.push_str(&format!("{}. {assertion}\n", at + 1));
    }
    text.push_str("</statements>");
    text
}

fn verdicts(answer: &Utterance, expected: usize) -> Result<Vec<Verdict>, String> {
    let Some([call]) = answer.tool_calls.as_deref() else {
        return Err("one call of `give_verdicts` is expected".to_owned());
    };
    let verdicts = call.arguments["verdicts"].items();
    if verdicts.len() != expected {
        return Err(format!("{expected} verdicts are expected, not {}", verdicts.len()));
    }
    let read = |verdict: &Value| match (&verdict["holds"], &verdict["reason"]) {
        (Value::Bool(met), reason) => Ok(Verdict { met: *met, reasoning: python::str_of(reason) }),
        _ => Err("`holds` must be true or false".to_owned()),
    };
    verdicts.iter().map(read).collect()
}
