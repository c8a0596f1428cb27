//! Small looks at text that several tools share.

/// How much of a file is looked at to tell text from the rest.
const LOOKED_AT: usize = 8 * 1024;

/// Whether bytes are no text: a zero byte near the beginning, as git decides it.
pub(crate) fn looks_binary(beginning: &[u8]) -> bool {
    beginning.iter().take(LOOKED_AT).any(|byte| *byte == 0)
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
