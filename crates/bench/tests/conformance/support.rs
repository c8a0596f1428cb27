//! Goldens, domains and the counting of cases.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    env, fs,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock},
    time::Instant,
};

use duologue_bench::{
    DataDir, Domain, Environment, Mode, Task, TaskSet, Value, domains, python, read_json,
};

/// The directories, and the domains as they are loaded once.
pub struct Goldens {
    pub data: DataDir,
    pub golden: PathBuf,
    pub results: PathBuf,
    domains: BTreeMap<&'static str, OnceLock<(Arc<Domain>, TaskSet)>>,
}

impl Goldens {
    pub fn from_env() -> Result<Self, &'static str> {
        let directory = |name| env::var_os(name).filter(|v| !v.is_empty()).ok_or(name);
        Ok(Self {
            data: DataDir::new(directory("TAU2_DATA_DIR")?),
            golden: directory("TAU2_GOLDEN_DIR")?.into(),
            results: directory("TAU2_RESULTS_DIR")?.into(),
            domains: domains::DOMAINS.iter().map(|entry| (entry.name, OnceLock::new())).collect(),
        })
    }

    /// A domain and its tasks; `None` while there is no such domain.
    pub fn domain(&self, name: &str) -> Option<&(Arc<Domain>, TaskSet)> {
        let place = self.domains.get(name)?;
        Some(place.get_or_init(|| {
            let entry = domains::find(name).unwrap();
            let domain = (entry.load)(&self.data, None).unwrap();
            (Arc::new(domain), (entry.tasks)(&self.data).unwrap())
        }))
    }

    /// A golden JSON file; `None` where the directory lacks it.
    pub fn json(&self, name: &str) -> Option<Value> {
        let path = self.golden.join(name);
        path.exists().then(|| read_json(&path).unwrap())
    }

    /// The lines of a golden file; `None` where the directory lacks it.
    pub fn lines(&self, name: &str) -> Option<Vec<Value>> {
        let text = fs::read_to_string(self.golden.join(name)).ok()?;
        Some(text.lines().map(|line| python::loads(line).unwrap()).collect())
    }

    /// The file of results that a golden row names by its source.
    pub fn results_file(&self, source: &str) -> Option<PathBuf> {
        let ending = format!("__{source}.json");
        let files = fs::read_dir(&self.results).ok()?;
        files.filter_map(|file| Some(file.ok()?.path())).find(|path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending))
        })
    }
}

/// A fresh environment in the state that a task starts from.
pub fn started(domain: &Arc<Domain>, mode: Mode, task: &Task) -> Environment {
    let mut environment = Environment::for_task(domain, mode, Some(task)).unwrap();
    let state = task.initial_state.as_ref();
    let history = state.and_then(|state| state.message_history.as_deref()).unwrap_or_default();
    environment.set_state(state, history, duologue_bench::Replay::Strict).unwrap();
    environment
}

/// The cases of one golden file.
pub struct Check {
    name: &'static str,
    begun: Instant,
    total: usize,
    failures: Vec<String>,
    absent: Option<&'static str>,
    waiting: BTreeSet<String>,
}

impl Check {
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            begun: Instant::now(),
            total: 0,
            failures: Vec::new(),
            absent: None,
            waiting: BTreeSet::new(),
        }
    }

    pub fn absent(name: &'static str) -> Self {
        Self { absent: Some("not in the directory of goldens"), ..Self::new(name) }
    }

    /// Counts a case.
    pub fn case(&mut self, label: impl FnOnce() -> String, result: Result<(), String>) {
        self.total += 1;
        if let Err(reason) = result {
            self.failures.push(format!("{}: {reason}", label()));
        }
    }

    /// Notes a domain that does not exist yet.
    pub fn wait(&mut self, domain: &str) {
        self.waiting.insert(domain.to_owned());
    }

    /// Prints the line, and the first failures. Says whether all is well.
    pub fn report(&self) -> bool {
        if let Some(reason) = self.absent {
            println!("{}: skipped, {reason}", self.name);
            return true;
        }
        let passed = self.total - self.failures.len();
        let waiting: Vec<&str> = self.waiting.iter().map(String::as_str).collect();
        let waiting = if waiting.is_empty() {
            String::new()
        } else {
            format!(", without the domains that do not exist yet: {}", waiting.join(", "))
        };
        let seconds = self.begun.elapsed().as_secs_f64();
        println!("{}: {passed} of {} ({seconds:.1} s{waiting})", self.name, self.total);
        let shown: usize = env::var("TAU2_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
        for failure in self.failures.iter().take(shown) {
            println!("    {failure}");
        }
        if self.failures.len() > shown {
            println!("    and {} more", self.failures.len() - shown);
        }
        self.failures.is_empty()
    }
}

/// Compares two things and tells both when they differ.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, golden: T) -> Result<(), String> {
    if ours == golden {
        return Ok(());
    }
    Err(format!("{what} is {ours:?}, the golden has {golden:?}"))
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The domain's name without its variant.
pub fn base_name(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

/// The hash of an environment's database. Many environments end alike, and comparing costs next to
/// nothing where hashing costs milliseconds.
pub fn db_hash(environment: &Environment) -> String {
    static KNOWN: Mutex<VecDeque<(Value, String)>> = Mutex::new(VecDeque::new());
    let mut known = KNOWN.lock().unwrap();
    let database = &environment.world.db;
    if let Some((_, hash)) = known.iter().find(|(value, _)| value.same(database)) {
        return hash.clone();
    }
    let hash = environment.db_hash();
    known.push_front((database.clone(), hash.clone()));
    known.truncate(24);
    hash
}
