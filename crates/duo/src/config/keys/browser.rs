//! The keys of the browser.

use std::path::PathBuf;

use super::super::schema::{Kind, section};

section! {
    /// The browser of the agent `browser`, of `duo browse`, and of agents whose `tools` name tools of
    /// it (see `docs/browser.md`).
    Browser {
        /// Sites that it goes to and acts on without asking: `example.com`, `*.example.com`,
        /// `https://example.com/docs`, or `*` for every public site. Addresses of this machine and
        /// of the local network, and files, must be named: `127.0.0.1:8080`, `file:///srv/pages`.
        allow: Vec<String> = Vec::new(),
        /// The program. Unset, it is `CHROME_PATH`, or what is found in the usual places.
        program: Option<PathBuf> = None,
        /// A browser that runs already, such as `http://127.0.0.1:9222`, instead of one of its own.
        attach: Option<String> = None => Kind::Url,
        /// Whether it has a window, in which a person can take over.
        window: bool = false,
        /// The folder of a profile that is kept, with its logins. Unset, each session has a profile
        /// of its own, which is deleted at its end.
        profile: Option<PathBuf> = None,
        /// Width of a page, in pixels.
        width: u32 = 1280 => Kind::Count { min: 200, max: 8_000 },
        /// Height of a page, in pixels.
        height: u32 = 800 => Kind::Count { min: 200, max: 8_000 },
        /// How many tokens a snapshot of a page takes at most.
        snapshot_tokens: u32 = 6_000 => Kind::Count { min: 200, max: 100_000 },
        /// How long a page may take to settle after an action, in seconds.
        settle_seconds: u64 = 8 => Kind::Count { min: 1, max: 120 },
        /// Whether results of actions carry a picture of the page, so that the journal shows what
        /// happened.
        screenshots: bool = true,
        /// Whether the agent may run scripts of its own in pages, by the tool `evaluate`.
        evaluate: bool = false,
        /// The folder where open pages are written down, to be opened again when a session is
        /// resumed. Unset, it is `duologue/browser` in the platform's data folder.
        state: Option<PathBuf> = None,
    }
}
