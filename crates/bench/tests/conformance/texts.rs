//! Prompts (their sections, not our wording), tasks as text, and scores.

use std::sync::Arc;

use duologue_bench::{
    Domain, Task, Value,
    agents::{GroundTruthAgent, LlmAgent, SoloAgent, StepDetail},
    clock,
    llm::{Generated, Llm, LlmError, Prompt, ToolList},
    metrics::pass_hat_k,
    users::{Guidelines, UserSimulator},
};
use futures::future::BoxFuture;

use crate::support::{Check, Goldens, same, text};

pub fn prompts(goldens: &Goldens) -> Check {
    let Some(rows) = goldens.lines("prompts.jsonl") else { return Check::absent("prompts.jsonl") };
    let mut check = Check::new("prompts.jsonl");
    let guidelines = Guidelines::load(&goldens.data).unwrap();
    for row in &rows {
        let name = text(&row["domain"]);
        let Some((domain, tasks)) = goldens.domain(&name) else {
            check.wait(&name);
            continue;
        };
        let id = text(&row["task_id"]);
        let task = tasks.task(&id).cloned();
        let result = prompt(domain, task, &guidelines, row);
        check.case(|| format!("{name} {} {id}", text(&row["kind"])), result);
    }
    check
}

fn prompt(
    domain: &Arc<Domain>,
    task: Option<Arc<Task>>,
    guidelines: &Guidelines,
    row: &Value,
) -> Result<(), String> {
    let llm: Arc<dyn Llm> = Arc::new(Mute);
    let kind = text(&row["kind"]);
    let kind = kind.split('(').next().unwrap();
    let agents = || ToolList::new(domain.agent.shown());
    let task = || task.as_ref().ok_or("no such task");
    let ours = match kind {
        "llm_agent" => {
            // The domain may be in another variant than the prompt's: the policy is its own then.
            let policy = section(&text(&row["prompt"]), "policy").unwrap_or_default();
            let policy = match policy.contains(&domain.policy) {
                true => domain.policy.clone(),
                false => policy,
            };
            LlmAgent::new(llm, agents(), &policy).system_prompt().to_owned()
        }
        "llm_agent_gt" => {
            let agent =
                GroundTruthAgent::new(llm, agents(), "POLICY", task()?, StepDetail::WithArguments);
            agent.map_err(|e| e.to_string())?.system_prompt().to_owned()
        }
        "llm_agent_solo" => {
            let users = domain.user.iter().flat_map(|kit| kit.shown());
            let tools = ToolList::new(domain.agent.shown().chain(users));
            let agent = SoloAgent::new(llm, tools, "POLICY", task()?).map_err(|e| e.to_string())?;
            let names: Vec<Value> = agent.tools().names().map(Value::from).collect();
            same("the tools", &Value::from(names), &row["tools"])?;
            agent.system_prompt().to_owned()
        }
        "user_simulator" => {
            let task = task()?;
            let tools = domain.user_tools(task);
            let names: Vec<Value> = tools.names().map(Value::from).collect();
            let golden = match &row["user_tools"] {
                Value::None => Value::list([]),
                names => names.clone(),
            };
            same("the user's tools", &Value::from(names), &golden)?;
            let user = UserSimulator::new(llm, tools, guidelines, &task.user_scenario.to_string());
            return same("the prompt", user.system_prompt().to_owned(), text(&row["prompt"]));
        }
        other => return Err(format!("unknown kind {other}")),
    };
    let golden = text(&row["prompt"]);
    for name in ["policy", "resolution_steps", "ticket"] {
        same(name, section(&ours, name), section(&golden, name))?;
    }
    same("instructions", section(&ours, "instructions").is_some(), true)
}

fn section(prompt: &str, name: &str) -> Option<String> {
    let (_, rest) = prompt
        .split_once(&format!("\n<{name}>\n"))
        .or_else(|| prompt.strip_prefix(&format!("<{name}>\n")).map(|rest| ("", rest)))?;
    rest.rsplit_once(&format!("\n</{name}>")).map(|(content, _)| content.to_owned())
}

pub fn tasks(goldens: &Goldens) -> Check {
    let Some(rows) = goldens.lines("task_str.jsonl") else {
        return Check::absent("task_str.jsonl");
    };
    let mut check = Check::new("task_str.jsonl");
    for row in &rows {
        let (name, id) = (text(&row["domain"]), text(&row["task_id"]));
        let Some((_, tasks)) = goldens.domain(&name) else {
            check.wait(&name);
            continue;
        };
        let result = match tasks.task(&id) {
            None => Err("no such task".to_owned()),
            Some(task) => same("str", timeless(&task.to_string()), timeless(&text(&row["str"])))
                .and_then(|()| {
                    same("scenario", task.user_scenario.to_string(), text(&row["scenario"]))
                }),
        };
        check.case(|| format!("{name} {id}"), result);
    }
    check
}

/// Messages without a time of their own got the time at which the golden was made.
fn timeless(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("timestamp: "));
    lines.collect::<Vec<_>>().join("\n")
}

pub fn metrics(goldens: &Goldens) -> Check {
    let Some(golden) = goldens.json("metrics.json") else { return Check::absent("metrics.json") };
    let mut check = Check::new("metrics.json");
    for row in golden["pass_hat_k"].items() {
        let number = |name: &str| u64::try_from(row[name].as_i64().unwrap()).unwrap();
        let ours = pass_hat_k(number("n"), number("c"), number("k"));
        check.case(|| format!("{row:?}"), same("pass^k", ours, row["v"].as_f64()));
    }
    for (name, seeds) in golden.entries() {
        if let Some(seed) = name.strip_prefix("seeds_") {
            let ours = clock::trial_seeds(seed.parse().unwrap(), seeds.items().len());
            let ours: Vec<Value> = ours.into_iter().map(Value::from).collect();
            check.case(|| name.to_string(), same("seeds", &Value::from(ours), seeds));
        }
    }
    check
}

/// A model that is never asked.
struct Mute;

impl Llm for Mute {
    fn generate<'a>(&'a self, _: Prompt<'a>) -> BoxFuture<'a, Result<Generated, LlmError>> {
        Box::pin(async { Ok(Generated::default()) })
    }
}
