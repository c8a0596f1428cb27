//! An agent that cannot be given tools, such as one behind A2A, in the agent's seat.
//!
//! It is told in words: its first message has the rules and the tools, and how to call them. What
//! it answers is said to the user, unless it is a JSON object with `tool_calls`. `docs/tau2.md`
//! has the agreement.

use duologue_core::Agent;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::{
    AgentError, Incoming, Message, Requestor, Seat, SessionSeat, ToolCall, ToolMessage, Utterance,
    llm::{ToolList, from_json},
};

/// How the agent is told to take part.
const AGREEMENT: &str = "\
You serve the customers of a company. This conversation goes through a program: each of its messages \
tells you, as one of two, what the customer says (in <customer>) or what tools answered (in \
<tool_results>).
Answer each message with one of two:
1. Words for the customer, as plain text. They are sent as they are.
2. Calls of the company's tools, as a JSON object and nothing else:
{\"tool_calls\": [{\"name\": \"tool\", \"arguments\": {\"key\": \"value\"}}]}
The tools in <tools> are the only way to look something up or to change something at this company; \
your own tools do not reach it. Call them as said here, never in another way. Keep to the rules in \
<policy> in everything you do.";

/// After so many messages the agreement is repeated: not everybody remembers a conversation whole.
const REPEATED_AFTER: u32 = 15;

/// How often an answer that is neither words nor calls is given back.
const TRIES: u32 = 3;

/// An agent that is told of the environment's tools in words.
pub struct WordsSeat {
    inner: SessionSeat,
    agreement: String,
    standing: Standing,
    /// What was said before it came, until it is told.
    history: Vec<Message>,
}

/// How far the conversation is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Standing {
    /// Messages since the agreement was told; `None` before the first.
    told: Option<u32>,
    /// Calls so far: they need ids.
    calls: u64,
}

/// What is kept of the seat.
#[derive(Serialize, Deserialize)]
struct News {
    standing: Standing,
    inner: Option<Json>,
}

impl WordsSeat {
    /// An agent for a domain with these rules and tools.
    pub fn new(agent: Agent, policy: &str, tools: &ToolList) -> Self {
        let tool = |spec: &std::sync::Arc<duologue_core::ToolSpec>| {
            json!({
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
            })
        };
        let tools: Vec<String> = tools.specs().iter().map(|s| tool(s).to_string()).collect();
        let agreement = format!(
            "{AGREEMENT}\n\n<policy>\n{policy}\n</policy>\n\n<tools>\n{}\n</tools>",
            tools.join("\n")
        );
        Self {
            inner: SessionSeat::new(agent),
            agreement,
            standing: Standing::default(),
            history: Vec::new(),
        }
    }

    async fn take_turn(&mut self, message: Incoming) -> Result<Utterance, AgentError> {
        let mut text = told(message);
        // The answer to a question of its own reaches it as such.
        if !self.inner.has_asked() {
            text = self.framed(text);
        }
        let (mut cost, mut tries) = (0.0, 0);
        loop {
            let said = self.inner.next(Incoming::Said(Utterance::text(text))).await?;
            cost += said.cost.unwrap_or_default();
            tries += 1;
            let words = said.content.clone().unwrap_or_default();
            let is_question = self.inner.has_asked();
            let read = if is_question { Ok(Spoken::Words(words)) } else { read(&words) };
            let spoken = match read {
                Err(problem) if tries < TRIES => {
                    text = format!(
                        "<problem>\nYour answer is neither words for the customer nor calls: \
                         {problem}. Nothing was sent and nothing was called.\n</problem>"
                    );
                    continue;
                }
                Err(_) => Spoken::Words(said.content.clone().unwrap_or_default()),
                Ok(spoken) => spoken,
            };
            let mut said = Utterance { cost: Some(cost), ..said };
            match spoken {
                Spoken::Words(words) => said.content = Some(words),
                Spoken::Calls(words, calls) => {
                    said.content = words;
                    said.tool_calls = Some(calls.into_iter().map(|c| self.call(c)).collect());
                }
            }
            return Ok(said);
        }
    }

    /// A message with the agreement before it, where it is due.
    fn framed(&mut self, text: String) -> String {
        let told = self.standing.told.unwrap_or(REPEATED_AFTER);
        if told < REPEATED_AFTER {
            self.standing.told = Some(told + 1);
            return text;
        }
        let mut framed = self.agreement.clone();
        if self.standing.told.is_none() && !self.history.is_empty() {
            let lines: Vec<String> = self.history.iter().map(line_of).collect();
            framed.push_str("\n\n<conversation_so_far>\n");
            framed.push_str(&lines.join("\n"));
            framed.push_str("\n</conversation_so_far>");
        }
        self.standing.told = Some(1);
        format!("{framed}\n\n{text}")
    }

    fn call(&mut self, call: SpokenCall) -> ToolCall {
        self.standing.calls += 1;
        ToolCall {
            id: call.id.unwrap_or_else(|| format!("call_{}", self.standing.calls)),
            name: call.name,
            arguments: from_json(&Json::Object(call.arguments)),
            requestor: Requestor::Assistant,
        }
    }
}

impl Seat for WordsSeat {
    fn begin(&mut self, history: &[Message]) -> Result<(), AgentError> {
        self.history = history.to_vec();
        self.inner.begin(&[])
    }

    fn next(&mut self, message: Incoming) -> BoxFuture<'_, Result<Utterance, AgentError>> {
        Box::pin(self.take_turn(message))
    }

    fn is_stop(&self, _: &Utterance) -> bool {
        false
    }

    fn stop(&mut self, message: Option<&Incoming>) {
        self.inner.stop(message);
    }

    fn set_seed(&mut self, _: i64) {}

    fn keep(&mut self) -> BoxFuture<'_, Option<Json>> {
        Box::pin(async move {
            let inner = self.inner.keep().await;
            serde_json::to_value(News { standing: self.standing.clone(), inner }).ok()
        })
    }

    fn resume(&mut self, history: &[Message], kept: Vec<Json>) -> Result<(), AgentError> {
        let mut inner = Vec::new();
        for news in kept {
            let news: News = serde_json::from_value(news)
                .map_err(|error| AgentError::Other(error.to_string()))?;
            self.standing = news.standing;
            inner.extend(news.inner);
        }
        self.history = history.to_vec();
        self.inner.resume(history, inner)
    }
}

/// What an agent meant.
#[derive(Debug, PartialEq)]
enum Spoken {
    Words(String),
    Calls(Option<String>, Vec<SpokenCall>),
}

/// An answer that is an object.
#[derive(Deserialize)]
struct SpokenObject {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    tool_calls: Vec<SpokenCall>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct SpokenCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    arguments: serde_json::Map<String, Json>,
}

/// Words, or an object that calls tools. What begins like an object must be one.
fn read(text: &str) -> Result<Spoken, String> {
    let whole = text.trim();
    // Many models put JSON into a block of code.
    let fenced = whole.strip_prefix("```").and_then(|inner| inner.strip_suffix("```"));
    let inner = fenced.map_or(whole, |inner| inner.strip_prefix("json").unwrap_or(inner).trim());
    if !inner.starts_with('{') {
        return Ok(Spoken::Words(text.to_owned()));
    }
    let object: SpokenObject = serde_json::from_str(inner).map_err(|error| error.to_string())?;
    match (object.message, object.tool_calls.is_empty()) {
        (message, false) => Ok(Spoken::Calls(message, object.tool_calls)),
        (Some(message), true) => Ok(Spoken::Words(message)),
        (None, true) => Err("the object has no `tool_calls`".to_owned()),
    }
}

/// A message as the agent is told it.
fn told(message: Incoming) -> String {
    let results = |answers: &[ToolMessage]| {
        let answer = |answer: &ToolMessage| {
            json!({"id": answer.id, "error": answer.error, "content": answer.content}).to_string()
        };
        let answers: Vec<String> = answers.iter().map(answer).collect();
        format!("<tool_results>\n{}\n</tool_results>", answers.join("\n"))
    };
    match message {
        Incoming::Begin => "<customer>\n</customer>".to_owned(),
        Incoming::Said(said) => {
            format!("<customer>\n{}\n</customer>", said.content.unwrap_or_default())
        }
        Incoming::Tool(answer) => results(&[answer]),
        Incoming::Tools(answers) => results(&answers.tool_messages),
    }
}

/// A message of the past in a line.
fn line_of(message: &Message) -> String {
    let who = match message {
        Message::Assistant(_) => "you",
        Message::User(_) => "customer",
        Message::Tool(_) => "tool",
        Message::System(_) => "system",
    };
    let mut line = format!("{who}: {}", message.content().unwrap_or_default());
    for call in message.tool_calls() {
        line.push_str(&format!("[called {} {}]", call.name, crate::python::repr(&call.arguments)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_words_and_objects_are_calls() {
        let words = |text: &str| Ok(Spoken::Words(text.to_owned()));
        assert_eq!(read("It is booked."), words("It is booked."));
        assert_eq!(read("Use {braces}."), words("Use {braces}."));
        assert_eq!(read("{\"message\": \"Hello\"}"), words("Hello"));
        let call = SpokenCall { id: None, name: "f".into(), arguments: serde_json::Map::new() };
        let calls = Ok(Spoken::Calls(None, vec![call]));
        assert_eq!(read("```json\n{\"tool_calls\": [{\"name\": \"f\"}]}\n```"), calls);
    }

    #[test]
    fn what_begins_like_an_object_must_be_one() {
        assert!(read("{\"tool_calls\": [{\"name\": \"f\", \"arguments\": 3}]}").is_err());
        assert!(read("{\"tool_calls\": [").is_err());
        assert!(read("{\"calls\": []}").unwrap_err().contains("tool_calls"));
    }
}
