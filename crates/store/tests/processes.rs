//! Several processes with one file, and processes that are killed.
//!
//! A child is this test program again, told by a variable what to play.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::{
    collections::HashMap,
    env, fs,
    io::{BufRead, BufReader, Lines, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use common::{add, all, begin, entry, id, note, notes, open, open_new, quick, turn_starts};
use duologue_core::{Claim, Entry, ListQuery, Mail, SessionId, Store, StoreError};
use duologue_store::SqliteStore;
use tempfile::TempDir;

const PART: &str = "DUOLOGUE_STORE_TEST_PART";
const FOLDER: &str = "DUOLOGUE_STORE_TEST_FOLDER";

/// Another process. It is killed at the end of the test, if not before.
struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(part: &str, folder: &TempDir) -> Self {
        Self::spawn(Command::new(env::current_exe().unwrap()), part, folder)
    }

    /// Start it so that a file that may not grow is an error, not the end of the process.
    #[cfg(unix)]
    fn start_hardy(part: &str, folder: &TempDir) -> Self {
        let mut shell = Command::new("sh");
        let script = "trap '' XFSZ; exec \"$0\" \"$@\"";
        shell.args(["-c", script]).arg(env::current_exe().unwrap());
        Self::spawn(shell, part, folder)
    }

    fn spawn(mut command: Command, part: &str, folder: &TempDir) -> Self {
        let mut child = command
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(PART, part)
            .env(FOLDER, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next thing that the child says; nothing when it has ended.
    fn hear(&mut self) -> Option<String> {
        self.lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("say ").map(|(_, said)| said.to_owned()))
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// `kill -9`.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first entries of a journal in the middle of a turn.
fn turn(length: u64) -> Vec<Arc<Entry>> {
    let mut entries = notes(0..length);
    entries[0] = entry(0, 0, turn_starts(1));
    entries
}

/// Drop a claim, and wait until other processes can know.
async fn give_back(store: &SqliteStore, claim: Claim) {
    drop(claim);
    // The question stands behind in the queue.
    store.version().await.unwrap();
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "say {text}").unwrap();
    out.flush().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the part of the other process; the other tests start it"]
async fn child() {
    let Ok(part) = env::var(PART) else {
        return;
    };
    let folder = env::var(FOLDER).unwrap();
    let store = SqliteStore::open(Path::new(&folder).join("journal.db"), quick()).await.unwrap();
    match part.as_str() {
        "write" => write_without_end(&store).await,
        "own" => own(&store).await,
        "post" => post(&store).await,
        #[cfg(unix)]
        "fill" => fill(&store).await,
        other => panic!("no part {other}"),
    }
}

/// Write eight journals as fast as it goes, and say what was flushed.
async fn write_without_end(store: &SqliteStore) {
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let session = id(&format!("session-{number}"));
                let _claim = store.create(&session, turn(1)).unwrap();
                for seq in 1.. {
                    store.append(&session, notes(seq..seq + 1)).unwrap();
                    if seq % (1 + number) == 0 {
                        store.flush(&session).await.unwrap();
                        say(&format!("{session} {seq}"));
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Own a session until told to give it back, then wait for the end.
async fn own(store: &SqliteStore) {
    let claim = store.claim(&id("one")).await.unwrap();
    say("mine");
    std::io::stdin().lines().next();
    give_back(store, claim).await;
    say("given back");
    std::io::stdin().lines().next();
}

async fn post(store: &SqliteStore) {
    for reason in std::io::stdin().lines() {
        let reason = reason.unwrap();
        store.post(&id("one"), Mail::Cancel { reason }).await.unwrap();
        say("posted");
    }
}

/// Write until there is no space, go on for a while, then get more space.
#[cfg(unix)]
async fn fill(store: &SqliteStore) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let space = |bytes| {
        let limit = Rlimit { current: bytes, ..getrlimit(Resource::Fsize) };
        setrlimit(Resource::Fsize, limit).unwrap();
    };
    let session = id("one");
    let claim = begin(store, &session, notes(0..1)).await.unwrap();
    space(Some(300_000));
    let mut seq = 1;
    let error = loop {
        store.append(&session, notes(seq..seq + 10)).unwrap();
        seq += 10;
        if let Err(error) = store.flush(&session).await {
            break error;
        }
        assert!(seq < 100_000, "the space is never used up");
    };
    say(&format!("full {error}"));
    for _ in 0..5 {
        store.append(&session, notes(seq..seq + 10)).unwrap();
        seq += 10;
        assert!(store.flush(&session).await.is_err());
    }
    drop(store.create(&id("two"), notes(0..3)).unwrap());
    assert_eq!(store.list(ListQuery::default()).await.unwrap().len(), 1);
    space(None);
    store.flush(&session).await.unwrap();
    store.flush(&id("two")).await.unwrap();
    drop(claim);
    store.close().await.unwrap();
    say(&format!("wrote {seq}"));
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_that_was_accepted_is_lost_while_there_is_no_space() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = Other::start_hardy("fill", &folder);
    let full = other.hear().unwrap();
    assert!(full.starts_with("full "), "{full}");
    assert!(full.contains("journal.db"), "{full}");
    let wrote = other.hear().expect("it comes to its end");
    let count = wrote.strip_prefix("wrote ").unwrap().parse().unwrap();
    let store = open(&folder).await;
    assert_eq!(all(&store, &id("one")).await, notes(0..count));
    assert_eq!(all(&store, &id("two")).await, notes(0..3));
    store.claim(&id("one")).await.unwrap();
}

#[tokio::test]
async fn what_was_flushed_before_a_kill_is_there_in_order_without_a_gap() {
    for round in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let mut other = Other::start("write", &folder);
        let mut flushed: HashMap<SessionId, u64> = HashMap::new();
        let mut heard = |line: String| {
            let (session, seq) = line.split_once(' ').unwrap();
            flushed.insert(id(session), seq.parse().unwrap());
        };
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(150 + 70 * round) {
            heard(other.hear().expect("it goes on writing"));
        }
        other.kill();
        // What it said and nobody heard yet.
        while let Some(line) = other.hear() {
            heard(line);
        }
        assert_eq!(flushed.len(), 8);

        let store = open(&folder).await;
        for (session, seq) in flushed {
            let journal = all(&store, &session).await;
            let length = journal.len() as u64;
            assert!(length > seq, "{session}: {seq} was flushed, {length} are there");
            assert_eq!(journal, turn(length));
            let summary = store.summary(&session).await.unwrap().unwrap();
            assert_eq!(
                (summary.entries, summary.updated_at, summary.status.as_str()),
                (length, length.cast_signed() - 1, "running")
            );
            assert!(store.list(ListQuery::default()).await.unwrap().contains(&summary));
            // Nobody owns it now, and it goes on where it ended.
            let _claim = store.claim(&session).await.unwrap();
            add(&store, &session, notes(length..length + 2)).await.unwrap();
            assert_eq!(all(&store, &session).await.len() as u64, length + 2);
        }
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_log_that_was_cut_in_the_middle_loses_its_end_and_nothing_else() {
    let (folder, store) = open_new().await;
    let session = id("one");
    let _claim = begin(&store, &session, notes(0..1)).await.unwrap();
    for seq in 1..200 {
        add(&store, &session, notes(seq..seq + 1)).await.unwrap();
    }
    // As after a power cut: the files as they are, with a log whose last blocks never came.
    let log = fs::read(folder.path().join("journal.db-wal")).unwrap();
    for cut in [1, 700, 5_000, 100_000] {
        let copy = tempfile::tempdir().unwrap();
        fs::copy(folder.path().join("journal.db"), copy.path().join("journal.db")).unwrap();
        let mut torn = log[..log.len() - cut].to_vec();
        let end = torn.len();
        torn[end - 300..].fill(0x5a);
        fs::write(copy.path().join("journal.db-wal"), torn).unwrap();

        let restored = open(&copy).await;
        let journal = all(&restored, &session).await;
        let length = journal.len() as u64;
        assert!((1..200).contains(&length), "{cut} bytes less: {length} entries");
        assert_eq!(journal, notes(0..length));
        assert_eq!(restored.summary(&session).await.unwrap().unwrap().entries, length);
        add(&restored, &session, notes(length..length + 1)).await.unwrap();
        restored.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_claim_holds_against_other_processes_and_ends_with_its_own() {
    let (folder, store) = open_new().await;
    let session = id("one");
    let claim = begin(&store, &session, notes(0..1)).await.unwrap();
    give_back(&store, claim).await;

    let mut other = Other::start("own", &folder);
    assert_eq!(other.hear().unwrap(), "mine");
    let busy = store.claim(&session).await.unwrap_err();
    let StoreError::Busy { owner, .. } = &busy else {
        panic!("{busy}");
    };
    assert!(owner.contains(&format!("process {} on ", other.child.id())), "{owner}");
    // What another process writes is not deleted under it.
    assert_eq!(store.delete(&session).await.unwrap_err(), busy);

    other.kill();
    let claim = store.claim(&session).await.unwrap();
    give_back(&store, claim).await;

    // And the other way round: given back while the process goes on.
    let mut other = Other::start("own", &folder);
    assert_eq!(other.hear().unwrap(), "mine");
    other.tell("give it back");
    assert_eq!(other.hear().unwrap(), "given back");
    let _claim = store.claim(&session).await.unwrap();
    store.delete(&session).await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_of_processes_that_are_gone() {
    let (folder, store) = open_new().await;
    let claim = begin(&store, &id("one"), notes(0..1)).await.unwrap();
    give_back(&store, claim).await;
    let mut other = Other::start("own", &folder);
    assert_eq!(other.hear().unwrap(), "mine");
    other.kill();
    store.close().await.unwrap();
    let locks = || {
        let files = fs::read_dir(folder.path().join("locks")).unwrap();
        files.map(|file| file.unwrap().file_name()).collect::<Vec<_>>()
    };
    assert_eq!(locks().len(), 2, "the registry and the killed one's: {:?}", locks());

    let store = open(&folder).await;
    assert_eq!(locks().len(), 2, "the registry and ours: {:?}", locks());
    store.close().await.unwrap();
    assert_eq!(locks(), ["registry"]);
}

#[tokio::test]
async fn mail_from_another_process_arrives_and_changes_the_version() {
    let (folder, store) = open_new().await;
    let session = id("one");
    let _claim = begin(&store, &session, notes(0..1)).await.unwrap();
    let mut other = Other::start("post", &folder);
    let mut version = store.version().await.unwrap();
    for reason in ["first", "second"] {
        other.tell(reason);
        assert_eq!(other.hear().unwrap(), "posted");
        let now = store.version().await.unwrap();
        assert_ne!(now, version);
        version = now;
        let mail = store.mail(&session).await.unwrap();
        let [(number, Mail::Cancel { reason: got })] = mail.as_slice() else {
            panic!("{mail:?}");
        };
        assert_eq!(got, reason);
        store.acknowledge(&session, *number).await.unwrap();
    }
    // Our own entries do not make us look for the mail of others.
    add(&store, &session, notes(1..9)).await.unwrap();
    assert_eq!(store.version().await.unwrap(), version);
}

#[tokio::test]
async fn two_openings_write_side_by_side() {
    let (folder, one) = open_new().await;
    let two = open(&folder).await;
    let (mine, yours) = (id("mine"), id("yours"));
    let _mine = begin(&one, &mine, notes(0..1)).await.unwrap();
    let _yours = begin(&two, &yours, notes(0..1)).await.unwrap();
    assert!(matches!(two.claim(&mine).await, Err(StoreError::Busy { .. })));
    for seq in 1..50 {
        one.append(&mine, notes(seq..seq + 1)).unwrap();
        two.append(&yours, notes(seq..seq + 1)).unwrap();
        let (first, second) = tokio::join!(one.flush(&mine), two.flush(&yours));
        first.unwrap();
        second.unwrap();
    }
    for store in [&one, &two] {
        assert_eq!(all(store, &mine).await, notes(0..50));
        assert_eq!(all(store, &yours).await, notes(0..50));
    }
}

#[tokio::test]
async fn a_session_that_changes_hands_goes_on_where_it_is() {
    let (folder, one) = open_new().await;
    let two = open(&folder).await;
    let session = id("one");
    drop(begin(&one, &session, notes(0..3)).await.unwrap());
    add(&two, &session, notes(3..5)).await.unwrap();
    // The first one remembers three entries, and must notice that there are more.
    assert_eq!(
        add(&one, &session, vec![entry(3, 0, note("again"))]).await.unwrap_err(),
        StoreError::OutOfOrder { session: session.clone(), found: 3, expected: 5 }
    );
    add(&one, &session, notes(5..6)).await.unwrap();
    assert_eq!(all(&two, &session).await, notes(0..6));
}

#[tokio::test]
async fn another_process_sees_a_running_session_as_it_is() {
    let (folder, one) = open_new().await;
    let two = open(&folder).await;
    let session = id("one");
    let first = entry(0, 1, turn_starts(1));
    let _claim = begin(&one, &session, vec![first]).await.unwrap();
    for seq in 1..20 {
        add(&one, &session, notes(seq..seq + 1)).await.unwrap();
        let summary = two.summary(&session).await.unwrap().unwrap();
        assert_eq!((summary.entries, summary.updated_at), (seq + 1, seq.cast_signed()));
        assert_eq!(two.list(ListQuery::default()).await.unwrap(), [summary]);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_with_two_names_has_one_owner() {
    let (folder, one) = open_new().await;
    let session = id("one");
    let claim = begin(&one, &session, notes(0..1)).await.unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for (target, link) in [
        (folder.path().to_owned(), elsewhere.path().join("folder")),
        (folder.path().join("journal.db"), elsewhere.path().join("file.db")),
    ] {
        std::os::unix::fs::symlink(target, &link).unwrap();
        let path = if link.is_dir() { link.join("journal.db") } else { link };
        let two = SqliteStore::open(&path, quick()).await.unwrap();
        assert!(matches!(two.claim(&session).await, Err(StoreError::Busy { .. })), "{path:?}");
        two.close().await.unwrap();
    }
    drop(claim);
    one.claim(&session).await.unwrap();
}

#[test]
fn many_processes_open_the_same_new_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut others: Vec<_> = (0..6).map(|_| Other::start("post", &folder)).collect();
    // Each says nothing before it is told, and ends when there is nothing more to hear.
    thread::sleep(Duration::from_millis(50));
    for other in &mut others {
        drop(other.child.stdin.take());
        while other.hear().is_some() {}
        assert!(other.child.wait().unwrap().success());
    }
}
