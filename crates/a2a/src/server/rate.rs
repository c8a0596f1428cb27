//! How fast one caller may call.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use crate::Caller;

/// How many callers are remembered before those who are idle are forgotten.
const MOST_CALLERS: usize = 10_000;

/// A bucket for each caller, filled evenly and emptied by requests.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: f64,
    buckets: Mutex<HashMap<Caller, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rate {
    /// So many requests a second, and as many at once.
    pub(super) fn new(per_second: u32) -> Self {
        Self { per_second: f64::from(per_second.max(1)), buckets: Mutex::default() }
    }

    /// Whether a caller may call now.
    pub(super) fn allows(&self, caller: &Caller, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_CALLERS {
            // A bucket that is full again says nothing about its caller.
            buckets.retain(|_, bucket| self.filled(bucket, now) < self.per_second);
        }
        let full = Bucket { left: self.per_second, at: now };
        let bucket = buckets.entry(caller.clone()).or_insert(full);
        bucket.left = self.filled(bucket, now);
        bucket.at = now;
        if bucket.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        true
    }

    fn filled(&self, bucket: &Bucket, now: Instant) -> f64 {
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + since * self.per_second).min(self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_caller_who_is_too_fast_waits_and_others_do_not() {
        let rate = Rate::new(2);
        let now = Instant::now();
        let (ada, bob) = (Caller::anonymous(), Caller::named("bob"));
        assert!(rate.allows(&ada, now) && rate.allows(&ada, now));
        assert!(!rate.allows(&ada, now));
        assert!(rate.allows(&bob, now));
        assert!(rate.allows(&ada, now + Duration::from_millis(600)));
        assert!(!rate.allows(&ada, now + Duration::from_millis(700)));
    }
}
