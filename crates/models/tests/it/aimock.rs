//! Every wire against `@copilotkit/aimock`, a model server that nobody here wrote.
//!
//! `cargo xtask setup` installs it and `cargo xtask test` says where it is; without it these tests
//! say so and pass.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use duologue_core::{
    Delta, ErrorClass, Message, Model, OutputSchema, Part, Request, Role, StopReason, ToolResult,
    ToolSpec, ToolStatus, Usage,
};
use duologue_models::{ProviderConfig, Providers, Wire};
use futures::StreamExt;
use serde_json::{Value, json};

use super::support::{answer, asked, conversation, deltas};

const SECRET: &str = "aimock-test-secret";

/// Every wire with a model's name that fits it.
const WIRES: [(Wire, &str); 5] = [
    (Wire::OpenaiChat, "gpt-4.1"),
    (Wire::OpenaiResponses, "gpt-4.1"),
    (Wire::Anthropic, "claude-sonnet-4-5"),
    (Wire::Gemini, "gemini-2.0-flash"),
    (Wire::Ollama, "llama3"),
];

/// The server, for one test, on a port of its own.
struct Aimock {
    process: Child,
    url: String,
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where the server's program is, if it is installed.
fn program() -> Option<PathBuf> {
    let package = "node_modules/@copilotkit/aimock/dist/cli.js";
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = std::env::var_os("DUOLOGUE_AIMOCK").map(PathBuf::from);
    // The variable names the package's other program, or a folder that has the package.
    let beside = named.as_ref().map(|path| path.with_file_name("cli.js"));
    let below = named.as_ref().map(|path| path.join(package));
    let usual = root.join("target/tools/aimock").join(package);
    // Node takes `..` by the letter, which is wrong behind a link.
    [beside, below, Some(usual)].into_iter().flatten().find_map(|path| path.canonicalize().ok())
}

impl Aimock {
    fn start() -> Option<Self> {
        let Some(program) = program() else {
            // Not by a macro: the test runner would keep that to itself.
            let note = "SKIPPED: aimock is not installed; `cargo xtask setup` installs it\n";
            let _ = std::io::stderr().write_all(note.as_bytes());
            return None;
        };
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/aimock/fixtures");
        let mut process = Command::new("node")
            .arg(program)
            .args(["--port", "0", "--strict", "--fixtures", fixtures])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("aimock is installed, but node does not start");
        let output = process.stdout.take().unwrap();
        let mut lines = BufReader::new(output).lines();
        let url = lines
            .find_map(|line| {
                let line = line.ok()?;
                line.split_once("listening on ").map(|(_, url)| url.trim().to_owned())
            })
            .expect("aimock ended before it listened");
        // It must never wait for somebody to read what it says.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { process, url })
    }

    fn model(&self, wire: Wire, id: &str) -> Arc<dyn Model> {
        let config = ProviderConfig {
            wire: Some(wire),
            base_url: Some(self.url.clone()),
            api_key_env: Some("AIMOCK_KEY".into()),
            idle_timeout_secs: Some(20),
            ..ProviderConfig::default()
        };
        let configs = BTreeMap::from([("aimock".to_owned(), config)]);
        let providers = Providers::with_environment(configs, |name| {
            (name == "AIMOCK_KEY").then(|| SECRET.to_owned())
        })
        .unwrap();
        providers.model(&format!("aimock/{id}")).unwrap()
    }
}

fn tools() -> Arc<[Arc<ToolSpec>]> {
    let schema = json!({"type": "object", "properties": {}});
    Arc::from(vec![
        Arc::new(ToolSpec::new("echo", "Says it.", schema.clone())),
        Arc::new(ToolSpec::new("add", "Adds.", schema)),
    ])
}

#[tokio::test]
async fn every_wire_streams_an_answer() {
    let Some(aimock) = Aimock::start() else { return };
    for (wire, id) in WIRES {
        let mut request = asked("please say hello");
        request.system = Some("Be kind.".into());
        request.options.temperature = Some(0.2);
        request.options.max_tokens = Some(500);
        let said = deltas(&aimock.model(wire, id), request).await.unwrap();
        let texts: Vec<&str> = said
            .iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(
            texts.concat(),
            "Hello there, grüße 🙂 from a server that nobody here wrote.",
            "{wire}"
        );
        assert!(texts.len() > 1 || wire == Wire::OpenaiChat, "{wire} came in one piece");
        let usage = Usage { input_tokens: 11, output_tokens: 13, ..Usage::default() };
        assert!(wire == Wire::Ollama || said.contains(&Delta::Usage(usage)), "{wire}: {said:?}");
        assert_eq!(said.last(), Some(&Delta::Stop(StopReason::Completed)), "{wire}");
    }
}

#[tokio::test]
async fn every_wire_calls_tools_and_takes_their_results() {
    let Some(aimock) = Aimock::start() else { return };
    for (wire, id) in WIRES {
        let model = aimock.model(wire, id);
        let question = Message::user("use a tool or two");
        let mut request = conversation(vec![question.clone()]);
        request.tools = tools();
        let first = answer(&model, request).await.unwrap();
        assert_eq!(first.stop, Some(StopReason::ToolCalls), "{wire}");
        let calls: Vec<(String, Value)> = first
            .message
            .tool_calls()
            .map(|call| (call.name.clone(), call.arguments.clone()))
            .collect();
        assert_eq!(
            calls,
            [
                ("echo".to_owned(), json!({"text": "größer \"quoted\"\n"})),
                ("add".to_owned(), json!({"a": 1, "b": [2, 3]})),
            ],
            "{wire}"
        );
        let results = first
            .message
            .tool_calls()
            .map(|call| Part::from(ToolResult::text(call, ToolStatus::Ok, "the tools worked")))
            .collect();
        let mut request =
            conversation(vec![question, first.message, Message::new(Role::Tool, results)]);
        request.tools = tools();
        let second = answer(&model, request).await.unwrap();
        assert_eq!(second.message.text(), "The tools gave what they should.", "{wire}");
        assert_eq!(second.stop, Some(StopReason::Completed), "{wire}");
    }
}

#[tokio::test]
async fn thoughts_arrive_and_go_back_where_they_came_from() {
    let Some(aimock) = Aimock::start() else { return };
    for (wire, id) in [
        (Wire::OpenaiChat, "gpt-5"),
        (Wire::OpenaiResponses, "gpt-5"),
        (Wire::Anthropic, "claude-sonnet-4-5"),
        (Wire::Gemini, "gemini-2.5-flash"),
        (Wire::Ollama, "deepseek-r1"),
    ] {
        let model = aimock.model(wire, id);
        let said = answer(&model, asked("think first")).await.unwrap().message;
        assert_eq!(said.text(), "I thought about it.", "{wire}");
        assert_eq!(said.reasoning(), "First this, then that.", "{wire}");
        if wire == Wire::Anthropic {
            let proof = "anthropic:c2lnbmVkLWJ5LWFpbW9jaw==\nredacted:c2VhbGVk";
            let signed = Part::Reasoning {
                text: "First this, then that.".into(),
                signature: Some(proof.into()),
            };
            assert!(said.parts.contains(&signed), "{said:?}");
        }
        // The server checks the shape of what it is sent, so an answer is a test of the way back.
        let request =
            conversation(vec![Message::user("think first"), said, Message::user("now say hello")]);
        let next = answer(&model, request).await.unwrap();
        assert!(next.message.text().starts_with("Hello there"), "{wire}");
    }
}

#[tokio::test]
async fn structured_output_is_asked_for_and_comes() {
    let Some(aimock) = Aimock::start() else { return };
    for (wire, id) in WIRES.into_iter().filter(|(wire, _)| *wire != Wire::Ollama) {
        let mut request = asked("answer as json");
        request.options.output = Some(OutputSchema {
            name: "city".into(),
            schema: Arc::new(json!({"type": "object", "properties": {"city": {"type": "string"}},
                "required": ["city"], "additionalProperties": false})),
        });
        let text = answer(&aimock.model(wire, id), request).await.unwrap().message.text();
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({"city": "Paris"}),
            "{wire}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_meets_the_limit_says_so() {
    let Some(aimock) = Aimock::start() else { return };
    // This server's Ollama always says that it is done.
    for (wire, id) in WIRES.into_iter().filter(|(wire, _)| *wire != Wire::Ollama) {
        let said = answer(&aimock.model(wire, id), asked("run long")).await.unwrap();
        assert_eq!(said.stop, Some(StopReason::MaxTokens), "{wire}");
    }
}

#[tokio::test]
async fn every_failure_has_its_class_on_every_wire() {
    let Some(aimock) = Aimock::start() else { return };
    for (wire, id) in WIRES {
        let model = aimock.model(wire, id);
        for (text, classes) in [
            ("too many", &[ErrorClass::RateLimited][..]),
            ("overloaded", &[ErrorClass::Server]),
            ("wrong key", &[ErrorClass::Authentication]),
            ("far too long", &[ErrorClass::ContextOverflow]),
            ("send rubbish", &[ErrorClass::Malformed]),
            ("hang up", &[ErrorClass::Network]),
            ("break off", &[ErrorClass::Network, ErrorClass::Malformed]),
        ] {
            let error = deltas(&model, asked(text)).await.expect_err(text);
            assert!(classes.contains(&error.class), "{wire}, {text}: {}: {error}", error.class);
            assert!(!error.message.contains(SECRET), "{wire}, {text}: {error}");
            if text == "too many" {
                assert_eq!(error.retry_after, Some(Duration::from_secs(7)), "{wire}");
            }
        }
        // Nothing of that spoils the next request.
        let said = answer(&model, asked("say hello")).await.unwrap();
        assert_eq!(said.stop, Some(StopReason::Completed), "{wire}");
    }
}

#[tokio::test]
async fn text_is_seen_as_it_comes_and_leaving_early_is_quick() {
    let Some(aimock) = Aimock::start() else { return };
    for (wire, id) in WIRES {
        let model = aimock.model(wire, id);
        let mut said = model.ask(asked("take your time"));
        let first: Result<Delta, _> = said.next().await.unwrap();
        assert!(matches!(first, Ok(Delta::Text(_))), "{wire}: {first:?}");
        let began = Instant::now();
        drop(said);
        assert!(began.elapsed() < Duration::from_millis(100), "{wire}");
    }
}

#[tokio::test]
async fn a_question_that_nobody_prepared_is_a_clear_error() {
    let Some(aimock) = Aimock::start() else { return };
    for (wire, id) in WIRES {
        let request: Request = asked("nobody prepared this");
        let error = deltas(&aimock.model(wire, id), request).await.unwrap_err();
        assert!(error.message.starts_with("aimock answered "), "{wire}: {error}");
    }
}
