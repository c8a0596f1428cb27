//! The directory's file: read with patience, written as a whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{KnownAgent, MOST_AGENTS, now_ms};

/// The version of the file's form.
const VERSION: u32 = 1;
/// The largest file that is read.
const LARGEST: u64 = 64 * 1024 * 1024;

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    agents: &'a [KnownAgent],
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    agents: Vec<Value>,
}

/// What a file held, and what a person should know about it.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) agents: Vec<KnownAgent>,
    pub(super) warnings: Vec<String>,
}

/// Read the file. One that is not there is empty; one that cannot be read is moved aside, so that
/// it is not written over.
pub(super) fn load(path: &Path) -> io::Result<Loaded> {
    let text = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::default()),
        Err(error) => return Err(error),
        Ok(about) if about.len() > LARGEST => {
            return aside(path, &format!("it is larger than {LARGEST} bytes"));
        }
        Ok(_) => fs::read(path)?,
    };
    let found: Found = match serde_json::from_slice(&text) {
        Ok(found) => found,
        Err(error) => return aside(path, &error.to_string()),
    };
    let mut loaded = Loaded::default();
    for (place, value) in found.agents.into_iter().enumerate() {
        match serde_json::from_value::<KnownAgent>(value) {
            Ok(agent) if loaded.agents.len() < MOST_AGENTS => loaded.agents.push(agent),
            Ok(agent) => loaded.warnings.push(format!(
                "{}: {} is left out: a directory holds {MOST_AGENTS} agents",
                path.display(),
                agent.id
            )),
            Err(error) => loaded
                .warnings
                .push(format!("{}: agent {place} is left out: {error}", path.display())),
        }
    }
    if !loaded.warnings.is_empty() {
        // What is left out here would be gone with the next write.
        let copy = beside(path);
        fs::copy(path, &copy)?;
        loaded.warnings.push(format!("the file as it was is kept as {}", copy.display()));
    }
    Ok(loaded)
}

fn aside(path: &Path, why: &str) -> io::Result<Loaded> {
    let kept = beside(path);
    fs::rename(path, &kept)?;
    let warning = format!(
        "the agent directory {} cannot be read ({why}); it is kept as {} and a new one is begun",
        path.display(),
        kept.display()
    );
    Ok(Loaded { agents: Vec::new(), warnings: vec![warning] })
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".broken-{}", now_ms()));
    path.with_file_name(name)
}

/// Wait until no other process has the file in hand. Dropping what is given lets go of it.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    fs::create_dir_all(folder_of(path))?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let file =
        File::options().create(true).write(true).truncate(false).open(path.with_file_name(name))?;
    file.lock()?;
    Ok(file)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Write the file anew: beside the old one, to the disk, then in its place.
pub(super) fn save(path: &Path, agents: &[KnownAgent]) -> io::Result<()> {
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut text = serde_json::to_vec_pretty(&Written { version: VERSION, agents })?;
    text.push(b'\n');
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let written = (|| {
        let mut file = File::create(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        // The new name is on the disk when its folder is.
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // What is half written helps nobody; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&new);
    }
    written
}
