//! The check itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{
    rules::{Rules, Skip},
    spdx,
};

/// The part of `cargo metadata` that we read.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    license_file: Option<String>,
    /// Nothing for our own.
    source: Option<String>,
}

/// What the check found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// How many packages were looked at.
    pub(super) packages: usize,
    /// What is not allowed.
    pub(super) offences: Vec<String>,
    /// What is allowed and worth a look.
    pub(super) notes: Vec<String>,
}

/// The packages that are used, as `name version`, from what `cargo tree` prints line by line. The
/// metadata alone does not tell: it has packages that no feature switches on.
pub(super) fn used(tree: &str) -> impl Iterator<Item = String> {
    tree.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        let version = rest.split_whitespace().next()?;
        Some(format!("{name} {version}"))
    })
}

/// Hold the packages that are used against the rules.
pub(super) fn check(metadata: &Metadata, used: &BTreeSet<String>, rules: &Rules) -> Found {
    let packages: Vec<&Package> = metadata
        .packages
        .iter()
        .filter(|package| used.contains(&format!("{} {}", package.name, package.version)))
        .collect();

    let mut found = Found { packages: packages.len(), offences: Vec::new(), notes: Vec::new() };
    let licences = packages.iter().copied();
    found.offences.extend(licences.filter_map(|package| bad_licence(package, rules)));
    sources(&packages, &mut found);
    versions(&packages, rules, &mut found);
    found
}

fn bad_licence(package: &Package, rules: &Rules) -> Option<String> {
    let Package { name, version, .. } = package;
    let Some(expression) = &package.license else {
        let file = package.license_file.as_deref().unwrap_or("none");
        return Some(format!("{name} {version} names no licence (licence file: {file})"));
    };
    match spdx::allowed(expression, &rules.licenses.allow) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name} {version}: {expression} is not allowed")),
        Err(error) => {
            Some(format!("{name} {version}: the licence {expression:?} cannot be read: {error}"))
        }
    }
}

fn sources(packages: &[&Package], found: &mut Found) {
    let mut registries: BTreeMap<&str, &Package> = BTreeMap::new();
    for package in packages {
        match package.source.as_deref() {
            Some(source) if source.starts_with("git+") => found.offences.push(format!(
                "{} {} comes from a git repository: {source}",
                package.name, package.version
            )),
            Some(source) => {
                registries.entry(source).or_insert(package);
            }
            None => {}
        }
    }
    if registries.len() > 1 {
        let examples: Vec<&str> = registries.values().map(|it| it.name.as_str()).collect();
        found.offences.push(format!(
            "packages come from {} registries; one from each: {}",
            registries.len(),
            examples.join(", ")
        ));
    }
}

fn versions(packages: &[&Package], rules: &Rules, found: &mut Found) {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let of_name = versions.entry(&package.name).or_default();
        of_name.insert(&package.version);
    }
    let skipped = |name: &str, version: &str| -> bool {
        let mut skips = rules.bans.skip.iter();
        skips.any(|skip| skip.covers(name, version))
    };
    for (name, versions) in &versions {
        let counted: Vec<&str> =
            versions.iter().copied().filter(|version| !skipped(name, version)).collect();
        if counted.len() > 1 {
            let list = counted.join(", ");
            found.offences.push(format!(
                "{name} is there in several versions: {list} (`cargo tree --duplicates` shows who \
                 wants them; bans.skip in deny.toml excuses one)"
            ));
        }
    }
    for Skip { spec, reason } in rules.bans.skip.iter().filter(|skip| {
        let needed = |(name, versions): (&&str, &BTreeSet<&str>)| {
            versions.len() > 1 && versions.iter().any(|version| skip.covers(name, version))
        };
        !versions.iter().any(needed)
    }) {
        found
            .notes
            .push(format!("bans.skip excuses {spec} ({reason}), which is not needed any more"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn package(name: &str, version: &str, license: Value, source: Value) -> Value {
        json!({
            "name": name, "version": version, "license": license, "license_file": null,
            "source": source
        })
    }

    fn found(packages: &[Value], unused: &[Value]) -> Found {
        let line = |it: &Value| {
            let word = |key: &str| it[key].as_str().unwrap().to_owned();
            format!("{} v{} (/some/where) (*)\n", word("name"), word("version"))
        };
        let tree: String = packages.iter().map(line).collect();
        let all: Vec<&Value> = packages.iter().chain(unused).collect();
        let metadata = serde_json::from_value(json!({ "packages": all })).unwrap();
        let rules = toml::from_str(
            r#"
            [licenses]
            allow = ["MIT"]
            [bans]
            skip = [
                { crate = "old@1", reason = "someone wants it" },
                { crate = "gone@1", reason = "someone wanted it" },
            ]
            "#,
        )
        .unwrap();
        check(&metadata, &used(&tree).collect(), &rules)
    }

    #[test]
    fn every_offence_is_told_and_what_is_not_used_is_not_looked_at() {
        let registry = json!("registry+somewhere");
        let used = [
            package("ours", "0.1.0", json!("MIT"), Value::Null),
            package("free", "1.0.0", json!("MIT OR GPL-3.0"), registry.clone()),
            package("copyleft", "1.0.0", json!("GPL-3.0"), registry.clone()),
            package("silent", "1.0.0", Value::Null, registry.clone()),
            package("twice", "1.0.0", json!("MIT"), registry.clone()),
            package("twice", "2.0.0", json!("MIT"), registry.clone()),
            package("old", "1.5.0", json!("MIT"), registry.clone()),
            package("old", "2.0.0", json!("MIT"), registry.clone()),
            package("forked", "1.0.0", json!("MIT"), json!("git+somewhere")),
        ];
        let unused = [package("windows", "1.0.0", json!("GPL-3.0"), registry)];
        let found = found(&used, &unused);
        assert_eq!(
            found.offences,
            [
                "copyleft 1.0.0: GPL-3.0 is not allowed",
                "silent 1.0.0 names no licence (licence file: none)",
                "forked 1.0.0 comes from a git repository: git+somewhere",
                "twice is there in several versions: 1.0.0, 2.0.0 (`cargo tree --duplicates` \
                 shows who wants them; bans.skip in deny.toml excuses one)",
            ]
        );
        assert_eq!(
            found.notes,
            ["bans.skip excuses gone@1 (someone wanted it), which is not needed any more"]
        );
        assert_eq!(found.packages, 9);
    }

    #[test]
    fn two_registries_are_one_too_many() {
        let used = [
            package("a", "1.0.0", json!("MIT"), json!("registry+here")),
            package("b", "1.0.0", json!("MIT"), json!("registry+there")),
        ];
        assert_eq!(
            found(&used, &[]).offences,
            ["packages come from 2 registries; one from each: a, b"]
        );
    }
}
