//! Flags and `--set` as a layer.

use super::{
    origin::Origin,
    path,
    problem::{Problem, quoted},
    raw::Raw,
    schema::Spec,
    sources::Sources,
    text::{self, Quotes},
};

/// The flag that sets any key.
const SET: &str = "--set";

/// The command line as a layer: flags, then `--set`. The last word on a key counts.
pub(crate) fn layer(sources: &Sources, root: &'static Spec, problems: &mut Vec<Problem>) -> Raw {
    let mut layer = Raw::table(Origin::Flag(SET.into()));
    let mut put = |origin: Origin, key: Result<Vec<String>, String>, raw: Raw| {
        let what = match key.map(|key| (layer.put(&key, raw), key)) {
            Ok((Ok(_), _)) => return,
            Ok((Err(depth), key)) => {
                let parent = path::shown(key.get(..depth).unwrap_or_default());
                format!("{}: {parent} was set to something else before", path::shown(&key))
            }
            Err(what) => what,
        };
        problems.push(Problem { origin, key: String::new(), what });
    };
    for flag in &sources.flags {
        let origin = Origin::Flag(flag.flag.as_str().into());
        let key = path::parse(&flag.key)
            .ok_or_else(|| format!("{} is not the path of a key", quoted(&flag.key)));
        let raw = Raw::from_value(flag.value.clone(), &origin);
        put(origin, key, raw);
    }
    for assignment in &sources.set {
        let origin = Origin::Flag(SET.into());
        match split(assignment) {
            Some((key, value)) => {
                let raw = text::read(value, root.kind_at(&key), Quotes::Toml, &origin);
                put(origin, Ok(key), raw);
            }
            None => {
                // What stands behind "=" may be anything, a secret too.
                let shown = quoted(assignment.split('=').next().unwrap_or_default());
                let what =
                    format!("expected key.path=value, such as permissions.mode=ask, at {shown}");
                let raw = Raw::table(origin.clone());
                put(origin, Err(what), raw);
            }
        }
    }
    layer
}

/// The key and the value of `key.path=value`. The first `=` that leaves a path before it counts: a
/// name in quotes may hold others.
fn split(assignment: &str) -> Option<(Vec<String>, &str)> {
    assignment.match_indices('=').find_map(|(at, _)| {
        let (key, value) = assignment.split_at_checked(at)?;
        Some((path::parse(key)?, value.strip_prefix('=')?))
    })
}
