//! `:permissions [MODE]`

use clap::ValueEnum;

use super::{Command, Next};
use crate::{cli::PermissionsMode, config::keys::Mode, failure::Failure};

pub(super) const COMMAND: Command = Command {
    name: "permissions",
    arguments: "[MODE]",
    about: "show or change what runs without asking",
    run: |repl, mode| {
        Box::pin(async move {
            if !mode.is_empty() {
                let mode = PermissionsMode::from_str(mode, true).map_err(|_| {
                    Failure::usage("the modes are read-only, ask, auto-edit and full")
                })?;
                repl.house.loaded.config.permissions.mode = match mode {
                    PermissionsMode::ReadOnly => Mode::ReadOnly,
                    PermissionsMode::Ask => Mode::Ask,
                    PermissionsMode::AutoEdit => Mode::AutoEdit,
                    PermissionsMode::Full => Mode::Full,
                };
                let id = repl.session.id().clone();
                repl.switch(repl.plan.clone(), Some(id)).await?;
            }
            let mode = duologue_core::Mode::from(repl.house.config().permissions.mode);
            let mode = serde_json::to_value(mode)?;
            repl.say(&format!("permissions: {}", mode.as_str().unwrap_or_default()))?;
            Ok(Next::Stay)
        })
    },
};
