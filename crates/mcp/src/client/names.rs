//! The names of servers' tools as agents know them.

use std::collections::HashSet;

/// Providers refuse longer names.
const LONGEST: usize = 64;

/// Names that are taken.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// A name for a server's tool: letters, digits, `_` and `-`, not too long, and nobody else's.
    pub(crate) fn give(&mut self, server: &str, tool: &str) -> String {
        let plain = |text: &str| -> String {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
        };
        let whole = format!("{}__{}", plain(server), plain(tool));
        if whole.len() <= LONGEST && self.0.insert(whole.clone()) {
            return whole;
        }
        // The rest of the name tells it from others, and is the same every time.
        let mut mark = fingerprint(&format!("{server}\n{tool}"));
        loop {
            let head: String = whole.chars().take(LONGEST - 9).collect();
            let name = format!("{head}_{mark:08x}");
            if self.0.insert(name.clone()) {
                return name;
            }
            mark = mark.wrapping_add(1);
        }
    }
}

/// FNV-1a: stable over versions, which a name in a journal must be.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_short_and_unique_and_stay_the_same() {
        let mut names = Names::default();
        assert_eq!(names.give("files", "read_file"), "files__read_file");
        assert_eq!(names.give("my files", "größe"), "my_files__gr__e");
        let other = names.give("my.files", "gr??e");
        assert!(other.starts_with("my_files__gr__e_"), "{other}");
        let long = names.give("a", &"x".repeat(100));
        assert_eq!(long.len(), 64);
        assert_eq!(Names::default().give("a", &"x".repeat(100)), long);
    }
}
