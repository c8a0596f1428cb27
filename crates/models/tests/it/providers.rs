//! Which models there are, and what is said when there is none.

use std::collections::BTreeMap;

use duologue_core::Price;
use duologue_models::{KeyStatus, ProviderConfig, ProviderError, Providers, Wire};
use serde_json::json;

use super::support::Server;

fn with_variables(variables: &'static [(&str, &str)]) -> Providers {
    Providers::with_environment(BTreeMap::new(), |name| {
        variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
    .unwrap()
}

fn error(providers: &Providers, name: &str) -> String {
    match providers.model(name) {
        Ok(model) => panic!("{name} gave {}", model.name()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_name_that_leads_nowhere_is_answered_with_the_way() {
    let providers = with_variables(&[]);
    assert_eq!(
        error(&providers, "claude-sonnet-4-5"),
        "\"claude-sonnet-4-5\" names no provider; models are written provider/model; \
         did you mean \"anthropic/claude-sonnet-4-5\"?"
    );
    assert_eq!(
        error(&providers, "openia/gpt-4.1"),
        "unknown provider \"openia\"; did you mean \"openai\"? (known: anthropic, deepseek, gemini, \
         groq, llamacpp, lmstudio, ollama, openai, openai-responses, openrouter, vllm, xai)"
    );
    assert_eq!(
        error(&providers, "anthropic/claude-sonnet-4-5"),
        "anthropic needs a key: set ANTHROPIC_API_KEY or CLAUDE_API_KEY"
    );
    assert!(error(&providers, "zzz/m").starts_with("unknown provider \"zzz\" (known: "));
    assert!(error(&providers, "openai/").contains("names no provider"));
}

#[test]
fn every_usual_variable_is_a_key() {
    for (variable, model) in [
        ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"),
        ("CLAUDE_API_KEY", "anthropic/claude-sonnet-4-5"),
        ("OPENAI_API_KEY", "openai/gpt-4.1"),
        ("OPENAI_API_KEY", "openai-responses/gpt-5"),
        ("GEMINI_API_KEY", "gemini/gemini-2.5-pro"),
        ("GOOGLE_API_KEY", "gemini/gemini-2.5-pro"),
        ("OPENROUTER_API_KEY", "openrouter/meta/llama"),
    ] {
        let providers = Providers::with_environment(BTreeMap::new(), move |name| {
            (name == variable).then(|| "k".to_owned())
        })
        .unwrap();
        assert_eq!(providers.model(model).unwrap().name(), model);
    }
    let empty = with_variables(&[("OPENAI_API_KEY", " ")]);
    assert!(error(&empty, "openai/gpt-4.1").contains("needs a key"));
}

#[test]
fn local_servers_need_no_key_and_hosts_are_read_as_people_write_them() {
    let providers = with_variables(&[
        ("OLLAMA_HOST", "0.0.0.0:1234"),
        ("ANTHROPIC_BASE_URL", "https://proxy.example.com"),
        ("OPENAI_BASE_URL", "http://localhost:9/v1"),
    ]);
    let status: BTreeMap<String, _> =
        providers.available().into_iter().map(|status| (status.name.clone(), status)).collect();
    let shown =
        |name: &str| (status[name].base_url.as_str(), status[name].local, &status[name].key);
    assert_eq!(shown("ollama"), ("http://127.0.0.1:1234/v1/", true, &KeyStatus::NotNeeded));
    assert_eq!(shown("anthropic").0, "https://proxy.example.com/v1/");
    // A server in OpenAI's place may want no key.
    assert_eq!(shown("openai"), ("http://localhost:9/v1/", true, &KeyStatus::NotNeeded));
    assert_eq!(
        shown("gemini").2,
        &KeyStatus::Missing { variables: vec!["GEMINI_API_KEY".into(), "GOOGLE_API_KEY".into()] }
    );
    providers.model("ollama/qwen3").unwrap();
    providers.model("openai/local").unwrap();
    let providers = with_variables(&[("OLLAMA_HOST", "gpu.example.com")]);
    let ollama = providers.available().into_iter().find(|status| status.name == "ollama");
    assert_eq!(ollama.unwrap().base_url, "http://gpu.example.com:11434/v1/");
}

#[test]
fn a_configuration_that_makes_no_sense_says_where() {
    for (config, words) in [
        (json!({}), "providers.mine.base_url: a new provider needs an address"),
        (
            json!({"base_url": "ftp://x"}),
            "providers.mine.base_url: \"ftp://x\" is not an http or https address",
        ),
        (json!({"base_url": "http://"}), "providers.mine.base_url: "),
    ] {
        let config: ProviderConfig = serde_json::from_value(config).unwrap();
        let configs = BTreeMap::from([("mine".to_owned(), config)]);
        let error = Providers::new(configs).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
    let config: ProviderConfig = serde_json::from_value(
        json!({"base_url": "http://localhost:1", "headers": {"x-team": "${NOT_SET}"}}),
    )
    .unwrap();
    let configs = BTreeMap::from([("mine".to_owned(), config)]);
    let providers = Providers::with_environment(configs, |_| None).unwrap();
    assert_eq!(
        error(&providers, "mine/m"),
        "providers.mine.headers.x-team: the variable NOT_SET is not set"
    );
    assert!(serde_json::from_value::<ProviderConfig>(json!({"base_ulr": "x"})).is_err());
}

#[test]
fn prices_are_listed_and_can_be_overridden() {
    let config: ProviderConfig = serde_json::from_value(
        json!({"prices": {"gpt-4.1": {"input": 9.0, "output": 9.0, "cached": 9.0}}}),
    )
    .unwrap();
    let configs = BTreeMap::from([("openai".to_owned(), config)]);
    let providers = Providers::with_environment(configs, |_| Some("http://k".into())).unwrap();
    let price = |name: &str| providers.model(name).unwrap().price();
    assert_eq!(price("openai/gpt-4.1").unwrap().input, 9.0);
    assert_eq!(price("openai/gpt-4.1-mini"), Some(Price { input: 0.4, output: 1.6, cached: 0.1 }));
    assert_eq!(price("ollama/qwen3"), None);
}

#[tokio::test]
async fn servers_on_this_machine_are_asked_what_they_have() {
    let list = json!({"data": [{"id": "b"}, {"id": "a"}]}).to_string();
    let server = Server::refusing("200 OK", "", &list).await;
    let found: BTreeMap<String, _> = server
        .providers(Wire::OpenaiChat)
        .reachable()
        .await
        .into_iter()
        .map(|reached| (reached.provider.clone(), reached))
        .collect();
    assert_eq!(found["mock"].models, Ok(vec!["mock/a".to_owned(), "mock/b".to_owned()]));
    assert!(found.contains_key("ollama") && !found.contains_key("anthropic"));
}

#[tokio::test]
async fn a_server_that_hangs_does_not_hold_the_list_up() {
    let server = Server::start(vec![super::support::Act::Hang]).await;
    let began = std::time::Instant::now();
    let models = server.providers(Wire::Ollama).reachable().await;
    assert!(began.elapsed() < std::time::Duration::from_secs(8));
    let mock = models.iter().find(|reached| reached.provider == "mock").unwrap();
    assert!(mock.models.as_ref().unwrap_err().contains("no answer within"));
}

#[test]
fn nothing_that_is_printed_shows_a_key() {
    let config: ProviderConfig = serde_json::from_value(
        json!({"base_url": "http://ada:pass-word@localhost:1/v1?key=url-key", "headers": {"x-key": "plain-key"}}),
    )
    .unwrap();
    assert!(!format!("{config:?}").contains("plain-key"));
    let configs = BTreeMap::from([("mine".to_owned(), config)]);
    let providers = Providers::with_environment(configs, |_| None).unwrap();
    let shown = format!("{providers:?} {:?}", providers.available());
    assert!(!shown.contains("pass-word") && !shown.contains("url-key"), "{shown}");
    let missing = ProviderError::MissingKey { provider: "p".into(), variables: vec!["V".into()] };
    assert_eq!(missing.to_string(), "p needs a key: set V");
}
