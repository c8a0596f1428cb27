//! `duo run`: one task, then exit.

use std::io::Read;

use duologue_core::{Message, Session};

use crate::{
    cli::Run,
    conversation::{conclude, converse},
    failure::{Done, Failure},
    house::House,
    terminal::{Screen, Style},
};

/// The most of standard input that is taken as a task.
const MOST_INPUT: u64 = 4 << 20;

pub(crate) async fn run(house: &House, args: Run) -> Done {
    let task = if args.task == "-" { from_stdin()? } else { args.task };
    if task.trim().is_empty() {
        return Err(Failure::usage("the task is empty"));
    }
    let plan = house.plan()?;
    let agent = house.agent(&plan, &args.recording).await?;
    let store = house.store().await?;
    let session = Session::start(&agent, store, house.session_options(&plan))?;
    let mut screen = Screen::new(house.paint, args.json, args.verbose);
    if screen.is_terminal() {
        let title = format!("{} · {} · session {}", agent.name(), plan.model, session.id());
        screen.line(&house.paint.text(Style::Dim, title))?;
        if let Some(notice) = house.project_notice() {
            screen.line(&house.paint.text(Style::Dim, notice))?;
        }
    }
    let reply = converse(&session, &mut screen, Some(Message::user(task))).await?;
    conclude(&session, &mut screen, &reply)
}

fn from_stdin() -> Result<String, Failure> {
    let mut task = String::new();
    std::io::stdin().lock().take(MOST_INPUT + 1).read_to_string(&mut task)?;
    if task.len() as u64 > MOST_INPUT {
        return Err(Failure::usage(format!("standard input is longer than {MOST_INPUT} bytes")));
    }
    Ok(task)
}
