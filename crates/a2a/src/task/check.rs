//! What a request must look like before anything happens.

use a2a::{A2AError, PartContent, Role, SendMessageRequest};

use crate::fault;

/// The longest id that a client may choose.
const LONGEST_ID: usize = 256;
/// The most messages of a history that a client may ask for; more is all.
const MOST_HISTORY: i32 = 1_000_000;

/// Check a message that was sent, and make empty fields missing ones, as the protocol means them.
pub(crate) fn check_send(
    request: &mut SendMessageRequest,
    input_modes: &[String],
) -> Result<(), A2AError> {
    let mut wrong = Vec::new();
    let message = &mut request.message;
    message.context_id = message.context_id.take().filter(|id| !id.is_empty());
    message.task_id = message.task_id.take().filter(|id| !id.is_empty());
    let mut complain = |field: &str, why: &str| wrong.push((field.to_owned(), why.to_owned()));
    if message.message_id.trim().is_empty() {
        complain("message.messageId", "it is required");
    }
    match message.role {
        Role::User => {}
        Role::Unspecified => complain("message.role", "it is required: ROLE_USER"),
        Role::Agent => complain("message.role", "a client speaks as ROLE_USER"),
    }
    if message.parts.is_empty() {
        complain("message.parts", "at least one part is required");
    }
    let ids = [
        ("message.messageId", Some(&message.message_id)),
        ("message.contextId", message.context_id.as_ref()),
        ("message.taskId", message.task_id.as_ref()),
    ];
    for (field, id) in ids {
        if id.is_some_and(|id| id.len() > LONGEST_ID) {
            complain(field, "it is longer than 256 bytes");
        }
    }
    let length = request.configuration.as_ref().and_then(|config| config.history_length);
    if length.is_some_and(|length| length < 0) {
        complain("configuration.historyLength", "it must not be negative");
    }
    if !wrong.is_empty() {
        return Err(fault::all_invalid(wrong));
    }
    check_media(request, input_modes)
}

fn check_media(request: &SendMessageRequest, input_modes: &[String]) -> Result<(), A2AError> {
    for part in &request.message.parts {
        let declared = part.media_type.as_deref().filter(|media| !media.is_empty());
        let media = match (&part.content, declared) {
            (_, Some(media)) => media,
            // Without a word about it, a text is a text and data is JSON; a file can be anything.
            (PartContent::Text(_), None) => "text/plain",
            (PartContent::Data(_), None) => "application/json",
            (PartContent::Raw(_) | PartContent::Url(_), None) => continue,
        };
        if !input_modes.iter().any(|mode| fits(mode, media)) {
            let modes = input_modes.join(", ");
            let message = format!("{media} is not understood; this agent reads {modes}");
            return Err(A2AError::new(a2a::error_code::CONTENT_TYPE_NOT_SUPPORTED, message));
        }
    }
    Ok(())
}

/// Whether a media type is one that a mode means: `text/plain`, `image/*`, `*/*` or just `text`.
fn fits(mode: &str, media: &str) -> bool {
    let bare = media.split(';').next().unwrap_or(media).trim();
    let mode = mode.trim();
    let is_of = |wanted: &str| {
        bare.split_once('/').is_some_and(|(found, _)| found.eq_ignore_ascii_case(wanted))
    };
    match mode.split_once('/') {
        Some(("*", _)) => true,
        Some((kind, "*")) => is_of(kind),
        Some(_) => mode.eq_ignore_ascii_case(bare),
        None => is_of(mode),
    }
}

/// How much history was asked for: all of it, none, or the last so many.
pub(crate) fn history_length(field: &str, length: Option<i32>) -> Result<Option<usize>, A2AError> {
    match length {
        None => Ok(None),
        Some(length) if length < 0 => {
            Err(fault::invalid(field, format!("it must not be negative, got {length}")))
        }
        Some(length) => Ok(usize::try_from(length.min(MOST_HISTORY)).ok()),
    }
}

#[cfg(test)]
mod tests {
    use a2a::{Message, Part};

    use super::*;

    fn request(message: Message) -> SendMessageRequest {
        SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let mut message = Message::new(Role::Agent, Vec::new());
        message.message_id = String::new();
        let error = check_send(&mut request(message), &[]).unwrap_err();
        assert_eq!(error.code, a2a::error_code::INVALID_PARAMS);
        for field in ["message.messageId", "message.role", "message.parts"] {
            assert!(error.message.contains(field), "{}", error.message);
        }
    }

    #[test]
    fn a_media_type_that_is_not_read_is_refused() {
        let modes = ["text/plain".to_owned(), "image/*".to_owned()];
        let send = |part: Part| {
            check_send(&mut request(Message::new(Role::User, vec![part])), &modes)
                .map_err(|error| error.code)
        };
        assert_eq!(send(Part::text("x")), Ok(()));
        assert_eq!(send(Part::raw(vec![1]).with_media_type("image/png; q=1")), Ok(()));
        let refused = Err(a2a::error_code::CONTENT_TYPE_NOT_SUPPORTED);
        assert_eq!(send(Part::raw(vec![1]).with_media_type("application/pdf")), refused);
        assert_eq!(send(Part::data(serde_json::json!({}))), refused);
    }
}
