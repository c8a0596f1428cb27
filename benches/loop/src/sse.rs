//! The least of a server-sent event parser: `data:` lines, one per event, as chat servers send them.

/// Puts lines together from whatever pieces the network delivers.
#[derive(Debug, Default)]
pub(crate) struct Events {
    buffer: Vec<u8>,
    read: usize,
}

impl Events {
    /// Take in the next piece.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.read);
        self.read = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The data of the next complete event.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        loop {
            let rest = self.buffer.get(self.read..)?;
            let length = memchr::memchr(b'\n', rest)?;
            let start = self.read;
            self.read += length + 1;
            if rest.starts_with(b"data: ") {
                return self.buffer.get(start + 6..start + length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_from_single_bytes() {
        let mut events = Events::default();
        let mut seen = Vec::new();
        for byte in b"data: one\n\ndata: two\n\ndata: [DONE]\n\n" {
            events.feed(&[*byte]);
            while let Some(data) = events.next() {
                seen.push(String::from_utf8(data.to_vec()).unwrap());
            }
        }
        assert_eq!(seen, ["one", "two", "[DONE]"]);
    }
}
