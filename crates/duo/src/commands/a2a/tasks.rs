//! `duo tasks`: what others asked of the agents of this machine, or what was asked of a server.

use std::{io::Write, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use duologue_a2a::{
    a2a::{ListTasksRequest, Role, StreamResponse, SubscribeToTaskRequest, Task, TaskState},
    kept_task, kept_tasks,
};
use duologue_core::{Outcome, Session, SessionId, SessionOptions, StoreError};
use futures::StreamExt;

use super::exchange::{self, json_line};
use crate::{
    commands::sessions,
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::{Paint, Style, clip, visible},
};

/// How often a journal is looked at for what another process writes.
const GLANCE: Duration = Duration::from_millis(200);

#[derive(Debug, Subcommand)]
pub(crate) enum Tasks {
    /// List tasks, the last changed first.
    List(List),
    /// Show a task: its messages, its status and what it gave.
    Show(One),
    /// Stop a task for good.
    Cancel(One),
    /// Follow a task until it is over.
    Watch(One),
}

/// Whose tasks.
#[derive(Args, Debug)]
pub(crate) struct Whose {
    /// A server's: its address, or a name of [remotes]. Otherwise those of this machine's journal.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// The environment variable with an API key or a token for that server.
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    pub(crate) key_env: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo tasks list --status input-required\n  \
    duo tasks list --url http://localhost:8080 --json")]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) whose: Whose,

    /// Only those in this state.
    #[arg(long, value_enum)]
    pub(crate) status: Option<State>,

    /// Only those of this conversation.
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<String>,

    /// How many.
    #[arg(long, short = 'n', default_value_t = 20,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,

    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo tasks show 0f3k\n  \
    duo tasks watch 0f3k --url http://localhost:8080\n  \
    duo tasks cancel 0f3k --url http://localhost:8080")]
pub(crate) struct One {
    /// The task's id; of this machine's journal, the beginning of it will do.
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) whose: Whose,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The states of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Known, not begun.
    Submitted,
    /// At work.
    Working,
    /// Waits for an answer.
    InputRequired,
    /// Waits for credentials.
    AuthRequired,
    /// Done.
    Completed,
    /// Broken.
    Failed,
    /// Stopped.
    Canceled,
    /// Declined.
    Rejected,
}

impl State {
    fn to_wire(self) -> TaskState {
        match self {
            Self::Submitted => TaskState::Submitted,
            Self::Working => TaskState::Working,
            Self::InputRequired => TaskState::InputRequired,
            Self::AuthRequired => TaskState::AuthRequired,
            Self::Completed => TaskState::Completed,
            Self::Failed => TaskState::Failed,
            Self::Canceled => TaskState::Canceled,
            Self::Rejected => TaskState::Rejected,
        }
    }
}

pub(crate) async fn tasks(house: &House, command: Tasks) -> Done {
    match command {
        Tasks::List(args) => list(house, args).await,
        Tasks::Show(args) => show(house, args).await,
        Tasks::Cancel(args) => cancel(house, args).await,
        Tasks::Watch(args) => watch(house, args).await,
    }
}

async fn list(house: &House, args: List) -> Done {
    let found = match &args.whose.url {
        None => own_tasks(house, &args).await?,
        Some(url) => served_tasks(house, url, &args).await?,
    };
    let mut out = std::io::stdout().lock();
    for task in &found {
        if args.json {
            serde_json::to_writer(&mut out, task)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{}", task_line(house.paint, task))?;
        }
    }
    if found.is_empty() && !args.json {
        writeln!(std::io::stderr(), "no tasks")?;
    }
    Ok(Exit::Completed)
}

async fn own_tasks(house: &House, args: &List) -> Result<Vec<Task>, Failure> {
    let store = house.store().await?;
    let state = args.status.map(State::to_wire);
    let wanted = |task: &Task| {
        state.as_ref().is_none_or(|state| task.status.state == *state)
            && args.context.as_ref().is_none_or(|context| task.context_id == *context)
    };
    Ok(kept_tasks(&*store, None, usize::from(args.limit), wanted).await?)
}

async fn served_tasks(house: &House, url: &str, args: &List) -> Result<Vec<Task>, Failure> {
    let remote = house.reach(url, args.whose.key_env.as_deref()).await?;
    let mut found = Vec::new();
    let mut page_token = None;
    loop {
        let left = usize::from(args.limit) - found.len();
        let request = ListTasksRequest {
            context_id: args.context.clone(),
            status: args.status.map(State::to_wire),
            page_size: Some(i32::try_from(left.min(50)).unwrap_or(50)),
            page_token,
            // The first message is what a task is called by.
            history_length: Some(50),
            status_timestamp_after: None,
            include_artifacts: None,
            tenant: remote.interface().tenant.clone(),
        };
        let page = remote.transport().list_tasks(remote.params(), &request).await;
        let page = page.map_err(exchange::explain)?;
        let is_empty = page.tasks.is_empty();
        found.extend(page.tasks);
        found.truncate(usize::from(args.limit));
        if is_empty || page.next_page_token.is_empty() || found.len() >= usize::from(args.limit) {
            return Ok(found);
        }
        page_token = Some(page.next_page_token);
    }
}

/// A task, on one line.
pub(crate) fn task_line(paint: Paint, task: &Task) -> String {
    let word = state_word(&task.status.state);
    let state = paint.text(state_style(&task.status.state), format!("{word:<14}"));
    let id = paint.text(Style::Bold, visible(&task.id));
    let mut history = task.history.iter().flatten();
    let title = match history.find(|message| message.role == Role::User) {
        Some(first) => exchange::text_of(first),
        None => exchange::words_of(&task.status),
    };
    let when = task.status.timestamp.map(|at| sessions::local_time(at.timestamp_millis()));
    format!("{id}  {}  {state} {}", when.unwrap_or_default(), clip(&title, 60))
}

/// A task for people: what was said, how it stands, what it gave.
pub(crate) fn task_lines(paint: Paint, task: &Task) -> String {
    let state = state_word(&task.status.state);
    let state = paint.text(state_style(&task.status.state), state);
    let mut lines = vec![format!(
        "task {} · {state} · context {}",
        paint.text(Style::Bold, visible(&task.id)),
        visible(&task.context_id)
    )];
    for message in task.history.iter().flatten() {
        let mark = if message.role == Role::User {
            paint.text(Style::Bold, "❯ ")
        } else {
            String::new()
        };
        lines.push(format!("{mark}{}", visible(&exchange::text_of(message))));
    }
    let words = exchange::words_of(&task.status);
    if !words.is_empty() {
        lines.push(format!("{} {}", paint.text(Style::Warning, "■"), visible(&words)));
    }
    lines.extend(artifact_lines(paint, task));
    lines.join("\n")
}

/// What a task gave.
pub(crate) fn artifact_lines(paint: Paint, task: &Task) -> Vec<String> {
    let artifacts = task.artifacts.iter().flatten();
    let lines = artifacts.map(|artifact| {
        let name = artifact.name.as_deref().unwrap_or(&artifact.artifact_id);
        let title = paint.text(Style::Dim, format!("artifact {}", visible(name)));
        format!("{title}\n{}", visible(&exchange::artifact_text(artifact)))
    });
    lines.collect()
}

/// A state in a word.
pub(crate) fn state_word(state: &TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "unknown",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired => "input-required",
        TaskState::AuthRequired => "auth-required",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::Rejected => "rejected",
    }
}

fn state_style(state: &TaskState) -> Style {
    match state {
        TaskState::Completed => Style::Good,
        TaskState::Failed | TaskState::Rejected => Style::Bad,
        TaskState::Submitted | TaskState::Unspecified => Style::Dim,
        _ => Style::Warning,
    }
}

async fn show(house: &House, args: One) -> Done {
    let task = match &args.whose.url {
        None => own_task(house, &args.id).await?.1,
        Some(url) => {
            let remote = house.reach(url, args.whose.key_env.as_deref()).await?;
            remote.task(&args.id).await.map_err(exchange::explain)?
        }
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&task)?)?;
    } else {
        writeln!(out, "{}", task_lines(house.paint, &task))?;
    }
    Ok(Exit::Completed)
}

/// A task of this machine's journal, by the beginning of its id.
pub(crate) async fn own_task(house: &House, prefix: &str) -> Result<(SessionId, Task), Failure> {
    let id = house.find(prefix).await?;
    match kept_task(&*house.store().await?, &id).await? {
        Some(task) => Ok((id, task)),
        None => Err(Failure::usage(format!(
            "session {id} is no task of others; `duo sessions show {id}` shows it"
        ))),
    }
}

async fn cancel(house: &House, args: One) -> Done {
    let task = match &args.whose.url {
        None => cancel_own(house, &args.id).await?,
        Some(url) => {
            let remote = house.reach(url, args.whose.key_env.as_deref()).await?;
            remote.cancel(&args.id).await.map_err(exchange::explain)?
        }
    };
    if args.json {
        json_line(&task)?;
    } else {
        writeln!(std::io::stdout(), "{}", task_line(house.paint, &task))?;
    }
    Ok(Exit::Completed)
}

/// Stop a task that no server has in hand.
async fn cancel_own(house: &House, prefix: &str) -> Result<Task, Failure> {
    let (id, task) = own_task(house, prefix).await?;
    if task.status.state.is_terminal() {
        let state = state_word(&task.status.state);
        return Err(Failure::usage(format!("task {id} is over ({state})")));
    }
    let store = house.store().await?;
    // A claim that cannot be had tells that a server has it, without opening anything.
    if let Err(StoreError::Busy { .. }) = store.claim(&id).await {
        return Err(Failure::usage(format!(
            "a server has task {id} in hand: say its address with --url"
        )));
    }
    // Nobody is asked for anything any more, so no model is brought up.
    let agent = house.mute_agent(&house.plan_of(&id).await?)?;
    let session = Session::open(&agent, store, &id, SessionOptions::default()).await?;
    let reply = session.abandon("cancelled at the command line").await?;
    if !matches!(reply.outcome, Outcome::Aborted { .. }) {
        return Err(Failure::new(format!("task {id} could not be stopped: {}", reply.outcome)));
    }
    Ok(own_task(house, id.as_str()).await?.1)
}

async fn watch(house: &House, args: One) -> Done {
    let task = match &args.whose.url {
        None => watch_own(house, &args).await?,
        Some(url) => watch_served(house, url, &args).await?,
    };
    if args.json {
        json_line(&task)?;
    } else {
        writeln!(std::io::stdout(), "{}", task_lines(house.paint, &task))?;
    }
    Ok(exchange::exit_of(&task.status))
}

/// Look at the journal again and again: whoever works on the task may be another process.
async fn watch_own(house: &House, args: &One) -> Result<Task, Failure> {
    let (id, mut task) = own_task(house, &args.id).await?;
    let store = house.store().await?;
    let mut told = None;
    loop {
        if told.as_ref() != Some(&task.status) {
            status(house.paint, &task.status, args.json)?;
            told = Some(task.status.clone());
        }
        if task.status.state.is_terminal() {
            return Ok(task);
        }
        tokio::time::sleep(GLANCE).await;
        task = kept_task(&*store, &id).await?.unwrap_or(task);
    }
}

async fn watch_served(house: &House, url: &str, args: &One) -> Result<Task, Failure> {
    let remote = house.reach(url, args.whose.key_env.as_deref()).await?;
    loop {
        let task = remote.task(&args.id).await.map_err(exchange::explain)?;
        if task.status.state.is_terminal() {
            return Ok(task);
        }
        let tenant = remote.interface().tenant.clone();
        let request = SubscribeToTaskRequest { id: args.id.clone(), tenant };
        let updates = remote.transport().subscribe_to_task(remote.params(), &request).await;
        if let Ok(mut updates) = updates {
            while let Some(Ok(update)) = updates.next().await {
                match &update {
                    StreamResponse::Task(task) => status(house.paint, &task.status, args.json)?,
                    StreamResponse::StatusUpdate(update) => {
                        status(house.paint, &update.status, args.json)?;
                    }
                    StreamResponse::ArtifactUpdate(_) | StreamResponse::Message(_) => {}
                }
            }
        }
        // A stream that broke, or a server that has none.
        tokio::time::sleep(GLANCE).await;
    }
}

fn status(
    paint: Paint,
    status: &duologue_a2a::a2a::TaskStatus,
    as_json: bool,
) -> Result<(), Failure> {
    if as_json {
        return json_line(status);
    }
    let word = paint.text(state_style(&status.state), state_word(&status.state));
    let words = clip(&exchange::words_of(status), 100);
    let line = if words.is_empty() { word } else { format!("{word}: {words}") };
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
