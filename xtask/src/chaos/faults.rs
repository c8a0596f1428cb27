//! What goes wrong from outside: kills, a full disk, a model that is gone.

use std::{
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;

use super::{
    Run, book,
    crew::{Kind, kill_stranger, with_words},
    is_interrupted,
    sender::{self, Sent},
    surfer::Surfer,
};

/// How long the disk is full, and how long the model is gone, at most.
const FULL: Duration = Duration::from_secs(60);
const GONE: Duration = Duration::from_secs(15);
/// How long a server is tried to be started again.
const COME_BACK: Duration = Duration::from_secs(180);

/// Of 100 kills, how many are of what.
const SHARES: [(Kind, u32); 6] = [
    (Kind::Server, 30),
    (Kind::Sender, 28),
    (Kind::Shell, 10),
    (Kind::Surfer, 12),
    (Kind::Chromium, 8),
    (Kind::Bench, 12),
];

/// Kill something again and again.
pub(super) fn strike(run: &Run, surfer: Option<&Surfer>, mut rng: Rng) {
    while !run.is_over() {
        run.pause(Duration::from_millis(rng.u64(200..2_500)));
        let kind = victim(&mut rng);
        let is_killed = match kind {
            Kind::Server => {
                run.frail.kill();
                run.killed(kind);
                thread::sleep(Duration::from_millis(rng.u64(0..300)));
                bring_back(run);
                continue;
            }
            Kind::Shell => kill_a_shell(run, &mut rng),
            Kind::Chromium => surfer.is_some_and(|surfer| surfer.kill_chromium(&mut rng)),
            Kind::Sender | Kind::Surfer | Kind::Bench => run.crew.kill_one(kind, &mut rng),
        };
        if is_killed {
            run.killed(kind);
        }
    }
}

fn victim(rng: &mut Rng) -> Kind {
    let mut at = rng.u32(0..SHARES.iter().map(|(_, share)| share).sum());
    for (kind, share) in SHARES {
        if at < share {
            return kind;
        }
        at -= share;
    }
    Kind::Server
}

/// Kill the command of a tool call in the middle of its deed. They are short, so one is waited for.
fn kill_a_shell(run: &Run, rng: &mut Rng) -> bool {
    let books = ['a', 'b'].map(|letter| book(&run.place, letter).display().to_string());
    for _ in 0..50 {
        let all: Vec<_> = books.iter().flat_map(|book| with_words(&[book, "echo job-"])).collect();
        if let Some(id) = rng.choice(&all) {
            return kill_stranger(*id);
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Start the server again. While the disk is full it may not come up, but it must say why.
fn bring_back(run: &Run) {
    let began = Instant::now();
    loop {
        match run.frail.start(&run.place, &run.crew) {
            Ok(started) => {
                if started.took > COME_BACK {
                    let seconds = started.took.as_secs();
                    run.wrong(format!("duo serve took {seconds} s to come back"));
                }
                return run.tally().starts.push(started);
            }
            Err(error) => {
                let why = error.to_string();
                if why.is_empty() {
                    run.wrong("duo serve did not start and did not say why".into());
                } else if !run.disk_is_full() && !is_about_a_full_disk(&why) {
                    run.wrong(format!("duo serve did not start again: {why}"));
                }
                *run.tally().failed_starts.entry(why).or_default() += 1;
            }
        }
        if is_interrupted() {
            return;
        }
        if began.elapsed() > COME_BACK {
            run.wrong("duo serve does not come back".into());
            run.over.store(true, Ordering::SeqCst);
            return;
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// Whether an error names what is wrong when the disk is full.
pub(super) fn is_about_a_full_disk(text: &str) -> bool {
    ["full", "No space left", "ENOSPC"].iter().any(|words| text.contains(words))
}

/// In the middle of the run, the disk of the journals is full for a minute. What was sent meanwhile to
/// use up what room the journals have of their own.
pub(super) fn fill_the_disk(run: &Run) -> [Vec<Sent>; 2] {
    run.pause(run.length.mul_f64(0.5));
    if run.is_over() || !run.disk.is_small() {
        return [Vec::new(), Vec::new()];
    }
    let (began, most) = (Instant::now(), FULL.min(run.length / 5));
    println!("[{:>5} s] the disk is full now", run.began.elapsed().as_secs());
    run.disk_full.store(true, Ordering::SeqCst);
    let keep_full = || {
        while began.elapsed() < most && !run.is_over() {
            if let Err(error) = run.disk.fill() {
                run.wrong(format!("{error:#}"));
                break;
            }
            run.pause(Duration::from_millis(500));
        }
        run.disk.empty();
        run.disk_full.store(false, Ordering::SeqCst);
        run.tally().full_seconds = began.elapsed().as_secs();
        println!("[{:>5} s] the disk has room again", run.began.elapsed().as_secs());
    };
    thread::scope(|scope| {
        scope.spawn(keep_full);
        // The disk is to be full before anything is stuffed into it.
        run.pause(Duration::from_secs(1));
        let stuffing =
            [&run.frail, &run.steady].map(|served| scope.spawn(|| sender::stuff(run, served)));
        stuffing.map(|stuffing| stuffing.join().unwrap_or_default())
    })
}

/// Once, the model hangs up on everybody for a while.
pub(super) fn take_the_model_away(run: &Run) {
    run.pause(run.length.mul_f64(0.3));
    run.model.set_down(true);
    run.pause(GONE.min(run.length / 10));
    run.model.set_down(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_killed_sooner_or_later() {
        let mut rng = Rng::with_seed(3);
        let kinds: std::collections::BTreeSet<_> = (0..200).map(|_| victim(&mut rng)).collect();
        assert_eq!(kinds.len(), SHARES.len());
    }
}
