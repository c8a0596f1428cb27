//! In what state a control is, and whether pressing it sends a form.

use super::{capture::NodeIndex, meaning::Meanings};

impl Meanings<'_> {
    /// What state it is in, in words.
    pub(crate) fn states(&self, at: NodeIndex) -> Vec<&'static str> {
        let document = self.document;
        let aria = |name: &str| document.attribute(at, name);
        let has = |name: &str| document.attribute(at, name).is_some();
        let mut states = Vec::new();
        let is_box =
            document.tag(at) == "input" && matches!(self.input_type(at), "checkbox" | "radio");
        if (is_box && document.is_checked(at)) || aria("aria-checked") == Some("true") {
            states.push("checked");
        } else if aria("aria-checked") == Some("mixed") {
            states.push("mixed");
        }
        if (document.tag(at) == "option" && document.is_selected(at))
            || aria("aria-selected") == Some("true")
        {
            states.push("selected");
        }
        if aria("aria-current").is_some_and(|value| value != "false") {
            states.push("current");
        }
        match aria("aria-expanded") {
            Some("true") => states.push("expanded"),
            Some("false") => states.push("collapsed"),
            _ if document.tag(at) == "summary" => {
                let open =
                    document.parent(at).is_some_and(|up| document.attribute(up, "open").is_some());
                states.push(if open { "expanded" } else { "collapsed" });
            }
            _ => {}
        }
        if aria("aria-pressed") == Some("true") {
            states.push("pressed");
        }
        if self.is_disabled(at) {
            states.push("disabled");
        }
        if document.tag(at) == "textarea" || aria("aria-multiline") == Some("true") {
            states.push("multiline");
        }
        if has("readonly") || aria("aria-readonly") == Some("true") {
            states.push("readonly");
        }
        if has("required") || aria("aria-required") == Some("true") {
            states.push("required");
        }
        if aria("aria-invalid").is_some_and(|value| !matches!(value, "false" | "")) {
            states.push("invalid");
        }
        if aria("aria-haspopup").is_some_and(|value| value != "false") {
            states.push("opens a menu");
        }
        if self.focused == Some(document.backend(at)) {
            states.push("focused");
        }
        states
    }

    fn is_disabled(&self, at: NodeIndex) -> bool {
        let document = self.document;
        if document.attribute(at, "aria-disabled") == Some("true") {
            return true;
        }
        let can_be = matches!(
            document.tag(at),
            "button" | "input" | "select" | "textarea" | "option" | "optgroup" | "fieldset"
        );
        if !can_be {
            return false;
        }
        if document.attribute(at, "disabled").is_some() {
            return true;
        }
        let mut up = document.parent(at);
        for _ in 0..64 {
            let Some(node) = up else { return false };
            if document.tag(node) == "fieldset" && document.attribute(node, "disabled").is_some() {
                return true;
            }
            up = document.parent(node);
        }
        false
    }

    /// Where pressing it sends a form to, if it does.
    pub(crate) fn submits(&self, at: NodeIndex) -> Option<String> {
        let document = self.document;
        let is_submitter = match document.tag(at) {
            "input" => matches!(self.input_type(at), "submit" | "image"),
            "button" => document.attribute(at, "type").is_none_or(|kind| {
                !kind.eq_ignore_ascii_case("button") && !kind.eq_ignore_ascii_case("reset")
            }),
            _ => false,
        };
        if !is_submitter {
            return None;
        }
        let named = document.attribute(at, "form").and_then(|id| self.by_id.get(id)).copied();
        let form = named.or_else(|| self.form_of(at))?;
        let action = document
            .attribute(at, "formaction")
            .or_else(|| document.attribute(form, "action"))
            .unwrap_or_default();
        let base = url::Url::parse(&document.url).ok();
        let target = base.and_then(|base| base.join(action.trim()).ok());
        Some(target.map_or_else(|| document.url.clone(), String::from))
    }

    /// The form that a field is in.
    pub(crate) fn form_of(&self, at: NodeIndex) -> Option<NodeIndex> {
        let mut up = self.document.parent(at);
        while let Some(node) = up {
            if self.document.tag(node) == "form" {
                return Some(node);
            }
            up = self.document.parent(node);
        }
        None
    }
}
