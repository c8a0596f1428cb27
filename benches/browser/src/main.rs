//! Our browser tools beside Playwright's, in the same Chromium on the same pages: how long a
//! snapshot, a click and a fill take, and how many tokens a snapshot is.

#![allow(clippy::print_stdout, reason = "a program that talks to a person at a terminal")]

use std::{path::PathBuf, process::Stdio, sync::Arc, time::Instant};

use anyhow::{Context, Result, bail};
use bench_arm::{Bar, figure};
use clap::Parser;
use duologue_browser::{Browser, BrowserConfig, Launch, Sites, Source, find_browser};
use duologue_core::{CallId, Content, Part, ResultReader, SessionId, ToolContext, Toolbox};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};
use tokio_util::sync::CancellationToken;

mod pages;

const PLAYWRIGHT: &str = include_str!("playwright.js");
const SIZE: (u32, u32) = (1280, 800);
/// How long a snapshot of twenty thousand nodes may take.
const HUGE_MS: f64 = 300.0;

/// Measures our browser tools beside Playwright's
#[derive(Parser)]
struct Options {
    /// The folder with playwright-core in its node_modules
    #[arg(long)]
    playwright: Option<PathBuf>,
    /// How often each thing is done
    #[arg(long, default_value_t = 40)]
    rounds: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let program = find_browser(None)?;
    let pages = pages::all();
    let address = pages::serve(&pages).await?;
    let ours = Ours::new(&program, &address)?;
    let mut theirs = match &options.playwright {
        Some(folder) => Some(Theirs::start(folder, &program).await?),
        None => None,
    };
    println!("{:<22} {:>14} {:>14}", "", "duologue", "Playwright");
    for page in &pages {
        let url = format!("http://{address}/{}", page.name);
        let rounds = if page.name == "huge" { options.rounds.div_ceil(8) } else { options.rounds };
        ours.call("navigate", json!({"url": url})).await?;
        if let Some(theirs) = &mut theirs {
            theirs.order(json!({"do": "open", "url": url})).await?;
        }
        let (mut mine, mut others) = (Vec::new(), Vec::new());
        let (mut own_text, mut other_text) = (String::new(), String::new());
        // The same information: the addresses of links too, and the whole page.
        let whole = json!({"links": true, "max_tokens": 100_000});
        for _ in 0..rounds {
            let (ms, text) = ours.call("snapshot", whole.clone()).await?;
            mine.push(ms);
            own_text = text;
            if let Some(theirs) = &mut theirs {
                let (ms, text) = theirs.order(json!({"do": "snapshot"})).await?;
                others.push(ms);
                other_text = text;
            }
        }
        let row = format!("snapshot {}", page.name);
        println!("{row:<22} {:>11.1} ms {:>11}", median(&mut mine), shown(&mut others));
        beside(&row, &mut mine, &mut others);
        let tokens = |text: &str| text.len().div_ceil(4);
        let other =
            if other_text.is_empty() { "–".into() } else { tokens(&other_text).to_string() };
        println!("{:<22} {:>14} {:>14}", "  tokens, whole", tokens(&own_text), other);
        if !other_text.is_empty() {
            let ratio = tokens(&own_text) as f64 / tokens(&other_text) as f64;
            figure(&format!("browser: tokens of {row} × Playwright"), ratio, Bar::AtMost(1.0));
        }
        if page.name == "huge" {
            let mut within = Vec::new();
            let mut text = String::new();
            for _ in 0..rounds {
                let (ms, said) = ours.call("snapshot", json!({})).await?;
                within.push(ms);
                text = said;
            }
            let ms = median(&mut within);
            println!("{:<22} {ms:>11.1} ms", "  within the budget");
            figure("browser: snapshot of 20,000 nodes, ms", ms, Bar::AtMost(HUGE_MS));
            println!("{:<22} {:>14}", "  tokens", tokens(&text));
            if ms > HUGE_MS {
                bail!("a snapshot of 20,000 nodes took {ms:.0} ms; it may take {HUGE_MS:.0}");
            }
        }
        if page.name == "form" {
            act(&ours, theirs.as_mut(), &own_text, &other_text, options.rounds).await?;
        }
    }
    Ok(())
}

/// Click a button and fill a field, in turns.
async fn act(
    ours: &Ours,
    mut theirs: Option<&mut Theirs>,
    own_text: &str,
    other_text: &str,
    rounds: usize,
) -> Result<()> {
    let before = |text: &str, what: &str, begin: &str, end: &[char]| -> Option<String> {
        let line = text.lines().find(|line| line.contains(what))?;
        let at = line
            .rfind(begin)
            .filter(|_| begin == "[ref=")
            .or_else(|| line.get(..line.find(what)?)?.rfind(begin))?;
        let rest = line.get(at + if begin == "[ref=" { begin.len() } else { 0 }..)?;
        rest.split(end).next().map(str::to_owned)
    };
    for (deed, what) in [("click", "button \"Count\""), ("fill", "textbox \"Field 2\"")] {
        let own = before(own_text, what, "f", &[' ']).context("our reference")?;
        let (mut mine, mut others) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let text = format!("text {round}");
            let order = match deed {
                "click" => json!({"ref": own}),
                _ => json!({"ref": own, "text": text}),
            };
            mine.push(ours.call(deed, order).await?.0);
            if let Some(theirs) = theirs.as_deref_mut() {
                let other = before(other_text, what, "[ref=", &[']']).context("their reference")?;
                let order = json!({"do": deed, "ref": other, "text": text});
                others.push(theirs.order(order).await?.0);
            }
        }
        println!("{deed:<22} {:>11.1} ms {:>11}", median(&mut mine), shown(&mut others));
        beside(deed, &mut mine, &mut others);
    }
    Ok(())
}

fn beside(what: &str, mine: &mut [f64], others: &mut [f64]) {
    if !others.is_empty() {
        let ratio = median(mine) / median(others);
        figure(&format!("browser: {what} × Playwright"), ratio, Bar::AtMost(1.0));
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn shown(times: &mut [f64]) -> String {
    if times.is_empty() { "–".to_owned() } else { format!("{:.1} ms", median(times)) }
}

#[derive(Debug)]
struct NoResults;

impl ResultReader for NoResults {
    fn result_text(&self, _: CallId) -> BoxFuture<'static, Option<String>> {
        Box::pin(async { None })
    }
}

/// Our tools.
struct Ours {
    tools: Toolbox,
    session: SessionId,
}

impl Ours {
    fn new(program: &std::path::Path, address: &str) -> Result<Self> {
        let browser = Browser::new(BrowserConfig {
            source: Source::Launch(Launch {
                program: Some(program.to_owned()),
                size: SIZE,
                ..Launch::default()
            }),
            sites: Sites::new([address])?,
            ..BrowserConfig::default()
        });
        let tools = browser.tools().into_iter().fold(Toolbox::new(), Toolbox::with_shared);
        Ok(Self { tools, session: SessionId::random() })
    }

    /// Call a tool: how many milliseconds it took, and what it said.
    async fn call(&self, name: &str, arguments: Value) -> Result<(f64, String)> {
        let tool = self.tools.get(name).with_context(|| format!("no tool {name}"))?;
        let context = ToolContext {
            session: self.session.clone(),
            call_id: CallId::from("bench"),
            idempotency_key: String::new(),
            cancel: CancellationToken::new(),
            results: Arc::new(NoResults),
            questions: duologue_core::Questions::default(),
        };
        let began = Instant::now();
        let Content(parts) = tool.call(arguments, context).await?;
        let ms = began.elapsed().as_secs_f64() * 1000.0;
        match parts.into_iter().next() {
            Some(Part::Text { text }) => Ok((ms, text)),
            other => bail!("{name} gave {other:?}"),
        }
    }
}

/// Playwright, in a process of its own.
struct Theirs {
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Theirs {
    async fn start(folder: &std::path::Path, program: &std::path::Path) -> Result<Self> {
        let folder = std::fs::canonicalize(folder)?;
        let script = folder.join("bench.js");
        std::fs::write(&script, PLAYWRIGHT)?;
        let mut process = Command::new("node")
            .arg(&script)
            .arg(program)
            .arg(format!("{}x{}", SIZE.0, SIZE.1))
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting node")?;
        let input = process.stdin.take().context("no input")?;
        let output = BufReader::new(process.stdout.take().context("no output")?).lines();
        Ok(Self { _process: process, input, output })
    }

    async fn order(&mut self, order: Value) -> Result<(f64, String)> {
        self.input.write_all(format!("{order}\n").as_bytes()).await?;
        let line = self.output.next_line().await?.context("Playwright ended")?;
        let answer: Value = serde_json::from_str(&line)?;
        if let Some(error) = answer.get("error") {
            bail!("Playwright: {order}: {error}");
        }
        let ms = answer.get("ms").and_then(Value::as_f64).unwrap_or_default();
        let text = answer.get("text").and_then(Value::as_str).unwrap_or_default();
        Ok((ms, text.to_owned()))
    }
}
