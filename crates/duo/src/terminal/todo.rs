//! The TODO list at the foot of the screen: one copy, updated in place.

use std::io::{self, Write};

use crossterm::{
    cursor::{MoveToColumn, MoveToPreviousLine, MoveUp},
    queue,
    terminal::{Clear, ClearType},
};
use duologue_behaviors::{Todo, TodoItem, TodoStatus};
use unicode_width::UnicodeWidthChar;

use super::{
    Paint,
    notes::{item_line, todo_lines, todo_summary},
};

/// The list as it is shown now. Whoever prints something else takes it away first and puts it back
/// afterwards.
#[derive(Debug, Default)]
pub(crate) struct Foot {
    todo: Todo,
    place: Place,
}

/// Where the list is on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Nowhere.
    #[default]
    Gone,
    /// In so many rows above the cursor.
    Above(u16),
    /// Below the cursor, which stands in a line that is being written.
    Below,
}

impl Foot {
    /// The list changed. Gives what changed, for those who cannot see it change.
    pub(crate) fn set(&mut self, todo: Todo) -> Vec<TodoItem> {
        let is_new = |item: &&TodoItem| !self.todo.items.contains(item);
        let changed = todo.items.iter().filter(is_new).cloned().collect();
        self.todo = todo;
        changed
    }

    /// The list is over: the last word on it, if there was one.
    pub(crate) fn end(&mut self, paint: Paint, is_success: bool) -> Option<String> {
        let todo = std::mem::take(&mut self.todo);
        if todo.items.is_empty() {
            return None;
        }
        let mut lines = vec![todo_summary(paint, &todo)];
        if !is_success {
            lines.extend(todo_lines(paint, &todo));
        }
        Some(lines.join("\n"))
    }

    /// Put it at the foot.
    pub(crate) fn draw(&mut self, paint: Paint) -> io::Result<()> {
        if self.place != Place::Gone || self.todo.items.is_empty() {
            return Ok(());
        }
        let lines = self.lines(paint)?;
        let mut out = io::stdout().lock();
        for line in &lines {
            writeln!(out, "{line}")?;
        }
        self.place = Place::Above(u16::try_from(lines.len()).unwrap_or(0));
        out.flush()
    }

    /// Put it below a line that is being written and stands at a column.
    pub(crate) fn draw_below(&mut self, paint: Paint, column: u16) -> io::Result<()> {
        if self.place != Place::Gone || self.todo.items.is_empty() {
            return Ok(());
        }
        let lines = self.lines(paint)?;
        let rows = u16::try_from(lines.len()).unwrap_or(0);
        let mut out = io::stdout().lock();
        // The stream's own style must not colour the list, nor the list's the stream.
        write!(out, "{}", paint.stop())?;
        for line in &lines {
            write!(out, "\r\n{line}")?;
        }
        queue!(out, MoveUp(rows), MoveToColumn(column))?;
        self.place = Place::Below;
        out.flush()
    }

    /// Take it away from the screen.
    pub(crate) fn erase(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match std::mem::take(&mut self.place) {
            Place::Gone => return Ok(()),
            Place::Above(rows) => queue!(out, MoveToPreviousLine(rows))?,
            Place::Below => {}
        }
        queue!(out, Clear(ClearType::FromCursorDown))?;
        out.flush()
    }

    /// As many lines as there is room for, each of them one row.
    fn lines(&self, paint: Paint) -> io::Result<Vec<String>> {
        let (width, height) = crossterm::terminal::size()?;
        let most = usize::from(height / 2).max(3);
        let width = usize::from(width.saturating_sub(1)).max(10);
        let items = &self.todo.items;
        // Where not all fit, those around the first open one count.
        let first_open = items.iter().position(|item| item.status == TodoStatus::Open);
        let skipped = match items.len().checked_sub(most) {
            Some(over) => first_open.unwrap_or(over).saturating_sub(1).min(over),
            None => 0,
        };
        let shown = items.iter().skip(skipped).take(most).map(|item| {
            let title = clip_to(&item.title, width.saturating_sub(4));
            item_line(paint, &TodoItem { title, ..item.clone() })
        });
        Ok(std::iter::once(todo_summary(paint, &self.todo)).chain(shown).collect())
    }
}

/// Where a terminal's cursor stands in a text that is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    at: u16,
    /// Whether the next character opens a new row.
    is_full: bool,
}

impl Column {
    /// The column after some more text, in a terminal of a width.
    pub(crate) fn after(mut self, text: &str, width: u16) -> Self {
        let width = width.max(2);
        for c in text.chars() {
            if c == '\n' {
                self = Self::default();
                continue;
            }
            let wide = u16::try_from(c.width().unwrap_or(0)).unwrap_or(0);
            if wide > 0 && (self.is_full || self.at + wide > width) {
                self = Self::default();
            }
            self.at += wide;
            self.is_full = self.at >= width;
        }
        self
    }

    /// The column, unless the terminal is about to open a new row: then it cannot be come back to.
    pub(crate) fn get(self) -> Option<u16> {
        (!self.is_full).then_some(self.at)
    }
}

/// A text in so many columns: a line that wraps would be two rows.
fn clip_to(text: &str, columns: usize) -> String {
    let mut used = 0;
    let mut clipped = String::new();
    for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        used += c.width().unwrap_or(0);
        if used > columns.saturating_sub(1) {
            clipped.push('…');
            break;
        }
        clipped.push(c);
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todo(items: &[(&str, TodoStatus)]) -> Todo {
        let mut todo = Todo::default();
        for (title, status) in items {
            let (id, title) = ((*title).to_owned(), (*title).to_owned());
            todo.items.push(TodoItem { id, title, step: None, status: *status });
        }
        todo
    }

    #[test]
    fn only_what_changed_is_told_to_those_who_cannot_see_it_change() {
        let mut foot = Foot::default();
        let first = foot.set(todo(&[("a", TodoStatus::Open), ("b", TodoStatus::Open)]));
        assert_eq!(first.len(), 2);
        let next = foot.set(todo(&[("a", TodoStatus::Done), ("b", TodoStatus::Open)]));
        assert_eq!(next.iter().map(|item| item.title.as_str()).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn an_unfinished_list_is_told_whole_at_the_end() {
        let mut foot = Foot::default();
        assert_eq!(foot.end(Paint::plain(), true), None);
        foot.set(todo(&[("a", TodoStatus::Done), ("b", TodoStatus::Open)]));
        let told = foot.end(Paint::plain(), false);
        assert_eq!(told.as_deref(), Some("· todo: 1 of 2 finished\n  ☑ a\n  ☐ b"));
    }

    #[test]
    fn the_column_is_where_a_terminal_would_be() {
        let column = |text: &str| Column::default().after(text, 10);
        assert_eq!(column("abc").get(), Some(3));
        assert_eq!(column("0123456789").get(), None, "it waits for the next character");
        assert_eq!(column("0123456789a").get(), Some(1));
        assert_eq!(column("abc\nde").get(), Some(2));
        assert_eq!(column("123456789漢").get(), Some(2), "a wide one does not fit into one column");
        assert_eq!(column("012345678").after("9a", 10), column("0123456789a"));
    }

    #[test]
    fn a_title_never_takes_two_rows() {
        assert_eq!(clip_to("漢字漢字", 6), "漢字…");
        assert_eq!(clip_to("a\nb", 9), "a b");
    }
}
