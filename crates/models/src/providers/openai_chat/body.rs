//! The request, written as JSON straight from our own types: no tree of values in between.

use std::{borrow::Cow, fmt, sync::Arc};

use duologue_core::{
    ErrorClass, FileSource, Message, ModelError, Part, ReasoningEffort, Request, Role, ToolCall,
    ToolChoice, ToolSpec,
};
use serde::{
    Serialize, Serializer,
    ser::{SerializeSeq, SerializeStruct},
};
use serde_json::Value;

use super::Dialect;
use crate::providers::schema::is_strict;

/// The JSON text of a request.
pub(super) fn encode(
    model: &str,
    dialect: Dialect,
    request: &Request,
) -> Result<Vec<u8>, ModelError> {
    check_files(request)?;
    let options = &request.options;
    let (max_tokens, max_completion_tokens) = match dialect {
        Dialect::OpenAi => (None, options.max_tokens),
        Dialect::Compatible => (options.max_tokens, None),
    };
    let body = Body {
        model,
        messages: Messages(request),
        tools: &request.tools,
        tool_choice: match &options.tool_choice {
            ToolChoice::Auto => None,
            // Without tools there is nothing to forbid, and servers object to the word.
            ToolChoice::None if request.tools.is_empty() => None,
            choice => Some(Choice(choice)),
        },
        temperature: options.temperature,
        seed: options.seed,
        max_tokens,
        max_completion_tokens,
        stop: &options.stop,
        response_format: options.output.as_ref().map(|output| ResponseFormat {
            r#type: "json_schema",
            json_schema: JsonSchema {
                name: wire_name(&output.name),
                schema: &output.schema,
                // OpenAI refuses `strict` on schemas that its decoder cannot enforce.
                strict: is_strict(&output.schema),
            },
        }),
        reasoning_effort: options.reasoning_effort.map(effort),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    };
    serde_json::to_vec(&body).map_err(|error| {
        ModelError::new(
            ErrorClass::BadRequest,
            format!("the request cannot be written as JSON: {error}"),
        )
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "tools")]
    tools: &'a [Arc<ToolSpec>],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: Cow<'a, str>,
    schema: &'a Value,
    strict: bool,
}

fn effort(effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
    }
}

struct Choice<'a>(&'a ToolChoice);

impl Serialize for Choice<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Name<'a> {
            name: &'a str,
        }
        match self.0 {
            ToolChoice::Auto => serializer.serialize_str("auto"),
            ToolChoice::Required => serializer.serialize_str("required"),
            ToolChoice::None => serializer.serialize_str("none"),
            ToolChoice::One(name) => {
                let mut fields = serializer.serialize_struct("Choice", 2)?;
                fields.serialize_field("type", "function")?;
                fields.serialize_field("function", &Name { name })?;
                fields.end()
            }
        }
    }
}

fn tools<S: Serializer>(tools: &[Arc<ToolSpec>], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Tool<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    #[derive(Serialize)]
    struct Function<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
    }
    serializer.collect_seq(tools.iter().map(|tool| Tool {
        r#type: "function",
        function: Function {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
        },
    }))
}

/// The conversation. One of our tool messages is as many of theirs as it has results.
struct Messages<'a>(&'a Request);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        if let Some(system) = self.0.system.as_deref().filter(|text| !text.is_empty()) {
            list.serialize_element(&Plain {
                role: "system",
                name: None,
                content: &Content::Text(system.into()),
            })?;
        }
        // A tool message can carry only text, and nothing may stand between the results of one
        // batch: files that tools gave follow the batch as a user's message.
        let mut files: Vec<&Part> = Vec::new();
        for message in self.0.all_messages() {
            if message.role != Role::Tool && !files.is_empty() {
                list.serialize_element(&tool_files(&std::mem::take(&mut files)))?;
            }
            match message.role {
                Role::System => list.serialize_element(&Plain {
                    role: "system",
                    name: None,
                    content: &Content::Text(text_of(&message.parts, "\n")),
                })?,
                Role::User => list.serialize_element(&Plain {
                    role: "user",
                    name: message.name.as_deref().map(wire_name),
                    content: &Content::of(&message.parts),
                })?,
                Role::Assistant => {
                    if let Some(said) = Said::of(message) {
                        list.serialize_element(&said)?;
                    }
                }
                Role::Tool => {
                    for result in message.tool_results() {
                        list.serialize_element(&ToolMessage {
                            role: "tool",
                            tool_call_id: result.call_id.as_str(),
                            content: match result.content.as_slice() {
                                [Part::Text { text }] => text.into(),
                                _ => result.prompt_text().into(),
                            },
                        })?;
                        files.extend(result.content.iter().filter(|part| is_file(part)));
                    }
                }
            }
        }
        if !files.is_empty() {
            list.serialize_element(&tool_files(&files))?;
        }
        list.end()
    }
}

/// A message that is only content.
#[derive(Serialize)]
struct Plain<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    content: &'a Content<'a>,
}

#[derive(Serialize)]
struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: Cow<'a, str>,
}

#[derive(Serialize)]
struct OwnedPlain<'a> {
    role: &'static str,
    content: Content<'a>,
}

fn tool_files<'a>(files: &[&'a Part]) -> OwnedPlain<'a> {
    let note = ContentPart::Text { text: "Files that the tools above gave:".into() };
    OwnedPlain {
        role: "user",
        content: Content::Parts(
            std::iter::once(note).chain(files.iter().map(|part| ContentPart::of(part))).collect(),
        ),
    }
}

/// What the model itself said. Thoughts are not sent back: this wire has no place for them.
#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<SaidCall<'a>>,
}

impl<'a> Said<'a> {
    /// `None` when there is nothing that this wire can carry, as after a cut in mid-thought.
    fn of(message: &'a Message) -> Option<Self> {
        let text = text_of(&message.parts, "");
        let said = Self {
            role: "assistant",
            content: (!text.is_empty()).then_some(text),
            tool_calls: message.tool_calls().map(SaidCall).collect(),
        };
        (said.content.is_some() || !said.tool_calls.is_empty()).then_some(said)
    }
}

struct SaidCall<'a>(&'a ToolCall);

impl Serialize for SaidCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            #[serde(serialize_with = "as_text")]
            arguments: &'a Value,
        }
        let mut fields = serializer.serialize_struct("Call", 3)?;
        fields.serialize_field("id", self.0.id.as_str())?;
        fields.serialize_field("type", "function")?;
        fields.serialize_field(
            "function",
            &Function { name: &self.0.name, arguments: &self.0.arguments },
        )?;
        fields.end()
    }
}

/// The arguments as JSON inside a JSON text, as the wire wants them.
fn as_text<S: Serializer>(arguments: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    match arguments {
        // Not JSON when the model said it: servers that parse old calls would refuse it bare.
        Value::String(text) => serializer.collect_str(&InvalidArguments(text)),
        value => serializer.collect_str(value),
    }
}

struct InvalidArguments<'a>(&'a str);

impl fmt::Display for InvalidArguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::providers::schema::invalid_arguments(self.0).fmt(f)
    }
}

/// A user's content: plain text where it can be, because every server reads that.
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

impl<'a> Content<'a> {
    fn of(parts: &'a [Part]) -> Self {
        if parts.iter().any(is_file) {
            Self::Parts(parts.iter().map(ContentPart::of).collect())
        } else {
            Self::Text(text_of(parts, "\n"))
        }
    }
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Parts(parts) => serializer.collect_seq(parts),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: Audio<'a> },
    File { file: File<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: Address<'a>,
}

#[derive(Serialize)]
struct Audio<'a> {
    data: &'a str,
    format: &'a str,
}

#[derive(Serialize)]
struct File<'a> {
    filename: &'a str,
    file_data: Address<'a>,
}

/// An address, or bytes in the form of one.
enum Address<'a> {
    Url(&'a str),
    Bytes { media_type: &'a str, base64: &'a str },
}

impl Serialize for Address<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Url(url) => serializer.serialize_str(url),
            Self::Bytes { media_type, base64 } => {
                serializer.collect_str(&format_args!("data:{media_type};base64,{base64}"))
            }
        }
    }
}

impl<'a> ContentPart<'a> {
    fn of(part: &'a Part) -> Self {
        let Part::File { media_type, name, source } = part else {
            return Self::Text { text: text_of(std::slice::from_ref(part), "") };
        };
        let address = match source {
            FileSource::Url(url) => Address::Url(url),
            FileSource::Base64(base64) => Address::Bytes { media_type, base64 },
        };
        match (media_type.split_once('/'), source) {
            (Some(("audio", format)), FileSource::Base64(data)) => Self::InputAudio {
                input_audio: Audio {
                    data,
                    format: match format {
                        "mpeg" => "mp3",
                        "x-wav" | "wave" => "wav",
                        other => other,
                    },
                },
            },
            (Some(("image", _)), _) => Self::ImageUrl { image_url: ImageUrl { url: address } },
            _ => Self::File {
                file: File { filename: name.as_deref().unwrap_or("file"), file_data: address },
            },
        }
    }
}

fn is_file(part: &Part) -> bool {
    matches!(part, Part::File { .. })
}

/// A file that is not an image can only be sent as bytes: better to say so than to leave it out.
fn check_files(request: &Request) -> Result<(), ModelError> {
    let parts = request.all_messages().flat_map(|message| &message.parts);
    for part in parts {
        if let Part::File { media_type, source: FileSource::Url(url), .. } = part
            && !media_type.starts_with("image/")
        {
            return Err(ModelError::new(
                ErrorClass::BadRequest,
                format!(
                    "this provider takes files of type {media_type} only as bytes, not by address ({url})"
                ),
            ));
        }
    }
    Ok(())
}

/// The parts that are text, or can be told as text. Thoughts, calls and files are not.
fn text_of<'a>(parts: &'a [Part], between: &str) -> Cow<'a, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(Cow::Borrowed(text.as_str())),
        Part::Data { value } => Some(Cow::Owned(value.to_string())),
        Part::ToolResult(result) => Some(Cow::Owned(result.prompt_text())),
        Part::Reasoning { .. } | Part::ToolCall(_) | Part::File { .. } => None,
    });
    let Some(mut all) = texts.next() else {
        return Cow::Borrowed("");
    };
    for text in texts {
        let all = all.to_mut();
        all.push_str(between);
        all.push_str(&text);
    }
    all
}

/// A name as the wire allows it: letters, digits, `_` and `-`, at most 64.
fn wire_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.len() <= 64 && name.chars().all(fits) {
        Cow::Borrowed(name)
    } else {
        name.chars().take(64).map(|c| if fits(c) { c } else { '_' }).collect::<String>().into()
    }
}
