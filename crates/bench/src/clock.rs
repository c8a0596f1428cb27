//! Times as the reference writes them, ids, and the seeds of trials.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, as `2026-03-14T08:06:08.650936` (UTC).
pub fn now() -> String {
    at(SystemTime::now())
}

/// A point in time.
pub fn at(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_micros()
    )
}

/// The date that lies this many days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day is their last.
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// A new id: a random UUID.
pub fn random_id() -> String {
    let bits = fastrand::u128(..) & !(0xf << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

/// The seeds of trials, as the reference draws them from one seed.
pub fn trial_seeds(seed: u32, trials: usize) -> Vec<i64> {
    let mut chance = Mt19937::new(seed);
    (0..trials).map(|_| i64::from(chance.up_to(1_000_000))).collect()
}

/// Python's generator: the same seed must give the same trials as the reference.
struct Mt19937 {
    state: [u32; 624],
    at: usize,
}

impl Mt19937 {
    /// `random.seed(seed)` for a small seed.
    fn new(seed: u32) -> Self {
        let mut state = [0u32; 624];
        let mut previous = 19_650_218u32;
        for (at, word) in (0u32..).zip(state.iter_mut()) {
            if at > 0 {
                previous =
                    1_812_433_253u32.wrapping_mul(previous ^ (previous >> 30)).wrapping_add(at);
            }
            *word = previous;
        }
        let mut chance = Self { state, at: 624 };
        let mut at = 1;
        for _ in 0..624 {
            let previous = chance.word(at - 1);
            let mixed = (previous ^ (previous >> 30)).wrapping_mul(1_664_525);
            chance.set(at, (chance.word(at) ^ mixed).wrapping_add(seed));
            at = chance.next_place(at);
        }
        for _ in 0..623 {
            let previous = chance.word(at - 1);
            let mixed = (previous ^ (previous >> 30)).wrapping_mul(1_566_083_941);
            let place = u32::try_from(at).unwrap_or_default();
            chance.set(at, (chance.word(at) ^ mixed).wrapping_sub(place));
            at = chance.next_place(at);
        }
        chance.set(0, 0x8000_0000);
        chance
    }

    fn word(&self, at: usize) -> u32 {
        self.state.get(at).copied().unwrap_or_default()
    }

    fn set(&mut self, at: usize, word: u32) {
        if let Some(place) = self.state.get_mut(at) {
            *place = word;
        }
    }

    /// The next place of the initialisation, which wraps around by way of the first word.
    fn next_place(&mut self, at: usize) -> usize {
        if at + 1 < 624 {
            return at + 1;
        }
        self.set(0, self.word(623));
        1
    }

    fn next(&mut self) -> u32 {
        if self.at >= 624 {
            for at in 0..624 {
                let bits =
                    (self.word(at) & 0x8000_0000) | (self.word((at + 1) % 624) & 0x7fff_ffff);
                let twist = if bits & 1 == 1 { 0x9908_b0df } else { 0 };
                self.set(at, self.word((at + 397) % 624) ^ (bits >> 1) ^ twist);
            }
            self.at = 0;
        }
        let mut word = self.word(self.at);
        self.at += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// `random.randint(0, most)`.
    fn up_to(&mut self, most: u32) -> u32 {
        let bits = 32 - (most + 1).leading_zeros();
        loop {
            let drawn = self.next() >> (32 - bits);
            if drawn <= most {
                return drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn trials_get_the_references_seeds() {
        assert_eq!(trial_seeds(300, 4), [626_729, 373_753, 361_454, 1_567]);
        assert_eq!(trial_seeds(42, 4), [670_487, 116_739, 26_225, 777_572]);
    }

    #[test]
    fn times_are_written_in_full() {
        let time = UNIX_EPOCH + Duration::from_micros(1_709_210_096_000_123);
        assert_eq!(at(time), "2024-02-29T12:34:56.000123");
    }

    #[test]
    fn ids_are_random_uuids() {
        let id = random_id();
        assert_eq!(id.len(), 36);
        assert_eq!(id.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&id.as_bytes()[19]));
    }
}
