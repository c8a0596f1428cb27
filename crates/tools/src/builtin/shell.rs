//! `shell`: a command line. Off unless a configuration names it.
//!
//! The command is not confined: it can do whatever the user can. What is bounded is its life:
//! whatever a call starts ends with the call, and with this process.

use std::{
    ffi::OsString,
    num::NonZeroU64,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use duologue_core::{Effect, Reach, Tool, ToolContext, ToolError, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    process::{Child, Command},
    time::{Instant, sleep_until, timeout},
};

use self::{group::Group, output::Output};
use crate::workspace::Workspace;

mod group;
mod lifeline;
mod output;

/// How long reading may go on after everything was killed.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What the `shell` tool may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellConfig {
    /// The program that is given `-c` and the command.
    pub program: OsString,
    /// How long a command may run unless the call says otherwise.
    pub timeout: Duration,
    /// The longest time that a call may ask for.
    pub longest_timeout: Duration,
    /// How many bytes of output are kept. Of more, the middle is left out, with a note.
    pub most_output: usize,
    /// Environment variables to hand down although their names look like those of secrets.
    pub pass_variables: Vec<String>,
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self {
            program: "/bin/sh".into(),
            timeout: Duration::from_secs(60),
            longest_timeout: Duration::from_secs(600),
            most_output: 1 << 20,
            pass_variables: Vec::new(),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command line, as for `sh -c`.
    command: String,
    /// How many seconds it may run.
    #[serde(default)]
    timeout_seconds: Option<NonZeroU64>,
}

/// Runs commands in the workspace folder.
pub(crate) fn shell(workspace: &Workspace, config: &ShellConfig) -> impl Tool + use<> {
    let workspace = workspace.clone();
    let config = config.clone();
    // The tool keeps its own time, so that a slow command's output is not lost; the driver's
    // limit is only there for when that fails.
    let backstop = config.longest_timeout + Duration::from_secs(10);
    let description = format!(
        "Runs a command line in the workspace folder and gives its output. There is no input and \
         no terminal. It may run {} seconds unless timeout_seconds says otherwise, at most {}. \
         Everything that it starts is ended with it, background processes too.",
        config.timeout.as_secs_f64(),
        config.longest_timeout.as_secs_f64(),
    );
    tool("shell", description, Effect::SideEffect, move |arguments: Arguments, context| {
        let workspace = workspace.clone();
        let config = config.clone();
        async move { run(&workspace, &config, arguments, &context).await }
    })
    .timeout(backstop)
    .reach(Reach::Machine)
}

/// Why a command is over.
enum End {
    Exited(ExitStatus),
    TimedOut(Duration),
    Cancelled,
    /// The system would not say how it ended.
    Lost(std::io::Error),
}

async fn run(
    workspace: &Workspace,
    config: &ShellConfig,
    arguments: Arguments,
    context: &ToolContext,
) -> Result<String, ToolError> {
    let limit = match arguments.timeout_seconds {
        None => config.timeout,
        Some(seconds) => Duration::from_secs(seconds.get()).min(config.longest_timeout),
    };
    let mut running = Running::start(workspace, config, &arguments.command)?;
    let end = running.follow(Instant::now() + limit, limit, context).await;
    running.finish().await;
    report(&end, &running.output, config)
}

/// A command under way.
struct Running {
    // Fields drop in this order: the group is killed before its first process is forgotten.
    group: Group,
    child: Child,
    pipe: pipe::Receiver,
    output: Output,
    piped_out: bool,
}

impl Running {
    fn start(
        workspace: &Workspace,
        config: &ShellConfig,
        command: &str,
    ) -> Result<Self, ToolError> {
        if command.contains('\0') {
            return Err(ToolError::new("the command contains a zero byte"));
        }
        let cannot = |error: std::io::Error| {
            ToolError(format!("cannot run {}: {error}", config.program.display()))
        };
        // One pipe for both streams keeps their lines in order.
        let (reader, writer) = std::io::pipe().map_err(cannot)?;
        let pipe = pipe::Receiver::from_owned_fd(reader.into()).map_err(cannot)?;
        let mark = group::new_mark();
        let child = Command::new(&config.program)
            .arg("-c")
            .arg(command)
            .current_dir(workspace.root())
            .env_clear()
            .envs(environment(&config.pass_variables))
            .env(group::MARK_VARIABLE, &mark)
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(cannot)?)
            .stderr(writer)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let group = Group::of(&child, mark).map_err(cannot)?;
        Ok(Self { group, child, pipe, output: Output::new(config.most_output), piped_out: false })
    }

    /// Collect output until the command exits, or it is time to stop it.
    async fn follow(&mut self, deadline: Instant, limit: Duration, context: &ToolContext) -> End {
        loop {
            let mut buffer = [0; 16 * 1024];
            tokio::select! {
                // Time and cancel come first: a command that prints without end must not win.
                biased;
                () = context.cancel.cancelled() => return End::Cancelled,
                () = sleep_until(deadline) => return End::TimedOut(limit),
                status = self.child.wait() => match status {
                    Ok(status) => return End::Exited(status),
                    Err(error) => return End::Lost(error),
                },
                read = self.pipe.read(&mut buffer), if !self.piped_out => {
                    self.take(read, &buffer);
                }
            }
        }
    }

    /// End whatever still runs, and read what it left in the pipe.
    async fn finish(&mut self) {
        self.group.end(&mut self.child).await;
        let rest = async {
            let mut buffer = [0; 16 * 1024];
            while !self.piped_out {
                let read = self.pipe.read(&mut buffer).await;
                self.take(read, &buffer);
            }
        };
        // All writers are dead, so the pipe ends; the bound is for those that could not be killed.
        let _ = timeout(LAST_WORDS, rest).await;
    }

    fn take(&mut self, read: std::io::Result<usize>, buffer: &[u8]) {
        match read {
            Ok(0) | Err(_) => self.piped_out = true,
            Ok(length) => self.output.push(buffer.get(..length).unwrap_or_default()),
        }
    }
}

fn report(end: &End, output: &Output, config: &ShellConfig) -> Result<String, ToolError> {
    let mut text = output.text();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    match end {
        End::Exited(status) if status.success() => Ok(match text.as_str() {
            "" => "[done, without any output]".to_owned(),
            _ => text,
        }),
        // An exit code is an answer, not a failure: `grep` and `diff` speak that way.
        End::Exited(status) => Ok(format!("{text}[{}]", in_words(*status))),
        End::TimedOut(limit) => {
            let advice = match *limit < config.longest_timeout {
                true => "ask for more with timeout_seconds if it needs them",
                false => "that is the longest it may run",
            };
            let seconds = limit.as_secs_f64();
            Err(ToolError(format!("{text}[stopped after {seconds} s; {advice}]")))
        }
        End::Cancelled => Err(ToolError(format!("{text}[cancelled]"))),
        End::Lost(error) => Err(ToolError(format!("{text}[its end was not seen: {error}]"))),
    }
}

fn in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// This process's environment without what looks like a secret: what a command prints goes into
/// the journal and to the model.
fn environment(pass: &[String]) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            pass.iter().any(|passed| *passed == name) || !looks_secret(&name)
        })
        .collect();
    // Nobody sees colours, and a pager would wait for a key.
    for (name, value) in
        [("NO_COLOR", "1"), ("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat")]
    {
        variables.push((name.into(), value.into()));
    }
    variables
}

fn looks_secret(name: &str) -> bool {
    const WORDS: [&str; 7] =
        ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];
    let name = name.to_ascii_uppercase();
    WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for secret in ["OPENAI_API_KEY", "GITHUB_TOKEN", "db_password", "AWS_SECRET_ACCESS_KEY"] {
            assert!(looks_secret(secret), "{secret}");
        }
        for plain in ["PATH", "HOME", "LANG", "CARGO_HOME", "SSH_AUTH_SOCK"] {
            assert!(!looks_secret(plain), "{plain}");
        }
    }
}
