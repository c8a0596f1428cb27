//! Reading server-sent events.

use a2a::A2AError;
use futures::{Stream, StreamExt, stream::BoxStream};

/// The most bytes of one event.
const LARGEST: usize = 16 * 1024 * 1024;

/// The data of each event of a body.
pub(super) fn events<E: std::fmt::Display + Send + 'static>(
    body: impl Stream<Item = Result<bytes::Bytes, E>> + Send + 'static,
) -> BoxStream<'static, Result<String, A2AError>> {
    let state = (body.boxed(), Parser::default(), false);
    futures::stream::unfold(state, |(mut body, mut parser, mut is_over)| async move {
        loop {
            if let Some(event) = parser.next() {
                return Some((Ok(event), (body, parser, is_over)));
            }
            if is_over {
                return None;
            }
            match body.next().await {
                None => {
                    is_over = true;
                    parser.end();
                }
                Some(Err(error)) => {
                    let error = A2AError::internal(format!("the stream broke: {error}"));
                    return Some((Err(error), (body, Parser::default(), true)));
                }
                Some(Ok(piece)) => {
                    if !parser.push(&piece) {
                        let error = A2AError::internal("an event of the stream is too large");
                        return Some((Err(error), (body, Parser::default(), true)));
                    }
                }
            }
        }
    })
    .boxed()
}

/// Takes bytes and gives the data of events, as the standard has it.
#[derive(Debug, Default)]
struct Parser {
    /// Bytes of a line that has no end yet.
    line: Vec<u8>,
    data: String,
    has_data: bool,
    /// A line feed after a carriage return belongs to it.
    after_return: bool,
    ready: std::collections::VecDeque<String>,
}

impl Parser {
    /// Take in some bytes; false when an event grows beyond all measure.
    fn push(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            match byte {
                b'\n' if self.after_return => {}
                b'\n' | b'\r' => self.line_ended(),
                other => self.line.push(*other),
            }
            self.after_return = *byte == b'\r';
        }
        self.line.len() + self.data.len() <= LARGEST
    }

    fn next(&mut self) -> Option<String> {
        self.ready.pop_front()
    }

    /// The body has ended: what is whole counts, although no empty line follows.
    fn end(&mut self) {
        self.line_ended();
        self.dispatch();
    }

    fn line_ended(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            self.dispatch();
            return;
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_start_matches('\u{feff}');
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            if self.has_data {
                self.data.push('\n');
            }
            self.data.push_str(value.strip_prefix(' ').unwrap_or(value));
            self.has_data = true;
        }
    }

    fn dispatch(&mut self) {
        if std::mem::take(&mut self.has_data) {
            self.ready.push_back(std::mem::take(&mut self.data));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<String> {
        let mut parser = Parser::default();
        for piece in pieces {
            assert!(parser.push(piece));
        }
        parser.end();
        std::iter::from_fn(|| parser.next()).collect()
    }

    #[test]
    fn events_are_read_however_their_lines_end() {
        let text = b":hello\r\nid: 1\r\ndata: a\r\ndata:b\r\n\r\n: ping\n\ndata: c\n\ndata: d";
        assert_eq!(all(&[text]), ["a\nb", "c", "d"]);
    }

    proptest! {
        #[test]
        fn how_bytes_are_cut_makes_no_difference(text in "([a-z: ]{0,6}(\r\n|\n|\r|data: ?)){0,20}",
            cut in 0usize..100) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            prop_assert_eq!(all(&[bytes]), all(&[&bytes[..cut], &bytes[cut..]]));
        }

        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            all(&[&bytes]);
        }
    }
}
