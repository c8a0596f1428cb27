//! The GGUF file format: metadata, and where each tensor's bytes are.
//!
//! Only the header is read here. Nothing in a file is trusted: every count and offset is checked
//! against the file's length before anything is allocated for it.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::{Path, PathBuf},
};

/// Why a model file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not a GGUF file, or a broken one.
    #[error("{}: not a usable GGUF file: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is fine, but this engine cannot run it.
    #[error("{}: {reason}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it needs.
        reason: String,
    },
}

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    Floats(Vec<f32>),
    Integers(Vec<i64>),
}

/// How a tensor's numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q5_0,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
}

impl Kind {
    fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            6 => Self::Q5_0,
            8 => Self::Q8_0,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::Bf16,
            _ => return None,
        })
    }

    /// How many numbers a block holds.
    pub(crate) fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q5_0 | Self::Q8_0 => 32,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// How many bytes a block takes.
    pub(crate) fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 => 18,
            Self::Q5_0 => 22,
            Self::Q8_0 => 34,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }
}

/// Where a tensor is and what it looks like.
#[derive(Clone, Debug)]
pub(crate) struct TensorInfo {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Numbers in a row.
    pub(crate) cols: usize,
    /// Rows; 1 for a vector.
    pub(crate) rows: usize,
    /// Of the first byte, in the file.
    pub(crate) offset: u64,
}

impl TensorInfo {
    pub(crate) fn row_bytes(&self) -> usize {
        self.cols / self.kind.block_len() * self.kind.block_bytes()
    }
}

/// An open model file whose header was read.
#[derive(Debug)]
pub(crate) struct Gguf {
    path: PathBuf,
    file: File,
    metadata: HashMap<String, Value>,
    tensors: HashMap<String, TensorInfo>,
}

impl Gguf {
    pub(crate) fn open(path: &Path) -> Result<Self, GgufError> {
        let io = |source| GgufError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let mut reader = Reader { inner: BufReader::with_capacity(1 << 20, file), left: len };
        let header = read_header(&mut reader, len).map_err(|problem| match problem {
            Problem::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                GgufError::Invalid {
                    path: path.to_owned(),
                    reason: "it ends in the middle of the header".into(),
                }
            }
            Problem::Io(source) => io(source),
            Problem::Invalid(reason) => GgufError::Invalid { path: path.to_owned(), reason },
            Problem::Unsupported(reason) => {
                GgufError::Unsupported { path: path.to_owned(), reason }
            }
        })?;
        Ok(Self {
            path: path.to_owned(),
            file: reader.inner.into_inner(),
            metadata: header.0,
            tensors: header.1,
        })
    }

    pub(crate) fn unsupported(&self, reason: impl Into<String>) -> GgufError {
        GgufError::Unsupported { path: self.path.clone(), reason: reason.into() }
    }

    pub(crate) fn invalid(&self, reason: impl Into<String>) -> GgufError {
        GgufError::Invalid { path: self.path.clone(), reason: reason.into() }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    /// Take a value out, so that a large one need not be copied.
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        self.metadata.remove(key)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn count(&self, key: &str) -> Option<usize> {
        match self.get(key)? {
            Value::Unsigned(number) => usize::try_from(*number).ok(),
            Value::Signed(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    pub(crate) fn float(&self, key: &str) -> Option<f32> {
        match self.get(key)? {
            Value::Float(number) => Some(*number as f32),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(crate) fn require_count(&self, key: &str) -> Result<usize, GgufError> {
        self.count(key)
            .ok_or_else(|| self.invalid(format!("metadata {key} is missing or not a count")))
    }

    pub(crate) fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    pub(crate) fn require_tensor(&self, name: &str) -> Result<&TensorInfo, GgufError> {
        self.tensor(name).ok_or_else(|| self.invalid(format!("tensor {name} is missing")))
    }

    /// Read rows of a tensor, as they are stored.
    pub(crate) fn read_rows(
        &self,
        tensor: &TensorInfo,
        first: usize,
        into: &mut [u8],
    ) -> Result<(), GgufError> {
        let offset = tensor.offset + first as u64 * tensor.row_bytes() as u64;
        read_at(&self.file, into, offset)
            .map_err(|source| GgufError::Io { path: self.path.clone(), source })
    }
}

#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, offset)
}

#[cfg(windows)]
fn read_at(file: &File, mut into: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !into.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, into, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                into = into.get_mut(read..).unwrap_or_default();
                offset += read as u64;
            }
        }
    }
    Ok(())
}

enum Problem {
    Io(io::Error),
    Invalid(String),
    Unsupported(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads little-endian values and knows how much can still come.
struct Reader {
    inner: BufReader<File>,
    left: u64,
}

impl Reader {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        self.left = self.left.saturating_sub(N as u64);
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, Problem> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64, Problem> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    /// A count of things that take at least `each` bytes of the rest of the file.
    fn count(&mut self, each: u64) -> Result<usize, Problem> {
        let count = self.u64()?;
        if count.saturating_mul(each) > self.left {
            return Err(Problem::Invalid(format!(
                "it claims {count} entries in the {} bytes that are left",
                self.left
            )));
        }
        usize::try_from(count).map_err(|_| Problem::Invalid("a count is too large".into()))
    }

    fn text(&mut self) -> Result<String, Problem> {
        let len = self.count(1)?;
        let mut bytes = vec![0; len];
        self.inner.read_exact(&mut bytes)?;
        self.left = self.left.saturating_sub(len as u64);
        String::from_utf8(bytes).map_err(|_| Problem::Invalid("a text is not UTF-8".into()))
    }

    fn value(&mut self) -> Result<Value, Problem> {
        let code = self.u32()?;
        if code != 9 {
            return self.scalar(code);
        }
        let code = self.u32()?;
        let width = match code {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            other => return Err(Problem::Invalid(format!("a list of type {other}"))),
        };
        let count = self.count(width)?;
        match code {
            8 => {
                let texts: Result<Vec<_>, _> = (0..count).map(|_| self.text()).collect();
                texts.map(Value::Texts)
            }
            6 | 12 => {
                let mut floats = Vec::with_capacity(count);
                for _ in 0..count {
                    if let Value::Float(number) = self.scalar(code)? {
                        floats.push(number as f32);
                    }
                }
                Ok(Value::Floats(floats))
            }
            _ => {
                let mut integers = Vec::with_capacity(count);
                for _ in 0..count {
                    integers.push(match self.scalar(code)? {
                        Value::Unsigned(number) => i64::try_from(number).unwrap_or(i64::MAX),
                        Value::Signed(number) => number,
                        Value::Bool(flag) => i64::from(flag),
                        _ => 0,
                    });
                }
                Ok(Value::Integers(integers))
            }
        }
    }

    fn scalar(&mut self, code: u32) -> Result<Value, Problem> {
        Ok(match code {
            0 => Value::Unsigned(u8::from_le_bytes(self.bytes()?).into()),
            1 => Value::Signed(i8::from_le_bytes(self.bytes()?).into()),
            2 => Value::Unsigned(u16::from_le_bytes(self.bytes()?).into()),
            3 => Value::Signed(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Unsigned(self.u32()?.into()),
            5 => Value::Signed(i32::from_le_bytes(self.bytes()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.bytes()?).into()),
            7 => Value::Bool(self.bytes::<1>()? != [0]),
            8 => Value::Text(self.text()?),
            10 => Value::Unsigned(self.u64()?),
            11 => Value::Signed(i64::from_le_bytes(self.bytes()?)),
            12 => Value::Float(f64::from_le_bytes(self.bytes()?)),
            other => return Err(Problem::Invalid(format!("a metadata value of type {other}"))),
        })
    }
}

type Header = (HashMap<String, Value>, HashMap<String, TensorInfo>);

fn read_header(reader: &mut Reader, len: u64) -> Result<Header, Problem> {
    if &reader.bytes::<4>()? != b"GGUF" {
        return Err(Problem::Invalid("it does not begin with GGUF".into()));
    }
    let version = reader.u32()?;
    if !(2..=3).contains(&version) {
        return Err(Problem::Unsupported(format!(
            "GGUF version {version} is not supported (2 and 3 are)"
        )));
    }
    let tensor_count = reader.count(24)?;
    let value_count = reader.count(12)?;
    let mut metadata = HashMap::with_capacity(value_count);
    for _ in 0..value_count {
        let key = reader.text()?;
        metadata.insert(key, reader.value()?);
    }
    let mut tensors = Vec::with_capacity(tensor_count);
    for _ in 0..tensor_count {
        tensors.push(read_tensor(reader)?);
    }
    let alignment = match metadata.get("general.alignment") {
        Some(Value::Unsigned(number)) if number.is_power_of_two() => *number,
        None => 32,
        Some(_) => return Err(Problem::Invalid("general.alignment is not usable".into())),
    };
    let data = reader.inner.stream_position()?.next_multiple_of(alignment);
    let mut by_name = HashMap::with_capacity(tensors.len());
    for mut tensor in tensors {
        let size = (tensor.row_bytes() as u64).checked_mul(tensor.rows as u64);
        let end = size.and_then(|size| data.checked_add(tensor.offset)?.checked_add(size));
        if end.is_none_or(|end| end > len) {
            return Err(Problem::Invalid(format!(
                "tensor {} lies beyond the end of the file (is it cut off?)",
                tensor.name
            )));
        }
        tensor.offset += data;
        by_name.insert(tensor.name.clone(), tensor);
    }
    Ok((metadata, by_name))
}

fn read_tensor(reader: &mut Reader) -> Result<TensorInfo, Problem> {
    let name = reader.text()?;
    let dimensions = reader.u32()?;
    if !(1..=4).contains(&dimensions) {
        return Err(Problem::Invalid(format!("tensor {name} has {dimensions} dimensions")));
    }
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let size = usize::try_from(reader.u64()?).ok().filter(|size| *size > 0);
        shape.push(
            size.ok_or_else(|| Problem::Invalid(format!("tensor {name} has a bad dimension")))?,
        );
    }
    let code = reader.u32()?;
    let kind = Kind::from_code(code).ok_or_else(|| {
        Problem::Unsupported(format!(
            "tensor {name} is stored as type {code}; supported are F32, F16, BF16, Q4_0, Q5_0, \
             Q8_0, Q4_K, Q5_K and Q6_K (a Q4_K_M or Q8_0 file of the same model works)"
        ))
    })?;
    let offset = reader.u64()?;
    let (cols, rest) = shape.split_first().unwrap_or((&1, &[]));
    let rows = rest.iter().try_fold(1_usize, |all, n| all.checked_mul(*n));
    let rows = rows.ok_or_else(|| Problem::Invalid(format!("tensor {name} is too large")))?;
    if cols % kind.block_len() != 0 {
        return Err(Problem::Invalid(format!(
            "tensor {name} has rows of {cols}, which its type cannot store"
        )));
    }
    Ok(TensorInfo { name, kind, cols: *cols, rows, offset })
}
