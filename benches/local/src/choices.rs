//! How well a model chooses among tools: what the wording of the prompt is tuned on.
//!
//! The tests of `duologue-local` judge by other requests. Keep the two apart, or the judgement means
//! nothing.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::Args;
use duologue_core::{
    Accumulator, Message, Model, Options, Part, Request, Role, ToolCall, ToolChoice, ToolResult,
    ToolSpec, ToolStatus,
};
use duologue_local::{Catalogue, LocalModel, LocalOptions, PullOptions, pull};
use futures::{StreamExt, stream};
use serde_json::{Map, Value, json};

/// What is asked of which model.
#[derive(Args)]
pub(crate) struct Plan {
    /// A model by name or path
    #[arg(long, default_value = "small")]
    model: String,
    /// Show every answer, not only the wrong ones
    #[arg(long)]
    all: bool,
}

/// What a request should lead to.
#[derive(Clone, Copy)]
enum Wanted {
    /// A call of a tool, with this somewhere in its arguments.
    Call(&'static str, &'static str),
    /// Words.
    Words,
    /// Words with this in them.
    Telling(&'static str),
}

use Wanted::{Call, Telling, Words};

struct Case {
    tools: Arc<[Arc<ToolSpec>]>,
    messages: Vec<Message>,
    wanted: Wanted,
}

pub(crate) async fn judge(plan: &Plan) -> Result<()> {
    let path = match Catalogue::default().get(&plan.model) {
        Some(file) => pull(file, &PullOptions::default(), &|_| ()).await?,
        None => PathBuf::from(&plan.model),
    };
    let model = LocalModel::from_file("local/bench", &path, LocalOptions::default());
    for (title, choice, cases) in [
        ("required, desk tools", ToolChoice::Required, cases(desk(), &DESK)),
        ("required, workshop tools", ToolChoice::Required, cases(workshop(), &WORKSHOP)),
        ("auto, desk tools", ToolChoice::Auto, cases(desk(), &DESK)),
        ("auto, workshop tools", ToolChoice::Auto, cases(workshop(), &WORKSHOP)),
        ("auto, nothing to call (desk)", ToolChoice::Auto, cases(desk(), &TALK)),
        ("auto, nothing to call (workshop)", ToolChoice::Auto, cases(workshop(), &TALK)),
        ("auto, a result to tell", ToolChoice::Auto, results()),
    ] {
        let count = cases.len();
        let judged = stream::iter(cases).map(|case| one(&model, &choice, case, plan.all));
        let right = judged.buffered(4).fold(0, async |sum, right| sum + usize::from(right)).await;
        println!("{title:<36} {right:>2} of {count}");
    }
    Ok(())
}

async fn one(model: &LocalModel, choice: &ToolChoice, case: Case, show: bool) -> bool {
    let last = case.messages.iter().rev().find(|message| message.role == Role::User);
    let asked = last.map(Message::text).unwrap_or_default();
    let request = Request {
        system: Some("You are a helpful assistant.".into()),
        messages: Arc::new(case.messages.into_iter().map(Arc::new).collect()),
        tools: case.tools,
        options: Options {
            tool_choice: choice.clone(),
            max_tokens: Some(60),
            ..Options::default()
        },
        ..Request::default()
    };
    let mut all = Accumulator::default();
    let mut deltas = model.ask(request);
    while let Some(Ok(delta)) = deltas.next().await {
        all.push(delta);
    }
    let message = all.finish().message;
    let call = message.tool_calls().next();
    let right = match (case.wanted, call) {
        (Call(tool, argument), Some(call)) => {
            let arguments = call.arguments.to_string().to_lowercase().replace(' ', "");
            call.name == tool && arguments.contains(argument)
        }
        (Words, None) => true,
        (Telling(part), None) => message.text().contains(part),
        _ => false,
    };
    if show || !right {
        let mark = if right { "right" } else { "wrong" };
        let what = match call {
            Some(call) => format!("{} {}", call.name, call.arguments),
            None => message.text(),
        };
        println!("  {mark}: {asked} -> {what}");
    }
    right
}

fn cases(tools: Arc<[Arc<ToolSpec>]>, asked: &[(&str, Wanted)]) -> Vec<Case> {
    let case = |(text, wanted): &(&str, Wanted)| Case {
        tools: Arc::clone(&tools),
        messages: vec![Message::user(*text)],
        wanted: *wanted,
    };
    asked.iter().map(case).collect()
}

/// Conversations in which a tool has just given its result.
fn results() -> Vec<Case> {
    let told = [
        ("What is 12*12?", "calculator", json!({"expression": "12*12"}), "144", "144"),
        ("Is it warm in Lima?", "get_weather", json!({"city": "Lima"}), "sunny, 24 °C", "24"),
        ("What does motd.txt say?", "read_file", json!({"path": "motd.txt"}), "Be kind.", "kind"),
        ("Set a timer for 7 minutes.", "set_timer", json!({"minutes": 7}), "rings at 10:07", ""),
        ("Tell Ida hello.", "send_message", json!({"to": "Ida", "text": "hello"}), "sent", ""),
    ];
    let case = |(text, tool, arguments, result, part): (&str, &str, Value, &str, &'static str)| {
        let call = ToolCall::new("1", tool, arguments);
        let result = ToolResult::text(&call, ToolStatus::Ok, result);
        Case {
            tools: desk(),
            messages: vec![
                Message::user(text),
                Message::new(Role::Assistant, vec![Part::from(call)]),
                Message::new(Role::Tool, vec![Part::from(result)]),
            ],
            wanted: Telling(part),
        }
    };
    told.into_iter().map(case).collect()
}

fn tool(name: &str, about: &str, fields: &[(&str, &str)]) -> Arc<ToolSpec> {
    let field = |(name, kind): &(&str, &str)| ((*name).to_owned(), json!({"type": kind}));
    let properties: Map<String, Value> = fields.iter().map(field).collect();
    let required: Vec<&str> = fields.iter().map(|field| field.0).collect();
    let schema = json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    });
    Arc::new(ToolSpec::new(name, about, schema))
}

fn desk() -> Arc<[Arc<ToolSpec>]> {
    [
        tool("calculator", "Computes an arithmetic expression.", &[("expression", "string")]),
        tool("get_weather", "Tells the weather in a city.", &[("city", "string")]),
        tool("read_file", "Reads a file.", &[("path", "string")]),
        tool("set_timer", "Rings after some minutes.", &[("minutes", "integer")]),
        tool(
            "send_message",
            "Sends a message to a person.",
            &[("to", "string"), ("text", "string")],
        ),
    ]
    .into()
}

const DESK: [(&str, Wanted); 20] = [
    ("What is 37*12?", Call("calculator", "37*12")),
    ("Compute 1024 divided by 16.", Call("calculator", "1024/16")),
    ("How much is 15 plus 27?", Call("calculator", "15+27")),
    ("What is (3+4)*5?", Call("calculator", "(3+4)*5")),
    ("What's the weather in Paris?", Call("get_weather", "paris")),
    ("Is it raining in Tokyo right now?", Call("get_weather", "tokyo")),
    ("Tell me the weather in Berlin.", Call("get_weather", "berlin")),
    ("How warm is it in Madrid today?", Call("get_weather", "madrid")),
    ("Show me what is in notes.txt", Call("read_file", "notes.txt")),
    ("Read the file src/main.rs", Call("read_file", "src/main.rs")),
    ("Open README.md and read it.", Call("read_file", "readme.md")),
    ("What does the file config.toml say?", Call("read_file", "config.toml")),
    ("Set a timer for 5 minutes.", Call("set_timer", "5")),
    ("Wake me up in 20 minutes.", Call("set_timer", "20")),
    ("Ring in 45 minutes please", Call("set_timer", "45")),
    ("I need a 10 minute timer.", Call("set_timer", "10")),
    ("Tell Anna that I am late.", Call("send_message", "anna")),
    ("Send Bob a message: dinner is ready", Call("send_message", "bob")),
    ("Write to Carol that the meeting moved.", Call("send_message", "carol")),
    ("Let David know that I will call tomorrow.", Call("send_message", "david")),
];

fn workshop() -> Arc<[Arc<ToolSpec>]> {
    [
        tool("translate", "Translates a text.", &[("text", "string"), ("language", "string")]),
        tool("search_web", "Searches the web for news and facts of today.", &[("query", "string")]),
        tool("play_music", "Plays a song or an artist.", &[("what", "string")]),
        tool("add_to_list", "Puts an item on the shopping list.", &[("item", "string")]),
        tool("calculator", "Computes an arithmetic expression.", &[("expression", "string")]),
        tool("run_command", "Runs a shell command.", &[("command", "string")]),
        tool("current_time", "Tells the date and the time.", &[]),
        tool("list_files", "Lists the files of a folder.", &[("folder", "string")]),
    ]
    .into()
}

const WORKSHOP: [(&str, Wanted); 16] = [
    ("What is 19 times 23?", Call("calculator", "19*23")),
    ("7*8+2=?", Call("calculator", "7*8+2")),
    ("what's 365 - 128", Call("calculator", "365-128")),
    ("How do I say 'good night' in Italian? Use your translator.", Call("translate", "night")),
    ("Translate 'where is the station' to German.", Call("translate", "station")),
    ("Find the latest news about Mars.", Call("search_web", "mars")),
    ("Look up who won the match yesterday.", Call("search_web", "match")),
    ("Play something by Mozart.", Call("play_music", "mozart")),
    ("Put on Yellow Submarine.", Call("play_music", "yellow")),
    ("We are out of milk, put it on the list.", Call("add_to_list", "milk")),
    ("Add eggs to the shopping list.", Call("add_to_list", "eggs")),
    ("Run cargo check.", Call("run_command", "cargocheck")),
    ("Execute git status", Call("run_command", "gitstatus")),
    ("What time is it?", Call("current_time", "")),
    ("Which day is today?", Call("current_time", "")),
    ("Which files are in the folder src?", Call("list_files", "src")),
];

const TALK: [(&str, Wanted); 10] = [
    ("Hi there!", Words),
    ("What is the capital of Italy?", Words),
    ("Who painted the Sistine Chapel?", Words),
    ("What does HTTP stand for?", Words),
    ("Explain what a mutex is.", Words),
    ("Name three fruits.", Words),
    ("Thanks, that was helpful.", Words),
    ("What is the largest ocean?", Words),
    ("Write a short poem about rain.", Words),
    ("How many legs does a spider have?", Words),
];
