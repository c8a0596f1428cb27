//! Where a browser may not go, and browsers that are not ours.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use duologue_browser::{BrowserConfig, Source, find_browser};
use serde_json::json;

use crate::support::{Hand, Server, config, has_browser, reference};

#[tokio::test(flavor = "multi_thread")]
async fn a_page_cannot_reach_into_the_machine() {
    if !has_browser() {
        return;
    }
    let inside = Server::with(&[("/secret", "the router's page")]).await;
    let target = inside.url("/secret");
    let page = format!(
        "<title>Curious</title><img src=\"{target}?img\"><iframe src=\"{target}?frame\"></iframe>\
         <a href=\"{target}?link\">Go inside</a><script>fetch('{target}?fetch', {{mode: 'no-cors'}})</script>\
         <a href=\"file:///etc/passwd\">Open a file</a>"
    );
    let server = Server::with(&[("/", &page)]).await;
    let hand = Hand::new(config(&[server.address.to_string()]));
    let said = hand.call("navigate", json!({"url": server.url("/")})).await;
    assert!(said.contains("was blocked: 127.0.0.1 is an address of this machine"), "{said}");
    let page = hand.snapshot().await;
    let said = hand.click(&reference(&page, "Go inside")).await;
    assert!(said.contains("which must be named on the list of allowed sites"), "{said}");
    hand.click(&reference(&page, "Open a file")).await;
    assert!(hand.snapshot().await.contains("Curious"), "the page stays");
    for address in
        [target.as_str(), "file:///etc/passwd", "chrome://version", "view-source:about:blank"]
    {
        let refused = hand.try_call("navigate", json!({"url": address})).await;
        assert!(refused.is_err(), "{address}: {refused:?}");
    }
    assert_eq!(inside.asked(), []);

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), "<title>A file</title><p>From a file").unwrap();
    let address = format!("file://{}", folder.path().display());
    let hand = Hand::new(config(std::slice::from_ref(&address)));
    let page = hand.open(&format!("{address}/page.html")).await;
    assert!(page.contains("From a file"), "{page}");
}

/// All processes of somebody's browser, ended also when the test fails.
struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-9", "--", &format!("-{}", self.0)]).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_runs_already_is_used_in_a_tab_of_its_own_and_left_running() {
    if !has_browser() {
        return;
    }
    let profile = tempfile::tempdir().unwrap();
    let mut theirs = Command::new(find_browser(None).unwrap())
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("data:text/html,<title>Theirs</title>")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let group = Group(theirs.id());
    let mut lines = BufReader::new(theirs.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("DevTools listening on")).unwrap();
    let address = line.split("ws://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    std::thread::spawn(move || lines.for_each(drop));

    let server = Server::with(&[(
        "/",
        "<title>Ours</title><button onclick=\"document.title='Done'\">Press</button>",
    )])
    .await;
    let source = Source::Attach(format!("http://{address}"));
    let hand = Hand::new(BrowserConfig { source, ..config(&server.sites()) });
    let page = hand.open(&server.url("/")).await;
    hand.click(&reference(&page, "Press")).await;
    assert!(hand.snapshot().await.contains("\"Done\""));
    let tabs = hand.call("tabs_list", json!({})).await;
    assert_eq!(tabs.lines().count(), 1, "their tab is not ours: {tabs}");
    hand.close().await;
    assert!(theirs.try_wait().unwrap().is_none(), "it is left running");
    drop(group);
    theirs.wait().unwrap();

    let nobody = Source::Attach("http://127.0.0.1:9".into());
    let hand = Hand::new(BrowserConfig { source: nobody, ..config(&[]) });
    let error = hand.try_call("snapshot", json!({})).await.unwrap_err();
    assert!(error.contains("--remote-debugging-port=9222"), "{error}");
}
