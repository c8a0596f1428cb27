//! What a person sees: text on a terminal, or a plain stream for a program.

mod screen;
mod style;
mod view;

pub(crate) use screen::Screen;
pub(crate) use style::{Paint, Style};
pub(crate) use view::{call_line, clip, entry_line, inquiry_lines, outcome_line};
