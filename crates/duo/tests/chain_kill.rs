//! `kill -9` of a random agent in a chain of three under load: whatever the moment, every task that
//! was accepted comes to its right end, nobody is given the work twice, and nothing is done twice.
//!
//! `DUOLOGUE_TEST_CHAIN_KILLS` says how often (9 otherwise; `cargo xtask kill --chain` takes 200).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]
#![cfg(unix)]

mod support;

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use support::*;

/// How many tasks are under way at once.
const AT_ONCE: usize = 4;
/// How long one may take in all, kills included.
const LONGEST: Duration = Duration::from_secs(120);

/// What the last of the chain does: a deed that must not be done twice, a file that may be written
/// twice, and a question whose answer leads to such a file.
const WORKS: &str = r#"
rules:
  - when: '/^do (job-\d+)$/'
    from: user
    calls: [{ name: shell, arguments: { command: 'echo $1 | tee -a deeds.log' } }]
    delay_ms: 10
  - when: '/^keep (job-\d+)$/'
    from: user
    calls: [{ name: write_file, arguments: { path: '$1.txt', content: 'kept' } }]
    delay_ms: 10
  - when: '/^ask about (job-\d+)$/'
    from: user
    calls: [{ name: ask_human, arguments: { question: 'Which colour for $1?' } }]
    delay_ms: 10
  - when: '/(\w+) for (job-\d+)/'
    tool: ask_human
    calls: [{ name: write_file, arguments: { path: '$2.txt', content: '$1' } }]
    delay_ms: 10
  - when: '/(job-\d+).txt/'
    tool: write_file
    text: 'Written: $1.'
    delay_ms: 10
  - when: '/(job-\d+)/'
    tool: shell
    text: 'Done: $1.'
    delay_ms: 10
  - when: ''
    tool: shell
    text: 'Perhaps done.'
"#;

/// What the others do: pass it on, and ask the user what is asked.
const PASSES_ON: &str = r#"
rules:
  - when: 'Who does what the request above asks for?'
    text: '{"route": "remote", "agent": "NEXT", "reason": "as always"}'
    delay_ms: 10
  - when: 'First copy the words that answer'
    text: '{"decision": "need_human_input", "answer": ""}'
    delay_ms: 10
"#;

/// One agent of the chain: where it lives, and its process.
struct Link {
    name: &'static str,
    machine: Machine,
    port: u16,
    up: Mutex<Option<Child>>,
}

impl Link {
    /// The agent `name`, which passes everything on to `next`, or does it.
    fn new(name: &'static str, next: Option<&Link>) -> Self {
        let machine = Machine::new();
        let (behavior, script) = match next {
            Some(next) => ("bidirectional", PASSES_ON.replace("NEXT", next.name)),
            None => ("generic", WORKS.to_owned()),
        };
        machine.write("script.yaml", &script);
        let config = format!(
            "model = 'script:script.yaml'\njournal = 'journal.db'\nagent = '{name}'\n\
             [agents.{name}]\nbehavior = '{behavior}'\n[tools]\nenabled = ['shell']\n\
             [permissions]\nmode = 'full'\n[a2a]\ndirectory = 'agents.json'\n"
        );
        machine.write("duologue.toml", &config);
        if let Some(next) = next {
            let added = machine.duo(&["agents", "add", &next.url()]);
            assert_eq!(added.code, 0, "{}", added.err);
        }
        let mut link = Self { name, machine, port: 0, up: Mutex::new(None) };
        let told = link.start();
        link.port = told["url"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
        link
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Serve, and wait until it does.
    fn start(&self) -> Value {
        let log = self.machine.work().join("served.log");
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let port = self.port.to_string();
        let mut command = self.machine.command(&["serve", "--json", "--port", &port]);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        *self.up.lock().unwrap() = Some(child);
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{}: {}", self.name, self.log()))
    }

    fn kill(&self) {
        let mut child = self.up.lock().unwrap().take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn log(&self) -> String {
        self.machine.read("served.log").unwrap_or_default()
    }

    /// One call of the protocol, without a second try.
    fn call_once(&self, method: &str, params: &Value) -> io::Result<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = body.to_string();
        let mut line = TcpStream::connect(("127.0.0.1", self.port))?;
        line.set_read_timeout(Some(Duration::from_secs(30)))?;
        write!(
            line,
            "POST / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nA2A-Version: 1.0\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len(),
        )?;
        let mut answer = String::new();
        line.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        // Killed while it spoke, it said half of it.
        let body: Value = serde_json::from_str(body).map_err(io::Error::other)?;
        match body.get("result") {
            Some(result) => Ok(result.clone()),
            None => panic!("{}: {method} {params}: {body}", self.name),
        }
    }

    /// The same, again and again while nobody answers, as a client does.
    fn call(&self, method: &str, params: &Value) -> Value {
        let began = Instant::now();
        loop {
            match self.call_once(method, params) {
                Ok(result) => return result,
                Err(error) => assert!(began.elapsed() < LONGEST, "{}: {error}", self.name),
            }
            thread::sleep(Duration::from_millis(30));
        }
    }

    /// The tasks that are jobs; agents also ask each other whom they know.
    fn tasks(&self) -> Vec<Value> {
        let mut all = Vec::new();
        let mut params = json!({"pageSize": 100, "includeArtifacts": true, "historyLength": 100});
        let is_job = |task: &&Value| task["history"].to_string().contains("job-");
        loop {
            let page = self.call("ListTasks", &params);
            all.extend(page["tasks"].as_array().unwrap().iter().filter(is_job).cloned());
            match page["nextPageToken"].as_str() {
                Some(token) if !token.is_empty() => params["pageToken"] = token.into(),
                _ => return all,
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.up.lock().is_ok_and(|up| up.is_some()) {
            self.kill();
        }
    }
}

/// What is asked for, and what must come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Deed,
    Keep,
    Ask,
}

#[derive(Clone, Debug)]
struct Job {
    name: String,
    kind: Kind,
    /// The task at the first agent, and its answer.
    id: String,
    answer: String,
}

/// Send one job to the first of the chain and see it through.
fn work(first: &Link, number: usize) -> Job {
    let name = format!("job-{number}");
    let (kind, text) = match number % 3 {
        0 => (Kind::Deed, format!("do {name}")),
        1 => (Kind::Keep, format!("keep {name}")),
        _ => (Kind::Ask, format!("ask about {name}")),
    };
    let message = |id: String, text: &str| {
        json!({
            "messageId": id, "role": "ROLE_USER", "parts": [{"text": text}],
            "metadata": {"duologue/idempotencyKey": id},
        })
    };
    let hasty = json!({"returnImmediately": true});
    let request = json!({"message": message(name.clone(), &text), "configuration": hasty});
    let mut task = first.call("SendMessage", &request)["task"].clone();
    let mut answers = 0;
    let began = Instant::now();
    loop {
        match task["status"]["state"].as_str().unwrap() {
            "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING" => {}
            "TASK_STATE_INPUT_REQUIRED" => {
                let question = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
                assert!(question.ends_with(&format!("Which colour for {name}?")), "{task}");
                answers += 1;
                assert_eq!((kind, answers), (Kind::Ask, 1), "asked again: {task}");
                let mut said = message(format!("{name}-answer"), &format!("blue for {name}"));
                said["taskId"] = task["id"].clone();
                let request = json!({"message": said, "configuration": hasty});
                task = first.call("SendMessage", &request)["task"].clone();
                continue;
            }
            "TASK_STATE_COMPLETED" => break,
            _ => panic!("{name} came to a wrong end: {task:#}"),
        }
        assert!(began.elapsed() < LONGEST, "{name} does not end: {task:#}");
        thread::sleep(Duration::from_millis(40));
        task = first.call("GetTask", &json!({"id": task["id"]}));
    }
    assert_eq!(answers, usize::from(kind == Kind::Ask), "{task}");
    let given = task["artifacts"].as_array().unwrap();
    assert_eq!(given.len(), 1, "one answer: {task}");
    let answer = given[0]["parts"][0]["text"].as_str().unwrap().to_owned();
    let fits = match kind {
        Kind::Deed => answer == format!("Done: {name}.") || answer == "Perhaps done.",
        Kind::Keep | Kind::Ask => answer == format!("Written: {name}."),
    };
    assert!(fits, "{name} ({kind:?}) came to a wrong end: {task:#}");
    let said = task["history"].as_array().unwrap().iter();
    let said = said.filter(|message| message["role"] == "ROLE_USER").count();
    assert_eq!(said, 1 + answers, "nothing was heard twice: {task:#}");
    Job { name, kind, id: task["id"].as_str().unwrap().to_owned(), answer }
}

#[test]
fn every_accepted_task_of_a_chain_ends_rightly_whoever_is_killed_meanwhile() {
    let kills: usize =
        std::env::var("DUOLOGUE_TEST_CHAIN_KILLS").map_or(9, |text| text.parse().unwrap());
    let last = Link::new("last", None);
    let middle = Link::new("middle", Some(&last));
    let first = Link::new("first", Some(&middle));
    let links = [&first, &middle, &last];
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let began = Instant::now();
    let jobs: Vec<Job> = thread::scope(|scope| {
        let worker = || {
            let mut jobs = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                jobs.push(work(&first, next.fetch_add(1, Ordering::Relaxed)));
            }
            jobs
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        for _ in 0..kills {
            thread::sleep(Duration::from_millis(50 + random(500)));
            if workers.iter().any(|worker| worker.is_finished()) {
                break; // One of them found something: it is told below.
            }
            let link = links[random(3) as usize];
            link.kill();
            thread::sleep(Duration::from_millis(random(200)));
            link.start();
        }
        is_over.store(true, Ordering::Relaxed);
        let jobs: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        if jobs.iter().any(Result::is_err) {
            for link in links {
                println!("--- {}\n{}", link.name, link.log());
            }
        }
        jobs.into_iter().flat_map(|jobs| jobs.expect("see above")).collect()
    });
    let perhaps = jobs.iter().filter(|job| job.answer == "Perhaps done.").count();
    println!(
        "{kills} kills, {} tasks, {perhaps} of them with an unknown deed, {} s",
        jobs.len(),
        began.elapsed().as_secs()
    );
    check(&jobs, links);
}

/// What must be true once everything is over.
fn check(jobs: &[Job], links: [&Link; 3]) {
    let [first, .., last] = links;
    for link in links {
        let tasks = link.tasks();
        let wrong = tasks.iter().find(|task| task["status"]["state"] != "TASK_STATE_COMPLETED");
        assert_eq!(wrong, None, "{}: all are over", link.name);
        assert_eq!(tasks.len(), jobs.len(), "{} was given each job once", link.name);
    }
    let mut deeds = BTreeMap::<String, usize>::new();
    for line in last.machine.read("deeds.log").unwrap_or_default().lines() {
        *deeds.entry(line.to_owned()).or_default() += 1;
    }
    for job in jobs {
        let done = deeds.remove(&job.name).unwrap_or_default();
        match job.kind {
            Kind::Deed if job.answer == "Perhaps done." => assert!(done <= 1, "{job:?}: {done}"),
            Kind::Deed => assert_eq!(done, 1, "{job:?}"),
            Kind::Keep | Kind::Ask => {
                let expected = if job.kind == Kind::Ask { "blue" } else { "kept" };
                let written = last.machine.read(&format!("{}.txt", job.name));
                assert_eq!(written.as_deref(), Some(expected), "{job:?}");
            }
        }
    }
    assert!(deeds.is_empty(), "nobody asked for these: {deeds:?}");
    // What the journal says of some of them: each turn ended once, and replays.
    for job in jobs.iter().rev().take(6) {
        let entries = first.machine.journal(&job.id);
        let count = |kind: &str| {
            let of_it = |entry: &&Value| entry["kind"] == kind && entry.get("run").is_none();
            entries.iter().filter(of_it).count()
        };
        let turns = if job.kind == Kind::Ask { 2 } else { 1 };
        assert_eq!(count("agent_response_end"), turns, "{job:?}");
        assert_eq!(count("user_request"), 1, "{job:?}");
        let replayed = first.machine.duo(&["sessions", "replay", &job.id, "--quiet"]);
        assert_eq!(replayed.code, 0, "{}", replayed.err);
    }
}

/// A small random number: the moments must differ from run to run.
fn random(below: u64) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8) % below
}
