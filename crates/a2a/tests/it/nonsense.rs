//! Whatever is sent, the answer is a valid one.

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;

use crate::support::*;

/// Requests that are nearly right, and some that are not at all.
fn requests() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        "[ -~]{0,12}".prop_map(|value| json!(value)),
        Just(json!("ROLE_USER")),
        Just(json!({"text": "x"})),
    ];
    let names = prop_oneof![
        Just("message"),
        Just("messageId"),
        Just("message_id"),
        Just("role"),
        Just("parts"),
        Just("id"),
        Just("taskId"),
        Just("contextId"),
        Just("configuration"),
        Just("metadata"),
        Just("historyLength"),
        Just("pageToken"),
        Just("url"),
        Just("kind"),
    ];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| json!(items)),
            prop::collection::vec((names.clone(), inner), 0..5).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    });
    let methods = prop_oneof![
        Just("SendMessage"),
        Just("GetTask"),
        Just("ListTasks"),
        Just("CancelTask"),
        Just("CreateTaskPushNotificationConfig"),
        Just("GetTaskPushNotificationConfig"),
        Just("message/send"),
        Just("tasks/send"),
        Just("tasks/get"),
        Just("Nonsense"),
    ];
    prop_oneof![
        4 => (methods, value).prop_map(|(method, params)| {
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
        }),
        1 => "\\PC{0,80}",
    ]
}

#[test]
fn no_request_breaks_the_server() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (client, _serving) = runtime.block_on(async {
        let serving = serve(agent([Turn::text("Done.")], &World::default()).build()).await;
        (Client::new(&serving), serving)
    });
    let mut runner = TestRunner::new(ProptestConfig { cases: 300, ..ProptestConfig::default() });
    let cases = (requests(), prop_oneof![Just("1.0"), Just("")]);
    let result = runner.run(&cases, |(body, version)| {
        let reply = runtime.block_on(async {
            let request = client.http.post(&client.url).header("a2a-version", version);
            let request = request.header("content-type", "application/json").body(body);
            request.send().await.unwrap().json::<Value>().await.unwrap()
        });
        prop_assert_eq!(&reply["jsonrpc"], "2.0");
        let has = |name: &str| reply.get(name).is_some();
        prop_assert!(has("result") != has("error"), "{}", reply);
        if has("error") {
            prop_assert!(reply["error"]["code"].is_i64() && reply["error"]["message"].is_string());
            prop_assert!(reply["error"]["code"] != -32603, "{}", reply);
        }
        Ok(())
    });
    result.unwrap();
    let paths = prop::collection::vec("[a-zA-Z0-9:%/?=&._~-]{0,12}", 1..4)
        .prop_map(|parts| format!("/tasks/{}", parts.join("/")));
    let result = runner.run(&paths, |path| {
        let status = runtime.block_on(async {
            let url = format!("{}{path}", client.url);
            let request = client.http.get(url).header("a2a-version", "1.0");
            match request.send().await {
                Ok(response) => response.status().as_u16(),
                // An address that is none is not sent.
                Err(_) => 400,
            }
        });
        prop_assert!(status < 500 || status == 501, "{}: {}", path, status);
        Ok(())
    });
    result.unwrap();
}
