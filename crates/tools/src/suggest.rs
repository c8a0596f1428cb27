//! The name that was probably meant, for errors that say so.

/// Longer texts are no misspelt names, and comparing them would cost time.
const LONGEST: usize = 64;

/// The candidate nearest to what was written, if one is near enough to be what was meant.
pub(crate) fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = written.chars().count();
    if length == 0 || length > LONGEST {
        return None;
    }
    let lower = written.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 4 * LONGEST)
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= (length / 3).max(1) && *distance < length)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// ` (did you mean "echo"?)`, or nothing.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> String {
    nearest(written, candidates)
        .map(|name| format!(" (did you mean \"{name}\"?)"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let names = ["echo", "shell", "read_file"];
        assert_eq!(nearest("ehco", names), Some("echo"));
        assert_eq!(nearest("ReadFile", names), Some("read_file"));
        assert_eq!(nearest("telephone", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("x", ["e"]), None);
        assert_eq!(did_you_mean("shel", names), " (did you mean \"shell\"?)");
    }
}
