//! How entries look as lines of text.

use duologue_behaviors::{Conclusion, Decision};
use duologue_core::{
    Entry, Event, HookChange, Inquiry, InquiryKind, Message, Outcome, RunId, SessionId, ToolCall,
    ToolResult, ToolStatus,
};

use super::{
    Paint, Speakers, Style,
    notes::{self, Shown, todo_lines},
};

/// How much of a call or result one line shows.
const LINE_CHARS: usize = 100;

/// Functions by which agents know and reach each other.
const PLUMBING: [&str; 4] = ["a2a_send", "a2a_follow", "known_agents", "call_off_delegated"];

/// The first `most` characters of a text's first line, with a mark where something is left out.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_end();
    let mut clipped: String = line.chars().filter(|c| !c.is_control()).take(most).collect();
    if clipped.len() < text.trim().len() {
        clipped.push('…');
    }
    clipped
}

/// A call, on one line.
fn call_line(paint: Paint, call: &ToolCall) -> String {
    let arguments = clip(&call.arguments.to_string(), LINE_CHARS);
    format!("{} {}", paint.text(Style::Tool, format!("⚙ {}", call.name)), arguments)
}

/// The calls of a message, a line each. Those that a note says better are left out.
pub(crate) fn call_lines(paint: Paint, run: RunId, message: &Message) -> Vec<String> {
    let calls = message.tool_calls().filter(|call| !is_told_by_note(run, &call.name));
    calls.map(|call| call_line(paint, call)).collect()
}

/// Whether a tool's call is followed by a note with the same in it: the structures by which the
/// halves of a dual act speak. They are never the session's own run.
fn is_told_by_note(run: RunId, tool: &str) -> bool {
    run != RunId::ROOT && matches!(tool, Decision::TOOL | Conclusion::TOOL)
}

/// A result, folded to one line.
pub(crate) fn result_line(paint: Paint, result: &ToolResult) -> String {
    let text = result.prompt_text();
    let lines = text.lines().count();
    let size = if lines > 1 { format!(" ({lines} lines)") } else { String::new() };
    let style = match result.status {
        ToolStatus::Ok => Style::Good,
        ToolStatus::Denied | ToolStatus::Skipped | ToolStatus::Cancelled => Style::Warning,
        _ => Style::Bad,
    };
    let status = paint.text(style, format!("↳ {}", result.status));
    format!("  {status}{size}: {}", paint.text(Style::Dim, clip(&text, LINE_CHARS)))
}

/// How a turn ended, where that is not simply an answer.
pub(crate) fn outcome_line(paint: Paint, outcome: &Outcome) -> Option<String> {
    let style = match outcome {
        Outcome::Completed => return None,
        Outcome::Rejected { reason } => {
            return Some(paint.text(Style::Bad, format!("■ Task rejected: {reason}")));
        }
        Outcome::InputRequired { .. } | Outcome::Aborted { .. } => Style::Warning,
        _ => Style::Bad,
    };
    Some(paint.text(style, format!("■ {outcome}")))
}

/// What an open question looks like, with the command that answers it from elsewhere.
pub(crate) fn inquiry_lines(paint: Paint, session: &SessionId, inquiry: &Inquiry) -> String {
    let (what, how) = match &inquiry.kind {
        InquiryKind::Approval { call, reason } => (
            format!("{} {} needs an approval: {reason}", call.name, call.arguments),
            "approve|always|deny|edit|result",
        ),
        InquiryKind::Question { text, choices } => {
            let choices = if choices.is_empty() {
                String::new()
            } else {
                format!(" ({})", choices.join(" / "))
            };
            (format!("{text}{choices}"), "result \"…\"")
        }
        InquiryKind::Execution { call } => {
            (format!("the result of {} {}", call.name, call.arguments), "result \"…\"")
        }
        InquiryKind::Credentials { target } => {
            (format!("credentials for {target}"), "approve|deny")
        }
        InquiryKind::Budget { limit, used } => {
            (format!("the {limit} of the budget are used up ({used})"), "approve|deny")
        }
    };
    let command = format!("duo sessions answer {session} {} {how}", inquiry.id);
    format!("{} {what}\n  {}", paint.text(Style::Warning, "?"), paint.text(Style::Dim, command))
}

/// One line for one entry, for those who read along; `None` for what is shown elsewhere.
pub(crate) fn entry_line(paint: Paint, speakers: &Speakers, entry: &Entry) -> Option<String> {
    let line = match &entry.event {
        // What an agent tells another is its own prompt over and over; the beginning says enough.
        Event::UserRequest { message, .. } if entry.run != RunId::ROOT => {
            paint.text(Style::Dim, format!("❯ {}", clip(&message.text(), LINE_CHARS)))
        }
        Event::UserRequest { message, .. } => {
            format!("{} {}", paint.text(Style::Bold, "❯"), message.text())
        }
        Event::Observed { message } => paint.text(Style::Dim, format!("👁 {}", message.text())),
        Event::ToolEnded { result, .. } if is_told_by_note(entry.run, &result.name) => return None,
        Event::ToolEnded { result, .. } => result_line(paint, result),
        Event::ModelRetried { attempt, error, wait_ms } => {
            let wait = *wait_ms as f64 / 1000.0;
            let text = format!("↻ try {attempt} failed: {error}; again in {wait:.1} s");
            paint.text(Style::Warning, text)
        }
        Event::SessionResumed { in_flight } if in_flight.is_empty() => {
            paint.text(Style::Dim, "· resumed")
        }
        Event::SessionResumed { in_flight } => {
            let calls: Vec<&str> = in_flight.iter().map(|id| id.as_str()).collect();
            paint.text(Style::Dim, format!("· resumed; was running: {}", calls.join(", ")))
        }
        Event::HookAnswered { hook, change: HookChange::Failed { at, error } } => {
            paint.text(Style::Bad, format!("⚑ hook {hook} failed at {at}: {error}"))
        }
        Event::HookAnswered { hook, change } => {
            let what = match change {
                HookChange::PreReply { .. } => "changed the request",
                HookChange::PostReply { .. } => "changed the answer",
                HookChange::PreStep { .. } | HookChange::PostStep { .. } => "added a message",
                HookChange::PreTool { .. } => "changed a call's arguments",
                HookChange::Refused { .. } => "refused a call",
                HookChange::PostTool { .. } => "changed a result",
                HookChange::SentBack { .. } => "sent the agent back to work",
                HookChange::Failed { .. } => "failed",
            };
            paint.text(Style::Dim, format!("⚑ hook {hook} {what}"))
        }
        Event::MemoryTrimmed { dropped, summary } => {
            let how = if summary.is_some() { "summarised" } else { "left out" };
            paint.text(Style::Dim, format!("· {dropped} old messages {how} of the prompt"))
        }
        Event::ChildStarted { key, agent, .. } => {
            paint.text(Style::Dim, format!("┌ {key} ({agent})"))
        }
        Event::ChildReplied { outcome, .. } => paint.text(Style::Dim, format!("└ {outcome}")),
        Event::Note { topic, data } => match notes::note(paint, topic, data) {
            Some(Shown::Lines(lines)) => lines,
            Some(Shown::Todo(todo)) => todo_lines(paint, &todo).join("\n"),
            Some(Shown::Nothing) => return None,
            None => {
                let data = clip(&data.to_string(), LINE_CHARS);
                paint.text(Style::Dim, format!("· {topic}: {data}"))
            }
        },
        Event::FunctionAnswered { function, error: Some(error), .. } => {
            paint.text(Style::Bad, format!("ƒ {function} failed: {error}"))
        }
        // How agents reach each other is told by what they say.
        Event::FunctionAnswered { function, .. } if PLUMBING.contains(&function.as_str()) => {
            return None;
        }
        Event::FunctionAnswered { function, .. } => {
            paint.text(Style::Dim, format!("ƒ {function} answered"))
        }
        Event::Unknown(value) => {
            let text = clip(&value.to_string(), LINE_CHARS);
            paint.text(Style::Dim, format!("· {}: {text}", entry.event.kind()))
        }
        Event::SessionStarted { .. }
        | Event::ExternalActionResult { .. }
        | Event::AgentResponseStart { .. }
        | Event::AgentMessage { .. }
        | Event::ExternalAction { .. }
        | Event::ToolStarted { .. }
        | Event::AgentResponseEnd { .. } => return None,
    };
    Some(speakers.marked(paint, entry.run, &line))
}

#[cfg(test)]
mod tests {
    use duologue_core::{CallId, Limit, Part};
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_and_results_fit_on_a_line_each_whatever_they_hold() {
        let call = ToolCall::new("c1", "write", json!({"text": "a\nb".repeat(100)}));
        let line = call_line(Paint::plain(), &call);
        assert!(line.starts_with("⚙ write {\"text\":\"a\\nba"), "{line}");
        assert_eq!((line.lines().count(), line.chars().count()), (1, 109));
        let result = ToolResult {
            content: vec![Part::text("one\x1b[31m\ntwo")],
            ..ToolResult::text(&call, ToolStatus::Ok, "")
        };
        let line = result_line(Paint::plain(), &result);
        assert_eq!(line, "  ↳ ok (2 lines): one[31m…", "a result cannot colour the terminal");
    }

    #[test]
    fn an_open_question_comes_with_the_command_that_answers_it() {
        let kind = InquiryKind::Budget { limit: Limit::Tokens, used: "9 of 8".into() };
        let inquiry = Inquiry { id: CallId::from("b1"), run: RunId::ROOT, kind };
        let text = inquiry_lines(Paint::plain(), &SessionId::from("abc"), &inquiry);
        let expected = "? the tokens of the budget are used up (9 of 8)\n  \
                        duo sessions answer abc b1 approve|deny";
        assert_eq!(text, expected);
    }
}
