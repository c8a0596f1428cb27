//! JSON as Python reads it, with Python's words for what is wrong with it: those words are part of
//! tools' results.

use crate::{Dict, Failure, Value, python::type_name, raise};

/// How whole numbers are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// As whole numbers.
    AsWritten,
    /// As floats, so that `33` and `33.0` are the same.
    AsFloats,
}

/// Deeper texts are refused.
const DEEPEST: usize = 200;

/// `json.loads(value)`, where the error of a text that is no JSON is for the caller.
pub(super) fn loads(value: &Value, numbers: Numbers) -> Result<Result<Value, String>, Failure> {
    match value {
        Value::Str(text) => Ok(parse(text, numbers)),
        other => raise(format!(
            "the JSON object must be str, bytes or bytearray, not {}",
            type_name(other)
        )),
    }
}

/// Reads a text.
pub(super) fn parse(text: &str, numbers: Numbers) -> Result<Value, String> {
    let mut reader = Reader { letters: text.chars().collect(), at: 0, numbers };
    reader.skip();
    let value = reader.value(0)?;
    reader.skip();
    if reader.peek().is_some() {
        return Err(reader.error("Extra data", reader.at));
    }
    Ok(value)
}

struct Reader {
    letters: Vec<char>,
    at: usize,
    numbers: Numbers,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn skip(&mut self) {
        while self.peek().is_some_and(|c| matches!(c, ' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn error(&self, what: &str, at: usize) -> String {
        let before = self.letters.get(..at).unwrap_or(&self.letters);
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        let column = before.iter().rev().take_while(|c| **c != '\n').count() + 1;
        format!("{what}: line {line} column {column} (char {at})")
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err(self.error("Nested too deeply", self.at));
        }
        match self.peek() {
            Some('"') => Ok(self.string()?.into()),
            Some('{') => self.object(depth),
            Some('[') => self.array(depth),
            _ => {
                for (word, value) in [
                    ("null", Value::None),
                    ("true", true.into()),
                    ("false", false.into()),
                    ("NaN", f64::NAN.into()),
                    ("Infinity", f64::INFINITY.into()),
                    ("-Infinity", f64::NEG_INFINITY.into()),
                ] {
                    if self.letters.iter().skip(self.at).take(word.len()).copied().eq(word.chars())
                    {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                self.number()
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        let mut dict = Dict::default();
        self.at += 1;
        self.skip();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(dict.into());
        }
        loop {
            if self.peek() != Some('"') {
                let what = "Expecting property name enclosed in double quotes";
                return Err(self.error(what, self.at));
            }
            let key = self.string()?;
            self.skip();
            if self.peek() != Some(':') {
                return Err(self.error("Expecting ':' delimiter", self.at));
            }
            self.at += 1;
            self.skip();
            dict.insert(key.into(), self.value(depth + 1)?);
            self.skip();
            match self.peek() {
                Some('}') => break,
                Some(',') => self.at += 1,
                _ => return Err(self.error("Expecting ',' delimiter", self.at)),
            }
            self.skip();
        }
        self.at += 1;
        Ok(dict.into())
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(items.into());
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip();
            match self.peek() {
                Some(']') => break,
                Some(',') => self.at += 1,
                _ => return Err(self.error("Expecting ',' delimiter", self.at)),
            }
            self.skip();
        }
        self.at += 1;
        Ok(items.into())
    }

    fn string(&mut self) -> Result<String, String> {
        let begin = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            let Some(letter) = self.peek() else {
                return Err(self.error("Unterminated string starting at", begin));
            };
            self.at += 1;
            match letter {
                '"' => return Ok(text),
                '\\' => text.push(self.escape(begin)?),
                letter if (letter as u32) < 0x20 => {
                    return Err(self.error("Invalid control character at", self.at - 1));
                }
                letter => text.push(letter),
            }
        }
    }

    fn escape(&mut self, begin: usize) -> Result<char, String> {
        let Some(letter) = self.peek() else {
            return Err(self.error("Unterminated string starting at", begin));
        };
        self.at += 1;
        Ok(match letter {
            '"' | '\\' | '/' => letter,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let code = self.code()?;
                let follows = [self.peek(), self.letters.get(self.at + 1).copied()];
                if (0xd800..0xdc00).contains(&code) && follows == [Some('\\'), Some('u')] {
                    let before = self.at;
                    self.at += 2;
                    let low = self.code()?;
                    if (0xdc00..0xe000).contains(&low) {
                        let code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
                    }
                    self.at = before;
                }
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            _ => return Err(self.error("Invalid \\escape", self.at - 2)),
        })
    }

    fn code(&mut self) -> Result<u32, String> {
        let digits: String = self.letters.iter().skip(self.at).take(4).collect();
        let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
        let code = code.ok_or_else(|| self.error("Invalid \\uXXXX escape", self.at))?;
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, String> {
        let begin = self.at;
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while reader.peek().is_some_and(|c| c.is_ascii_digit()) {
                reader.at += 1;
            }
            reader.at > from
        };
        if self.peek() == Some('-') {
            self.at += 1;
        }
        let whole = if self.peek() == Some('0') {
            self.at += 1;
            true
        } else {
            digits(self)
        };
        if !whole {
            self.at = begin;
            return Err(self.error("Expecting value", begin));
        }
        let mut is_whole = true;
        let end = self.at;
        if self.peek() == Some('.') {
            self.at += 1;
            if digits(self) {
                is_whole = false;
            } else {
                self.at = end;
            }
        }
        let end = self.at;
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            if digits(self) {
                is_whole = false;
            } else {
                self.at = end;
            }
        }
        let text: String = self.letters.get(begin..self.at).unwrap_or_default().iter().collect();
        if is_whole
            && self.numbers == Numbers::AsWritten
            && let Ok(number) = text.parse::<i64>()
        {
            return Ok(number.into());
        }
        Ok(text.parse::<f64>().unwrap_or_default().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_in_pythons_words() {
        for (text, error) in [
            ("nonexistent_x", "Expecting value: line 1 column 1 (char 0)"),
            ("{\"a\": 1} x", "Extra data: line 1 column 10 (char 9)"),
            (
                "{'a': 1}",
                "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
            ),
            ("{\"a\" 1}", "Expecting ':' delimiter: line 1 column 6 (char 5)"),
            ("[1,\n 2", "Expecting ',' delimiter: line 2 column 3 (char 6)"),
            ("\"ab", "Unterminated string starting at: line 1 column 1 (char 0)"),
            ("\"a\\x\"", "Invalid \\escape: line 1 column 3 (char 2)"),
        ] {
            assert_eq!(parse(text, Numbers::AsWritten).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn numbers_are_whole_or_floats_as_asked() {
        assert!(parse("33", Numbers::AsWritten).unwrap().same(&33.into()));
        assert!(parse("33", Numbers::AsFloats).unwrap().same(&33.0.into()));
        let text = parse(r#"{"a": ["\u00e9\ud83d\ude00", -1.5e2]}"#, Numbers::AsFloats).unwrap();
        assert_eq!(text["a"][0], "é😀");
        assert!(text["a"][1].same(&(-150.0).into()));
    }
}
