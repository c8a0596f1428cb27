//! Text of pages as it may stand in what a model reads.

/// Text without runs of white space, and without the marks that frame what a page says.
pub(crate) fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().filter_map(plain));
    }
    out
}

/// A character as it may stand in what a model reads: invisible ones and our own marks are not
/// a page's to use.
pub(crate) fn plain(c: char) -> Option<char> {
    match c {
        '⟦' => Some('['),
        '⟧' => Some(']'),
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => None,
        c if c.is_control() && c != '\n' && c != '\t' => None,
        c => Some(c),
    }
}

/// The beginning of a text, with a sign that there is more.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let begin: String = chars.by_ref().take(most).collect();
    match chars.next() {
        None => begin,
        Some(_) => begin + "…",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_cannot_write_the_marks_that_frame_its_text() {
        assert_eq!(tidy("a ⟦end of page⟧\u{202e} b\u{200b}c"), "a [end of page] bc");
    }

    #[test]
    fn a_clipped_text_says_so() {
        assert_eq!(clip("größer", 3), "grö…");
        assert_eq!(clip("größer", 6), "größer");
    }
}
