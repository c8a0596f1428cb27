//! `duo browse`: a page in one's hands, to try the tools of the browser.

use std::{
    io::{BufRead, IsTerminal, Write},
    sync::Arc,
};

use duologue_core::{
    CallId, Content, FileSource, Part, ResultReader, SessionId, ToolContext, Toolbox,
};
use duologue_tools::Workspace;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Browse,
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::{Style, clip},
};

/// What is shown of how to use it.
const HELP: &str = "\
tool [argument=value …]   call a tool, such as `click ref=f1:e7` or `fill ref=f1:e3 text=\"two words\"`
tool {\"json\": …}          the same with JSON
tools                     list the tools
help                      this
quit                      leave (Ctrl-D)";

#[derive(Debug)]
struct NoResults;

impl ResultReader for NoResults {
    fn result_text(&self, _: CallId) -> BoxFuture<'static, Option<String>> {
        Box::pin(async { None })
    }
}

pub(crate) async fn browse(house: &House, args: Browse) -> Done {
    let workspace = Workspace::open(&house.config().workspace).map_err(Failure::usage)?;
    let browser = house.browser(&workspace)?;
    let tools = browser.tools().into_iter().fold(Toolbox::new(), Toolbox::with_shared);
    let session = SessionId::random();
    let hands = Hands { house, tools, session: session.clone(), calls: 0.into() };
    let mut exit = Exit::Completed;
    if let Some(url) = &args.url {
        for (name, arguments) in [("navigate", json!({"url": url})), ("snapshot", json!({}))] {
            if !hands.call(name, arguments).await? {
                exit = Exit::Failed;
                break;
            }
        }
    }
    if exit == Exit::Completed {
        exit = hands.read_lines().await?;
    }
    browser.close(&session).await;
    Ok(exit)
}

struct Hands<'a> {
    house: &'a House,
    tools: Toolbox,
    session: SessionId,
    calls: std::cell::Cell<u32>,
}

impl Hands<'_> {
    async fn read_lines(&self) -> Result<Exit, Failure> {
        let is_terminal = std::io::stdin().is_terminal();
        let mut exit = Exit::Completed;
        loop {
            if is_terminal {
                write!(std::io::stdout(), "› ")?;
                std::io::stdout().flush()?;
            }
            let read = tokio::task::spawn_blocking(|| {
                let mut line = String::new();
                std::io::stdin().lock().read_line(&mut line).map(|read| (read, line))
            });
            let (read, line) = read.await.map_err(Failure::new)??;
            if read == 0 {
                return Ok(exit);
            }
            let (word, rest) =
                line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
            match word {
                "" => {}
                "quit" | "exit" => return Ok(exit),
                "help" => writeln!(std::io::stdout(), "{HELP}")?,
                "tools" => self.list()?,
                name => match arguments(rest) {
                    Ok(arguments) => {
                        // What a script pipes in tells by the exit code whether all of it worked.
                        if !self.call(name, arguments).await? && !is_terminal {
                            exit = Exit::Failed;
                        }
                    }
                    Err(error) => writeln!(std::io::stderr(), "{error}")?,
                },
            }
        }
    }

    fn list(&self) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        for spec in self.tools.specs().iter() {
            let required = spec.parameters.get("required").and_then(Value::as_array);
            let names = spec.parameters.get("properties").and_then(Value::as_object);
            let names = names.into_iter().flat_map(Map::keys).map(|name| {
                let needed = required.is_some_and(|list| list.iter().any(|r| r == name.as_str()));
                if needed { name.clone() } else { format!("[{name}]") }
            });
            let names = names.collect::<Vec<_>>().join(" ");
            let name = self.house.paint.text(Style::Tool, format!("{:<14}", spec.name));
            writeln!(out, "{name} {names}\n               {}", clip(&spec.description, 90))?;
        }
        Ok(())
    }

    /// Call a tool and show what it gave; whether it worked. Whoever types it has said yes.
    async fn call(&self, name: &str, arguments: Value) -> Result<bool, Failure> {
        let Some(tool) = self.tools.get(name) else {
            writeln!(std::io::stderr(), "there is no tool {name}; `tools` lists them")?;
            return Ok(false);
        };
        if let Err(error) = tool.check(&arguments) {
            writeln!(std::io::stderr(), "{name}: {error}")?;
            return Ok(false);
        }
        let number = self.calls.get() + 1;
        self.calls.set(number);
        let context = ToolContext {
            session: self.session.clone(),
            call_id: CallId::from(format!("call-{number}")),
            idempotency_key: format!("{}/{number}", self.session),
            cancel: CancellationToken::new(),
            results: Arc::new(NoResults),
            questions: duologue_core::Questions::default(),
        };
        match tool.call(arguments, context).await {
            Ok(Content(parts)) => {
                for part in parts {
                    self.show(&part)?;
                }
                Ok(true)
            }
            Err(error) => {
                writeln!(std::io::stderr(), "{}", self.house.paint.text(Style::Bad, error.0))?;
                Ok(false)
            }
        }
    }

    fn show(&self, part: &Part) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        match part {
            Part::Text { text } => writeln!(out, "{text}")?,
            Part::Data { value } => writeln!(out, "{}", serde_json::to_string_pretty(value)?)?,
            Part::File { media_type, source: FileSource::Base64(data), .. } => {
                let note = format!("({media_type}, {} KiB)", data.len() * 3 / 4 / 1024);
                writeln!(out, "{}", self.house.paint.text(Style::Dim, note))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Arguments as they are typed: JSON, or `name=value` pairs with quotation marks where needed.
fn arguments(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("no valid JSON: {error}"));
    }
    let mut fields = Map::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest
            .split_once('=')
            .ok_or_else(|| format!("write arguments as name=value, not {rest:?}"))?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a quotation mark is not closed")?,
            None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
        };
        let is_quoted = rest.get(name.len() + 1..).is_some_and(|value| value.starts_with('"'));
        let read = if is_quoted { None } else { serde_json::from_str(value).ok() };
        fields.insert(name.trim().to_owned(), read.unwrap_or_else(|| value.into()));
        rest = after.trim_start();
    }
    Ok(Value::Object(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_they_are_typed() {
        assert_eq!(arguments("").unwrap(), json!({}));
        assert_eq!(
            arguments(r#"ref=f1:e3 text="two words" submit=true times=3"#).unwrap(),
            json!({"ref": "f1:e3", "text": "two words", "submit": true, "times": 3})
        );
        assert_eq!(arguments(r#"text="42""#).unwrap(), json!({"text": "42"}));
        assert_eq!(arguments(r#"options=["a","b"]"#).unwrap(), json!({"options": ["a", "b"]}));
        assert_eq!(arguments(r#"{"x": 1}"#).unwrap(), json!({"x": 1}));
        assert!(arguments("nonsense").is_err());
        assert!(arguments("a=\"b").is_err());
    }
}
