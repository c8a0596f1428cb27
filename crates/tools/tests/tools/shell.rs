//! Commands, well-behaved and hostile. Whatever happens, nothing of them is left.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use duologue_tools::ShellConfig;
use serde_json::json;

use crate::bench::{Bench, call, context};

/// Processes whose command line contains the text, by their ids.
fn running(text: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().to_str()?.to_owned();
            name.parse::<u32>().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains(text).then_some(format!("{name}: {line}"))
        })
        .collect()
}

/// A number of seconds that no other test sleeps for, so that its processes can be told apart.
fn odd_sleep() -> String {
    format!("7{:08}", fastrand::u32(..100_000_000))
}

fn assert_none_left(text: &str) {
    let patience = Instant::now() + Duration::from_secs(5);
    loop {
        let left = running(text);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < patience, "still running: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn quick() -> Bench {
    let mut bench = Bench::new();
    bench.config.shell.timeout = Duration::from_secs(1);
    bench
}

#[tokio::test]
async fn a_command_gives_its_output_and_its_exit_code() {
    let bench = Bench::new();
    bench.put("a.txt", "hello\n");
    let shell = |command: &'static str| bench.call("shell", json!({"command": command}));
    assert_eq!(shell("cat a.txt").await, Ok("hello\n".to_owned()));
    assert_eq!(shell("true").await, Ok("[done, without any output]".to_owned()));
    assert_eq!(shell("echo out; echo err >&2; echo out2").await, Ok("out\nerr\nout2\n".to_owned()));
    assert_eq!(shell("printf x; exit 3").await, Ok("x\n[exit code 3]".to_owned()));
    assert_eq!(shell("kill -9 $$").await, Ok("[ended by signal 9]".to_owned()));
    assert_eq!(
        shell("cat").await,
        Ok("[done, without any output]".to_owned()),
        "there is no input"
    );
    assert_eq!(shell("pwd -P").await, Ok(format!("{}\n", bench.root().display())));
    assert!(shell("no-such-program").await.unwrap().ends_with("[exit code 127]"));
    assert!(shell("a\0b").await.unwrap_err().contains("zero byte"));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error() {
    let mut bench = Bench::new();
    bench.config.shell = ShellConfig { program: "/no/such/shell".into(), ..ShellConfig::default() };
    let error = bench.call("shell", json!({"command": "true"})).await.unwrap_err();
    assert!(error.starts_with("cannot run /no/such/shell: "), "{error}");
}

#[tokio::test]
async fn a_command_that_ignores_the_request_to_end_is_killed() {
    let bench = quick();
    let sleep = odd_sleep();
    let command = format!("trap '' TERM INT HUP; echo begun; while :; do sleep {sleep}; done");
    let begun = Instant::now();
    let error = bench.call("shell", json!({"command": command})).await.unwrap_err();
    assert_eq!(
        error,
        "begun\n[stopped after 1 s; ask for more with timeout_seconds if it needs them]"
    );
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_none_left(&sleep);
}

#[tokio::test]
async fn children_of_every_kind_end_with_the_command() {
    let sleep = odd_sleep();
    for command in [
        // A tree of children.
        format!("(sh -c 'sleep {sleep} & sleep {sleep}' & sleep {sleep}) & sleep {sleep}"),
        // One that ignores signals and has no terminal.
        format!("nohup sh -c \"trap '' TERM; sleep {sleep}\" >/dev/null 2>&1 & sleep {sleep}"),
        // One that left the group for a session of its own.
        format!("setsid sleep {sleep} & setsid -f sleep {sleep}; sleep {sleep}"),
        // One that starts another again and again.
        format!("while :; do setsid -f sleep {sleep}; sleep 0.05; done"),
    ] {
        let bench = quick();
        let begun = Instant::now();
        let result = bench.call("shell", json!({"command": command})).await;
        assert!(result.unwrap_err().contains("stopped after 1 s"), "{command}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{command}: {:?}", begun.elapsed());
        assert_none_left(&sleep);
    }
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    let bench = Bench::new();
    let sleep = odd_sleep();
    for command in [
        format!("sleep {sleep} & echo done"),
        format!("setsid -f sleep {sleep}; echo done"),
        format!("(trap '' TERM; sleep {sleep}) & echo done"),
    ] {
        let begun = Instant::now();
        let result = bench.call("shell", json!({"command": command})).await;
        assert_eq!(result, Ok("done\n".to_owned()), "{command}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{command}: {:?}", begun.elapsed());
        assert_none_left(&sleep);
    }
}

#[tokio::test]
async fn a_cancelled_command_ends_within_a_second_and_keeps_what_it_said() {
    let bench = Bench::new();
    let sleep = odd_sleep();
    let context = context();
    let cancel = context.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let command = format!("trap '' TERM; echo partial; sleep {sleep} & sleep {sleep}");
    let begun = Instant::now();
    let result = call(&*bench.tool("shell"), json!({"command": command}), context).await;
    assert_eq!(result, Err("partial\n[cancelled]".to_owned()));
    assert!(begun.elapsed() < Duration::from_millis(1300), "{:?}", begun.elapsed());
    assert_none_left(&sleep);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_killed() {
    let bench = Bench::new();
    let sleep = odd_sleep();
    let command = format!("trap '' TERM; setsid -f sleep {sleep}; sleep {sleep} & sleep {sleep}");
    let call = bench.call("shell", json!({"command": command}));
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    assert_none_left(&sleep);
}

#[tokio::test]
async fn endless_output_is_bounded_and_its_middle_left_out() {
    let mut bench = quick();
    bench.config.shell.most_output = 1000;
    let error = bench.call("shell", json!({"command": "echo first; yes"})).await.unwrap_err();
    assert!(error.starts_with("first\ny\ny\n"), "{error}");
    assert!(error.contains("bytes of output are left out here: more than is kept]\n"), "{error}");
    assert!(error.contains("[stopped after 1 s"), "{error}");
    assert!(error.len() < 1200);
}

#[tokio::test]
async fn output_up_to_the_bound_is_whole() {
    let bench = Bench::new();
    let command = json!({"command": "seq 1 100000"});
    let text = bench.call("shell", command).await.unwrap();
    let expected: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert!(text == expected, "{} of {} bytes", text.len(), expected.len());
}

#[tokio::test]
async fn a_call_may_ask_for_more_time_up_to_a_bound() {
    let mut bench = quick();
    let longer = json!({"command": "sleep 1.5; echo done", "timeout_seconds": 30});
    assert_eq!(bench.call("shell", longer).await, Ok("done\n".to_owned()));
    bench.config.shell.longest_timeout = Duration::from_millis(1200);
    let too_long = json!({"command": "sleep 30", "timeout_seconds": 3600});
    assert_eq!(
        bench.call("shell", too_long).await,
        Err("[stopped after 1.2 s; that is the longest it may run]".to_owned())
    );
}

#[tokio::test]
async fn closing_its_output_does_not_end_a_command() {
    let bench = Bench::new();
    let command = "exec >/dev/null 2>&1; sleep 0.3; echo hidden; echo made > made.txt";
    let result = bench.call("shell", json!({"command": command})).await;
    assert_eq!(result, Ok("[done, without any output]".to_owned()));
    assert_eq!(bench.get("made.txt"), "made\n");
}

/// The variable that makes a second process of this test program run a command and nothing else.
const COMMAND: &str = "DUOLOGUE_TEST_COMMAND";

/// Not a test of its own: what the second process runs.
#[tokio::test]
async fn in_another_process() {
    let Ok(command) = std::env::var(COMMAND) else { return };
    let mut bench = Bench::new();
    bench.config.shell.pass_variables = vec!["ALLOWED_TOKEN".to_owned()];
    let _ = bench.call("shell", json!({"command": command})).await;
}

fn another_process(command: &str) -> Command {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process
        .args(["--exact", "shell::in_another_process", "--nocapture"])
        .env(COMMAND, command)
        .stdout(std::process::Stdio::null());
    process
}

#[test]
fn secrets_of_the_environment_are_not_handed_down() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let status = another_process(&format!("env > {}", out.display()))
        .env("SOME_API_KEY", "sk-1")
        .env("github_token", "t-2")
        .env("DB_PASSWORD", "p-3")
        .env("ALLOWED_TOKEN", "a-4")
        .env("PLAIN", "p-5")
        .status();
    assert!(status.unwrap().success());
    let environment = std::fs::read_to_string(out).unwrap();
    let has = |line: &str| environment.lines().any(|other| other == line);
    assert!(has("PLAIN=p-5") && has("ALLOWED_TOKEN=a-4") && has("NO_COLOR=1"));
    for secret in ["sk-1", "t-2", "p-3"] {
        assert!(!environment.contains(secret), "{secret}");
    }
}

#[test]
fn a_killed_process_leaves_no_command_behind() {
    let sleep = odd_sleep();
    let command = format!("trap '' TERM; sleep {sleep} & sleep {sleep}");
    let mut victim = another_process(&command).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(10);
    while running(&format!("sleep\0{sleep}")).len() < 2 {
        assert!(Instant::now() < patience, "the command did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_none_left(&sleep);
}
