//! Errors as a person reads them.

use std::error::Error;

/// An error and its causes in one line. Many errors name only the outermost, which says the least.
///
/// ```
/// use duologue_core::with_causes;
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("the page cannot be read")]
/// struct Unread(#[source] std::io::Error);
///
/// let refused = std::io::Error::other("connection refused");
/// assert_eq!(with_causes(&Unread(refused)), "the page cannot be read: connection refused");
/// ```
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        // Some repeat what they wrap.
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text
}
