//! What a node means to somebody who uses the page: its role, its name, its value and its states,
//! by the rules of ARIA and of HTML's accessibility mapping, as far as they matter here.

use std::collections::HashMap;

use super::{
    capture::{Document, Kind, NodeIndex},
    text::{clip, tidy},
};

/// The longest name that is made of text inside.
const LONGEST_NAME: usize = 160;

/// What is known of a document before its nodes are looked at one by one.
#[derive(Debug)]
pub(crate) struct Meanings<'a> {
    pub(crate) document: &'a Document,
    pub(super) by_id: HashMap<&'a str, NodeIndex>,
    labels: HashMap<&'a str, Vec<NodeIndex>>,
    /// Nodes with something inside that can be acted on by itself.
    holds_actor: Vec<bool>,
    pub(super) focused: Option<i64>,
}

/// How somebody can act on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acting {
    /// It is a control or a link.
    Control,
    /// Only a script, or the form of the pointer, says that it can be clicked.
    Clickable,
    /// It is only read.
    No,
}

impl<'a> Meanings<'a> {
    pub(crate) fn of(document: &'a Document, focused: Option<i64>) -> Self {
        let mut by_id = HashMap::new();
        let mut labels: HashMap<&str, Vec<NodeIndex>> = HashMap::new();
        for at in 0..document.len() {
            if let Some(id) = document.attribute(at, "id") {
                by_id.entry(id).or_insert(at);
            }
            if document.tag(at) == "label"
                && let Some(target) = document.attribute(at, "for")
            {
                labels.entry(target).or_default().push(at);
            }
        }
        let holds_actor = vec![false; document.len()];
        let mut this = Self { document, by_id, labels, holds_actor, focused };
        // Parents come before their children in the columns.
        for at in (0..document.len()).rev() {
            let holds = this.holds_actor.get(at).copied().unwrap_or_default();
            if (holds || this.acting(at) != Acting::No)
                && let Some(parent) = document.parent(at)
                && let Some(mark) = this.holds_actor.get_mut(parent)
            {
                *mark = true;
            }
        }
        this
    }

    /// Whether something inside a node can be acted on by itself.
    pub(crate) fn holds_actor(&self, at: NodeIndex) -> bool {
        self.holds_actor.get(at).copied().unwrap_or_default()
    }

    /// The role: what the page says it is, or what its tag says.
    pub(crate) fn role(&self, at: NodeIndex) -> &str {
        let document = self.document;
        let said = document.attribute(at, "role").unwrap_or_default();
        if let Some(role) = said.split_ascii_whitespace().next()
            && !matches!(role, "presentation" | "none" | "generic")
        {
            return role;
        }
        let list = |name| document.attribute(at, name).is_some();
        match document.tag(at) {
            "a" | "area" if list("href") => "link",
            "button" => "button",
            "input" => match self.input_type(at) {
                "button" | "submit" | "reset" | "image" => "button",
                "checkbox" => "checkbox",
                "radio" => "radio",
                "range" => "slider",
                "number" => "spinbutton",
                "search" => "searchbox",
                "file" => "file",
                "color" => "color",
                "date" => "date",
                "time" => "time",
                "month" => "month",
                "week" => "week",
                "datetime-local" => "datetime",
                "password" => "password",
                "hidden" => "",
                _ if list("list") => "combobox",
                _ => "textbox",
            },
            "textarea" => "textbox",
            "select"
                if list("multiple")
                    || document.attribute(at, "size").is_some_and(|n| n != "1" && n != "0") =>
            {
                "listbox"
            }
            "select" => "combobox",
            "option" => "option",
            "summary" => "summary",
            "img" => "image",
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => "heading",
            "dialog" => "dialog",
            "iframe" | "frame" => "iframe",
            "canvas" => "canvas",
            "video" => "video",
            "audio" => "audio",
            "progress" => "progressbar",
            "meter" => "meter",
            "output" => "status",
            "nav" => "navigation",
            "main" => "main",
            "hr" => "separator",
            _ if self.is_editable(at) => "textbox",
            _ => "",
        }
    }

    pub(crate) fn input_type(&self, at: NodeIndex) -> &str {
        let said = self.document.attribute(at, "type").unwrap_or("text");
        const TYPES: &[&str] = &[
            "button",
            "submit",
            "reset",
            "image",
            "checkbox",
            "radio",
            "range",
            "number",
            "search",
            "file",
            "color",
            "date",
            "time",
            "month",
            "week",
            "datetime-local",
            "password",
            "hidden",
            "email",
            "url",
            "tel",
            "text",
        ];
        TYPES.iter().find(|known| known.eq_ignore_ascii_case(said)).copied().unwrap_or("text")
    }

    /// Whether a person can write straight into it.
    fn is_editable(&self, at: NodeIndex) -> bool {
        self.document
            .attribute(at, "contenteditable")
            .is_some_and(|value| !value.eq_ignore_ascii_case("false"))
    }

    /// How somebody can act on it.
    pub(crate) fn acting(&self, at: NodeIndex) -> Acting {
        let document = self.document;
        if document.kind(at) != Kind::Element {
            return Acting::No;
        }
        let role = self.role(at);
        let is_control = matches!(
            role,
            "link"
                | "button"
                | "checkbox"
                | "radio"
                | "slider"
                | "spinbutton"
                | "searchbox"
                | "file"
                | "color"
                | "date"
                | "time"
                | "month"
                | "week"
                | "datetime"
                | "password"
                | "combobox"
                | "textbox"
                | "listbox"
                | "option"
                | "summary"
                | "menuitem"
                | "menuitemcheckbox"
                | "menuitemradio"
                | "tab"
                | "switch"
                | "treeitem"
                | "canvas"
                | "gridcell"
        );
        if is_control && (role != "gridcell" || self.is_pressable(at)) {
            return Acting::Control;
        }
        if matches!(document.tag(at), "html" | "body" | "label" | "iframe" | "form") {
            return Acting::No;
        }
        if self.is_pressable(at) { Acting::Clickable } else { Acting::No }
    }

    /// Whether a script listens on it, the pointer says so, or the keyboard stops at it.
    fn is_pressable(&self, at: NodeIndex) -> bool {
        let document = self.document;
        let Some(boxed) = document.boxed(at) else { return false };
        let points = boxed.pointer
            && !document
                .parent(at)
                .and_then(|parent| document.boxed(parent))
                .is_some_and(|parent| parent.pointer);
        let has_stop = || {
            let stop =
                document.attribute(at, "tabindex").and_then(|n| n.trim().parse::<i32>().ok());
            stop.is_some_and(|stop| stop >= 0)
        };
        points
            || document.is_clickable(at)
            || document.attribute(at, "draggable") == Some("true")
            || document.attribute(at, "onclick").is_some()
            || has_stop()
    }

    /// What it is called.
    pub(crate) fn name(&self, at: NodeIndex) -> String {
        let document = self.document;
        if let Some(ids) = document.attribute(at, "aria-labelledby") {
            let texts = ids.split_ascii_whitespace().filter_map(|id| self.by_id.get(id));
            let joined = texts.map(|node| self.text_inside(*node)).collect::<Vec<_>>().join(" ");
            if !joined.trim().is_empty() {
                return tidy(&joined);
            }
        }
        let said =
            |name: &str| document.attribute(at, name).map(tidy).filter(|text| !text.is_empty());
        if let Some(label) = said("aria-label") {
            return label;
        }
        let native = match document.tag(at) {
            "input" => match self.input_type(at) {
                "submit" | "button" | "reset" => {
                    let usual = match self.input_type(at) {
                        "submit" => "Submit",
                        "reset" => "Reset",
                        _ => "",
                    };
                    Some(said("value").unwrap_or_else(|| usual.to_owned()))
                }
                "image" => said("alt").or_else(|| said("value")),
                _ => self.label(at),
            },
            "textarea" | "select" | "meter" | "progress" | "output" => self.label(at),
            "img" | "area" => said("alt"),
            "iframe" | "frame" => said("title").or_else(|| said("name")),
            "svg" => self.svg_title(at),
            "canvas" | "video" | "audio" | "dialog" | "form" => None,
            _ if self.is_editable(at) || self.role(at) == "textbox" => self.label(at),
            _ => Some(self.text_inside(at)),
        };
        let native = native.filter(|text| !text.trim().is_empty());
        native
            .or_else(|| said("placeholder"))
            .or_else(|| said("aria-placeholder"))
            .or_else(|| said("title"))
            .or_else(|| said("alt"))
            .unwrap_or_default()
    }

    fn svg_title(&self, at: NodeIndex) -> Option<String> {
        let title =
            self.document.own_children(at).iter().find(|n| self.document.tag(**n) == "title")?;
        Some(tidy(&self.text_inside(*title)))
    }

    /// The text of the label that belongs to a field.
    fn label(&self, at: NodeIndex) -> Option<String> {
        let document = self.document;
        let by_id = document.attribute(at, "id").and_then(|id| self.labels.get(id));
        if let Some(labels) = by_id {
            let texts: Vec<String> = labels.iter().map(|label| self.text_inside(*label)).collect();
            return Some(tidy(&texts.join(" ")));
        }
        let mut up = document.parent(at);
        for _ in 0..8 {
            let node = up?;
            if document.tag(node) == "label" {
                return Some(tidy(&self.text_inside(node)));
            }
            up = document.parent(node);
        }
        None
    }

    /// The label around or for a field, whose text is then the field's name.
    pub(crate) fn is_label_of_control(&self, at: NodeIndex) -> bool {
        let document = self.document;
        if document.tag(at) != "label" {
            return false;
        }
        match document.attribute(at, "for") {
            Some(id) => self.by_id.get(id).is_some_and(|node| {
                document.boxed(*node).is_some() && self.acting(*node) == Acting::Control
            }),
            None => false,
        }
    }

    /// What is read inside a node, up to a bound: its texts, the names of images, the labels of
    /// icons.
    pub(crate) fn text_inside(&self, at: NodeIndex) -> String {
        let document = self.document;
        if document.kind(at) == Kind::Text {
            return tidy(document.raw_text(at));
        }
        let mut text = String::new();
        let mut stack = vec![at];
        while let Some(node) = stack.pop() {
            if text.len() > LONGEST_NAME * 4 {
                break;
            }
            match document.kind(node) {
                Kind::Text => {
                    let shown = document.shown_text(node);
                    text.push_str(shown.unwrap_or_default());
                    continue;
                }
                Kind::Other => continue,
                _ => {}
            }
            let tag = document.tag(node);
            if matches!(tag, "script" | "style" | "noscript" | "template" | "select" | "textarea")
                && node != at
            {
                continue;
            }
            if node != at {
                if document.attribute(node, "aria-hidden") == Some("true") {
                    continue;
                }
                let spoken = document.attribute(node, "aria-label").or_else(|| match tag {
                    "img" => document.attribute(node, "alt"),
                    _ => None,
                });
                if let Some(spoken) = spoken {
                    text.push(' ');
                    text.push_str(spoken);
                    text.push(' ');
                    continue;
                }
                if document.boxed(node).is_some_and(|boxed| !boxed.inline) || tag == "br" {
                    text.push(' ');
                }
            }
            stack.extend(document.children(node).into_iter().rev());
        }
        clip(&tidy(&text), LONGEST_NAME)
    }

    /// What is entered or chosen.
    pub(crate) fn value(&self, at: NodeIndex) -> Option<String> {
        let document = self.document;
        match document.tag(at) {
            "input" => match self.input_type(at) {
                "submit" | "button" | "reset" | "image" | "checkbox" | "radio" => None,
                "password" => {
                    let entered = document.input(at).unwrap_or_default();
                    // How long it is shall not be told either.
                    (!entered.is_empty()).then(|| "••••".to_owned())
                }
                _ => document
                    .input(at)
                    .or_else(|| document.attribute(at, "value"))
                    .filter(|value| !value.is_empty())
                    .map(|value| clip(value, 400)),
            },
            "textarea" => {
                document.input(at).filter(|value| !value.is_empty()).map(|value| clip(value, 1200))
            }
            "select" => {
                let chosen: Vec<String> = self
                    .options(at)
                    .into_iter()
                    .filter(|option| document.is_selected(*option))
                    .map(|option| self.option_label(option))
                    .collect();
                (!chosen.is_empty()).then(|| chosen.join(", "))
            }
            "progress" | "meter" => document.attribute(at, "value").map(str::to_owned),
            _ if self.is_editable(at) => Some(self.text_inside(at)).filter(|text| !text.is_empty()),
            _ => {
                let said = |name| document.attribute(at, name);
                said("aria-valuetext").or_else(|| said("aria-valuenow")).map(|text| clip(text, 100))
            }
        }
    }

    /// The options of a list.
    pub(crate) fn options(&self, at: NodeIndex) -> Vec<NodeIndex> {
        let inside = self.document.descendants(at);
        inside.into_iter().filter(|node| self.document.tag(*node) == "option").collect()
    }

    /// What an option is called, though a closed list lays none out.
    pub(crate) fn option_label(&self, at: NodeIndex) -> String {
        if let Some(label) = self.document.attribute(at, "label") {
            return tidy(label);
        }
        let texts =
            self.document.own_children(at).iter().map(|child| self.document.raw_text(*child));
        tidy(&texts.collect::<String>())
    }
}
