//! The loop benchmark's conversation held by rig's agent.
//!
//! One agent is shared by all conversations, which is rig's cheapest way. It runs with its defaults:
//! no memory, no hooks, the bundled `reqwest` transport.

use std::convert::Infallible;

use anyhow::{Context, Result};
use bench_arm::{
    Arm, FirstEvent, Orders, Pace,
    conversation::{STEPS, SYSTEM, TASK, TOOL, TOOL_DESCRIPTION, tool_answer, tool_parameters},
};
use clap::Parser;
use futures::StreamExt;
use rig::{
    Agent, AgentBuilder,
    agent::MultiTurnStreamItem,
    providers::openai::OpenAIConfig,
    rig_reqwest::{ReqwestClient, reqwest},
    streaming::{Item, StreamEvent},
    tool::PortableTool,
};
use serde::Deserialize;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    orders: Orders,
}

fn main() -> Result<()> {
    bench_arm::run(async |orders: &Orders| Rig::new(orders), &Program::parse().orders)
}

struct Rig {
    free: Agent,
    held: Agent,
}

impl Rig {
    fn new(orders: &Orders) -> Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .build()
            .context("building the client")?;
        let config = OpenAIConfig::new("none").with_base_url(&orders.url);
        let openai = config.connect(ReqwestClient::from(client));
        let agent = |pace: Pace| {
            AgentBuilder::new(openai.chat(pace.model()))
                .preamble(SYSTEM)
                .default_max_turns(STEPS)
                .tool(LookUp)
                .build()
        };
        Ok(Self { free: agent(Pace::Free), held: agent(Pace::Held) })
    }
}

impl Arm for Rig {
    async fn converse(&self, pace: Pace, first_event: &mut FirstEvent) -> Result<String> {
        let agent = match pace {
            Pace::Free => &self.free,
            Pace::Held => &self.held,
        };
        let mut stream = agent.prompt(TASK).stream();
        while let Some(item) = stream.next().await {
            match item? {
                MultiTurnStreamItem::StreamAssistantItem(Item::Event(StreamEvent::Text {
                    ..
                })) => first_event.seen(),
                MultiTurnStreamItem::FinalResponse(response) => {
                    return Ok(response.output().to_owned());
                }
                _ => {}
            }
        }
        anyhow::bail!("the stream ended without a final response")
    }
}

struct LookUp;

#[derive(Deserialize)]
struct Arguments {
    key: String,
}

impl PortableTool for LookUp {
    const NAME: &'static str = TOOL;
    type Args = Arguments;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        TOOL_DESCRIPTION.into()
    }

    fn parameters(&self) -> serde_json::Value {
        tool_parameters()
    }

    async fn call(&self, arguments: Arguments) -> Result<String, Infallible> {
        Ok(tool_answer(&arguments.key))
    }
}
