//! The built-in tools, by name.

use std::sync::Arc;

use duologue_core::Tool;

use crate::{suggest::did_you_mean, workspace::Workspace};

mod ask_human;
mod blocking;
mod calculator;
mod copy_file;
mod count_lines;
mod current_time;
mod echo;
mod edit_file;
mod glob;
#[cfg(feature = "http")]
mod http_get;
mod list_files;
mod read_file;
mod read_result;
mod search_files;
#[cfg(unix)]
mod shell;
mod text;
mod write_file;

#[cfg(feature = "http")]
pub use http_get::{HttpConfig, PrivateAddresses};
#[cfg(unix)]
pub use shell::ShellConfig;

/// What the built-in tools work with.
#[derive(Clone, Debug)]
pub struct BuiltinConfig {
    /// The folder that files stay in and commands start in.
    pub workspace: Workspace,
    /// Which tools there are.
    pub enabled: Enabled,
    /// What `shell` may do, once it is enabled.
    #[cfg(unix)]
    pub shell: ShellConfig,
    /// What `http_get` may do.
    #[cfg(feature = "http")]
    pub http: HttpConfig,
}

impl BuiltinConfig {
    /// The usual tools on a workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            enabled: Enabled::Usual,
            #[cfg(unix)]
            shell: ShellConfig::default(),
            #[cfg(feature = "http")]
            http: HttpConfig::default(),
        }
    }
}

/// Which of the built-in tools there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Enabled {
    /// All but `shell`.
    #[default]
    Usual,
    /// Those of these names, in this order. This is how `shell` is turned on.
    Only(Vec<String>),
}

/// A name that no built-in tool has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown tool \"{name}\"{}", did_you_mean(name, names().iter().copied()))]
pub struct UnknownTool {
    /// The name as it was written.
    pub name: String,
}

/// Every built-in tool's name, in the order in which they are listed.
pub fn names() -> &'static [&'static str] {
    &[
        "echo",
        "calculator",
        "current_time",
        "read_file",
        "write_file",
        "edit_file",
        "copy_file",
        "list_files",
        "search_files",
        "count_lines",
        #[cfg(feature = "http")]
        "http_get",
        #[cfg(unix)]
        "shell",
        "ask_human",
        "read_result",
    ]
}

/// The tools that a configuration enables.
pub fn builtin(config: &BuiltinConfig) -> Result<Vec<Arc<dyn Tool>>, UnknownTool> {
    match &config.enabled {
        Enabled::Usual => names()
            .iter()
            .filter(|name| **name != "shell")
            .map(|name| builtin_named(name, config))
            .collect(),
        Enabled::Only(wanted) => wanted.iter().map(|name| builtin_named(name, config)).collect(),
    }
}

/// One tool by its name, whether it is enabled or not.
pub fn builtin_named(name: &str, config: &BuiltinConfig) -> Result<Arc<dyn Tool>, UnknownTool> {
    let workspace = &config.workspace;
    Ok(match name {
        "echo" => Arc::new(echo::echo()),
        "calculator" => Arc::new(calculator::calculator()),
        "current_time" => Arc::new(current_time::current_time()),
        "read_file" => Arc::new(read_file::read_file(workspace)),
        "write_file" => Arc::new(write_file::write_file(workspace)),
        "edit_file" => Arc::new(edit_file::edit_file(workspace)),
        "copy_file" => Arc::new(copy_file::copy_file(workspace)),
        "list_files" => Arc::new(list_files::list_files(workspace)),
        "search_files" => Arc::new(search_files::search_files(workspace)),
        "count_lines" => Arc::new(count_lines::count_lines(workspace)),
        #[cfg(feature = "http")]
        "http_get" => Arc::new(http_get::http_get(&config.http)),
        #[cfg(unix)]
        "shell" => Arc::new(shell::shell(workspace, &config.shell)),
        "ask_human" => Arc::new(ask_human::ask_human()),
        "read_result" => Arc::new(read_result::read_result()),
        _ => {
            return Err(UnknownTool { name: name.to_owned() });
        }
    })
}
