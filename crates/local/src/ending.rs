//! Ways to the end of a form: which tokens bring half an answer to its close, whatever the schema.
//!
//! Only the matcher knows what the schema allows, so a way is found by trying it out on a copy of
//! it. What is preferred at each point makes ways short: close what is open, add nothing that need
//! not be there.

use std::{cmp::Reverse, collections::HashMap};

use llguidance::{Matcher, toktrie::SimpleVob};

use crate::tokenizer::{TokenKind, Tokenizer};

/// The tokens of a vocabulary by what they do to JSON, the longest first.
#[derive(Debug)]
pub(crate) struct Endings {
    /// `"`, and what may follow it at once: `"}`, `"]}`.
    quotes: Vec<u32>,
    /// `]`, `}`, `}]`.
    brackets: Vec<u32>,
    /// `,` and what may follow it.
    commas: Vec<u32>,
    /// Letters and digits: literals, numbers, the choices of an enumeration.
    words: Vec<u32>,
    /// All other tokens that open nothing.
    others: Vec<u32>,
    /// `{` and `[`.
    openers: Vec<u32>,
    /// Single characters, signs before digits before letters: patterns often wait for one of them.
    singles: Vec<u32>,
    /// How many tokens there are.
    vocabulary: usize,
}

/// Where in JSON a token comes, as far as can be told from how many may come there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a text, where most tokens may follow.
    Inside,
    /// Between texts, where few may.
    Outside,
}

impl Endings {
    /// Sort a vocabulary, of which the network scores `width` tokens.
    pub(crate) fn new(tokenizer: &Tokenizer, width: usize) -> Self {
        let vocabulary = tokenizer.len().min(width);
        let mut endings = Self {
            quotes: Vec::new(),
            brackets: Vec::new(),
            commas: Vec::new(),
            words: Vec::new(),
            others: Vec::new(),
            openers: Vec::new(),
            singles: Vec::new(),
            vocabulary,
        };
        for token in (0..).take(vocabulary) {
            let bytes = tokenizer.bytes(token);
            let (Some(first), TokenKind::Text) = (bytes.first(), tokenizer.kind(token)) else {
                continue;
            };
            let closes = bytes.iter().all(|byte| b"\"]}".contains(byte));
            let of_its_kind = match first {
                b'"' if closes => &mut endings.quotes,
                b']' | b'}' if closes => &mut endings.brackets,
                b',' => &mut endings.commas,
                b'{' | b'[' => &mut endings.openers,
                _ if bytes.iter().all(u8::is_ascii_alphanumeric) => &mut endings.words,
                _ => &mut endings.others,
            };
            of_its_kind.push(token);
            if bytes.len() == 1 && matches!(first, b' '..=b'~') {
                endings.singles.push(token);
            }
        }
        for tokens in [
            &mut endings.quotes,
            &mut endings.brackets,
            &mut endings.commas,
            &mut endings.words,
            &mut endings.others,
            &mut endings.openers,
        ] {
            tokens.sort_by_key(|token| Reverse(tokenizer.bytes(*token).len()));
        }
        endings.singles.sort_by_key(|token| {
            let byte = tokenizer.bytes(*token).first().copied().unwrap_or_default();
            (byte.is_ascii_alphabetic(), byte.is_ascii_digit(), byte)
        });
        endings
    }

    /// A way from where a matcher is to the end of its form, of at most so many tokens. Empty when
    /// it is there already; `None` when none was found.
    pub(crate) fn way(&self, matcher: &Matcher, most: usize) -> Option<Vec<u32>> {
        let mut matcher = matcher.clone();
        let mut way = Vec::new();
        let mut used = HashMap::new();
        while !(matcher.is_stopped() || matcher.is_accepting().ok()?) {
            let forced = matcher.consume_ff_tokens();
            if forced.is_empty() {
                let mask = matcher.compute_mask().ok()?;
                let token = self.next(&mask, &mut used)?;
                matcher.consume_token(token).ok()?;
                way.push(token);
            } else {
                way.extend(forced);
            }
            if way.len() > most {
                return None;
            }
        }
        (!matcher.is_error()).then_some(way)
    }

    /// Leave in a mask only what closes, if anything does.
    pub(crate) fn keep_closing(&self, mask: &mut SimpleVob) {
        let closing = match self.place(mask) {
            Place::Inside => &self.quotes,
            Place::Outside => &self.brackets,
        };
        let mut kept = SimpleVob::alloc(mask.len());
        for token in closing.iter().filter(|token| mask.is_allowed(**token)) {
            kept.allow_token(*token);
        }
        if !kept.is_zero() {
            *mask = kept;
        }
    }

    fn place(&self, mask: &SimpleVob) -> Place {
        if mask.num_set() * 8 > self.vocabulary { Place::Inside } else { Place::Outside }
    }

    /// The token to take of those in a mask. `used` counts what was taken for want of anything
    /// better: taking the same again and again might lead nowhere.
    fn next(&self, mask: &SimpleVob, used: &mut HashMap<u32, usize>) -> Option<u32> {
        let first = |tokens: &[u32]| tokens.iter().copied().find(|token| mask.is_allowed(*token));
        let sure = match self.place(mask) {
            Place::Inside => first(&self.quotes),
            Place::Outside => first(&self.brackets)
                .or_else(|| first(&self.commas))
                .or_else(|| first(&self.quotes)),
        };
        if sure.is_some() {
            return sure;
        }
        let rarest = |tokens: &[u32]| {
            let allowed = tokens.iter().copied().filter(|token| mask.is_allowed(*token));
            allowed.min_by_key(|token| used.get(token).copied().unwrap_or(0))
        };
        // Long tokens fill a text that must have some length, single characters find the one that a
        // pattern waits for.
        let steps: usize = used.values().sum();
        let taken = if steps.is_multiple_of(2) { None } else { rarest(&self.singles) };
        let taken = taken
            .or_else(|| rarest(&self.words))
            .or_else(|| rarest(&self.others))
            .or_else(|| rarest(&self.openers))?;
        *used.entry(taken).or_default() += 1;
        Some(taken)
    }
}
