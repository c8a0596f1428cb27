//! Regular expressions as Python reads them, in our library's spelling.

use fancy_regex::{Regex, RegexBuilder};

/// Give up on a text after this many steps back.
const PATIENCE: usize = 100_000;

/// The expression, in any case; the text itself where Python takes it for no expression.
pub(super) fn expression(pattern: &str) -> Option<Regex> {
    let build = |pattern: &str| {
        RegexBuilder::new(pattern).case_insensitive(true).backtrack_limit(PATIENCE).build().ok()
    };
    respelled(pattern)
        .and_then(|pattern| build(&pattern))
        .or_else(|| build(&fancy_regex::escape(pattern)))
}

/// How often an expression is in a text. Unlike our library, Python finds nothing right behind
/// something, as `.*` does at the end of each line.
pub(super) fn count(expression: &Regex, text: &str) -> usize {
    let (mut at, mut count, mut must_advance) = (0, 0, false);
    while let Ok(Some(found)) = expression.find_from_pos(text, at) {
        if must_advance && found.start() == found.end() && found.start() == at {
            let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
            at += letter.len_utf8();
            must_advance = false;
            continue;
        }
        count += 1;
        must_advance = found.start() == found.end();
        at = found.end();
    }
    count
}

/// The expression in our library's spelling; `None` where Python refuses what the library takes.
fn respelled(pattern: &str) -> Option<String> {
    let letters: Vec<char> = pattern.chars().collect();
    let next = |at: usize| letters.get(at).copied();
    let by_line = pattern.contains("(?m") || pattern.contains("(?im") || pattern.contains("(?sm");
    let mut out = String::with_capacity(pattern.len());
    let mut at = 0;
    while let Some(letter) = next(at) {
        at += 1;
        match letter {
            '\\' => {
                out.push('\\');
                out.push(escaped(next(at)?)?);
                at += 1;
            }
            '[' => at = class(&letters, at, &mut out)?,
            // Python's `$` is also before a last line's end.
            '$' if !by_line => out.push_str(r"(?=\n?\z)"),
            // `{,3}` is `{0,3}`.
            '{' if next(at) == Some(',') => out.push_str("{0"),
            // `(?<name>…)` has a `P` in Python.
            '(' if next(at) == Some('?') && next(at + 1) == Some('<') => match next(at + 2) {
                Some('=' | '!') => out.push('('),
                _ => return None,
            },
            letter => out.push(letter),
        }
    }
    Some(out)
}

/// What comes behind a backslash. Python knows fewer letters there than our library.
fn escaped(letter: char) -> Option<char> {
    let known = "AbBdDsSwWafnrtuUvx";
    match letter {
        'Z' => Some('z'),
        letter if letter.is_ascii_alphabetic() && !known.contains(letter) => None,
        letter => Some(letter),
    }
}

/// A class from behind its bracket; returns where it ends. Classes in classes and operations on
/// them are unknown to Python.
fn class(letters: &[char], mut at: usize, out: &mut String) -> Option<usize> {
    out.push('[');
    if letters.get(at) == Some(&'^') {
        out.push('^');
        at += 1;
    }
    let first = at;
    loop {
        let letter = *letters.get(at)?;
        at += 1;
        match letter {
            ']' if at - 1 > first => {
                out.push(']');
                return Some(at);
            }
            ']' | '[' | '&' | '~' => {
                out.push('\\');
                out.push(letter);
            }
            '-' if letters.get(at) == Some(&'-') => return None,
            '\\' => {
                out.push('\\');
                let letter = *letters.get(at)?;
                // Here it is the letter that goes back, not the edge of a word.
                if letter == 'b' {
                    out.push_str("x08");
                } else {
                    out.push(escaped(letter)?);
                }
                at += 1;
            }
            letter => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_takes_for_no_expression_is_searched_as_text() {
        for (pattern, text) in
            [("fee(", "a FEE( here"), (r"\p{L}", r"a \p{L} here"), ("(?<x>a)", "(?<X>a)")]
        {
            assert!(expression(pattern).unwrap().is_match(text).unwrap(), "{pattern}");
        }
        assert!(!expression(r"\p{L}").unwrap().is_match("a").unwrap());
    }

    #[test]
    fn matches_are_counted_as_python_counts_them() {
        for (pattern, text, times) in [
            ("fee", "Fee, fee", 2),
            (".*", "ab\ncd", 4),
            ("x*", "axb", 4),
            ("$", "ab\n", 2),
            ("[[a]", "[a", 2),
            ("a{,2}b", "aaab", 1),
            ("[a&&b]", "a&b", 3),
        ] {
            assert_eq!(count(&expression(pattern).unwrap(), text), times, "{pattern}");
        }
    }
}
