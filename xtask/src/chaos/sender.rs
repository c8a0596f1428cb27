//! `duo send`, again and again: what each of them was told.

use std::{
    fs::{self, File},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use fastrand::Rng;
use serde_json::Value;

use super::{
    Run,
    crew::{Kind, was_killed},
    model::JOB,
    served::Served,
};

/// How long one may take: a client gives a silent server 60 s, and the disk may be full as long.
const LONGEST: Duration = Duration::from_secs(240);

/// How much text is sent to use up the last room of a journal, and how often at most.
const PADDING: usize = 1 << 20;
const MOST_STUFF: usize = 60;
/// What a server says when its journal cannot be written.
const UNWRITABLE: &str = "The journal cannot be read or written now";

/// What came of sending one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) job: String,
    /// The task's id, from the moment on that the server has told it.
    pub(super) task: Option<String>,
    pub(super) end: SenderEnd,
}

/// How a sender ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SenderEnd {
    /// It was killed, or did not wait for the end.
    Gone,
    /// It told how the task ended, and what it gave.
    Told {
        /// The last state that it was told.
        state: String,
        /// The answer.
        answer: String,
    },
    /// It told that something is wrong.
    Refused(String),
    /// It ended without a word.
    Mute,
    /// It never ended.
    Hung,
}

/// Send jobs to a server until the run is over.
pub(super) fn work(run: &Run, served: &Served, next: &AtomicU64, mut rng: Rng) -> Vec<Sent> {
    let mut all = Vec::new();
    while !run.is_over() {
        let job = format!("{JOB}{}{}", served.letter, next.fetch_add(1, Ordering::Relaxed));
        match send(run, served, &job) {
            Ok(sent) => {
                match &sent.end {
                    SenderEnd::Mute => run.wrong(format!("duo send for {job} failed mutely")),
                    SenderEnd::Hung => run.wrong(format!("duo send for {job} hangs")),
                    SenderEnd::Refused(why) if run.disk_is_full() => run.note_full(why),
                    _ => {}
                }
                run.sent(&sent);
                all.push(sent);
            }
            Err(error) => run.wrong(format!("duo send cannot be started: {error:#}")),
        }
        thread::sleep(Duration::from_millis(rng.u64(100..900)));
    }
    all
}

/// Send jobs with a lot of text, until the server cannot write them down: a journal has some room of
/// its own on a full disk, which is used up so.
pub(super) fn stuff(run: &Run, served: &Served) -> Vec<Sent> {
    let padding = "All work and no play. ".repeat(PADDING / 22);
    let mut all = Vec::new();
    for number in 1..=MOST_STUFF {
        let job = format!("{JOB}{}x{number}", served.letter);
        let told = served.send(&format!("Please do {job}.\n{padding}"));
        let task = told.as_ref().ok().and_then(|task| task.get("id")?.as_str().map(str::to_owned));
        let end = match &told {
            Ok(_) => SenderEnd::Gone,
            Err(error) => SenderEnd::Refused(error.to_string()),
        };
        let sent = Sent { job, task, end };
        run.sent(&sent);
        all.push(sent);
        match told {
            // It took it, or nobody was there to take it.
            Ok(_) => {}
            Err(error) if error.to_string().contains(UNWRITABLE) => {
                run.note_full(UNWRITABLE);
                break;
            }
            Err(_) => thread::sleep(Duration::from_millis(300)),
        }
        if !run.disk_is_full() || run.is_over() {
            break;
        }
    }
    all
}

fn send(run: &Run, served: &Served, job: &str) -> Result<Sent> {
    let folder = run.place.folder("send")?;
    let (out, err) = (folder.join(format!("{job}.out")), folder.join(format!("{job}.err")));
    let (url, text) = (served.url(), format!("Please do {job}."));
    let args = ["send", &url, "--json", "--journal", "memory", &text];
    let mut command = run.place.duo(&folder, &args);
    command.stdout(File::create(&out)?).stderr(File::create(&err)?);
    let began = Instant::now();
    let process = run.crew.start(Kind::Sender, &mut command).context("duo send")?;
    let status = process.wait(LONGEST);
    process.kill();
    let (told, said) = (fs::read_to_string(&out)?, fs::read_to_string(&err)?);
    let (task, last) = read(&told);
    let end = match status {
        None => SenderEnd::Hung,
        Some(status) if was_killed(status) => SenderEnd::Gone,
        Some(_) => match last {
            Some((state, answer)) => SenderEnd::Told { state, answer },
            None if !said.trim().is_empty() => SenderEnd::Refused(said.trim().to_owned()),
            None => SenderEnd::Mute,
        },
    };
    run.took(began.elapsed());
    // What went well leaves nothing behind.
    if matches!(end, SenderEnd::Told { .. } | SenderEnd::Gone) {
        let _ = (fs::remove_file(&out), fs::remove_file(&err));
    }
    Ok(Sent { job: job.to_owned(), task, end })
}

/// The task's id, and how it ended with what answer, from the lines that a sender printed.
fn read(lines: &str) -> (Option<String>, Option<(String, String)>) {
    // One that is killed may leave half a line.
    let mut values = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let id = values.next().and_then(|first| {
        let id = first.pointer("/task/id").or_else(|| first.pointer("/statusUpdate/taskId"));
        id.or_else(|| first.get("id")).and_then(Value::as_str).map(str::to_owned)
    });
    // The whole task is the last line, and only that.
    let end = values.next_back().filter(|last| last.get("id").is_some()).map(|task| end_of(&task));
    (id, end)
}

/// The state of a task, and its answer or the words that it ended with.
pub(super) fn end_of(task: &Value) -> (String, String) {
    let text = |at: &str| task.pointer(at).and_then(Value::as_str);
    let state = text("/status/state").unwrap_or_default();
    let answer = text("/artifacts/0/parts/0/text").or_else(|| text("/status/message/parts/0/text"));
    (state.to_owned(), answer.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = r#"{"task":{"id":"t1","status":{"state":"TASK_STATE_SUBMITTED"}}}"#;

    #[test]
    fn a_task_is_accepted_with_its_first_line_and_over_with_its_last() {
        let end = r#"{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"parts":[{"text":"Done."}]}]}"#;
        let told = Some(("TASK_STATE_COMPLETED".to_owned(), "Done.".to_owned()));
        assert_eq!(read(&format!("{TASK}\n{end}\n")), (Some("t1".into()), told));
    }

    #[test]
    fn half_a_line_is_no_news() {
        assert_eq!(read(r#"{"task":{"id":"t1","sta"#), (None, None));
        assert_eq!(read(&format!("{TASK}\n{{\"id\":\"t1\",\"st")), (Some("t1".into()), None));
    }
}
