//! Who speaks: the runs of a session and what they are called.

use std::collections::BTreeMap;

use duologue_core::{Entry, Event, RunId};

use super::{Paint, Style};

/// What the runs of a session are called, as far as its entries were heard.
#[derive(Debug, Default)]
pub(crate) struct Speakers {
    names: BTreeMap<RunId, String>,
}

impl Speakers {
    /// Learn from an entry.
    pub(crate) fn hear(&mut self, entry: &Entry) {
        let Event::ChildStarted { child, key, .. } = &entry.event else { return };
        let own = short(key);
        let name = match self.names.get(&entry.run) {
            Some(parent) => format!("{parent}/{own}"),
            None => own,
        };
        self.names.insert(*child, name);
    }

    /// A run's name; nothing for the session's own agent.
    pub(crate) fn name(&self, run: RunId) -> &str {
        match self.names.get(&run) {
            Some(name) => name,
            None if run == RunId::ROOT => "",
            None => "·",
        }
    }

    /// What stands before every line of a run.
    pub(crate) fn mark(&self, paint: Paint, run: RunId) -> String {
        match self.name(run) {
            "" => String::new(),
            name => paint.text(Style::Dim, format!("{name} │ ")),
        }
    }

    /// A run's text with the mark before every line.
    pub(crate) fn marked(&self, paint: Paint, run: RunId, text: &str) -> String {
        if run == RunId::ROOT {
            return text.to_owned();
        }
        let mark = self.mark(paint, run);
        text.split('\n').map(|line| format!("{mark}{line}")).collect::<Vec<_>>().join("\n")
    }
}

/// The letters that the halves of a dual act go by.
fn short(key: &str) -> String {
    match (key, key.strip_prefix("reactive")) {
        ("human", _) => "H".to_owned(),
        (_, Some(number)) if number.is_empty() || number.starts_with('-') => format!("R{number}"),
        _ => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_called_by_its_place_under_the_others() {
        let mut speakers = Speakers::default();
        let mut begin = |run, child, key: &str| {
            let event =
                Event::ChildStarted { child: RunId(child), key: key.into(), agent: "a".into() };
            speakers.hear(&Entry { seq: 0, at: 0, run: RunId(run), event });
        };
        begin(0, 1, "human");
        begin(0, 2, "reactive-1");
        begin(2, 3, "human");
        let paint = Paint::plain();
        assert_eq!(speakers.mark(paint, RunId(1)), "H │ ");
        assert_eq!(speakers.marked(paint, RunId(3), "a\nb"), "R-1/H │ a\nR-1/H │ b");
        assert_eq!(speakers.marked(paint, RunId::ROOT, "a\nb"), "a\nb");
        assert_eq!(speakers.mark(paint, RunId(9)), "· │ ", "a run whose beginning was not heard");
    }
}
