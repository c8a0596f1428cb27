//! spike
use duologue_core::*;
use futures::StreamExt;
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code)]
struct Calc { /// The expression, such as 2*(3+4).
 expression: String }
#[tokio::main]
async fn main() {
    let a: Vec<String> = std::env::args().collect();
    let model = duologue_local::LocalModel::from_file("local/x", a[1].as_ref(), Default::default());
    let calc = tool("calculator", "Computes an arithmetic expression.", Effect::Pure, |_: Calc, _| async { Ok("444".to_owned()) });
    let mut messages = vec![];
    for text in &a[2..] {
        let mut text = text.as_str();
        loop {
            let t = std::time::Instant::now();
            if !text.is_empty() { messages.push(std::sync::Arc::new(Message::user(text))); }
            let req = Request { system: Some("You are a helpful assistant.".into()), messages: std::sync::Arc::new(messages.clone()), tools: vec![calc.spec().clone()].into(), options: Options { max_tokens: Some(200), ..Default::default() }, ..Default::default() };
            let mut s = model.ask(req);
            let mut acc = Accumulator::default();
            while let Some(d) = s.next().await { match d { Ok(d) => { eprint!("{d:?} "); acc.push(d) }, Err(e) => { println!("ERR {e:?}"); return } } }
            let c = acc.finish();
            println!("\n{:?} {:?} {:?}", c.message.parts, c.usage, t.elapsed());
            let msg = c.message.clone();
            messages.push(std::sync::Arc::new(c.message));
            if c.stop == Some(StopReason::ToolCalls) {
                let call = msg.tool_calls().next().unwrap().clone();
                messages.push(std::sync::Arc::new(Message::new(Role::Tool, vec![Part::ToolResult(ToolResult::text(&call, ToolStatus::Ok, "444"))])));
                text = ""; continue;
            }
            break;
        }
    }
}
