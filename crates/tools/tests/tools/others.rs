//! The small tools, and the choice of tools.

use std::{collections::BTreeMap, sync::Arc};

use duologue_core::{Effect, Execution, Reach};
use duologue_tools::{Enabled, Workspace, builtin, builtin_named, names};
use serde_json::{Value, json};

use crate::bench::{Bench, Results, call, context};

#[tokio::test]
async fn small_tools_answer() {
    let bench = Bench::new();
    assert_eq!(bench.call("echo", json!({"text": "hi"})).await, Ok("hi".to_owned()));
    assert_eq!(
        bench.call("calculator", json!({"expression": "37*12"})).await,
        Ok("444".to_owned())
    );
    assert_eq!(
        bench.call("calculator", json!({"expression": "1/0"})).await,
        Err("division by zero".to_owned())
    );
    let time = bench.call("current_time", json!({"zone": "Asia/Tokyo"})).await.unwrap();
    assert!(time.contains("+09:00 (Asia/Tokyo)"), "{time}");
    assert!(bench.call("current_time", json!({})).await.is_ok());
    assert!(bench.call("echo", json!({})).await.unwrap_err().contains("missing field `text`"));
}

#[tokio::test]
async fn a_long_result_can_be_read_on() {
    let bench = Bench::new();
    let mut context = context();
    let long: String = (0..5000).map(|n| format!("{n}\n")).collect();
    context.results = Arc::new(Results(vec![("call-7".into(), long.clone())]));
    let tool = bench.tool("read_result");
    let read = |arguments| call(&*tool, arguments, context.clone());
    let mut joined = String::new();
    let mut offset = 0;
    loop {
        let page = read(json!({"call_id": "call-7", "offset": offset})).await.unwrap();
        match page.split_once("\n[characters") {
            Some((text, note)) => {
                joined.push_str(text);
                let next = note.strip_suffix(']').unwrap().rsplit_once(' ').unwrap().1;
                offset = next.parse().unwrap();
            }
            None => {
                joined.push_str(&page);
                break;
            }
        }
    }
    assert_eq!(joined, long);
    assert_eq!(
        read(json!({"call_id": "call-8"})).await,
        Err("no earlier call of this conversation has the id \"call-8\" and a result".to_owned())
    );
    let behind = read(json!({"call_id": "call-7", "offset": 1_000_000})).await;
    assert!(behind.unwrap_err().contains("has only"));
}

#[test]
fn every_tool_declares_its_effect_and_reach() {
    use Effect::{Idempotent, Pure, SideEffect};
    let bench = Bench::new();
    let declared: BTreeMap<&str, (Effect, Reach)> = names()
        .iter()
        .map(|name| {
            let tool = builtin_named(name, &bench.config).unwrap();
            let spec = tool.spec();
            assert_eq!(spec.name, *name);
            assert!(!spec.description.is_empty());
            (*name, (spec.effect, spec.reach))
        })
        .collect();
    let expected = BTreeMap::from([
        ("echo", (Pure, Reach::Workspace)),
        ("calculator", (Pure, Reach::Workspace)),
        ("current_time", (Pure, Reach::Workspace)),
        ("read_file", (Pure, Reach::Workspace)),
        ("list_files", (Pure, Reach::Workspace)),
        ("search_files", (Pure, Reach::Workspace)),
        ("count_lines", (Pure, Reach::Workspace)),
        ("read_result", (Pure, Reach::Workspace)),
        ("ask_human", (Pure, Reach::Workspace)),
        ("write_file", (Idempotent, Reach::Workspace)),
        ("edit_file", (SideEffect, Reach::Workspace)),
        ("copy_file", (Idempotent, Reach::Workspace)),
        #[cfg(unix)]
        ("shell", (SideEffect, Reach::Machine)),
        #[cfg(feature = "http")]
        ("http_get", (Pure, Reach::Network)),
    ]);
    assert_eq!(declared, expected);
}

/// What a model sees of each tool. Providers refuse references and odd keywords, and permission
/// rules look at the first required argument.
#[test]
fn every_schema_is_plain_and_names_its_main_argument_first() {
    let bench = Bench::new();
    let first: BTreeMap<&str, Value> = names()
        .iter()
        .map(|name| {
            let tool = builtin_named(name, &bench.config).unwrap();
            let parameters = &tool.spec().parameters;
            let text = parameters.to_string();
            assert!(!text.contains("$ref") && !text.contains("$defs"), "{name}: {text}");
            assert_eq!(parameters["type"], "object", "{name}");
            assert_eq!(parameters["additionalProperties"], false, "{name}");
            for (field, schema) in parameters["properties"].as_object().unwrap() {
                assert!(schema["description"].is_string(), "{name}.{field}: {schema}");
            }
            (*name, parameters["required"][0].clone())
        })
        .filter(|(_, required)| !required.is_null())
        .collect();
    let expected = BTreeMap::from([
        ("echo", json!("text")),
        ("calculator", json!("expression")),
        ("read_file", json!("path")),
        ("write_file", json!("path")),
        ("edit_file", json!("path")),
        ("copy_file", json!("to")),
        ("search_files", json!("pattern")),
        ("count_lines", json!("path")),
        ("read_result", json!("call_id")),
        ("ask_human", json!("question")),
        #[cfg(unix)]
        ("shell", json!("command")),
        #[cfg(feature = "http")]
        ("http_get", json!("url")),
    ]);
    assert_eq!(first, expected);
}

#[test]
fn shell_is_off_until_it_is_named() {
    let mut bench = Bench::new();
    let enabled = |bench: &Bench| -> Vec<String> {
        let tools = builtin(&bench.config).unwrap();
        tools.iter().map(|tool| tool.spec().name.clone()).collect()
    };
    let usual = enabled(&bench);
    assert!(!usual.contains(&"shell".to_owned()));
    let without: Vec<&str> = names().iter().copied().filter(|name| *name != "shell").collect();
    assert_eq!(usual, without);
    bench.config.enabled = Enabled::Only(vec!["shell".into(), "echo".into()]);
    assert_eq!(enabled(&bench), ["shell", "echo"]);
    bench.config.enabled = Enabled::Only(vec!["reed_file".into()]);
    let error = builtin(&bench.config).err().unwrap().to_string();
    assert_eq!(error, "unknown tool \"reed_file\" (did you mean \"read_file\"?)");
}

#[tokio::test]
async fn a_question_is_for_a_person_and_says_so_where_there_is_none() {
    let bench = Bench::new();
    assert_eq!(bench.tool("ask_human").spec().execution, Execution::Human);
    let ask = json!({"question": "Which?", "choices": ["a", "b"]});
    assert_eq!(
        bench.call("ask_human", ask).await,
        Err("there is nobody here who could be asked".to_owned())
    );
    assert!(bench.call("ask_human", json!({"choices": []})).await.is_err());
}

#[test]
fn a_workspace_must_be_a_folder_that_exists() {
    let bench = Bench::new();
    bench.put("file", "");
    for folder in ["missing", "file"] {
        let error = Workspace::open(bench.root().join(folder)).unwrap_err().to_string();
        assert!(error.starts_with("cannot use ") && error.contains(folder), "{error}");
    }
}
