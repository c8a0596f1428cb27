//! Whether a process grows.

use std::fs;

/// How much more the last quarter may take than the second, by share and by so much.
const SHARE: f64 = 1.2;
const SLACK_KIB: f64 = 10.0 * 1024.0;

/// What a process took over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// KiB, at even times.
    samples: Vec<u64>,
}

/// The medians that a verdict goes by, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Medians {
    /// Of the second quarter: the first is spent on warming up.
    pub(super) second: u64,
    pub(super) last: u64,
}

impl Memory {
    /// Look at a process now.
    pub(super) fn look(&mut self, process: u32) {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        self.samples.extend(kib);
    }

    /// The medians of the second and the last quarter, if there is enough to tell.
    pub(super) fn medians(&self) -> Option<Medians> {
        let quarter = self.samples.len() / 4;
        let part = |which: usize| self.samples.get(which * quarter..(which + 1) * quarter);
        Some(Medians { second: median(part(1)?)?, last: median(part(3)?)? })
    }
}

impl Medians {
    /// Whether memory stayed as it was.
    pub(super) fn are_flat(self) -> bool {
        self.last as f64 <= self.second as f64 * SHARE + SLACK_KIB
    }
}

fn median(samples: &[u64]) -> Option<u64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: impl Iterator<Item = u64>) -> Medians {
        Memory { samples: samples.collect() }.medians().unwrap()
    }

    #[test]
    fn what_stays_or_shrinks_is_flat() {
        assert!(of((0..100).map(|_| 60_000)).are_flat());
        assert!(of((0..100).map(|at| 60_000 - at)).are_flat());
    }

    #[test]
    fn a_high_start_does_not_hide_growth() {
        let start = (0..25).map(|_| 900_000);
        assert!(!of(start.chain((0..75).map(|at| 50_000 + 1_000 * at))).are_flat());
    }

    #[test]
    fn a_peak_is_no_growth() {
        let samples = (0..100).map(|at| if at == 90 { 900_000 } else { 60_000 });
        assert_eq!(of(samples), Medians { second: 60_000, last: 60_000 });
    }

    #[test]
    fn this_process_takes_some() {
        let mut memory = Memory::default();
        for _ in 0..4 {
            memory.look(std::process::id());
        }
        assert!(memory.medians().unwrap().last > 0);
    }
}
