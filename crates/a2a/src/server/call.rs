//! What the headers of a request say.

use a2a::A2AError;
use axum::http::{HeaderMap, HeaderName, Uri};

use crate::{Caller, fault, service::Call, task::Place};

const VERSION: HeaderName = HeaderName::from_static("a2a-version");
const EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// A version of the protocol that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V0_3,
    V1_0,
}

/// The version of a request; one that says nothing means 0.3.
pub(super) fn version(headers: &HeaderMap, uri: &Uri) -> Result<Version, A2AError> {
    let header = headers.get(&VERSION).map(|value| value.to_str().unwrap_or("?"));
    let asked = match header {
        Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
        _ => uri.query().and_then(|query| {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            pairs
                .find(|(key, _)| key.eq_ignore_ascii_case("A2A-Version"))
                .map(|(_, v)| v.into_owned())
        }),
    };
    match asked.as_deref().map(str::trim) {
        None | Some("") => Ok(Version::V0_3),
        Some(text) => {
            // Patch numbers do not count.
            let mut numbers = text.split('.');
            match (numbers.next(), numbers.next()) {
                (Some("1"), Some("0")) => Ok(Version::V1_0),
                (Some("0"), Some("3")) => Ok(Version::V0_3),
                _ => Err(fault::wrong_version(text)),
            }
        }
    }
}

/// What else a request says about itself.
pub(super) fn call(headers: &HeaderMap, caller: Caller) -> Call {
    let extensions = headers.get_all(&EXTENSIONS).iter().filter_map(|value| value.to_str().ok());
    let extensions = extensions.flat_map(|list| list.split(',')).map(|uri| uri.trim().to_owned());
    let last = headers.get(&LAST_EVENT).and_then(|value| value.to_str().ok());
    Call {
        caller,
        extensions: extensions.filter(|uri| !uri.is_empty()).collect(),
        behind: last.and_then(Place::parse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_major_and_minor_and_silence_is_0_3() {
        let uri = |text: &'static str| Uri::from_static(text);
        let read = |text: &str, at: Uri| {
            let headers = HeaderMap::from_iter([(VERSION, text.parse().unwrap())]);
            version(&headers, &at).map_err(|error| error.code)
        };
        assert_eq!(read("1.0", uri("/")), Ok(Version::V1_0));
        assert_eq!(read("1.0.1", uri("/")), Ok(Version::V1_0));
        assert_eq!(read("", uri("/")), Ok(Version::V0_3));
        assert_eq!(read("", uri("/?A2A-Version=1.0")), Ok(Version::V1_0));
        for wrong in ["99.0", "1", "2.0", "one"] {
            assert_eq!(read(wrong, uri("/")), Err(a2a::error_code::VERSION_NOT_SUPPORTED));
        }
        assert!(matches!(version(&HeaderMap::new(), &uri("/")), Ok(Version::V0_3)));
    }
}
