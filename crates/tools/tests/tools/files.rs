//! The file tools, as an agent uses them.

use crate::bench::{Bench, call, context};
use serde_json::json;

#[tokio::test]
async fn a_file_is_written_read_edited_and_found() {
    let bench = Bench::new();
    let plan = json!({"path": "docs/plan.md", "content": "one\ntwo\nthree\n"});
    assert_eq!(
        bench.call("write_file", plan.clone()).await,
        Ok("created docs/plan.md (14 bytes)".to_owned())
    );
    assert_eq!(
        bench.call("write_file", plan).await,
        Ok("replaced docs/plan.md (14 bytes)".to_owned())
    );
    assert_eq!(
        bench.call("read_file", json!({"path": "docs/plan.md"})).await,
        Ok("The whole file, 3 lines:\n\none\ntwo\nthree\n".to_owned())
    );
    let edit = json!({"path": "docs/plan.md", "old_text": "two", "new_text": "2"});
    assert_eq!(bench.call("edit_file", edit).await, Ok("edited docs/plan.md at line 2".to_owned()));
    assert_eq!(bench.get("docs/plan.md"), "one\n2\nthree\n");
    assert_eq!(
        bench.call("search_files", json!({"pattern": "^t\\w+e$"})).await,
        Ok("docs/plan.md:3: three".to_owned())
    );
    assert_eq!(bench.call("list_files", json!({})).await, Ok("docs/\ndocs/plan.md".to_owned()));
}

#[tokio::test]
async fn a_file_is_copied_whatever_is_in_it() {
    let bench = Bench::new();
    bench.put("picture", b"\x89PNG\0\0\0");
    let copy = json!({"from": "picture", "to": "old/picture"});
    assert_eq!(
        bench.call("copy_file", copy.clone()).await,
        Ok("created old/picture (7 bytes, as in picture)".to_owned())
    );
    assert_eq!(
        bench.call("copy_file", copy).await,
        Ok("replaced old/picture (7 bytes, as in picture)".to_owned())
    );
    assert_eq!(std::fs::read(bench.root().join("old/picture")).unwrap(), b"\x89PNG\0\0\0");
    for (from, to, error) in [
        ("nothing", "copy", "there is no \"nothing\""),
        ("old", "copy", "is a folder"),
        ("picture", "old", "is a folder"),
        ("picture", ".git/hooks/pre-commit", "cannot be written"),
    ] {
        let copied = bench.call("copy_file", json!({"from": from, "to": to})).await;
        assert!(copied.clone().unwrap_err().contains(error), "{copied:?}");
    }
}

#[tokio::test]
async fn lines_are_counted_whether_or_not_the_last_one_is_ended() {
    let bench = Bench::new();
    for (text, said) in [
        (&b""[..], "\"list\" has 0 lines"),
        (b"one", "\"list\" has 1 line"),
        (b"one\ntwo\n", "\"list\" has 2 lines"),
        (b"one\r\n\nthree", "\"list\" has 3 lines"),
    ] {
        bench.put("list", text);
        assert_eq!(bench.call("count_lines", json!({"path": "list"})).await, Ok(said.to_owned()));
    }
    bench.put("long", "a\n".repeat(100_000).as_bytes());
    let long = bench.call("count_lines", json!({"path": "long"})).await;
    assert_eq!(long, Ok("\"long\" has 100000 lines".to_owned()));
    bench.put("picture", b"\x89PNG\0\n");
    let picture = bench.call("count_lines", json!({"path": "picture"})).await;
    assert_eq!(picture, Err("\"picture\" is not text, so it has no lines".to_owned()));
}

#[tokio::test]
async fn a_long_file_is_read_in_pages() {
    let bench = Bench::new();
    let lines: String = (1..=10).map(|n| format!("line {n}\n")).collect();
    bench.put("ten", &lines);
    assert_eq!(
        bench.call("read_file", json!({"path": "ten", "limit": 2})).await,
        Ok("Lines 1 to 2; the file goes on, read it with offset 3:\n\nline 1\nline 2\n".to_owned())
    );
    assert_eq!(
        bench.call("read_file", json!({"path": "ten", "offset": 9})).await,
        Ok("Lines 9 to 10, the end of the file:\n\nline 9\nline 10\n".to_owned())
    );
    assert_eq!(
        bench.call("read_file", json!({"path": "ten", "limit": 10})).await,
        Ok(format!("The whole file, 10 lines:\n\n{lines}"))
    );
    for offset in [11, 12, 100_000] {
        let error = bench.call("read_file", json!({"path": "ten", "offset": offset})).await;
        assert!(error.unwrap_err().contains("has only 10 lines"), "{offset}");
    }
    assert!(bench.call("read_file", json!({"path": "ten", "offset": 0})).await.is_err());
}

#[tokio::test]
async fn pages_of_a_large_file_join_to_the_whole() {
    let bench = Bench::new();
    let whole: String = (0..5_000).map(|n| format!("{n} {}\n", "ü".repeat(n % 40))).collect();
    bench.put("large", &whole);
    let mut joined = String::new();
    let mut offset = 1;
    loop {
        let page =
            bench.call("read_file", json!({"path": "large", "offset": offset, "limit": 100_000}));
        let page = page.await.unwrap();
        assert!(page.len() < 19_200);
        let (note, text) = page.split_once(":\n\n").unwrap();
        joined.push_str(text);
        match note.rsplit_once("with offset ") {
            Some((_, next)) => offset = next.parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(joined, whole);
}

#[tokio::test]
async fn odd_files_are_told_apart() {
    let bench = Bench::new();
    bench.put("empty", "");
    bench.put("binary", b"\x89PNG\0\0\0");
    bench.put("latin", b"caf\xe9\n");
    bench.put("long", "x".repeat(200_000));
    bench.put("folder/x", "");
    let read = |path: &'static str| bench.call("read_file", json!({"path": path}));
    assert_eq!(read("empty").await, Ok("[the file is empty]".to_owned()));
    assert_eq!(
        read("binary").await,
        Err("\"binary\" is not text: it has 7 bytes of some binary format".to_owned())
    );
    assert_eq!(
        read("latin").await,
        Ok("The whole file, 1 line; bytes that are not UTF-8 are shown as \u{fffd}:\n\ncaf\u{fffd}\n"
            .to_owned())
    );
    let long = read("long").await.unwrap();
    let note = "line 1 has 200000 bytes, the first 19000 are shown:\n\nxxx";
    assert!(long.contains(note), "{}", &long[..100]);
    assert_eq!(read("folder").await, Err("\"folder\" is a folder, not a file".to_owned()));
    assert_eq!(read("lonk").await, Err("there is no \"lonk\" (did you mean \"long\"?)".to_owned()));
    assert_eq!(
        read("nowhere/x").await,
        Err("there is no \"nowhere/x\": there is no folder \"nowhere\"".to_owned())
    );
    assert!(read("long/x").await.unwrap_err().contains("is a file, not a folder"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_named_pipe_blocks_nobody() {
    let bench = Bench::new();
    let made = std::process::Command::new("mkfifo").arg(bench.root().join("pipe")).status();
    assert!(made.unwrap().success());
    assert_eq!(
        bench.call("read_file", json!({"path": "pipe"})).await,
        Err("\"pipe\" is not a regular file".to_owned())
    );
    let write = json!({"path": "pipe", "content": "x"});
    assert_eq!(
        bench.call("write_file", write).await,
        Err("\"pipe\" is not a regular file".to_owned())
    );
    assert_eq!(
        bench.call("search_files", json!({"pattern": "x"})).await,
        Ok("[no line matches in 0 files]".to_owned())
    );
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_named() {
    let bench = Bench::new();
    for (tool, arguments, expected) in [
        ("read_file", json!({}), "missing field `path`"),
        ("read_file", json!({"path": 7}), "path: invalid type: integer `7`, expected a string"),
        ("read_file", json!({"path": "a", "lines": 3}), "unknown field `lines`, expected one of"),
        ("read_file", json!("path"), "invalid type: string \"path\""),
        ("write_file", json!({"path": "a"}), "missing field `content`"),
        ("list_files", json!({"limit": 0}), "limit: invalid value: integer `0`"),
        ("list_files", json!({"glob": "[a"}), "glob: unclosed character class"),
        ("search_files", json!({"pattern": "("}), "pattern: regex parse error"),
        ("search_files", json!({"pattern": "(a{1000}){1000}"}), "pattern: "),
    ] {
        let error = bench.call(tool, arguments).await.unwrap_err();
        assert!(error.contains(expected), "{tool}: {error}");
    }
}

#[tokio::test]
async fn a_list_leaves_out_what_git_ignores() {
    let bench = Bench::new();
    for path in [
        "src/main.rs",
        "src/deep/er/mod.rs",
        "src/deep/.gitignore",
        "src/deep/local.txt",
        "target/debug/x",
        "a.log",
        "keep.log",
        ".git/config",
        ".github/ci.yml",
    ] {
        bench.put(path, "");
    }
    bench.put(".gitignore", "/target/\n*.log\n!keep.log\n");
    bench.put("src/deep/.gitignore", "local.txt\n");
    let list = |arguments| bench.call("list_files", arguments);
    assert_eq!(
        list(json!({})).await.unwrap().lines().collect::<Vec<_>>(),
        [
            ".github/",
            ".gitignore",
            "keep.log",
            "src/",
            ".github/ci.yml",
            "src/deep/",
            "src/main.rs",
            "src/deep/.gitignore",
            "src/deep/er/",
            "src/deep/er/mod.rs",
        ]
    );
    assert_eq!(
        list(json!({"glob": "*.rs"})).await,
        Ok("src/main.rs\nsrc/deep/er/mod.rs".to_owned())
    );
    assert_eq!(list(json!({"glob": "src/*.rs"})).await, Ok("src/main.rs".to_owned()));
    assert_eq!(
        list(json!({"path": "src", "glob": "deep/**/*.{rs,txt}"})).await,
        Ok("src/deep/er/mod.rs".to_owned())
    );
    assert_eq!(
        list(json!({"path": "src", "depth": 1})).await,
        Ok("src/deep/\nsrc/main.rs".to_owned())
    );
    assert_eq!(
        list(json!({"path": "src/deep", "glob": "*.txt"})).await,
        Ok("[no file matches]".to_owned())
    );
    let everything = list(json!({"include_ignored": true})).await.unwrap();
    assert!(everything.contains("target/debug/x") && everything.contains("a.log"));
    assert!(!everything.contains(".git/config"));
    assert_eq!(
        list(json!({"limit": 2})).await.unwrap().lines().last(),
        Some(
            "[there are more than 2: name a folder, a glob or a depth, or raise the limit (at \
             most 5000)]"
        )
    );
    assert_eq!(
        list(json!({"path": "src/main.rs"})).await,
        Err("\"src/main.rs\" is a file, not a folder: read it with read_file".to_owned())
    );
    assert!(list(json!({"path": "scr"})).await.unwrap_err().contains("did you mean \"src\"?"));
}

#[tokio::test]
async fn a_search_is_bounded_and_says_what_it_left_out() {
    let bench = Bench::new();
    bench.put("a.txt", "needle\n".repeat(30));
    bench.put("b.bin", b"needle\0");
    bench.put("c.md", format!("{}needle{}\r\nNEEDLE\r\n", "a".repeat(500), "z".repeat(500)));
    bench.put("hidden/d.txt", "needle");
    bench.put(".gitignore", "hidden\n");
    let search = |arguments| bench.call("search_files", arguments);

    let few = search(json!({"pattern": "needle", "limit": 3})).await.unwrap();
    let lines: Vec<&str> = few.lines().collect();
    assert_eq!(lines[..3], ["a.txt:1: needle", "a.txt:2: needle", "a.txt:3: needle"]);
    assert!(lines[3].starts_with("[more lines match than these 3"), "{}", lines[3]);

    let long = search(json!({"pattern": "needle", "glob": "*.md"})).await.unwrap();
    assert!(long.starts_with("c.md:1: …aaa") && long.ends_with("zzz…"), "{long}");
    assert!(long.len() < 330);
    assert_eq!(
        search(json!({"pattern": "^needle$", "glob": "*.md", "ignore_case": true})).await,
        Ok("c.md:2: NEEDLE".to_owned())
    );
    assert_eq!(
        search(json!({"pattern": "pin", "path": "."})).await,
        Ok("[no line matches in 3 files; 1 binary file left out]".to_owned())
    );
    assert_eq!(
        search(json!({"pattern": "needle", "path": "hidden/d.txt"})).await,
        Ok("hidden/d.txt:1: needle".to_owned())
    );
    let with_ignored = search(json!({"pattern": "needle", "glob": "d.*", "include_ignored": true}));
    assert_eq!(with_ignored.await, Ok("hidden/d.txt:1: needle".to_owned()));
}

#[tokio::test]
async fn a_search_of_a_hostile_line_is_bounded() {
    let bench = Bench::new();
    bench.put("line", format!("{}needle", "a".repeat(3 << 20)));
    assert_eq!(
        bench.call("search_files", json!({"pattern": "needle"})).await,
        Ok("[no line matches in 1 file; of 1 very long line only the first 1048576 bytes were \
            searched]"
            .to_owned())
    );
}

#[tokio::test]
async fn a_cancelled_search_stops() {
    let bench = Bench::new();
    bench.put("a", "x\n");
    let context = context();
    context.cancel.cancel();
    for (tool, arguments) in [
        ("search_files", json!({"pattern": "y"})),
        ("read_file", json!({"path": "a"})),
        ("list_files", json!({})),
    ] {
        let result = call(&*bench.tool(tool), arguments, context.clone()).await;
        assert_eq!(result, Err("cancelled".to_owned()), "{tool}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_replaced_file_keeps_its_mode_and_leaves_nothing_behind() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    bench.put("run.sh", "old");
    let path = bench.root().join("run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    let write = json!({"path": "run.sh", "content": "new"});
    bench.call("write_file", write).await.unwrap();
    assert_eq!(bench.get("run.sh"), "new");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    let names: Vec<_> = std::fs::read_dir(bench.root()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[tokio::test]
async fn a_reader_never_sees_half_a_write() {
    let bench = Bench::new();
    let (short, long) = ("a".repeat(10), "b".repeat(2_000_000));
    bench.put("x", &short);
    let path = bench.root().join("x");
    let (a, b) = (short.clone(), long.clone());
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let done = stop.clone();
    let reader = std::thread::spawn(move || {
        let mut reads = 0;
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text == a || text == b, "{} bytes", text.len());
            reads += 1;
        }
        reads
    });
    for content in [&long, &short].into_iter().cycle().take(20) {
        let write = json!({"path": "x", "content": content});
        bench.call("write_file", write).await.unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(reader.join().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_at_the_same_time_do_not_lose_each_other() {
    let bench = std::sync::Arc::new(Bench::new());
    let text: String = (0..20).map(|n| format!("<{n}>\n")).collect();
    bench.put("x", text);
    let edits: Vec<_> = (0..20)
        .map(|n| {
            let bench = bench.clone();
            tokio::spawn(async move {
                let edit = json!({
                    "path": "x", "old_text": format!("<{n}>"), "new_text": format!("done {n}"),
                });
                bench.call("edit_file", edit).await.unwrap();
            })
        })
        .collect();
    for edit in edits {
        edit.await.unwrap();
    }
    let expected: String = (0..20).map(|n| format!("done {n}\n")).collect();
    assert_eq!(bench.get("x"), expected);
}

#[tokio::test]
async fn an_edit_that_cannot_be_made_changes_nothing() {
    let bench = Bench::new();
    bench.put("x", "a a");
    bench.put("latin", b"caf\xe9");
    for (arguments, expected) in [
        (json!({"path": "x", "old_text": "a", "new_text": "b"}), "old_text occurs 2 times"),
        (json!({"path": "x", "old_text": "z", "new_text": "b"}), "old_text is not in the file"),
        (
            json!({"path": "y", "old_text": "z", "new_text": "b"}),
            "there is no \"y\"; copy_file or write_file makes it",
        ),
        (json!({"path": "latin", "old_text": "c", "new_text": "b"}), "is not UTF-8"),
    ] {
        let error = bench.call("edit_file", arguments).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(bench.get("x"), "a a");
    let all = json!({"path": "x", "old_text": "a", "new_text": "b", "replace_all": true});
    assert_eq!(bench.call("edit_file", all).await, Ok("edited x in 2 places".to_owned()));
    assert_eq!(bench.get("x"), "b b");
}
