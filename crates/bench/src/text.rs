//! Tasks as text: what a simulated user is told, and what people read.

use std::fmt::{self, Display, Write};

use crate::{
    Action, Assertion, Description, EvaluationCriteria, FunctionCall, InitialState, Instructions,
    Issue, Message, StructuredInstructions, Task, ToolCall, UserScenario, Utterance, Value,
    python::{self, Layout, dumps},
};

impl Action {
    /// The action as a call: `name(key=value, …)`.
    pub fn function_format(&self) -> String {
        let entries = self.arguments.entries().iter();
        let arguments: Vec<String> =
            entries.map(|(key, value)| format!("{key}={}", python::str_of(value))).collect();
        format!("{}({})", self.name, arguments.join(", "))
    }
}

impl Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![format!("ID: {}", self.id)];
        section(&mut lines, "Description:", self.description.as_ref());
        section(&mut lines, "User Scenario:", Some(&self.user_scenario));
        section(&mut lines, "Initial State:", self.initial_state.as_ref());
        section(&mut lines, "Evaluation Criteria:", self.evaluation_criteria.as_ref());
        if let Some(issues @ [_, ..]) = self.issues.as_deref() {
            list(&mut lines, "Issues:", issues);
        }
        f.write_str(&lines.join("\n"))
    }
}

impl Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("Purpose", &self.purpose),
            ("Relevant Policies", &self.relevant_policies),
            ("Notes", &self.notes),
        ];
        let lines: Vec<String> = parts
            .iter()
            .filter_map(|(name, text)| text.as_ref().map(|text| format!("{name}: {text}")))
            .collect();
        f.write_str(&lines.join("\n"))
    }
}

impl Display for UserScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        section(&mut lines, "Persona:", self.persona.as_ref());
        section(&mut lines, "Instructions:", Some(&self.instructions));
        f.write_str(&lines.join("\n"))
    }
}

impl Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Structured(parts) => parts.fmt(f),
        }
    }
}

impl Display for StructuredInstructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![format!("Domain: {}", self.domain)];
        section(&mut lines, "Reason for call:", Some(&self.reason_for_call));
        section(&mut lines, "Known info:", self.known_info.as_ref());
        section(&mut lines, "Unknown info:", self.unknown_info.as_ref());
        section(&mut lines, "Task instructions:", Some(&self.task_instructions));
        f.write_str(&lines.join("\n"))
    }
}

impl Display for InitialState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        if let Some(data) = &self.initialization_data {
            let json = serde_json::to_string_pretty(data).map_err(|_| fmt::Error)?;
            section(&mut lines, "Initialization Data:", Some(&json));
        }
        if let Some(actions) = &self.initialization_actions {
            list(&mut lines, "Initialization Actions:", actions);
        }
        if let Some(history) = &self.message_history {
            list(&mut lines, "Message History:", history);
        }
        f.write_str(&lines.join("\n"))
    }
}

impl Display for EvaluationCriteria {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        if let Some(actions) = &self.actions {
            list(&mut lines, "Actions:", actions);
        }
        if let Some(assertions) = &self.env_assertions {
            list(&mut lines, "Env Assertions:", assertions);
        }
        if let Some(told) = &self.communicate_info {
            list(&mut lines, "Communicate Info:", told);
        }
        if let Some(assertions) = &self.nl_assertions {
            list(&mut lines, "NL Assertions:", assertions);
        }
        f.write_str(&lines.join("\n"))
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Action ID: {}", self.action_id)?;
        writeln!(f, "Requestor: {}", self.requestor.name())?;
        writeln!(f, "Name: {}", self.name)?;
        write!(f, "Arguments:\n{}", indented_json(&self.arguments))?;
        match &self.info {
            Some(info) => write!(f, "\nInfo:\n{}", indent(info, "    ")),
            None => Ok(()),
        }
    }
}

impl Display for FunctionCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Env Type: {}", self.env_type.name())?;
        writeln!(f, "Func Name: {}", self.func_name)?;
        write!(f, "Arguments:\n{}", indented_json(&self.arguments))
    }
}

impl Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call().fmt(f)
    }
}

impl Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let icon = match self.status.as_str() {
            "open" => "🔴",
            "resolved" => "✅",
            "wont_fix" => "⚪",
            _ => "",
        };
        write!(f, "{icon} [{}] {}", self.id, self.title)?;
        for (name, text) in [
            ("Description", &self.description),
            ("Resolution", &self.resolution),
            ("Created", &self.created_at),
            ("Resolved", &self.resolved_at),
            ("Author", &self.author_email),
            ("PR", &self.pr_link),
            ("Simulation", &self.simulation_file),
        ] {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                write!(f, "\n  {name}: {text}")?;
            }
        }
        Ok(())
    }
}

impl Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(message) => {
                f.write_str("SystemMessage")?;
                let turn = message.turn_idx.map(|turn| turn.to_string());
                told(f, "turn_idx", turn.as_deref())?;
                told(f, "timestamp", message.timestamp.as_deref())?;
                told(f, "content", message.content.as_deref())
            }
            Self::Assistant(said) => utterance(f, "Assistant", said),
            Self::User(said) => utterance(f, "User", said),
            Self::Tool(message) => {
                write!(f, "ToolMessage (responding to {})", message.requestor.name())?;
                let turn = message.turn_idx.map(|turn| turn.to_string());
                told(f, "turn_idx", turn.as_deref())?;
                told(f, "timestamp", message.timestamp.as_deref())?;
                told(f, "content", message.content.as_deref())?;
                if message.error { f.write_str("\nError") } else { Ok(()) }
            }
        }
    }
}

impl Display for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolCall (from {})", self.requestor.name())?;
        told(f, "id", Some(self.id.as_str()).filter(|id| !id.is_empty()))?;
        write!(f, "\nname: {}\narguments:\n{}", self.name, indented_json(&self.arguments))
    }
}

fn utterance(f: &mut fmt::Formatter<'_>, who: &str, said: &Utterance) -> fmt::Result {
    write!(f, "{who}Message")?;
    told(f, "content", said.content.as_deref().filter(|_| said.has_text()))?;
    if let Some(calls) = &said.tool_calls {
        f.write_str("\nToolCalls:")?;
        for call in calls {
            write!(f, "\n{call}")?;
        }
    }
    f.write_str("\nis_final_chunk: True")
}

fn told(f: &mut fmt::Formatter<'_>, name: &str, text: Option<&str>) -> fmt::Result {
    match text {
        Some(text) => write!(f, "\n{name}: {text}"),
        None => Ok(()),
    }
}

fn section<T: Display>(lines: &mut Vec<String>, title: &str, content: Option<&T>) {
    if let Some(content) = content {
        lines.push(title.to_owned());
        lines.push(indent(&content.to_string(), "\t"));
    }
}

fn list<T: Display>(lines: &mut Vec<String>, title: &str, items: &[T]) {
    lines.push(title.to_owned());
    lines.extend(items.iter().map(|item| indent(&item.to_string(), "\t")));
}

fn indented_json(value: &Value) -> String {
    dumps(value, Layout::Indented(2))
}

/// Python's `textwrap.indent`: lines of nothing but white space stay as they are.
fn indent(text: &str, prefix: &str) -> String {
    let is_break = |letter: char| {
        matches!(
            letter,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().find(|(_, letter)| is_break(*letter)).map(|(at, letter)| {
            let pair = rest.get(at..).is_some_and(|rest| rest.starts_with("\r\n"));
            at + if pair { 2 } else { letter.len_utf8() }
        });
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !line.trim().is_empty() {
            out.push_str(prefix);
        }
        let _ = out.write_str(line);
        rest = after;
    }
    out
}
