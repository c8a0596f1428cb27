//! The prompt: a request written out as the model was taught to read conversations.
//!
//! The frame comes from the chat template in the model file. Tools do not: small models write the
//! tags that templates ask for unreliably, so tools are listed in the system message and a call is
//! one JSON object, `{"tool_name": …, "params": …}`, which constrained decoding then guarantees.

use duologue_core::{Message, ModelError, ErrorClass, Part, ReasoningEffort, Request, Role, ToolChoice};
use minijinja::{Environment, ErrorKind, Value, context};

use crate::{
    gguf::{Gguf, GgufError},
    tokenizer::Tokenizer,
};

/// Used where a file carries no template but has the tokens for this one.
const CHATML: &str = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + \
                      '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ \
                      '<|im_start|>assistant\n' }}{% endif %}";

/// Writes prompts for one model.
#[derive(Debug)]
pub(crate) struct Template {
    environment: Environment<'static>,
    begin: String,
    end: String,
}

impl Template {
    pub(crate) fn load(file: &Gguf, tokenizer: &Tokenizer) -> Result<Self, GgufError> {
        let source = match file.text("tokenizer.chat_template") {
            Some(source) => source.to_owned(),
            None if tokenizer.encode("<|im_start|>").len() == 1 => CHATML.to_owned(),
            None => return Err(file.unsupported("it carries no chat template")),
        };
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", |value: Value| -> Result<String, minijinja::Error> {
            serde_json::to_string(&value).map_err(|error| {
                minijinja::Error::new(ErrorKind::BadSerialization, error.to_string())
            })
        });
        environment.add_function("raise_exception", |text: String| -> Result<String, _> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, text))
        });
        // Some templates state the date; a prompt that changes every day would defeat the cache of
        // what was read before, so it is always the same.
        environment.add_function("strftime_now", |_: String| "01 Jan 2025");
        environment
            .add_template_owned("chat", source)
            .map_err(|error| file.unsupported(format!("its chat template cannot be read: {error}")))?;
        let text_of = |token: Option<u32>| {
            let text = token.and_then(|token| tokenizer.special_text(token));
            text.unwrap_or_default().to_owned()
        };
        let end = file.count("tokenizer.ggml.eos_token_id");
        let begin = file.count("tokenizer.ggml.bos_token_id");
        Ok(Self {
            environment,
            begin: text_of(begin.and_then(|id| u32::try_from(id).ok())),
            end: text_of(end.and_then(|id| u32::try_from(id).ok())),
        })
    }

    /// The tokens that the model reads for a request.
    pub(crate) fn tokens(
        &self,
        request: &Request,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<u32>, ModelError> {
        let turns: Vec<Value> = turns(request)?
            .into_iter()
            .map(|turn| context! { role => turn.role, content => tokenizer.shield(&turn.text) })
            .collect();
        let thinks = !matches!(
            request.options.reasoning_effort,
            None | Some(ReasoningEffort::Minimal)
        ) && request.options.output.is_none()
            && request.tools.is_empty();
        let template = self.environment.get_template("chat").map_err(|e| unreadable(&e))?;
        let text = template
            .render(context! {
                messages => turns,
                add_generation_prompt => true,
                enable_thinking => thinks,
                bos_token => self.begin,
                eos_token => self.end,
            })
            .map_err(|error| unreadable(&error))?;
        let mut tokens = tokenizer.encode(&text);
        if let Some(begin) = tokenizer.begin
            && tokens.first() != Some(&begin)
        {
            tokens.insert(0, begin);
        }
        Ok(tokens)
    }
}

fn unreadable(error: &minijinja::Error) -> ModelError {
    let text = format!("the model's chat template does not accept the conversation: {error}");
    ModelError::new(ErrorClass::BadRequest, text)
}

struct Turn {
    role: &'static str,
    text: String,
}

/// The conversation as roles and texts. Neighbours of one role are joined, because many templates
/// insist on taking turns.
fn turns(request: &Request) -> Result<Vec<Turn>, ModelError> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut system = request.system.as_deref().unwrap_or_default().to_owned();
    if let Some(tools) = describe_tools(request) {
        append(&mut system, &tools);
    }
    if let Some(output) = &request.options.output {
        append(
            &mut system,
            &format!("Answer with JSON that fits this JSON Schema:\n{}", output.schema),
        );
    }
    let mut push = |role, text: &str| match turns.last_mut() {
        Some(last) if last.role == role => append(&mut last.text, text),
        _ => turns.push(Turn {
            role,
            text: text.to_owned(),
        }),
    };
    let mut framing = true;
    for message in request.all_messages() {
        let text = written(message);
        match message.role {
            Role::System if framing => append(&mut system, &text),
            Role::System => push("user", &format!("[instruction] {text}")),
            Role::User | Role::Tool => push("user", &text),
            Role::Assistant => push("assistant", &text),
        }
        framing &= message.role == Role::System;
    }
    if turns.is_empty() {
        let text = "the conversation is empty: there is nothing to answer";
        return Err(ModelError::new(ErrorClass::BadRequest, text));
    }
    if !system.is_empty() {
        turns.insert(0, Turn { role: "system", text: system });
    }
    Ok(turns)
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

/// What a message says, as text.
fn written(message: &Message) -> String {
    let mut text = String::new();
    for part in &message.parts {
        let piece = match part {
            Part::Text { text } => text.clone(),
            // A model's own earlier thoughts are not read again.
            Part::Reasoning { .. } => continue,
            Part::Data { value } => value.to_string(),
            Part::File { media_type, name, .. } => {
                let name = name.as_deref().unwrap_or("unnamed");
                format!("[file {name} ({media_type}), which this model cannot read]")
            }
            Part::ToolCall(call) => call_text(&call.name, &call.arguments),
            Part::ToolResult(result) => {
                format!("Result of {} ({}):\n{}", result.name, result.status, result.prompt_text())
            }
        };
        append(&mut text, &piece);
    }
    text
}

/// A call as the model writes it: with the same spaces, so that what it wrote is found again in the
/// cache of what was read.
fn call_text(name: &str, arguments: &serde_json::Value) -> String {
    let name = serde_json::Value::from(name);
    format!("{{\"tool_name\": {name}, \"params\": {}}}", spaced(arguments))
}

fn spaced(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(spaced).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, _)| format!("{}: {}", Value::from(key.as_str()), spaced(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
        simple => simple.to_string(),
    }
}

fn describe_tools(request: &Request) -> Option<String> {
    if request.tools.is_empty() || request.options.tool_choice == ToolChoice::None {
        return None;
    }
    let mut text = "# Tools\nYou can use these tools:\n".to_owned();
    for tool in request.tools.iter() {
        let parameters = tool.parameters.get("properties").unwrap_or(&tool.parameters);
        text.push_str(&format!("- {}: {} params: {parameters}\n", tool.name, tool.description));
    }
    text.push_str(
        "To use a tool, answer with only this JSON:\n{\"tool_name\": \"NAME\", \"params\": {…}}\n",
    );
    text.push_str(match &request.options.tool_choice {
        ToolChoice::Required => "You must use one of the tools now.",
        ToolChoice::One(_) => "You must use the tool that you are told to use now.",
        ToolChoice::Auto | ToolChoice::None => {
            "You are then given the result. If a tool fits the request, use it and do not guess. \
             If none fits, or you have the result, answer in plain text."
        }
    });
    if let ToolChoice::One(name) = &request.options.tool_choice {
        text.push_str(&format!(" It is {name}."));
    }
    Some(text)
}
