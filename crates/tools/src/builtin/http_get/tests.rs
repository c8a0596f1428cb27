//! Pages from servers on this machine, friendly and hostile.

use std::{
    io::Write as _,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use duologue_core::{CallId, Content, Part, Questions, ResultReader, SessionId, ToolContext};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use super::*;

/// A server that answers every path by a function and counts who came.
struct Server {
    host: String,
    visits: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn at<F>(address: &str, answer: F) -> Self
    where
        F: Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let visits = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&visits);
        let answer = Arc::new(answer);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                let answer = Arc::clone(&answer);
                tokio::spawn(serve(stream, answer));
            }
        });
        Self { host, visits, task }
    }

    /// The usual server, at the address that the tests permit.
    async fn new<F>(answer: F) -> Self
    where
        F: Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    {
        Self::at("127.0.0.1", answer).await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    fn port(&self) -> &str {
        self.host.rsplit_once(':').unwrap().1
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve<F: Fn(&str) -> Vec<u8>>(mut stream: TcpStream, answer: Arc<F>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(length) => request.extend(&buffer[..length]),
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let reply = answer(path);
    // The client may hang up in the middle.
    let _ = stream.write_all(&reply).await;
    if path == "/endless" {
        while stream.write_all(&[b'x'; 65536]).await.is_ok() {}
    }
    if path == "/silent" {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

fn reply(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let mut reply =
        format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")
            .into_bytes();
    reply.extend(body);
    reply
}

fn text(body: &str) -> Vec<u8> {
    reply("200 OK\r\ncontent-type: text/plain", body)
}

fn redirect(to: &str) -> Vec<u8> {
    reply(&format!("302 Found\r\nlocation: {to}"), "")
}

#[derive(Debug)]
struct NoResults;

impl ResultReader for NoResults {
    fn result_text(&self, _: CallId) -> BoxFuture<'static, Option<String>> {
        Box::pin(async { None })
    }
}

fn context() -> ToolContext {
    ToolContext {
        session: SessionId::random(),
        call_id: CallId::random(),
        idempotency_key: String::new(),
        cancel: CancellationToken::new(),
        results: Arc::new(NoResults),
        questions: Questions::default(),
    }
}

async fn call(tool: &impl Tool, arguments: Value, context: ToolContext) -> Result<String, String> {
    tool.check(&arguments)?;
    match tool.call(arguments, context).await {
        Ok(Content(parts)) => match parts.as_slice() {
            [Part::Text { text }] => Ok(text.clone()),
            other => panic!("expected one text, got {other:?}"),
        },
        Err(error) => Err(error.0),
    }
}

/// Permits the one address that friendly servers are at, as a person might permit a development
/// server. Everything else of this machine stays private.
fn config() -> HttpConfig {
    HttpConfig {
        private_addresses: PrivateAddresses::Only(vec!["127.0.0.1".parse().unwrap()]),
        ..HttpConfig::default()
    }
}

async fn get(url: &str) -> Result<String, String> {
    call(&http_get(&config()), json!({"url": url}), context()).await
}

/// Answers each lookup by the next list of addresses; the last one stays.
struct Scripted(std::sync::Mutex<Vec<Vec<IpAddr>>>);

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        let mut answers: Vec<Vec<IpAddr>> = answers.iter().map(parse).collect();
        answers.reverse();
        Arc::new(Self(std::sync::Mutex::new(answers)))
    }
}

impl LookUp for Scripted {
    fn look_up(&self, _: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock().unwrap();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop().unwrap(),
        };
        Box::pin(async move { Ok(answer) })
    }
}

#[tokio::test]
async fn a_page_comes_as_text_and_raw_if_asked() {
    let server = Server::new(|path| match path {
        "/plain" => text("as it is\n"),
        "/json" => reply("200 OK\r\ncontent-type: application/json", "{\"a\": 1}"),
        "/latin" => reply("200 OK\r\ncontent-type: text/plain; charset=\"ISO-8859-1\"", b"caf\xe9"),
        "/meta" => reply("200 OK\r\ncontent-type: text/html", b"<meta charset=latin1><p>caf\xe9"),
        "/empty" => text(""),
        "/unnamed" => reply("200 OK\r\ncontent-type: application/octet-stream", "[package]"),
        _ => reply("200 OK\r\ncontent-type: text/html; charset=utf-8", "<h1>Hi</h1><p>a&amp;b"),
    })
    .await;
    for (path, expected) in [
        ("/plain", "as it is\n"),
        ("/json", "{\"a\": 1}"),
        ("/latin", "café"),
        ("/meta", "café"),
        ("/empty", "[the page has no text]"),
        ("/unnamed", "[package]"),
        ("/", "# Hi\na&b"),
    ] {
        assert_eq!(get(&server.url(path)).await, Ok(expected.to_owned()), "{path}");
    }
    let raw = json!({"url": server.url("/"), "raw": true});
    let raw = call(&http_get(&config()), raw, context()).await;
    assert_eq!(raw, Ok("<h1>Hi</h1><p>a&amp;b".to_owned()));
}

#[tokio::test]
async fn addresses_of_this_machine_are_refused_in_every_spelling() {
    let server = Server::new(|_| text("secret")).await;
    let port = server.port();
    let tool = http_get(&HttpConfig::default());
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "１２７.0.0.1",
        "localhost",
        "LOCALHOST",
    ] {
        let url = format!("http://{host}:{port}/");
        let error = call(&tool, json!({"url": url}), context()).await.unwrap_err();
        assert!(error.contains("is not on the public internet"), "{host}: {error}");
    }
    for url in ["http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/"] {
        let error = call(&tool, json!({"url": url}), context()).await.unwrap_err();
        assert!(error.contains("is not on the public internet"), "{url}: {error}");
    }
    assert_eq!(server.visits(), 0);
}

#[tokio::test]
async fn a_redirect_to_the_inside_is_refused_and_never_asked() {
    let inside = Server::at("127.0.0.2", |_| text("secret")).await;
    let (host, port) = (inside.host.clone(), inside.port().to_owned());
    let outside = Server::new(move |path| match path {
        "/literal" => redirect(&format!("http://{host}/")),
        "/number" => redirect(&format!("http://2130706434:{port}/")),
        "/mapped" => redirect(&format!("http://[::ffff:127.0.0.2]:{port}/")),
        "/metadata" => redirect("http://169.254.169.254/latest/"),
        "/far" => redirect("/literal"),
        "/file" => redirect("file:///etc/passwd"),
        "/login" => redirect(&format!("http://user:word@{host}/")),
        "/broken" => redirect("http://[:::"),
        _ => text("?"),
    })
    .await;
    for (path, expected) in [
        ("/literal", "127.0.0.2 is not on the public internet"),
        ("/number", "127.0.0.2 is not on the public internet"),
        ("/mapped", "::ffff:127.0.0.2 is not on the public internet"),
        ("/metadata", "169.254.169.254 is not on the public internet"),
        ("/far", "127.0.0.2 is not on the public internet"),
        ("/file", "only http and https are"),
        ("/login", "a user name or password in an address is not sent"),
        ("/broken", "which is no address"),
    ] {
        let error = get(&outside.url(path)).await.unwrap_err();
        assert!(error.contains(expected), "{path}: {error}");
    }
    assert_eq!(inside.visits(), 0);
}

#[tokio::test]
async fn a_name_is_judged_by_the_address_that_is_connected_to() {
    let server = Server::new(|path| match path {
        "/again" => redirect("/here"),
        _ => text("reached"),
    })
    .await;
    let url = |path: &str| format!("http://rebinding.example:{}{path}", server.port());

    // The name answers well at first and badly when it is looked up again for the redirect.
    let look_up = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let tool = http_get_through(&config(), look_up);
    let error = call(&tool, json!({"url": url("/again")}), context()).await.unwrap_err();
    assert_eq!(
        error,
        "rebinding.example has the address 127.0.0.2, which is not on the public internet, so it \
         is not reached"
    );

    // A single lookup serves both the check and the connection, so a second answer is not used.
    let look_up = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let tool = http_get_through(&config(), look_up);
    let result = call(&tool, json!({"url": url("/")}), context()).await;
    assert_eq!(result, Ok("reached".to_owned()));

    // One bad address among good ones is enough.
    let before = server.visits();
    let look_up = Scripted::new(&[&["127.0.0.1", "10.0.0.7"]]);
    let tool = http_get_through(&config(), look_up);
    let error = call(&tool, json!({"url": url("/")}), context()).await.unwrap_err();
    assert!(error.contains("has the address 10.0.0.7"), "{error}");
    assert_eq!(server.visits(), before);
}

#[tokio::test]
async fn redirects_are_followed_named_and_bounded() {
    let server = Server::new(|path| match path {
        "/a" => redirect("b?x=1"),
        "/b?x=1" => text("arrived"),
        "/no-location" => reply("302 Found", "nowhere"),
        _ => redirect("/loop"),
    })
    .await;
    assert_eq!(
        get(&server.url("/a")).await,
        Ok(format!("[redirected to {}]\narrived", server.url("/b?x=1")))
    );
    let before = server.visits();
    let error = get(&server.url("/loop")).await.unwrap_err();
    assert!(error.ends_with("redirects more than 10 times"), "{error}");
    assert_eq!(server.visits() - before, 11);
    let error = get(&server.url("/no-location")).await.unwrap_err();
    assert!(error.ends_with("answered 302 Found:\nnowhere"), "{error}");
}

#[tokio::test]
async fn a_small_answer_that_unpacks_to_a_huge_one_is_cut() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..300 {
        packed.write_all(&[b'x'; 100_000]).unwrap();
    }
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 500_000, "30 MB in {} bytes", packed.len());
    let server = Server::new(move |_| {
        reply("200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip", &packed)
    })
    .await;
    let begun = Instant::now();
    let page = get(&server.url("/")).await.unwrap();
    assert!(page.ends_with("[the page is longer; only its first 2097152 bytes were read]"));
    assert!(page.len() < 2_100_000);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let server =
        Server::new(|_| b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_vec()).await;
    let config = HttpConfig { most_bytes: 1000, ..config() };
    let page = call(&http_get(&config), json!({"url": server.url("/endless")}), context()).await;
    let note = "\n[the page is longer; only its first 1000 bytes were read]";
    assert_eq!(page, Ok("x".repeat(1000) + note));
}

#[tokio::test]
async fn a_silent_server_is_given_up_and_a_cancelled_call_at_once() {
    let server = Server::new(|_| Vec::new()).await;
    let config = HttpConfig { timeout: Duration::from_millis(300), ..config() };
    let url = server.url("/silent");
    let error = call(&http_get(&config), json!({"url": url}), context()).await;
    assert_eq!(error, Err(format!("{url} took too long to answer")));

    let context = context();
    let cancel = context.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    });
    let begun = Instant::now();
    let tool = http_get(&self::config());
    let error = call(&tool, json!({"url": url}), context).await;
    assert_eq!(error, Err("cancelled".to_owned()));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn failures_are_told_with_their_status_and_cause() {
    let server = Server::new(|path| match path {
        "/missing" => reply("404 Not Found\r\ncontent-type: text/html", "<p>no <b>such</b> page"),
        "/long" => reply("500 Internal Server Error", "e".repeat(100_000)),
        "/image" => reply("200 OK\r\ncontent-type: image/png", b"\x89PNG"),
        "/unnamed" => reply("200 OK", b"GIF89a\0\0"),
        "/bad-gzip" => reply("200 OK\r\ncontent-encoding: gzip", "this is not gzip"),
        "/short" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nless".to_vec(),
        _ => b"not http at all\r\n\r\n".to_vec(),
    })
    .await;
    let error = |path: &'static str| {
        let url = server.url(path);
        async move { get(&url).await.unwrap_err() }
    };
    assert!(error("/missing").await.ends_with("answered 404 Not Found:\nno such page"));
    assert!(error("/long").await.len() < 2200);
    assert!(error("/image").await.ends_with("is not text: its type is image/png"));
    assert!(error("/unnamed").await.ends_with("is not text"));
    for path in ["/bad-gzip", "/short", "/nonsense"] {
        let error = error(path).await;
        assert!(error.contains("could not be read: "), "{path}: {error}");
    }
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    });
    let no_tls = get(&format!("https://{address}/")).await.unwrap_err();
    assert!(no_tls.contains("could not be read: "), "{no_tls}");
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let error = get(&format!("http://{closed}/")).await.unwrap_err();
    assert!(error.contains("Connection refused"), "{error}");
}

#[tokio::test]
async fn what_is_no_web_address_is_refused_before_anything_happens() {
    for (url, expected) in [
        ("", "is no address"),
        ("example.com", "is no address"),
        ("file:///etc/passwd", "\"file:\" is not reached; only http and https are"),
        ("ftp://example.com/", "only http and https are"),
        ("javascript:alert(1)", "only http and https are"),
        ("http://user:secret@example.com/", "a user name or password in an address is not sent"),
        ("http://", "is no address"),
    ] {
        let error = get(url).await.unwrap_err();
        assert!(error.starts_with("url: ") && error.contains(expected), "{url}: {error}");
        assert!(!error.contains("secret"));
    }
    let long = format!("http://example.com/{}", "a".repeat(10_000));
    assert!(get(&long).await.unwrap_err().contains("longer than"));
}
