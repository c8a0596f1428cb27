//! The page that `duo --help` shows: what one can do, in groups, each with an example. Names and
//! words come from the definitions, so that nothing is said twice.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Cli;

/// A group of commands: its heading, and each command with an example.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

const GROUPS: &[Group] = &[
    (
        "Talk and work",
        &[
            ("chat", "duo chat --agent react"),
            ("run", "duo run --agent planned \"Summarise README.md into notes.md\""),
            ("browse", "duo browse https://example.com"),
        ],
    ),
    (
        "Look back",
        &[
            ("sessions", "duo sessions list"),
            ("tasks", "duo tasks list"),
            ("lessons", "duo lessons list"),
        ],
    ),
    (
        "Connect",
        &[
            ("serve", "duo serve --port 8080"),
            ("send", "duo send localhost:8080 \"What can you do?\""),
            ("card", "duo card localhost:8080"),
            ("agents", "duo agents list"),
            ("bidirectional", "duo bidirectional bidirectional_agent.toml"),
            ("mcp", "duo mcp list"),
        ],
    ),
    ("Measure", &[("bench", "duo bench run --agent planned")]),
    (
        "Set up",
        &[
            ("models", "duo models pull"),
            ("tools", "duo tools --permissions auto-edit"),
            ("config", "duo config"),
            (
                "completions",
                "duo completions bash > ~/.local/share/bash-completion/completions/duo",
            ),
            ("man", "duo man | man -l -"),
        ],
    ),
];

/// The command line as it is read. The list of commands gives way to the page.
pub(crate) fn command() -> Command {
    let whole = Cli::command();
    let page = groups(&whole);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{page}\n{{all-args}}{{after-help}}"
    );
    let names: Vec<String> = whole.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let hidden = |whole: Command, name: String| whole.mut_subcommand(name, |sub| sub.hide(true));
    names
        .into_iter()
        .fold(whole, hidden)
        .override_usage("duo [OPTIONS] [COMMAND]")
        .help_template(template)
}

fn groups(whole: &Command) -> String {
    let mut page = String::new();
    for (heading, commands) in GROUPS {
        let known: Vec<_> = commands
            .iter()
            .filter_map(|(name, example)| Some((whole.find_subcommand(name)?, example)))
            .collect();
        if known.is_empty() {
            continue;
        }
        let _ = writeln!(page, "{heading}:");
        for (command, example) in known {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(page, "  {:14} {about}\n  {:14} $ {example}", command.get_name(), "");
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn every_command_is_on_the_page_once() {
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, commands)| commands.iter().map(|(name, _)| *name))
            .collect();
        for command in Cli::command().get_subcommands() {
            let times = listed.iter().filter(|name| **name == command.get_name()).count();
            assert_eq!(times, 1, "{}", command.get_name());
        }
    }

    #[test]
    fn the_examples_of_the_page_are_understood() {
        let words = |example: &str| -> Vec<String> {
            let before_shell = example.split(['>', '|']).next().unwrap_or_default();
            let mut quoted = false;
            let mut words = vec![String::new()];
            for c in before_shell.trim().chars() {
                match c {
                    '"' => quoted = !quoted,
                    ' ' if !quoted => words.push(String::new()),
                    c => words.last_mut().unwrap().push(c),
                }
            }
            words
        };
        for (_, commands) in GROUPS {
            for (name, example) in *commands {
                if Cli::command().find_subcommand(name).is_none() {
                    continue;
                }
                let matches = command().try_get_matches_from(words(example));
                let read = matches.and_then(|matches| Cli::from_arg_matches(&matches));
                assert!(read.is_ok(), "{example}: {read:?}");
            }
        }
    }

    #[test]
    fn the_page_shows_groups_and_no_second_list() {
        let page = command().render_long_help().to_string();
        assert!(page.contains("Talk and work:\n  chat           Talk with an agent"), "{page}");
        assert!(!page.contains("Commands:"), "{page}");
        assert!(page.contains("Exit codes"), "{page}");
    }
}
