//! An incremental parser for server-sent events, over bytes as they arrive.
//!
//! Only the data of an event is of interest here. Where a whole event lies inside one read, which is
//! nearly always, its data is handed over without a copy.

use memchr::memchr2;

/// No event of any provider comes near this; a server that sends more is broken or hostile.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// An event grew past what any provider sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {} MiB", MAX_EVENT_BYTES >> 20)]
pub(crate) struct EventTooLarge;

/// The state between two reads.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// The data lines of an event whose end has not arrived, joined by line feeds.
    data: Vec<u8>,
    /// Whether the event has a data line yet; an empty one counts.
    has_data: bool,
    /// The last read ended in a carriage return: a line feed that follows belongs to it.
    after_cr: bool,
    /// Whether anything was read; only the very beginning may hold a byte order mark.
    started: bool,
}

impl SseParser {
    /// Take in the next bytes and hand over the data of each event that they complete.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(&[u8]),
    ) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (head, tail) = rest.split_at(end);
            rest = self.skip_line_end(tail);
            if self.line.is_empty() {
                let ends_event = matches!(rest.first(), Some(b'\n' | b'\r'));
                self.take_line(head, ends_event, &mut on_event);
            } else {
                self.line.extend_from_slice(head);
                let whole = std::mem::take(&mut self.line);
                self.take_line(&whole, false, &mut on_event);
            }
        }
        self.line.extend_from_slice(rest);
        if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
            return Err(EventTooLarge);
        }
        Ok(())
    }

    /// The stream ended. An event that only lacks its final line ends is handed over, because some
    /// servers leave them out; whether it is whole is for the reader to find out.
    pub(crate) fn finish(&mut self, mut on_event: impl FnMut(&[u8])) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, false, &mut on_event);
        }
        self.end_event(&mut on_event);
    }

    /// Step over `\n`, `\r\n` or `\r`. A `\r` at the very end leaves a mark for the next read.
    fn skip_line_end<'a>(&mut self, tail: &'a [u8]) -> &'a [u8] {
        match tail {
            [b'\r', b'\n', rest @ ..] => rest,
            [b'\r'] => {
                self.after_cr = true;
                &[]
            }
            [_, rest @ ..] => rest,
            [] => tail,
        }
    }

    /// Take in a line without its end. `ends_event` says that an empty line is known to follow, so
    /// that the data need not be kept until it is met.
    fn take_line(&mut self, line: &[u8], ends_event: bool, on_event: &mut impl FnMut(&[u8])) {
        let line = if self.started {
            line
        } else {
            self.started = true;
            line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
        };
        if line.is_empty() {
            self.end_event(on_event);
            return;
        }
        // Comments begin with a colon, so they have no field of this name either.
        let Some(value) = line.strip_prefix(b"data") else {
            return;
        };
        let value = match value {
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            [] => value,
            _ => return,
        };
        if ends_event && !self.has_data {
            on_event(value);
            return;
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
    }

    fn end_event(&mut self, on_event: &mut impl FnMut(&[u8])) {
        if std::mem::take(&mut self.has_data) {
            on_event(&self.data);
            self.data.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parse a text that arrives in the given pieces.
    fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let mut keep = |data: &[u8]| events.push(String::from_utf8_lossy(data).into_owned());
        for piece in pieces {
            parser.feed(piece, &mut keep).unwrap();
        }
        parser.finish(&mut keep);
        events
    }

    /// Parse a text whole, then cut at every single byte, and see that it is always the same.
    fn parse_everywhere(text: &str) -> Vec<String> {
        let bytes = text.as_bytes();
        let whole = parse([bytes]);
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(parse([head, tail]), whole, "cut after byte {cut} of {text:?}");
        }
        assert_eq!(parse(bytes.chunks(1)), whole, "byte by byte: {text:?}");
        whole
    }

    #[test]
    fn events_are_the_same_wherever_the_reads_are_cut() {
        let text = "data: {\"t\":\"gr\u{fc}\u{df} \u{1f600}\\u00fc\\n\"}\n\ndata: [DONE]\n\n";
        assert_eq!(
            parse_everywhere(text),
            ["{\"t\":\"gr\u{fc}\u{df} \u{1f600}\\u00fc\\n\"}", "[DONE]"]
        );
    }

    #[test]
    fn all_three_line_ends_are_understood() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("data: a{end}{end}data: b{end}data: c{end}{end}");
            assert_eq!(parse_everywhere(&text), ["a", "b\nc"], "{end:?}");
        }
    }

    #[test]
    fn comments_and_other_fields_are_passed_over() {
        let text = ": ping\n\nevent: delta\nid: 7\nretry: 10\ndata: x\n\n:\n\ndatabase: no\n\n";
        assert_eq!(parse_everywhere(text), ["x"]);
    }

    #[test]
    fn only_one_space_after_the_colon_belongs_to_the_format() {
        assert_eq!(parse_everywhere("data:a\n\ndata:  b\n\n"), ["a", " b"]);
    }

    #[test]
    fn an_empty_data_line_is_an_event_and_an_empty_event_is_not() {
        assert_eq!(parse_everywhere("data\n\n\n\ndata:\n\n"), ["", ""]);
    }

    #[test]
    fn a_missing_final_newline_loses_nothing() {
        assert_eq!(parse_everywhere("data: a\n\ndata: [DONE]"), ["a", "[DONE]"]);
        assert_eq!(parse_everywhere("data: a\n"), ["a"]);
    }

    #[test]
    fn a_byte_order_mark_at_the_beginning_is_passed_over() {
        assert_eq!(parse_everywhere("\u{feff}data: a\n\n"), ["a"]);
    }

    #[test]
    fn an_event_without_end_is_an_error_and_not_a_full_memory() {
        let mut parser = SseParser::default();
        let block = vec![b'x'; 1 << 20];
        let result = (0..32).try_for_each(|_| parser.feed(&block, |_| {}));
        assert_eq!(result, Err(EventTooLarge));
    }

    /// A slow parser that reads the specification literally, to compare with.
    fn reference(text: &str) -> Vec<String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut events = Vec::new();
        let mut data: Vec<&str> = Vec::new();
        for line in text.split('\n') {
            if line.is_empty() {
                if !data.is_empty() {
                    events.push(std::mem::take(&mut data).join("\n"));
                }
            } else if line == "data" {
                data.push("");
            } else if let Some(value) = line.strip_prefix("data:") {
                data.push(value.strip_prefix(' ').unwrap_or(value));
            }
        }
        if !data.is_empty() {
            events.push(data.join("\n"));
        }
        events
    }

    proptest! {
        #[test]
        fn any_text_in_any_pieces_parses_as_the_specification_says(
            tokens in prop::collection::vec(
                prop_oneof![
                    Just("data:"), Just("data: "), Just("data"), Just("event: x"), Just(":"),
                    Just("\n"), Just("\n\n"), Just("\r\n"), Just("\r"), Just("\u{fc}\u{1f600}"),
                    Just("{\"a\":\"\\n\"}"), Just(" "), Just("[DONE]"), Just("\u{feff}"),
                ],
                0..40,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let text = tokens.concat();
            let bytes = text.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(parse(pieces), reference(&text));
        }
    }
}
