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
        Ok(Self {
            cpu: duration(usage.user_time()) + duration(usage.system_time()),
            peak_bytes: peak_bytes(&usage)?,
        })
    }
}

/// Linux carries `ru_maxrss` over from the process that started us, so that with a large parent
/// our own growth does not show at all. `VmHWM` is about our own memory alone.
#[cfg(target_os = "linux")]
fn peak_bytes(_: &nix::sys::resource::Usage) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("reading our status")?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.trim().strip_suffix(" kB"))
        .and_then(|value| value.parse::<u64>().ok())
        .context("the system does not say how much memory we used at most")?;
    Ok(kilobytes * 1024)
}

#[cfg(not(target_os = "linux"))]
fn peak_bytes(usage: &nix::sys::resource::Usage) -> Result<u64> {
    // Apple's systems count bytes here, the others kilobytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    Ok(u64::try_from(usage.max_rss()).unwrap_or(0) * unit)
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

    /// The variable that makes the test below say its own peak instead of testing.
    #[cfg(target_os = "linux")]
    const CHILD: &str = "BENCH_ARM_TEST_CHILD";

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_of_a_process_is_not_that_of_its_parent() {
        if std::env::var_os(CHILD).is_some() {
            println!("peak={}", Usage::now().unwrap().peak_bytes);
            return;
        }
        let block = vec![1u8; 200_000_000];
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["the_peak_of_a_process_is_not", "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(block.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 200_000_000);
        let text = String::from_utf8(output.stdout).unwrap();
        let peak = text.split("peak=").nth(1).unwrap().split_whitespace().next().unwrap();
        assert!(peak.parse::<u64>().unwrap() < 100_000_000, "{text}");
    }
}
