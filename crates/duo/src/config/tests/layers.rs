//! Which layer wins, and what a layer leaves alone.

use std::{fs, path::Path};

use super::super::{
    Config,
    dirs::Dirs,
    keys::{
        Agent, Budget, Journal, Memory, Mode, OnBreach, OnFull, Planned, Provider, ProviderKind,
        Window,
    },
    sources::Sources,
};
use super::{HOME, House, PROJECT, house};

#[test]
fn nothing_configured_gives_the_defaults_at_their_places() {
    let config = house().config();
    let expected = Config {
        journal: Journal::File(format!("{HOME}/.local/share/duologue/journal.db").into()),
        workspace: PROJECT.into(),
        repl: super::super::keys::Repl {
            history: Some(format!("{HOME}/.local/share/duologue/history.txt").into()),
            ..Default::default()
        },
        a2a: super::super::keys::A2a {
            directory: Some(format!("{HOME}/.local/share/duologue/agents.json").into()),
            ..Default::default()
        },
        planned: learning_at_home(),
        browser: super::super::keys::Browser {
            state: Some(format!("{HOME}/.local/share/duologue/browser").into()),
            ..Default::default()
        },
        agents: ["generic", "react", "planned", "dual", "browser", "bidirectional"]
            .map(|name| {
                let planned = learning_at_home();
                let agent = Agent { behavior: name.into(), planned, ..Agent::default() };
                (name.into(), agent)
            })
            .into(),
        ..Config::default()
    };
    assert_eq!(config, expected);
    assert_eq!(config.permissions.mode, Mode::Ask);
    assert_eq!(config.memory.window(), Window::Tokens(32_000));
}

fn learning_at_home() -> Planned {
    let lessons_file = Some(format!("{HOME}/.local/share/duologue/lessons.jsonl").into());
    Planned { lessons_file, ..Planned::default() }
}

#[test]
fn a_flag_counts_more_than_what_a_file_says_for_one_agent() {
    let file = "[planned]\nplan_every = 9\n[agents.a.planned]\nplan_every = 2\nvalidate_every = 4";
    let every = |house: &House| {
        let agent = house.config().agents.remove("a").unwrap();
        (agent.planned.plan_every, agent.planned.validate_every)
    };
    assert_eq!(every(&house().project(file)), (2, 4));
    let flagged = house().project(file).flag("--plan-every", "planned.plan_every", 7);
    assert_eq!(every(&flagged), (7, 4));
    assert_eq!(every(&flagged.set("agents.a.planned.plan_every=1")), (1, 4));
}

#[test]
fn each_layer_overrides_the_ones_before_it() {
    let key = "limits.retry_attempts";
    let mut house = house();
    let attempts = |house: &House| (house.config().limits.retry_attempts, house.from(key));
    assert_eq!(attempts(&house), (4, "default".into()));
    house = house.user("\n[limits]\nretry_attempts = 5");
    assert_eq!(attempts(&house), (5, "~/.config/duologue/config.toml:3".into()));
    house = house.project("limits.retry_attempts = 6");
    assert_eq!(attempts(&house), (6, "duologue.toml:1".into()));
    house = house.var("DUOLOGUE_LIMITS__RETRY_ATTEMPTS", "7");
    assert_eq!(attempts(&house), (7, "DUOLOGUE_LIMITS__RETRY_ATTEMPTS".into()));
    house = house.flag("--retries", key, 8);
    assert_eq!(attempts(&house), (8, "--retries".into()));
    house = house.set("limits.retry_attempts=9");
    assert_eq!(attempts(&house), (9, "--set".into()));
}

#[test]
fn tables_are_merged_and_lists_are_replaced() {
    let config = house()
        .user(
            "[permissions]\nmode = 'full'\nallow = ['echo', 'shell']\n\
             [agents.a]\nbehavior = 'react'\nseed = 1",
        )
        .project("[permissions]\nallow = ['read_file']\n[agents.a]\nseed = 2\n[agents.b]")
        .config();
    assert_eq!(config.permissions.mode, Mode::Full);
    assert_eq!(config.permissions.allow, ["read_file"]);
    let a = config.agents.get("a").unwrap();
    assert_eq!((a.behavior.as_str(), a.seed), ("react", Some(2)));
    let plain = Agent { planned: learning_at_home(), ..Agent::default() };
    assert_eq!(config.agents.get("b"), Some(&plain));
}

#[test]
fn a_later_way_to_say_the_window_takes_the_earlier_one_back() {
    let by_messages = house().user("memory.window_messages = 40");
    assert_eq!(by_messages.config().memory.window(), Window::Messages(40));
    assert_eq!(by_messages.from("memory.window_tokens"), "nowhere");
    let by_tokens = by_messages.project("memory.window_tokens = 9000");
    assert_eq!(by_tokens.config().memory.window(), Window::Tokens(9000));
}

#[test]
fn an_agent_takes_what_it_does_not_say_from_the_sections_at_the_top() {
    let loaded = house()
        .user("[memory]\ntrim_to = 0.5\nwindow_messages = 30\n[budget]\nsteps = 20\non_breach = 'end'")
        .project(
            "[agents.a]\nmemory.on_full = 'summarize'\nbudget.cost_usd = 1\n\
             [agents.b]\nmemory.window_tokens = 500",
        )
        .loaded();
    let agents = &loaded.config.agents;
    let memory = Memory { window_messages: Some(30), trim_to: 0.5, ..Memory::default() };
    let budget = Budget { steps: Some(20), on_breach: OnBreach::End, ..Budget::default() };
    let a = agents.get("a").unwrap();
    let summarizing = Memory { on_full: OnFull::Summarize, ..memory };
    assert_eq!(a.memory, summarizing);
    let priced = Budget { cost_usd: Some(1.0), ..budget };
    assert_eq!(a.budget, priced);
    let b = agents.get("b").unwrap();
    assert_eq!(b.memory.window(), Window::Tokens(500));
    assert_eq!(b.budget, budget);
    let generic = agents.get("generic").unwrap();
    assert_eq!((&generic.memory, &generic.budget), (&memory, &budget));
}

#[test]
fn an_agent_named_after_a_behavior_has_it() {
    let config = house()
        .user("[agents.react]\nseed = 1\n[agents.other]\n[agents.generic]\nbehavior = 'react'")
        .config();
    let behavior = |name: &str| config.agents.get(name).unwrap().behavior.clone();
    assert_eq!(behavior("react"), "react");
    assert_eq!(behavior("other"), "generic");
    assert_eq!(behavior("generic"), "react", "what is said counts");
}

#[test]
fn a_provider_says_only_what_it_changes() {
    let config = house()
        .user("[providers.anthropic]\nbase_url = 'http://localhost:1'")
        .project("[providers.lab]\nkind = 'openai-responses'\nbase_url = 'http://localhost:2'")
        .set("providers.lab.idle_timeout_seconds=5")
        .config();
    let anthropic = Provider { base_url: Some("http://localhost:1".into()), ..Provider::default() };
    let lab = Provider {
        kind: Some(ProviderKind::OpenAiResponses),
        base_url: Some("http://localhost:2".into()),
        idle_timeout_seconds: Some(5),
        ..Provider::default()
    };
    let expected = [("anthropic".into(), anthropic), ("lab".into(), lab)];
    assert_eq!(config.providers, expected.into());
}

#[test]
fn relative_paths_start_at_the_file_that_says_them() {
    let config = house()
        .user("journal = 'runs/j.db'\nrepl.history = '~/h.txt'")
        .project("workspace = './src/.'\n[agents.a]\nsystem_file = 'prompts/a.md'")
        .config();
    let journal = format!("{HOME}/.config/duologue/runs/j.db");
    assert_eq!(config.journal, Journal::File(journal.into()));
    assert_eq!(config.repl.history, Some(format!("{HOME}/h.txt").into()));
    assert_eq!(config.workspace, Path::new(PROJECT).join("src"));
    let prompt = Path::new(PROJECT).join("prompts/a.md");
    assert_eq!(config.agents.get("a").unwrap().system_file, Some(prompt));

    let config = house().set("journal=memory").set("workspace=/srv/x").config();
    assert_eq!(config.journal, Journal::Memory);
    assert_eq!(config.workspace, Path::new("/srv/x"));
}

#[test]
fn headers_keep_their_variables_and_are_never_printed() {
    let config = house()
        .project("[providers.lab]\nbase_url = 'http://l'\nheaders.Authorization = 'Bearer ${LAB}'")
        .config();
    let headers = config.providers.get("lab").unwrap().headers.templates();
    assert_eq!(headers, &[("Authorization".into(), "Bearer ${LAB}".into())].into());
    assert!(!format!("{config:?}").contains("Bearer"));
}

fn sources_in(home: &Path, cwd: &Path) -> Sources {
    let mut sources = house().sources;
    sources.cwd = cwd.into();
    sources.dirs = Dirs {
        home: Some(home.into()),
        config: Some(home.join("cfg")),
        data: Some(home.join("data")),
    };
    sources
}

#[test]
fn the_nearest_folder_above_with_a_file_is_the_project() {
    let home = tempfile::tempdir().unwrap();
    let deep = home.path().join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir_all(home.path().join("cfg/duologue")).unwrap();
    fs::write(home.path().join("cfg/duologue/config.toml"), "agent = 'react'").unwrap();
    let sources = sources_in(home.path(), &deep);
    fs::write(home.path().join("duologue.toml"), "workspace = 'w'").unwrap();
    let loaded = Config::load(&sources).unwrap();
    assert_eq!(loaded.config.workspace, home.path().join("w"));
    assert_eq!(loaded.config.agent, "react");
    let origin = loaded.provenance.row("workspace").unwrap().origin.to_string();
    assert_eq!(origin, "../../../duologue.toml:1");

    fs::write(home.path().join("a/duologue.toml"), "workspace = 'v'").unwrap();
    let loaded = Config::load(&sources).unwrap();
    assert_eq!(loaded.config.workspace, home.path().join("a/v"));

    // A folder of that name is no file.
    fs::create_dir(deep.join("duologue.toml")).unwrap();
    assert_eq!(Config::load(&sources).unwrap().config, loaded.config);
}

#[test]
fn instructions_come_from_a_file_and_its_absence_has_a_line() {
    let home = tempfile::tempdir().unwrap();
    let project = "[agents.a]\nsystem_file = 'a.md'\n[agents.b]\nsystem = 'Be kind.'\n[agents.c]\n\
                   system_file = 'gone.md'";
    fs::write(home.path().join("duologue.toml"), project).unwrap();
    fs::write(home.path().join("a.md"), "Be brief.\n").unwrap();
    let loaded = Config::load(&sources_in(home.path(), home.path())).unwrap();
    assert_eq!(loaded.system_of("a"), Ok(Some("Be brief.\n".into())));
    assert_eq!(loaded.system_of("b"), Ok(Some("Be kind.".into())));
    assert_eq!(loaded.system_of("generic"), Ok(None));
    let error = loaded.system_of("c").unwrap_err().to_string();
    assert!(error.starts_with("duologue.toml:6: agents.c.system_file: cannot read "), "{error}");
}

#[test]
fn without_a_home_a_journal_must_be_named() {
    let mut house = house();
    house.sources.dirs = Dirs::default();
    let expected = "configuration: journal: no home folder is known to put it into; set it to a \
                    file, or to \"memory\"";
    assert_eq!(house.errors(), [expected]);
    let config = house.set("journal=memory").config();
    assert_eq!(config.repl.history, None);
}
