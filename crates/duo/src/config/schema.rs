//! What a key is: its name, type, default and meaning, as data.
//!
//! [`section!`] and [`choice!`] define a typed struct or enum and this data in one go, so that the
//! types, the checks and the reference page cannot drift apart.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::Value;

/// A group of keys: the top of a file, a `[section]`, or a `[section.NAME]`.
#[derive(Debug)]
pub(crate) struct Spec {
    /// What it is about, in Markdown.
    pub(crate) doc: &'static str,
    /// Its keys, in the order of the reference page.
    pub(crate) keys: &'static [Key],
    /// Pairs of keys that say the same thing in two ways: one layer sets at most one of them, and
    /// setting one in a later layer takes the other back.
    pub(crate) rivals: &'static [(&'static str, &'static str)],
    /// Keys that must be set, in a section that the user made.
    pub(crate) required: &'static [&'static str],
    /// What the reference page writes where the user chooses the section's name.
    pub(crate) placeholder: &'static str,
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it means, in Markdown.
    pub(crate) doc: &'static str,
    /// What it may be set to.
    pub(crate) kind: Kind,
    /// What it is when nobody sets it; `None` is unset.
    pub(crate) default: fn() -> Option<Value>,
}

/// What a key may be set to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// A number with or without a fraction.
    Number {
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// Any text.
    Text,
    /// One of a few words.
    Choice(&'static [Word]),
    /// A model, as `provider/model`.
    Model,
    /// The name of a tool.
    Tool,
    /// The name of a behaviour.
    Behavior,
    /// A permission rule, as `tool` or `tool(pattern)`.
    Rule,
    /// A file or folder. Relative ones start at the folder of the file that says it.
    Path,
    /// A file, or one of a few words that stand for something else.
    PathOr(&'static [Word]),
    /// An `http` or `https` address.
    Url,
    /// The name of an environment variable that holds a secret.
    Variable,
    /// A value that may hold `${VARIABLE}` and is never shown.
    Hidden,
    /// A list.
    List(&'static Kind),
    /// A table from names to values that have nothing to configure inside.
    Map(&'static Kind),
    /// A section.
    Table(&'static Spec),
    /// A section whose missing keys are taken from the section of that name at the top.
    Inherited(&'static str, &'static Spec),
    /// Any number of sections, each under a name that the user chooses.
    Named(&'static Spec),
}

/// A word that a key can be set to, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word.
    pub(crate) word: &'static str,
    /// What it means, in Markdown.
    pub(crate) doc: &'static str,
}

/// A type that a key can have.
pub(crate) trait Setting {
    /// What such a key may be set to, unless the section says it more exactly.
    const KIND: Kind;

    /// The value as TOML; `None` when there is nothing to write.
    fn to_value(&self) -> Option<Value>;
}

/// A struct that [`section!`] defined.
pub(crate) trait Section: Default {
    /// Its keys.
    const SPEC: &'static Spec;
}

impl Spec {
    /// The key of a name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// What a key of this section is when nobody sets it.
    pub(crate) fn default_of(&self, key: &Key) -> Option<Value> {
        let is_required = self.required.contains(&key.name);
        if is_required { None } else { (key.default)() }
    }

    /// What the key at the end of a path may be set to.
    pub(crate) fn kind_at(&'static self, path: &[String]) -> Option<Kind> {
        let mut kind = Kind::Table(self);
        for name in path {
            kind = match kind {
                Kind::Table(spec) | Kind::Inherited(_, spec) => spec.key(name)?.kind,
                Kind::Named(spec) => Kind::Table(spec),
                Kind::Map(values) => *values,
                _ => return None,
            };
        }
        Some(kind)
    }

    /// Every key outside of named sections that holds a value, with the path to it.
    pub(crate) fn fixed_keys(&'static self) -> Vec<(Vec<&'static str>, &'static Key)> {
        let mut found = Vec::new();
        let mut open: Vec<(Vec<&'static str>, &'static Spec)> = vec![(Vec::new(), self)];
        while let Some((path, spec)) = open.pop() {
            for key in spec.keys {
                let mut path = path.clone();
                path.push(key.name);
                match key.kind {
                    Kind::Table(inner) => open.push((path, inner)),
                    Kind::Named(_) | Kind::Map(_) | Kind::Inherited(..) => {}
                    _ => found.push((path, key)),
                }
            }
        }
        found.sort_by(|a, b| (a.0.len(), &a.0).cmp(&(b.0.len(), &b.0)));
        found
    }
}

impl Kind {
    /// Whether a text needs no quotes to be this kind.
    pub(crate) fn is_text(&self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Choice(_)
                | Self::Model
                | Self::Tool
                | Self::Behavior
                | Self::Rule
                | Self::Path
                | Self::PathOr(_)
                | Self::Url
                | Self::Variable
                | Self::Hidden
        )
    }

    /// The kind in words, as an error and the reference page say it.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Flag => "true or false".into(),
            Self::Count { min, max } if *max >= i64::from(u32::MAX) => {
                if *min == 0 {
                    "a whole number".into()
                } else {
                    format!("a whole number, {min} or more")
                }
            }
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max } if max.is_finite() => format!("a number from {min} to {max}"),
            Self::Number { min, .. } => format!("a number, {min} or more"),
            Self::Text => "a string".into(),
            Self::Choice(words) => format!("one of {}", word_list(words)),
            Self::Model => "a string such as \"provider/model\"".into(),
            Self::Tool => "the name of a tool".into(),
            Self::Behavior => "the name of a behavior".into(),
            Self::Rule => "a rule such as \"tool\" or \"tool(pattern)\"".into(),
            Self::Path => "a path".into(),
            Self::PathOr(words) => format!("a path, or {}", word_list(words)),
            Self::Url => "an address such as \"http://localhost:8000/v1\"".into(),
            Self::Variable => "the name of an environment variable".into(),
            Self::Hidden => "a string, where ${VARIABLE} stands for that variable".into(),
            Self::List(item) => format!("a list, each {}", item.words()),
            Self::Map(value) => format!("a table, each value {}", value.words()),
            Self::Table(_) | Self::Inherited(..) => "a table".into(),
            Self::Named(_) => "a table of named tables".into(),
        }
    }
}

fn word_list(words: &[Word]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("\"{}\"", w.word)).collect();
    quoted.join(", ")
}

impl Setting for bool {
    const KIND: Kind = Kind::Flag;

    fn to_value(&self) -> Option<Value> {
        Some(Value::Boolean(*self))
    }
}

impl Setting for u64 {
    const KIND: Kind = Kind::Count { min: 0, max: i64::MAX };

    fn to_value(&self) -> Option<Value> {
        i64::try_from(*self).ok().map(Value::Integer)
    }
}

impl Setting for u32 {
    const KIND: Kind = Kind::Count { min: 0, max: u32::MAX as i64 };

    fn to_value(&self) -> Option<Value> {
        Some(Value::Integer(i64::from(*self)))
    }
}

impl Setting for f64 {
    const KIND: Kind = Kind::Number { min: 0.0, max: f64::INFINITY };

    fn to_value(&self) -> Option<Value> {
        Some(Value::Float(*self))
    }
}

impl Setting for String {
    const KIND: Kind = Kind::Text;

    fn to_value(&self) -> Option<Value> {
        Some(Value::String(self.clone()))
    }
}

impl Setting for PathBuf {
    const KIND: Kind = Kind::Path;

    fn to_value(&self) -> Option<Value> {
        self.to_str().map(|text| Value::String(text.into()))
    }
}

impl<T: Setting> Setting for Option<T> {
    const KIND: Kind = T::KIND;

    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }
}

impl<T: Setting> Setting for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);

    fn to_value(&self) -> Option<Value> {
        Some(Value::Array(self.iter().filter_map(T::to_value).collect()))
    }
}

impl<T: Section> Setting for BTreeMap<String, T> {
    const KIND: Kind = Kind::Named(T::SPEC);

    fn to_value(&self) -> Option<Value> {
        None
    }
}

/// Defines a section: the struct that the program reads, and its [`Spec`].
///
/// A field is `name: Type = default`, with `=> Kind` where the type alone does not say enough. The
/// doc comments are the text of the reference page. Before the braces may stand `rivals`, `requires`
/// and `named`, see [`Spec`].
macro_rules! section {
    (
        $(#[doc = $doc:literal])+
        $name:ident
        $(rivals $rivals:expr;)?
        $(requires $required:expr;)?
        $(named $placeholder:literal;)?
        {
            $(
                $(#[doc = $key_doc:literal])+
                $key:ident: $ty:ty = $default:expr $(=> $kind:expr)?,
            )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(default)]
        pub(crate) struct $name {
            $(
                $(#[doc = $key_doc])+
                pub(crate) $key: $ty,
            )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $crate::config::schema::Section for $name {
            const SPEC: &'static $crate::config::schema::Spec = &$crate::config::schema::Spec {
                doc: concat!($($doc, "\n"),+),
                keys: &[$(
                    $crate::config::schema::Key {
                        name: stringify!($key),
                        doc: concat!($($key_doc, "\n"),+),
                        kind: section!(@kind $ty $(, $kind)?),
                        default: || {
                            let default: $ty = $default;
                            $crate::config::schema::Setting::to_value(&default)
                        },
                    },
                )+],
                rivals: section!(@or &[] $(, $rivals)?),
                required: section!(@or &[] $(, $required)?),
                placeholder: section!(@or "NAME" $(, $placeholder)?),
            };
        }

        impl $crate::config::schema::Setting for $name {
            const KIND: $crate::config::schema::Kind =
                $crate::config::schema::Kind::Table(<$name as $crate::config::schema::Section>::SPEC);

            fn to_value(&self) -> Option<toml::Value> {
                None
            }
        }
    };
    (@kind $ty:ty) => { <$ty as $crate::config::schema::Setting>::KIND };
    (@kind $ty:ty, $kind:expr) => { $kind };
    (@or $default:expr) => { $default };
    (@or $default:expr, $said:expr) => { $said };
}

/// Defines an enum of words.
macro_rules! choice {
    (
        $(#[doc = $doc:literal])+
        $name:ident {
            $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub(crate) enum $name {
            $($(#[doc = $word_doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The words, as a file has them.
            pub(crate) const WORDS: &'static [$crate::config::schema::Word] = &[
                $($crate::config::schema::Word {
                    word: $word,
                    doc: concat!($($word_doc, "\n"),+),
                },)+
            ];

            /// All there are.
            #[allow(dead_code, reason = "not every choice is listed anywhere")]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word, as a file has it.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl $crate::config::schema::Setting for $name {
            const KIND: $crate::config::schema::Kind =
                $crate::config::schema::Kind::Choice(Self::WORDS);

            fn to_value(&self) -> Option<toml::Value> {
                Some(toml::Value::String(self.as_str().into()))
            }
        }
    };
}

pub(crate) use {choice, section};
