//! The text of a page: what a reader would read, with the addresses of links.
//!
//! It is a reader's view, not a browser's: no layout, no scripts. It goes through the page once,
//! so that no page is slow.

/// Elements whose content nobody reads.
const UNREAD: [&str; 8] =
    ["script", "style", "noscript", "template", "svg", "iframe", "textarea", "select"];
/// Elements that begin a new line.
const BLOCKS: [&str; 33] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "title",
    "tr",
    "ul",
];

/// What there is to read in a page.
pub(super) fn to_text(html: &str) -> String {
    let mut reader = Reader::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (text, tail) = rest.split_at(at);
        reader.text(text);
        rest = match markup(tail) {
            Some(Markup::Tag(tag, tail)) if tag.opens_one_of(&UNREAD) => skip_to_end(&tag, tail),
            Some(Markup::Tag(tag, tail)) => {
                reader.tag(&tag);
                tail
            }
            Some(Markup::Nothing(tail)) => tail,
            // A lone `<` is text.
            None => {
                reader.text("<");
                tail.get(1..).unwrap_or_default()
            }
        };
    }
    reader.text(rest);
    reader.finish()
}

/// What stands at a `<`.
enum Markup<'a> {
    Tag(Tag<'a>, &'a str),
    /// A comment or a declaration.
    Nothing(&'a str),
}

struct Tag<'a> {
    name: String,
    closes: bool,
    attributes: &'a str,
}

impl Tag<'_> {
    fn opens_one_of(&self, names: &[&str]) -> bool {
        !self.closes && names.contains(&self.name.as_str()) && !self.attributes.ends_with('/')
    }

    /// The value of an attribute.
    fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some((name, value, tail)) = next_attribute(rest) {
            if name.eq_ignore_ascii_case(wanted) {
                return Some(decode(value));
            }
            rest = tail;
        }
        None
    }
}

fn markup(text: &str) -> Option<Markup<'_>> {
    let inner = text.strip_prefix('<')?;
    if let Some(comment) = inner.strip_prefix("!--") {
        let end = comment.find("-->").map_or(comment.len(), |at| at + 3);
        return Some(Markup::Nothing(comment.get(end..).unwrap_or_default()));
    }
    if inner.starts_with(['!', '?']) {
        let end = inner.find('>').map_or(inner.len(), |at| at + 1);
        return Some(Markup::Nothing(inner.get(end..).unwrap_or_default()));
    }
    let (closes, inner) = match inner.strip_prefix('/') {
        Some(inner) => (true, inner),
        None => (false, inner),
    };
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let name_end = inner
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == ':'))
        .unwrap_or(inner.len());
    let (name, inner) = inner.split_at(name_end);
    let (attributes, tail) = inner.split_at(tag_end(inner));
    let tag = Tag { name: name.to_ascii_lowercase(), closes, attributes: attributes.trim() };
    Some(Markup::Tag(tag, tail.strip_prefix('>').unwrap_or(tail)))
}

/// Where a tag's `>` is; one inside quotes does not count.
fn tag_end(text: &str) -> usize {
    let mut quote = None;
    let mut after_equals = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return at,
            (None, '"' | '\'') if after_equals => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        after_equals = c == '=' || (after_equals && c.is_whitespace());
    }
    text.len()
}

/// The next attribute: its name, its value and what follows.
fn next_attribute(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '/' || c == '=');
    if text.is_empty() {
        return None;
    }
    let name_end =
        text.find(|c: char| c.is_whitespace() || c == '=' || c == '/').unwrap_or(text.len());
    let (name, rest) = text.split_at(name_end);
    let Some(value) = rest.trim_start().strip_prefix('=') else {
        return Some((name, "", rest));
    };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            return Some(match quoted.split_once(quote) {
                Some((value, rest)) => (name, value, rest),
                None => (name, quoted, ""),
            });
        }
    }
    let end = value.find(char::is_whitespace).unwrap_or(value.len());
    let (value, rest) = value.split_at(end);
    Some((name, value, rest))
}

/// What follows the closing tag of an element.
fn skip_to_end<'a>(tag: &Tag<'_>, text: &'a str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let tail = rest.get(at..).unwrap_or_default();
        let after = tail.get(2..).unwrap_or_default();
        let same =
            after.get(..tag.name.len()).is_some_and(|name| name.eq_ignore_ascii_case(&tag.name));
        if same {
            return after.find('>').and_then(|end| after.get(end + 1..)).unwrap_or_default();
        }
        rest = after;
    }
    ""
}

/// The text as it grows.
#[derive(Default)]
struct Reader {
    text: String,
    /// The address of the link that is open, and where its text began.
    link: Option<(String, usize)>,
    preformatted: bool,
    space_due: bool,
}

impl Reader {
    fn text(&mut self, raw: &str) {
        if raw.is_empty() {
            return;
        }
        let decoded = decode(raw);
        if self.preformatted {
            self.text.push_str(&decoded);
            return;
        }
        for (number, word) in decoded.split(|c: char| c.is_whitespace()).enumerate() {
            self.space_due |= number > 0;
            if word.is_empty() {
                continue;
            }
            if self.space_due && !self.text.is_empty() && !self.text.ends_with(['\n', ' ']) {
                self.text.push(' ');
            }
            self.space_due = false;
            self.text.push_str(word);
        }
    }

    fn tag(&mut self, tag: &Tag<'_>) {
        match (tag.name.as_str(), tag.closes) {
            ("a", false) => {
                self.close_link();
                self.link = tag.attribute("href").map(|address| {
                    if self.space_due && !self.text.is_empty() && !self.text.ends_with('\n') {
                        self.text.push(' ');
                        self.space_due = false;
                    }
                    (address, self.text.len())
                });
            }
            ("a", true) => self.close_link(),
            ("img", false) => {
                if let Some(description) = tag.attribute("alt").filter(|alt| !alt.trim().is_empty())
                {
                    self.text(&format!(" [image: {}] ", description.trim()));
                }
            }
            ("td" | "th", false) if !self.text.ends_with('\n') && !self.text.is_empty() => {
                self.text.push_str(" | ");
            }
            ("pre", closes) => {
                self.new_line();
                self.preformatted = !closes;
            }
            (name, closes) if BLOCKS.contains(&name) => {
                self.new_line();
                match (name, closes) {
                    ("li", false) => self.text.push_str("- "),
                    ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => {
                        let level = name.chars().nth(1).and_then(|c| c.to_digit(10)).unwrap_or(1);
                        self.text.push('\n');
                        self.text.extend((0..level).map(|_| '#'));
                        self.text.push(' ');
                    }
                    ("p" | "table" | "ul" | "ol" | "title", true) => self.text.push('\n'),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Put the address behind the text of a link, unless it says nothing to a reader.
    fn close_link(&mut self) {
        let Some((address, begin)) = self.link.take() else { return };
        let shown = self.text.get(begin..).unwrap_or_default().trim();
        let useful = !shown.is_empty()
            && shown != address
            && !address.is_empty()
            && !address.starts_with(['#'])
            && !address.to_ascii_lowercase().starts_with("javascript:")
            && !address.to_ascii_lowercase().starts_with("data:");
        if useful {
            self.text.push_str(&format!(" ({address})"));
        }
    }

    fn new_line(&mut self) {
        self.space_due = false;
        let trimmed = self.text.trim_end_matches(' ').len();
        self.text.truncate(trimmed);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// The text with at most one empty line in a row.
    fn finish(mut self) -> String {
        self.close_link();
        let mut result = String::with_capacity(self.text.len());
        let mut empty = 0;
        for line in self.text.lines().map(str::trim_end) {
            empty = if line.is_empty() { empty + 1 } else { 0 };
            if empty <= 1 {
                result.push_str(line);
                result.push('\n');
            }
        }
        result.trim().to_owned()
    }
}

/// Replace character references: `&amp;`, `&#8212;`, `&#x2014;`. Unknown ones stay.
fn decode(text: &str) -> String {
    /// The longest reference that is looked for.
    const LONGEST: usize = 12;
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, tail) = rest.split_at(at);
        result.push_str(before);
        let reference = tail
            .char_indices()
            .take(LONGEST)
            .find(|(_, c)| *c == ';')
            .and_then(|(end, _)| Some((character(tail.get(1..end)?)?, end + 1)));
        match reference {
            Some((decoded, length)) => {
                result.push_str(&decoded);
                rest = tail.get(length..).unwrap_or_default();
            }
            None => {
                result.push('&');
                rest = tail.get(1..).unwrap_or_default();
            }
        }
    }
    result.push_str(rest);
    result
}

fn character(reference: &str) -> Option<String> {
    if let Some(number) = reference.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).map(String::from);
    }
    let text = match reference {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        "nbsp" => " ",
        "ndash" => "–",
        "mdash" => "—",
        "hellip" => "…",
        "lsquo" => "‘",
        "rsquo" => "’",
        "ldquo" => "“",
        "rdquo" => "”",
        "laquo" => "«",
        "raquo" => "»",
        "bull" => "•",
        "middot" => "·",
        "copy" => "©",
        "reg" => "®",
        "trade" => "™",
        "euro" => "€",
        "pound" => "£",
        "deg" => "°",
        "times" => "×",
        "auml" => "ä",
        "ouml" => "ö",
        "uuml" => "ü",
        "Auml" => "Ä",
        "Ouml" => "Ö",
        "Uuml" => "Ü",
        "szlig" => "ß",
        "eacute" => "é",
        "egrave" => "è",
        "agrave" => "à",
        "ccedil" => "ç",
        "ntilde" => "ñ",
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_becomes_what_a_reader_would_read() {
        let page = r#"<!DOCTYPE html><html><head><title>The  Page</title>
            <style>p { color: red }</style><script>if (a < b) { alert("</p>") }</script></head>
            <body><!-- <p>hidden</p> --><h1>Hello &amp; welcome</h1>
            <p>Some <b>bold</b> text,<br>and a <a class=x href="/next?a=1&amp;b=2">link</a>.</p>
            <ul><li>one<li>two</ul>
            <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
            <pre>  kept
    as it is</pre><img src=x alt='A cat'><a href="javascript:void(0)">no</a></body></html>"#;
        assert_eq!(
            to_text(page),
            "The Page\n\n# Hello & welcome\nSome bold text,\nand a link (/next?a=1&b=2).\n\n- one\n\
             - two\n\na | b\n1 | 2\n\n  kept\n    as it is\n[image: A cat] no"
        );
    }

    #[test]
    fn broken_pages_lose_as_little_as_possible() {
        for (page, text) in [
            ("a < b and c > d", "a < b and c > d"),
            ("<p>open <b>never closed", "open never closed"),
            ("<script>no end", ""),
            ("before <!-- no end", "before"),
            ("<a href=x title=\"1 > 0\">y</a>", "y (x)"),
            ("1 &unknown; 2 &amp 3 &#xffffffff;", "1 &unknown; 2 &amp 3 &#xffffffff;"),
            ("&#8212;&#x20AC;", "—€"),
            ("<", "<"),
            ("", ""),
            ("x</", "x</"),
        ] {
            assert_eq!(to_text(page), text, "{page}");
        }
    }

    #[test]
    fn a_hostile_page_takes_no_long_time() {
        let begun = std::time::Instant::now();
        for piece in
            ["<", "<a ", "<a href='", "&", "&#", "</", "<script>", "<!--", "<pre><a href=x>"]
        {
            let _ = to_text(&piece.repeat(50_000));
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in "[<>/a-c!&;#x\"'= \n\u{e4}-]{0,60}") {
            let _ = to_text(&page);
        }
    }
}
