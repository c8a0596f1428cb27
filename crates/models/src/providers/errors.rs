//! What a provider's refusal means: its class, how long to wait, and words for a person.

use std::time::{Duration, SystemTime};

use duologue_core::{ErrorClass, ModelError, with_causes};
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use super::redact::Redactor;

/// How much of a provider's own words an error repeats.
const MAX_WORDS: usize = 600;

/// The error for an HTTP status other than success.
pub(crate) fn from_status(
    provider: &str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &str,
    redactor: &Redactor,
) -> ModelError {
    let refusal = Refusal::read(body);
    let class = refusal.class(Some(status.as_u16()));
    let words = match refusal.words.as_str() {
        "" => status.canonical_reason().unwrap_or("no reason given"),
        words => words,
    };
    let text = format!("{provider} answered {}: {words}{}", status.as_u16(), advice(class));
    let mut error = ModelError::new(class, redactor.clean(&text));
    error.retry_after = wait_from_headers(headers, SystemTime::now()).or(refusal.wait);
    error
}

/// The error for a refusal that arrived inside a stream, or as a value without a status.
pub(crate) fn from_stream(provider: &str, body: &Value, redactor: &Redactor) -> ModelError {
    let refusal = Refusal::read_value(body);
    let class = refusal.class(None);
    let words = match refusal.words.as_str() {
        "" => "an error without words",
        words => words,
    };
    let text = format!("{provider} broke off: {words}{}", advice(class));
    let mut error = ModelError::new(class, redactor.clean(&text));
    error.retry_after = refusal.wait;
    error
}

/// The error for a request that found no way to the provider, or lost it.
pub(crate) fn from_transport(
    provider: &str,
    error: reqwest::Error,
    redactor: &Redactor,
) -> ModelError {
    let class = if error.is_timeout() {
        ErrorClass::Timeout
    } else if error.is_builder() {
        ErrorClass::BadRequest
    } else {
        ErrorClass::Network
    };
    let verb = if error.is_connect() { "cannot be reached" } else { "lost the connection" };
    // The address may carry a key, and the person knows it from the configuration.
    let causes = with_causes(&error.without_url());
    ModelError::new(class, redactor.clean(&format!("{provider} {verb}: {causes}")))
}

/// What a person can do about it, where that is known.
fn advice(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Authentication => " (check the key and the account; `duo models` shows which)",
        _ => "",
    }
}

/// The parts of a refusal that matter, from any provider's shape.
#[derive(Debug, Default)]
struct Refusal {
    /// What the provider says, for a person.
    words: String,
    /// The provider's names for the error: type, code, status.
    names: Vec<String>,
    /// The HTTP status that the body itself names.
    status: Option<u16>,
    /// How long the body asks to wait.
    wait: Option<Duration>,
}

impl Refusal {
    fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) if value.is_object() || value.is_array() => Self::read_value(&value),
            _ => Self { words: shorten(body), ..Self::default() },
        }
    }

    fn read_value(body: &Value) -> Self {
        // Gemini wraps the error of a stream in a list.
        let body = body.get(0).unwrap_or(body);
        // Most nest it under `error`; some put a bare text there, some do not nest it.
        let (error, bare) = match body.get("error") {
            Some(Value::String(text)) => (body, Some(text.as_str())),
            Some(error @ Value::Object(_)) => (error, None),
            _ => (body, None),
        };
        let words = bare
            .or_else(|| {
                ["message", "detail", "error_message"]
                    .iter()
                    .find_map(|key| error.get(key)?.as_str())
            })
            .map_or_else(|| shorten(&error.to_string()), shorten);
        let mut refusal = Self { words, ..Self::default() };
        for key in ["type", "code", "status", "reason"] {
            match error.get(key) {
                Some(Value::String(name)) => refusal.names.push(name.to_ascii_lowercase()),
                Some(Value::Number(number)) => {
                    refusal.status = refusal
                        .status
                        .or(number.as_u64().and_then(|code| u16::try_from(code).ok()));
                }
                _ => {}
            }
        }
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                refusal.names.push(reason.to_ascii_lowercase());
            }
            if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                refusal.wait = delay.strip_suffix('s').and_then(seconds);
            }
        }
        refusal
    }

    fn is(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }

    /// Names and words first: several providers hide what happened behind a 400 or a 429.
    fn class(&self, status: Option<u16>) -> ErrorClass {
        let status = status.or(self.status).unwrap_or_default();
        if self.is(&["api_key_invalid", "invalid_api_key", "insufficient_quota", "billing_error"]) {
            return ErrorClass::Authentication;
        }
        // A refusal for length comes as 400, 413 or, for a quota per minute that can never be met, 429.
        if !matches!(status, 401..=404 | 500..) && self.means_overflow() {
            return ErrorClass::ContextOverflow;
        }
        match status {
            401..=403 => ErrorClass::Authentication,
            408 | 504 => ErrorClass::Timeout,
            413 => ErrorClass::ContextOverflow,
            429 => ErrorClass::RateLimited,
            409 | 425 => ErrorClass::Server,
            300..=499 => ErrorClass::BadRequest,
            500.. => ErrorClass::Server,
            _ => self.class_by_name(),
        }
    }

    fn class_by_name(&self) -> ErrorClass {
        if self.is(&[
            "rate_limit_error",
            "rate_limit_exceeded",
            "resource_exhausted",
            "too_many_requests",
        ]) {
            ErrorClass::RateLimited
        } else if self.is(&[
            "authentication_error",
            "permission_error",
            "unauthenticated",
            "permission_denied",
        ]) {
            ErrorClass::Authentication
        } else if self.is(&["timeout_error", "deadline_exceeded"]) {
            ErrorClass::Timeout
        } else if self.is(&[
            "invalid_request_error",
            "invalid_argument",
            "not_found_error",
            "failed_precondition",
        ]) {
            ErrorClass::BadRequest
        } else {
            // What breaks a stream for no named reason may pass: it is tried again.
            ErrorClass::Server
        }
    }

    fn means_overflow(&self) -> bool {
        if self.is(&[
            "context_length_exceeded",
            "exceed_context_size_error",
            "string_above_max_length",
        ]) {
            return true;
        }
        let words = self.words.to_ascii_lowercase();
        OVERFLOW_WORDS.iter().any(|phrase| words.contains(phrase))
    }
}

/// How providers say that a prompt is too long, in lower case.
const OVERFLOW_WORDS: [&str; 13] = [
    // OpenAI, vLLM
    "maximum context length",
    "longer than the maximum model length",
    "request too large",
    // Anthropic
    "prompt is too long",
    "exceed context limit",
    "context window exceeds limit",
    // Gemini
    "exceeds the maximum number of tokens",
    // llama.cpp, LM Studio, Ollama
    "exceeds the available context size",
    "exceeds the context size",
    "context the overflows",
    "input length exceeds the context length",
    // Groq, xAI
    "reduce the length of the messages",
    "maximum prompt length",
];

/// `retry-after` in seconds or as a date, and `retry-after-ms`.
fn wait_from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(wait) = text("retry-after-ms").and_then(seconds) {
        return Some(wait / 1000);
    }
    let value = text("retry-after")?;
    seconds(value).or_else(|| {
        let date = httpdate::parse_http_date(value).ok()?;
        // A date in the past asks for no wait at all.
        Some(date.duration_since(now).unwrap_or_default())
    })
}

fn seconds(text: &str) -> Option<Duration> {
    text.parse::<f64>().ok().and_then(|number| Duration::try_from_secs_f64(number).ok())
}

/// The text in one line and at a length that a terminal can bear.
pub(crate) fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => {
            format!("{}… ({} bytes in all)", line.get(..end).unwrap_or_default(), text.len())
        }
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(status: u16, body: &Value) -> ModelError {
        let status = StatusCode::from_u16(status).unwrap();
        from_status("test", status, &HeaderMap::new(), &body.to_string(), &Redactor::default())
    }

    #[test]
    fn every_status_has_its_class() {
        for (status, class) in [
            (302, ErrorClass::BadRequest),
            (400, ErrorClass::BadRequest),
            (401, ErrorClass::Authentication),
            (402, ErrorClass::Authentication),
            (403, ErrorClass::Authentication),
            (404, ErrorClass::BadRequest),
            (408, ErrorClass::Timeout),
            (413, ErrorClass::ContextOverflow),
            (422, ErrorClass::BadRequest),
            (429, ErrorClass::RateLimited),
            (500, ErrorClass::Server),
            (503, ErrorClass::Server),
            (504, ErrorClass::Timeout),
            (529, ErrorClass::Server),
        ] {
            let error = refused(status, &json!({"error": {"message": "no"}}));
            assert_eq!(error.class, class, "{status}");
            assert!(error.message.starts_with(&format!("test answered {status}: no")), "{error}");
        }
    }

    #[test]
    fn a_prompt_that_is_too_long_is_told_from_other_bad_requests() {
        for body in [
            json!({"error": {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}}),
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
            json!({"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}),
            json!({"error": {"code": 400, "message": "request (9000 tokens) exceeds the available context size (4096 tokens)", "type": "exceed_context_size_error"}}),
            json!({"error": "Trying to keep the first 5000 tokens when context the overflows."}),
            json!({"object": "error", "message": "The decoder prompt is longer than the maximum model length of 4096.", "code": 400}),
        ] {
            assert_eq!(refused(400, &body).class, ErrorClass::ContextOverflow, "{body}");
        }
    }

    #[test]
    fn an_empty_account_is_not_tried_again() {
        let body = json!({"error": {"message": "You exceeded your current quota.", "type": "insufficient_quota"}});
        assert_eq!(refused(429, &body).class, ErrorClass::Authentication);
        let body = json!({"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
            "details": [{"reason": "API_KEY_INVALID"}]}});
        assert_eq!(refused(400, &body).class, ErrorClass::Authentication);
    }

    #[test]
    fn errors_inside_a_stream_are_classed_by_name() {
        for (body, class) in [
            (
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
                ErrorClass::Server,
            ),
            (
                json!({"error": {"type": "rate_limit_error", "message": "slow"}}),
                ErrorClass::RateLimited,
            ),
            (
                json!({"code": "rate_limit_exceeded", "message": "slow", "type": "error"}),
                ErrorClass::RateLimited,
            ),
            (
                json!([{"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}]),
                ErrorClass::Server,
            ),
            (json!({"error": {"message": "odd"}}), ErrorClass::Server),
            (
                json!({"error": {"type": "invalid_request_error", "message": "no"}}),
                ErrorClass::BadRequest,
            ),
        ] {
            assert_eq!(from_stream("test", &body, &Redactor::default()).class, class, "{body}");
        }
    }

    #[test]
    fn the_wait_is_read_from_every_place_where_providers_put_it() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (name, value, wait) in [
            ("retry-after", "7", Some(7.0)),
            ("retry-after", " 1.5 ", Some(1.5)),
            ("retry-after-ms", "250", Some(0.25)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT", Some(10.0)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT", Some(0.0)),
            ("retry-after", "soon", None),
            ("retry-after", "-3", None),
            ("x-other", "7", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(
                wait_from_headers(&headers, now),
                wait.map(Duration::from_secs_f64),
                "{name}: {value}"
            );
        }
        let body = json!({"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]}});
        assert_eq!(refused(429, &body).retry_after, Some(Duration::from_secs(34)));
    }

    #[test]
    fn a_body_that_is_not_json_is_shown_short_and_in_one_line() {
        let page = format!("<html>\n <h1>502 Bad Gateway</h1>\n{}</html>", "x".repeat(5000));
        let error = from_status(
            "test",
            StatusCode::BAD_GATEWAY,
            &HeaderMap::new(),
            &page,
            &Redactor::default(),
        );
        assert_eq!(error.class, ErrorClass::Server);
        assert!(error.message.contains("502 Bad Gateway"), "{error}");
        assert!(error.message.len() < 800 && !error.message.contains('\n'), "{error}");
    }

    #[test]
    fn a_key_in_a_refusal_is_not_repeated() {
        let body = json!({"error": {"message": "Incorrect API key provided: topsecretkey."}});
        let error = from_status(
            "test",
            StatusCode::UNAUTHORIZED,
            &HeaderMap::new(),
            &body.to_string(),
            &Redactor::new(["topsecretkey"]),
        );
        assert!(!error.message.contains("topsecretkey"), "{error}");
        assert_eq!(error.class, ErrorClass::Authentication);
    }
}
