//! Whether an answer is one that the protocol allows.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::http::Answer;

/// An answer to a JSON-RPC request: a result, an error, or a stream of either.
pub(crate) fn json_rpc(answer: &Answer) -> Result<()> {
    match answer.status {
        200 => {}
        // Before it is JSON-RPC at all: too large, or not for us.
        400 | 403 | 404 | 405 | 413 | 415 | 421 | 429 => return rest(answer),
        status => bail!("status {status}"),
    }
    if answer.content_type.starts_with("text/event-stream") {
        let text = std::str::from_utf8(&answer.body).context("the stream is not UTF-8")?;
        for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            envelope(&serde_json::from_str(line).context("an event is not JSON")?)?;
        }
        return Ok(());
    }
    envelope(&serde_json::from_slice(&answer.body).context("the answer is not JSON")?)
}

fn envelope(reply: &Value) -> Result<()> {
    ensure!(reply.get("jsonrpc") == Some(&"2.0".into()), "no version: {reply}");
    ensure!(reply.get("id").is_some(), "no id: {reply}");
    match (reply.get("result"), reply.get("error")) {
        (Some(_), None) => Ok(()),
        (None, Some(error)) => {
            let code = error.get("code").and_then(Value::as_i64).context("an error has a code")?;
            ensure!(error.get("message").is_some_and(Value::is_string), "no words: {error}");
            // That something broke inside is no answer to whatever a client sends.
            ensure!(code != -32603, "an internal error: {error}");
            Ok(())
        }
        _ => bail!("neither a result nor an error: {reply}"),
    }
}

/// An answer to an HTTP+JSON request: what was asked for, or an error that says what is wrong.
pub(crate) fn rest(answer: &Answer) -> Result<()> {
    let status = answer.status;
    ensure!((200..500).contains(&status) || status == 501, "status {status}: {answer:?}");
    // An empty answer is one to HEAD, or that nothing changed.
    if answer.body.is_empty() {
        return Ok(());
    }
    if answer.content_type.starts_with("text/event-stream") {
        return Ok(());
    }
    let body: Value = serde_json::from_slice(&answer.body)
        .with_context(|| format!("status {status}, and the answer is not JSON"))?;
    if status >= 400 {
        let error = body.get("error").context("an error says what is wrong")?;
        let is_said = error.get("message").is_some_and(Value::is_string);
        ensure!(is_said && error.get("code").is_some(), "an error without words: {body}");
    }
    Ok(())
}
