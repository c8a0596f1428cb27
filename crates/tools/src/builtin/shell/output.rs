//! What a command printed, whole up to a bound; beyond it, the beginning and the end.

use std::collections::VecDeque;

pub(super) struct Output {
    half: usize,
    beginning: Vec<u8>,
    end: VecDeque<u8>,
    left_out: u64,
}

impl Output {
    pub(super) fn new(most: usize) -> Self {
        Self { half: most.div_ceil(2), beginning: Vec::new(), end: VecDeque::new(), left_out: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.half - self.beginning.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.beginning.extend(first);
        self.end.extend(rest);
        let over = self.end.len().saturating_sub(self.half);
        self.end.drain(..over);
        self.left_out += over as u64;
    }

    pub(super) fn text(&self) -> String {
        let (a, b) = self.end.as_slices();
        if self.left_out == 0 {
            return String::from_utf8_lossy(&[&self.beginning, a, b].concat()).into_owned();
        }
        format!(
            "{}\n[{} bytes of output are left out here: more than is kept]\n{}",
            String::from_utf8_lossy(&self.beginning),
            self.left_out,
            String::from_utf8_lossy(&[a, b].concat()),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_too_much_the_middle_is_left_out() {
        let mut output = Output::new(10);
        for piece in ["01234", "56789", "abcde", "fghij"] {
            output.push(piece.as_bytes());
        }
        assert_eq!(
            output.text(),
            "01234\n[10 bytes of output are left out here: more than is kept]\nfghij"
        );
    }

    proptest! {
        #[test]
        fn up_to_the_bound_nothing_is_lost(pieces in prop::collection::vec("[a-zü]{0,9}", 0..12)) {
            let whole = pieces.concat();
            let mut output = Output::new(whole.len());
            for piece in &pieces {
                output.push(piece.as_bytes());
            }
            prop_assert_eq!(output.text(), whole);
        }
    }
}
