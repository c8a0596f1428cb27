//! The pages that are looked at and acted on, and their server.

use std::collections::HashMap;

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// A page by its name.
pub(crate) struct Page {
    pub(crate) name: &'static str,
    html: String,
}

/// All pages.
pub(crate) fn all() -> Vec<Page> {
    vec![
        Page { name: "form", html: form() },
        Page { name: "list", html: list(300) },
        Page { name: "table", html: table(60) },
        Page { name: "huge", html: huge(5_000) },
    ]
}

/// A form of twenty fields, with a button that counts.
fn form() -> String {
    let fields: String = (1..=20)
        .map(|n| match n % 4 {
            0 => format!(
                "<p><label>Choice {n} <select><option>one<option>two<option>three</select></label>"
            ),
            1 => format!("<p><label><input type=checkbox> Accept {n}</label>"),
            _ => format!("<p><label>Field {n} <input name=f{n}></label>"),
        })
        .collect();
    format!(
        "<!doctype html><title>Form</title><h1>Application</h1><form onsubmit='return false'>{fields}\
         <button type=button onclick=\"this.dataset.n = +(this.dataset.n || 0) + 1; out.textContent = \
         this.dataset.n\">Count</button></form><p id=out>0</p>"
    )
}

/// Search results, as many sites have them.
fn list(items: usize) -> String {
    let items: String = (0..items)
        .map(|n| {
            format!(
                "<li><a href=\"/article/{n}\">Article number {n} about something</a> \
                 <span>by Author {}</span> <button>Save</button></li>",
                n % 17
            )
        })
        .collect();
    format!(
        "<!doctype html><title>Results</title><nav><a href=/>Home</a> <a href=/about>About</a></nav><h1>Results</h1><ul>{items}</ul>"
    )
}

fn table(rows: usize) -> String {
    let rows: String = (0..rows)
        .map(|n| format!("<tr><td>{n}</td><td>Customer {n}</td><td>{}.50</td><td><a href=\"/order/{n}\">Details</a></td></tr>", n * 7))
        .collect();
    format!(
        "<!doctype html><title>Orders</title><h1>Orders</h1><table><tr><th>No</th><th>Name</th><th>Sum</th><th></th></tr>{rows}</table>"
    )
}

/// Twenty thousand nodes.
fn huge(rows: usize) -> String {
    let rows: String =
        (0..rows).map(|n| format!("<p>Row {n} <a href=\"/row/{n}\">Open {n}</a></p>")).collect();
    format!("<!doctype html><title>Huge</title><h1>All of it</h1><main>{rows}</main>")
}

/// Serve the pages; the address.
pub(crate) async fn serve(pages: &[Page]) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let pages: HashMap<String, String> =
        pages.iter().map(|page| (format!("/{}", page.name), page.html.clone())).collect();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 8192];
            let Ok(read) = stream.read(&mut head).await else { continue };
            let head = String::from_utf8_lossy(head.get(..read).unwrap_or_default()).into_owned();
            let path = head.split_whitespace().nth(1).unwrap_or_default();
            let page = pages.get(path).map_or("", String::as_str);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{page}",
                page.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    Ok(address)
}
