//! A path inside the workspace, in its one plain spelling.

use std::{
    ffi::OsStr,
    fmt,
    path::{Component, Path},
};

use schemars::JsonSchema;
use serde::Deserialize;

/// The longest path that is taken.
const LONGEST: usize = 4096;

/// A path as tools take it: relative to the workspace, without `..`, in plain form.
///
/// Permission rules compare the text of a path, so there must be only one way to write it:
/// `docs/a.md` is taken, `./docs/a.md` and `docs//a.md` are not.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub(crate) struct WorkspacePath(String);

impl WorkspacePath {
    /// The workspace folder itself.
    pub(crate) fn root() -> Self {
        Self(".".to_owned())
    }

    pub(crate) fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0 == "."
    }

    /// The folder that it is in, and its name there.
    pub(super) fn split(&self) -> (&Path, &OsStr) {
        let path = self.as_path();
        let name = path.file_name().unwrap_or(OsStr::new("."));
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => (parent, name),
            _ => (Path::new("."), name),
        }
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for WorkspacePath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Err("the path is empty".to_owned());
        }
        if text.len() > LONGEST {
            return Err(format!("the path is longer than {LONGEST} bytes"));
        }
        if text.contains('\0') {
            return Err("the path contains a zero byte".to_owned());
        }
        let mut plain: Vec<&str> = Vec::new();
        for component in Path::new(&text).components() {
            match component {
                Component::Normal(name) => plain.extend(name.to_str()),
                Component::CurDir => {}
                Component::ParentDir => {
                    return Err(format!(
                        "\"{text}\" contains \"..\": paths stay inside the workspace folder and \
                         are written from there"
                    ));
                }
                Component::RootDir | Component::Prefix(_) => {
                    return Err(format!(
                        "\"{text}\" is absolute: write the path from the workspace folder on, \
                         such as src/main.rs"
                    ));
                }
            }
        }
        let plain = match plain.as_slice() {
            [] => ".".to_owned(),
            names => names.join("/"),
        };
        if plain != text {
            return Err(format!("write \"{plain}\" instead of \"{text}\""));
        }
        Ok(Self(text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<WorkspacePath, String> {
        WorkspacePath::try_from(text.to_owned())
    }

    #[test]
    fn a_plain_relative_path_is_taken() {
        for plain in [".", "a", "src/main.rs", ".github/workflows", "a b/ü", "..a/b..", "~"] {
            assert_eq!(parse(plain).unwrap().to_string(), plain);
        }
    }

    #[test]
    fn another_spelling_is_answered_with_the_plain_one() {
        for (text, plain) in
            [("./a", "a"), ("a//b", "a/b"), ("a/./b", "a/b"), ("a/", "a"), ("./", ".")]
        {
            assert_eq!(parse(text), Err(format!("write \"{plain}\" instead of \"{text}\"")));
        }
    }

    #[test]
    fn ways_out_are_refused() {
        for text in ["..", "../a", "a/../b", "a/..", "./../x"] {
            assert!(parse(text).unwrap_err().contains("contains \"..\""), "{text}");
        }
        for text in ["/", "/etc/passwd", "//a"] {
            assert!(parse(text).unwrap_err().contains("is absolute"), "{text}");
        }
        assert!(parse("").is_err());
        assert!(parse("a\0b").is_err());
        assert!(parse(&"a/".repeat(3000)).is_err());
    }

    proptest! {
        #[test]
        fn what_is_taken_has_only_plain_names(text in "[a-z./~\\\\ ]{0,20}") {
            if let Ok(path) = parse(&text) {
                prop_assert!(
                    path.is_root()
                        || text.split('/').all(|name| !["", ".", ".."].contains(&name))
                );
            }
        }
    }
}
