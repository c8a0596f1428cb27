//! Python's ways with values, where the reference's results show them.

mod calculate;
mod json;
mod number;
mod text;

pub use calculate::{CALCULATED, calculate};
pub use json::{Layout, canonical_hash, canonical_text, dumps, loads, sha256};
pub use number::{add, compare, divide, float_repr, multiply, negate, round, subtract};
pub use text::{repr, str_of, title_case, type_name};
