//! Texts that are the product: `duo config`, its JSON, and the reference page.
//!
//! `UPDATE_GOLDEN=1 cargo test -p duo config` writes them anew.

use std::{fs, path::PathBuf};

use super::super::schema::Section;
use super::super::{docs_markdown, keys::Config, schema::Kind};
use super::{House, house};

/// What a golden file says, after writing it anew if that is asked for.
fn golden(path: &str, actual: &str) -> String {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, actual).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    found.replace("\r\n", "\n")
}

fn compare(path: &str, actual: &str) {
    let expected = golden(path, actual);
    assert!(
        expected == actual,
        "{path} is out of date; run `UPDATE_GOLDEN=1 cargo test -p duo config`. It should be:\n{actual}"
    );
}

fn furnished() -> House {
    house()
        .user("model = 'ollama/qwen3'\n\n[ui]\ncolor = 'never'\n\n[memory]\nwindow_messages = 40\n")
        .project(
            "agent = 'reviewer'\nworkspace = 'src'\n\n[permissions]\nallow = [\n  \
             'shell(git status*)',\n  'read_file',\n]\n\n[agents.reviewer]\nbehavior = 'react'\n\
             system = '''\nYou review code.\nYou are brief, you name the file and the line, and you \
             say what to do about it.'''\nmemory.window_tokens = 64000\n\n[providers.lab]\n\
             base_url = 'http://localhost:8000/v1'\napi_key_env = 'LAB_API_KEY'\n\
             headers.Authorization = 'Bearer ${LAB_TOKEN}'\nheaders.X-Team = 'blue'\n\
             prices.\"qwen3-32b\" = { input = 0.2, output = 0.6 }\n",
        )
        .var("DUOLOGUE_PERMISSIONS_MODE", "auto-edit")
        .var("DUOLOGUE_BUDGET__COST_USD", "2")
        .flag("--journal", "journal", "memory")
        .set("limits.retry_attempts=2")
}

#[test]
fn the_table_shows_every_value_and_where_it_came_from() {
    let text = furnished().loaded().render_text();
    assert!(!text.contains("Bearer") && !text.contains("blue"), "{text}");
    compare("src/config/tests/golden/config.txt", &text);
}

#[test]
fn the_json_shows_the_same_to_programs() {
    let json = furnished().loaded().render_json();
    let text = serde_json::to_string_pretty(&json).unwrap() + "\n";
    assert!(!text.contains("Bearer") && !text.contains("blue"), "{text}");
    // The order of fields depends on how serde_json was built, so that values are compared.
    let file = golden("src/config/tests/golden/config.json", &text);
    let expected: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(json, expected);
}

#[test]
fn the_reference_page_is_made_from_the_keys() {
    compare("../../docs/configuration.md", &docs_markdown());
}

#[test]
fn the_example_on_the_reference_page_loads() {
    let page = docs_markdown();
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let config = house().project(example).config();
    assert_eq!(config.agent, "reviewer");
    assert!(config.providers.contains_key("lab"));
}

#[test]
fn the_errors_on_the_reference_page_are_the_ones_that_are_printed() {
    let page = docs_markdown();
    let (_, rest) = page.split_once("```text\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let file =
        format!("{}[tools]\nenabled = ['ehco']\n\n[permissions]\nmod = 1\n", "\n".repeat(10));
    assert_eq!(house().project(&file).errors().join("\n") + "\n", shown);
}

/// The checks and the types must agree: what passes the checks must always become a `Config`.
#[test]
fn every_default_and_every_word_becomes_a_value() {
    assert!(house().try_load().is_ok());
    for (path, key) in Config::SPEC.fixed_keys() {
        let Kind::Choice(words) = key.kind else {
            continue;
        };
        for known in words {
            let set = format!("{}={}", path.join("."), known.word);
            assert!(house().set(&set).try_load().is_ok(), "{set}");
        }
    }
}

#[test]
fn every_key_and_word_is_explained() {
    let mut open = vec![Config::SPEC];
    while let Some(spec) = open.pop() {
        assert!(!spec.doc.trim().is_empty());
        for key in spec.keys {
            assert!(key.doc.trim().ends_with('.'), "{}: {}", key.name, key.doc);
            match key.kind {
                Kind::Table(inner) | Kind::Named(inner) | Kind::Inherited(_, inner) => {
                    open.push(inner);
                }
                Kind::Choice(words) | Kind::PathOr(words) => {
                    assert!(words.iter().all(|known| known.doc.trim().ends_with('.')));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn what_a_project_grants_itself_can_be_told() {
    let loaded = furnished().loaded();
    let granted: Vec<&str> =
        loaded.provenance.grants_of_project().map(|row| row.key.as_str()).collect();
    let expected = [
        "workspace",
        "permissions.allow",
        "providers.lab.base_url",
        "providers.lab.api_key_env",
        "providers.lab.headers.Authorization",
        "providers.lab.headers.X-Team",
        "providers.lab.prices.qwen3-32b.input",
        "providers.lab.prices.qwen3-32b.output",
    ];
    assert_eq!(granted, expected);
}
