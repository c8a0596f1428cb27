//! A browser for agents: a thin Chrome DevTools client, page snapshots for models, and tools.
//!
//! The parts, in the order in which one meets them:
//!
//! - [`Browser`] gives the [tools](Browser::tools) of an agent. Each session has a browser of its
//!   own, started at the first call and ended with the last clone.
//! - [`BrowserConfig`] says where it comes from ([`Source`]: started here, or attached to), where
//!   it may go ([`Sites`]), and how it works.
//! - Pages were written by strangers. Their text is marked as data, and a session that read it is
//!   tainted: whatever would send something to a place that nobody allowed waits for a person's
//!   yes ([`duologue_core::Policy`]). What a page or its script tries by itself ends at a guard
//!   that every request passes.
//!
//! ```
//! use duologue_browser::{Browser, BrowserConfig};
//! use duologue_core::Toolbox;
//!
//! // No browser is started before the first call.
//! let browser = Browser::new(BrowserConfig::default());
//! let toolbox = browser.tools().into_iter().fold(Toolbox::new(), Toolbox::with_shared);
//! assert!(toolbox.get("navigate").is_some());
//! ```

mod act;
mod browser;
mod cdp;
mod chromium;
mod desk;
mod error;
mod sites;
mod snapshot;
mod tools;

pub use browser::{Browser, BrowserConfig, Pictures, Scripts};
pub use chromium::{Launch, Window, find_browser};
pub use desk::Source;
pub use error::BrowserError;
pub use sites::{Site, SiteError, Sites, Standing};
pub use tools::NAMES;
