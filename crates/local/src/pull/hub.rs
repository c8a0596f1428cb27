//! The publisher's repository on the hub, by HTTP.

use std::{fs::OpenOptions, io::Seek, path::PathBuf};

use futures::StreamExt;
use reqwest::{StatusCode, header};

use super::{Job, Meter, write_all};

/// Fetch the file, from where an earlier try stopped.
pub(super) async fn fetch(job: &Job<'_>, repository: &str, name: &str) -> Result<PathBuf, String> {
    // Without a default, building a client panics; somebody else may have set one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let patience = job.options.patience;
    let client = reqwest::Client::builder()
        .connect_timeout(patience)
        .read_timeout(patience * 2)
        .build()
        .map_err(|error| explain(&error))?;
    let path = job.part(".hub");
    let mut part = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|error| error.to_string())?;
    let mut done = part.metadata().map_or(0, |found| found.len());
    if done == job.file.bytes {
        return Ok(path);
    }
    if done > job.file.bytes {
        done = restart(&mut part)?;
    }
    let hub = job.options.hub.trim_end_matches('/');
    let mut request = client.get(format!("{hub}/{repository}/resolve/main/{name}"));
    if done > 0 {
        request = request.header(header::RANGE, format!("bytes={done}-"));
    }
    let answer = tokio::time::timeout(patience, request.send())
        .await
        .map_err(|_| format!("no answer within {} s", patience.as_secs()))?
        .map_err(|error| explain(&error))?;
    match answer.status() {
        StatusCode::PARTIAL_CONTENT if done > 0 => {}
        StatusCode::OK => done = restart(&mut part)?,
        status => return Err(format!("it answered {status}")),
    }
    let mut meter = Meter::new(job);
    meter.tell(done, 0);
    let mut bytes = answer.bytes_stream();
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk.map_err(|error| explain(&error))?;
        done += chunk.len() as u64;
        if done > job.file.bytes {
            restart(&mut part)?;
            return Err(format!("it sends more than the {} bytes of the model", job.file.bytes));
        }
        write_all(&mut part, &chunk)?;
        meter.tell(done, chunk.len() as u64);
    }
    if done < job.file.bytes {
        return Err(format!("it broke off after {done} of {} bytes", job.file.bytes));
    }
    Ok(path)
}

fn restart(part: &mut std::fs::File) -> Result<u64, String> {
    part.set_len(0).map_err(|error| error.to_string())?;
    part.rewind().map_err(|error| error.to_string())?;
    Ok(0)
}

/// The innermost reason: what wraps it only repeats the address.
fn explain(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
