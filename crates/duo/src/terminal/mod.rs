//! What a person sees: text on a terminal, or a plain stream for a program.

mod notes;
mod screen;
mod speakers;
mod style;
mod todo;
mod view;

pub(crate) use screen::{Screen, visible};
pub(crate) use speakers::Speakers;
pub(crate) use style::{Paint, Style};
pub(crate) use view::{call_lines, clip, entry_line, inquiry_lines, outcome_line};
