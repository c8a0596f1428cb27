//! What the operating system knows about this process.

use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::{
    resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit},
    time::TimeVal,
};

/// CPU and memory of this process so far, all threads together.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Time on a CPU, in user and in system mode.
    pub cpu: Duration,
    /// The most memory that was ever resident.
    pub peak_bytes: u64,
}

impl Usage {
    /// As of now.
    pub fn now() -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF).context("getrusage")?;
        // Linux counts kilobytes here, Apple's systems bytes.
        let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
        Ok(Self {
            cpu: duration(usage.user_time()) + duration(usage.system_time()),
            peak_bytes: u64::try_from(usage.max_rss()).unwrap_or(0) * unit,
        })
    }
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// Allow this process, and those it starts, as many open files as the system permits. Says how
/// many that is.
pub fn raise_open_files() -> Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("reading the open-file limit")?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("raising the open-file limit")?;
    }
    Ok(hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_cpu_time_and_the_peak() {
        let before = Usage::now().unwrap();
        let block: Vec<u64> = (0..4_000_000u64).map(|n| n.wrapping_mul(n)).collect();
        let sum = block.iter().fold(0u64, |sum, n| sum.wrapping_add(*n));
        let after = Usage::now().unwrap();
        assert_ne!(sum, 0);
        assert!(after.cpu > before.cpu);
        assert!(after.peak_bytes >= 32_000_000);
    }
}
