//! Nothing outside the workspace folder is read, listed, written or changed.

use std::os::unix::fs::symlink;

use crate::bench::Bench;
use proptest::prelude::*;
#[cfg(target_os = "linux")]
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

/// Every way to use a path.
fn uses(path: &str) -> [(&'static str, Value); 6] {
    [
        ("read_file", json!({"path": path})),
        ("write_file", json!({"path": path, "content": "overwritten"})),
        ("edit_file", json!({"path": path, "old_text": "secret", "new_text": "gone"})),
        ("list_files", json!({"path": path})),
        ("search_files", json!({"pattern": "secret", "path": path})),
        ("count_lines", json!({"path": path})),
    ]
}

fn with_secret() -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.outer.path().join("outside.txt"), "secret").unwrap();
    std::fs::create_dir(bench.outer.path().join("outside")).unwrap();
    std::fs::write(bench.outer.path().join("outside/file.txt"), "secret").unwrap();
    bench.put("inside.txt", "open");
    bench
}

fn assert_outside_untouched(bench: &Bench) {
    for path in ["outside.txt", "outside/file.txt"] {
        let text = std::fs::read_to_string(bench.outer.path().join(path)).unwrap();
        assert_eq!(text, "secret", "{path}");
    }
    let outside = std::fs::read_dir(bench.outer.path().join("outside")).unwrap().count();
    let outer = std::fs::read_dir(bench.outer.path()).unwrap().count();
    assert_eq!((outside, outer), (1, 3));
}

#[tokio::test]
async fn paths_that_lead_out_are_refused() {
    let bench = with_secret();
    let absolute = bench.outer.path().join("outside.txt");
    for path in [
        "..",
        "../outside.txt",
        "../outside/new.txt",
        "a/../../outside.txt",
        "a/b/../../../outside/new.txt",
        absolute.to_str().unwrap(),
        "/etc/passwd",
        "/",
    ] {
        for (tool, arguments) in uses(path) {
            let error = bench.call(tool, arguments).await.unwrap_err();
            assert!(
                error.contains("contains \"..\"") || error.contains("is absolute"),
                "{tool} {path}: {error}"
            );
        }
    }
    assert_outside_untouched(&bench);
}

#[tokio::test]
async fn links_that_lead_out_are_refused_also_for_files_that_are_not_there_yet() {
    let bench = with_secret();
    let at = |name: &str| bench.root().join(name);
    let absolute = bench.outer.path().join("outside");
    symlink("../outside.txt", at("file_link")).unwrap();
    symlink("../outside", at("folder_link")).unwrap();
    symlink(&absolute, at("absolute_link")).unwrap();
    symlink("../outside/new.txt", at("dangling_link")).unwrap();
    symlink("folder_link", at("link_to_link")).unwrap();
    symlink("/", at("root_link")).unwrap();
    symlink("loop_b", at("loop_a")).unwrap();
    symlink("loop_a", at("loop_b")).unwrap();
    for path in [
        "file_link",
        "folder_link/file.txt",
        "folder_link/new.txt",
        "folder_link/deep/new.txt",
        "absolute_link/file.txt",
        "absolute_link/new.txt",
        "dangling_link",
        "link_to_link/file.txt",
        "link_to_link/new.txt",
        "root_link/etc/passwd",
        "loop_a",
    ] {
        for (tool, arguments) in uses(path) {
            let result = bench.call(tool, arguments).await;
            assert!(result.is_err(), "{tool} {path}: {result:?}");
        }
    }
    for folder in ["folder_link", "absolute_link", "link_to_link", "root_link"] {
        for tool in ["list_files", "search_files"] {
            let result = bench.call(tool, json!({"path": folder, "pattern": "secret"})).await;
            assert!(result.is_err(), "{tool} {folder}: {result:?}");
        }
        let result = bench.call("list_files", json!({"path": folder})).await;
        let error = result.unwrap_err();
        assert!(error.contains("leads out of the workspace folder"), "{folder}: {error}");
    }
    // A walk from the top shows links as links and does not go through them.
    let listed = bench.call("list_files", json!({})).await.unwrap();
    assert!(listed.contains("folder_link (a link)"), "{listed}");
    assert!(!listed.contains("file.txt"), "{listed}");
    let found = bench.call("search_files", json!({"pattern": "secret"})).await.unwrap();
    assert_eq!(found, "[no line matches in 1 file]");
    assert_outside_untouched(&bench);
}

#[tokio::test]
async fn a_link_inside_is_followed_and_stays_a_link() {
    let bench = Bench::new();
    bench.put("real/file.txt", "old");
    symlink("real/file.txt", bench.root().join("link")).unwrap();
    symlink("real", bench.root().join("folder")).unwrap();
    assert_eq!(
        bench.call("read_file", json!({"path": "link"})).await,
        Ok("The whole file, 1 line:\n\nold".to_owned())
    );
    let write = json!({"path": "link", "content": "new"});
    bench.call("write_file", write).await.unwrap();
    assert_eq!(bench.get("real/file.txt"), "new");
    assert!(bench.root().join("link").is_symlink());
    let write = json!({"path": "folder/second.txt", "content": "2"});
    bench.call("write_file", write).await.unwrap();
    assert_eq!(bench.get("real/second.txt"), "2");
}

#[tokio::test]
async fn what_git_would_run_cannot_be_written() {
    let bench = Bench::new();
    bench.put(".git/config", "[core]\n");
    bench.put("sub/.git/config", "[core]\n");
    symlink(".git", bench.root().join("sneaky")).unwrap();
    symlink(".git/config", bench.root().join("sneakier")).unwrap();
    for path in [
        ".git/config",
        ".git/hooks/pre-commit",
        ".GIT/config",
        "sub/.git/config",
        "sneaky/config",
        "sneaky/hooks/x",
        "sneakier",
    ] {
        let write = json!({"path": path, "content": "x"});
        let error = bench.call("write_file", write).await.unwrap_err();
        assert!(error.contains(".git folder cannot be written"), "{path}: {error}");
        let edit = json!({"path": path, "old_text": "core", "new_text": "x"});
        assert!(bench.call("edit_file", edit).await.is_err(), "{path}");
    }
    assert_eq!(bench.get(".git/config"), "[core]\n");
    assert_eq!(bench.get("sub/.git/config"), "[core]\n");
}

/// A folder is swapped for a link to the outside and back, over and over, while tools use paths
/// through it. The check and the opening must be one act for nothing to slip out.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_swapped_in_at_the_wrong_moment_leads_nowhere() {
    let bench = with_secret();
    bench.put("door/file.txt", "open");
    let (door, link) = (bench.root().join("door"), bench.root().join("link"));
    symlink("../outside", &link).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let done = stop.clone();
    let swapper = std::thread::spawn(move || {
        let mut swaps = 0;
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            renameat_with(CWD, &door, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            swaps += 1;
        }
        swaps
    });
    for round in 0..300 {
        if let Ok(text) = bench.call("read_file", json!({"path": "door/file.txt"})).await {
            assert!(!text.contains("secret"), "round {round}");
        }
        let search = json!({"pattern": "secret", "path": "door"});
        if let Ok(text) = bench.call("search_files", search).await {
            assert!(!text.contains("file.txt:"), "round {round}: {text}");
        }
        let write = json!({"path": "door/made.txt", "content": "x"});
        let _ = bench.call("write_file", write).await;
        let deep = json!({"path": "door/deep/made.txt", "content": "x"});
        let _ = bench.call("write_file", deep).await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(swapper.join().unwrap() > 100);
    assert_outside_untouched(&bench);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Paths made of every kind of step, with links among the names.
    #[test]
    fn no_path_reaches_the_outside(
        steps in prop::collection::vec(
            prop::sample::select(vec![
                "..", ".", "", "a", "b", "folder_link", "file_link", "up", "outside", "outside.txt",
                "file.txt", "new.txt", "~", "…", "\\", "workspace",
            ]),
            1..6,
        ),
        absolute in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bench = with_secret();
            bench.put("a/b/x", "open");
            symlink("../outside", bench.root().join("folder_link")).unwrap();
            symlink("../outside.txt", bench.root().join("file_link")).unwrap();
            symlink("../..", bench.root().join("a/up")).unwrap();
            let path = match absolute {
                true => bench.outer.path().join(steps.join("/")).to_str().unwrap().to_owned(),
                false => steps.join("/"),
            };
            for (tool, arguments) in uses(&path) {
                if let Ok(text) = bench.call(tool, arguments).await {
                    assert!(!text.contains("secret"), "{tool} {path}: {text}");
                }
            }
            assert_outside_untouched(&bench);
        });
    }
}
