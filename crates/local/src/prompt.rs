//! The prompt: a request written out as the model was taught to read conversations.
//!
//! The frame comes from the chat template in the model file. Tools do not: small models write the
//! tags that templates ask for unreliably, so tools are listed in the system message and a call is
//! one JSON object, `{"tool_name": …, "params": …}`, which constrained decoding then guarantees.

use duologue_core::{
    ErrorClass, Message, ModelError, Part, ReasoningEffort, Request, Role, ToolChoice, ToolSpec,
};
use minijinja::{Environment, ErrorKind, Value, context};
use serde_json::Value as Json;

use crate::{
    gguf::{Gguf, GgufError},
    grammar::{self, Form, TEXT_OPENING},
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
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
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
        environment.add_template_owned("chat", source).map_err(|error| {
            file.unsupported(format!("its chat template cannot be read: {error}"))
        })?;
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
        let thinks =
            !matches!(request.options.reasoning_effort, None | Some(ReasoningEffort::Minimal))
                && request.options.output.is_none()
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

/// How to answer where tools may be called. These words were tried against others: see the crate's
/// documentation.
const AUTO: &str = "- answer(): Answers the user in plain text: greetings, facts, explanations, \
                    texts, and to tell what a tool gave.\n\nFirst choose a tool:\n{\"tool_name\": \
                    \"NAME\", \"params\": {\"FIELD\": \"VALUE\"}}\nor, if you can answer by \
                    yourself or already have the result:\n{\"tool_name\": \"answer\"}";

/// How to answer where a tool must be called.
const FORCED: &str = "\nAnswer with the one tool that does what the user asks for, as \
                      JSON:\n{\"tool_name\": \"NAME\", \"params\": {\"FIELD\": \
                      \"VALUE\"}}\nCopy names, paths and numbers exactly as the user wrote them.";

/// Turns that show a small model what to do, in an order that was tried against others: to call a
/// tool for what it could do itself, to tell the result instead of calling again, and, where it may
/// speak, to speak when no tool is needed.
const EXAMPLES: [Example; 5] = [
    Example::Call {
        user: "What is 6*9?",
        call: "{\"tool_name\": \"calculator\", \"params\": {\"expression\": \"6*9\"}}",
        result: "Result of calculator (ok):\n54",
        told: "6*9 is 54.",
    },
    Example::Call {
        user: "Let Kim know that dinner is at 8.",
        call: "{\"tool_name\": \"notify\", \"params\": {\"person\": \"Kim\", \"text\": \
               \"Dinner is at 8.\"}}",
        result: "Result of notify (ok):\ndone",
        told: "I let Kim know.",
    },
    Example::Words { user: "Hello!", answer: "Hello! How can I help you?" },
    Example::Words { user: "Who painted the Mona Lisa?", answer: "Leonardo da Vinci painted it." },
    Example::Words { user: "How many days does a week have?", answer: "A week has seven days." },
];

enum Example {
    Call { user: &'static str, call: &'static str, result: &'static str, told: &'static str },
    Words { user: &'static str, answer: &'static str },
}

/// The examples for an answer of a form, as turns.
fn examples(form: &Form, push: &mut impl FnMut(&'static str, &str)) {
    let speaks = match form {
        Form::TextOrCall | Form::JsonOrCall => true,
        Form::Call => false,
        Form::Text | Form::Json => return,
    };
    for example in EXAMPLES {
        match example {
            Example::Call { user, call, result, told } => {
                push("user", user);
                push("assistant", call);
                if speaks {
                    push("user", result);
                    push("assistant", &format!("{TEXT_OPENING}{told}"));
                }
            }
            Example::Words { user, answer } if speaks => {
                push("user", user);
                push("assistant", &format!("{TEXT_OPENING}{answer}"));
            }
            Example::Words { .. } => {}
        }
    }
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
        _ => turns.push(Turn { role, text: text.to_owned() }),
    };
    let form = grammar::form(request)?;
    let chooses = matches!(form, Form::TextOrCall | Form::JsonOrCall);
    // Where there is but one tool to call there is nothing to choose.
    if !matches!(request.options.tool_choice, ToolChoice::One(_)) {
        examples(&form, &mut push);
    }
    let mut framing = true;
    let mut asked = false;
    for message in request.all_messages() {
        asked |= message.role != Role::System;
        let text = written(message);
        match message.role {
            Role::System if framing => append(&mut system, &text),
            Role::System => push("user", &format!("[instruction] {text}")),
            Role::User | Role::Tool => push("user", &text),
            Role::Assistant if chooses && message.tool_calls().next().is_none() => {
                push("assistant", &format!("{TEXT_OPENING}{text}"));
            }
            Role::Assistant => push("assistant", &text),
        }
        framing &= message.role == Role::System;
    }
    if !asked {
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
fn call_text(name: &str, arguments: &Json) -> String {
    let name = Json::from(name);
    format!("{{\"tool_name\": {name}, \"params\": {}}}", spaced(arguments))
}

fn spaced(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(spaced).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(fields) => {
            let field = |(key, value): (&String, _)| {
                format!("{}: {}", Json::from(key.as_str()), spaced(value))
            };
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
    let mut text = "# Tools\n".to_owned();
    for tool in request.tools.iter() {
        text.push_str(&format!("- {}: {}\n", signature(tool), tool.description));
    }
    text.push_str(match &request.options.tool_choice {
        ToolChoice::Auto => AUTO,
        _ => FORCED,
    });
    if let ToolChoice::One(name) = &request.options.tool_choice {
        text.push_str(&format!("\nUse {name}."));
    }
    Some(text)
}

/// A tool as a function is written: `name(field: type, field?: type)`, with what its fields are for.
fn signature(tool: &ToolSpec) -> String {
    let required = tool.parameters.get("required").and_then(Json::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let mut fields = Vec::new();
    if let Some(properties) = tool.parameters.get("properties").and_then(Json::as_object) {
        for (name, schema) in properties {
            let mark = if is_required(name) { "" } else { "?" };
            let kind = match (schema.get("enum"), schema.get("type")) {
                (Some(choices), _) => choices.to_string(),
                (None, Some(Json::String(kind))) => kind.clone(),
                (None, _) => spaced(schema),
            };
            fields.push(format!("{name}{mark}: {kind}"));
        }
    }
    format!("{}({})", tool.name, fields.join(", "))
}
