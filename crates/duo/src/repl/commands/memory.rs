//! `:memory`

use duologue_core::{Event, RunId, read_all};

use super::{Command, Next};
use crate::config::keys::Window;

pub(super) const COMMAND: Command = Command {
    name: "memory",
    arguments: "",
    about: "show how much the agent remembers of this conversation",
    run: |repl, _| {
        Box::pin(async move {
            let store = repl.house.store().await?;
            let entries = read_all(&*store, repl.session.id()).await?;
            let (mut messages, mut left_out, mut summary) = (0, 0, None);
            for entry in entries.iter().filter(|entry| entry.run == RunId::ROOT) {
                match &entry.event {
                    Event::UserRequest { .. }
                    | Event::AgentMessage { aside: None, .. }
                    | Event::ToolEnded { .. }
                    | Event::Observed { .. } => messages += 1,
                    Event::MemoryTrimmed { dropped, summary: text } => {
                        left_out += dropped;
                        summary.clone_from(text);
                    }
                    _ => {}
                }
            }
            let config = repl.house.config();
            let section = config.agents.get(&repl.plan.agent);
            let memory = section.map_or(&config.memory, |agent| &agent.memory);
            let window = match memory.window() {
                Window::Tokens(most) => format!("{most} tokens"),
                Window::Messages(most) => format!("{most} messages"),
            };
            repl.say(&format!(
                "{messages} messages in the journal, {left_out} of them left out of the prompt; \
                 a prompt carries at most {window}"
            ))?;
            if let Some(summary) = summary {
                let text = format!("they are summed up as: {}", summary.text());
                repl.say(&crate::terminal::visible(&text))?;
            }
            Ok(Next::Stay)
        })
    },
};
