//! `cargo xtask licences`: whether the dependencies are as `deny.toml` allows.
//!
//! A small part of what cargo-deny does, for machines that do not have it. Both read the same file.

mod check;
mod rules;
mod spdx;

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    house,
    process::{cargo, output_of},
};

use self::{check::Metadata, rules::Rules};

/// Check the dependencies' licences, versions and sources
///
/// Looks at every package that any of our crates depends on, on any of the systems in `deny.toml`:
///
///   licences   each has a licence that `licenses.allow` names
///   versions   no package is there in two versions, but for those in `bans.skip`
///   sources    all come from one registry, none from a git repository
///
/// `deny.toml` is also what cargo-deny reads, which checks more where it is installed.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<()> {
    let file = house::root().join("deny.toml");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let rules: Rules = toml::from_str(&text).with_context(|| format!("{}", file.display()))?;

    let metadata = output_of(cargo(["metadata", "--format-version=1", "--locked"]))?;
    let metadata: Metadata = serde_json::from_str(&metadata).context("reading cargo's metadata")?;
    let mut used = BTreeSet::new();
    for target in &rules.graph.targets {
        let tree = ["tree", "--workspace", "--locked", "--prefix=none", "--format={p}"];
        let mut command = cargo(tree);
        command.arg(format!("--target={target}"));
        if rules.graph.all_features {
            command.arg("--all-features");
        }
        used.extend(check::used(&output_of(command)?));
    }
    ensure!(!used.is_empty(), "{}: graph.targets is empty", file.display());

    let found = check::check(&metadata, &used, &rules);
    for note in &found.notes {
        eprintln!("note: {note}");
    }
    for offence in &found.offences {
        eprintln!("error: {offence}");
    }
    if !found.offences.is_empty() {
        bail!("{} dependencies are not as deny.toml allows", found.offences.len());
    }
    println!("licences: {} packages are as deny.toml allows", found.packages);
    Ok(())
}
