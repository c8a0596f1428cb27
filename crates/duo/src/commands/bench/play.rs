//! `duo bench play`: a person in one of the seats.

use std::{
    io::{BufRead, Write},
    sync::Arc,
};

use duologue_bench::{
    AgentError, Incoming, Message, Mode, Registry, Requestor, Seat, ToolCall, Utterance, python,
    registry::{AgentEntry, UserEntry},
    run::{Keep, run as run_plan},
    users,
};
use futures::future::BoxFuture;

use super::{
    args::{Play, Side},
    load, seats, show,
};
use crate::{
    exit::Exit,
    failure::{Done, Failure},
    house::{House, OwnTools},
};

pub(super) async fn play(
    house: &House,
    mut registry: Registry,
    args: Play,
    agent: Option<String>,
) -> Done {
    let loaded = load(&registry, &args.source.domain, args.source.data)?;
    let mut tasks = seats::choose(&loaded, &args.choice)?;
    tasks.truncate(1);
    let task = tasks.first().cloned();
    let mut cast = args.cast;
    let me = UserEntry {
        needs_llm: false,
        make: Arc::new(|casting| {
            let tools = casting.tools.names().map(str::to_owned).collect();
            Ok(Box::new(Person { side: Side::User, tools }) as Box<dyn Seat>)
        }),
    };
    let agent = match args.side {
        Side::User => {
            registry.register_user("person", me.needs_llm, move |casting| (me.make)(casting));
            cast.user = Some("person".to_owned());
            agent
        }
        Side::Agent => {
            let entry = AgentEntry {
                mode: Mode::Dialogue,
                needs_llm: false,
                make: Arc::new(|casting| {
                    let tools = casting.tools.names().map(str::to_owned).collect();
                    Ok(Box::new(Person { side: Side::Agent, tools }) as Box<dyn Seat>)
                }),
            };
            registry.register_agent("person", entry.mode, entry.needs_llm, move |casting| {
                (entry.make)(casting)
            });
            Some("person".to_owned())
        }
    };
    let mut plan =
        seats::assemble(house, &registry, loaded, tasks, &cast, agent, OwnTools::StayHere).await?;
    plan.retries = 0;
    let mut out = std::io::stdout();
    if let Some(task) = &task {
        match args.side {
            Side::User => writeln!(out, "{}\n", task.user_scenario)?,
            Side::Agent => writeln!(out, "{}\n", plan.domain.policy)?,
        }
    }
    let results = run_plan(Arc::new(plan), &mut Keep::in_memory(), |_| {}).await;
    let results = results.map_err(Failure::new)?;
    for simulation in &results.simulations {
        writeln!(out, "\n{}", show::simulation_line(house, simulation))?;
        if let Some(info) = &simulation.reward_info {
            show::reward_lines(house, info, &mut out)?;
        }
    }
    Ok(Exit::Completed)
}

/// Somebody at the keyboard.
struct Person {
    side: Side,
    tools: Vec<String>,
}

impl Person {
    fn speak(&self, message: Incoming) -> Result<Utterance, AgentError> {
        let mut out = std::io::stdout();
        let told = match message {
            Incoming::Begin => Vec::new(),
            Incoming::Said(said) => said.content.into_iter().collect(),
            Incoming::Tool(answer) => answer.content.into_iter().collect(),
            Incoming::Tools(answers) => {
                answers.tool_messages.into_iter().filter_map(|answer| answer.content).collect()
            }
        };
        for text in told {
            let _ = writeln!(out, "  {text}");
        }
        loop {
            let _ = write!(out, "> ");
            let _ = out.flush();
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            let line = line.trim();
            if read.unwrap_or(0) == 0 || line == "/stop" {
                return Ok(Utterance::text(users::STOP));
            }
            if line == "/tools" {
                let _ = writeln!(out, "  {}", self.tools.join(", "));
            } else if let Some(call) = line.strip_prefix('/') {
                match self.call(call) {
                    Ok(call) => return Ok(Utterance::calls(vec![call])),
                    Err(problem) => {
                        let _ = writeln!(out, "  {problem}");
                    }
                }
            } else if !line.is_empty() {
                return Ok(Utterance { cost: Some(0.0), ..Utterance::text(line) });
            }
        }
    }

    fn call(&self, text: &str) -> Result<ToolCall, String> {
        let (name, arguments) = text.split_once(' ').unwrap_or((text, "{}"));
        let arguments = python::loads(arguments).map_err(|error| error.to_string())?;
        let requestor = match self.side {
            Side::Agent => Requestor::Assistant,
            Side::User => Requestor::User,
        };
        let id = duologue_bench::clock::random_id();
        Ok(ToolCall { id, name: name.to_owned(), arguments, requestor })
    }
}

impl Seat for Person {
    fn begin(&mut self, _: &[Message]) -> Result<(), AgentError> {
        Ok(())
    }

    fn next(&mut self, message: Incoming) -> BoxFuture<'_, Result<Utterance, AgentError>> {
        Box::pin(async move { tokio::task::block_in_place(|| self.speak(message)) })
    }

    fn is_stop(&self, message: &Utterance) -> bool {
        users::is_stop(message)
    }

    fn stop(&mut self, _: Option<&Incoming>) {}

    fn set_seed(&mut self, _: i64) {}
}
