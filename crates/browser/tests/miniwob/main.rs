//! MiniWoB++: 29 tasks of a benchmark that nobody here wrote, each with scripted policies that use
//! nothing but our tools. The pages are those of the PyPI package `miniwob`.
//!
//! `DUOLOGUE_MINIWOB` names the folder of the pages, `DUOLOGUE_MINIWOB_SEEDS` how many episodes of
//! each task are played, `DUOLOGUE_MINIWOB_TASKS` which tasks. `cargo xtask test` plays some of
//! each, `cargo xtask miniwob` all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    dead_code
)]

use std::{path::PathBuf, time::Instant};

use duologue_browser::{BrowserConfig, Scripts};
use serde_json::json;

#[path = "../it/support.rs"]
mod support;

mod policies;

use support::{Hand, Server, config, has_browser};

const TASKS: [&str; 29] = [
    "click-test",
    "click-test-2",
    "click-button",
    "click-link",
    "click-dialog",
    "click-dialog-2",
    "click-button-sequence",
    "enter-text",
    "enter-text-dynamic",
    "focus-text",
    "focus-text-2",
    "enter-password",
    "login-user",
    "click-option",
    "click-checkboxes",
    "click-tab",
    "choose-list",
    "simple-arithmetic",
    "click-collapsible",
    "unicode-test",
    "copy-paste",
    "read-table",
    "find-word",
    "use-spinner",
    "text-transform",
    "enter-date",
    "enter-time",
    "click-widget",
    "drag-box",
];

/// What a script gave, as JSON. Only the one who sets the tasks uses scripts, never a policy.
async fn script(hand: &Hand, script: &str) -> String {
    let text = hand.call("evaluate", json!({"script": script})).await;
    let (_, rest) = text.split_once("⟧\n").unwrap();
    rest.split_once("\n⟦").unwrap().0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_episode_earns_the_whole_reward() {
    let Some(folder) = std::env::var_os("DUOLOGUE_MINIWOB").map(PathBuf::from) else {
        eprintln!(
            "SKIPPED: the pages of MiniWoB++ are not here; `cargo xtask miniwob` installs them"
        );
        return;
    };
    if !has_browser() {
        return;
    }
    let seeds: u32 =
        std::env::var("DUOLOGUE_MINIWOB_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let only = std::env::var("DUOLOGUE_MINIWOB_TASKS").unwrap_or_default();
    let tasks: Vec<&str> = match only.is_empty() {
        true => TASKS.to_vec(),
        false => only.split(',').collect(),
    };
    let server = Server::of(move |asked, _| {
        let path = asked.path.split('?').next()?.trim_start_matches('/');
        assert!(!path.contains(".."));
        let kind = match path.rsplit('.').next()? {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css",
            "png" => "image/png",
            _ => "application/octet-stream",
        };
        let content = std::fs::read(folder.join(path)).ok()?;
        Some((kind.to_owned(), String::new(), content))
    })
    .await;
    let hand = Hand::new(BrowserConfig { scripts: Scripts::On, ..config(&server.sites()) });
    let mut failures = Vec::new();
    for task in &tasks {
        let began = Instant::now();
        let mut won = 0;
        hand.call("navigate", json!({"url": server.url(&format!("/miniwob/{task}.html"))})).await;
        for seed in 0..seeds {
            let begin = format!(
                "Math.seedrandom({seed}); core.EPISODE_MAX_TIME = 60000; core.startEpisodeReal(); true"
            );
            script(&hand, &begin).await;
            while script(&hand, "WOB_TASK_READY").await != "true" {}
            let utterance: String =
                serde_json::from_str(&script(&hand, "core.getUtterance()").await)
                    .unwrap_or_default();
            let played = policies::play(&hand, task, &utterance).await;
            let mut done = String::new();
            for _ in 0..40 {
                done = script(&hand, "WOB_DONE_GLOBAL").await;
                if done == "true" {
                    break;
                }
            }
            let reward = script(&hand, "WOB_RAW_REWARD_GLOBAL").await;
            match (played, reward.parse::<f64>()) {
                (Ok(()), Ok(1.0)) if done == "true" => won += 1,
                (played, _) => {
                    let page = hand.snapshot().await;
                    failures.push(format!(
                        "{task} seed {seed}: {utterance:?} {played:?} done {done} reward {reward}\n{page}"
                    ));
                }
            }
        }
        let each = began.elapsed().as_millis() / u128::from(seeds.max(1));
        eprintln!("{task:<22} {won}/{seeds}  {each} ms an episode");
    }
    let played = tasks.len() as u32 * seeds;
    eprintln!("{} of {played} episodes with the whole reward", played as usize - failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
