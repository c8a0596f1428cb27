//! Asking a person at the terminal for what a session waits for.

use std::{
    io::{self, Write},
    time::Duration,
};

use crossterm::{
    event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    terminal,
};
use duologue_core::{Answer, Inquiry, InquiryKind, Session, ToolCall};
use reedline::{DefaultPrompt, DefaultPromptSegment, EditCommand, Reedline, Signal};

use crate::{
    failure::Failure,
    terminal::{Paint, Screen, Style},
};

/// How often to look whether somebody else has answered meanwhile.
const GLANCE: Duration = Duration::from_millis(250);

/// Who answers at the terminal.
const BY: &str = "terminal";

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing is open any more.
    Answered,
    /// The person went away without answering; the session keeps waiting.
    Left,
}

/// Ask for everything that is open, one after the other.
pub(crate) async fn ask(session: &Session, screen: &mut Screen) -> Result<Asked, Failure> {
    let paint = screen.paint();
    loop {
        let pending = session.pending();
        let Some(inquiry) = pending.first() else { return Ok(Asked::Answered) };
        let answer = match &inquiry.kind {
            InquiryKind::Approval { call, reason } => {
                screen.line(&describe(paint, call))?;
                approve(session, screen, inquiry, call, reason).await?
            }
            InquiryKind::Budget { limit, used } => {
                let text = format!("The {limit} of the budget are used up ({used}).");
                screen.line(&paint.text(Style::Warning, text))?;
                yes_or_no(session, inquiry, "Grant as much again? [y]es [n]o ").await?
            }
            InquiryKind::Credentials { target } => {
                let text = format!("Credentials for {target} are missing.");
                screen.line(&paint.text(Style::Warning, text))?;
                yes_or_no(session, inquiry, "Are they there now? [y]es [n]o ").await?
            }
            InquiryKind::Question { text, choices } => {
                screen.line(&format!("{} {text}", paint.text(Style::Warning, "?")))?;
                for (number, choice) in choices.iter().enumerate() {
                    screen.line(&format!("  {}. {choice}", number + 1))?;
                }
                line("answer", "")?.map(|typed| Answer::text(chosen(&typed, choices)))
            }
            InquiryKind::Execution { call } => {
                screen.line(&describe(paint, call))?;
                line("result", "")?.map(Answer::text)
            }
        };
        let still_open = session.pending().iter().any(|other| other.id == inquiry.id);
        match answer {
            _ if !still_open => screen.line(&paint.text(Style::Dim, "· answered elsewhere"))?,
            Some(answer) => session.answer(&inquiry.id, answer, Some(BY.into()))?,
            None => return Ok(Asked::Left),
        }
    }
}

fn describe(paint: Paint, call: &ToolCall) -> String {
    let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
    let title = paint.text(Style::Warning, format!("? {} wants to run with", call.name));
    format!("{title}\n{arguments}")
}

async fn approve(
    session: &Session,
    screen: &mut Screen,
    inquiry: &Inquiry,
    call: &ToolCall,
    reason: &str,
) -> Result<Option<Answer>, Failure> {
    let paint = screen.paint();
    let question = "Run it? [y]es [n]o [a]lways [e]dit [w]hy ";
    loop {
        let Some(key) = key(session, inquiry, &paint.text(Style::Bold, question)).await? else {
            return Ok(None);
        };
        match key {
            'y' => return Ok(Some(Answer::Approve)),
            'a' => return Ok(Some(Answer::ApproveAlways)),
            'n' => {
                let reason = line("why not (optional)", "")?.unwrap_or_default();
                return Ok(Some(Answer::Deny { reason }));
            }
            'e' => {
                let Some(text) = line("arguments", &call.arguments.to_string())? else { continue };
                match serde_json::from_str(&text) {
                    Ok(arguments) => {
                        return Ok(Some(Answer::Edit { arguments: Box::new(arguments) }));
                    }
                    Err(error) => {
                        let text = format!("That is not JSON: {error}");
                        screen.line(&paint.text(Style::Bad, text))?;
                    }
                }
            }
            'w' => screen.line(&format!("It asks because {reason}."))?,
            _ => {}
        }
    }
}

async fn yes_or_no(
    session: &Session,
    inquiry: &Inquiry,
    question: &str,
) -> Result<Option<Answer>, Failure> {
    loop {
        match key(session, inquiry, question).await? {
            None => return Ok(None),
            Some('y') => return Ok(Some(Answer::Approve)),
            Some('n') => return Ok(Some(Answer::Deny { reason: String::new() })),
            Some(_) => {}
        }
    }
}

/// One key, without Enter. `None` when the person leaves or somebody else answered.
async fn key(
    session: &Session,
    inquiry: &Inquiry,
    question: &str,
) -> Result<Option<char>, Failure> {
    write!(io::stdout(), "{question}")?;
    io::stdout().flush()?;
    let pressed = loop {
        match tokio::task::block_in_place(|| poll_key(GLANCE))? {
            Some(pressed) => break pressed,
            None => {
                // Somebody may answer from another terminal while this one waits.
                let _ = session.collect_mail().await?;
                if !session.pending().iter().any(|other| other.id == inquiry.id) {
                    break Pressed::Leave;
                }
            }
        }
    };
    match pressed {
        Pressed::Char(c) => {
            writeln!(io::stdout(), "{c}")?;
            Ok(Some(c))
        }
        Pressed::Leave => {
            writeln!(io::stdout())?;
            Ok(None)
        }
    }
}

#[derive(Clone, Copy)]
enum Pressed {
    Char(char),
    Leave,
}

fn poll_key(wait: Duration) -> io::Result<Option<Pressed>> {
    terminal::enable_raw_mode()?;
    let pressed = next_key(wait);
    terminal::disable_raw_mode()?;
    pressed
}

fn next_key(wait: Duration) -> io::Result<Option<Pressed>> {
    if !event::poll(wait)? {
        return Ok(None);
    }
    let Event::Key(key) = event::read()? else { return Ok(None) };
    if key.kind == KeyEventKind::Release {
        return Ok(None);
    }
    Ok(match key.code {
        KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(Pressed::Leave)
        }
        KeyCode::Esc => Some(Pressed::Leave),
        KeyCode::Char(c) => Some(Pressed::Char(c.to_ascii_lowercase())),
        _ => None,
    })
}

/// One line of text, with what stands there already. `None` when the person leaves.
pub(crate) fn line(prompt: &str, text: &str) -> Result<Option<String>, Failure> {
    let mut editor = Reedline::create();
    if !text.is_empty() {
        editor.run_edit_commands(&[EditCommand::InsertString(text.to_owned())]);
    }
    let left = DefaultPromptSegment::Basic(prompt.to_owned());
    let prompt = DefaultPrompt::new(left, DefaultPromptSegment::Empty);
    match tokio::task::block_in_place(|| editor.read_line(&prompt))? {
        Signal::Success(typed) => Ok(Some(typed)),
        _ => Ok(None),
    }
}

/// The choice that a number stands for, or what was typed.
fn chosen(typed: &str, choices: &[String]) -> String {
    let number: Option<usize> = typed.trim().parse().ok();
    let choice = number.and_then(|n| choices.get(n.checked_sub(1)?));
    choice.map_or_else(|| typed.to_owned(), Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_the_choice_and_anything_else_for_itself() {
        let choices = ["red".to_owned(), "blue".to_owned()];
        assert_eq!(chosen("2", &choices), "blue");
        assert_eq!(chosen("3", &choices), "3");
        assert_eq!(chosen("0", &choices), "0");
        assert_eq!(chosen("green", &choices), "green");
    }
}
