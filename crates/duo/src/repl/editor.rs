//! The line editor: history, completion of commands, several lines.

use std::{borrow::Cow, path::Path};

use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span, Suggestion,
    ValidationResult, Validator, default_emacs_keybindings,
};

use super::commands;
use crate::failure::Failure;

/// How many lines are remembered.
const HISTORY: usize = 5_000;

/// Reads what a person types.
pub(super) struct Editor(Reedline);

/// What a person typed.
pub(super) enum Typed {
    Line(String),
    Interrupt,
    End,
}

impl Editor {
    /// An editor that remembers lines in a file, where it can.
    pub(super) fn new(history: Option<&Path>) -> Self {
        let mut keys = default_emacs_keybindings();
        let next = vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext];
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(next));
        let newline = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline);
        let menu = Box::new(ColumnarMenu::default().with_name(MENU));
        let mut line = Reedline::create()
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_completer(Box::new(Commands))
            .with_menu(ReedlineMenu::EngineCompleter(menu))
            .with_validator(Box::new(Continued))
            .with_quick_completions(true);
        let file = history.map(|path| FileBackedHistory::with_file(HISTORY, path.to_path_buf()));
        if let Some(Ok(file)) = file {
            line = line.with_history(Box::new(file));
        }
        Self(line)
    }

    /// The next line, with this before the mark.
    pub(super) fn read(&mut self, before: &str) -> Result<Typed, Failure> {
        let mark = Mark(before.to_owned());
        let signal = tokio::task::block_in_place(|| self.0.read_line(&mark))?;
        Ok(match signal {
            Signal::Success(line) => Typed::Line(line.replace("\\\n", "\n")),
            Signal::CtrlC => Typed::Interrupt,
            _ => Typed::End,
        })
    }
}

const MENU: &str = "commands";

/// The prompt, and what stands before it.
struct Mark(String);

impl Prompt for Mark {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        self.0.as_str().into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        "❯ ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "… ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing: ",
        };
        format!("({failing}search: {}) ", search.term).into()
    }
}

/// A line that ends in a backslash, or in an open `"""`, goes on.
struct Continued;

impl Validator for Continued {
    fn validate(&self, line: &str) -> ValidationResult {
        let open = line.matches("\"\"\"").count() % 2 == 1;
        if open || line.ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// Completes command names.
struct Commands;

impl Completer for Commands {
    fn complete(&mut self, line: &str, at: usize) -> CompletionResult {
        let Some(typed) = line.get(..at).and_then(|text| text.strip_prefix(':')) else {
            return CompletionResult::fresh(Vec::new());
        };
        let found: Vec<Suggestion> = commands::ALL
            .iter()
            .filter(|command| command.name.starts_with(typed))
            .map(|command| Suggestion {
                value: format!(":{}", command.name),
                description: Some(command.about.to_owned()),
                span: Span::new(0, at),
                append_whitespace: !command.arguments.is_empty(),
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(found)
    }
}
