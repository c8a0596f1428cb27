//! A client that hides nothing: what is sent is what was given, and what comes back is read as it is.

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// The most bytes of an answer.
const LARGEST: usize = 64 << 20;

/// A connection that is kept for many requests.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    port: u16,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// Whether the server closes the connection.
    pub(crate) closes: bool,
}

/// How long a body is.
enum Length {
    Exactly(usize),
    Chunked,
    UntilClosed,
}

impl Connection {
    pub(crate) async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), port })
    }

    /// Send a request. `headers` are whole lines without their ends.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &[u8],
        headers: &[&str],
        body: &[u8],
    ) -> Result<()> {
        let mut request = Vec::with_capacity(256 + body.len());
        request.extend_from_slice(method.as_bytes());
        request.push(b' ');
        request.extend_from_slice(path);
        let rest = format!(
            " HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\n",
            self.port,
            body.len()
        );
        request.extend_from_slice(rest.as_bytes());
        for header in headers {
            request.extend_from_slice(header.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request).await?;
        Ok(())
    }

    /// The whole answer.
    pub(crate) async fn answer(&mut self) -> Result<Answer> {
        let (mut answer, length) = self.head().await?;
        match length {
            Length::Exactly(length) => {
                ensure!(length <= LARGEST, "an answer of {length} bytes");
                answer.body.resize(length, 0);
                self.stream.read_exact(&mut answer.body).await?;
            }
            Length::Chunked => {
                while let Some(chunk) = self.chunk().await? {
                    answer.body.extend_from_slice(&chunk);
                    ensure!(answer.body.len() <= LARGEST, "an answer without end");
                }
            }
            Length::UntilClosed => {
                answer.closes = true;
                self.stream.read_to_end(&mut answer.body).await?;
            }
        }
        Ok(answer)
    }

    /// The head of an answer whose body is a stream; [`chunk`](Self::chunk) reads on.
    pub(crate) async fn stream(&mut self) -> Result<Answer> {
        let (answer, length) = self.head().await?;
        match length {
            Length::Chunked => Ok(answer),
            _ => bail!("not a stream: {answer:?}"),
        }
    }

    async fn head(&mut self) -> Result<(Answer, Length)> {
        let status_line = self.line().await?;
        let mut words = status_line.split(' ');
        ensure!(words.next() == Some("HTTP/1.1"), "not HTTP: {status_line:?}");
        let status = words.next().unwrap_or_default().parse().context("the status")?;
        let mut answer =
            Answer { status, content_type: String::new(), body: Vec::new(), closes: false };
        let mut length = Length::UntilClosed;
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok((answer, length));
            }
            let (name, value) = line.split_once(':').context("a header without a colon")?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = Length::Exactly(value.parse()?),
                "transfer-encoding" if value == "chunked" => length = Length::Chunked,
                "content-type" => answer.content_type = value.to_owned(),
                "connection" if value == "close" => answer.closes = true,
                _ => {}
            }
        }
    }

    /// The next piece of a stream; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let line = self.line().await?;
        let size = line.split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).with_context(|| format!("chunk {line:?}"))?;
        ensure!(size <= LARGEST, "a chunk of {size} bytes");
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk).await?;
        self.line().await?;
        Ok((size > 0).then_some(chunk))
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = Vec::new();
        (&mut self.stream).take(64 << 10).read_until(b'\n', &mut line).await?;
        ensure!(line.ends_with(b"\r\n"), "the connection ended");
        line.truncate(line.len() - 2);
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}
