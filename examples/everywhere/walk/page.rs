//! A page on this machine, for the browser.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    thread,
};

use super::Outcome;

/// What the page says.
const PAGE: &str =
    "<!doctype html><title>Sales</title><h1>Sales</h1><p>Today: a sale of 50 euro</p>";

/// Serve the page for as long as the program runs.
pub(super) fn serve() -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            // Whatever is asked for, there is one page.
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{PAGE}",
                PAGE.len()
            );
        }
    });
    Ok(address)
}
