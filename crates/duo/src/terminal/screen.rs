//! The screen: a session's live events as a person follows them.

use std::io::{self, IsTerminal, Write};

use duologue_core::{
    Delta, Entry, Event, Live, Message, Outcome, RunId, Session, SessionId, StoreError,
};

use duologue_behaviors::TodoItem;
use unicode_width::UnicodeWidthStr;

use super::{
    Paint, Speakers, Style, call_lines, entry_line,
    notes::{self, Shown, item_line},
    outcome_line,
    todo::{Column, Foot},
};

/// Where and how a session is shown.
pub(crate) struct Screen {
    kind: Kind,
    paint: Paint,
    /// The piece of text that is being streamed, if any.
    open: Option<(RunId, Open)>,
    /// Whether the current answer was already shown while it streamed.
    streamed: bool,
    /// The text that was streamed last: should calls follow, it was a thought.
    said: String,
    /// Who speaks.
    speakers: Speakers,
    /// The list at the foot.
    foot: Foot,
    /// Where the line that is being streamed stands.
    column: Column,
    /// Whether the cursor can be moved.
    can_move: bool,
    /// The session whose past is known.
    known: Option<SessionId>,
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
        let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        Self {
            kind,
            paint,
            open: None,
            streamed: false,
            said: String::new(),
            speakers: Speakers::default(),
            foot: Foot::default(),
            column: Column::default(),
            can_move: kind == Kind::Terminal && !is_dumb,
            known: None,
        }
    }

    /// Learn from the past of a session who speaks in it.
    pub(crate) async fn learn(&mut self, session: &Session) -> Result<(), StoreError> {
        if self.known.as_ref() == Some(session.id()) {
            return Ok(());
        }
        (self.speakers, self.foot) = <_>::default();
        let mut past = session.events_from(0);
        while !past.is_caught_up() {
            let Live::Entry(entry) = past.next().await? else { continue };
            self.speakers.hear(&entry);
            match &entry.event {
                Event::Note { topic, data } => {
                    if let Some(Shown::Todo(todo)) = notes::note(self.paint, topic, data) {
                        self.foot.set(todo);
                    }
                }
                Event::AgentResponseEnd { outcome, .. }
                    if entry.run == RunId::ROOT
                        && !matches!(outcome, Outcome::InputRequired { .. }) =>
                {
                    self.foot.end(self.paint, true);
                }
                _ => {}
            }
        }
        self.known = Some(session.id().clone());
        Ok(())
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
        if let Live::Entry(entry) = live {
            self.speakers.hear(entry);
        }
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
        self.foot.erase()?;
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
        self.foot.erase()?;
        let mut out = io::stdout().lock();
        let is_aside = kind == Open::Thought || run != RunId::ROOT;
        let start = if is_aside { self.paint.start(Style::Dim) } else { "" };
        if self.open != Some((run, kind)) {
            if self.open.is_some() {
                writeln!(out, "{}", self.paint.stop())?;
            }
            write!(out, "{}", self.speakers.mark(self.paint, run))?;
            self.column =
                Column::default().after(&self.speakers.mark(Paint::plain(), run), u16::MAX);
            self.open = Some((run, kind));
        }
        self.streamed = true;
        // How far a tab goes is the terminal's to say; where the list is put must be known.
        let text = visible(text).replace('\t', "    ");
        if kind == Open::Text && run == RunId::ROOT {
            self.said.push_str(&text);
        }
        write!(out, "{start}{text}{}", self.paint.stop())?;
        out.flush()?;
        drop(out);
        if self.can_move {
            let (width, _) = crossterm::terminal::size()?;
            self.column = self.column.after(&text, width);
            if let Some(column) = self.column.get() {
                self.foot.draw_below(self.paint, column)?;
            }
        }
        Ok(())
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
            self.foot.erase()?;
            writeln!(io::stdout(), "{}", self.paint.stop())?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        let is_end = matches!(entry.event, Event::AgentResponseEnd { .. });
        self.entry_above_foot(entry)?;
        // A turn that is over leaves the foot of the screen to whoever types next.
        if self.can_move && self.open.is_none() && !(is_end && entry.run == RunId::ROOT) {
            self.foot.draw(self.paint)?;
        }
        Ok(())
    }

    fn entry_above_foot(&mut self, entry: &Entry) -> io::Result<()> {
        let shown = match &entry.event {
            // What was typed is on the screen already.
            Event::UserRequest { .. } if entry.run == RunId::ROOT => None,
            // What it says to itself is told by notes.
            Event::AgentMessage { aside: Some(_), .. } => None,
            Event::AgentMessage { message, .. } => {
                self.close()?;
                // A screen that could not keep up has missed pieces: then the whole is shown.
                let is_whole = entry.run != RunId::ROOT
                    || self.said == visible(&message.text()).replace('\t', "    ");
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
                self.foot.erase()?;
                None
            }
            Event::AgentResponseEnd { outcome, .. } if entry.run == RunId::ROOT => {
                self.end_of_turn(outcome)
            }
            Event::Note { topic, data } => match notes::note(self.paint, topic, data) {
                Some(Shown::Todo(todo)) => {
                    let changed = self.foot.set(todo);
                    self.foot.erase()?;
                    // Where the list cannot be updated in place, what changed is a line each.
                    (!self.can_move).then(|| self.items(entry.run, &changed)).flatten()
                }
                _ => entry_line(self.paint, &self.speakers, entry),
            },
            _ => entry_line(self.paint, &self.speakers, entry),
        };
        if let Some(text) = shown {
            self.close()?;
            self.foot.erase()?;
            writeln!(io::stdout(), "{text}")?;
        }
        Ok(())
    }

    /// How the turn ended, and how far the list came.
    fn end_of_turn(&mut self, outcome: &Outcome) -> Option<String> {
        if matches!(outcome, Outcome::InputRequired { .. }) {
            return outcome_line(self.paint, outcome);
        }
        let list = self.foot.end(self.paint, *outcome == Outcome::Completed);
        let lines: Vec<String> =
            list.into_iter().chain(outcome_line(self.paint, outcome)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn items(&self, run: RunId, items: &[TodoItem]) -> Option<String> {
        let lines: Vec<String> = items.iter().map(|item| item_line(self.paint, item)).collect();
        let text = lines.join("\n");
        (!lines.is_empty()).then(|| self.speakers.marked(self.paint, run, &text))
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
        lines.extend(call_lines(self.paint, run, message));
        if lines.is_empty() {
            return None;
        }
        Some(self.speakers.marked(self.paint, run, &lines.join("\n")))
    }

    fn piped(&mut self, entry: &Entry, verbose: bool) -> io::Result<()> {
        if !verbose {
            return Ok(());
        }
        let text = match &entry.event {
            Event::AgentMessage { aside: Some(_), .. } => None,
            Event::AgentMessage { message, .. } => self.message(message, entry.run, false),
            Event::AgentResponseEnd { outcome, .. } if entry.run == RunId::ROOT => {
                self.end_of_turn(outcome)
            }
            Event::Note { topic, data } => match notes::note(self.paint, topic, data) {
                Some(Shown::Todo(todo)) => {
                    let changed = self.foot.set(todo);
                    self.items(entry.run, &changed)
                }
                _ => entry_line(self.paint, &self.speakers, entry),
            },
            _ => entry_line(self.paint, &self.speakers, entry),
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
pub(crate) fn visible(text: &str) -> String {
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
