//! The agent directory with real agents behind it.

use std::{sync::Arc, time::Duration};

use duologue_a2a::{
    BidirectionalAgent, Directory, DirectoryError, Health, KnownAgent, Refreshed, Serving,
};
use duologue_models::{Scripted, Turn};

use crate::support::MemoryStore;

/// An agent that is served, and its directory.
async fn served(id: &str, name: &str) -> (BidirectionalAgent, Serving) {
    let model = Arc::new(Scripted::new(Vec::<Turn>::new()));
    let agent = BidirectionalAgent::new(id, name, model, Directory::in_memory()).build().unwrap();
    let serving = agent.serve(Arc::new(MemoryStore::new()), |server| server).await.unwrap();
    (agent, serving)
}

fn names(agents: &[KnownAgent]) -> Vec<(&str, &str)> {
    agents.iter().map(|agent| (agent.id.as_str(), agent.name.as_str())).collect()
}

#[tokio::test]
async fn agents_are_known_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/agent_directory.json");
    let (_two, serving) = served("agent-2", "Agent Two").await;
    let directory = Directory::open(&path).unwrap();
    let agent = directory.add(serving.url()).await.unwrap();
    assert_eq!((agent.id.as_str(), &agent.health), ("agent-2", &Health::Up));
    assert!(agent.has_skill("list_agents") && agent.latency_ms.is_some());

    let again = Directory::open(&path).unwrap();
    assert!(again.warnings().is_empty());
    assert_eq!(again.list(), vec![agent.clone()]);
    // By its address too, however that is written.
    let address = serving.url().replace("http://127.0.0.1", "localhost");
    assert_eq!(again.get(&address).unwrap(), agent);
    again.remove("agent-2").await.unwrap();
    assert!(Directory::open(&path).unwrap().list().is_empty());
    assert!(matches!(again.get("agent-2"), Err(DirectoryError::Unknown { .. })));
}

#[tokio::test]
async fn an_agent_that_stopped_is_seen_to_be_down_and_up_again_elsewhere() {
    let (_two, serving) = served("agent-2", "Agent Two").await;
    let directory = Directory::in_memory();
    directory.add(serving.url()).await.unwrap();
    serving.stop().await;
    let agent = directory.ping("agent-2").await.unwrap();
    assert!(matches!(agent.health, Health::Down { failures: 1, .. }), "{agent:?}");
    assert!(agent.last_seen.is_some());
    // It declares who it is, so another address of it is the same agent.
    let (_two, serving) = served("agent-2", "Agent Two").await;
    let agent = directory.add(serving.url()).await.unwrap();
    assert_eq!((agent.id.as_str(), &agent.health), ("agent-2", &Health::Up));
    assert_eq!(directory.list().len(), 1);
}

#[tokio::test]
async fn agents_of_one_host_and_one_name_are_told_apart() {
    let (_a, first) = served("twin", "Twin").await;
    let (_b, second) = served("twin", "Twin").await;
    let directory = Directory::in_memory();
    directory.add(first.url()).await.unwrap();
    directory.add(second.url()).await.unwrap();
    directory.add(first.url()).await.unwrap();
    assert_eq!(names(&directory.list()), [("twin", "Twin"), ("twin-2", "Twin")]);
}

#[tokio::test]
async fn agents_are_learned_from_agents_and_nobody_lists_itself() {
    let (one, serving_one) = served("agent-1", "Agent One").await;
    let (two, serving_two) = served("agent-2", "Agent Two").await;
    let (_three, serving_three) = served("agent-3", "Agent Three").await;
    two.directory().add(serving_three.url()).await.unwrap();
    two.directory().add(serving_one.url()).await.unwrap();
    one.directory().discover(serving_two.url()).await.unwrap();
    let known = one.directory().list();
    assert_eq!(names(&known), [("agent-2", "Agent Two"), ("agent-3", "Agent Three")]);
    assert_eq!(known[1].learned_from.as_deref(), Some("agent-2"));
    assert_eq!(known[1].health, Health::Up);
    let oneself = one.directory().add(serving_one.url()).await.unwrap_err();
    assert!(matches!(oneself, DirectoryError::Oneself(_)), "{oneself}");
}

#[tokio::test]
async fn the_directory_is_looked_after_in_the_background() {
    let (one, _serving_one) = served("agent-1", "Agent One").await;
    let (two, serving_two) = served("agent-2", "Agent Two").await;
    one.directory().add(serving_two.url()).await.unwrap();
    let refreshing = one.directory().refresh_every(Duration::from_millis(50));
    let (_three, serving_three) = served("agent-3", "Agent Three").await;
    two.directory().add(serving_three.url()).await.unwrap();
    for _ in 0..100 {
        if one.directory().get("agent-3").is_ok_and(|agent| agent.health == Health::Up) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(one.directory().get("agent-3").unwrap().health, Health::Up);
    refreshing.stop().await;
    serving_three.stop().await;
    let refreshed = one.directory().refresh(Duration::ZERO).await.unwrap();
    assert_eq!(refreshed, Refreshed { up: 1, down: 1, learned: 0 });
}

#[tokio::test]
async fn an_address_without_an_agent_is_an_error_that_names_it() {
    let directory = Directory::in_memory();
    let error = directory.add("127.0.0.1:9").await.unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:9"), "{error}");
    assert!(directory.list().is_empty());
    let error = directory.get("nobody").unwrap_err().to_string();
    assert!(error.contains("the directory is empty"), "{error}");
}

#[tokio::test]
async fn two_processes_share_one_file_and_neither_undoes_what_the_other_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agents.json");
    let (_two, serving_two) = served("agent-2", "Agent Two").await;
    let (_three, serving_three) = served("agent-3", "Agent Three").await;
    // A directory that is open twice stands for two processes: nothing is shared but the file.
    let (server, command) = (Directory::open(&path).unwrap(), Directory::open(&path).unwrap());
    server.add(serving_two.url()).await.unwrap();
    command.add(serving_three.url()).await.unwrap();
    let both = [("agent-2", "Agent Two"), ("agent-3", "Agent Three")];
    assert_eq!(names(&Directory::open(&path).unwrap().list()), both);
    // The running one sees the addition with its next refresh.
    assert_eq!(server.list().len(), 1);
    let refreshed = server.refresh(Duration::ZERO).await.unwrap();
    assert_eq!((refreshed.up, names(&server.list())), (2, both.to_vec()));
    // What was removed elsewhere does not come back.
    command.remove("agent-2").await.unwrap();
    server.refresh(Duration::ZERO).await.unwrap();
    assert_eq!(names(&server.list()), [("agent-3", "Agent Three")]);
    assert_eq!(names(&Directory::open(&path).unwrap().list()), [("agent-3", "Agent Three")]);
}

#[tokio::test]
async fn many_that_write_one_file_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agents.json");
    let agents: Vec<_> = futures::future::join_all(
        (0..8).map(|number| async move { served(&format!("a{number}"), "A").await }),
    )
    .await;
    let adding = agents.iter().map(|(_, serving)| async {
        let directory = Directory::open(&path).unwrap();
        directory.add(serving.url()).await.unwrap();
    });
    futures::future::join_all(adding).await;
    assert_eq!(Directory::open(&path).unwrap().list().len(), 8);
}

#[tokio::test]
async fn an_agent_in_a_file_that_lists_it_leaves_itself_there_and_does_not_list_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agents.json");
    let model = Arc::new(Scripted::new(Vec::<Turn>::new()));
    let directory = Directory::open(&path).unwrap();
    let one = BidirectionalAgent::new("one", "One", model, directory).build().unwrap();
    let serving = one.serve(Arc::new(MemoryStore::new()), |server| server).await.unwrap();
    let other = Directory::open(&path).unwrap();
    other.add(serving.url()).await.unwrap();
    one.directory().refresh(Duration::ZERO).await.unwrap();
    assert!(one.directory().list().is_empty());
    assert_eq!(names(&Directory::open(&path).unwrap().list()), [("one", "One")]);
}
