//! Names with values that an application wants to find again.

use std::{fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

/// Names with values, in the order of their names. There are few, mostly one or none, and every
/// message and every journal in memory has them: they take no more room than they need, and clones
/// share it until one of them changes.
///
/// ```
/// use duologue_core::Metadata;
///
/// let mut metadata = Metadata::new();
/// metadata.insert("ticket", 17);
/// assert_eq!(metadata.get("ticket"), Some(&17.into()));
/// assert_eq!(serde_json::to_string(&metadata)?, r#"{"ticket":17}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Metadata(Option<Arc<Vec<Named>>>);

/// A name with its value.
type Named = (Box<str>, Value);

impl Metadata {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let at = self.place_of(name).ok()?;
        self.all().get(at).map(|(_, value)| value)
    }

    /// Whether there is a value of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place_of(name).is_ok()
    }

    /// Give a name a value; the one that it had.
    pub fn insert(&mut self, name: impl Into<Box<str>>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        let place = self.place_of(&name);
        let all = Arc::make_mut(self.0.get_or_insert_default());
        match place {
            Ok(at) => all.get_mut(at).map(|(_, old)| std::mem::replace(old, value)),
            Err(at) => {
                // One by one: most have a single name, and none has many.
                all.reserve_exact(1);
                all.insert(at, (name, value));
                None
            }
        }
    }

    /// Take a name away, with its value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.place_of(name).ok()?;
        let all = self.0.as_mut()?;
        Some(Arc::make_mut(all).remove(at).1)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.all().iter().map(|(name, value)| (&**name, value))
    }

    fn all(&self) -> &[Named] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    fn place_of(&self, name: &str) -> Result<usize, usize> {
        self.all().binary_search_by(|(known, _)| (**known).cmp(name))
    }
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

impl Eq for Metadata {}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<N: Into<Box<str>>> FromIterator<(N, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (N, Value)>>(all: I) -> Self {
        let mut metadata = Self::new();
        metadata.extend(all);
        metadata
    }
}

impl<N: Into<Box<str>>> Extend<(N, Value)> for Metadata {
    fn extend<I: IntoIterator<Item = (N, Value)>>(&mut self, all: I) {
        for (name, value) in all {
            self.insert(name, value);
        }
    }
}

impl<N: Into<Box<str>>, const COUNT: usize> From<[(N, Value); COUNT]> for Metadata {
    fn from(all: [(N, Value); COUNT]) -> Self {
        all.into_iter().collect()
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = Metadata;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Metadata, M::Error> {
                let mut metadata = Metadata::new();
                while let Some((name, value)) = map.next_entry::<Box<str>, Value>()? {
                    metadata.insert(name, value);
                }
                Ok(metadata)
            }
        }

        deserializer.deserialize_map(Names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_value_each_and_an_order() {
        let mut metadata = Metadata::from([("b", Value::from(1)), ("a", 2.into())]);
        assert_eq!(metadata.insert("b", 3), Some(1.into()));
        assert_eq!(serde_json::to_string(&metadata).ok().as_deref(), Some(r#"{"a":2,"b":3}"#));
        assert_eq!(metadata.remove("a"), Some(2.into()));
        assert_eq!((metadata.len(), metadata.contains_key("a")), (1, false));
    }

    #[test]
    fn a_clone_that_changes_leaves_the_other_as_it_was() {
        let first = Metadata::from([("a", Value::from(1))]);
        let mut second = first.clone();
        second.insert("a", 2);
        assert_eq!((first.get("a"), second.get("a")), (Some(&1.into()), Some(&2.into())));
        assert_eq!(second.remove("a"), Some(2.into()));
        assert_eq!((first.len(), second), (1, Metadata::new()));
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let text = r#"{"a":{"x":[1]},"b":null,"b":true}"#;
        let read: Option<Metadata> = serde_json::from_str(text).ok();
        let expected = Metadata::from([("a", serde_json::json!({"x": [1]})), ("b", true.into())]);
        assert_eq!(read, Some(expected));
        assert!(serde_json::from_str::<Metadata>("[]").is_err());
    }
}
