//! What servers give, in our words.

use duologue_core::{FileSource, Part};
use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, ResourceContents};
use serde::Serialize;

/// Something that a server lets read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// Its address, as the server names it.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

impl From<rmcp::model::Resource> for Resource {
    fn from(it: rmcp::model::Resource) -> Self {
        let description = it.description.or(it.title);
        Self { uri: it.uri, name: it.name, description, media_type: it.mime_type }
    }
}

/// A text with gaps that a server offers to begin a conversation with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What can be filled in; required ones first.
    pub arguments: Vec<String>,
}

impl From<rmcp::model::Prompt> for Prompt {
    fn from(it: rmcp::model::Prompt) -> Self {
        let mut arguments = it.arguments.unwrap_or_default();
        arguments.sort_by_key(|argument| !argument.required.unwrap_or_default());
        let arguments = arguments.into_iter().map(|argument| argument.name).collect();
        Self { name: it.name, description: it.description.or(it.title), arguments }
    }
}

/// A call's result: content, or an error for the model.
pub(super) fn result(result: CallToolResult) -> Result<Vec<Part>, String> {
    let is_error = result.is_error.unwrap_or_default();
    let mut parts: Vec<Part> = result.content.into_iter().map(part).collect();
    // Servers repeat their structured result as text for clients of old, so it counts only alone.
    if parts.is_empty()
        && let Some(value) = result.structured_content
    {
        parts.push(Part::Data { value });
    }
    if !is_error {
        return Ok(parts);
    }
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.clone()),
        Part::Data { value } => Some(value.to_string()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    Err(if text.is_empty() {
        "the server says that it failed, and not why".to_owned()
    } else {
        text
    })
}

fn part(block: ContentBlock) -> Part {
    let file =
        |media_type, data| Part::File { media_type, name: None, source: FileSource::Base64(data) };
    match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) => file(image.mime_type, image.data),
        ContentBlock::Audio(audio) => file(audio.mime_type, audio.data),
        ContentBlock::Resource(embedded) => contents(embedded.resource),
        ContentBlock::ResourceLink(link) => {
            let about = link.description.or(link.title).map(|text| format!(": {text}"));
            Part::text(format!("[{} at {}{}]", link.name, link.uri, about.unwrap_or_default()))
        }
        // A kind of a later protocol.
        other => Part::Data { value: serde_json::to_value(other).unwrap_or_default() },
    }
}

/// What is in a resource.
pub(super) fn contents(contents: ResourceContents) -> Part {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => Part::text(text),
        ResourceContents::BlobResourceContents { blob, mime_type, uri, .. } => Part::File {
            media_type: mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            name: Some(uri),
            source: FileSource::Base64(blob),
        },
        other => Part::Data { value: serde_json::to_value(other).unwrap_or_default() },
    }
}

/// A prompt's messages as one text, each with who says it where there are several.
pub(super) fn prompt_text(result: GetPromptResult) -> String {
    let many = result.messages.len() > 1;
    let texts = result.messages.into_iter().map(|message| {
        let said = match part(message.content) {
            Part::Text { text } => text,
            Part::File { media_type, .. } => format!("[a file, {media_type}]"),
            other => serde_json::to_string(&other).unwrap_or_default(),
        };
        if many { format!("{:?}: {said}", message.role) } else { said }
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
