//! `duo sessions`: what was said before, and going on with it.

use std::{io::Write, sync::Arc};

use duologue_core::{
    Answer, CallId, Entry, Event, ListQuery, Mail, Session, SessionId, SessionOptions, StoreError,
    read_all,
};
use jiff::{Timestamp, tz::TimeZone};

use crate::{
    cli::{self, AnswerKind, ExportFormat, Recording},
    commands::bench::Benched,
    conversation::{conclude, converse},
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::{
        Paint, Screen, Speakers, Style, call_lines, clip, entry_line, inquiry_lines, outcome_line,
        visible,
    },
};

pub(crate) async fn list(house: &House, args: cli::List) -> Done {
    let query = ListQuery { limit: args.limit, status: args.status, ..ListQuery::default() };
    let found = house.store().await?.list(query).await?;
    let mut out = std::io::stdout().lock();
    for session in &found {
        if args.json {
            writeln!(out, "{}", serde_json::to_string(session)?)?;
            continue;
        }
        let style = match session.status.as_str() {
            "completed" => Style::Good,
            "input_required" | "running" | "aborted" => Style::Warning,
            "new" => Style::Dim,
            _ => Style::Bad,
        };
        let status = house.paint.text(style, format!("{:<14}", session.status));
        let id = house.paint.text(Style::Bold, &session.id);
        let when = local_time(session.updated_at);
        writeln!(out, "{id}  {when}  {status} {:<10} {}", session.agent, clip(&session.title, 60))?;
    }
    if found.is_empty() && !args.json {
        writeln!(std::io::stderr(), "no sessions yet; `duo chat` begins one")?;
    }
    Ok(Exit::Completed)
}

pub(crate) async fn show(house: &House, args: cli::Show) -> Done {
    let id = house.find(&args.id).await?;
    let entries = read_all(&*house.store().await?, &id).await?;
    let mut out = std::io::stdout().lock();
    if args.json {
        return json_lines(&mut out, &entries);
    }
    writeln!(out, "{}", house.paint.text(Style::Dim, format!("session {id}")))?;
    let mut speakers = Speakers::default();
    for entry in &entries {
        speakers.hear(entry);
        let text = transcript(house.paint, &speakers, &id, entry, args.full);
        if let Some(text) = text {
            let number = house.paint.text(Style::Dim, format!("{:>4} ", entry.seq));
            writeln!(out, "{number}{}", text.replace('\n', "\n     "))?;
        }
    }
    Ok(Exit::Completed)
}

/// An entry as a reader of the whole conversation sees it.
fn transcript(
    paint: Paint,
    speakers: &Speakers,
    id: &SessionId,
    entry: &Entry,
    full: bool,
) -> Option<String> {
    let text = match &entry.event {
        Event::AgentMessage { aside: Some(_), .. } => return None,
        Event::AgentMessage { message, stop, .. } => {
            let mut lines = Vec::new();
            let thought = message.reasoning();
            if !thought.is_empty() {
                lines.push(paint.text(Style::Dim, visible(thought.trim())));
            }
            let said = message.text();
            if !said.trim().is_empty() {
                lines.push(visible(said.trim()));
            }
            lines.extend(call_lines(paint, entry.run, message));
            if stop.is_none() {
                lines.push(paint.text(Style::Warning, "(cut off)"));
            }
            lines.join("\n")
        }
        Event::ToolEnded { result, .. } if full => {
            format!("  ↳ {}: {}", result.status, visible(&result.prompt_text()))
        }
        Event::ExternalAction { inquiry } => inquiry_lines(paint, id, inquiry),
        Event::ExternalActionResult { answer, by, .. } => {
            let what = match answer {
                Answer::Approve => "approved".to_owned(),
                Answer::ApproveAlways => "approved for the session".to_owned(),
                Answer::Deny { reason } if reason.is_empty() => "denied".to_owned(),
                Answer::Deny { reason } => format!("denied: {reason}"),
                Answer::Edit { arguments } => format!("approved with {arguments}"),
                Answer::Result { content, .. } => format!("answered with {} parts", content.len()),
            };
            let by = by.as_deref().map(|by| format!(" ({by})")).unwrap_or_default();
            paint.text(Style::Warning, format!("! {what}{by}"))
        }
        Event::AgentResponseEnd { outcome, .. } => outcome_line(paint, outcome)?,
        _ => return entry_line(paint, speakers, entry),
    };
    (!text.is_empty()).then(|| speakers.marked(paint, entry.run, &text))
}

pub(crate) async fn resume(house: &House, args: cli::Resume) -> Done {
    let id = house.find(&args.id).await?;
    let session = open(house, &id).await?;
    let screen = Screen::new(house.paint, args.json, args.verbose);
    go_on(&session, screen).await
}

pub(crate) async fn answer(house: &House, args: cli::Answer) -> Done {
    let id = house.find(&args.id).await?;
    let call = CallId::from(args.call.as_str());
    let answer = answer_of(&args)?;
    let store = house.store().await?;
    let by = std::env::var("USER").ok();
    let is_benched = benched(house, &id).await?.is_some();
    let session = match open(house, &id).await {
        Ok(session) if !args.no_resume => session,
        // Whoever has the session open takes the answer in, or the run that it belongs to.
        opened => {
            if let Err(failure) = opened
                && !is_benched
                && !is_in_use(house, &id).await
            {
                return Err(failure);
            }
            store.post(&id, Mail::Answer { id: call, answer, by }).await?;
            writeln!(std::io::stderr(), "left the answer for session {id}")?;
            return Ok(Exit::Completed);
        }
    };
    session.answer(&call, answer, by).map_err(Failure::usage)?;
    let screen = Screen::new(house.paint, args.json, args.verbose);
    go_on(&session, screen).await
}

async fn is_in_use(house: &House, id: &SessionId) -> bool {
    let Ok(store) = house.store().await else { return false };
    matches!(store.claim(id).await, Err(StoreError::Busy { .. }))
}

async fn go_on(session: &Session, mut screen: Screen) -> Done {
    let mut requests = session.collect_mail().await?.into_iter();
    let mut reply = converse(session, &mut screen, None).await?;
    while !matches!(reply.outcome, duologue_core::Outcome::InputRequired { .. }) {
        let Some(request) = requests.next() else { break };
        reply = converse(session, &mut screen, Some(request)).await?;
    }
    conclude(session, &mut screen, &reply)
}

fn answer_of(args: &cli::Answer) -> Result<Answer, Failure> {
    let value = args.value.as_deref();
    Ok(match args.answer {
        AnswerKind::Approve => Answer::Approve,
        AnswerKind::Always => Answer::ApproveAlways,
        AnswerKind::Deny => {
            let reason = args.reason.as_deref().or(value).unwrap_or_default();
            Answer::Deny { reason: reason.to_owned() }
        }
        AnswerKind::Edit => {
            let text = value.ok_or_else(|| Failure::usage("edit needs the arguments as JSON"))?;
            let arguments = serde_json::from_str(text)
                .map_err(|error| Failure::usage(format!("the arguments are not JSON: {error}")))?;
            Answer::Edit { arguments }
        }
        AnswerKind::Result => {
            Answer::text(value.ok_or_else(|| Failure::usage("result needs the result's text"))?)
        }
    })
}

/// The benchmark that a session belongs to.
async fn benched(house: &House, id: &SessionId) -> Result<Option<Benched>, Failure> {
    Ok(Benched::of(house.store().await?.read(id, 0, 1).await?.first()))
}

/// Refuse to go on alone with a session that has its user and its tools in a benchmark.
pub(crate) async fn check_at_home(house: &House, id: &SessionId) -> Result<(), Failure> {
    match benched(house, id).await? {
        None => Ok(()),
        Some(_) => Err(Failure::usage(format!(
            "session {id} belongs to a `duo bench run`, which goes on with it when the same command \
             is given again; `duo sessions answer` reaches it there"
        ))),
    }
}

/// Take up a session with the agent it was held with.
pub(crate) async fn open(house: &House, id: &SessionId) -> Result<Session, Failure> {
    check_at_home(house, id).await?;
    let plan = house.plan_of(id).await?;
    let agent = house.agent(&plan, &Recording::default()).await?;
    let options = SessionOptions { ..house.session_options(&plan) };
    let store = house.store().await?;
    Session::open(&agent, store, id, options).await.map_err(|error| match &error {
        duologue_core::SessionError::Store(StoreError::Busy { .. }) => Failure::new(format!(
            "{error}; `duo sessions answer` reaches it there, or wait until it is done"
        )),
        _ => error.into(),
    })
}

pub(crate) async fn fork(house: &House, args: cli::Fork) -> Done {
    let id = house.find(&args.id).await?;
    let store = house.store().await?;
    let copy = duologue_core::fork(&*store, &id, args.at).await?;
    writeln!(std::io::stdout(), "{copy}")?;
    Ok(Exit::Completed)
}

pub(crate) async fn replay(house: &House, args: cli::Replay) -> Done {
    let id = house.find(&args.id).await?;
    let plan = house.plan_of(&id).await?;
    let entries = read_all(&*house.store().await?, &id).await?;
    let agent = match Benched::of(entries.first()) {
        Some(benched) => benched.mute_agent(house, &plan)?,
        None => house.mute_agent(&plan)?,
    };
    let mut out = std::io::stdout().lock();
    if !args.quiet {
        let mut speakers = Speakers::default();
        for entry in &entries {
            speakers.hear(entry);
            if let Some(text) = transcript(house.paint, &speakers, &id, entry, false) {
                writeln!(out, "{text}")?;
            }
        }
    }
    match duologue_core::replay(&agent, &entries) {
        Ok(checked) => {
            let text = format!("replayed {} entries; {checked} decisions the same", entries.len());
            writeln!(out, "{}", house.paint.text(Style::Good, text))?;
            Ok(Exit::Completed)
        }
        Err(divergence) => Err(Failure::new(divergence)),
    }
}

pub(crate) async fn export(house: &House, args: cli::Export) -> Done {
    let id = house.find(&args.id).await?;
    let entries = read_all(&*house.store().await?, &id).await?;
    let mut text = Vec::new();
    match args.format {
        ExportFormat::Jsonl => {
            json_lines(&mut text, &entries)?;
        }
        ExportFormat::Markdown => text.extend(markdown(&id, &entries).into_bytes()),
    }
    match &args.output {
        None => std::io::stdout().lock().write_all(&text)?,
        Some(file) => std::fs::write(file, text)
            .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?,
    }
    Ok(Exit::Completed)
}

fn json_lines(out: &mut impl Write, entries: &[Arc<Entry>]) -> Done {
    for entry in entries {
        serde_json::to_writer(&mut *out, entry)?;
        writeln!(out)?;
    }
    Ok(Exit::Completed)
}

/// A conversation as a text for people.
fn markdown(id: &SessionId, entries: &[Arc<Entry>]) -> String {
    format!("# Session {id}\n{}", markdown_of(entries))
}

/// Entries as a text for people.
pub(crate) fn markdown_of(entries: &[Arc<Entry>]) -> String {
    let mut text = String::new();
    for entry in entries {
        let part = match &entry.event {
            Event::UserRequest { message, .. } => format!("## User\n\n{}\n", message.text()),
            Event::AgentMessage { message, .. } => {
                let mut part = format!("## Agent\n\n{}\n", message.text().trim());
                for call in message.tool_calls() {
                    part += &format!("\n- calls `{}` with `{}`\n", call.name, call.arguments);
                }
                part
            }
            Event::ToolEnded { result, .. } => {
                let body = result.prompt_text();
                let fence = fence_for(&body);
                format!("`{}` ({}):\n\n{fence}\n{body}\n{fence}\n", result.name, result.status)
            }
            Event::AgentResponseEnd { outcome, .. } => format!("*{outcome}*\n"),
            _ => continue,
        };
        text.push('\n');
        text.push_str(&part);
    }
    text
}

/// A fence that the text does not close by itself.
fn fence_for(text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest + 1)
}

pub(crate) async fn delete(house: &House, args: cli::Delete) -> Done {
    let mut ids = Vec::new();
    for prefix in &args.ids {
        ids.push(house.find(prefix).await?);
    }
    let names: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
    if !house.may_delete(&names.join(", "))? {
        return Ok(Exit::Aborted);
    }
    let store = house.store().await?;
    for id in ids {
        // Somebody who is in it would write into nothing.
        let claim = store.claim(&id).await?;
        store.delete(&id).await?;
        drop(claim);
        writeln!(std::io::stdout(), "deleted {id}")?;
    }
    Ok(Exit::Completed)
}

pub(crate) fn local_time(ms: i64) -> String {
    match Timestamp::from_millisecond(ms) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fence_for("plain"), "```");
        assert_eq!(fence_for("a ```` b"), "`````");
    }
}
