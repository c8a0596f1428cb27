//! The raw arm: a bare `reqwest` client that parses the stream into types and nothing else.
//!
//! It keeps the conversation, because the next request needs it, and answers the one tool, because
//! the server checks the answers. There is no agent: no journal, no validation, no permissions, no
//! events.

use anyhow::{Context, Result, ensure};
use bench_arm::{
    Arm, FirstEvent, Orders, Pace,
    conversation::{SYSTEM, TASK, TOOL, TOOL_DESCRIPTION, tool_answer, tool_parameters},
};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::sse::Events;

/// A client without an agent.
#[derive(Debug)]
pub(crate) struct Raw {
    client: reqwest::Client,
    endpoint: String,
    parameters: Box<RawValue>,
}

impl Raw {
    /// A client for the server in the orders.
    pub(crate) fn new(orders: &Orders) -> Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .build()
            .context("building the client")?;
        Ok(Self {
            client,
            endpoint: format!("{}/chat/completions", orders.url),
            parameters: to_raw_value(&tool_parameters())?,
        })
    }

    /// Ask once and read the whole answer.
    async fn ask(
        &self,
        pace: Pace,
        messages: &[Message],
        first_event: &mut FirstEvent,
    ) -> Result<Answer> {
        let body = serde_json::to_vec(&Chat {
            model: pace.model(),
            messages,
            tools: [Tool {
                kind: "function",
                function: Function {
                    name: TOOL,
                    description: TOOL_DESCRIPTION,
                    parameters: &self.parameters,
                },
            }],
            stream: true,
            stream_options: StreamOptions { include_usage: true },
        })?;
        let response = self
            .client
            .post(&self.endpoint)
            .header("content-type", "application/json")
            .header("authorization", "Bearer none")
            .body(body)
            .send()
            .await?;
        if !response.status().is_success() {
            let status = response.status();
            anyhow::bail!("{status}: {}", response.text().await.unwrap_or_default());
        }
        let mut stream = response.bytes_stream();
        let mut events = Events::default();
        let mut answer = Answer::default();
        while let Some(bytes) = stream.next().await {
            events.feed(&bytes?);
            while let Some(data) = events.next() {
                if data == b"[DONE]" {
                    answer.done = true;
                    continue;
                }
                let chunk: Chunk<'_> = serde_json::from_slice(data)?;
                answer.take(chunk, first_event);
            }
        }
        ensure!(answer.done, "the stream broke off");
        Ok(answer)
    }
}

impl Arm for Raw {
    async fn converse(&self, pace: Pace, first_event: &mut FirstEvent) -> Result<String> {
        let mut messages =
            vec![Message::of("system", SYSTEM.to_owned()), Message::of("user", TASK.to_owned())];
        loop {
            let answer = self.ask(pace, &messages, first_event).await?;
            let Some(call) = answer.call else {
                return Ok(answer.text);
            };
            let arguments: Arguments<'_> = serde_json::from_str(&call.function.arguments)?;
            let result = Message {
                tool_call_id: Some(call.id.clone()),
                ..Message::of("tool", tool_answer(arguments.key))
            };
            messages.push(Message {
                tool_calls: Some([call]),
                ..Message::of("assistant", answer.text)
            });
            messages.push(result);
        }
    }
}

#[derive(Default)]
struct Answer {
    text: String,
    call: Option<Call>,
    done: bool,
}

impl Answer {
    fn take(&mut self, chunk: Chunk<'_>, first_event: &mut FirstEvent) {
        for choice in chunk.choices {
            if let Some(text) = choice.delta.content
                && !text.is_empty()
            {
                first_event.seen();
                self.text.push_str(text);
            }
            for fragment in choice.delta.tool_calls.unwrap_or_default() {
                let call = self.call.get_or_insert_with(|| Call {
                    id: fragment.id.unwrap_or_default().to_owned(),
                    kind: "function",
                    function: Called {
                        name: fragment.function.name.unwrap_or_default().to_owned(),
                        arguments: String::new(),
                    },
                });
                call.function.arguments.push_str(&fragment.function.arguments.unwrap_or_default());
            }
        }
    }
}

// What is sent.

#[derive(Serialize)]
struct Chat<'a> {
    model: &'a str,
    messages: &'a [Message],
    tools: [Tool<'a>; 1],
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

#[derive(Serialize)]
struct Message {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[Call; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

impl Message {
    fn of(role: &'static str, content: String) -> Self {
        Self { role, content, tool_calls: None, tool_call_id: None }
    }
}

#[derive(Serialize)]
struct Call {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Called,
}

#[derive(Serialize)]
struct Called {
    name: String,
    arguments: String,
}

// What comes back.

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    // Borrowed: the mock's texts have nothing to unescape.
    #[serde(borrow, default)]
    content: Option<&'a str>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Fragment<'a>>>,
}

#[derive(Deserialize)]
struct Fragment<'a> {
    #[serde(borrow, default)]
    id: Option<&'a str>,
    #[serde(borrow)]
    function: FunctionFragment<'a>,
}

#[derive(Deserialize)]
struct FunctionFragment<'a> {
    #[serde(borrow, default)]
    name: Option<&'a str>,
    // JSON within JSON is escaped, so this one is owned.
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    key: &'a str,
}
