//! Values as the reference's databases hold them: Python's types, in insertion order, shared.
//!
//! A clone costs a reference count. Writing copies only the way from the root to what is written,
//! so a thousand environments of one domain share one database.

mod convert;
mod key;

use std::{
    collections::HashMap,
    fmt,
    ops::Index,
    sync::{Arc, OnceLock},
};

pub use key::Key;

/// A value with the types of JSON as Python reads them: whole numbers and floats are different.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `None`.
    #[default]
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A float.
    Float(f64),
    /// A text.
    Str(Arc<str>),
    /// A list.
    List(Arc<Vec<Value>>),
    /// A dictionary, or the dump of a model: its keys keep their order.
    Dict(Arc<Dict>),
}

/// Above this many entries a dictionary keeps an index; below, looking through them is faster.
const INDEXED_FROM: usize = 17;

/// A dictionary in insertion order.
#[derive(Default)]
pub struct Dict {
    entries: Vec<(Key, Value)>,
    #[allow(clippy::box_collection, reason = "records are small and many: a box keeps them small")]
    index: Option<Box<HashMap<Key, usize>>>,
    /// The canonical text of this dictionary, kept while nobody writes to it.
    canonical: OnceLock<Box<str>>,
}

static NONE: Value = Value::None;

impl Value {
    /// A text.
    pub fn str(text: impl AsRef<str>) -> Self {
        Self::Str(Arc::from(text.as_ref()))
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::List(Arc::new(items.into_iter().collect()))
    }

    /// A dictionary with known keys, in this order.
    pub fn dict<const N: usize>(entries: [(&'static str, Self); N]) -> Self {
        entries.into_iter().map(|(key, value)| (Key::Static(key), value)).collect::<Dict>().into()
    }

    /// An empty dictionary.
    pub fn empty_dict() -> Self {
        Self::from(Dict::default())
    }

    /// The text, where it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value, where it is a bool.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number as a float, where it is a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            #[allow(clippy::cast_precision_loss)]
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The whole number, where it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// The items, where it is a list.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The dictionary, where it is one.
    pub fn as_dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// The items of a list; nothing for anything else.
    pub fn items(&self) -> &[Self] {
        self.as_list().unwrap_or_default()
    }

    /// The entries of a dictionary; nothing for anything else.
    pub fn entries(&self) -> &[(Key, Self)] {
        self.as_dict().map(|dict| dict.entries.as_slice()).unwrap_or_default()
    }

    /// Whether it is `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// What Python's `if` thinks of it.
    pub fn truthy(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Dict(dict) => !dict.entries.is_empty(),
        }
    }

    /// What a dictionary holds under a key.
    pub fn entry(&self, key: &str) -> Option<&Self> {
        self.as_dict()?.get(key)
    }

    /// What lies at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, key| value.entry(key))
    }

    /// The same to write to; the way there is copied where it is shared.
    pub fn at_mut(&mut self, path: &[&str]) -> Option<&mut Self> {
        path.iter().try_fold(self, |value, key| value.get_mut(key))
    }

    /// An entry of a dictionary to write to.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match self {
            Self::Dict(dict) if dict.contains(key) => Arc::make_mut(dict).get_mut(key),
            _ => None,
        }
    }

    /// An item of a list to write to.
    pub fn item_mut(&mut self, index: usize) -> Option<&mut Self> {
        match self {
            Self::List(items) => Arc::make_mut(items).get_mut(index),
            _ => None,
        }
    }

    /// The items of a list to write to.
    pub fn items_mut(&mut self) -> &mut [Self] {
        match self {
            Self::List(items) => Arc::make_mut(items).as_mut_slice(),
            _ => &mut [],
        }
    }

    /// Sets an entry of a dictionary. Nothing happens to what is no dictionary.
    pub fn set(&mut self, key: impl Into<Key>, value: impl Into<Self>) {
        if let Self::Dict(dict) = self {
            Arc::make_mut(dict).insert(key.into(), value.into());
        }
    }

    /// Takes an entry out of a dictionary.
    pub fn remove(&mut self, key: &str) -> Option<Self> {
        match self {
            Self::Dict(dict) if dict.contains(key) => Arc::make_mut(dict).remove(key),
            _ => None,
        }
    }

    /// Appends to a list. Nothing happens to what is no list.
    pub fn push(&mut self, value: impl Into<Self>) {
        if let Self::List(items) = self {
            Arc::make_mut(items).push(value.into());
        }
    }

    /// Merges a dictionary into this one: dictionaries on both sides deeply, all else replaced.
    pub fn merge(&mut self, update: &Self) {
        for (key, value) in update.entries() {
            match (self.get_mut(key), value) {
                (Some(old @ Self::Dict(_)), Self::Dict(_)) => old.merge(value),
                _ => self.set(key.clone(), value.clone()),
            }
        }
    }

    /// Python's `==`: numbers compare by value whatever their type, dictionaries without order.
    pub fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                Arc::ptr_eq(a, b)
                    || (a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals(b)))
            }
            (Self::Dict(a), Self::Dict(b)) => Arc::ptr_eq(a, b) || a.matches(b, |a, b| a.equals(b)),
            (Self::Int(a), Self::Int(b)) => a == b,
            (a, b) => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        }
    }

    /// Whether both have the same canonical text, and so the same hash, without writing it.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                Arc::ptr_eq(a, b)
                    || (a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same(b)))
            }
            (Self::Dict(a), Self::Dict(b)) => Arc::ptr_eq(a, b) || a.matches(b, |a, b| a.same(b)),
            _ => false,
        }
    }
}

impl Dict {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether there is an entry under a key.
    pub fn contains(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// What is under a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(self.position(key)?).map(|(_, value)| value)
    }

    /// What is under a key, to write to.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let position = self.position(key)?;
        self.canonical.take();
        self.entries.get_mut(position).map(|(_, value)| value)
    }

    /// The entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The keys in their order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// Sets an entry; a key that is there keeps its place.
    pub fn insert(&mut self, key: Key, value: Value) {
        self.canonical.take();
        match self.position(&key) {
            Some(position) => {
                if let Some(entry) = self.entries.get_mut(position) {
                    entry.1 = value;
                }
            }
            None => {
                if let Some(index) = &mut self.index {
                    index.insert(key.clone(), self.entries.len());
                }
                self.entries.push((key, value));
                if self.index.is_none() && self.entries.len() >= INDEXED_FROM {
                    self.reindex();
                }
            }
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let position = self.position(key)?;
        self.canonical.take();
        let (_, value) = self.entries.remove(position);
        if self.index.is_some() {
            self.reindex();
        }
        Some(value)
    }

    /// The kept canonical text, made by `write` where there is none yet.
    pub(crate) fn canonical(&self, write: impl FnOnce(&Self) -> String) -> &str {
        self.canonical.get_or_init(|| write(self).into_boxed_str())
    }

    fn reindex(&mut self) {
        let index = self.entries.iter().enumerate().map(|(at, (key, _))| (key.clone(), at));
        self.index = Some(Box::new(index.collect()));
    }

    fn position(&self, key: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(key).copied(),
            None => self.entries.iter().position(|(name, _)| &**name == key),
        }
    }

    fn matches(&self, other: &Self, equal: impl Fn(&Value, &Value) -> bool) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|((key, value), (name, counterpart))| {
                // Copies keep their order, so the counterpart is nearly always at the same place.
                if **key == **name {
                    equal(value, counterpart)
                } else {
                    other.get(key).is_some_and(|found| equal(value, found))
                }
            })
    }
}

impl Clone for Dict {
    /// Copies the entries; the canonical text stays behind, as a copy is made to be written to.
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            index: self.index.clone(),
            canonical: OnceLock::new(),
        }
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<Key>> FromIterator<(K, Value)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let mut dict =
            Self { entries: Vec::with_capacity(entries.size_hint().0), ..Self::default() };
        for (key, value) in entries {
            dict.insert(key.into(), value);
        }
        dict
    }
}

/// Two values are equal where Python says so.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl PartialEq<str> for Value {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(other)
    }
}

/// What a dictionary holds under a key, `None` where it holds nothing.
impl Index<&str> for Value {
    type Output = Self;

    fn index(&self, key: &str) -> &Self {
        self.entry(key).unwrap_or(&NONE)
    }
}

/// An item of a list, `None` where there is none.
impl Index<usize> for Value {
    type Output = Self;

    fn index(&self, index: usize) -> &Self {
        self.items().get(index).unwrap_or(&NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Value {
        let users = (0..40).map(|n| (format!("user_{n}"), Value::dict([("age", Value::Int(n))])));
        Value::dict([("users", users.collect::<Dict>().into()), ("orders", Value::empty_dict())])
    }

    #[test]
    fn writing_copies_only_the_way_to_what_is_written() {
        let pristine = database();
        let mut copy = pristine.clone();
        copy.at_mut(&["users", "user_3"]).unwrap().set("age", 99);
        assert_eq!(pristine["users"]["user_3"]["age"], Value::Int(3));
        assert_eq!(copy["users"]["user_3"]["age"], Value::Int(99));
        let (Value::Dict(a), Value::Dict(b)) =
            (&pristine["users"]["user_4"], &copy["users"]["user_4"])
        else {
            panic!("users are dictionaries")
        };
        assert!(Arc::ptr_eq(a, b));
        assert!(!pristine.same(&copy));
    }

    #[test]
    fn equality_is_pythons_and_sameness_is_the_texts() {
        assert!(Value::Int(3).equals(&Value::Float(3.0)));
        assert!(!Value::Int(3).same(&Value::Float(3.0)));
        assert!(Value::Bool(true).equals(&Value::Int(1)));
        let a = Value::dict([("x", Value::Int(1)), ("y", Value::Int(2))]);
        let b = Value::dict([("y", Value::Int(2)), ("x", Value::Int(1))]);
        assert!(a.same(&b));
    }

    #[test]
    fn removing_from_a_large_dictionary_keeps_the_index_right() {
        let mut db = database();
        db.get_mut("users").unwrap().remove("user_0");
        assert!(db["users"].entry("user_0").is_none());
        assert_eq!(db["users"]["user_39"]["age"], Value::Int(39));
    }

    #[test]
    fn merging_goes_deep_into_dictionaries_and_replaces_lists() {
        let mut base = Value::dict([(
            "a",
            Value::dict([("x", Value::Int(1)), ("l", Value::list([Value::Int(1)]))]),
        )]);
        base.merge(&Value::dict([(
            "a",
            Value::dict([("l", Value::list([])), ("z", Value::Int(3))]),
        )]));
        assert_eq!(base["a"]["x"], Value::Int(1));
        assert_eq!(base["a"]["l"], Value::list([]));
        assert_eq!(base["a"]["z"], Value::Int(3));
    }
}
