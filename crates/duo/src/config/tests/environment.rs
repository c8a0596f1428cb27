//! Environment variables as a layer.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStringExt;

use super::super::{
    environment::variable,
    keys::{Config, Mode},
    schema::Section,
};
use super::house;

#[test]
fn one_or_two_underscores_are_the_dot_of_a_fixed_section() {
    for name in ["DUOLOGUE_PERMISSIONS_MODE", "DUOLOGUE_PERMISSIONS__MODE"] {
        let house = house().var(name, "full");
        assert_eq!(house.config().permissions.mode, Mode::Full);
        assert_eq!(house.from("permissions.mode"), name);
    }
    let config = house()
        .var("DUOLOGUE_MODEL", "ollama/qwen3")
        .var("DUOLOGUE_JOURNAL", "memory")
        .var("DUOLOGUE_AGENT", "react")
        .var("DUOLOGUE_MEMORY_WINDOW_TOKENS", "1_000")
        .var("DUOLOGUE_TOOLS__HTTP_ALLOW_PRIVATE", "true")
        .config();
    assert_eq!(config.model.as_deref(), Some("ollama/qwen3"));
    assert_eq!(config.agent, "react");
    assert_eq!(config.memory.window_tokens, 1000);
    assert!(config.tools.http_allow_private);
}

#[test]
fn no_two_keys_have_the_same_variable() {
    let keys = Config::SPEC.fixed_keys();
    let names: BTreeSet<String> = keys.iter().map(|(path, _)| variable(path)).collect();
    assert_eq!(names.len(), keys.len());
}

#[test]
fn names_of_ones_own_are_found_by_their_capitals() {
    let files = "[agents.My-Helper]\nbehavior = 'react'\n[providers.lab-2]\nbase_url = 'http://l'\n\
                 headers.X-Team = '${A}'";
    let config = house()
        .project(files)
        .var("DUOLOGUE_AGENTS__MY_HELPER__MODEL", "openai/x")
        .var("DUOLOGUE_AGENTS__NEW_ONE__SEED", "7")
        .var("DUOLOGUE_AGENTS__NEW_ONE__MEMORY__TRIM_TO", "0.5")
        .var("DUOLOGUE_PROVIDERS__LAB_2__HEADERS__X_TEAM", "${B}")
        .var("DUOLOGUE_PROVIDERS__LAB_2__HEADERS__X_OTHER", "${C}")
        .config();
    let helper = config.agents.get("My-Helper").unwrap();
    assert_eq!((helper.behavior.as_str(), helper.model.as_deref()), ("react", Some("openai/x")));
    let new = config.agents.get("new_one").unwrap();
    assert_eq!((new.seed, new.memory.trim_to), (Some(7), 0.5));
    let headers = config.providers.get("lab-2").unwrap().headers.templates();
    let expected = [("X-Team", "${B}"), ("x-other", "${C}")];
    assert_eq!(headers, &expected.map(|(name, value)| (name.into(), value.into())).into());
}

#[test]
fn lists_have_commas_or_brackets() {
    let tools = |text: &str| house().var("DUOLOGUE_TOOLS_ENABLED", text).config().tools.enabled;
    assert_eq!(tools("shell, http_get"), ["shell", "http_get"]);
    assert_eq!(tools("['shell']"), ["shell"]);
    let rules = house().var("DUOLOGUE_PERMISSIONS_ALLOW", "shell(a,b),echo").config();
    assert_eq!(rules.permissions.allow, ["shell(a,b)", "echo"]);
}

#[test]
fn an_unknown_variable_is_an_error_with_a_suggestion() {
    for (name, expected) in [
        (
            "DUOLOGUE_MODLE",
            "DUOLOGUE_MODLE: there is no such setting (did you mean DUOLOGUE_MODEL?)",
        ),
        (
            "DUOLOGUE_PERMISSION_MODE",
            "DUOLOGUE_PERMISSION_MODE: there is no such setting (did you mean DUOLOGUE_PERMISSIONS_MODE?)",
        ),
        (
            "DUOLOGUE_PERMISSIONS__MOD",
            "DUOLOGUE_PERMISSIONS__MOD: permissions.mod: unknown key (did you mean \"mode\"?)",
        ),
        (
            "DUOLOGUE_AGENTS__A__MODL",
            "DUOLOGUE_AGENTS__A__MODL: agents.a.modl: unknown key (did you mean \"model\"?)",
        ),
        (
            "DUOLOGUE_XYZZY_PLUGH_FROTZ",
            "DUOLOGUE_XYZZY_PLUGH_FROTZ: there is no such setting; unset it, or spell out the dots of the key that it is for as __, as in \"DUOLOGUE_AGENTS__NAME__MODEL\"",
        ),
        (
            "DUOLOGUE_AGENTS",
            "DUOLOGUE_AGENTS: there is no such setting (did you mean DUOLOGUE_AGENT?)",
        ),
    ] {
        assert_eq!(house().var(name, "x").errors(), [expected]);
    }
}

#[test]
fn reserved_empty_and_foreign_variables_are_left_alone() {
    let house = house()
        .var("DUOLOGUE_AIMOCK", "/x")
        .var("DUOLOGUE_LOG", "debug")
        .var("DUOLOGUE_TEST_MODEL", "small")
        .var("DUOLOGUE_MODEL", "")
        .var("DUOLOGUES", "x")
        .var("HOME", "/x");
    assert_eq!(house.config().model, None);
    assert_eq!(house.from("model"), "default");
}

#[test]
fn two_variables_for_one_key_are_an_error() {
    let house =
        house().var("DUOLOGUE_PERMISSIONS_MODE", "ask").var("DUOLOGUE_PERMISSIONS__MODE", "full");
    let expected = "DUOLOGUE_PERMISSIONS__MODE: permissions.mode: DUOLOGUE_PERMISSIONS_MODE sets \
                    the same key: unset one";
    let errors = house.errors();
    assert!(errors.len() == 1 && errors.concat().contains("sets the same key"), "{errors:?}");
    assert_eq!(errors.concat(), expected);
}

#[test]
fn a_variable_that_is_not_unicode_is_an_error() {
    let mut house = house();
    let bytes = std::ffi::OsString::from_vec(vec![0xff]);
    house.sources.environment.insert("DUOLOGUE_MODEL".into(), bytes);
    assert_eq!(house.errors(), ["DUOLOGUE_MODEL: is not Unicode"]);
}
