//! Colours, where they are wanted.

use std::{fmt::Display, io::IsTerminal};

use crate::cli::Color;

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Thoughts and side remarks.
    Dim,
    /// Names and prompts.
    Bold,
    /// Tools.
    Tool,
    /// What went well.
    Good,
    /// What wants attention.
    Warning,
    /// What went wrong.
    Bad,
}

impl Paint {
    /// As the user wishes; `auto` looks at standard output and at `NO_COLOR`.
    pub(crate) fn new(color: Color) -> Self {
        let on = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
                std::io::stdout().is_terminal() && !no_color && !dumb
            }
        };
        Self { on }
    }

    /// Without colours.
    pub(crate) fn plain() -> Self {
        Self { on: false }
    }

    /// Whether there are colours.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// A text in its style.
    pub(crate) fn text(self, style: Style, text: impl Display) -> String {
        if self.on { format!("{}{text}\x1b[0m", self.start(style)) } else { text.to_string() }
    }

    /// What switches a style on.
    pub(crate) fn start(self, style: Style) -> &'static str {
        match style {
            _ if !self.on => "",
            Style::Dim => "\x1b[2m",
            Style::Bold => "\x1b[1m",
            Style::Tool => "\x1b[36m",
            Style::Good => "\x1b[32m",
            Style::Warning => "\x1b[33m",
            Style::Bad => "\x1b[31m",
        }
    }

    /// What switches every style off.
    pub(crate) fn stop(self) -> &'static str {
        if self.on { "\x1b[0m" } else { "" }
    }
}
