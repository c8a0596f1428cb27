//! Hooks: every point changes what passes through it, and errors are visible.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod support;

use duologue_core::{
    Event, FailureCause, HookChange, HookError, Hooks, Message, Outcome, Part, PreTool,
};
use support::*;

#[tokio::test]
async fn each_hook_changes_what_passes_through_it() {
    let hooks = Hooks::new();
    hooks.pre_reply("polite", |_, request| async move {
        Ok(Some(Message { parts: vec![Part::text("please go")], ..Message::clone(&request) }))
    });
    hooks.pre_step("recall", |cx| async move {
        Ok((cx.turn == 1).then(|| Message::user("You know the word a.")))
    });
    hooks.pre_tool("other", |_, _| async move { Ok(PreTool::With(json(r#"{"word":"b"}"#))) });
    hooks.post_tool("louder", |_, result| async move {
        Ok(Some(vec![Part::text(result.prompt_text().to_uppercase())]))
    });
    hooks.on_text("quiet", |_, text| Ok(Some(text.replace("done", "d*ne"))));
    hooks.post_reply("sign", |_, reply| async move {
        let text = format!("{} — tester", reply.text());
        Ok(Some(Message { parts: vec![Part::text(text)], ..Message::clone(&reply) }))
    });
    let model = Turns::new([calls(&[("c1", "look", r#"{"word":"a"}"#)]), says("done"), says("x")]);
    let deeds = Deeds::default();
    let (session, store) = start(&builder(&model, &deeds).hooks(hooks.clone()).build());
    let reply = session.reply("go").await.unwrap();
    assert_eq!(reply.text(), "d*ne — tester");
    assert_eq!(model.prompt(0), ["please go", "You know the word a."]);
    assert_eq!(model.prompt(1)[3], "ok: LOOK DID B");
    assert!(deeds.list()[0].starts_with("look b "));
    session.reply("again").await.unwrap();
    assert!(model.prompt(2).contains(&"d*ne — tester".to_owned()), "the prompt has what was said");
    let entries = journal(&store, session.id()).await;
    let changes: Vec<String> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::HookAnswered { hook, .. } => Some(hook.clone()),
            _ => None,
        })
        .take(6)
        .collect();
    assert_eq!(changes, ["polite", "recall", "other", "louder", "recall", "sign"]);
}

#[tokio::test]
async fn before_the_end_an_agent_can_be_sent_back_to_work_a_bounded_number_of_times() {
    let hooks = Hooks::new();
    let sent = Counter::default();
    let count = sent.clone();
    hooks.before_end("critic", move |_, _| {
        count.up();
        async { Ok(Some(Message::user("Not good enough."))) }
    });
    let model = Turns::new([says("1"), says("2"), says("3")]);
    let agent = builder(&model, &Deeds::default()).hooks(hooks).max_send_backs(2).build();
    let (session, _) = start(&agent);
    assert_eq!(session.reply("go").await.unwrap().text(), "3");
    assert_eq!(sent.get(), 2);
    assert_eq!(model.prompt(2), ["go", "1", "Not good enough.", "2", "Not good enough."]);
}

#[tokio::test]
async fn hooks_are_called_in_order_and_can_be_removed_while_the_agent_lives() {
    let hooks = Hooks::new();
    let deeds = Deeds::default();
    for name in ["one", "two"] {
        let deeds = deeds.clone();
        hooks.pre_step(name, move |_| {
            deeds.add(name);
            async { Ok(None) }
        });
    }
    let model = Turns::new([says("a"), says("b")]);
    let (session, _) = start(&builder(&model, &Deeds::default()).hooks(hooks.clone()).build());
    session.reply("go").await.unwrap();
    assert!(hooks.remove("one"));
    assert!(!hooks.remove("one"));
    session.reply("go").await.unwrap();
    assert_eq!(deeds.list(), ["one", "two", "two"]);
}

#[tokio::test]
async fn a_hook_that_fails_before_something_stops_it_and_after_something_is_reported() {
    let fails = || HookError("it broke".into());
    let hooks = Hooks::new();
    hooks.post_step("after", move |_, _| async move { Err(fails()) });
    hooks.pre_tool("guard", move |_, _| async move { Err(fails()) });
    let model = Turns::new([calls(&[("c1", "act", r#"{"word":"a"}"#)]), says("done")]);
    let deeds = Deeds::default();
    let (session, store) = start(&builder(&model, &deeds).hooks(hooks).build());
    assert_eq!(session.reply("go").await.unwrap().outcome, Outcome::Completed);
    assert!(deeds.list().is_empty(), "a guard that fails lets nothing through");
    assert_eq!(model.prompt(1)[2], "error: The call did not run: the hook guard failed: it broke");
    let entries = journal(&store, session.id()).await;
    let failed = |entry: &&std::sync::Arc<duologue_core::Entry>| {
        matches!(&entry.event, Event::HookAnswered { change: HookChange::Failed { .. }, .. })
    };
    assert_eq!(entries.iter().filter(failed).count(), 3);

    let hooks = Hooks::new();
    hooks.pre_step("gate", move |_| async move { Err(fails()) });
    let model = Turns::new([]);
    let (session, _) = start(&builder(&model, &deeds).hooks(hooks).build());
    let Outcome::Failed { cause, error } = session.reply("go").await.unwrap().outcome else {
        panic!()
    };
    assert_eq!(cause, FailureCause::Hook);
    assert_eq!(error, "the hook gate failed before a step: it broke");

    let hooks = Hooks::new();
    hooks.pre_reply("door", move |_, _| async move { Err(fails()) });
    let (session, _) = start(&builder(&Turns::new([]), &deeds).hooks(hooks).build());
    assert!(matches!(session.reply("go").await.unwrap().outcome, Outcome::Failed { .. }));
}

#[tokio::test]
async fn a_refused_call_is_told_to_the_model() {
    let hooks = Hooks::new();
    hooks.pre_tool("no", |_, _| async { Ok(PreTool::Refuse("secrets stay here".into())) });
    let model = Turns::new([calls(&[("c1", "look", r#"{"word":"a"}"#)]), says("done")]);
    let (session, _) = start(&builder(&model, &Deeds::default()).hooks(hooks).build());
    session.reply("go").await.unwrap();
    assert_eq!(model.prompt(1)[2], "denied: This call was refused: secrets stay here");
}
