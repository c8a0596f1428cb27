//! Load on every server in turn, by `wrk`, and what a request costs the server.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use bench_arm::{Bar, figure};
use serde_json::json;

use crate::arms::Arm;

/// Put load on every server.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A server besides ours, as NAME=PROGRAM
    #[arg(long, value_name = "NAME=PROGRAM")]
    extra: Vec<String>,
    /// How long each load lasts, in seconds
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// How many connections
    #[arg(long, default_value_t = 16)]
    connections: u32,
    /// How often each is measured; the table shows medians
    #[arg(long, default_value_t = 3)]
    repeats: usize,
}

/// What the load asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Send,
    Stream,
}

impl Load {
    fn method(self) -> &'static str {
        match self {
            Self::Send => "SendMessage",
            Self::Stream => "SendStreamingMessage",
        }
    }
}

/// A server as a program that can be started.
struct Contender {
    name: String,
    program: PathBuf,
    arm: Option<Arm>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    micros: f64,
    per_second: f64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let found = Command::new("wrk").arg("--version").stdout(Stdio::null()).status();
    ensure!(found.is_ok(), "wrk is not here; on Debian: apt-get install wrk");
    let this = env::current_exe().context("finding this program")?;
    let mut contenders: Vec<Contender> = [Arm::Bare, Arm::Memory, Arm::Sqlite]
        .map(|arm| Contender { name: arm.name().into(), program: this.clone(), arm: Some(arm) })
        .into();
    for extra in &args.extra {
        let (name, program) = extra.split_once('=').context("--extra is NAME=PROGRAM")?;
        contenders.push(Contender { name: name.into(), program: program.into(), arm: None });
    }
    println!("{} connections, {} s each, {} repeats", args.connections, args.seconds, args.repeats);
    println!(
        "{:<24} {:>14} {:>10} {:>14} {:>10}",
        "", "send µs CPU", "per s", "stream µs CPU", "per s"
    );
    let mut all = vec![(Vec::new(), Vec::new()); contenders.len()];
    for _ in 0..args.repeats.max(1) {
        // Interleaved, so that what else the machine does falls on all of them.
        for (contender, (sends, streams)) in contenders.iter().zip(&mut all) {
            sends.push(contender.measure(Load::Send, args)?);
            streams.push(contender.measure(Load::Stream, args)?);
        }
    }
    let mut bare = 0.0;
    for (contender, (sends, streams)) in contenders.iter().zip(all) {
        let (send, stream) = (median(sends), median(streams));
        match contender.arm {
            Some(Arm::Bare) => bare = send.micros,
            Some(Arm::Memory) => {
                figure("a2a: CPU per send, memory × bare", send.micros / bare, Bar::AtMost(2.0));
                figure("a2a: CPU µs per stream, memory", stream.micros, Bar::AtMost(75.0));
            }
            Some(Arm::Sqlite) => {
                let durable = send.per_second;
                figure("a2a: durable tasks per s, sqlite", durable, Bar::AtLeast(3000.0));
            }
            _ => {}
        }
        println!(
            "{:<24} {:>14.1} {:>10.0} {:>14.1} {:>10.0}",
            contender.name, send.micros, send.per_second, stream.micros, stream.per_second
        );
    }
    Ok(())
}

fn median(mut all: Vec<Figures>) -> Figures {
    all.sort_by(|a, b| a.micros.total_cmp(&b.micros));
    all.get(all.len() / 2).copied().unwrap_or_default()
}

impl Contender {
    fn measure(&self, load: Load, args: &Args) -> Result<Figures> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(&self.program);
        if let Some(arm) = self.arm {
            command.arg("arm").arg(arm.name()).arg("--file").arg(folder.path().join("journal.db"));
        }
        let mut server = Process::start(command)?;
        let script = script(folder.path(), load)?;
        let url = format!("http://127.0.0.1:{}/", server.port);
        // Once before it counts: everything is warm, and what comes back is looked at.
        check(&url, load, &self.name)?;
        wrk(&url, &script, 1, args.connections)?;
        let before = server.cpu()?;
        let (requests, seconds) = wrk(&url, &script, args.seconds, args.connections)?;
        let used = server.cpu()?.saturating_sub(before);
        server.end()?;
        ensure!(requests > 0.0, "{} answered nothing", self.name);
        Ok(Figures { micros: used.as_secs_f64() * 1e6 / requests, per_second: requests / seconds })
    }
}

/// A server at work. It ends with its standard input.
pub(crate) struct Process {
    child: Child,
    pub(crate) port: u16,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().parse().context("the server did not print its port")?;
        Ok(Self { child, port })
    }

    /// Time on a CPU, of all its threads.
    fn cpu(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name may hold anything, brackets and blanks too.
        let (_, rest) = stat.rsplit_once(')').context("/proc/PID/stat")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks =
            |at: usize| -> Result<u64> { Ok(fields.get(at).context("/proc/PID/stat")?.parse()?) };
        // Linux counts hundredths of a second here, on every machine that it runs on today.
        Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
    }

    /// Memory that is resident now, in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kilobytes.context("/proc/PID/status")?.trim().parse::<u64>()? * 1024)
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The request that is sent over and over.
fn body(load: Load) -> String {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": load.method(),
        "params": {"message": {
            "messageId": "bench-1",
            "role": "ROLE_USER",
            "parts": [{"text": "The quick brown fox jumps over the lazy dog."}],
        }},
    })
    .to_string()
}

fn script(folder: &Path, load: Load) -> Result<PathBuf> {
    let file = folder.join("load.lua");
    let text = format!(
        "wrk.method = \"POST\"\nwrk.body = [==[{}]==]\n\
         wrk.headers[\"Content-Type\"] = \"application/json\"\n\
         wrk.headers[\"A2A-Version\"] = \"1.0\"\n",
        body(load)
    );
    fs::write(&file, text)?;
    Ok(file)
}

/// One request, looked at.
fn check(url: &str, load: Load, name: &str) -> Result<()> {
    let output = Command::new("curl")
        .args(["-sS", "-m", "10", "-H", "Content-Type: application/json", "-H", "A2A-Version: 1.0"])
        .args(["-d", &body(load), url])
        .output()
        .context("starting curl")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        text.contains("TASK_STATE_COMPLETED") && text.contains("quick brown fox"),
        "{name} does not answer {}: {text}",
        load.method()
    );
    Ok(())
}

/// Requests that were answered, and in how many seconds.
fn wrk(url: &str, script: &Path, seconds: u32, connections: u32) -> Result<(f64, f64)> {
    let output = Command::new("wrk")
        .args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "-s"])
        .arg(script)
        .arg(url)
        .output()
        .context("starting wrk")?;
    let text = String::from_utf8(output.stdout)?;
    let number = |after: &str| -> Option<f64> {
        let line = text.lines().find(|line| line.trim_start().starts_with(after))?;
        line.split_whitespace().last()?.parse().ok()
    };
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        bail!("not every request was answered:\n{text}");
    }
    let per_second = number("Requests/sec:").with_context(|| format!("wrk says:\n{text}"))?;
    let requests = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "))
        .and_then(|(count, _)| count.parse::<f64>().ok())
        .with_context(|| format!("wrk says:\n{text}"))?;
    Ok((requests, requests / per_second))
}
