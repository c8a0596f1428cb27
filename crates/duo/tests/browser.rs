//! The browser agent and `duo browse`, with the real program, the installed Chromium and pages on
//! loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs
)]
#![cfg(all(unix, feature = "browser"))]

mod support;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use support::*;

/// Whether there is a browser. Where the test command has set one up, its absence is a failure.
fn has_browser() -> bool {
    match duologue_browser::find_browser(None) {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os("DUOLOGUE_BROWSER").is_none(), "{error}");
            eprintln!("SKIPPED: {error}; `cargo xtask setup` installs one");
            false
        }
    }
}

/// A shop whose orders are there for those who are logged in, and after a while.
struct Shop {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    logged_in: Arc<AtomicBool>,
    ready: Arc<AtomicBool>,
}

impl Shop {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shop = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            logged_in: Arc::default(),
            ready: Arc::default(),
        };
        let (asked, logged_in, ready) =
            (Arc::clone(&shop.asked), Arc::clone(&shop.logged_in), Arc::clone(&shop.ready));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut head = [0; 4096];
                let Ok(read) = stream.read(&mut head) else { continue };
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let path = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
                let page = match path.as_str() {
                    "/" => "<title>Shop</title><h1>The shop</h1><a href=/orders>My orders</a>",
                    "/orders" if !logged_in.load(Ordering::SeqCst) => {
                        "<title>Log in</title><form><input type=password aria-label=Password></form>"
                    }
                    "/orders" => {
                        "<title>Orders</title><p id=p>Loading the orders</p><script>setInterval(() => \
                         fetch('/state').then(r => r.text()).then(t => { p.textContent = t; }), 100)</script>"
                    }
                    "/state" if ready.load(Ordering::SeqCst) => "Order 17 costs 42 euro",
                    "/state" => "Loading the orders",
                    _ => "",
                };
                asked.lock().unwrap().push(path);
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                    page.len()
                );
            }
        });
        shop
    }

    fn has_been_asked(&self, path: &str) -> bool {
        self.asked.lock().unwrap().iter().any(|asked| asked == path)
    }

    fn allow(&self) -> String {
        format!("browser.allow=[\"{}\"]", self.address)
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not come about");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The browser's processes whose profile is in a folder.
fn browsers_in(folder: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter(|entry| {
        let path = entry.as_ref().unwrap().path().join("cmdline");
        let line = std::fs::read(path).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("--user-data-dir=") && line.contains(folder)
    })
    .count()
}

fn script(shop: &Shop) -> String {
    let home = format!("http://{}/", shop.address);
    format!(
        r#"
rules:
  - when: Make a plan
    text: '{{"reasoning": "look, log in, read", "steps": [
      {{"title": "Open the shop", "tool": "navigate"}}, {{"title": "Look at it", "tool": "snapshot"}},
      {{"title": "Go to the orders", "tool": "click"}}, {{"title": "Have the person log in", "tool": "ask_human"}},
      {{"title": "Open the orders", "tool": "tab_new"}}, {{"title": "Wait for the orders", "tool": "wait_for"}},
      {{"title": "Read them", "tool": "read_markdown"}}]}}'
  - when: Check the work
    text: '{{"is_complete": true, "reasoning": "The page says that order 17 costs 42 euro.", "suggestions": [], "confidence": 0.9}}'
  - when: '- [ ] s1'
    calls: [{{ name: navigate, arguments: {{ url: "{home}" }} }}]
  - when: '- [ ] s2'
    calls: [{{ name: snapshot, arguments: {{}} }}]
  - when: '- [ ] s3'
    calls: [{{ name: click, arguments: {{ ref: "f2:e1" }} }}]
  - when: '- [ ] s4'
    calls: [{{ name: ask_human, arguments: {{ question: "Please log in to the shop for me." }} }}]
  - when: '- [ ] s5'
    calls: [{{ name: tab_new, arguments: {{ url: "{home}orders" }} }}]
  - when: '- [ ] s6'
    calls: [{{ name: wait_for, arguments: {{ text: "costs", seconds: 60 }} }}]
  - when: '- [ ] s7'
    calls: [{{ name: read_markdown, arguments: {{}} }}]
"#
    )
}

#[test]
fn a_task_over_several_pages_is_planned_handed_over_killed_resumed_and_checked() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let machine = Machine::new();
    machine.write("shop.yaml", &script(&shop));
    let temporary = machine.work().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let temporary = temporary.to_str().unwrap().to_owned();
    let allow = shop.allow();
    let flags =
        ["-m", "script:shop.yaml", "-a", "browser", "--strategy", "multi_step", "--set", &allow];
    let command = |args: &[&str]| {
        let mut command = machine.command(&[&flags[..], args].concat());
        command.env("TMPDIR", &temporary);
        command
    };

    let ran = ran(command(&["run", "-v", "What does my order cost?"]).output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    assert!(ran.err.contains("Please log in to the shop for me."), "{}", ran.err);
    assert!(ran.err.contains("☑ Go to the orders"), "{}", ran.err);
    assert!(shop.has_been_asked("/orders"));
    wait_until("the end of the browser", || browsers_in(&temporary) == 0);

    // The person logs in, answers, and the process is killed while it waits for the page.
    shop.logged_in.store(true, Ordering::SeqCst);
    let line = ran.err.lines().find(|line| line.contains("duo sessions answer")).unwrap();
    let words: Vec<&str> = line.split_whitespace().skip(1).take(4).collect();
    let answer = [&words[..], &["result", "I am logged in now."]].concat();
    let mut child = command(&answer).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the page of the orders", || shop.has_been_asked("/state"));
    thread::sleep(Duration::from_millis(700));
    assert!(browsers_in(&temporary) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the end of the killed program's browser", || browsers_in(&temporary) == 0);
    let left = || std::fs::read_dir(&temporary).unwrap().count();
    wait_until("the end of all that the browsers put down", || left() == 0);

    shop.ready.store(true, Ordering::SeqCst);
    let id = machine.sessions().remove(0);
    let resumed = support::ran(command(&["sessions", "resume", "-v", &id]).output().unwrap());
    let said = "The page says that order 17 costs 42 euro.\n";
    assert_eq!((resumed.code, resumed.out.as_str()), (0, said), "{}", resumed.err);
    assert!(resumed.err.contains("✔ checked: complete"), "{}", resumed.err);
    wait_until("the end of the browser", || browsers_in(&temporary) == 0);

    let journal = machine.journal(&id);
    let text = serde_json::to_string(&journal).unwrap();
    assert!(text.contains("Order 17 costs 42 euro"), "the page was read after the crash");
    assert!(text.contains("the open pages were loaded anew"), "{text}");
    assert!(text.contains("image/png"), "the journal has pictures");
    let replayed = machine.duo(&[&flags[..], &["sessions", "replay", "-q", &id]].concat());
    assert_eq!(replayed.code, 0, "{}", replayed.err);
}

#[test]
fn a_page_is_tried_by_hand() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let machine = Machine::new();
    let url = format!("http://{}/", shop.address);
    let mut child = machine
        .command(&["browse", &url, "--set", &shop.allow()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines =
        "find query=\"my orders\"\nclick ref=f2:e1\nsnapshot\nclick ref=f9:e9\nnonsense x=1\n";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("# The shop\nf2:e1 link \"My orders\""), "{}", ran.out);
    assert!(ran.out.contains("password \"Password\""), "{}", ran.out);
    assert!(ran.err.contains("there is no f9:e9"), "{}", ran.err);
    assert!(ran.err.contains("there is no tool nonsense"), "{}", ran.err);

    let refused = machine.duo(&["browse", &url]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("must be named on the list of allowed sites"), "{}", refused.err);
}
