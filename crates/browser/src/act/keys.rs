//! Keys of the keyboard, as the browser wants them told.

use serde_json::json;

use crate::{
    cdp::CdpSession,
    desk::Desk,
    error::{BrowserError, Result},
};

/// A key with the modifiers that are held: `Control+Shift+K`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stroke {
    key: String,
    code: String,
    number: u32,
    text: Option<String>,
    modifiers: u32,
}

/// Keys with names: the name, the code, the number, and what they write.
const NAMED: &[(&str, &str, u32, &str)] = &[
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("Insert", "Insert", 45, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("Space", "Space", 32, " "),
    ("F1", "F1", 112, ""),
    ("F2", "F2", 113, ""),
    ("F3", "F3", 114, ""),
    ("F4", "F4", 115, ""),
    ("F5", "F5", 116, ""),
    ("F6", "F6", 117, ""),
    ("F7", "F7", 118, ""),
    ("F8", "F8", 119, ""),
    ("F9", "F9", 120, ""),
    ("F10", "F10", 121, ""),
    ("F11", "F11", 122, ""),
    ("F12", "F12", 123, ""),
];

/// Other names that people and models use.
const ALIASES: &[(&str, &str)] = &[
    ("Return", "Enter"),
    ("Esc", "Escape"),
    ("Del", "Delete"),
    ("Left", "ArrowLeft"),
    ("Right", "ArrowRight"),
    ("Up", "ArrowUp"),
    ("Down", "ArrowDown"),
    (" ", "Space"),
];

impl Stroke {
    /// Read a key as it is written.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let wrong = || {
            BrowserError::cannot(format!(
                "there is no key {text:?}; write one character, a name such as Enter, Tab, Escape, \
                 ArrowDown, Backspace or F5, or a chord such as Control+A"
            ))
        };
        let (held, key) = match text.rsplit_once('+') {
            // A plus by itself, or held with others.
            Some((held, "")) => (held.strip_suffix('+').unwrap_or_default(), "+"),
            Some((held, key)) => (held, key),
            None => ("", text),
        };
        let mut modifiers = 0;
        for word in held.split('+').filter(|word| !word.is_empty()) {
            modifiers |= match word.to_ascii_lowercase().as_str() {
                "alt" | "option" => 1,
                "control" | "ctrl" => 2,
                "meta" | "command" | "cmd" => 4,
                "shift" => 8,
                _ => return Err(wrong()),
            };
        }
        let alias = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(key));
        let name = alias.map_or(key, |(_, name)| name);
        if let Some((name, code, number, text)) =
            NAMED.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))
        {
            let key = if *name == "Space" { " " } else { name };
            return Ok(Self {
                key: key.to_owned(),
                code: (*code).to_owned(),
                number: *number,
                text: (!text.is_empty()).then(|| (*text).to_owned()),
                modifiers,
            });
        }
        let mut chars = key.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(Self::character(c, modifiers)),
            _ => Err(wrong()),
        }
    }

    /// The key that writes a character.
    pub(crate) fn character(c: char, modifiers: u32) -> Self {
        if c == '\n' || c == '\r' {
            return Self {
                key: "Enter".into(),
                code: "Enter".into(),
                number: 13,
                text: Some("\r".into()),
                modifiers,
            };
        }
        let upper = c.to_ascii_uppercase();
        let (code, number) = match upper {
            'A'..='Z' => (format!("Key{upper}"), u32::from(upper)),
            '0'..='9' => (format!("Digit{upper}"), u32::from(upper)),
            ' ' => ("Space".to_owned(), 32),
            _ => (String::new(), 0),
        };
        let shift = if c.is_ascii_uppercase() && modifiers & !8 == 0 { 8 } else { 0 };
        // With Control, Alt or Meta held a key is a command and writes nothing.
        let writes = modifiers & 7 == 0;
        Self {
            key: c.to_string(),
            code,
            number,
            text: writes.then(|| c.to_string()),
            modifiers: modifiers | shift,
        }
    }

    /// Whether it sends the form that it is pressed in.
    pub(crate) fn is_enter(&self) -> bool {
        self.key == "Enter"
    }

    /// Whether it writes something.
    pub(crate) fn writes(&self) -> bool {
        self.text.is_some() || (self.modifiers & 6 != 0 && self.key.eq_ignore_ascii_case("v"))
    }
}

impl Desk {
    /// Press a key where the keyboard is.
    pub(crate) async fn stroke(&self, session: &CdpSession, stroke: &Stroke) -> Result<()> {
        let tab = self.state().current;
        let mut down = json!({
            "type": if stroke.text.is_some() { "keyDown" } else { "rawKeyDown" },
            "key": stroke.key,
            "code": stroke.code,
            "windowsVirtualKeyCode": stroke.number,
            "modifiers": stroke.modifiers,
        });
        let mut up = down.clone();
        if let (Some(text), Some(fields)) = (&stroke.text, down.as_object_mut()) {
            fields.insert("text".into(), text.as_str().into());
            fields.insert("unmodifiedText".into(), text.as_str().into());
        }
        if let Some(fields) = up.as_object_mut() {
            fields.insert("type".into(), "keyUp".into());
        }
        let sent = vec![
            self.connection.send(Some(session), "Input.dispatchKeyEvent", down),
            self.connection.send(Some(session), "Input.dispatchKeyEvent", up),
        ];
        self.unless_held(tab, sent).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_people_write_them() {
        let a = Stroke::read("Control+a").unwrap();
        assert_eq!((a.code.as_str(), a.modifiers, a.writes()), ("KeyA", 2, false));
        let enter = Stroke::read("enter").unwrap();
        assert!(enter.is_enter() && enter.text.as_deref() == Some("\r"));
        assert_eq!(Stroke::read("Esc").unwrap().key, "Escape");
        assert_eq!(Stroke::read("+").unwrap().key, "+");
        assert_eq!(Stroke::read("Ctrl++").unwrap().modifiers, 2);
        assert_eq!(Stroke::read("ü").unwrap().text.as_deref(), Some("ü"));
        assert_eq!(Stroke::read("Q").unwrap().modifiers, 8);
        assert!(Stroke::read("Control+v").unwrap().writes());
        for wrong in ["", "Entr", "Hyper+A", "ab"] {
            assert!(Stroke::read(wrong).is_err(), "{wrong}");
        }
    }
}
