//! Our client with others' servers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use duologue_behaviors::Generic;
use duologue_core::{
    Agent, Answer, Effect, InquiryKind, MemoryStore, Outcome, Session, SessionOptions, Store,
    Toolbox,
};
use duologue_mcp::{Activity, ServerConfig, Servers, Status, Transport};
use duologue_models::{Scripted, Turn};
use serde_json::{Map, json};

use crate::support::{call, connected, everything, installed, node, program, tool};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_resources_and_prompts_of_the_everything_server_are_ours() {
    let Some(config) = everything() else { return };
    let servers = connected(vec![("all", config)]).await;
    assert_eq!(
        call(&servers, "all__echo", json!({"message": "hi"})).await,
        Ok("Echo: hi".to_owned())
    );
    let wrong = call(&servers, "all__echo", json!({"message": 7})).await.unwrap_err();
    assert!(wrong.contains("expected string"), "{wrong}");
    let image = call(&servers, "all__get-tiny-image", json!({})).await.unwrap();
    assert!(image.contains("[image/png]"), "{image}");

    let listed = call(&servers, "mcp_resources", json!({"server": "all"})).await.unwrap();
    assert!(listed.contains("\"uri\""), "{listed}");
    let server = servers.get("all").unwrap();
    let resources = server.resources().await.unwrap();
    let first = &resources[0];
    let arguments = json!({"server": "all", "uri": first.uri});
    let read = call(&servers, "mcp_read_resource", arguments).await.unwrap();
    assert!(!read.is_empty());
    let missing = json!({"server": "nowhere", "uri": "x"});
    assert!(call(&servers, "mcp_read_resource", missing).await.unwrap_err().contains("no MCP"));

    let prompts = server.prompts().await.unwrap();
    let simple = prompts.iter().find(|prompt| prompt.arguments.is_empty()).unwrap();
    assert!(!server.prompt(&simple.name, Map::new()).await.unwrap().is_empty());
    servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_shows_progress_may_take_longer_than_a_silent_one() {
    let Some(mut config) = everything() else { return };
    config.timeout = Duration::from_millis(1_500);
    let servers = connected(vec![("all", config)]).await;
    let mut activity = servers.get("all").unwrap().activity();
    let arguments = json!({"duration": 3, "steps": 6});
    let done = call(&servers, "all__trigger-long-running-operation", arguments).await.unwrap();
    assert!(done.contains("completed"), "{done}");
    let mut steps = 0;
    while let Ok(seen) = activity.try_recv() {
        steps += usize::from(matches!(seen, Activity::Progress { .. }));
    }
    assert!(steps >= 4, "{steps} signs of progress");
    let silent = json!({"duration": 4, "steps": 1});
    let error = call(&servers, "all__trigger-long-running-operation", silent).await.unwrap_err();
    assert!(error.contains("was silent for 1.5s"), "{error}");
    servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_asks_in_the_middle_waits_for_the_person_and_goes_back() {
    let Some(config) = everything() else { return };
    let servers = connected(vec![("all", config)]).await;
    let toolbox = servers.tools().into_iter().fold(Toolbox::new(), Toolbox::with_shared);
    let name = "all__trigger-elicitation-request";
    assert!(toolbox.get(name).is_some(), "{toolbox:?}");
    let agent = Agent::builder("clerk", Generic::default())
        .model(Arc::new(Scripted::new([Turn::call(name, json!({})), Turn::text("done")])))
        .tools(toolbox)
        .policy(duologue_core::Policy::new(duologue_core::Mode::Full))
        .build();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let session = Session::start(&agent, Arc::clone(&store), SessionOptions::default()).unwrap();
    let reply = session.reply("go").await.unwrap();
    let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
    let InquiryKind::Question { text, .. } = &inquiries[0].kind else { panic!("{inquiries:?}") };
    assert!(text.starts_with("all asks: "), "{text}");
    assert!(text.contains("name"), "{text}");

    // An answer that does not fit is asked for again; the server's call still waits.
    session.answer(&inquiries[0].id, Answer::text("no such field: 1"), None).unwrap();
    let reply = session.resume().await.unwrap();
    let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
    let InquiryKind::Question { text, .. } = &inquiries[0].kind else { panic!("{inquiries:?}") };
    assert!(text.starts_with("That does not fit"), "{text}");

    session.answer(&inquiries[0].id, Answer::text(r#"{"name": "Ada"}"#), None).unwrap();
    let reply = session.resume().await.unwrap();
    assert_eq!(reply.outcome, Outcome::Completed, "{reply:?}");
    let entries = store.read(session.id(), 0, 100).await.unwrap();
    let text = serde_json::to_string(&entries).unwrap();
    assert!(text.contains("Ada") && text.contains("tool_ended"), "{text}");
    servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_stay_where_the_filesystem_server_lets_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let Some(config) = node("@modelcontextprotocol/server-filesystem", &[root.to_str().unwrap()])
    else {
        return;
    };
    let servers = connected(vec![("files", config)]).await;
    let path = root.join("note.txt");
    let arguments = json!({"path": path, "content": "buy milk"});
    call(&servers, "files__write_file", arguments).await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "buy milk");
    let read = call(&servers, "files__read_text_file", json!({"path": path})).await.unwrap();
    assert_eq!(read, "buy milk");
    let out = json!({"path": "/etc/passwd"});
    let refused = call(&servers, "files__read_text_file", out).await.unwrap_err();
    assert!(refused.contains("Access denied"), "{refused}");

    // Its annotations decide what happens after a crash, and nothing else.
    assert_eq!(tool(&servers, "files__read_text_file").spec().effect, Effect::Pure);
    assert_ne!(tool(&servers, "files__write_file").spec().effect, Effect::Pure);
    servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_server_tells_the_time() {
    let Some(python) = installed("py/bin/mcp-server-time") else { return };
    let config = program(python.to_str().unwrap(), vec!["--local-timezone=UTC".to_owned()]);
    let servers = connected(vec![("time", config)]).await;
    let told = call(&servers, "time__get_current_time", json!({"timezone": "UTC"})).await.unwrap();
    assert!(told.contains("\"timezone\"") && told.contains("UTC"), "{told}");
    servers.stop().await;
}

/// Find the process of a server by an argument that only it has.
#[cfg(target_os = "linux")]
fn process_with(mark: &str) -> Option<i32> {
    std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let id: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        (line.contains(mark) && line.contains("node")).then_some(id)
    })
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_is_started_again_and_ends_with_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mark = root.to_str().unwrap().to_owned();
    let Some(config) = node("@modelcontextprotocol/server-filesystem", &[&mark]) else { return };
    let servers = connected(vec![("files", config)]).await;
    let list = || call(&servers, "files__list_allowed_directories", json!({}));
    assert!(list().await.unwrap().contains(&mark));
    let mut activity = servers.get("files").unwrap().activity();

    let first = process_with(&mark).expect("it runs");
    let killed = std::process::Command::new("kill").args(["-9", &first.to_string()]).status();
    assert!(killed.unwrap().success());
    let began = Instant::now();
    loop {
        match tokio::time::timeout(Duration::from_secs(20), activity.recv()).await.unwrap() {
            Ok(Activity::Down { .. }) => {
                let error = list().await.unwrap_err();
                assert!(error.contains("is not available"), "{error}");
                assert!(error.contains("tried again in"), "{error}");
            }
            Ok(Activity::Up) => break,
            _ => {}
        }
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(list().await.unwrap().contains(&mark));
    let second = process_with(&mark).expect("it runs again");
    assert_ne!(first, second);
    servers.stop().await;
    let ended = || process_with(&mark).is_none();
    for _ in 0..100 {
        if ended() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server's process outlived its client");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_or_is_not_there_holds_up_nobody() {
    let Some(good) = everything() else { return };
    let mut hangs = program("sleep", vec!["600".to_owned()]);
    hangs.startup = Duration::from_secs(20);
    let dies = program("sh", vec!["-c".to_owned(), "echo no licence >&2; exit 3".to_owned()]);
    let missing = program("no-such-program-anywhere", Vec::new());
    let far = ServerConfig::new(Transport::Http {
        url: "http://127.0.0.1:9/mcp".to_owned(),
        headers: Default::default(),
    });
    let configs =
        [("hangs", hangs), ("dies", dies), ("missing", missing), ("good", good), ("far", far)];
    let servers = Servers::start(configs.map(|(name, config)| (name.to_owned(), config)));
    let good = servers.get("good").unwrap();
    let began = Instant::now();
    while !matches!(good.status(), Status::Up { .. }) {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", good.status());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(call(&servers, "good__echo", json!({"message": "x"})).await.is_ok());
    let reason = |name: &str| match servers.get(name).unwrap().status() {
        Status::Down { reason, .. } => reason,
        other => format!("{other:?}"),
    };
    assert_eq!(reason("hangs"), "Connecting");
    for (name, words) in [("missing", "there is no program"), ("dies", "it said: no licence")] {
        let began = Instant::now();
        while !reason(name).contains(words) {
            assert!(began.elapsed() < Duration::from_secs(10), "{name}: {}", reason(name));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    tokio::time::timeout(Duration::from_secs(10), servers.stop()).await.expect("stopping hangs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_reaches_the_server_and_the_next_call_works() {
    let Some(config) = everything() else { return };
    let servers = connected(vec![("all", config)]).await;
    let slow = tool(&servers, "all__trigger-long-running-operation");
    let context = crate::support::context();
    let cancel = context.cancel.clone();
    let running = slow.call(json!({"duration": 30, "steps": 30}), context);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cancel.cancel();
    };
    let began = Instant::now();
    let (ended, ()) = tokio::join!(running, stop);
    assert!(ended.unwrap_err().0.contains("cancelled"));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(call(&servers, "all__echo", json!({"message": "x"})).await.is_ok());
    servers.stop().await;
}
