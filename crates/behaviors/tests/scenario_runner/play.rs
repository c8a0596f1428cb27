//! Playing a scenario and holding what happened against what was expected.

use std::{
    path::Path,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use duologue_core::{
    Answer, Attendance, CallId, Entry, Event, MemoryStore, Reply, Session, SessionError,
    SessionOptions, SessionState, WhenBusy, read_all, replay,
};
use serde_json::Value;

use super::{
    matching::{covers, fits, line, seen},
    script::{AnswerScript, Scenario, StepScript},
    stage::Stage,
    world::{Fate, MortalStore, Paths, ScriptedModel},
};

/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Play a file; everything that was not as expected.
pub async fn play(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let scenario: Scenario = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
    let stage = Stage::new(&scenario)?;
    let mut play = Play::new(&scenario, stage)?;
    for (number, step) in scenario.steps.iter().enumerate() {
        let at = format!("step {}", number + 1);
        let played = tokio::time::timeout(PATIENCE, play.step(step)).await;
        let played = played.unwrap_or_else(|_| Err(format!("nothing came within {PATIENCE:?}")));
        if let Err(problem) = played {
            return Err(play.explain(&format!("{at}: {problem}")).await);
        }
    }
    let problems = play.verdict().await;
    if problems.is_empty() { Ok(()) } else { Err(play.explain(&problems.join("\n")).await) }
}

struct Play<'a> {
    scenario: &'a Scenario,
    stage: Stage,
    store: MortalStore,
    /// `None` only while one process hands over to the next.
    session: Option<Session>,
    reply: Option<Reply>,
}

impl<'a> Play<'a> {
    fn new(scenario: &'a Scenario, stage: Stage) -> Result<Self, String> {
        let store = MortalStore::new();
        let options = options(scenario);
        let session = Session::start(&stage.agent, Arc::new(store.clone()), options);
        let session = Some(session.map_err(|error| error.to_string())?);
        Ok(Self { scenario, stage, store, session, reply: None })
    }

    fn session(&self) -> &Session {
        self.session.as_ref().unwrap()
    }

    async fn entries(&self) -> Vec<Arc<Entry>> {
        read_all(&self.store, self.session().id()).await.unwrap()
    }

    async fn step(&mut self, step: &StepScript) -> Result<(), String> {
        let actions = [step.say.is_some(), step.answer.is_some(), step.observe.is_some()];
        let actions = actions.into_iter().chain([step.restart, step.resume]);
        if actions.filter(|is_there| *is_there).count() != 1 {
            return Err("a step needs one of say, answer, observe, restart, resume".into());
        }
        if let Some(text) = &step.observe {
            return self.session().observe(text.as_str()).map_err(|error| error.to_string());
        }
        if step.restart {
            self.next_process().await;
            return Ok(());
        }
        for (id, answer) in step.answer.iter().flatten() {
            self.answer(id, answer)?;
        }
        let mut deaths = step.kill_after.iter();
        let mut death = deaths.next();
        self.watch(step, death).await;
        let session = self.session().clone();
        let patrol = step.cancel_while_hanging.then(|| self.cancel_while_hanging());
        let mut result = match &step.say {
            Some(text) => session.reply(text.as_str()).await,
            None => session.resume().await,
        };
        drop(session);
        if let Some(patrol) = patrol {
            patrol.abort();
        }
        while self.store.is_dead() {
            death = deaths.next();
            self.next_process().await;
            self.watch(step, death).await;
            result = self.session().resume().await;
        }
        if let Some(death) = death {
            return Err(format!("the process was to be killed after {death}, which never came"));
        }
        self.store.watch(None);
        let reply = result.map_err(|error: SessionError| error.to_string())?;
        self.reply = Some(reply);
        self.check_reply(step.outcome.as_ref(), step.reply.as_deref())?;
        if let Some(asks) = &step.asks {
            let pending = serde_json::to_value(self.session().pending()).unwrap();
            let expected = Value::Array(asks.clone());
            if !covers(&expected, &pending) {
                return Err(format!("expected to be asked {expected}\nbut it asks {pending}"));
            }
        }
        Ok(())
    }

    fn answer(&self, id: &str, answer: &AnswerScript) -> Result<(), String> {
        let pending = self.session().pending();
        let id = match (id, pending.as_slice()) {
            ("any", [one]) => one.id.clone(),
            ("any", others) => return Err(format!("`any` needs one inquiry, not {others:?}")),
            (id, _) => CallId::from(id),
        };
        let answer = match answer {
            AnswerScript::Approve => Answer::Approve,
            AnswerScript::ApproveAlways => Answer::ApproveAlways,
            AnswerScript::Deny(reason) => Answer::Deny { reason: reason.clone() },
            AnswerScript::Text(text) => Answer::text(text.clone()),
            AnswerScript::Edit(arguments) => {
                Answer::Edit { arguments: Box::new(arguments.clone()) }
            }
        };
        self.session().answer(&id, answer, None).map_err(|error| error.to_string())
    }

    /// Cancel as soon as a model hangs.
    fn cancel_while_hanging(&self) -> tokio::task::JoinHandle<()> {
        let models: Vec<Arc<ScriptedModel>> = self.stage.models.values().cloned().collect();
        let session = self.session().clone();
        tokio::spawn(async move {
            while !models.iter().any(|model| model.hangs.load(Ordering::SeqCst)) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            session.cancel("somebody stopped it");
        })
    }

    /// Look out for the entries after which something happens.
    async fn watch(&self, step: &StepScript, death: Option<&Value>) {
        let mut paths = Paths::new();
        self.entries().await.iter().for_each(|entry| paths.learn(entry));
        let session = Mutex::new(self.session.clone());
        let death = death.cloned();
        let mut cancel = step.cancel_after.clone();
        let mut steer = step.steer_after.as_ref().map(|s| (s.entry.clone(), s.say.clone()));
        self.store.watch(Some(Box::new(move |entry| {
            paths.learn(entry);
            let entry = seen(entry, paths.of(entry));
            if death.as_ref().is_some_and(|pattern| fits(pattern, &entry)) {
                // Let go of the session, or its claim would outlive its process.
                session.lock().unwrap().take();
                return Fate::Dies;
            }
            let live = session.lock().unwrap().clone();
            if let Some(live) = live {
                if cancel.as_ref().is_some_and(|pattern| fits(pattern, &entry)) {
                    cancel = None;
                    live.cancel("somebody stopped it");
                }
                if steer.as_ref().is_some_and(|(pattern, _)| fits(pattern, &entry))
                    && let Some((_, text)) = steer.take()
                {
                    tokio::spawn(async move {
                        live.reply_when_busy(text.as_str(), WhenBusy::Steer).await
                    });
                }
            }
            Fate::Lives
        })));
    }

    /// Another process takes the session up.
    async fn next_process(&mut self) {
        self.store.watch(None);
        let id = self.session().id().clone();
        self.session = None;
        self.store = self.store.reborn();
        let options = options(self.scenario);
        for _ in 0..200 {
            let store = Arc::new(self.store.clone());
            // The last process may still be about to let go.
            match Session::open(&self.stage.agent, store, &id, options.clone()).await {
                Ok(session) => {
                    self.session = Some(session);
                    break;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        assert!(self.session.is_some(), "the session was not given back");
        rewind(&self.stage, &self.entries().await);
    }

    fn check_reply(&self, outcome: Option<&Value>, text: Option<&str>) -> Result<(), String> {
        let Some(reply) = &self.reply else {
            return Err("nothing was said, so there is no reply".into());
        };
        let found = serde_json::to_value(&reply.outcome).unwrap();
        let is_expected = match outcome {
            None => true,
            Some(Value::String(name)) => *name == reply.outcome.name(),
            Some(other) => covers(other, &found),
        };
        if !is_expected {
            return Err(format!("expected the outcome {}\nbut it is {found}", outcome.unwrap()));
        }
        let found = Value::String(reply.text());
        match text.map(|text| Value::String(text.to_owned())) {
            Some(text) if !covers(&text, &found) => {
                Err(format!("expected the reply {text}\nbut it is {found}"))
            }
            _ => Ok(()),
        }
    }

    /// Everything that is not as the scenario expects in the end.
    async fn verdict(&self) -> Vec<String> {
        let expect = &self.scenario.expect;
        let mut problems = Vec::new();
        if expect.outcome.is_some() || expect.reply.is_some() {
            problems
                .extend(self.check_reply(expect.outcome.as_ref(), expect.reply.as_deref()).err());
        }
        let entries = self.entries().await;
        let seen = see(&entries);
        problems.extend(expect.journal.as_ref().and_then(|list| differs(list, &seen)));
        problems.extend(misses(&expect.shows, &seen));
        for pattern in &expect.never {
            if let Some(entry) = seen.iter().find(|entry| fits(pattern, entry)) {
                problems.push(format!("never expected {pattern}\nbut there is {}", line(entry)));
            }
        }
        for (name, times) in &expect.ran {
            let ran = self.stage.tools.get(name).map_or(0, |tool| tool.ran.load(Ordering::SeqCst));
            if ran != *times {
                problems.push(format!("expected {name} to run {times} times, but it ran {ran}"));
            }
        }
        for (path, times) in &expect.asked {
            let model = self.stage.models.get(path);
            let asked = model.map_or(0, |model| model.asked.load(Ordering::SeqCst));
            if asked != *times {
                let text = format!("expected {path} to be asked {times} times, but it was {asked}");
                problems.push(text);
            }
        }
        for (path, model) in &self.stage.models {
            problems.extend(model.complaints.lock().unwrap().iter().cloned());
            if model.left_over() > 0 {
                problems
                    .push(format!("{} turns of {path} were never asked for", model.left_over()));
            }
        }
        if let Err(divergence) = replay(&self.stage.agent, &entries) {
            problems.push(format!("a replay differs: {divergence}"));
        }
        if problems.is_empty() && expect.survives_any_cut {
            problems.extend(self.cut_anywhere(&entries).await.err());
        }
        problems
    }

    /// Take the journal up after each of its entries; it must end the same.
    async fn cut_anywhere(&self, entries: &[Arc<Entry>]) -> Result<(), String> {
        let whole = self.reply.as_ref().ok_or("nothing was said")?;
        let started = entries
            .iter()
            .position(|entry| matches!(entry.event, Event::UserRequest { .. }))
            .ok_or("nothing was asked")?;
        for cut in started..entries.len() {
            let stage = Stage::new(self.scenario)?;
            let kept = entries[..=cut].to_vec();
            rewind(&stage, &kept);
            let state = SessionState { schema: duologue_core::SCHEMA_VERSION, entries: kept };
            let store = Arc::new(MemoryStore::new());
            let options = options(self.scenario);
            let session = Session::load_state(&stage.agent, store, &state, options)
                .map_err(|error| error.to_string())?;
            let turn = tokio::time::timeout(PATIENCE, session.resume()).await;
            let after = format!("cut after entry {cut}");
            let reply = turn
                .map_err(|_| format!("{after}: nothing came within {PATIENCE:?}"))?
                .map_err(|error| format!("{after}: {error}"))?;
            if reply.outcome != whole.outcome || reply.text() != whole.text() {
                let found = (&reply.outcome, reply.text());
                let expected = (&whole.outcome, whole.text());
                return Err(format!("{after}: expected {expected:?}\nbut it ended {found:?}"));
            }
            for model in stage.models.values() {
                if let Some(complaint) = model.complaints.lock().unwrap().first() {
                    return Err(format!("{after}: {complaint}"));
                }
            }
            let entries = session.state().await.map_err(|error| error.to_string())?.entries;
            replay(&stage.agent, &entries).map_err(|error| format!("{after}: {error}"))?;
        }
        Ok(())
    }

    /// A problem with the journal under it, so that one can see where things went wrong.
    async fn explain(&self, problem: &str) -> String {
        let entries = match &self.session {
            Some(_) => self.entries().await,
            None => Vec::new(),
        };
        let lines: Vec<String> = see(&entries).iter().map(line).collect();
        let mut complaints = String::new();
        for model in self.stage.models.values() {
            for complaint in model.complaints.lock().unwrap().iter() {
                if !problem.contains(complaint.as_str()) {
                    complaints.push_str(&format!("\n{complaint}"));
                }
            }
        }
        let title = &self.scenario.title;
        format!("{title}\n{problem}{complaints}\nThe journal:\n{}", lines.join("\n"))
    }
}

fn options(scenario: &Scenario) -> SessionOptions {
    let attendance = if scenario.attended { Attendance::Attended } else { Attendance::Unattended };
    SessionOptions { attendance, ..SessionOptions::default() }
}

fn see(entries: &[Arc<Entry>]) -> Vec<Value> {
    let mut paths = Paths::new();
    let see = |entry: &Arc<Entry>| {
        paths.learn(entry);
        seen(entry, paths.of(entry))
    };
    entries.iter().map(see).collect()
}

/// Let the models go on after the answers that a journal has.
fn rewind(stage: &Stage, entries: &[Arc<Entry>]) {
    let seen = see(entries);
    for (path, model) in &stage.models {
        let is_answer = |entry: &&Value| {
            // What a behaviour says itself names no model.
            entry["kind"] == "agent_message" && entry["by"] == **path && entry["model"].is_string()
        };
        model.go_on_after(seen.iter().filter(is_answer).count());
    }
}

/// The first place where a journal is not the list, `session_started` left out.
fn differs(expected: &[Value], seen: &[Value]) -> Option<String> {
    let found = seen.get(1..).unwrap_or_default();
    for (at, pattern) in expected.iter().enumerate() {
        match found.get(at) {
            None => return Some(format!("journal[{at}]: expected {pattern}\nbut it ends there")),
            Some(entry) if !fits(pattern, entry) => {
                let line = line(entry);
                return Some(format!("journal[{at}]: expected {pattern}\nbut it is {line}"));
            }
            Some(_) => {}
        }
    }
    let more = found.get(expected.len())?;
    Some(format!("journal[{}]: expected nothing more\nbut there is {}", expected.len(), line(more)))
}

/// The first entry of the list that does not come after those before it.
fn misses(expected: &[Value], seen: &[Value]) -> Option<String> {
    let mut rest = seen.iter();
    for (at, pattern) in expected.iter().enumerate() {
        if !rest.any(|entry| fits(pattern, entry)) {
            let after = match at.checked_sub(1).and_then(|before| expected.get(before)) {
                None => "at all".to_owned(),
                Some(before) => format!("after {before}"),
            };
            return Some(format!("shows[{at}]: expected {pattern}, which does not come {after}"));
        }
    }
    None
}
