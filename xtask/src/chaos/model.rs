//! A model that stalls, errors and talks nonsense, and does its work in between.
//!
//! It speaks the chat completions of OpenAI. Asked for a job it calls `shell` once, which writes the
//! job into the book of deeds, and then says what became of it. The words of its last answer tell
//! what must be in that book:
//!
//! | answer | in the book |
//! |---|---|
//! | `Done: JOB.` | once |
//! | `Perhaps done: JOB.` (the call was interrupted) | once or not at all |
//! | `Blather about JOB.` (it spoke instead of working) | not at all |

use std::{
    collections::BTreeMap,
    io::Write,
    net::{Shutdown, SocketAddr, TcpStream},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use fastrand::Rng;
use serde_json::{Value, json};

use super::http::{self, Request};

/// How long a client waits for it, in seconds: what it is configured with.
pub(super) const PATIENCE_SECONDS: u64 = 2;
/// How long it stalls, which is longer.
const STALL: Duration = Duration::from_secs(6);

/// What it does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// Says nothing for longer than a client waits.
    Stall,
    /// The same in the middle of an answer.
    StallInTheMiddle,
    /// 500.
    Broken,
    /// 429, with a time to come again.
    Busy,
    /// Closes the connection in the middle of an answer.
    Cut,
    /// Streams what is no JSON.
    NotJson,
    /// A page for people where an answer should be.
    Page,
    /// Calls a tool that nobody has.
    UnknownTool,
    /// Calls the tool with arguments that are no JSON.
    BrokenArguments,
    /// Calls the tool with arguments that it does not have.
    WrongArguments,
    /// Refuses for good: trying again does not help.
    Refusal,
    /// Speaks instead of working.
    Blather,
    /// Hangs up on everybody.
    Down,
}

/// Of 1,000 requests, how many meet which fault.
const CHANCES: [(Fault, u32); 12] = [
    (Fault::Stall, 15),
    (Fault::StallInTheMiddle, 10),
    (Fault::Broken, 40),
    (Fault::Busy, 25),
    (Fault::Cut, 30),
    (Fault::NotJson, 20),
    (Fault::Page, 10),
    (Fault::UnknownTool, 15),
    (Fault::BrokenArguments, 15),
    (Fault::WrongArguments, 10),
    (Fault::Refusal, 4),
    (Fault::Blather, 6),
];

/// A model server. Clones are the same.
#[derive(Clone)]
pub(super) struct Model(Arc<Inner>);

struct Inner {
    rng: Mutex<Rng>,
    /// Where jobs are written into, by the first letter of their name.
    books: BTreeMap<char, PathBuf>,
    is_well: AtomicBool,
    is_down: AtomicBool,
    calls: AtomicU64,
    given: Mutex<Given>,
}

/// What it gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    pub(super) faults: BTreeMap<Fault, u64>,
    pub(super) answers: u64,
    /// How many faults each job met.
    pub(super) by_job: BTreeMap<String, u64>,
}

impl Model {
    /// Begin to listen.
    pub(super) fn start(seed: u64, books: BTreeMap<char, PathBuf>) -> Result<(Self, SocketAddr)> {
        let model = Self(Arc::new(Inner {
            rng: Mutex::new(Rng::with_seed(seed)),
            books,
            is_well: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            given: Mutex::default(),
        }));
        let answering = model.clone();
        let address = http::serve(move |request, stream| answering.answer(&request, stream))
            .context("listening as a model")?;
        Ok((model, address))
    }

    /// Make no more faults.
    pub(super) fn get_well(&self) {
        self.0.is_well.store(true, Ordering::SeqCst);
    }

    /// Hang up on everybody, or no longer.
    pub(super) fn set_down(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::SeqCst);
    }

    pub(super) fn given(&self) -> Given {
        lock(&self.0.given).clone()
    }

    fn answer(&self, request: &Request, mut stream: TcpStream) {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return http::answer(&mut stream, "400 Bad Request", "text/plain", "no JSON");
        };
        let Some(work) = Work::of(&body) else {
            let nothing = say("I only know jobs.");
            return tell(&mut stream, &nothing);
        };
        let fault = self.choose(&work);
        let mut given = lock(&self.0.given);
        given.answers += 1;
        if let Some(fault) = fault {
            *given.faults.entry(fault).or_default() += 1;
            *given.by_job.entry(work.job.clone()).or_default() += 1;
        }
        drop(given);
        let right = self.right(&work);
        match fault {
            None => tell(&mut stream, &right),
            Some(fault) => self.fail(fault, &mut stream, &work, &right),
        }
    }

    /// What goes wrong this time, if something does.
    fn choose(&self, work: &Work) -> Option<Fault> {
        if self.0.is_down.load(Ordering::SeqCst) {
            return Some(Fault::Down);
        }
        if self.0.is_well.load(Ordering::SeqCst) {
            return None;
        }
        let (thinks, mut at) = {
            let mut rng = lock(&self.0.rng);
            (rng.u64(2..20), rng.u32(0..1_000))
        };
        thread::sleep(Duration::from_millis(thinks));
        let fault = CHANCES.iter().find_map(|(fault, chance)| {
            let is_it = at < *chance;
            at = at.saturating_sub(*chance);
            is_it.then_some(*fault)
        })?;
        // Once the deed may be done, nothing else may be claimed.
        let needs_fresh = matches!(
            fault,
            Fault::Blather | Fault::UnknownTool | Fault::BrokenArguments | Fault::WrongArguments
        );
        (!needs_fresh || work.stage == Stage::Fresh).then_some(fault)
    }

    /// The answer that is the work.
    fn right(&self, work: &Work) -> Vec<Value> {
        let job = &work.job;
        match work.stage {
            Stage::Fresh => self.call("shell", &json!({"command": self.deed(job)}).to_string()),
            Stage::Done => say(&format!("Done: {job}.")),
            Stage::Unknown => say(&format!("Perhaps done: {job}.")),
        }
    }

    /// The command that does a job: slow enough to be killed in the middle, and it says that it is
    /// done once it is.
    fn deed(&self, job: &str) -> String {
        let letter = job.strip_prefix(JOB).and_then(|rest| rest.chars().next()).unwrap_or_default();
        let book = self.0.books.get(&letter).cloned().unwrap_or_default();
        let book = book.display();
        format!("sleep 0.05; echo {job} >> '{book}' && echo {job}; sleep 0.05")
    }

    fn call(&self, tool: &str, arguments: &str) -> Vec<Value> {
        let id = format!("call-{}", self.0.calls.fetch_add(1, Ordering::Relaxed));
        let call = json!({
            "index": 0, "id": id, "type": "function",
            "function": {"name": tool, "arguments": arguments},
        });
        vec![
            chunk(&json!({"role": "assistant", "tool_calls": [call]}), None),
            chunk(&json!({}), Some("tool_calls")),
        ]
    }

    fn fail(&self, fault: Fault, stream: &mut TcpStream, work: &Work, right: &[Value]) {
        let error = json!({"error": {"message": "the fault run says no", "type": "server_error"}});
        let error = error.to_string();
        match fault {
            Fault::Down => {
                let _ = stream.shutdown(Shutdown::Both);
            }
            Fault::Stall => thread::sleep(STALL),
            Fault::StallInTheMiddle => {
                begin_to_tell(stream, right);
                thread::sleep(STALL);
            }
            Fault::Cut => begin_to_tell(stream, right),
            Fault::Broken => {
                http::answer(stream, "500 Internal Server Error", "application/json", &error);
            }
            Fault::Busy => {
                let head = "429 Too Many Requests\r\nRetry-After: 1";
                http::answer(stream, head, "application/json", &error);
            }
            Fault::Refusal => http::answer(stream, "400 Bad Request", "application/json", &error),
            Fault::Page => http::answer(stream, "200 OK", "text/html", "<h1>Welcome!</h1>"),
            Fault::NotJson => {
                http::begin(stream, "text/event-stream");
                let _ = stream.write_all(b"data: {\"choices\": [{\"delta\": oh, well\n\n");
            }
            Fault::UnknownTool => tell(stream, &self.call("teleport", "{\"to\": \"the moon\"}")),
            Fault::BrokenArguments => tell(stream, &self.call("shell", "{\"command\": \"echo")),
            Fault::WrongArguments => tell(stream, &self.call("shell", "{\"spell\": [1, 2]}")),
            Fault::Blather => tell(stream, &say(&format!("Blather about {}.", work.job))),
        }
    }
}

/// How the names of jobs begin.
pub(super) const JOB: &str = "job-";

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
struct Work {
    job: String,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was done, for sure.
    Fresh,
    /// The tool said that it is done.
    Done,
    /// A call ended without telling.
    Unknown,
}

impl Work {
    fn of(body: &Value) -> Option<Self> {
        let messages = body.get("messages")?.as_array()?;
        let of = |role: &'static str| {
            let is_it = move |message: &&Value| message.get("role").is_some_and(|r| r == role);
            messages.iter().filter(is_it).map(|message| match message.get("content") {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            })
        };
        let job = of("user").find_map(|text| job_in(&text))?;
        let mut stage = Stage::Fresh;
        for result in of("tool") {
            if job_in(&result).as_deref() == Some(&job) {
                stage = Stage::Done;
            } else if !never_ran(&result) && stage == Stage::Fresh {
                stage = Stage::Unknown;
            }
        }
        Some(Self { job, stage })
    }
}

/// Whether a result says that its call was not even begun.
fn never_ran(result: &str) -> bool {
    ["no tool", "unknown tool", "arguments"].iter().any(|words| result.contains(words))
}

fn job_in(text: &str) -> Option<String> {
    let at = text.find(JOB)?;
    let rest = text.get(at + JOB.len()..)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty()).map(|name| format!("{JOB}{name}"))
}

fn say(text: &str) -> Vec<Value> {
    // In two pieces, so that there is a middle to break off in.
    let (first, second) = text.split_at(text.find(' ').unwrap_or(0));
    vec![
        chunk(&json!({"role": "assistant", "content": first}), None),
        chunk(&json!({"content": second}), None),
        chunk(&json!({}), Some("stop")),
    ]
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": "chaos", "object": "chat.completion.chunk", "created": 0, "model": "chaos",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

fn tell(stream: &mut TcpStream, chunks: &[Value]) {
    http::begin(stream, "text/event-stream");
    for chunk in chunks {
        let _ = write!(stream, "data: {chunk}\n\n");
    }
    let _ = stream.write_all(b"data: [DONE]\n\n");
}

/// The first half of an answer.
fn begin_to_tell(stream: &mut TcpStream, chunks: &[Value]) {
    http::begin(stream, "text/event-stream");
    if let Some(chunk) = chunks.first() {
        let _ = write!(stream, "data: {chunk}\n\n");
        let _ = stream.flush();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(results: &[&str]) -> Work {
        let user = json!({"role": "user", "content": "Please do job-a17."});
        let results = results.iter().map(|text| json!({"role": "tool", "content": text}));
        let messages: Vec<Value> = std::iter::once(user).chain(results).collect();
        Work::of(&json!({"messages": messages})).unwrap()
    }

    #[test]
    fn a_deed_is_asked_for_only_while_it_is_surely_not_done() {
        assert_eq!(work(&[]).stage, Stage::Fresh);
        assert_eq!(work(&["there is no tool teleport"]).stage, Stage::Fresh);
        assert_eq!(work(&["Interrupted: it may have taken effect"]).stage, Stage::Unknown);
        assert_eq!(work(&["job-a17\n"]).stage, Stage::Done);
    }

    #[test]
    fn a_job_has_its_name_from_the_request() {
        assert_eq!(work(&[]).job, "job-a17");
        assert_eq!(job_in("nothing to do"), None);
        assert_eq!(job_in("job-"), None);
    }

    #[test]
    fn a_well_model_does_the_work_and_a_sick_one_is_counted() {
        let (model, address) = Model::start(7, BTreeMap::new()).unwrap();
        let ask = || {
            use std::io::Read;
            let body = json!({"messages": [{"role": "user", "content": "job-a1"}]}).to_string();
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        model.get_well();
        assert!(ask().contains("\"name\":\"shell\""));
        model.set_down(true);
        assert_eq!(ask(), "");
        let given = model.given();
        assert_eq!((given.answers, given.by_job.get("job-a1")), (2, Some(&1)));
    }
}
