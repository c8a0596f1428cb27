//! Whatever an entry says comes back as it was.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::{collections::BTreeMap, sync::Arc};

use common::{all, begin, id, open_new};
use duologue_core::{
    Answer, Authors, Delivery, Effect, Entry, Event, ForkPoint, HookChange, Inquiry, InquiryKind,
    Limit, Message, MessageId, Outcome, Part, Role, RunId, ToolCall, ToolResult, ToolStatus,
};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        select(vec!["", "\0", "\"\\", "naïve 🦜\u{2028}", "{\"kind\":\"note\"}"])
            .prop_map(str::to_owned),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    (text(), text(), value(), prop::option::of(text())).prop_map(
        |(id, name, arguments, signature)| ToolCall {
            signature,
            ..ToolCall::new(id, name, arguments)
        },
    )
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        text().prop_map(Part::text),
        value().prop_map(|value| Part::Data { value }),
        call().prop_map(Part::from),
        (text(), prop::option::of(text()))
            .prop_map(|(text, signature)| Part::Reasoning { text, signature }),
    ]
}

fn message() -> impl Strategy<Value = Arc<Message>> {
    let role = select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    let metadata = prop::collection::btree_map(text(), value(), 0..3);
    (text(), role, prop::option::of(text()), prop::collection::vec(part(), 0..4), metadata)
        .prop_map(|(id, role, name, parts, metadata)| {
            Arc::new(Message {
                id: MessageId::from(id),
                role,
                name,
                parts,
                metadata: metadata.into_iter().collect(),
            })
        })
}

fn inquiry() -> impl Strategy<Value = Inquiry> {
    let kind = prop_oneof![
        (call(), text()).prop_map(|(call, reason)| InquiryKind::Approval { call, reason }),
        (text(), prop::collection::vec(text(), 0..3))
            .prop_map(|(text, choices)| InquiryKind::Question { text, choices }),
        text().prop_map(|used| InquiryKind::Budget { limit: Limit::Cost, used }),
    ];
    (text(), any::<u32>(), kind).prop_map(|(id, run, kind)| Inquiry {
        id: id.into(),
        run: RunId(run),
        kind,
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Approve),
        Just(Answer::ApproveAlways),
        text().prop_map(|reason| Answer::Deny { reason }),
        value().prop_map(|arguments| Answer::Edit { arguments: Box::new(arguments) }),
        (prop::collection::vec(part(), 0..3), any::<bool>())
            .prop_map(|(content, is_error)| Answer::Result { content, is_error }),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Completed),
        prop::collection::vec(inquiry(), 0..3)
            .prop_map(|inquiries| Outcome::InputRequired { inquiries }),
        text().prop_map(|reason| Outcome::Aborted { reason }),
        Just(Outcome::LimitReached { limit: Limit::Steps }),
    ]
}

fn unknown() -> impl Strategy<Value = Event> {
    prop::collection::btree_map(text(), value(), 0..4).prop_map(|fields: BTreeMap<_, _>| {
        let mut object: serde_json::Map<_, _> = fields.into_iter().collect();
        object.insert("kind".into(), json!("of_tomorrow"));
        Event::Unknown(Value::Object(object))
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (
            text(),
            prop::option::of((text(), any::<u64>())),
            prop::collection::btree_map(text(), value(), 0..3)
        )
            .prop_map(|(agent, fork, metadata)| Event::SessionStarted {
                schema: 1,
                agent,
                forked_from: fork
                    .map(|(session, at)| ForkPoint { session: session.into(), at: at >> 1 }),
                metadata: metadata.into_iter().collect(),
            }),
        message().prop_map(|message| Event::UserRequest {
            message,
            delivery: Delivery::Steer,
            expects: None
        }),
        (text(), answer(), prop::option::of(text())).prop_map(|(id, answer, by)| {
            Event::ExternalActionResult { id: id.into(), answer, by }
        }),
        inquiry().prop_map(|inquiry| Event::ExternalAction { inquiry: Box::new(inquiry) }),
        (text(), text(), prop::option::of(value())).prop_map(|(id, name, arguments)| {
            Event::ToolStarted {
                call_id: id.into(),
                name,
                effect: Effect::Idempotent,
                // As with every optional field, null stands for nothing.
                arguments: arguments.filter(|value| !value.is_null()).map(Box::new),
                authors: Authors::Strangers,
            }
        }),
        (text(), text(), prop::collection::vec(part(), 0..3), any::<u64>()).prop_map(
            |(id, name, content, elapsed_ms)| Event::ToolEnded {
                result: Arc::new(ToolResult {
                    call_id: id.into(),
                    name,
                    status: ToolStatus::Interrupted,
                    content,
                }),
                elapsed_ms,
            }
        ),
        (any::<u32>(), outcome())
            .prop_map(|(turn, outcome)| Event::AgentResponseEnd { turn, outcome }),
        (text(), message()).prop_map(|(hook, message)| Event::HookAnswered {
            hook,
            change: HookChange::PreStep { message }
        }),
        (text(), value()).prop_map(|(topic, data)| Event::Note { topic, data }),
        unknown(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn entries_come_back_as_they_were(
        written in prop::collection::vec((any::<i64>(), any::<u32>(), event()), 1..12),
        name in text(),
    ) {
        let entries: Vec<_> = written
            .into_iter()
            .zip(0..)
            .map(|((at, run, event), seq)| Arc::new(Entry { seq, at, run: RunId(run), event }))
            .collect();
        futures::executor::block_on(async {
            let (_folder, store) = open_new().await;
            let session = id(&name);
            let _claim = begin(&store, &session, entries.clone()).await.unwrap();
            assert_eq!(all(&store, &session).await, entries);
        });
    }
}
