//! The command line: what `duo` understands and what it says about itself.

pub(crate) mod page;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::keys::Strategy;

/// Build, run, connect and measure LLM agents.
#[derive(Debug, Parser)]
#[command(
    name = "duo",
    version,
    about,
    long_about = "Build, run, connect and measure LLM agents.\n\n\
        Without a command it opens a chat. Every conversation is a session with a journal: it \
        survives a kill, can be resumed, forked, replayed and answered from another terminal.",
    after_help = "Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 input required, 4 limit \
        reached, 5 rejected, 6 impossible, 7 stuck, 130 aborted.\n\n\
        `duo COMMAND --help` tells more, with examples.",
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shared: Shared,

    #[command(subcommand)]
    pub(crate) asked: Option<Asked>,
}

/// What `duo` is asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Asked {
    #[command(flatten)]
    Command(Command),
    #[command(flatten)]
    About(About),
}

/// What every command understands.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Shared {
    /// The model, such as `anthropic/claude-sonnet-4-5`, `ollama/qwen3`, `local` or `demo`.
    #[arg(long, short, global = true, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// The agent: one of the configuration's, or a behaviour (`generic`, `react`, `planned`,
    /// `dual`, `browser`).
    #[arg(long, short, global = true, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Where sessions are kept: a file, `sqlite` for the usual place, or `memory`.
    #[arg(long, global = true, value_name = "WHERE")]
    pub(crate) journal: Option<String>,

    /// The folder that file tools stay inside.
    #[arg(long, short = 'C', global = true, value_name = "FOLDER")]
    pub(crate) workspace: Option<PathBuf>,

    /// What runs without asking.
    #[arg(long, short, global = true, value_enum, value_name = "MODE")]
    pub(crate) permissions: Option<PermissionsMode>,

    /// Any other setting, as `key.path=value`. May be given several times.
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Do not ask before a download or a deletion.
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,

    /// Colours: `auto` looks at the terminal and at NO_COLOR.
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub(crate) color: Option<Color>,

    #[command(flatten)]
    pub(crate) how: How,
}

/// How planned and dual agents work.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Planned and dual agents")]
pub(crate) struct How {
    /// How a planned agent goes about the task: `auto`, `simple`, `multi_step`, `react`, `hybrid`.
    #[arg(long, global = true, value_name = "STRATEGY", value_parser = strategy)]
    pub(crate) strategy: Option<Strategy>,

    /// After how many steps a planned agent considers re-planning; 0 means never.
    #[arg(long, global = true, value_name = "STEPS")]
    pub(crate) plan_every: Option<u64>,

    /// After how many steps a planned agent checks its work; 0 means never.
    #[arg(long, global = true, value_name = "STEPS")]
    pub(crate) validate_every: Option<u64>,

    /// How often the working half of a dual agent may run in one task.
    #[arg(long, global = true, value_name = "LOOPS",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_hr_loops: Option<u32>,

    /// The model of the deciding half of a dual agent.
    #[arg(long, global = true, value_name = "PROVIDER/MODEL")]
    pub(crate) model_h: Option<String>,

    /// The model of the working half of a dual agent.
    #[arg(long, global = true, value_name = "PROVIDER/MODEL")]
    pub(crate) model_r: Option<String>,
}

fn strategy(text: &str) -> Result<Strategy, String> {
    let words = Strategy::WORDS.iter().map(|word| word.word);
    let found = Strategy::ALL.iter().find(|known| known.as_str() == text);
    found.copied().ok_or_else(|| format!("there are {}", words.collect::<Vec<_>>().join(", ")))
}

/// What runs without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PermissionsMode {
    /// Only tools without effects; everything else is refused.
    ReadOnly,
    /// Tools without effects; everything else asks.
    Ask,
    /// Also changes inside the workspace.
    AutoEdit,
    /// Everything.
    Full,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Work on one task and exit; the exit code tells how it ended.
    Run(Run),
    /// Talk with an agent.
    Chat(Chat),
    /// Look at, resume, answer, fork, replay, export or delete sessions.
    #[command(subcommand)]
    Sessions(Sessions),
    /// List the models that can be asked, and fetch or remove local ones.
    Models(Models),
    /// List the tools with their effects and what the permissions say of them.
    Tools(Tools),
    /// Print the configuration in effect and where each value came from.
    Config(Config),
    /// Show or delete what planned agents have learned.
    #[command(subcommand)]
    Lessons(Lessons),
    /// Use MCP servers, or be one.
    #[cfg(feature = "mcp")]
    #[command(subcommand)]
    Mcp(crate::commands::mcp::Mcp),
    /// Open a page in a browser and try the browser's tools by hand.
    #[cfg(feature = "browser")]
    Browse(Browse),
    #[command(flatten)]
    A2a(crate::commands::a2a::A2a),
    /// Measure agents on τ²-bench: run, judge, score, compare.
    #[command(subcommand)]
    Bench(crate::commands::bench::Bench),
}

/// What is told of the command line itself.
#[derive(Debug, Subcommand)]
pub(crate) enum About {
    /// Print a script that completes commands and flags in a shell.
    Completions(Completions),
    /// Print the manual page, or write a page for each command.
    Man(Man),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo run \"How many lines has Cargo.toml?\"\n  \
    echo \"Explain this error: …\" | duo run -\n  \
    duo run --json \"…\" | jq .kind\n\n\
    On a terminal the work is shown as it happens. Without one, standard output gets the answer \
    alone. A run that needs an approval exits with code 3 and prints the command that gives it.")]
pub(crate) struct Run {
    /// The task; `-` reads it from standard input.
    pub(crate) task: String,

    /// Print every journal entry as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Show the work on standard error when there is no terminal.
    #[arg(long, short)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) recording: Recording,
}

#[derive(Args, Debug, Default)]
#[command(after_help = "Example:\n  duo chat --agent react --model openai/gpt-4.1\n\n\
    Inside, :help lists the commands. Ctrl-C stops the turn, Ctrl-D leaves.")]
pub(crate) struct Chat {
    /// Go on with a session, by its id or the beginning of it.
    #[arg(long, short, value_name = "ID")]
    pub(crate) session: Option<String>,

    #[command(flatten)]
    pub(crate) recording: Recording,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Recording {
    /// Write every exchange with the model into a cassette, for `--model replay:FILE`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, the last used first.
    List(List),
    /// Show what was said and done in a session.
    Show(Show),
    /// Go on with a session that was interrupted or waits.
    Resume(Resume),
    /// Answer something that a session waits for, from any terminal.
    Answer(Answer),
    /// Copy a session up to an entry into a new one.
    Fork(Fork),
    /// Go through a session again without a model, and check that the agent decides the same.
    Replay(Replay),
    /// Write a session out, as JSON lines or Markdown.
    Export(Export),
    /// Delete sessions for good.
    Delete(Delete),
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo sessions list --status input_required")]
pub(crate) struct List {
    /// How many.
    #[arg(long, short = 'n', default_value_t = 20)]
    pub(crate) limit: usize,

    /// Only those that ended so, such as `completed` or `input_required`; `running` for those in
    /// the middle of a turn.
    #[arg(long)]
    pub(crate) status: Option<String>,

    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo sessions show k3f9")]
pub(crate) struct Show {
    /// The session's id, or the beginning of it.
    pub(crate) id: String,

    /// Print the entries as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,

    /// Show tool results whole.
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo sessions resume k3f9")]
pub(crate) struct Resume {
    /// The session's id, or the beginning of it.
    pub(crate) id: String,

    /// Print every new journal entry as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Show the work on standard error when there is no terminal.
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo sessions answer k3f9 call-7 approve\n  \
    duo sessions answer k3f9 call-7 deny --reason \"not in production\"\n  \
    duo sessions answer k3f9 call-7 edit '{\"path\":\"other.txt\",\"content\":\"x\"}'\n  \
    duo sessions answer k3f9 call-8 result \"The meeting is at noon\"\n\n\
    When nobody else has the session open, it goes on right here.")]
pub(crate) struct Answer {
    /// The session's id, or the beginning of it.
    pub(crate) id: String,

    /// What is answered: the id that was printed with the question.
    pub(crate) call: String,

    /// The answer.
    #[arg(value_enum)]
    pub(crate) answer: AnswerKind,

    /// For `result` the result, for `edit` the arguments as JSON, for `deny` the reason.
    pub(crate) value: Option<String>,

    /// Why not, told to the model.
    #[arg(long)]
    pub(crate) reason: Option<String>,

    /// Only leave the answer; do not go on with the session.
    #[arg(long)]
    pub(crate) no_resume: bool,

    /// Print every new journal entry as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Show the work on standard error when there is no terminal.
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// An answer to an open question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerKind {
    /// Yes, this once.
    Approve,
    /// Yes, and do not ask again for this tool in this session.
    Always,
    /// No.
    Deny,
    /// Yes, with other arguments.
    Edit,
    /// The result itself.
    Result,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo sessions fork k3f9 --at 12")]
pub(crate) struct Fork {
    /// The session's id, or the beginning of it.
    pub(crate) id: String,

    /// The last entry to copy; the whole session otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u64>,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo sessions replay k3f9")]
pub(crate) struct Replay {
    /// The session's id, or the beginning of it.
    pub(crate) id: String,

    /// Only check; do not show the conversation.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo sessions export k3f9 --format markdown -o talk.md")]
pub(crate) struct Export {
    /// The session's id, or the beginning of it.
    pub(crate) id: String,

    /// As what.
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,

    /// Into which file; standard output otherwise.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// As what a session is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Every entry as a line of JSON, nothing left out.
    Jsonl,
    /// A text for people.
    Markdown,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo sessions delete k3f9 m2x7 --yes")]
pub(crate) struct Delete {
    /// The sessions' ids, or the beginnings of them.
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  duo models\n  duo models pull small")]
pub(crate) struct Models {
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the models that can be asked.
    #[command(after_help = "Example:\n  duo models list --json")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch a local model's file: `default` or `small`.
    #[command(after_help = "Examples:\n  duo models pull\n  \
        duo models pull small --from ~/Downloads/model.gguf")]
    Pull {
        /// Which; the one that fits this machine otherwise.
        name: Option<String>,

        /// A file that may already be it. It is copied, and checked like any other.
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Delete a local model's file.
    #[command(after_help = "Example:\n  duo models remove small")]
    Remove {
        /// Which.
        name: String,
    },
    /// Tell where local models are kept, and which are here.
    #[command(after_help = "Example:\n  duo models where")]
    Where,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo browse https://example.com\n  \
    printf 'find query=more\\n' | duo browse https://example.com\n\n\
    Inside, `tools` lists the tools and `help` tells how to call them. Whoever types a call has \
    said yes to it; addresses of this machine and of the local network must be named by \
    --set 'browser.allow=[\"127.0.0.1:8080\"]'.")]
pub(crate) struct Browse {
    /// The address to open.
    pub(crate) url: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo tools --permissions auto-edit")]
pub(crate) struct Tools {
    /// Print JSON, with the parameters' schemas.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo completions bash > ~/.local/share/bash-completion/completions/duo\n  \
    duo completions zsh > ~/.zfunc/_duo\n  \
    duo completions fish > ~/.config/fish/completions/duo.fish")]
pub(crate) struct Completions {
    /// Which shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  duo man | man -l -\n  duo man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write a page for every command into this folder.
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  duo config --set memory.window_tokens=8000")]
pub(crate) struct Config {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Explain every key instead, as Markdown.
    #[arg(long, conflicts_with = "json")]
    pub(crate) reference: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lessons {
    /// List the lessons, the oldest first.
    #[command(after_help = "Examples:\n  duo lessons list\n  \
        duo lessons list --like \"count the lines of a file\"\n\n\
        Planned agents learn when `planned.lessons = true` is set.")]
    List {
        /// Only those that a planner would be shown for this task.
        #[arg(long, value_name = "TASK")]
        like: Option<String>,

        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Delete lessons for good, by their numbers in the list, or all of them.
    #[command(after_help = "Examples:\n  duo lessons delete 2 5\n  duo lessons delete --all --yes")]
    Delete {
        /// Which.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        numbers: Vec<usize>,

        /// Every one.
        #[arg(long)]
        all: bool,
    },
    /// Tell where lessons are kept.
    #[command(after_help = "Example:\n  duo lessons where")]
    Where,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_teaches_by_an_example() {
        fn walk(command: &clap::Command, path: &str) {
            let name = format!("{path} {}", command.get_name());
            if command.has_subcommands() {
                command.get_subcommands().for_each(|sub| walk(sub, &name));
            } else {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example"), "{name} has no example");
            }
        }
        walk(&Cli::command(), "");
    }
}
