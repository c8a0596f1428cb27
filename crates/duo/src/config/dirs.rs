//! Where a platform keeps a user's configuration and data.

use std::{ffi::OsString, path::PathBuf};

/// The folders of a user. Missing ones are not known, as in a container without a home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirs {
    /// The user's home.
    pub(crate) home: Option<PathBuf>,
    /// Where programs keep what the user sets.
    pub(crate) config: Option<PathBuf>,
    /// Where programs keep what they write.
    pub(crate) data: Option<PathBuf>,
}

/// A family of platforms with the same folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    /// Linux and its kin, by the XDG base directories.
    Xdg,
    /// macOS; the XDG variables count here too when they are set.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// The platform that this program was built for.
    pub(crate) const HERE: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Xdg
    };
}

impl Dirs {
    /// The folders that the environment says.
    pub(crate) fn find(platform: Platform, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        // The XDG rules: a relative path is to be ignored. An empty variable is an unset one.
        let folder =
            |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if platform == Platform::Windows {
            return Self {
                home: folder("USERPROFILE"),
                config: folder("APPDATA"),
                data: folder("LOCALAPPDATA"),
            };
        }
        let home = folder("HOME");
        let (config, data) = match platform {
            Platform::MacOs => ("Library/Application Support", "Library/Application Support"),
            Platform::Xdg | Platform::Windows => (".config", ".local/share"),
        };
        let at_home = |inside: &str| home.as_ref().map(|home| home.join(inside));
        Self {
            config: folder("XDG_CONFIG_HOME").or_else(|| at_home(config)),
            data: folder("XDG_DATA_HOME").or_else(|| at_home(data)),
            home,
        }
    }

    /// The user's configuration file.
    pub(crate) fn user_file(&self) -> Option<PathBuf> {
        Some(self.config.as_ref()?.join("duologue").join("config.toml"))
    }

    /// A file in this program's data folder.
    pub(crate) fn data_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.data.as_ref()?.join("duologue").join(name))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn find(platform: Platform, variables: &[(&str, &str)]) -> Dirs {
        Dirs::find(platform, |name| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some(value.into())
        })
    }

    #[test]
    fn xdg_variables_come_before_the_home() {
        let dirs = find(Platform::Xdg, &[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/cfg")]);
        let expected = Dirs {
            home: Some("/home/ada".into()),
            config: Some("/cfg".into()),
            data: Some("/home/ada/.local/share".into()),
        };
        assert_eq!(dirs, expected);
        assert_eq!(dirs.user_file(), Some("/cfg/duologue/config.toml".into()));
    }

    #[test]
    fn relative_and_empty_variables_are_ignored() {
        let variables = [("HOME", "/h"), ("XDG_CONFIG_HOME", "cfg"), ("XDG_DATA_HOME", "")];
        let dirs = find(Platform::Xdg, &variables);
        assert_eq!(dirs.config, Some("/h/.config".into()));
        assert_eq!(dirs.data_file("x"), Some("/h/.local/share/duologue/x".into()));
    }

    #[test]
    fn mac_and_windows_have_their_usual_places() {
        let mac = find(Platform::MacOs, &[("HOME", "/Users/ada")]);
        let support = PathBuf::from("/Users/ada/Library/Application Support");
        assert_eq!(mac.config, Some(support.clone()));
        assert_eq!(mac.data, Some(support));
        let variables = [("APPDATA", "/roaming"), ("LOCALAPPDATA", "/local"), ("HOME", "/h")];
        let windows = find(Platform::Windows, &variables);
        assert_eq!(windows.config, Some("/roaming".into()));
        assert_eq!(windows.data, Some("/local".into()));
    }

    #[test]
    fn without_a_home_nothing_is_invented() {
        assert_eq!(find(Platform::Xdg, &[]), Dirs::default());
        assert_eq!(Dirs::default().user_file(), None);
    }
}
