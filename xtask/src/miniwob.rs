//! `cargo xtask miniwob`: MiniWoB++ with scripted policies that use only our browser tools.

use anyhow::Result;

use crate::{
    house,
    process::{cargo, run as run_program},
    setup,
};

/// Play MiniWoB++ with our browser tools
///
/// 29 tasks of a benchmark of web pages, each with 20 seeds, played by scripted policies that use
/// nothing but our tools. Every episode must earn the whole reward. Installs the pages (the PyPI
/// package miniwob) and Chromium where they are missing.
///
/// `cargo xtask miniwob --seeds 5 --tasks click-link,drag-box`
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// How many episodes of each task
    #[arg(long, default_value_t = 20)]
    seeds: u32,
    /// Only these tasks, with commas between
    #[arg(long)]
    tasks: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let browser = setup::browser()?;
    let pages = setup::miniwob()?;
    let mut command = cargo(["test", "--package", "duologue-browser", "--test", "miniwob"]);
    command
        .args(["--", "--nocapture"])
        .env(house::BROWSER, browser)
        .env(house::MINIWOB, pages)
        .env(house::MINIWOB_SEEDS, args.seeds.to_string());
    if let Some(tasks) = &args.tasks {
        command.env("DUOLOGUE_MINIWOB_TASKS", tasks);
    }
    run_program(command)
}
