//! `:tool NAME [JSON]`

use duologue_core::{Event, Session, SessionOptions, read_all};

use super::{Command, Next};
use crate::{
    conversation::converse,
    repl::one_call,
    terminal::{Style, visible},
};

pub(super) const COMMAND: Command = Command {
    name: "tool",
    arguments: "NAME [JSON]",
    about: "call one of this agent's tools, without the model",
    run: |repl, words| {
        Box::pin(async move {
            let request = one_call::request(words)?;
            let agent = one_call::caller_of(repl.resident.agent());
            let store = repl.house.store().await?;
            let options = SessionOptions { ..repl.house.session_options(&repl.plan) };
            let session = Session::start(&agent, std::sync::Arc::clone(&store), options)?;
            converse(&session, &mut repl.screen, Some(request)).await?;
            let entries = read_all(&*store, session.id()).await?;
            let result = entries.iter().rev().find_map(|entry| match &entry.event {
                Event::ToolEnded { result, .. } => Some(result.prompt_text()),
                _ => None,
            });
            if let Some(text) = result {
                let pretty = serde_json::from_str::<serde_json::Value>(&text)
                    .and_then(|value| serde_json::to_string_pretty(&value))
                    .unwrap_or(text);
                let title = repl.screen.paint().text(Style::Bold, "Tool result:");
                repl.say(&format!("{title}\n{}", visible(&pretty)))?;
            }
            repl.log(&session).await?;
            Ok(Next::Stay)
        })
    },
};
