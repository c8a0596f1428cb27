//! What somebody may have meant who wrote a word that does not exist.

/// The candidate nearest to a word, if one is near enough to be a slip of the fingers, or begins
/// with it.
pub(crate) fn suggest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let folded = fold(word);
    // A third of the word may differ: "ehco" is echo, "cat" is not echo.
    let allowed = folded.len().div_ceil(3).min(4);
    let score = |candidate: &str| {
        let candidate = fold(candidate);
        let distance = distance(&folded, &candidate);
        let is_beginning = folded.len() > 2 && candidate.starts_with(&folded);
        let is_near = distance <= allowed && distance < candidate.len();
        // A slip is likelier than half a word.
        (is_near || is_beginning).then_some((!is_near, distance))
    };
    candidates
        .into_iter()
        .filter_map(|candidate| Some((score(candidate)?, candidate)))
        .min_by_key(|(score, _)| *score)
        .map(|(_, candidate)| candidate)
}

/// Capitals and the two kinds of dashes are never what is meant to differ. Long words are cut: past
/// this nobody means a name.
fn fold(word: &str) -> Vec<char> {
    word.chars()
        .take(100)
        .map(|c| if c == '-' { '_' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}

/// How many letters must be typed, deleted, changed or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    // Three rows of the usual table: a swap looks two rows back.
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous_a = None;
    for (i, &from) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        let mut previous_b = None;
        for (j, &to) in b.iter().enumerate() {
            let at =
                |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&last, j) + usize::from(from != to))
                .min(at(&last, j + 1) + 1)
                .min(at(&row, j) + 1);
            if previous_a == Some(to) && previous_b == Some(from) && j > 0 {
                best = best.min(at(&before_last, j - 1) + 1);
            }
            row.push(best);
            previous_b = Some(to);
        }
        before_last = std::mem::replace(&mut last, row);
        previous_a = Some(from);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [&str; 5] = ["echo", "read_file", "write_file", "http_get", "shell"];

    #[test]
    fn a_slip_of_the_fingers_is_recognised() {
        for (typed, meant) in [
            ("ehco", "echo"),
            ("eco", "echo"),
            ("shel", "shell"),
            ("read-file", "read_file"),
            ("Write_File", "write_file"),
            ("httpget", "http_get"),
            ("reed_file", "read_file"),
            ("http", "http_get"),
        ] {
            assert_eq!(suggest(typed, TOOLS), Some(meant), "{typed}");
        }
    }

    #[test]
    fn something_else_altogether_is_not_guessed_at() {
        for typed in ["", "x", "cat", "browser", "rm -rf", "長い名前"] {
            assert_eq!(suggest(typed, TOOLS), None, "{typed}");
        }
    }

    #[test]
    fn the_nearest_wins_and_the_first_of_equals() {
        assert_eq!(suggest("tokns", ["tokans", "tokens"]), Some("tokans"));
        assert_eq!(suggest("token", ["tokaan", "tokens"]), Some("tokens"));
    }

    #[test]
    fn a_swap_counts_once() {
        let letters = |word: &str| word.chars().collect::<Vec<_>>();
        assert_eq!(distance(&letters("abcd"), &letters("abdc")), 1);
        assert_eq!(distance(&letters("kitten"), &letters("sitting")), 3);
        assert_eq!(distance(&letters(""), &letters("abc")), 3);
    }
}
