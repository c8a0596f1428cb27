//! Whole conversations with a scripted model: trajectory, end and counts.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use duologue_bench::{
    Environment, Limits, Message, Mode, Orchestrator, Protocol, Seat, Seated, Task, Value,
    agents::{LlmAgent, SoloAgent},
    llm::{Generated, Llm, LlmError, Prompt, RawCall, ToolList},
    users::{DummyUser, Guidelines, UserSimulator},
};
use duologue_core::ErrorClass;
use futures::future::BoxFuture;

use crate::support::{Check, Goldens, same, text};

pub fn replays(goldens: &Goldens) -> Check {
    conversations(goldens, "orchestrator_replays.jsonl")
}

pub fn edges(goldens: &Goldens) -> Check {
    conversations(goldens, "orchestrator_edge.jsonl")
}

fn conversations(goldens: &Goldens, file: &'static str) -> Check {
    let Some(rows) = goldens.lines(file) else { return Check::absent(file) };
    let mut check = Check::new(file);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for row in &rows {
        let name = text(&row["domain"]);
        if goldens.domain(&name).is_none() {
            check.wait(&name);
            continue;
        }
        let result = runtime.block_on(conversation(goldens, row));
        check.case(|| format!("{name} {} {}", text(&row["name"]), text(&row["task_id"])), result);
    }
    check
}

async fn conversation(goldens: &Goldens, row: &Value) -> Result<(), String> {
    let (domain, tasks) = goldens.domain(&text(&row["domain"])).unwrap();
    let task: Arc<Task> = match row.entry("task") {
        Some(task) => serde_json::from_str(&serde_json::to_string(task).unwrap()).unwrap(),
        None => Arc::clone(tasks.task(&text(&row["task_id"])).ok_or("no such task")?),
    };
    let mode = if row["solo"].truthy() { Mode::Solo } else { Mode::Dialogue };
    let environment =
        Environment::for_task(domain, mode, Some(&task)).map_err(|e| e.to_string())?;
    let script = Arc::new(Script(Mutex::new(row["script"].items().iter().cloned().collect())));
    let agent_tools = ToolList::new(domain.agent.shown());
    let user_tools = || domain.user.iter().flat_map(|kit| kit.shown());
    let policy = environment.policy().to_owned();
    let llm = || Arc::clone(&script) as Arc<dyn Llm>;
    let agent: Box<dyn Seat> = match row["agent"].as_str() {
        Some("llm_agent_solo") => {
            let tools = ToolList::new(domain.agent.shown().chain(user_tools()));
            match SoloAgent::new(llm(), tools, &policy, &task) {
                Ok(agent) => Box::new(Seated::new(agent)),
                // A task that is not for this agent never begins.
                Err(_) if row.entry("exception").is_some() => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        _ => Box::new(Seated::new(LlmAgent::new(llm(), agent_tools, &policy))),
    };
    let user: Box<dyn Seat> = match mode {
        Mode::Solo => Box::new(Seated::new(DummyUser)),
        Mode::Dialogue => Box::new(Seated::new(UserSimulator::new(
            llm(),
            ToolList::new(user_tools()),
            &Guidelines::own(),
            &task.user_scenario.to_string(),
        ))),
    };
    let number = |name: &str| u32::try_from(row[name].as_i64().unwrap()).unwrap();
    let limits =
        Limits { max_steps: number("max_steps"), max_errors: number("max_errors"), timeout: None };
    let protocol = match row["validate_communication"].truthy() {
        true => Protocol::Enforced,
        false => Protocol::Free,
    };
    let mut orchestrator = Orchestrator::new(environment, agent, user, task)
        .limits(limits)
        .protocol(protocol)
        .seed(300);
    let outcome = orchestrator.run().await;
    let trajectory = match (&outcome, row.entry("exception")) {
        (Ok(simulation), None) => {
            same(
                "termination_reason",
                simulation.termination_reason.name().to_owned(),
                text(&row["termination_reason"]),
            )?;
            &row["trajectory"]
        }
        (Err(_), Some(_)) => &row["trajectory_at_exception"],
        (Ok(simulation), Some(exception)) => {
            return Err(format!(
                "ended by {}, the golden has {exception:?}",
                simulation.termination_reason.name()
            ));
        }
        (Err(error), None) => return Err(format!("broke off: {error}")),
    };
    let ours: Vec<String> = orchestrator.trajectory().iter().map(told).collect();
    let golden: Vec<String> = trajectory
        .items()
        .iter()
        .map(|message| {
            let json = serde_json::to_string(message).unwrap();
            told(&serde_json::from_str::<Message>(&json).unwrap())
        })
        .collect();
    same("trajectory", ours, golden)?;
    same("num_errors", i64::from(orchestrator.errors()), row["num_errors"].as_i64().unwrap())?;
    same("step_count", i64::from(orchestrator.steps()), row["step_count"].as_i64().unwrap())?;
    let left = i64::try_from(script.0.lock().unwrap().len()).unwrap();
    same("script_left", left, row["script_left"].as_i64().unwrap())?;
    same("db_hash", orchestrator.environment().db_hash(), text(&row["db_hash"]))?;
    let golden = row["user_db_hash"].as_str().map(str::to_owned);
    same("user_db_hash", orchestrator.environment().user_db_hash(), golden)
}

/// A message without what depends on the clock. Python's wording of errors does not count.
fn told(message: &Message) -> String {
    let calls: Vec<String> = message
        .tool_calls()
        .iter()
        .map(|call| {
            format!(
                "{} {} {} {}",
                call.id,
                call.name,
                call.requestor.name(),
                duologue_bench::python::repr(&call.arguments)
            )
        })
        .collect();
    let (role, error) = match message {
        Message::System(_) => ("system", false),
        Message::Assistant(_) => ("assistant", false),
        Message::User(_) => ("user", false),
        Message::Tool(answer) => (answer.requestor.name(), answer.error),
    };
    let content = match message.content() {
        Some(content) if error && content.contains("argument") => Some("an interpreter's error"),
        content => content,
    };
    format!("{role} {error} {content:?} {calls:?}")
}

/// A model that says what a script says, to whoever asks.
struct Script(Mutex<VecDeque<Value>>);

impl Llm for Script {
    fn generate<'a>(&'a self, _: Prompt<'a>) -> BoxFuture<'a, Result<Generated, LlmError>> {
        let Some(turn) = self.0.lock().unwrap().pop_front() else {
            let (class, message) = (ErrorClass::BadRequest, "the script is over".to_owned());
            return Box::pin(async move { Err(LlmError::Provider { class, message }) });
        };
        let calls = turn["tool_calls"].items().iter().map(|call| RawCall {
            id: text(&call["id"]),
            name: text(&call["name"]),
            arguments: call["arguments"].clone(),
        });
        let calls: Vec<RawCall> = calls.collect();
        let generated = Generated {
            content: turn["content"].as_str().map(str::to_owned),
            tool_calls: (!calls.is_empty()).then_some(calls),
            ..Generated::default()
        };
        Box::pin(async move { Ok(generated) })
    }
}
