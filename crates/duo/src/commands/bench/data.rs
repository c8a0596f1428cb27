//! `duo bench data`: whether the data of the domains is there, and of which version.

use std::{io::Write, sync::Arc};

use duologue_bench::{Environment, Mode, Registry};

use super::{args::Data, load};
use crate::{exit::Exit, failure::Done, house::House, terminal::Style};

/// The databases of τ²-bench v1.0.1, by their hashes.
const KNOWN: [(&str, &str); 6] = [
    ("mock", "107f83a70b7bf4f616e283b0b0b8451346fe7681173398d4498a1ec15c5fdfc6"),
    ("airline", "124e39a664b56402bcd09cb8a6a9cece6acb8462337c969799d5658e3250f263"),
    ("retail", "b25c9cb211f5efcaee5dd646054a73c4a9f43f4f5acc32c10713cd9f9ac20e9c"),
    ("telecom", "304cf5ef059852e117ea801ab9a5efc24c9713ec887679dc2e30acceb4b6742d"),
    ("telecom-workflow", "304cf5ef059852e117ea801ab9a5efc24c9713ec887679dc2e30acceb4b6742d"),
    ("banking_knowledge", "af324a7d72aced5889daf6cc044e573ad94ffa3bfe7cf65114fd3cfed5daaa48"),
];

pub(super) fn data(house: &House, args: &Data) -> Done {
    let registry = Registry::default();
    let mut out = std::io::stdout().lock();
    let mut missing = 0;
    for name in registry.domains() {
        let loaded = match load(&registry, name, args.data.clone()) {
            Ok(loaded) => loaded,
            Err(failure) => {
                missing += 1;
                let reason = house.paint.text(Style::Bad, failure);
                writeln!(out, "{name:<20} {reason}")?;
                continue;
            }
        };
        let hash = Environment::new(&Arc::clone(&loaded.domain), Mode::Dialogue)
            .map(|environment| environment.db_hash())
            .unwrap_or_default();
        let version = match KNOWN.iter().find(|(known, _)| *known == name) {
            Some((_, known)) if *known == hash => house.paint.text(Style::Good, "v1.0.1"),
            Some(_) => {
                let note = format!("another version ({})", hash.get(..12).unwrap_or_default());
                house.paint.text(Style::Warning, note)
            }
            None => house.paint.text(Style::Dim, "embedded"),
        };
        writeln!(out, "{name:<20} {version}, {} tasks", loaded.tasks.tasks.len())?;
    }
    if missing > 0 {
        writeln!(
            out,
            "\nThe data is in the `data` folder of a checkout of sierra-research/tau2-bench: name it \
             with --data or TAU2_DATA_DIR."
        )?;
    }
    Ok(Exit::Completed)
}
