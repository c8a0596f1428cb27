//! Inputs that no client would send: right ones with something wrong in them, and noise.

use fastrand::Rng;
use serde_json::{Map, Value, json};

const METHODS: [&str; 20] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/send",
    "tasks/pushNotificationConfig/set",
    "agent/getAuthenticatedExtendedCard",
    "no/such/method",
];

const FIELDS: [&str; 40] = [
    "message",
    "messageId",
    "message_id",
    "role",
    "parts",
    "text",
    "data",
    "raw",
    "url",
    "kind",
    "file",
    "bytes",
    "mediaType",
    "metadata",
    "contextId",
    "taskId",
    "id",
    "configuration",
    "historyLength",
    "returnImmediately",
    "blocking",
    "pageSize",
    "pageToken",
    "status",
    "state",
    "taskPushNotificationConfig",
    "pushNotificationConfig",
    "token",
    "authentication",
    "tenant",
    "extensions",
    "referenceTaskIds",
    "statusTimestampAfter",
    "includeArtifacts",
    "answers",
    "duologue/path",
    // Of 0.3 over HTTP+JSON.
    "request",
    "content",
    "fileWithBytes",
    "pushNotification",
];

const TEXTS: [&str; 20] = [
    "",
    "a",
    "ROLE_USER",
    "ROLE_AGENT",
    "user",
    "agent",
    "text",
    "data",
    "file",
    "TASK_STATE_WORKING",
    "2026-01-01T00:00:00Z",
    "not a time",
    "http://127.0.0.1:1/x",
    "file:///etc/passwd",
    "\u{0}\u{1}\u{7f}",
    "\u{202e}\u{feff}😀",
    "%00%2e%2e",
    "../../..",
    "9223372036854775808",
    "AAAA====",
];

/// The body of a JSON-RPC request.
pub(crate) fn json_rpc(rng: &mut Rng) -> Vec<u8> {
    let method = pick(rng, &METHODS);
    let mut request = json!({
        "jsonrpc": "2.0",
        "id": rng.u32(..),
        "method": method,
        "params": if rng.u8(..) < 96 { message(rng) } else { value(rng, 4) },
    });
    for _ in 0..rng.usize(..4) {
        spoil(rng, &mut request, 6);
    }
    let mut bytes = serde_json::to_vec(&request).unwrap_or_default();
    if rng.u8(..) < 64 {
        scramble(rng, &mut bytes);
    }
    if rng.u16(..) == 0 {
        // As deep as it goes.
        bytes = [vec![b'['; 20_000], vec![b']'; 20_000]].concat();
    }
    bytes
}

/// Method, path and body of an HTTP+JSON request.
pub(crate) fn rest(rng: &mut Rng) -> (&'static str, Vec<u8>, Vec<u8>) {
    let method = pick(rng, &["GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "BREW"]);
    let segments = [
        "message:send",
        "message:stream",
        "tasks",
        "extendedAgentCard",
        "pushNotificationConfigs",
        ".well-known",
        "agent-card.json",
        "agent.json",
        "x:cancel",
        "x:subscribe",
        "%",
        "%zz",
        "%ff%fe",
        "..",
        "a%2Fb",
        "",
        "☃",
        "v1",
    ];
    // Paths of 0.3 begin so.
    let mut path = if rng.u8(..) < 64 { "/v1".to_owned() } else { String::new() };
    for _ in 0..=rng.usize(..4) {
        path.push('/');
        if rng.bool() {
            path.push_str(pick(rng, &segments));
        } else {
            path.push_str(&format!("{:x}", rng.u64(..)));
        }
    }
    if rng.bool() {
        let names =
            ["pageSize", "pageToken", "historyLength", "status", "contextId", "A2A-Version"];
        let (name, text) = (pick(rng, &names), pick(rng, &TEXTS));
        path.push_str(&format!("?{name}={}&{name}={}", text.replace(' ', "+"), rng.i64(..)));
    }
    // What would end the line early is no path but another request; everything else goes.
    let mut path: Vec<u8> = path.bytes().collect();
    if rng.u8(..) < 32
        && let Some(byte) = path.get_mut(1)
    {
        *byte = rng.u8(0x21..);
    }
    path.retain(|byte| !matches!(byte, b' ' | b'\r' | b'\n' | 0..=0x20 | 0x7f));
    let mut body = serde_json::to_vec(&message(rng)).unwrap_or_default();
    if rng.bool() {
        scramble(rng, &mut body);
    }
    (method, path, body)
}

/// The headers of a request.
pub(crate) fn headers(rng: &mut Rng) -> [&'static str; 3] {
    let types = [
        "Content-Type: application/json",
        "Content-Type: application/json",
        "Content-Type: application/json",
        "Content-Type: application/a2a+json",
        "Content-Type: text/plain",
        "Content-Type: ;;;",
        "X-None: 1",
    ];
    let versions = [
        "A2A-Version: 1.0",
        "A2A-Version: 1.0",
        "A2A-Version: 0.3",
        "A2A-Version: 9.9",
        "A2A-Version: x",
        "X-None: 2",
    ];
    let others = [
        "X-None: 3",
        "Last-Event-ID: 18446744073709551615.4294967295",
        "Last-Event-ID: x",
        "A2A-Extensions: urn:duologue:pieces, ,",
        "Accept: text/event-stream",
    ];
    [pick(rng, &types), pick(rng, &versions), pick(rng, &others)]
}

/// A body of server-sent events.
pub(crate) fn events(rng: &mut Rng) -> Vec<u8> {
    let mut body = Vec::new();
    for _ in 0..rng.usize(1..8) {
        let state = pick(rng, &["working", "completed", "input-required", "nonsense", ""]);
        let mut event = match rng.u8(..4) {
            0 => json!({"jsonrpc": "2.0", "id": 1, "result": {
                "kind": "status-update", "taskId": "t", "contextId": "c", "final": false,
                "status": {"state": state},
            }}),
            1 => json!({"jsonrpc": "2.0", "id": 1, "result": {
                "kind": "task", "id": "t", "contextId": "c", "status": {"state": state},
            }}),
            2 => json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}}),
            _ => value(rng, 3),
        };
        if rng.bool() {
            spoil(rng, &mut event, 5);
        }
        let end: &[u8] = pick(rng, &[b"\n".as_slice(), b"\r\n", b"\r"]);
        let field: &[u8] =
            pick(rng, &[b"data: ".as_slice(), b"data:", b"data", b"id: ", b": ", b""]);
        body.extend_from_slice(field);
        body.extend_from_slice(event.to_string().as_bytes());
        body.extend_from_slice(end);
        if rng.u8(..) < 200 {
            body.extend_from_slice(end);
        }
    }
    if rng.bool() {
        scramble(rng, &mut body);
    }
    body
}

fn pick<T: Copy + Default>(rng: &mut Rng, of: &[T]) -> T {
    of.get(rng.usize(..of.len().max(1))).copied().unwrap_or_default()
}

/// A message as a client sends it.
fn message(rng: &mut Rng) -> Value {
    let mut message = json!({"message": {
        "messageId": format!("m{}", rng.u32(..)),
        "role": pick(rng, &["ROLE_USER", "user"]),
        "parts": [{"text": pick(rng, &TEXTS), "kind": "text"}],
    }});
    if rng.u8(..) < 128 {
        spoil(rng, &mut message, 4);
    }
    message
}

/// Any value at all, not too deep.
fn value(rng: &mut Rng, depth: u32) -> Value {
    match rng.u8(..if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => Value::Bool(rng.bool()),
        2 => json!(rng.i64(..)),
        3 => json!(rng.f64() * 1e300),
        4 => json!(u64::MAX),
        5 => Value::from(pick(rng, &TEXTS)),
        6 => (0..rng.usize(..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => {
            let fields =
                (0..rng.usize(..5)).map(|_| (pick(rng, &FIELDS).to_owned(), value(rng, depth - 1)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

/// Change something somewhere in it.
fn spoil(rng: &mut Rng, whole: &mut Value, depth: u32) {
    let stop = depth == 0 || rng.u8(..) < 64;
    match whole {
        Value::Object(fields) if !stop && !fields.is_empty() => {
            let at = rng.usize(..fields.len());
            if let Some((_, inner)) = fields.iter_mut().nth(at) {
                spoil(rng, inner, depth - 1);
            }
        }
        Value::Array(items) if !stop && !items.is_empty() => {
            let at = rng.usize(..items.len());
            if let Some(inner) = items.get_mut(at) {
                spoil(rng, inner, depth - 1);
            }
        }
        Value::Object(fields) if rng.bool() => {
            fields.insert(pick(rng, &FIELDS).to_owned(), value(rng, 3));
        }
        Value::Object(fields) if rng.bool() && !fields.is_empty() => {
            let at = rng.usize(..fields.len());
            if let Some(name) = fields.keys().nth(at).cloned() {
                fields.remove(&name);
            }
        }
        other => *other = value(rng, 3),
    }
}

/// Break it as bytes.
fn scramble(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..=rng.usize(..4) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.usize(..bytes.len());
        match rng.u8(..4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.u8(..)),
            2 => {
                bytes.remove(at);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = rng.u8(..);
                }
            }
        }
    }
}
