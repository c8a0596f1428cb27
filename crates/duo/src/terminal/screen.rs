//! The screen: a session's live events as a person follows them.

use std::io::{self, IsTerminal, Write};

use duologue_core::{Delta, Entry, Event, Live, Message, Outcome, RunId};

use unicode_width::UnicodeWidthStr;

use super::{Paint, Style, call_line, entry_line, outcome_line};

/// Where and how a session is shown.
pub(crate) struct Screen {
    kind: Kind,
    paint: Paint,
    /// The piece of text that is being streamed, if any.
    open: Option<Open>,
    /// Whether the current answer was already shown while it streamed.
    streamed: bool,
    /// The text that was streamed last: should calls follow, it was a thought.
    said: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A person at a terminal.
    Terminal,
    /// Standard output is for the answer alone; the work goes to standard error if wanted.
    Piped { verbose: bool },
    /// Journal entries as lines of JSON.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Thought,
    Text,
}

impl Screen {
    /// A screen for a command's output.
    pub(crate) fn new(paint: Paint, json: bool, verbose: bool) -> Self {
        let kind = if json {
            Kind::Json
        } else if io::stdout().is_terminal() {
            Kind::Terminal
        } else {
            Kind::Piped { verbose }
        };
        Self { kind, paint, open: None, streamed: false, said: String::new() }
    }

    /// Whether a person can be asked here.
    pub(crate) fn can_ask(&self) -> bool {
        self.kind == Kind::Terminal && io::stdin().is_terminal()
    }

    /// Whether a person reads along.
    pub(crate) fn is_terminal(&self) -> bool {
        self.kind == Kind::Terminal
    }

    /// How it paints.
    pub(crate) fn paint(&self) -> Paint {
        self.paint
    }

    /// Show what happened.
    pub(crate) fn show(&mut self, live: &Live) -> io::Result<()> {
        match (self.kind, live) {
            (Kind::Json, Live::Entry(entry)) => json_line(entry),
            (Kind::Json, _) => Ok(()),
            (Kind::Piped { verbose }, Live::Entry(entry)) => self.piped(entry, verbose),
            (Kind::Piped { .. }, _) => Ok(()),
            (Kind::Terminal, Live::Entry(entry)) => self.entry(entry),
            (Kind::Terminal, Live::Delta { run, delta }) => self.delta(*run, delta),
            (Kind::Terminal, Live::Restart { .. }) => {
                self.close()?;
                self.streamed = false;
                self.said.clear();
                Ok(())
            }
        }
    }

    /// A line besides the conversation.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.close()?;
        match self.kind {
            Kind::Terminal => writeln!(io::stdout(), "{text}"),
            Kind::Piped { .. } | Kind::Json => writeln!(io::stderr(), "{text}"),
        }
    }

    fn delta(&mut self, run: RunId, delta: &Delta) -> io::Result<()> {
        let (kind, text) = match delta {
            Delta::Reasoning(text) => (Open::Thought, text),
            Delta::Text(text) => (Open::Text, text),
            _ => return Ok(()),
        };
        if text.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        if self.open != Some(kind) {
            if self.open.is_some() {
                writeln!(out, "{}", self.paint.stop())?;
            }
            let is_aside = kind == Open::Thought || run != RunId::ROOT;
            write!(out, "{}", if is_aside { self.paint.start(Style::Dim) } else { "" })?;
            self.open = Some(kind);
        }
        self.streamed = true;
        let text = visible(text);
        if kind == Open::Text && run == RunId::ROOT {
            self.said.push_str(&text);
        }
        write!(out, "{text}")?;
        out.flush()
    }

    /// Show what was just streamed again as the thought that it turned out to be.
    fn dim_what_was_said(&mut self) -> io::Result<()> {
        let said = std::mem::take(&mut self.said);
        if !self.paint.is_on() || said.trim().is_empty() {
            return Ok(());
        }
        let (width, height) = crossterm::terminal::size()?;
        let rows = rows(&said, usize::from(width.max(1)));
        // What has scrolled away cannot be painted over.
        let (Ok(rows), true) = (u16::try_from(rows), rows < usize::from(height)) else {
            return Ok(());
        };
        let mut out = io::stdout().lock();
        crossterm::queue!(
            out,
            crossterm::cursor::MoveToPreviousLine(rows),
            crossterm::terminal::Clear(crossterm::terminal::ClearType::FromCursorDown)
        )?;
        writeln!(out, "{}", self.paint.text(Style::Dim, said.trim_end()))
    }

    /// End the line that is being streamed.
    fn close(&mut self) -> io::Result<()> {
        if self.open.take().is_some() {
            writeln!(io::stdout(), "{}", self.paint.stop())?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        let shown = match &entry.event {
            // What was typed is on the screen already.
            Event::UserRequest { .. } if entry.run == RunId::ROOT => None,
            Event::AgentMessage { message, .. } => {
                self.close()?;
                // A screen that could not keep up has missed pieces: then the whole is shown.
                let is_whole = entry.run != RunId::ROOT || self.said == visible(&message.text());
                let streamed = std::mem::take(&mut self.streamed) && is_whole;
                if streamed && message.tool_calls().next().is_some() && entry.run == RunId::ROOT {
                    self.dim_what_was_said()?;
                }
                self.said.clear();
                self.message(message, entry.run, streamed)
            }
            // Whoever is here is asked right away.
            Event::AgentResponseEnd { outcome: Outcome::InputRequired { .. }, .. }
                if self.can_ask() =>
            {
                None
            }
            Event::AgentResponseEnd { outcome, .. } if entry.run == RunId::ROOT => {
                outcome_line(self.paint, outcome)
            }
            _ => entry_line(self.paint, entry),
        };
        if let Some(text) = shown {
            self.close()?;
            writeln!(io::stdout(), "{text}")?;
        }
        Ok(())
    }

    /// What of a message is still to be shown when it is whole.
    fn message(&self, message: &Message, run: RunId, streamed: bool) -> Option<String> {
        let mut lines = Vec::new();
        if !streamed {
            let thought = message.reasoning();
            if !thought.trim().is_empty() {
                lines.push(self.paint.text(Style::Dim, visible(thought.trim())));
            }
            let text = message.text();
            if !text.trim().is_empty() {
                lines.push(visible(text.trim()));
            }
        }
        lines.extend(message.tool_calls().map(|call| call_line(self.paint, call)));
        if lines.is_empty() {
            return None;
        }
        let bar = if run == RunId::ROOT { "" } else { "│ " };
        Some(lines.iter().map(|line| format!("{bar}{line}")).collect::<Vec<_>>().join("\n"))
    }

    fn piped(&mut self, entry: &Entry, verbose: bool) -> io::Result<()> {
        if !verbose {
            return Ok(());
        }
        let text = match &entry.event {
            Event::AgentMessage { message, .. } => self.message(message, entry.run, false),
            Event::AgentResponseEnd { outcome, .. } if entry.run == RunId::ROOT => {
                outcome_line(self.paint, outcome)
            }
            _ => entry_line(self.paint, entry),
        };
        match text {
            Some(text) => writeln!(io::stderr(), "{text}"),
            None => Ok(()),
        }
    }

    /// The answer, for whoever reads standard output.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        match self.kind {
            // It was shown while it streamed, or as entries.
            Kind::Terminal | Kind::Json => Ok(()),
            Kind::Piped { .. } => {
                let mut out = io::stdout().lock();
                writeln!(out, "{}", text.trim_end())?;
                out.flush()
            }
        }
    }
}

/// Print an entry as a line of JSON.
pub(crate) fn json_line(entry: &Entry) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, entry)?;
    writeln!(out)?;
    out.flush()
}

/// How many rows of a terminal a text takes.
fn rows(text: &str, width: usize) -> usize {
    text.split('\n').map(|line| line.width().div_ceil(width).max(1)).sum()
}

/// A text without what could steer the terminal: a model's words are not commands.
fn visible(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_a_terminal_wraps_them() {
        assert_eq!(rows("", 10), 1);
        assert_eq!(rows("0123456789", 10), 1);
        assert_eq!(rows("0123456789a\n\nb", 10), 4);
        assert_eq!(rows("漢字漢字漢字", 10), 2, "wide characters take two columns");
    }

    #[test]
    fn a_models_words_cannot_steer_the_terminal() {
        assert_eq!(visible("a\x1b[2Jb\r\nc\td\u{7}"), "a[2Jb\nc\td");
    }
}
