//! What the parts of the program log, on standard error.
//!
//! `DUOLOGUE_LOG` says how much: `error`, `warn` (the default), `info`, `debug` or `trace`.

use std::{
    fmt::{self, Write as _},
    io::Write,
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Print what is logged from now on.
pub(crate) fn begin() {
    let said = std::env::var("DUOLOGUE_LOG").unwrap_or_default();
    let most = said.parse().unwrap_or(Level::WARN);
    // Somebody else having chosen is fine.
    let _ = tracing::subscriber::set_global_default(Printer { most });
}

struct Printer {
    most: Level,
}

impl Subscriber for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // What the libraries beneath say is for those who look for it.
        let is_ours = metadata.target().starts_with("duologue") || self.most >= Level::DEBUG;
        metadata.is_event() && is_ours && *metadata.level() <= self.most
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level().as_str().to_lowercase();
        // Standard error may be closed; there is nobody left to tell then.
        let _ = writeln!(std::io::stderr(), "{level}: {}{}", line.message, line.rest);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    rest: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a text does not fail.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.rest, " {}={value:?}", field.name())
        };
    }
}
