//! Cutting a text into words before merging, as the vocabulary's makers did, and the way in which
//! byte vocabularies spell bytes as characters.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, HirKind};

/// A way to cut a text into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Splitter {
    /// Words with the character before them, digits alone.
    Qwen2,
    /// The same with up to three digits together.
    Llama3,
    /// Words with the space before them, digits likewise.
    Gpt2,
    /// As GPT-2, after every digit was set apart.
    SmolLm,
}

impl Splitter {
    /// The splitter of a name that files use.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "qwen2" => Self::Qwen2,
            "llama-bpe" | "llama3" | "llama-v3" => Self::Llama3,
            "gpt-2" | "default" => Self::Gpt2,
            "smollm" => Self::SmolLm,
            _ => return None,
        })
    }

    pub(super) fn takes_whole_words(self) -> bool {
        self == Self::Llama3
    }

    /// Give each word of a text to `each`, in order. The words joined are the text.
    pub(super) fn words(self, text: &str, each: &mut dyn FnMut(&str)) {
        match self {
            Self::Qwen2 => cut(text, |rest| modern_word(rest, 1), each),
            Self::Llama3 => cut(text, |rest| modern_word(rest, 3), each),
            Self::Gpt2 => cut(text, gpt2_word, each),
            Self::SmolLm => {
                let mut rest = text;
                while !rest.is_empty() {
                    let digit = rest.find(char::is_numeric).unwrap_or(rest.len());
                    let (plain, others) = rest.split_at(digit);
                    cut(plain, gpt2_word, each);
                    let len = others.chars().next().map_or(0, char::len_utf8);
                    let (digit, others) = others.split_at(len);
                    if !digit.is_empty() {
                        each(digit);
                    }
                    rest = others;
                }
            }
        }
    }
}

fn cut(text: &str, length: impl Fn(&str) -> usize, each: &mut dyn FnMut(&str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let (word, others) = rest.split_at_checked(length(rest)).unwrap_or((rest, ""));
        each(word);
        rest = others;
    }
}

/// The length of the first word, by the rules of Qwen 2 and Llama 3:
/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,n}| ?[^\s\p{L}\p{N}]+[\r\n]*|`
/// `\s*[\r\n]+|\s+(?!\S)|\s+`.
fn modern_word(text: &str, digits: usize) -> usize {
    if let Some(len) = contraction(&text.get(..4).unwrap_or(text).to_ascii_lowercase()) {
        return len;
    }
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return 0 };
    if is_letter(first) {
        return span(text, is_letter);
    }
    let after = chars.as_str();
    if !is_break(first) && !first.is_numeric() && after.starts_with(is_letter) {
        return first.len_utf8() + span(after, is_letter);
    }
    if first.is_numeric() {
        let end = text.char_indices().take(digits).take_while(|(_, char)| char.is_numeric());
        return end.last().map_or(0, |(at, char)| at + char.len_utf8());
    }
    let space = usize::from(first == ' ');
    let symbols = text.get(space..).map_or(0, |rest| span(rest, is_symbol));
    if symbols > 0 {
        let end = space + symbols;
        return end + text.get(end..).map_or(0, |rest| span(rest, is_break));
    }
    let run = text.get(..span(text, char::is_whitespace)).unwrap_or(text);
    if let Some(last_break) = run.rfind(is_break) {
        // A line break is one byte long.
        return last_break + 1;
    }
    spaces(text)
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
fn gpt2_word(text: &str) -> usize {
    if let Some(len) = contraction(text) {
        return len;
    }
    let space = usize::from(text.starts_with(' '));
    let rest = text.get(space..).unwrap_or_default();
    for kind in [is_letter, char::is_numeric, is_symbol] {
        let len = span(rest, kind);
        if len > 0 {
            return space + len;
        }
    }
    spaces(text)
}

/// The length of a run of white space, less its last character where a word follows that takes it.
fn spaces(text: &str) -> usize {
    let end = span(text, char::is_whitespace);
    let run = text.get(..end).unwrap_or(text);
    let last = run.chars().next_back().map_or(0, char::len_utf8);
    if end < text.len() && end > last {
        end - last
    } else {
        end.max(text.chars().next().map_or(0, char::len_utf8))
    }
}

fn contraction(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('\'')?;
    let tails = ["s", "t", "re", "ve", "m", "ll", "d"];
    let tail = tails.iter().find(|tail| rest.starts_with(*tail))?;
    Some(1 + tail.len())
}

fn span(text: &str, kind: fn(char) -> bool) -> usize {
    text.find(|char| !kind(char)).unwrap_or(text.len())
}

fn is_break(char: char) -> bool {
    matches!(char, '\r' | '\n')
}

fn is_symbol(char: char) -> bool {
    !char.is_whitespace() && !is_letter(char) && !char.is_numeric()
}

/// Whether a character is a letter as the vocabularies mean it (`\p{L}`), which is narrower than
/// [`char::is_alphabetic`].
fn is_letter(char: char) -> bool {
    if char.is_ascii() {
        return char.is_ascii_alphabetic();
    }
    static LETTERS: OnceLock<Vec<(char, char)>> = OnceLock::new();
    let letters = LETTERS.get_or_init(|| {
        let class = regex_syntax::parse(r"\p{L}").map(|hir| hir.into_kind());
        match class {
            Ok(HirKind::Class(Class::Unicode(class))) => {
                class.ranges().iter().map(|range| (range.start(), range.end())).collect()
            }
            _ => Vec::new(),
        }
    });
    let after = letters.partition_point(|(start, _)| *start <= char);
    after.checked_sub(1).and_then(|index| letters.get(index)).is_some_and(|(_, end)| char <= *end)
}

/// The character by which byte vocabularies spell a byte: itself where it can be seen, else one
/// from beyond Latin-1.
pub(super) fn spell(byte: u8) -> char {
    match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        0..=0x20 => char::from_u32(0x100 + u32::from(byte)).unwrap_or_default(),
        0x7f..=0xa0 => char::from_u32(0x121 + u32::from(byte) - 0x7f).unwrap_or_default(),
        0xad => '\u{143}',
    }
}

/// The bytes that a spelled token stands for.
pub(super) fn unspell(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        match u32::from(char) {
            0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff | 0x100..=0x120 => {
                bytes.push((u32::from(char) & 0xff) as u8);
            }
            code @ 0x121..=0x142 => bytes.push((code - 0x121 + 0x7f) as u8),
            0x143 => bytes.push(0xad),
            _ => bytes.extend(char.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(splitter: Splitter, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        splitter.words(text, &mut |word| words.push(word.to_owned()));
        assert_eq!(words.concat(), text);
        words
    }

    #[test]
    fn qwen_words_take_the_character_before_them() {
        assert_eq!(
            words(Splitter::Qwen2, "Don't  say 42,\n\n  \"hé\"  \t"),
            ["Don", "'t", " ", " say", " ", "4", "2", ",\n\n", " ", " \"", "hé", "\"", "  \t"]
        );
    }

    #[test]
    fn llama_words_take_three_digits_at_once() {
        assert_eq!(words(Splitter::Llama3, "x12345 y"), ["x", "123", "45", " y"]);
    }

    #[test]
    fn gpt_words_take_the_space_before_them() {
        assert_eq!(words(Splitter::Gpt2, "it's 12  ok!"), ["it", "'s", " 12", " ", " ok", "!"]);
        assert_eq!(words(Splitter::SmolLm, "a 12b"), ["a", " ", "1", "2", "b"]);
    }

    #[test]
    fn every_byte_is_spelled_by_a_character_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for byte in 0..=255 {
            assert!(seen.insert(spell(byte)));
            assert_eq!(unspell(&spell(byte).to_string()), [byte]);
        }
    }
}
