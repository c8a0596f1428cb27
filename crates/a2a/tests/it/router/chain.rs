//! Chains of agents: questions up, answers down, cancellation, budgets, circles, restarts.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use duologue_a2a::{BidirectionalAgent, Directory, Serving};
use duologue_core::{Budget, Effect, Event, Reach, SessionId, Store, read_all};
use duologue_store::{SqliteOptions, SqliteStore};
use tokio::sync::Notify;

use super::stage::*;
use crate::support::{Client, Word, said};

/// One agent of a chain, which can be stopped and started again where it was.
struct Link {
    id: &'static str,
    model: Decider,
    folder: tempfile::TempDir,
    address: SocketAddr,
    budget: Budget,
    wait: (Arc<Notify>, Arc<Notify>),
    up: Option<(Serving, Arc<SqliteStore>, BidirectionalAgent)>,
}

impl Link {
    async fn new(id: &'static str, model: Decider) -> Self {
        Self::with_budget(id, model, Budget::default()).await
    }

    async fn with_budget(id: &'static str, model: Decider, budget: Budget) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let wait = (Arc::default(), Arc::default());
        let mut link = Self { id, model, folder, address, budget, wait, up: None };
        link.start().await;
        link
    }

    async fn start(&mut self) {
        let store = open(self.folder.path()).await;
        let directory = Directory::open(self.folder.path().join("agents.json")).unwrap();
        let (started, go) = self.wait.clone();
        let wait = duologue_core::tool("wait", "Waits.", Effect::Pure, move |_: Word, _| {
            let (started, go) = (Arc::clone(&started), Arc::clone(&go));
            async move {
                started.notify_one();
                go.notified().await;
                Ok("waited")
            }
        })
        .reach(Reach::Workspace);
        let model = Arc::new(self.model.clone());
        let agent = BidirectionalAgent::new(self.id, self.id, model, directory)
            .enabled(["echo", "llm", "human_input"])
            .tool(Arc::new(wait))
            .expose(["echo", "llm", "human_input", "wait"])
            .budget(self.budget)
            .build()
            .unwrap();
        let address = self.address;
        let kept = Arc::clone(&store) as Arc<dyn Store>;
        let serving = agent.serve(kept, |server| server.bind(address)).await.unwrap();
        self.address = serving.address();
        self.up = Some((serving, store, agent));
    }

    async fn stop(&mut self) {
        let (serving, store, agent) = self.up.take().unwrap();
        serving.stop().await;
        drop(agent);
        store.close().await.unwrap();
    }

    async fn restart(&mut self) {
        self.stop().await;
        self.start().await;
    }

    fn serving(&self) -> &Serving {
        &self.up.as_ref().unwrap().0
    }

    fn client(&self) -> Client {
        Client::new(self.serving())
    }

    async fn knows(&self, other: &Self) {
        let directory = self.up.as_ref().unwrap().2.directory();
        directory.add(other.serving().url()).await.unwrap();
    }

    /// Its only task.
    async fn task(&self) -> Value {
        for _ in 0..200 {
            let list = self.client().call("ListTasks", json!({})).await;
            if list["totalSize"] == 1 {
                return list["tasks"][0].clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{} never had a task", self.id)
    }
}

async fn open(folder: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(folder.join("journal.db"), SqliteOptions::default()).await.unwrap())
}

/// Three agents in a row, the last of which does `what`; the others pass it on.
async fn chain(last: Decider, returns: bool) -> [Link; 3] {
    chain_with(last, returns, Budget::default()).await
}

async fn chain_with(last: Decider, returns: bool, budget: Budget) -> [Link; 3] {
    let human = json!({"decision": "need_human_input", "answer": ""});
    let pass = |to: &str| {
        let model = Decider::new().at("route", remote(to));
        if returns { model.at("returned", &human) } else { model }
    };
    let c = Link::new("c", last).await;
    let b = Link::new("b", pass("c")).await;
    let a = Link::with_budget("a", pass("b"), budget).await;
    b.knows(&c).await;
    a.knows(&b).await;
    [a, b, c]
}

/// The last agent asks its user.
fn asks() -> Decider {
    Decider::new()
        .at("route", local())
        .at("tool", tool("human_input", json!({"question": "Which city?"})))
        .answer("Sunny in Rome.")
}

/// The last agent works until it is let go.
fn works() -> Decider {
    Decider::new().at("route", local()).at("tool", tool("wait", json!({"word": "x"})))
}

#[tokio::test]
async fn a_question_travels_up_and_its_answer_down_whoever_is_restarted_meanwhile() {
    for restarted in [&[0][..], &[1], &[2], &[2, 1, 0]] {
        let mut links = chain(asks(), true).await;
        let task = links[0].client().send("The weather?").await;
        let question = &task["status"]["message"]["parts"][0]["text"];
        assert_eq!(*question, "b asks: c asks: Which city?", "{task}");
        for place in restarted {
            links[*place].restart().await;
        }
        let task = links[0].client().send_to(&task, "Rome").await;
        let answer = &task["artifacts"][0]["parts"][0]["text"];
        assert_eq!(*answer, "Sunny in Rome.", "after {restarted:?}: {task}");
        // The last agent heard the answer as it was given.
        let heard = links[2].model.asked("answer");
        assert!(heard[0].contains("Rome"), "{heard:?}");
        for link in &links {
            let task = link.task().await;
            assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{}", link.id);
        }
    }
}

#[tokio::test]
async fn work_in_the_middle_goes_on_whoever_is_restarted() {
    for place in 0..3 {
        let mut links = chain(works(), false).await;
        let mut hasty = said("Take your time");
        hasty["configuration"] = json!({"returnImmediately": true});
        let task = links[0].client().call("SendMessage", hasty).await["task"].clone();
        let (started, go) = links[2].wait.clone();
        started.notified().await;
        links[place].restart().await;
        if place == 2 {
            // It only looks, so it runs again.
            started.notified().await;
        }
        go.notify_one();
        let done = links[0].client().until(&task, "TASK_STATE_COMPLETED").await;
        assert_eq!(done["artifacts"][0]["parts"][0]["text"], "waited", "restarted {place}");
        // Nobody was given the work twice.
        for link in &links {
            let list = link.client().call("ListTasks", json!({})).await;
            assert_eq!(list["totalSize"], 1, "restarted {place}: {}", link.id);
        }
    }
}

#[tokio::test]
async fn cancelling_travels_down_to_whoever_works_or_waits() {
    let works_on = chain(works(), false).await;
    let mut hasty = said("Take your time");
    hasty["configuration"] = json!({"returnImmediately": true});
    let task = works_on[0].client().call("SendMessage", hasty).await["task"].clone();
    works_on[2].wait.0.notified().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    works_on[0].client().call("CancelTask", json!({"id": task["id"]})).await;
    let waits = chain(asks(), true).await;
    let task = waits[0].client().send("The weather?").await;
    waits[0].client().call("CancelTask", json!({"id": task["id"]})).await;
    for links in [&works_on, &waits] {
        for link in links {
            let task = link.task().await;
            link.client().until(&task, "TASK_STATE_CANCELED").await;
        }
    }
}

#[tokio::test]
async fn what_may_be_used_gets_less_from_agent_to_agent() {
    let budget = Budget { steps: Some(10), ..Budget::default() };
    let links = chain_with(asks(), true, budget).await;
    links[0].client().send("The weather?").await;
    for (place, left) in [(1, 9), (2, 8)] {
        let task = links[place].task().await;
        let id = SessionId::from(task["id"].as_str().unwrap());
        let entries = read_all(&*links[place].up.as_ref().unwrap().1, &id).await.unwrap();
        let Event::SessionStarted { metadata, .. } = &entries[0].event else { panic!() };
        assert_eq!(metadata.get("given_budget").unwrap()["steps"], left, "{}", links[place].id);
    }
}

#[tokio::test]
async fn what_was_used_down_the_chain_counts_all_the_way_up() {
    let llm = Decider::new().at("route", local()).answer("Sunny.");
    let links = chain(llm.at("tool", tool("llm", json!({"prompt": "x"}))), false).await;
    let task = links[0].client().send("The weather?").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    // Whoever is no agent of ours is not told.
    assert!(task["metadata"].get("duologue/usage").is_none(), "{task}");
    let mut below = 0;
    for link in links.iter().rev() {
        let id = SessionId::from(link.task().await["id"].as_str().unwrap());
        let entries = read_all(&*link.up.as_ref().unwrap().1, &id).await.unwrap();
        let (mut own, mut elsewhere) = (0, 0);
        for entry in &entries {
            match &entry.event {
                Event::AgentMessage { usage, .. } => own += usage.tokens(),
                Event::FunctionAnswered { usage, .. } => elsewhere += usage.tokens(),
                _ => {}
            }
        }
        assert_eq!(elsewhere, below, "{}", link.id);
        assert!(own >= 10, "{}", link.id);
        below = own + elsewhere;
    }
}

#[tokio::test]
async fn a_used_up_budget_is_asked_about_up_the_chain_and_granted_down() {
    let budget = Budget { steps: Some(3), ..Budget::default() };
    let human = json!({"decision": "need_human_input", "answer": ""});
    let last = Decider::new().at("route", local()).answer("Done after all.");
    let c = Link::new("c", last.at("tool", tool("llm", json!({"prompt": "x"})))).await;
    let pass = Decider::new().at("route", remote("c")).at("returned", &human);
    let a = Link::with_budget("a", pass, budget).await;
    a.knows(&c).await;
    // One step went into the first decision, so two were left, and two decisions used them.
    let task = a.client().send("Do it").await;
    let question = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(question.contains("steps used up (2 of 2 steps); grant more?"), "{task}");
    let task = a.client().send_to(&task, "yes").await;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Done after all.", "{task}");
}

#[tokio::test]
async fn a_request_that_comes_back_is_refused() {
    let a = Link::new("a", Decider::new().at("route", remote("b"))).await;
    let b = Link::new("b", Decider::new().at("route", remote("a"))).await;
    a.knows(&b).await;
    b.knows(&a).await;
    let task = a.client().send("Round and round").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    let why = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(why.contains("circle"), "{why}");
}

#[tokio::test]
async fn missing_credentials_stay_missing_credentials_up_the_chain() {
    let wants = duologue_core::tool(
        "ask_credentials",
        "Asks for credentials.",
        Effect::Pure,
        |_: Word, _| async { Ok("") },
    )
    .execution(duologue_core::Execution::Human);
    let turns = [
        crate::support::Turn::call(
            "ask_credentials",
            json!({"question": "A token for the shop", "word": "x"}),
        ),
        crate::support::Turn::text("Bought.").expect("it is there"),
    ];
    let last = duologue_core::Agent::builder("last", duologue_behaviors::ReAct::default())
        .model(Arc::new(duologue_models::Scripted::new(turns)))
        .tools(duologue_core::Toolbox::new().with(wants))
        .build();
    let serve = |agent: duologue_core::Agent| async {
        let store = Arc::new(duologue_core::MemoryStore::new());
        duologue_a2a::Server::new(agent, store).start().await.unwrap()
    };
    let last = serve(last).await;
    let none = duologue_a2a::Credentials::none();
    let far = duologue_a2a::Remote::connect(last.url(), &none).await.unwrap();
    let middle = serve(far.agent("middle")).await;
    let first = Link::new("first", Decider::new().at("route", remote("middle"))).await;
    first.up.as_ref().unwrap().2.directory().add(middle.url()).await.unwrap();
    let task = first.client().send("Buy it").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{task}");
    let question = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(question.ends_with("A token for the shop"), "{question}");
    for serving in [&middle, &last] {
        let list = Client::new(serving).call("ListTasks", json!({})).await;
        assert_eq!(list["tasks"][0]["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{list}");
    }
    let task = first.client().send_to(&task, "it is there").await;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Bought.", "{task}");
}
