//! Built-in tools for Duologue agents, and argument checks by JSON Schema.
//!
//! The parts, in the order in which one meets them:
//!
//! - [`Workspace`] is the folder that an agent's files stay in. No path leads out of it.
//! - [`builtin`] makes the tools that a [`BuiltinConfig`] enables: `echo`, `calculator`,
//!   `current_time`, `read_file`, `write_file`, `edit_file`, `copy_file`, `list_files`, `search_files`,
//!   `count_lines`, `http_get` (feature `http`, on by default), `shell` (off unless named),
//!   `ask_human` and `read_result`. Each is one file in `builtin/`.
//! - [`schema_tool`] makes a tool of a JSON Schema that came from elsewhere, such as an MCP
//!   server's; [`Schema`] and [`check_schema`] are the check alone.
//!
//! ```
//! use duologue_core::Toolbox;
//! use duologue_tools::{BuiltinConfig, Enabled, Workspace, builtin};
//!
//! # let folder = std::env::temp_dir();
//! let mut config = BuiltinConfig::new(Workspace::open(folder)?);
//! config.enabled = Enabled::Only(vec!["read_file".into(), "calculator".into()]);
//! let toolbox = builtin(&config)?
//!     .into_iter()
//!     .fold(Toolbox::new(), Toolbox::with_shared);
//!
//! let calculator = toolbox.get("calculator").ok_or("enabled above")?;
//! assert!(calculator.check(&serde_json::json!({"expression": "37 * 12"})).is_ok());
//!
//! config.enabled = Enabled::Only(vec!["ehco".into()]);
//! let error = builtin(&config).err().ok_or("no such tool")?;
//! assert_eq!(error.to_string(), "unknown tool \"ehco\" (did you mean \"echo\"?)");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builtin;
mod schema;
mod suggest;
mod workspace;

#[cfg(unix)]
pub use builtin::ShellConfig;
pub use builtin::{BuiltinConfig, Enabled, UnknownTool, builtin, builtin_named, names};
#[cfg(feature = "http")]
pub use builtin::{HttpConfig, PrivateAddresses};
pub use schema::{Schema, SchemaError, SchemaTool, check_schema, schema_tool};
pub use workspace::{Workspace, WorkspaceError};
