//! As much of HTTP/1.1 as a fault run needs, on loopback: requests are read, answers written, and
//! every connection is used once.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// More than any request here has.
const MOST_BYTES: u64 = 16 << 20;

/// A request.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// Listen on a free port and give every request to `answer`, each on a thread of its own. It ends
/// with this process.
pub(super) fn serve(
    answer: impl Fn(Request, TcpStream) + Clone + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
                if let Ok(request) = read(&stream) {
                    answer(request, stream);
                }
            });
        }
    });
    Ok(address)
}

fn read(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream.take(MOST_BYTES));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok(Request { path, body })
}

/// Answer with this and close.
pub(super) fn answer(stream: &mut TcpStream, head: &str, kind: &str, body: &str) {
    // Whoever asked may be gone by now.
    let _ = write!(
        stream,
        "HTTP/1.1 {head}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

/// Begin an answer whose length is not known yet.
pub(super) fn begin(stream: &mut TcpStream, kind: &str) {
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
    let _ = stream.flush();
}

/// One call of A2A over JSON-RPC. What is refused is an error with the server's words.
pub(super) fn call(port: u16, method: &str, params: &Value) -> io::Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nA2A-Version: 1.0\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let mut body: Value = serde_json::from_str(body).map_err(io::Error::other)?;
    match body.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(io::Error::other(body.to_string())),
    }
}
