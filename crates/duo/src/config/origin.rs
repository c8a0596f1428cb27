//! Where a value came from.

use std::{fmt, path::Path, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeStruct};

/// Who said a value. Later ones override earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// Nobody: it is the default.
    #[default]
    Default,
    /// The user's file.
    User(Line),
    /// The project's file.
    Project(Line),
    /// An environment variable.
    Environment(Arc<str>),
    /// The command line.
    Flag(Arc<str>),
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    /// The file, as a person finds it from the working folder.
    pub(crate) file: Arc<str>,
    /// The line, from 1; 0 stands for the whole file.
    pub(crate) line: usize,
}

impl Origin {
    /// The same source at another line. Only files have lines.
    pub(crate) fn at_line(&self, line: usize) -> Self {
        let moved = |place: &Line| Line { file: Arc::clone(&place.file), line };
        match self {
            Self::User(place) => Self::User(moved(place)),
            Self::Project(place) => Self::Project(moved(place)),
            other => other.clone(),
        }
    }

    /// Its kind, as `duo config --json` has it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User(_) => "user_file",
            Self::Project(_) => "project_file",
            Self::Environment(_) => "environment",
            Self::Flag(_) => "flag",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(place) | Self::Project(place) if place.line == 0 => f.write_str(&place.file),
            Self::User(place) | Self::Project(place) => {
                write!(f, "{}:{}", place.file, place.line)
            }
            Self::Environment(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Origin", 3)?;
        fields.serialize_field("kind", self.kind())?;
        match self {
            Self::Default => {}
            Self::User(place) | Self::Project(place) => {
                fields.serialize_field("file", &*place.file)?;
                fields.serialize_field("line", &place.line)?;
            }
            Self::Environment(name) => fields.serialize_field("variable", &**name)?,
            Self::Flag(name) => fields.serialize_field("flag", &**name)?,
        }
        fields.end()
    }
}

/// A file's name as a person finds it: from the working folder where it is in or above it, from
/// `~` where it is at home, whole otherwise.
pub(crate) fn shown(path: &Path, cwd: &Path, home: Option<&Path>) -> Arc<str> {
    if let Ok(inside) = path.strip_prefix(cwd) {
        return inside.to_string_lossy().into();
    }
    let above = cwd.ancestors().skip(1).zip(1..).find_map(|(folder, up)| {
        // The root has everything below it; "../../../etc" would help nobody.
        folder.parent()?;
        let file = path.strip_prefix(folder).ok()?;
        (file.components().count() == 1)
            .then(|| format!("{}{}", "../".repeat(up), file.to_string_lossy()))
    });
    if let Some(above) = above {
        return above.into();
    }
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(inside) => format!("~/{}", inside.to_string_lossy()).into(),
        None => path.to_string_lossy().into(),
    }
}
