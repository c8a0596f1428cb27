//! What stands around a scenario's agents: scripted models, canned tools, a process that dies.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use duologue_core::{
    Claim, Content, Delta, DeltaStream, Effect, Entry, Execution, ListQuery, Mail, MemoryStore,
    Model, ModelError, Reach, Request, SessionId, SessionSummary, StopReason, Store, StoreError,
    Tool, ToolChoice, ToolContext, ToolError, ToolOutput, ToolSpec, Usage,
};
use futures::{StreamExt, future::BoxFuture, stream};
use serde_json::{Value, json};

use super::script::{ToolScript, TurnScript};

/// A model that says its turns in order.
pub struct ScriptedModel {
    name: String,
    turns: Vec<TurnScript>,
    next: AtomicUsize,
    pub asked: AtomicUsize,
    /// Whether it began to hang.
    pub hangs: AtomicBool,
    /// What was not as the script says.
    pub complaints: Mutex<Vec<String>>,
}

impl ScriptedModel {
    pub fn new(who: &str, turns: Vec<TurnScript>) -> Self {
        Self {
            name: format!("scenario/{who}"),
            turns,
            next: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            hangs: AtomicBool::new(false),
            complaints: Mutex::default(),
        }
    }

    /// Go on after so many answers, as a new process does that finds them in the journal.
    pub fn go_on_after(&self, answers: usize) {
        let is_answer = |(_, turn): &(usize, &TurnScript)| turn.fails.is_none();
        let last = answers.checked_sub(1).and_then(|at| {
            self.turns.iter().enumerate().filter(is_answer).nth(at).map(|(at, _)| at)
        });
        self.next.store(last.map_or(0, |at| at + 1), Ordering::SeqCst);
    }

    /// How many turns were never given.
    pub fn left_over(&self) -> usize {
        self.turns.len().saturating_sub(self.next.load(Ordering::SeqCst))
    }

    fn complain(&self, text: String) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    fn check(&self, at: usize, turn: &TurnScript, request: &Request) {
        let prompt = prompt_of(request);
        let who = &self.name;
        for text in turn.sees.iter().filter(|text| !prompt.contains(*text)) {
            self.complain(format!("{who}: turn {at} must see {text:?} in its prompt:\n{prompt}"));
        }
        for text in turn.sees_not.iter().filter(|text| prompt.contains(*text)) {
            self.complain(format!(
                "{who}: turn {at} must not see {text:?} in its prompt:\n{prompt}"
            ));
        }
        if let Some(name) = &turn.must_call
            && request.options.tool_choice != ToolChoice::One(name.clone())
        {
            let found = &request.options.tool_choice;
            self.complain(format!("{who}: turn {at} must be made to call {name}, not {found:?}"));
        }
    }
}

/// All that a model reads, as text.
fn prompt_of(request: &Request) -> String {
    let mut text = request.system.as_deref().unwrap_or_default().to_owned();
    for message in request.all_messages() {
        text.push_str(&format!("\n{}: {}", message.role, message.text()));
        for call in message.tool_calls() {
            text.push_str(&format!(" [{} {}]", call.name, call.arguments));
        }
        for result in message.tool_results() {
            text.push_str(&format!(" [{}: {}]", result.status, result.prompt_text()));
        }
    }
    text
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&self, request: Request) -> DeltaStream {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let at = self.next.fetch_add(1, Ordering::SeqCst);
        let Some(turn) = self.turns.get(at) else {
            let text = format!("{} has {} turns and all were given", self.name, self.turns.len());
            self.complain(format!("{text}; it was asked with:\n{}", prompt_of(&request)));
            let error = ModelError::new(duologue_core::ErrorClass::ReplayMiss, text);
            return stream::iter([Err(error)]).boxed();
        };
        self.check(at + 1, turn, &request);
        let mut deltas = Vec::new();
        deltas.extend(turn.thinks.clone().map(|text| Ok(Delta::Reasoning(text))));
        deltas.extend(turn.says.clone().map(|text| Ok(Delta::Text(text))));
        for (index, call) in turn.calls.iter().enumerate() {
            let Some((name, arguments)) = call.first_key_value() else { continue };
            let earlier = self.turns.iter().take(at).flat_map(|turn| &turn.calls);
            let here = turn.calls.iter().take(index);
            let number = earlier.chain(here).filter(|call| call.contains_key(name)).count() + 1;
            let id = Some(format!("{name}-{number}").into());
            deltas.push(Ok(Delta::CallStart { index, id, name: name.clone() }));
            let fragment = match arguments {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            deltas.push(Ok(Delta::CallArguments { index, fragment }));
        }
        if let Some(tokens) = turn.tokens {
            let usage = Usage { input_tokens: tokens, ..Usage::default() };
            deltas.push(Ok(Delta::Usage(usage)));
        }
        if turn.hangs {
            self.hangs.store(true, Ordering::SeqCst);
            return stream::iter(deltas).chain(stream::pending()).boxed();
        }
        deltas.push(match &turn.fails {
            Some(fail) => Err(ModelError::new(fail.class, fail.message.clone())),
            None if turn.calls.is_empty() => Ok(Delta::Stop(StopReason::Completed)),
            None => Ok(Delta::Stop(StopReason::ToolCalls)),
        });
        let wait = Duration::from_millis(turn.takes_ms);
        stream::once(tokio::time::sleep(wait))
            .flat_map(move |()| stream::iter(deltas.clone()))
            .boxed()
    }
}

/// A tool that does what a script says.
pub struct CannedTool {
    spec: Arc<ToolSpec>,
    script: ToolScript,
    pub ran: AtomicUsize,
}

impl CannedTool {
    pub fn new(name: &str, script: &ToolScript) -> Self {
        let parameters = json!({"type": "object", "properties": {}, "required": script.requires});
        let mut spec = ToolSpec::new(name, "A canned tool.", parameters);
        spec.effect = script.effect.unwrap_or(Effect::Pure);
        spec.reach = Reach::Workspace;
        if script.human {
            spec.execution = Execution::Human;
        }
        Self { spec: Arc::new(spec), script: script.clone(), ran: AtomicUsize::new(0) }
    }
}

impl Tool for CannedTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        match self.script.requires.iter().find(|name| arguments.get(name.as_str()).is_none()) {
            Some(name) => Err(format!("missing field `{name}`")),
            None => Ok(()),
        }
    }

    fn call(&self, _: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let number = self.ran.fetch_add(1, Ordering::SeqCst) + 1;
            if self.script.hangs {
                context.cancel.cancelled().await;
                // A moment to clean up, so that it is the cancellation that ends it.
                tokio::time::sleep(Duration::from_millis(20)).await;
                return Err(ToolError::new("stopped"));
            }
            tokio::time::sleep(Duration::from_millis(self.script.takes_ms)).await;
            let fails = match &self.script.fails {
                Some(numbers) => numbers.is_empty() || numbers.contains(&number),
                None => self.script.error.is_some() && self.script.gives.iter().next().is_none(),
            };
            if fails {
                return Err(ToolError::new(self.script.error.as_deref().unwrap_or("it failed")));
            }
            let gives: Vec<&str> = self.script.gives.iter().collect();
            let text = gives.get(number - 1).or(gives.last()).copied().unwrap_or("done");
            Ok(Content::from(text.replace("{n}", &number.to_string())))
        })
    }
}

/// Looks at an entry that was just written.
pub type Watcher = Box<dyn FnMut(&Entry) -> Fate + Send>;

/// What happens to the process after an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Lives,
    Dies,
}

/// A store whose process can die: what was written until then is there, nothing comes after.
#[derive(Clone)]
pub struct MortalStore {
    kept: MemoryStore,
    is_dead: Arc<AtomicBool>,
    watcher: Arc<Mutex<Option<Watcher>>>,
}

impl MortalStore {
    pub fn new() -> Self {
        Self { kept: MemoryStore::new(), is_dead: Arc::default(), watcher: Arc::default() }
    }

    /// The store as another process opens it.
    pub fn reborn(&self) -> Self {
        Self { kept: self.kept.clone(), is_dead: Arc::default(), watcher: Arc::default() }
    }

    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    pub fn watch(&self, watcher: Option<Watcher>) {
        *self.watcher.lock().unwrap() = watcher;
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.is_dead() { Err(StoreError::Io("the process is dead".into())) } else { Ok(()) }
    }
}

impl Store for MortalStore {
    fn create(&self, id: &SessionId, entries: Vec<Arc<Entry>>) -> Result<Claim, StoreError> {
        self.kept.create(id, entries)
    }

    fn append(&self, id: &SessionId, entries: Vec<Arc<Entry>>) -> Result<(), StoreError> {
        self.alive()?;
        self.kept.append(id, entries.clone())?;
        if let Some(watcher) = &mut *self.watcher.lock().unwrap() {
            for entry in entries {
                if watcher(&entry) == Fate::Dies {
                    self.is_dead.store(true, Ordering::SeqCst);
                }
            }
        }
        Ok(())
    }

    fn flush(&self, id: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        let id = id.clone();
        Box::pin(async move {
            self.alive()?;
            self.kept.flush(&id).await
        })
    }

    fn read(
        &self,
        id: &SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Entry>>, StoreError>> {
        self.kept.read(id, from, limit)
    }

    fn summary(&self, id: &SessionId) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>> {
        self.kept.summary(id)
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        self.kept.list(query)
    }

    fn find(
        &self,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.kept.find(prefix, limit)
    }

    fn delete(&self, id: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.kept.delete(id)
    }

    fn claim(&self, id: &SessionId) -> BoxFuture<'_, Result<Claim, StoreError>> {
        self.kept.claim(id)
    }

    fn post(&self, id: &SessionId, mail: Mail) -> BoxFuture<'_, Result<(), StoreError>> {
        self.kept.post(id, mail)
    }

    fn mail(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<(u64, Mail)>, StoreError>> {
        self.kept.mail(id)
    }

    fn acknowledge(&self, id: &SessionId, up_to: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.kept.acknowledge(id, up_to)
    }

    fn version(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.kept.version()
    }
}

/// Which agent each run belongs to: `main`, `human`, `reactive/human`.
#[derive(Clone, Debug)]
pub struct Paths(BTreeMap<u32, String>);

impl Paths {
    pub fn new() -> Self {
        Self(BTreeMap::from([(0, "main".to_owned())]))
    }

    pub fn learn(&mut self, entry: &Entry) {
        if let duologue_core::Event::ChildStarted { child, key, .. } = &entry.event {
            let path = match self.of(entry) {
                "main" => key.clone(),
                parent => format!("{parent}/{key}"),
            };
            self.0.insert(child.0, path);
        }
    }

    pub fn of(&self, entry: &Entry) -> &str {
        self.0.get(&entry.run.0).map_or("?", String::as_str)
    }
}
