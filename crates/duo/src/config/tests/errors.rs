//! What is wrong, with place, key and remedy.

use std::{fs, os::unix::fs::symlink};

use super::super::{Config, dirs::Dirs};
use super::house;

/// The only problem of a project's file.
fn problem(text: &str) -> String {
    let errors = house().project(text).errors();
    assert_eq!(errors.len(), 1, "{text}: {errors:#?}");
    errors.concat()
}

#[test]
fn an_unknown_key_gets_a_suggestion_at_every_level() {
    for (text, expected) in [
        ("\n\nmodle = 'a/b'", "duologue.toml:3: modle: unknown key (did you mean \"model\"?)"),
        (
            "[permisions]\nmode = 'ask'",
            "duologue.toml:1: permisions: unknown key (did you mean \"permissions\"?)",
        ),
        (
            "[permissions]\nmod = 'ask'",
            "duologue.toml:2: permissions.mod: unknown key (did you mean \"mode\"?)",
        ),
        (
            "permissions.Mode = 'ask'",
            "duologue.toml:1: permissions.Mode: unknown key (did you mean \"mode\"?)",
        ),
        (
            "[agents.a]\nbehaviour = 'react'",
            "duologue.toml:2: agents.a.behaviour: unknown key (did you mean \"behavior\"?)",
        ),
        (
            "[agents.a.memory]\ntrim = 0.5",
            "duologue.toml:2: agents.a.memory.trim: unknown key (did you mean \"trim_to\"?)",
        ),
        (
            "[providers.openai.prices.'gpt-4.1']\ninput = 1\noutput = 2\nouput = 3",
            "duologue.toml:4: providers.openai.prices.\"gpt-4.1\".ouput: unknown key (did you mean \"output\"?)",
        ),
        // A key in the wrong place is known elsewhere.
        (
            "deny = ['echo']",
            "duologue.toml:1: deny: unknown key (did you mean \"permissions.deny\"?)",
        ),
        ("[ui]\nzzzzzz = 1", "duologue.toml:2: ui.zzzzzz: unknown key; there are \"color\""),
    ] {
        assert_eq!(problem(text), expected);
    }
}

#[test]
fn a_wrong_type_says_what_is_expected_and_never_repeats_the_value() {
    for (text, expected) in [
        ("model = 5", "model: expected a string such as \"provider/model\", found a whole number"),
        ("permissions = 'ask'", "permissions: expected a table, found a string"),
        (
            "permissions.allow = 'echo'",
            "permissions.allow: expected a list, each a rule such as \"tool\" or \"tool(pattern)\", found a string",
        ),
        (
            "permissions.allow = [1]",
            "permissions.allow: expected a rule such as \"tool\" or \"tool(pattern)\", found a whole number",
        ),
        (
            "limits.retry_attempts = 'four'",
            "limits.retry_attempts: expected a whole number from 1 to 20, found a string",
        ),
        (
            "limits.retry_attempts = 4.5",
            "limits.retry_attempts: expected a whole number from 1 to 20, found a number with a fraction",
        ),
        (
            "limits.retry_attempts = 21",
            "limits.retry_attempts: expected a whole number from 1 to 20, found 21",
        ),
        ("budget.steps = 0", "budget.steps: expected a whole number, 1 or more, found 0"),
        (
            "budget.tokens = 99999999999999999999",
            "budget.tokens: expected a whole number, 1 or more, found 99999999999999999999",
        ),
        (
            "budget.cost_usd = -1",
            "budget.cost_usd: expected a number from 0 to 1000000000, found -1",
        ),
        (
            "budget.cost_usd = nan",
            "budget.cost_usd: expected a number from 0 to 1000000000, found NaN",
        ),
        (
            "memory.trim_to = 1979-05-27",
            "memory.trim_to: expected a number from 0.1 to 1, found a date",
        ),
        (
            "tools.http_allow_private = 'yes'",
            "tools.http_allow_private: expected true or false, found a string",
        ),
        ("agents = 1", "agents: expected a table of named tables, found a whole number"),
        (
            "agents.a = 'react'",
            "agents.a: expected a table, such as [agents.a] with behavior in it, found a string",
        ),
        (
            "providers.openai.headers.X-A = 1",
            "providers.openai.headers.X-A: expected a string, where ${VARIABLE} stands for that variable, found a whole number",
        ),
        ("workspace = ''", "workspace: expected a path, found an empty string"),
    ] {
        assert_eq!(problem(text), format!("duologue.toml:1: {expected}"), "{text}");
    }
}

#[test]
fn an_unknown_word_is_explained() {
    for (text, expected) in [
        (
            "tools.enabled = ['ehco']",
            "tools.enabled: unknown tool \"ehco\" (did you mean \"echo\"?)",
        ),
        (
            "permissions.mode = 'aks'",
            "permissions.mode: unknown value \"aks\" (did you mean \"ask\"?)",
        ),
        (
            "permissions.mode = 'yolo'",
            "permissions.mode: unknown value \"yolo\"; there are \"read-only\", \"ask\", \"auto-edit\", \"full\"",
        ),
        (
            "agents.a.behavior = 'weaver'",
            "agents.a.behavior: unknown behavior \"weaver\"; there are \"generic\", \"react\", \"planned\", \"dual\", \"browser\", \"bidirectional\"",
        ),
        (
            "agents.a.behavior = 'reakt'",
            "agents.a.behavior: unknown behavior \"reakt\" (did you mean \"react\"?); there are \"generic\", \"react\", \"planned\", \"dual\", \"browser\", \"bidirectional\"",
        ),
        (
            "agents.a.tools = ['echo', 'shel']",
            "agents.a.tools: unknown tool \"shel\" (did you mean \"shell\"?)",
        ),
        ("agent = 'genric'", "agent: unknown agent \"genric\" (did you mean \"generic\"?)"),
        ("model = 'opnai/x'", "model: unknown provider \"opnai\" (did you mean \"openai\"?)"),
        (
            "agents.a.model = 'zzzzzzz/x'",
            "agents.a.model: unknown provider \"zzzzzzz\"; there are \"anthropic\", \"openai\", \"ollama\"",
        ),
        (
            "model = 'gpt'",
            "model: expected provider/model, such as \"ollama/qwen3\", found \"gpt\"",
        ),
        (
            "[providers.opnai]\napi_key_env = 'X'",
            "providers.opnai: a new provider needs a base_url (did you mean \"openai\"?)",
        ),
        (
            "model = 'dmeo'",
            "model: expected provider/model, such as \"ollama/qwen3\", found \"dmeo\" (did you mean \"demo\"?)",
        ),
        (
            "journal = 'sqllite'",
            "journal: unknown value \"sqllite\" (did you mean \"sqlite\"?); a file of that name is \"./sqllite\"",
        ),
        (
            "permissions.deny = ['shel(rm *)']",
            "permissions.deny: unknown tool \"shel\" (did you mean \"shell\"?)",
        ),
        (
            "permissions.deny = ['shell(rm']",
            "permissions.deny: cannot read the rule \"shell(rm\": write `tool`, `tool(pattern)` or `tool(argument=pattern)`",
        ),
        (
            "providers.openai.base_url = 'localhost'",
            "providers.openai.base_url: expected an address that begins with http:// or https://",
        ),
        ("[providers.lab]", "providers.lab: a new provider needs a base_url"),
        (
            "[providers.openai.prices.x]\ninput = 1",
            "providers.openai.prices.x: \"output\" must be set too",
        ),
        (
            "agents.a.dual.human = 'reakt'",
            "agents.a.dual.human: unknown agent \"reakt\" (did you mean \"react\"?)",
        ),
        (
            "[agents.a]\nbehavior = 'dual'\ndual.reactive = ['b']\n[agents.b]\nbehavior = 'dual'\ndual.human = 'a'",
            "agents.a.dual: the agent would be a part of itself",
        ),
        ("[agents.'a/b']", "agents.\"a/b\": the name may have letters, digits, \"-\" and \"_\""),
    ] {
        assert_eq!(problem(text), format!("duologue.toml:1: {expected}"), "{text}");
    }
}

#[test]
fn a_star_in_a_rule_may_stand_for_tools_that_come_later() {
    let config = house().project("permissions.deny = ['mcp_*', 'http_*(url=http:*)']").config();
    assert_eq!(config.permissions.deny.len(), 2);
}

#[test]
fn each_item_of_a_list_has_its_own_line() {
    let errors =
        house().project("[tools]\nenabled = [\n  'ehco',\n  'shell',\n  'reed_file',\n]").errors();
    let expected = [
        "duologue.toml:3: tools.enabled: unknown tool \"ehco\" (did you mean \"echo\"?)",
        "duologue.toml:5: tools.enabled: unknown tool \"reed_file\" (did you mean \"read_file\"?)",
    ];
    assert_eq!(errors, expected);
}

#[test]
fn everything_wrong_in_all_layers_is_said_at_once_from_top_to_bottom() {
    let errors = house()
        .user("modle = 'x/y'")
        .project("[tools]\nenabled = ['ehco']\n[limits]\nretry_attempts = 'x'\n[agents.z]\nfoo = 1")
        .var("DUOLOGUE_AGNT", "x")
        .var("DUOLOGUE_BUDGET__STEPS", "x")
        .set("ui.color=purple")
        .errors();
    let expected = [
        "~/.config/duologue/config.toml:1: modle: unknown key (did you mean \"model\"?)",
        "duologue.toml:2: tools.enabled: unknown tool \"ehco\" (did you mean \"echo\"?)",
        "duologue.toml:4: limits.retry_attempts: expected a whole number from 1 to 20, found a string",
        "duologue.toml:6: agents.z.foo: unknown key; there are \"behavior\", \"description\", \
         \"model\", \"system\", \"system_file\", \"tools\", \"max_steps\", \"temperature\", \
         \"seed\", \"max_tokens\", \"reasoning_effort\", \"memory\", \"budget\", \"planned\", \"dual\"",
        "DUOLOGUE_AGNT: there is no such setting (did you mean DUOLOGUE_AGENT?)",
        "DUOLOGUE_BUDGET__STEPS: budget.steps: expected a whole number, 1 or more, found a string",
        "--set: ui.color: unknown value \"purple\"; there are \"auto\", \"always\", \"never\"",
    ];
    assert_eq!(errors, expected);
}

#[test]
fn what_only_follows_from_another_mistake_is_not_said_again() {
    let unread = house().user("[agents.reviewer").project("agent = 'reviewer'").errors();
    assert_eq!(unread.len(), 1, "{unread:#?}");
    let misspelt = problem("[providers.lab]\nbase_url = 'localhost'");
    assert!(misspelt.starts_with("duologue.toml:2: providers.lab.base_url: "), "{misspelt}");
    let both = house().project("agent = 'nobody'\nmodle = 'x/y'").errors();
    assert_eq!(both.len(), 2, "{both:#?}");
}

#[test]
fn rivals_in_one_layer_are_refused() {
    let expected = "duologue.toml:3: memory.window_messages: not together with window_tokens \
                    (duologue.toml:2): keep one of them";
    assert_eq!(problem("[memory]\nwindow_tokens = 500\nwindow_messages = 5"), expected);
    let expected = "duologue.toml:1: agents.a.system_file: not together with system \
                    (duologue.toml:1): keep one of them";
    assert_eq!(problem("agents.a = { system = 'x', system_file = 'y' }"), expected);
}

#[test]
fn every_syntax_error_has_its_line_and_shows_nothing_of_it() {
    let errors = house()
        .project("model = \"sk-secret\nagent = 'generic'\n[tools\nenabled = []\nx = = 1")
        .errors();
    assert!(errors.len() >= 2, "{errors:#?}");
    for (error, line) in errors.iter().zip([1, 3]) {
        let beginning = format!("duologue.toml:{line}: not valid TOML: ");
        assert!(error.starts_with(&beginning), "{error}");
        assert!(!error.contains("sk-secret"), "{error}");
    }
    let twice = problem("agent = 'generic'\nagent = 'react'");
    assert!(twice.starts_with("duologue.toml:2: not valid TOML: duplicate key"), "{twice}");
}

#[test]
fn a_secret_is_refused_wherever_it_is_put_and_never_repeated() {
    let advice = "looks like a secret, and secrets do not belong into a configuration; put it into \
                  an environment variable and name that one: api_key_env = \"OPENAI_API_KEY\" in \
                  [providers.openai] instead of api_key";
    let key = "sk-12345";
    let file = house().project(&format!("[providers.openai]\napi_key = '{key}'"));
    assert_eq!(file.errors(), [format!("duologue.toml:2: providers.openai.api_key: {advice}")]);
    let variable = "DUOLOGUE_PROVIDERS__OPENAI__API_KEY";
    let environment = house().var(variable, key);
    assert_eq!(environment.errors(), [format!("{variable}: providers.openai.api_key: {advice}")]);
    let flag = house().set(&format!("providers.openai.api_key={key}"));
    assert_eq!(flag.errors(), [format!("--set: providers.openai.api_key: {advice}")]);
    for text in [
        format!("api_key = '{key}'"),
        format!("[agents.a]\naccess_token = '{key}'"),
        format!("[providers.openai]\napi_key_env = '{key}'"),
        format!("[providers.openai]\nbase_url = 'http://me:{key}@host'"),
        format!("[providers.openai.headers]\nAuthorization = 'Bearer {key}'"),
        format!("[providers.openai.headers]\nX-Api-Key = '{key}'"),
    ] {
        let error = problem(&text);
        assert!(!error.contains(key), "{error}");
    }
    // A number is no secret: this is a slip.
    let slip = problem("budget.token = 5");
    assert!(slip.ends_with("unknown key (did you mean \"tokens\"?)"), "{slip}");
}

#[test]
fn what_an_error_repeats_cannot_write_on_the_terminal() {
    let error = problem("permissions.mode = \"\\u001b[2J\\u202Eask\"");
    assert!(error.contains("\"\\u001B[2J\\u202Eask\""), "{error}");
    let long = problem(&format!("permissions.mode = '{}'", "x".repeat(5000)));
    assert!(long.contains("… and 4920 more characters") && long.len() < 400, "{long}");
}

#[test]
fn another_part_of_the_program_can_say_what_is_wrong_and_the_place_is_known() {
    let loaded = house().project("[permissions]\nallow = [\n 'echo',\n 'shell(x)',\n]").loaded();
    let error = loaded.error_at("permissions.allow", Some(1), "is too wide");
    assert_eq!(error.to_string(), "duologue.toml:4: permissions.allow: is too wide");
    let error = loaded.error_at("permissions.mode", None, "is too strict");
    assert_eq!(error.to_string(), "configuration: permissions.mode: is too strict");
}

#[test]
fn files_that_cannot_be_read_are_errors_not_gaps() {
    let home = tempfile::tempdir().unwrap();
    let mut sources = house().sources;
    sources.cwd = home.path().into();
    sources.dirs = Dirs {
        home: Some(home.path().into()),
        config: Some(home.path().into()),
        data: Some(home.path().into()),
    };
    let errors = |sources: &_| Config::load(sources).unwrap_err().to_string();
    let file = home.path().join("duologue.toml");
    symlink(home.path().join("nowhere"), &file).unwrap();
    assert!(
        errors(&sources).starts_with("duologue.toml: cannot read it: "),
        "{}",
        errors(&sources)
    );
    fs::remove_file(&file).unwrap();
    fs::write(&file, b"# caf\xc3\xa9\n# \xff\n").unwrap();
    assert_eq!(errors(&sources), "duologue.toml: cannot read it: line 2 is not UTF-8");
    fs::write(&file, "#".repeat((1 << 20) + 1)).unwrap();
    assert_eq!(errors(&sources), "duologue.toml: cannot read it: it has more than 1048576 bytes");
    // Deep nesting is refused by the parser, not met with a full stack.
    fs::write(&file, format!("agents.a.tools = {}1{}", "[".repeat(9000), "]".repeat(9000)))
        .unwrap();
    assert!(errors(&sources).starts_with("duologue.toml:1: "), "{}", errors(&sources));
    fs::write(&file, "\u{feff}agent = 'react'\r\n").unwrap();
    assert_eq!(Config::load(&sources).unwrap().config.agent, "react");
    // The user's file need not be there, and its folder need not be a folder.
    sources.dirs.config = Some(file);
    assert!(Config::load(&sources).is_ok());
}
