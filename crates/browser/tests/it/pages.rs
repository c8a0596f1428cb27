//! What the tools do on pages of our own: frames, shadow trees, dialogs, files, tabs, drag and
//! drop, endless lists, huge pages, pages that never rest.

use std::time::{Duration, Instant};

use duologue_browser::{BrowserConfig, Scripts};
use serde_json::{Value, json};

use crate::support::{Hand, Server, bytes_of, config, find, has_browser, reference};

const FORM: &str = r#"<!doctype html><title>A form</title>
<h1>Order</h1>
<p>Fill in <b>all</b> of it, see <a href="/terms">the terms</a> first.</p>
<form action="/sent" method="post">
 <label for=name>Name</label> <input id=name name=name required>
 <label>Colour <select name=colour><option>red<option selected>green<option>blue</select></label>
 <label><input type=checkbox name=gift> It is a gift</label>
 <label><input type=radio name=size value=s> Small</label> <label><input type=radio name=size value=l> Large</label>
 <input type=date name=day aria-label="Day">
 <textarea name=note placeholder="Note"></textarea>
 <div id=rich contenteditable aria-label="Rich text">old <b>text</b></div>
 <button disabled>Not yet</button>
 <button>Send</button>
</form>
<div style="display:none">never seen</div><div style="visibility:hidden">nor this</div>
<table><tr><th>Item<th>Price</tr><tr><td>Pen<td>1.20</tr></table>
<div style="height:3000px"></div><a href="/foot">Imprint</a>"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_read_filled_and_sent() {
    if !has_browser() {
        return;
    }
    let server = Server::with(&[("/", FORM), ("/sent", "<title>Done</title><p>Thank you")]).await;
    let hand = Hand::at(&server);
    let page = hand.open(&server.url("/")).await;
    let shown = page.split_once('\n').unwrap().1.split("\n⟦end").next().unwrap();
    let expected = "# Order\n\
        Fill in all of it, see [f2:e1 link \"the terms\"] first.\n\
        [f2:e2 textbox \"Name\" (required)] [f2:e3 combobox \"Colour\" = \"green\" of: red | green | blue] \
        [f2:e4 checkbox \"It is a gift\"] [f2:e5 radio \"Small\"] [f2:e6 radio \"Large\"] [f2:e7 date \"Day\"] \
        [f2:e8 textbox \"Note\" (multiline)]\n\
        f2:e9 textbox \"Rich text\" = \"old text\"\n\
        [f2:e10 button \"Not yet\" (disabled)] [f2:e11 button \"Send\"]\n\
        | Item | Price\n\
        | Pen | 1.20\n\
        -- below the view:\n\
        f2:e12 link \"Imprint\"";
    assert_eq!(shown, expected);
    let whole = hand.call("snapshot", json!({"within": "the form"})).await;
    assert!(whole.starts_with("\"the form\" is no reference"), "{whole}");
    assert!(whole.contains("# Order") && whole.contains("link \"Imprint\""), "{whole}");

    hand.call("fill", json!({"ref": reference(&page, "textbox \"Name\""), "text": "Ada Lovelace"}))
        .await;
    hand.call("select", json!({"ref": reference(&page, "combobox"), "options": ["blue"]})).await;
    hand.call("check", json!({"ref": reference(&page, "checkbox")})).await;
    hand.call("check", json!({"ref": reference(&page, "radio \"Large\"")})).await;
    hand.call("fill", json!({"ref": reference(&page, "date"), "text": "2026-11-15"})).await;
    hand.call("fill", json!({"ref": reference(&page, "textbox \"Note\""), "text": "two\nlines"}))
        .await;
    hand.call("fill", json!({"ref": reference(&page, "Rich text"), "text": "new"})).await;
    let disabled = hand.try_call("click", json!({"ref": reference(&page, "Not yet")})).await;
    assert!(disabled.unwrap_err().contains("is disabled"));
    let wrong = json!({"ref": reference(&page, "combobox"), "options": ["pink"]});
    let error = hand.try_call("select", wrong).await.unwrap_err();
    assert!(
        error.contains("there is no option \"pink\"; there are \"red\", \"green\", \"blue\""),
        "{error}"
    );

    let page = hand.snapshot().await;
    for holds in [
        "\"Name\" = \"Ada Lovelace\"",
        "= \"blue\"",
        "gift\" (checked)",
        "Large\" (checked)",
        "= \"2026-11-15\"",
        "= \"two\\nlines\"",
        "\"Rich text\" = \"new\" (focused)",
    ] {
        assert!(page.contains(holds), "{holds} in\n{page}");
    }
    let send = reference(&page, "button \"Send\"");
    let said = hand.click(&send).await;
    assert!(said.contains("/sent; older references are stale"), "{said}");
    let sent = &server.asked()[1];
    assert_eq!(
        (sent.method.as_str(), sent.body.as_str()),
        ("POST", "name=Ada+Lovelace&colour=blue&gift=on&size=l&day=2026-11-15&note=two%0D%0Alines")
    );
    let stale = hand.try_call("click", json!({"ref": send})).await.unwrap_err();
    assert!(stale.contains("is stale"), "{stale}");
    let said = hand.call("back", json!({})).await;
    assert!(said.contains("older references are stale"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_both_kinds_and_shadow_trees_of_both_kinds_are_seen_and_acted_on() {
    if !has_browser() {
        return;
    }
    let outer = r#"<title>Outer</title><p>Outside
        <iframe title=near src="{here}/inner?near" width=400 height=120></iframe>
        <iframe title=far src="{there}/inner?far" width=400 height=120></iframe>
        <open-one></open-one><closed-one>slotted text</closed-one>
        <script>
        for (const [name, mode] of [['open-one', 'open'], ['closed-one', 'closed']])
          customElements.define(name, class extends HTMLElement { connectedCallback() {
            const root = this.attachShadow({mode});
            root.innerHTML = `<button>Press ${mode}</button> <input aria-label="Field ${mode}"> <slot></slot>`;
            root.querySelector('button').onclick = () => { document.title += ' ' + mode + '=' + root.querySelector('input').value; };
          } });
        </script>"#;
    let inner = r#"<p>Inside <button onclick="parent.postMessage(location.search, '*'); this.textContent = 'Pressed'">Inner button</button>
        <input aria-label="Inner field" oninput="document.querySelector('p').append(' got ' + this.value)">"#;
    let server = Server::with(&[("/", outer), ("/inner", inner)]).await;
    let hand = Hand::at(&server);
    let page = hand.open(&server.url("/")).await;
    assert!(page.contains("iframe \"near\"") && page.contains("iframe \"far\""), "{page}");
    assert!(page.contains("slotted text"), "{page}");
    let inner: Vec<&str> = page.lines().filter(|line| line.contains("Inner button")).collect();
    assert_eq!(inner.len(), 2, "{page}");
    for line in inner {
        hand.click(&reference(line, "button \"Inner button\"")).await;
        let field = reference(line, "textbox \"Inner field\"");
        hand.call("fill", json!({"ref": field, "text": "words"})).await;
    }
    let page_after = hand.snapshot().await;
    let pressed = page_after
        .lines()
        .filter(|line| line.contains("\"Pressed\"") && line.contains("got words"));
    assert_eq!(pressed.count(), 2, "{page_after}");
    for mode in ["open", "closed"] {
        let field = reference(&page, &format!("textbox \"Field {mode}\""));
        hand.call("fill", json!({"ref": field, "text": mode})).await;
        hand.click(&reference(&page, &format!("button \"Press {mode}\""))).await;
    }
    let page = hand.snapshot().await;
    assert!(page.contains("\"Outer open=open closed=closed\""), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_hold_a_page_until_they_are_answered() {
    if !has_browser() {
        return;
    }
    let page = r#"<title>Dialogs</title><button onclick="out.textContent = prompt('Your name?') + ' ' + confirm('Sure?')">Ask me</button>
        <p id=out></p>"#;
    let server = Server::with(&[("/", page)]).await;
    let hand = Hand::at(&server);
    let page = hand.open(&server.url("/")).await;
    let said = hand.click(&reference(&page, "Ask me")).await;
    assert!(said.contains("a dialog (prompt) with the text \"Your name?\" opened"), "{said}");
    let held = hand.try_call("snapshot", json!({})).await.unwrap_err();
    assert!(held.contains("handle_dialog"), "{held}");
    let said = hand.call("handle_dialog", json!({"accept": true, "text": "Ada"})).await;
    assert!(said.contains("a dialog (confirm) with the text \"Sure?\" opened"), "{said}");
    hand.call("handle_dialog", json!({"accept": false})).await;
    assert!(hand.snapshot().await.contains("Ada false"));
    let none = hand.try_call("handle_dialog", json!({"accept": true})).await;
    assert_eq!(none.unwrap_err(), "no dialog is open");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_go_up_and_come_down_inside_the_workspace() {
    if !has_browser() {
        return;
    }
    let page = r#"<title>Files</title><a href="/report.csv" download="report.csv">Report</a>
        <input type=file id=f aria-label="Attachment" onchange="f.files[0].text().then(t => out.textContent = f.files[0].name + ': ' + t)">
        <button onclick="f.click()">Choose</button><p id=out></p>"#;
    let page = page.to_owned();
    let server = Server::of(move |asked, _| match asked.path.as_str() {
        "/" => Some(("text/html".into(), String::new(), page.clone().into_bytes())),
        "/report.csv" => Some((
            "text/csv".into(),
            "Content-Disposition: attachment; filename=\"report.csv\"\r\n".into(),
            b"a,b\n1,2\n".to_vec(),
        )),
        _ => None,
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("letter.txt"), "Dear Ada").unwrap();
    let hand = Hand::with_files(&server, folder.path());
    let page = hand.open(&server.url("/")).await;
    let link = reference(&page, "link \"Report\"");
    let said = hand.call("download", json!({"ref": link, "path": "in/report.csv"})).await;
    assert!(said.starts_with("kept report.csv"), "{said}");
    assert_eq!(std::fs::read_to_string(folder.path().join("in/report.csv")).unwrap(), "a,b\n1,2\n");
    let by_address = json!({"url": server.url("/report.csv"), "path": "again.csv"});
    hand.call("download", by_address).await;
    assert!(folder.path().join("again.csv").exists());

    for what in ["file \"Attachment\"", "button \"Choose\""] {
        let place = reference(&page, what);
        hand.call("upload", json!({"ref": place, "paths": ["letter.txt"]})).await;
        assert!(hand.snapshot().await.contains("letter.txt: Dear Ada"), "{what}");
        hand.call("navigate", json!({"url": server.url("/")})).await;
        let page = hand.snapshot().await;
        if what.starts_with("file") {
            assert!(!page.contains("Dear Ada"));
            let place = reference(&page, "button \"Choose\"");
            hand.call("upload", json!({"ref": place, "paths": ["letter.txt"]})).await;
            assert!(hand.snapshot().await.contains("letter.txt: Dear Ada"));
            break;
        }
    }
    let outside =
        json!({"ref": reference(&hand.snapshot().await, "file"), "paths": ["../../etc/passwd"]});
    assert!(hand.try_call("upload", outside).await.unwrap_err().contains(".."));
    hand.call("save_pdf", json!({"path": "page.pdf"})).await;
    assert!(std::fs::read(folder.path().join("page.pdf")).unwrap().starts_with(b"%PDF"));
    let picture = hand.parts("screenshot", json!({"full_page": true})).await.unwrap();
    assert!(bytes_of(&picture[1]).starts_with(b"\x89PNG"));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_tabs_are_told_of_and_can_be_worked_in() {
    if !has_browser() {
        return;
    }
    let server = Server::with(&[
        ("/", "<title>One</title><a href=/two target=_blank>Open two</a>"),
        ("/two", "<title>Two</title><p>The second page <button onclick='window.close()'>Close me</button>"),
    ])
    .await;
    let hand = Hand::at(&server);
    let page = hand.open(&server.url("/")).await;
    let said = hand.click(&reference(&page, "Open two")).await;
    assert!(said.contains("a new tab opened: t2"), "{said}");
    let tabs = hand.call("tab_switch", json!({"tab": "t2"})).await;
    assert!(tabs.contains("t2 (current)"), "{tabs}");
    let page = hand.snapshot().await;
    assert!(page.contains("The second page"), "{page}");
    let elsewhere = hand.call("tab_switch", json!({"tab": "t1"})).await;
    assert!(elsewhere.contains("t1 (current)"));
    let error =
        hand.try_call("click", json!({"ref": reference(&page, "Close me")})).await.unwrap_err();
    assert!(error.contains("is in another tab; switch to t2"), "{error}");
    hand.call("tab_close", json!({"tab": "t2"})).await;
    hand.call("tab_new", json!({"url": server.url("/two")})).await;
    let tabs = hand.call("tabs_list", json!({})).await;
    assert_eq!(tabs.lines().count(), 2, "{tabs}");
    assert!(tabs.contains("t3 (current)"), "{tabs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn things_are_dragged_by_the_mouse_and_by_the_browsers_own_drag_and_drop() {
    if !has_browser() {
        return;
    }
    let page = r#"<title>Drag</title>
        <div id=a draggable=true ondragstart="event.dataTransfer.setData('text', 'carried')" style="width:80px;height:30px;background:tan">Card</div>
        <div id=b ondragover="event.preventDefault()" ondrop="event.preventDefault(); b.textContent = 'Got ' + event.dataTransfer.getData('text')" onclick="" style="width:200px;height:80px;margin:30px;background:wheat">Target</div>
        <input type=range min=0 max=100 value=0 aria-label="Slider" style="width:200px">"#;
    let server = Server::with(&[("/", page)]).await;
    let hand = Hand::at(&server);
    let page = hand.open(&server.url("/")).await;
    let (card, target) = (reference(&page, "\"Card\""), reference(&page, "\"Target\""));
    hand.call("drag", json!({"ref": card, "to": target})).await;
    let page = hand.snapshot().await;
    assert!(page.contains("Got carried"), "{page}");
    hand.call("drag", json!({"ref": reference(&page, "slider"), "dx": 80})).await;
    let page = hand.snapshot().await;
    let value = page.lines().find(|line| line.contains("slider")).unwrap();
    let value: f64 = value.split('"').nth(3).unwrap().parse().unwrap();
    assert!(value > 80.0, "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_list_grows_as_it_is_scrolled() {
    if !has_browser() {
        return;
    }
    let page = r#"<title>Endless</title><ul id=list></ul><script>
        let n = 0;
        const more = () => fetch('/slow?' + n).then(() => { for (let i = 0; i < 40; i++) { const li = document.createElement('li'); li.style.height = '40px'; li.textContent = 'Item ' + (++n); list.append(li); } });
        more(); addEventListener('scroll', () => { if (scrollY + innerHeight > document.body.scrollHeight - 50) more(); });
        </script>"#;
    let server = Server::with(&[("/", page), ("/slow", "x")]).await;
    let hand = Hand::at(&server);
    let page = hand.open(&server.url("/")).await;
    assert!(page.contains("- Item 40") && !page.contains("- Item 41"), "{page}");
    assert!(page.contains("-- below the view:\n- Item"), "{page}");
    let said = hand.call("scroll", json!({"to": "bottom"})).await;
    assert!(said.starts_with("scrolled the page"), "{said}");
    let page = hand.snapshot().await;
    assert!(page.contains("- Item 80"), "{page}");
    assert!(page.contains("-- above the view:"), "{page}");
    let found = hand.call("find", json!({"query": "Item 77"})).await;
    let place = reference(&found, "Item 77");
    hand.call("scroll", json!({"ref": place})).await;
    let wait = json!({"text": "Item 121", "seconds": 0.5});
    assert!(hand.try_call("wait_for", wait).await.unwrap_err().contains("is not on the page"));
}

fn huge(nodes: usize) -> String {
    let mut page = String::from("<!doctype html><title>Huge</title><h1>All of it</h1><main>");
    // Four nodes for each: two elements and two texts.
    for n in 0..nodes / 4 {
        page.push_str(&format!("<p>Row {n} <a href=\"/row/{n}\">Open {n}</a></p>"));
    }
    page + "</main>"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_twenty_thousand_nodes_fits_the_budget_and_is_still_searched_whole() {
    if !has_browser() {
        return;
    }
    let page = huge(20_000);
    let server = Server::with(&[("/", &page)]).await;
    let hand = Hand::at(&server);
    hand.call("navigate", json!({"url": server.url("/")})).await;
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let page = hand.snapshot().await;
        best = best.min(began.elapsed());
        assert!(page.len() <= 6_000 * 4 + 600, "{}", page.len());
        assert!(page.contains("elements left out here"));
    }
    eprintln!("20,000 nodes: {best:?}");
    // Debug code on a busy machine; `cargo xtask bench browser` holds the release to 300 ms.
    let bound = if cfg!(debug_assertions) { 3_000 } else { 300 };
    assert!(best < Duration::from_millis(bound), "{best:?}");
    let found = hand.call("find", json!({"query": "Open 4999", "limit": 1})).await;
    let place = find(&found, "link \"Open 4999\"").unwrap();
    let said = hand.click(&place).await;
    assert!(said.contains("/row/4999"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_never_rests_does_not_hold_anybody_up() {
    if !has_browser() {
        return;
    }
    let page = r#"<title>Restless</title><p id=n>0</p><button onclick="this.textContent = 'Done'">Press</button><script>
        const beat = () => { n.textContent = +n.textContent + 1; fetch('/beat').catch(() => 0).then(() => setTimeout(beat, 20)); }; beat();
        setInterval(() => { n.style.left = Math.random() + 'px'; }, 5);
        </script>"#;
    let server = Server::with(&[("/", page), ("/beat", "x")]).await;
    let hand =
        Hand::new(BrowserConfig { settle: Duration::from_secs(1), ..config(&server.sites()) });
    let page = hand.open(&server.url("/")).await;
    let began = Instant::now();
    let said = hand.click(&reference(&page, "Press")).await;
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    assert!(hand.snapshot().await.contains("\"Done\""), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_read_as_markdown_and_as_data() {
    if !has_browser() {
        return;
    }
    let page = r#"<title>Shop</title><h1>Pens</h1><p>The <a href="/best">best</a> of <em>them</em>.
        <ol><li>First<li>Second</ol><pre>let x = 1;
  y</pre>
        <table><tr><th>Name<th>Unit price<th>In stock</tr><tr><td>Red<td>€ 1,20<td>yes</tr><tr><td>Blue<td>€ 1.234,50<td>no</tr></table>
        <div class=card><h3 class=title>One</h3><span class=price>$3.50</span><a href=/one>more</a></div>
        <div class=card><h3 class=title>Two</h3><span class=price>$4</span><a href=/two>more</a></div>
        <dl><dt>Opened<dd>1999<dt>Owner<dd>Ada</dl>"#;
    let server = Server::with(&[("/", page)]).await;
    let hand = Hand::at(&server);
    hand.open(&server.url("/")).await;
    let text = hand.call("read_markdown", json!({})).await;
    let here = server.url("");
    for part in [
        "# Pens\n\n",
        &format!("The [best]({here}/best) of *them*.") as &str,
        "1. First\n2. Second",
        "```\nlet x = 1;\n  y\n```",
        "| Name | Unit price | In stock |\n| --- | --- | --- |\n| Red | € 1,20 | yes |",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
    let data = async |schema: Value| {
        let parts = hand.parts("extract", json!({"schema": schema})).await.unwrap();
        match &parts[1] {
            duologue_core::Part::Data { value } => value.clone(),
            other => panic!("{other:?}"),
        }
    };
    let table = json!({"type": "array", "items": {"type": "object", "required": ["name", "unit_price"], "properties": {
        "name": {"type": "string"}, "unit_price": {"type": "number"}, "inStock": {"type": "boolean"}}}});
    let expected = json!([{"name": "Red", "unit_price": 1.2, "inStock": true}, {"name": "Blue", "unit_price": 1234.5, "inStock": false}]);
    assert_eq!(data(table).await, expected);
    let cards = json!({"type": "array", "items": {"type": "object", "properties": {
        "title": {"type": "string"}, "price": {"type": "number"}, "link": {"type": "string", "format": "uri"}}}});
    let expected = json!([{"title": "One", "price": 3.5, "link": format!("{here}/one")}, {"title": "Two", "price": 4.0, "link": format!("{here}/two")}]);
    assert_eq!(data(cards).await, expected);
    let shop = json!({"type": "object", "required": ["owner", "opened"], "properties": {
        "owner": {"type": "string"}, "opened": {"type": "integer"}}});
    assert_eq!(data(shop).await, json!({"owner": "Ada", "opened": 1999}));
    let missing = json!({"type": "object", "required": ["vat"], "properties": {"owner": {"type": "string"}, "vat": {"type": "string"}}});
    let error = hand.try_call("extract", json!({"schema": missing})).await.unwrap_err();
    assert!(error.contains("vat: missing"), "{error}");
    let lines = hand.call("grep_elements", json!({"pattern": "^\\| (red|blue)"})).await;
    assert_eq!(lines.lines().count(), 4, "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_crashes_is_told_and_can_be_left() {
    if !has_browser() {
        return;
    }
    let server = Server::with(&[("/", "<title>Here</title><button>Go</button>")]).await;
    let hand = Hand::new(config(&server.sites()));
    let page = hand.open(&server.url("/")).await;
    let button = reference(&page, "Go");
    let renderers = hand.renderers();
    assert!(!renderers.is_empty());
    let browsers = hand.processes();
    for process in renderers {
        let _ = std::process::Command::new("kill").args(["-9", &process]).status();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let said = hand.try_call("click", json!({"ref": button})).await.unwrap_err();
    assert!(said.contains("crashed"), "{said}");
    let page = hand.open(&server.url("/")).await;
    assert!(page.contains("\"Go\""), "{page}");
    assert_eq!(hand.processes(), browsers, "the browser itself lives on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_browser_is_an_error_and_the_next_call_starts_another() {
    if !has_browser() {
        return;
    }
    let server = Server::with(&[("/", "<title>Here</title><button>Old</button>")]).await;
    let hand = Hand::new(BrowserConfig { scripts: Scripts::On, ..config(&server.sites()) });
    let page = hand.open(&server.url("/")).await;
    let old = reference(&page, "Old");
    let crashed = hand.try_call("navigate", json!({"url": "chrome://crash"})).await.unwrap_err();
    assert!(crashed.contains("are not opened"), "{crashed}");
    // The whole browser dies under a call.
    let killed = hand.processes();
    assert!(!killed.is_empty());
    for process in killed {
        let _ = std::process::Command::new("kill").args(["-9", &process]).status();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let said = hand.try_call("snapshot", json!({})).await;
    // A new browser with an empty page.
    assert!(said.is_ok_and(|page| page.contains("about:blank")));
    let stale = hand.try_call("click", json!({"ref": old})).await.unwrap_err();
    assert!(stale.contains("is stale"), "{stale}");
    assert!(hand.open(&server.url("/")).await.contains("\"Old\""));
    let processes = hand.processes();
    drop(hand);
    tokio::time::sleep(Duration::from_millis(300)).await;
    for process in processes {
        assert!(!std::path::Path::new(&format!("/proc/{process}/exe")).exists(), "{process} lives");
    }
}
