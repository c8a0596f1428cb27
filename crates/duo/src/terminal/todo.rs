//! The TODO list at the foot of the screen: one copy, updated in place.

use std::io::{self, Write};

use crossterm::{
    cursor::MoveToPreviousLine,
    queue,
    terminal::{Clear, ClearType},
};
use duologue_behaviors::{Todo, TodoItem};

use super::{
    Paint,
    notes::{item_line, todo_lines, todo_summary},
};

/// The list as it is shown now. Whoever prints something else takes it away first and puts it back
/// afterwards.
#[derive(Debug, Default)]
pub(crate) struct Foot {
    todo: Todo,
    /// How many rows of it are on the screen.
    rows: u16,
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

    /// Put it at the foot, if it fits.
    pub(crate) fn draw(&mut self, paint: Paint) -> io::Result<()> {
        if self.rows > 0 || self.todo.items.is_empty() {
            return Ok(());
        }
        let (width, height) = crossterm::terminal::size()?;
        let most = usize::from(height / 2).max(3);
        let width = usize::from(width.saturating_sub(1)).max(10);
        let items = &self.todo.items;
        // Where not all fit, those around the first open one count.
        let first_open = items.iter().position(|item| item.status == Default::default());
        let skipped = if items.len() > most {
            first_open.unwrap_or(0).saturating_sub(1).min(items.len() - most)
        } else {
            0
        };
        let mut out = io::stdout().lock();
        let mut rows = 1;
        writeln!(out, "{}", todo_summary(paint, &self.todo))?;
        for item in items.iter().skip(skipped).take(most) {
            let title = clip_to(&item.title, width.saturating_sub(4));
            writeln!(out, "{}", item_line(paint, &TodoItem { title, ..item.clone() }))?;
            rows += 1;
        }
        out.flush()?;
        self.rows = rows;
        Ok(())
    }

    /// Take it away from the screen.
    pub(crate) fn erase(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        queue!(out, MoveToPreviousLine(rows), Clear(ClearType::FromCursorDown))?;
        out.flush()
    }
}

/// A text in so many columns: a line that wraps would be two rows.
fn clip_to(text: &str, columns: usize) -> String {
    use unicode_width::UnicodeWidthChar;
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
    use duologue_behaviors::TodoStatus;

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
    fn a_title_never_takes_two_rows() {
        assert_eq!(clip_to("漢字漢字", 6), "漢字…");
        assert_eq!(clip_to("a\nb", 9), "a b");
    }
}
