//! The path to a key, as people write it.

use toml::de::DeTable;

/// A path with dots, with quotes around names that need them.
pub(crate) fn shown<S: AsRef<str>>(path: &[S]) -> String {
    let names: Vec<String> = path.iter().map(|name| quote(name.as_ref())).collect();
    names.join(".")
}

/// The names in a path with dots, such as `prices."gpt-4.1".input`. `None` if it cannot be read.
pub(crate) fn parse(text: &str) -> Option<Vec<String>> {
    // A line break would let the text be more than a key.
    if text.contains(['\n', '\r']) {
        return None;
    }
    let line = format!("{text} = 0");
    let document = DeTable::parse(&line).ok()?;
    let mut path = Vec::new();
    let mut table = document.get_ref();
    loop {
        let (name, value) = table.iter().next()?;
        path.push(name.get_ref().to_string());
        match value.get_ref().as_table() {
            Some(inner) => table = inner,
            // `a = 1 #` reads as a line as well, with another value than ours.
            None => {
                return value.get_ref().as_integer()?.as_str().eq("0").then_some(path);
            }
        }
    }
}

/// A name with quotes around it if it needs them.
pub(crate) fn quote(name: &str) -> String {
    if is_bare(name) {
        name.into()
    } else {
        format!("\"{}\"", super::problem::escaped(name.chars()))
    }
}

/// Whether a name needs no quotes.
pub(crate) fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_it_is_shown() {
        for path in [
            vec!["model"],
            vec!["providers", "local", "prices", "gpt-4.1/x", "input"],
            vec!["agents", "a \"b\" = c", "model"],
        ] {
            assert_eq!(parse(&shown(&path)).unwrap(), path);
        }
    }

    #[test]
    fn what_is_not_a_path_is_not_read() {
        for text in ["", ".", "a.", "a = 1 #", "a\n[b]\nc", "[a]", "a b", "a = {} #", "\"a"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
