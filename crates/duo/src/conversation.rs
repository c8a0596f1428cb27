//! A turn under somebody's eyes: shown as it happens, stopped by Ctrl-C, asked for what it needs.

use std::future::Future;

use duologue_core::{Message, Outcome, Reply, Session, SessionError};

use crate::{
    approval::{self, Asked},
    exit::Exit,
    failure::{Done, Failure},
    terminal::{Screen, inquiry_lines},
};

/// Say something, or go on with what is there, and see the turn through: a person at the terminal
/// is asked for whatever it needs.
pub(crate) async fn converse(
    session: &Session,
    screen: &mut Screen,
    message: Option<Message>,
) -> Result<Reply, Failure> {
    screen.learn(session).await?;
    let mut reply = match message {
        Some(message) => follow(session, screen, session.reply(message)).await?,
        None => follow(session, screen, session.resume()).await?,
    };
    while matches!(reply.outcome, Outcome::InputRequired { .. }) && screen.can_ask() {
        match approval::ask(session, screen).await? {
            Asked::Answered => reply = follow(session, screen, session.resume()).await?,
            Asked::Left => break,
        }
    }
    Ok(reply)
}

/// Tell how a one-task command ended: the answer, what it waits for, and the exit code.
pub(crate) fn conclude(session: &Session, screen: &mut Screen, reply: &Reply) -> Done {
    match &reply.outcome {
        Outcome::Completed => screen.answer(&reply.text())?,
        Outcome::InputRequired { inquiries } => {
            for inquiry in inquiries {
                screen.line(&inquiry_lines(screen.paint(), session.id(), inquiry))?;
            }
        }
        other => {
            let text = reply.text();
            if !text.is_empty() {
                screen.answer(&text)?;
            }
            if !screen.is_terminal() {
                screen.line(&format!("duo: {other}"))?;
            }
        }
    }
    Ok(Exit::from(&reply.outcome))
}

/// Show what happens until the work is done. The first Ctrl-C cancels, a second one ends the
/// program: the journal is safe at any moment.
async fn follow(
    session: &Session,
    screen: &mut Screen,
    work: impl Future<Output = Result<Reply, SessionError>>,
) -> Result<Reply, Failure> {
    let mut events = session.events();
    tokio::pin!(work);
    let mut stopping = false;
    let reply = loop {
        tokio::select! {
            reply = &mut work => break reply,
            live = events.next() => screen.show(&live?)?,
            signal = tokio::signal::ctrl_c() => {
                signal?;
                if stopping {
                    std::process::exit(Exit::Aborted as i32);
                }
                stopping = true;
                session.cancel("Ctrl-C");
            }
        }
    };
    while !events.is_caught_up() {
        screen.show(&events.next().await?)?;
    }
    Ok(reply?)
}
