//! Our request in the words of `genai`.

use duologue_core::{
    ErrorClass, FileSource, Message, ModelError, Options, Part, ReasoningEffort, Request, Role,
    ToolChoice, ToolResult, ToolStatus,
};
use genai::chat::{
    Binary, CacheControl, ChatMessage, ChatOptions, ChatRequest, ContentPart, JsonSpec,
    MessageContent, Tool, ToolCall, ToolResponse,
};
use serde_json::{Value, json};

use super::Tongue;
use crate::providers::schema::invalid_arguments;

/// A redacted thought of Anthropic's: it has no text, and goes back as it came.
pub(super) const REDACTED: &str = "redacted:";

/// Several proofs in one signature are parted by this; none of them contains it.
pub(super) const BETWEEN_PROOFS: char = '\n';

pub(super) fn convert(
    request: &Request,
    tongue: Tongue,
    model: &str,
) -> Result<(ChatRequest, ChatOptions), ModelError> {
    let options = options(&request.options, tongue, model, request.tools.is_empty())?;
    let mut messages = messages(request, tongue)?;
    // Anthropic caches a prompt only where it is told to. A mark on the last message covers all
    // before it, which the next step of an agent reads again.
    if tongue == Tongue::Anthropic
        && !request.tools.is_empty()
        && let Some(last) = messages.pop()
    {
        messages.push(last.with_options(CacheControl::Ephemeral));
    }
    let mut chat = ChatRequest::new(messages);
    chat.system = request.system.as_deref().filter(|text| !text.is_empty()).map(str::to_owned);
    if !request.tools.is_empty() {
        chat.tools = Some(
            request
                .tools
                .iter()
                .map(|tool| {
                    Tool::new(tool.name.as_str())
                        .with_description(&tool.description)
                        .with_schema(tool.parameters.clone())
                })
                .collect(),
        );
    }
    Ok((chat, options))
}

fn options(
    ours: &Options,
    tongue: Tongue,
    model: &str,
    no_tools: bool,
) -> Result<ChatOptions, ModelError> {
    let mut theirs = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        // It also asks the provider for thoughts, and some models refuse a request that does.
        .with_capture_reasoning_content(
            tongue == Tongue::Anthropic || ours.reasoning_effort.is_some() || thinks(model),
        );
    theirs.temperature = ours.temperature;
    theirs.seed = ours.seed;
    theirs.max_tokens = ours.max_tokens;
    theirs.stop_sequences.clone_from(&ours.stop);
    theirs.reasoning_effort = ours.reasoning_effort.map(|effort| match effort {
        ReasoningEffort::Minimal => genai::chat::ReasoningEffort::Minimal,
        ReasoningEffort::Low => genai::chat::ReasoningEffort::Low,
        ReasoningEffort::Medium => genai::chat::ReasoningEffort::Medium,
        ReasoningEffort::High => genai::chat::ReasoningEffort::High,
    });
    theirs.tool_choice = match &ours.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None if no_tools => None,
        ToolChoice::None => Some(genai::chat::ToolChoice::None),
        ToolChoice::Required => Some(genai::chat::ToolChoice::Required),
        ToolChoice::One(name) => Some(genai::chat::ToolChoice::tool(name)),
    };
    if let Some(output) = &ours.output {
        let spec = JsonSpec::new(&output.name, (*output.schema).clone());
        theirs.response_format = Some(spec.into());
    }
    // A seed is best effort everywhere, so leaving it out breaks no promise.
    if matches!(tongue, Tongue::Anthropic | Tongue::Responses) {
        theirs.seed = None;
    }
    // What a wire has no word for must not be lost without one.
    let missing = match tongue {
        Tongue::Responses if !ours.stop.is_empty() => "stop texts",
        Tongue::Ollama if ours.output.is_some() => "an output schema",
        Tongue::Ollama if !matches!(ours.tool_choice, ToolChoice::Auto) => "a tool choice",
        _ => return Ok(theirs),
    };
    Err(ModelError::new(
        ErrorClass::BadRequest,
        format!(
            "{model} is asked with {missing}, which its wire cannot carry; \
             the chat wire can (`wire = \"openai-chat\"`)"
        ),
    ))
}

/// Whether a model of these providers thinks without being told how hard.
fn thinks(model: &str) -> bool {
    let o_series =
        model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    o_series
        || (model.starts_with("gpt-5") && !model.contains("chat"))
        || model.starts_with("gemini-2.5")
        || model.starts_with("gemini-3")
}

fn messages(request: &Request, tongue: Tongue) -> Result<Vec<ChatMessage>, ModelError> {
    let mut out: Vec<ChatMessage> = Vec::new();
    // The results of one batch belong together, and files that tools gave follow the batch.
    let mut results: Vec<ContentPart> = Vec::new();
    let mut files: Vec<ContentPart> = Vec::new();
    for message in request.all_messages() {
        if message.role != Role::Tool {
            end_batch(&mut results, &mut files, &mut out);
        }
        match message.role {
            Role::System => push(&mut out, ChatMessage::system, texts(message)),
            Role::User => {
                let parts = message
                    .parts
                    .iter()
                    .filter_map(|part| user_part(part, tongue).transpose())
                    .collect::<Result<_, _>>()?;
                push(&mut out, ChatMessage::user, parts);
            }
            Role::Assistant => push(&mut out, ChatMessage::assistant, assistant(message, tongue)),
            Role::Tool => {
                for result in message.tool_results() {
                    match tongue {
                        Tongue::Anthropic => results.push(anthropic_result(result)),
                        _ => {
                            results.push(ContentPart::ToolResponse(
                                ToolResponse::new(result.call_id.as_str(), result.prompt_text())
                                    .with_fn_name(&result.name),
                            ));
                            for part in &result.content {
                                if matches!(part, Part::File { .. }) {
                                    files.extend(user_part(part, tongue)?);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    end_batch(&mut results, &mut files, &mut out);
    Ok(out)
}

fn end_batch(
    results: &mut Vec<ContentPart>,
    files: &mut Vec<ContentPart>,
    out: &mut Vec<ChatMessage>,
) {
    push(out, ChatMessage::tool, std::mem::take(results));
    if !files.is_empty() {
        let note = ContentPart::Text("Files that the tools above gave:".to_owned());
        let parts = std::iter::once(note).chain(files.drain(..)).collect();
        push(out, ChatMessage::user, parts);
    }
}

/// Empty messages are refused by every provider, and say nothing.
fn push(
    out: &mut Vec<ChatMessage>,
    make: impl Fn(MessageContent) -> ChatMessage,
    parts: Vec<ContentPart>,
) {
    if !parts.is_empty() {
        out.push(make(MessageContent::from_parts(parts)));
    }
}

fn texts(message: &Message) -> Vec<ContentPart> {
    let text = message.text();
    if text.is_empty() { Vec::new() } else { vec![ContentPart::Text(text)] }
}

fn user_part(part: &Part, tongue: Tongue) -> Result<Option<ContentPart>, ModelError> {
    Ok(match part {
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(ContentPart::Text(text.clone())),
        Part::Data { value } => Some(ContentPart::Text(value.to_string())),
        Part::ToolResult(result) => Some(ContentPart::Text(result.prompt_text())),
        Part::File { media_type, name, source } => Some(match source {
            FileSource::Base64(bytes) => {
                ContentPart::Binary(Binary::from_base64(media_type, bytes.as_str(), name.clone()))
            }
            FileSource::Url(url) => match tongue {
                // genai knows only bytes here, though the wire takes addresses.
                Tongue::Anthropic if media_type.starts_with("image/") => ContentPart::from_custom(
                    json!({"type": "image", "source": {"type": "url", "url": url}}),
                    None,
                ),
                Tongue::Ollama => {
                    return Err(ModelError::new(
                        ErrorClass::BadRequest,
                        format!("Ollama takes files only as bytes, not by address ({url})"),
                    ));
                }
                _ => ContentPart::Binary(Binary::from_url(media_type, url, name.clone())),
            },
        }),
        Part::Reasoning { .. } | Part::ToolCall(_) => None,
    })
}

fn assistant(message: &Message, tongue: Tongue) -> Vec<ContentPart> {
    let mut thoughts = Vec::new();
    let mut rest = Vec::new();
    for part in &message.parts {
        match part {
            Part::Reasoning { text, signature: Some(signature) } => {
                thoughts.extend(thought(text, signature, tongue));
            }
            Part::Text { text } if !text.is_empty() => rest.push(ContentPart::Text(text.clone())),
            Part::Data { value } => rest.push(ContentPart::Text(value.to_string())),
            Part::ToolCall(call) => rest.push(ContentPart::ToolCall(ToolCall {
                call_id: call.id.to_string(),
                fn_name: call.name.clone(),
                fn_arguments: match &call.arguments {
                    Value::String(text) => invalid_arguments(text),
                    value => value.clone(),
                },
                thought_signatures: call
                    .signature
                    .as_deref()
                    .and_then(|signature| signature.strip_prefix(tongue.seal()))
                    .map(|proof| vec![proof.to_owned()]),
            })),
            // Thoughts without a proof are refused, and no wire takes results or files from here.
            _ => {}
        }
    }
    thoughts.append(&mut rest);
    thoughts
}

/// A thought that this provider signed, in the order that genai pairs it up again.
fn thought(text: &str, signature: &str, tongue: Tongue) -> Vec<ContentPart> {
    let Some(proofs) = signature.strip_prefix(tongue.seal()) else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    for proof in proofs.split(BETWEEN_PROOFS) {
        if let Some(data) = proof.strip_prefix(REDACTED) {
            let block = json!({"type": "redacted_thinking", "data": data});
            parts.push(ContentPart::from_custom(block, None));
            continue;
        }
        parts.push(ContentPart::ThoughtSignature(proof.to_owned()));
        if tongue == Tongue::Anthropic {
            parts.push(ContentPart::ReasoningContent(text.to_owned()));
        }
    }
    parts
}

/// Anthropic's own shape: it knows errors and images in results, genai's does not.
fn anthropic_result(result: &ToolResult) -> ContentPart {
    let image = |part: &Part| match part {
        Part::File { media_type, source, .. } if media_type.starts_with("image/") => {
            Some(match source {
                FileSource::Base64(data) => json!({"type": "image",
                "source": {"type": "base64", "media_type": media_type, "data": data}}),
                FileSource::Url(url) => {
                    json!({"type": "image", "source": {"type": "url", "url": url}})
                }
            })
        }
        _ => None,
    };
    let images: Vec<Value> = result.content.iter().filter_map(image).collect();
    let text = result.prompt_text();
    let content = if images.is_empty() {
        Value::String(text)
    } else {
        std::iter::once(json!({"type": "text", "text": text})).chain(images).collect()
    };
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": result.call_id.as_str(),
        "content": content,
    });
    if result.status != ToolStatus::Ok
        && let Some(fields) = block.as_object_mut()
    {
        fields.insert("is_error".to_owned(), Value::Bool(true));
    }
    ContentPart::from_custom(block, None)
}
