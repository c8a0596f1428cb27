//! The part of `deny.toml` that we read. What else is in it is for cargo-deny.

use serde::Deserialize;

/// What dependencies may be.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Rules {
    #[serde(default)]
    pub(super) graph: Graph,
    #[serde(default)]
    pub(super) licenses: Licenses,
    #[serde(default)]
    pub(super) bans: Bans,
}

/// Which dependencies are looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Graph {
    #[serde(default)]
    pub(super) targets: Vec<String>,
    #[serde(default)]
    pub(super) all_features: bool,
}

/// Which licences are accepted.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Licenses {
    #[serde(default)]
    pub(super) allow: Vec<String>,
}

/// Which packages are not.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Bans {
    #[serde(default)]
    pub(super) skip: Vec<Skip>,
}

/// A version that may be there beside another one.
#[derive(Debug, Deserialize)]
pub(super) struct Skip {
    /// `name@version`, where the version may leave out its last numbers.
    #[serde(rename = "crate")]
    pub(super) spec: String,
    /// Why.
    pub(super) reason: String,
}

impl Skip {
    /// Whether this is the package that is meant.
    pub(super) fn covers(&self, name: &str, version: &str) -> bool {
        let (wanted, prefix) = self.spec.split_once('@').unwrap_or((&self.spec, ""));
        let rest = version.strip_prefix(prefix);
        let whole = |rest: &str| rest.is_empty() || prefix.is_empty() || rest.starts_with('.');
        wanted == name && rest.is_some_and(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_covers_whole_numbers_of_a_version() {
        let skip = |spec: &str| Skip { spec: spec.into(), reason: String::new() };
        assert!(skip("syn@2").covers("syn", "2.0.119"));
        assert!(skip("syn@2.0.119").covers("syn", "2.0.119"));
        assert!(skip("syn").covers("syn", "2.0.119"));
        assert!(!skip("syn@2").covers("syn", "20.0.1"));
        assert!(!skip("syn@2").covers("synstructure", "2.0.1"));
    }
}
