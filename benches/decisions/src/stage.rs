//! The real agent, other agents around it, and a model that is asked at one point only.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use duologue_a2a::{
    BidirectionalAgent, Directory, RouterSettings, Server, Serving,
    a2a::{AgentCard, AgentSkill},
};
use duologue_core::{
    Agent, Behavior, Delta, DeltaStream, Effect, Event, Execution, FailureCause, Latest,
    MemoryStore, Message, Model, Outcome, Part, Request, Role, RunState, Session, SessionOptions,
    Step, StopReason, Store, Tool, ToolCall, Toolbox, read_all, tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cases::{Case, Elsewhere};

/// Other agents that decisions may choose, with what they say they do.
const OTHERS: [(&str, &str, &str); 4] = [
    ("weather", "Weather forecasts for any place", "forecast: Tells the weather of a place"),
    ("translator", "Translates texts between languages", "translate: Translates a text"),
    ("shop", "An online shop", "order: Orders products, checks stock and prices"),
    ("calendar", "Keeps the user's appointments", "appointments: Shows and books appointments"),
];

/// What came of a case.
pub(crate) struct Verdict {
    pub(crate) decision: String,
    pub(crate) is_right: bool,
    pub(crate) is_default: bool,
    pub(crate) took: Duration,
}

/// The other agents, served for as long as this lives.
pub(crate) struct Stage {
    _others: Vec<Serving>,
    directory: Directory,
}

impl Stage {
    pub(crate) async fn new() -> Result<Self> {
        let directory = Directory::in_memory();
        let mut others = Vec::new();
        for (name, description, skill) in OTHERS {
            others.push(serve(&directory, name, description, skill, Elsewhere::Answers).await?);
        }
        Ok(Self { _others: others, directory })
    }

    /// Play a case and see what was decided at the point.
    pub(crate) async fn judge(
        &self,
        point: &'static str,
        case: &Case,
        model: &Arc<dyn Model>,
    ) -> Result<Verdict> {
        let clerk = match case.elsewhere {
            Elsewhere::Answers => None,
            other => {
                let about = "A clerk who does what is asked";
                let skill = "work: Does what is asked";
                Some(serve(&self.directory, "clerk", about, skill, other).await?)
            }
        };
        let spent = Arc::new(Mutex::new(Duration::ZERO));
        let asked = OnlyAt { point, model: Arc::clone(model), spent: Arc::clone(&spent) };
        let agent =
            BidirectionalAgent::new("front", "Front", Arc::new(asked), self.directory.clone())
                .enabled([
                    "echo",
                    "llm",
                    "summarize",
                    "list_agents",
                    "list_servers",
                    "show_agent_card",
                ])
                .tool(Arc::new(delete_file()))
                .settings(RouterSettings {
                    clarification: point == "clarity",
                    decomposition: point == "decomposition",
                    recovery: point == "recovery",
                    confirmation: point == "risk",
                })
                .build()?;
        let store = Arc::new(MemoryStore::new());
        let kept = Arc::clone(&store) as Arc<dyn Store>;
        let session = Session::start(agent.agent(), kept, SessionOptions::default())?;
        for (role, text) in case.before {
            session.observe(Message::new(*role, vec![Part::text(*text)]))?;
        }
        session.reply(case.request).await?;
        let entries = read_all(&*store, session.id()).await?;
        let note = entries.iter().find_map(|entry| match &entry.event {
            Event::Note { topic, data }
                if topic == "decision"
                    && data.get("point").and_then(Value::as_str) == Some(point) =>
            {
                Some(data.clone())
            }
            _ => None,
        });
        if let Some(clerk) = clerk {
            clerk.stop().await;
            self.directory.remove("clerk").await?;
        }
        let note = note.with_context(|| format!("{point} was never decided: {}", case.request))?;
        let word = |field: &str| note.get(field).and_then(Value::as_str).unwrap_or_default();
        let decision = word("decision").to_owned();
        Ok(Verdict {
            is_right: case.right.contains(&decision.as_str()),
            is_default: word("by") == "default",
            decision,
            took: *spent.lock().unwrap_or_else(PoisonError::into_inner),
        })
    }
}

/// A model that is asked at one point; at the others a script goes on in the obvious way.
struct OnlyAt {
    point: &'static str,
    model: Arc<dyn Model>,
    spent: Arc<Mutex<Duration>>,
}

impl Model for OnlyAt {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn ask(&self, request: Request) -> DeltaStream {
        let output = request.options.output.as_ref();
        let point = output.map_or("answer", |output| output.name.as_str());
        if point == self.point {
            let (began, spent) = (Instant::now(), Arc::clone(&self.spent));
            let answer = futures::StreamExt::inspect(self.model.ask(request), move |_| {
                *spent.lock().unwrap_or_else(PoisonError::into_inner) = began.elapsed();
            });
            return Box::pin(answer);
        }
        let needs_clerk = matches!(self.point, "returned" | "recovery" | "risk");
        let last = request.messages.iter().rev().find(|message| message.role == Role::User);
        let says_tool = last.is_some_and(|message| message.text().starts_with("Delete the file"));
        let answer = match point {
            "clarity" => json!({"is_clear": true, "question": ""}),
            "decomposition" => json!({"needs_steps": false, "steps": []}),
            "route" if needs_clerk && !says_tool => {
                json!({"route": "remote", "agent": "clerk", "reason": ""})
            }
            "route" => json!({"route": "local", "agent": "", "reason": ""}),
            "tool" if says_tool => json!({"tool_name": "delete_file", "params": {"path": "x"}}),
            "tool" => json!({"tool_name": "llm", "params": {"prompt": ""}}),
            "returned" => json!({"decision": "need_human_input", "answer": ""}),
            "recovery" => json!({"action": "give_up", "agent": ""}),
            "risk" => json!({"is_risky": false, "why": ""}),
            _ => Value::String("Done.".to_owned()),
        };
        let text = match answer {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let deltas = [Ok(Delta::Text(text)), Ok(Delta::Stop(StopReason::Completed))];
        Box::pin(futures::stream::iter(deltas))
    }
}

/// Something local that may be risky.
fn delete_file() -> impl Tool {
    let about = "Deletes a file for ever. Only when the user asks for exactly that.";
    let deleted = |_: Path, _| async move { Ok("deleted") };
    tool("delete_file", about, Effect::SideEffect, deleted)
}

/// The only argument of `delete_file`.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "nothing is really deleted")]
struct Path {
    /// The file.
    path: String,
}

/// The question to the user that the other agents have.
fn ask_human() -> impl Tool {
    tool("ask_human", "Asks.", Effect::Pure, |_: Question, _| async move { Ok("") })
        .execution(Execution::Human)
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the driver reads the question from the call")]
struct Question {
    /// The question.
    question: String,
}

async fn serve(
    directory: &Directory,
    name: &'static str,
    description: &'static str,
    skill: &'static str,
    does: Elsewhere,
) -> Result<Serving> {
    let agent = Agent::builder(name, Other(does)).description(description);
    let agent = agent.tools(Toolbox::new().with(ask_human())).build();
    let amend = move |card: &mut AgentCard| {
        let (id, text) = skill.split_once(": ").unwrap_or((skill, ""));
        card.skills = vec![AgentSkill {
            id: id.to_owned(),
            name: id.to_owned(),
            description: text.to_owned(),
            tags: Vec::new(),
            examples: None,
            input_modes: None,
            output_modes: None,
            security_requirements: None,
        }];
    };
    let server = Server::new(agent, Arc::new(MemoryStore::new())).card(amend);
    let serving = server.start().await?;
    directory.add(serving.url()).await?;
    Ok(serving)
}

/// Another agent: answers, asks or fails, as a case wants it.
struct Other(Elsewhere);

impl Behavior for Other {
    type State = ();

    fn name(&self) -> &'static str {
        "other"
    }

    fn decide(&self, run: &RunState, (): &()) -> Step {
        match (run.latest(), self.0) {
            (Latest::Calls, _) => Step::Call,
            (Latest::Answer, _) => Step::End(Outcome::Completed),
            (_, Elsewhere::Fails(error)) => Step::End(Outcome::Failed {
                error: error.to_owned(),
                cause: FailureCause::Internal,
            }),
            (_, Elsewhere::Asks(question)) if run.steps() == 0 => {
                let call = ToolCall::new("ask-1", "ask_human", json!({ "question": question }));
                Step::Say(Message::new(Role::Assistant, vec![Part::from(call)]))
            }
            _ => Step::Say(Message::assistant("It is done.")),
        }
    }
}
