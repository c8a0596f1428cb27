//! Name patterns for the tools that go through files.

use duologue_core::ToolError;
use globset::{GlobBuilder, GlobMatcher};

/// The longest pattern that is taken.
const LONGEST: usize = 1000;

/// A pattern such as `**/*.rs`. One without a slash matches names in every folder.
pub(crate) fn matcher(pattern: &str) -> Result<GlobMatcher, ToolError> {
    if pattern.len() > LONGEST {
        return Err(ToolError(format!("glob: longer than {LONGEST} bytes")));
    }
    let anywhere = if pattern.contains('/') {
        pattern.strip_prefix('/').unwrap_or(pattern).to_owned()
    } else {
        format!("**/{pattern}")
    };
    GlobBuilder::new(&anywhere)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| ToolError(format!("glob: {}", error.kind())))
}
