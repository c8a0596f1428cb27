//! What can be checked in a trajectory alone: actions, and what was told.

use std::sync::Arc;

use crate::{
    Action, Domain, Message, ToolCall, Value,
    simulation::{ActionCheck, CommunicateCheck},
    toolkit::Kind,
};

/// 1 if all hold, else 0.
pub(super) fn all_met(mut met: impl Iterator<Item = bool>) -> f64 {
    if met.all(|met| met) { 1.0 } else { 0.0 }
}

/// Whether each expected action was taken, by anybody and at any time.
pub(super) fn action_checks(
    domain: &Arc<Domain>,
    trajectory: &[Message],
    actions: &[Action],
) -> Vec<ActionCheck> {
    let calls: Vec<&ToolCall> = trajectory.iter().flat_map(Message::tool_calls).collect();
    let check = |action: &Action| {
        let action_match = calls.iter().any(|call| action.matches(call));
        ActionCheck {
            action: action.clone(),
            action_match,
            action_reward: if action_match { 1.0 } else { 0.0 },
            tool_type: tool_type(domain, &action.name),
        }
    };
    actions.iter().map(check).collect()
}

/// Whether each piece of information is in something that the agent said.
pub(super) fn communicate_checks(
    trajectory: &[Message],
    wanted: &[String],
) -> Vec<CommunicateCheck> {
    let said: Vec<(&str, String)> = trajectory
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(message) if message.has_text() => message.content.as_deref(),
            _ => None,
        })
        .map(|content| (content, content.to_lowercase().replace(',', "")))
        .collect();
    let check = |info: &String| {
        let lower = info.to_lowercase();
        let found = said.iter().find(|(_, content)| content.contains(&lower));
        let justification = match found {
            Some((content, _)) => {
                format!("Information '{info}' communicated in the message:\n '{content}'")
            }
            None => format!("Information '{info}' not communicated."),
        };
        CommunicateCheck { info: info.clone(), met: found.is_some(), justification }
    };
    wanted.iter().map(check).collect()
}

impl Action {
    /// Whether a call is this action. Who called does not matter.
    ///
    /// Compared are the arguments that the action names, or else those that the *call* has: a call
    /// without arguments then matches every action of its name.
    pub fn matches(&self, call: &ToolCall) -> bool {
        if self.name != call.name {
            return false;
        }
        let compared = |name: &str| match &self.compare_args {
            Some(names) => names.iter().any(|compared| compared == name),
            None => call.arguments.entry(name).is_some(),
        };
        let none = match &self.compare_args {
            Some(names) => names.is_empty(),
            None => call.arguments.entries().is_empty(),
        };
        if none {
            return true;
        }
        let picked = |arguments: &Value| -> Value {
            let entries = arguments.entries().iter();
            let picked: crate::Dict = entries.filter(|(name, _)| compared(name)).cloned().collect();
            picked.into()
        };
        picked(&call.arguments).equals(&picked(&self.arguments))
    }
}

fn tool_type(domain: &Domain, name: &str) -> Option<String> {
    // The user's tools win where both sides have one of the name.
    let kits = domain.user.iter().chain(std::iter::once(&domain.agent));
    let tool = kits.flat_map(|kit| kit.shown()).find(|tool| tool.name == name)?;
    let name = match tool.kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Think => "think",
        Kind::Generic => "generic",
    };
    Some(name.to_owned())
}
