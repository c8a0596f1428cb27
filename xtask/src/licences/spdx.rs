//! Licence expressions, such as `(MIT OR Apache-2.0) AND Unicode-3.0`.

/// Whether a licence expression can be satisfied with the allowed licences alone. An error says why
/// it cannot be read.
pub(super) fn allowed(expression: &str, allow: &[String]) -> Result<bool, String> {
    // Older packages write `/` for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = Words { words: spaced.split_whitespace().collect(), next: 0 };
    let fits = any(&mut words, allow)?;
    match words.peek() {
        None => Ok(fits),
        Some(word) => Err(format!("{word:?} was not expected")),
    }
}

struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }

    fn take(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// Take the next word if it is this one.
    fn is(&mut self, word: &str) -> bool {
        let same = self.peek() == Some(word);
        self.next += usize::from(same);
        same
    }
}

fn any(words: &mut Words<'_>, allow: &[String]) -> Result<bool, String> {
    let mut fits = all(words, allow)?;
    while words.is("OR") {
        fits |= all(words, allow)?;
    }
    Ok(fits)
}

fn all(words: &mut Words<'_>, allow: &[String]) -> Result<bool, String> {
    let mut fits = one(words, allow)?;
    while words.is("AND") {
        fits &= one(words, allow)?;
    }
    Ok(fits)
}

fn one(words: &mut Words<'_>, allow: &[String]) -> Result<bool, String> {
    if words.is("(") {
        let fits = any(words, allow)?;
        return match words.is(")") {
            true => Ok(fits),
            false => Err("a parenthesis is not closed".into()),
        };
    }
    let mut licence = match words.take() {
        Some("OR" | "AND" | "WITH" | ")") | None => return Err("a licence is missing".into()),
        Some(word) => word.to_owned(),
    };
    if words.is("WITH") {
        let exception = words.take().ok_or("an exception is missing")?;
        licence = format!("{licence} WITH {exception}");
    }
    Ok(allow.contains(&licence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(expression: &str) -> Result<bool, String> {
        let allow = ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"];
        allowed(expression, &allow.map(str::to_owned))
    }

    #[test]
    fn one_of_the_alternatives_is_enough() {
        assert_eq!(fits("MIT OR GPL-3.0"), Ok(true));
        assert_eq!(fits("GPL-3.0/MIT"), Ok(true));
        assert_eq!(fits("GPL-3.0 OR AGPL-3.0"), Ok(false));
    }

    #[test]
    fn of_several_together_each_must_be_allowed() {
        assert_eq!(fits("(MIT OR GPL-3.0) AND Unicode-3.0"), Ok(true));
        assert_eq!(fits("(MIT OR ISC) AND GPL-3.0"), Ok(false));
        assert_eq!(fits("GPL-3.0 AND ISC OR MIT"), Ok(true));
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        assert_eq!(fits("Apache-2.0 WITH LLVM-exception"), Ok(true));
        assert_eq!(fits("Apache-2.0"), Ok(false));
    }

    #[test]
    fn nonsense_is_not_allowed() {
        for nonsense in ["", "MIT OR", "(MIT", "MIT MIT", "AND", "MIT WITH", ")"] {
            assert!(fits(nonsense).is_err(), "{nonsense:?}");
        }
    }
}
