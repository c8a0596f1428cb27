//! The command line as a layer.

use super::super::keys::{Mode, Price};
use super::house;

#[test]
fn a_flag_sets_its_key_and_is_named_as_the_origin() {
    let house = house()
        .project("permissions.allow = ['echo']")
        .flag("--model", "model", "openai/gpt")
        .flag("--allow", "permissions.allow", vec!["shell(ls*)", "read_file"]);
    let config = house.config();
    assert_eq!(config.model.as_deref(), Some("openai/gpt"));
    assert_eq!(config.permissions.allow, ["shell(ls*)", "read_file"]);
    assert_eq!(house.from("model"), "--model");
}

#[test]
fn some_words_are_models_without_a_provider() {
    for word in ["demo", "script:a.yaml", "script:/tmp/a.yaml"] {
        let config = house().flag("--model", "model", word).config();
        assert_eq!(config.model.as_deref(), Some(word));
    }
    for word in ["demos", "script:", "script"] {
        assert_eq!(house().flag("--model", "model", word).errors().len(), 1, "{word}");
    }
}

#[test]
fn a_flag_is_checked_like_a_file() {
    let errors = house()
        .flag("--permissions", "permissions.mode", "yes")
        .flag("--retries", "limits.retry_attempts", 99)
        .errors();
    let expected = [
        "--permissions: permissions.mode: unknown value \"yes\"; there are \"read-only\", \"ask\", \
         \"auto-edit\", \"full\"",
        "--retries: limits.retry_attempts: expected a whole number from 1 to 20, found 99",
    ];
    assert_eq!(errors, expected);
}

#[test]
fn set_takes_toml_and_texts_without_quotes() {
    let config = house()
        .set("model=ollama/qwen3:8b")
        .set("permissions.mode = full")
        .set("permissions.allow=[\"shell(a=b)\"]")
        .set("tools.enabled=shell,http_get")
        .set("tools.http_allow_private=true")
        .set("memory.trim_to=0.75")
        .set("agents.a={ behavior = 'react', max_steps = 3 }")
        .set("agents.a.system=\"Two\\nlines = fine\"")
        .set("providers.openai.prices.\"gpt=4.1\".input=2")
        .set("providers.openai.prices.\"gpt=4.1\".output=8.5")
        .config();
    assert_eq!(config.model.as_deref(), Some("ollama/qwen3:8b"));
    assert_eq!(config.permissions.mode, Mode::Full);
    assert_eq!(config.permissions.allow, ["shell(a=b)"]);
    assert_eq!(config.tools.enabled, ["shell", "http_get"]);
    assert!(config.tools.http_allow_private);
    assert_eq!(config.memory.trim_to, 0.75);
    let a = config.agents.get("a").unwrap();
    assert_eq!((a.behavior.as_str(), a.max_steps), ("react", Some(3)));
    assert_eq!(a.system.as_deref(), Some("Two\nlines = fine"));
    let price = Price { input: 2.0, output: 8.5, cached: None };
    assert_eq!(config.providers.get("openai").unwrap().prices.get("gpt=4.1"), Some(&price));
}

#[test]
fn the_last_set_counts() {
    let config = house().set("agent=generic").set("agent=react").config();
    assert_eq!(config.agent, "react");
}

#[test]
fn a_set_that_cannot_be_read_says_how_to_write_one() {
    for (assignment, expected) in [
        ("model", "--set: expected key.path=value, such as permissions.mode=ask, at \"model\""),
        ("=x", "--set: expected key.path=value, such as permissions.mode=ask, at \"\""),
        ("a b=hush", "--set: expected key.path=value, such as permissions.mode=ask, at \"a b\""),
        ("permissions.mod=ask", "--set: permissions.mod: unknown key (did you mean \"mode\"?)"),
        (
            "limits.retry_attempts=four",
            "--set: limits.retry_attempts: expected a whole number from 1 to 20, found a string",
        ),
        ("permissions=ask", "--set: permissions: expected a table, found a string"),
        ("agent.x=1", "--set: agent: expected a string, found a table"),
    ] {
        assert_eq!(house().set(assignment).errors(), [expected]);
    }
    let errors = house().set("tools=5").set("tools.enabled=shell").errors();
    let expected = [
        "--set: tools.enabled: tools was set to something else before",
        "--set: tools: expected a table, found a whole number",
    ];
    assert_eq!(errors, expected);
}
