//! What holds an answer to its form, to the end: half a call, or half a JSON text, is no answer.
//!
//! Before a token is written, a way from there to the end of the form is looked for. A token after
//! which no way fits into the room that is left is not written; the way that was known before it is
//! gone instead. So an answer that can end within its limit does end, with nothing but what the
//! schema allows. Where the limit is too small for that from the start, the answer is cut, and the
//! reason why it stopped says so.

use std::{fmt, sync::Arc};

use duologue_core::{ErrorClass, ModelError};
use llguidance::{Matcher, toktrie::SimpleVob};

use crate::ending::Endings;

/// With more room than this nothing is looked for: it takes time, and the end is far.
const FAR: usize = 512;

/// The most room to spare when texts and lists begin to be closed, so that what the model has yet
/// to choose is its own choice.
const SPARE: usize = 8;

/// How many tokens are written before a way is looked for again where none was found.
const PAUSE: usize = 16;

/// Holds one answer to its form.
pub(crate) struct Constraint {
    matcher: Matcher,
    endings: Arc<Endings>,
    /// A way to the end that fits into the room that is left, once it was looked for.
    way: Option<Vec<u32>>,
    /// With at most so much room left, ways are looked for.
    near: usize,
    /// With so much room left beyond the way, closing begins.
    spare: usize,
    /// The room at which a way is looked for when none is known.
    again: usize,
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constraint").field("way", &self.way).finish_non_exhaustive()
    }
}

impl Constraint {
    pub(crate) fn new(matcher: Matcher, endings: Arc<Endings>) -> Self {
        Self { matcher, endings, way: None, near: FAR, spare: 0, again: FAR }
    }

    /// What the form forces from the start. `left` is how many tokens may be written.
    pub(crate) fn begin(&mut self, left: usize) -> Vec<u32> {
        let forced = self.matcher.consume_ff_tokens();
        let left = left.saturating_sub(forced.len());
        self.way = self.endings.way(&self.matcher, left.min(8 * FAR));
        if let Some(way) = &self.way {
            self.near = FAR.max(4 * way.len());
            self.spare = SPARE.min((left - way.len()) / 4);
        }
        self.again = left.saturating_sub(PAUSE).min(self.near);
        forced
    }

    /// The tokens that may come next.
    pub(crate) fn allowed(&mut self, left: usize) -> Result<SimpleVob, ModelError> {
        let mut mask = self.matcher.compute_mask_or_eos().map_err(broken)?;
        if left > self.near {
            return Ok(mask);
        }
        if self.way.is_none() && left <= self.again {
            self.way = self.endings.way(&self.matcher, left);
            self.again = left.saturating_sub(PAUSE);
        }
        if let Some(way) = &self.way
            && !way.is_empty()
            && left <= way.len() + self.spare
        {
            self.endings.keep_closing(&mut mask);
        }
        Ok(mask)
    }

    /// Take a token that was chosen among the allowed ones. Returns what is to be written: it and
    /// what then is forced, or the next step to the end, if after it no end could be reached.
    pub(crate) fn take(&mut self, token: u32, left: usize) -> Result<Vec<u32>, ModelError> {
        let known = self.way.take().filter(|way| left <= self.near && way.len() <= left);
        let Some(known) = known else {
            return advance(&mut self.matcher, token);
        };
        let mut after = self.matcher.clone();
        let tokens = advance(&mut after, token)?;
        let room = left.checked_sub(tokens.len());
        if let Some(way) = room.and_then(|room| self.endings.way(&after, room)) {
            self.matcher = after;
            self.way = Some(way);
            return Ok(tokens);
        }
        let Some(step) = known.first() else {
            // The form may end here, and what was chosen would go on for too long.
            return Ok(Vec::new());
        };
        let tokens = advance(&mut self.matcher, *step)?;
        self.way = match known.strip_prefix(tokens.as_slice()) {
            Some(rest) => Some(rest.to_vec()),
            None => self.endings.way(&self.matcher, left.saturating_sub(tokens.len())),
        };
        Ok(tokens)
    }

    /// Whether nothing more may be written.
    pub(crate) fn is_over(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// Whether the answer is whole as it is.
    pub(crate) fn is_whole(&mut self) -> bool {
        self.matcher.is_stopped() || self.matcher.is_accepting().unwrap_or(false)
    }
}

/// Take a token and what it forces.
fn advance(matcher: &mut Matcher, token: u32) -> Result<Vec<u32>, ModelError> {
    matcher.consume_token(token).map_err(broken)?;
    let mut tokens = vec![token];
    tokens.extend(matcher.consume_ff_tokens());
    Ok(tokens)
}

fn broken(error: impl fmt::Display) -> ModelError {
    ModelError::new(
        ErrorClass::Malformed,
        format!("the answer's form could not be enforced: {error}"),
    )
}
