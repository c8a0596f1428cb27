//! The errors of the protocol, with what a client needs to do better.

use std::collections::HashMap;

use a2a::{A2AError, FieldViolation, TypedDetail, error_code, errordetails};
use duologue_core::{SessionError, StoreError};

/// A field that does not fit.
pub(crate) fn invalid(field: &str, description: impl Into<String>) -> A2AError {
    all_invalid(vec![(field.to_owned(), description.into())])
}

/// Fields that do not fit, all at once.
pub(crate) fn all_invalid(violations: Vec<(String, String)>) -> A2AError {
    let texts: Vec<String> =
        violations.iter().map(|(field, why)| format!("{field}: {why}")).collect();
    let violations = violations
        .into_iter()
        .map(|(field, description)| FieldViolation { field, description })
        .collect();
    A2AError::invalid_params(format!("Invalid parameters: {}", texts.join("; ")))
        .with_details(vec![TypedDetail::bad_request(violations)])
}

/// No such task, or not for this caller: nobody learns which.
pub(crate) fn not_found(id: &str) -> A2AError {
    let message = format!("Task {id} does not exist or is not accessible");
    about(A2AError::new(error_code::TASK_NOT_FOUND, message), "taskId", id)
}

/// A message for a task that is over.
pub(crate) fn is_over(id: &str, state: &str) -> A2AError {
    let message = format!("Task {id} is over ({state}) and takes no more messages or subscribers");
    about(A2AError::unsupported_operation(message), "taskId", id)
}

/// A task that can no longer be cancelled.
pub(crate) fn not_cancelable(id: &str, state: &str) -> A2AError {
    let message = format!("Task {id} cannot be cancelled: it is over ({state})");
    about(A2AError::new(error_code::TASK_NOT_CANCELABLE, message), "taskId", id)
}

/// What kept a client from hearing the end of a task, which may go on all the same.
pub(crate) fn before_its_end(mut error: A2AError, id: &str) -> A2AError {
    if error.code == error_code::INTERNAL_ERROR {
        error.message +=
            &format!("; look at task {id}, which may go on, before you send this again");
        return about(error, "taskId", id);
    }
    error
}

/// A version that is not spoken.
pub(crate) fn wrong_version(found: &str) -> A2AError {
    let message = format!("A2A version {found} is not supported; send A2A-Version: 1.0 or 0.3");
    about(A2AError::new(error_code::VERSION_NOT_SUPPORTED, message), "supported", "1.0, 0.3")
}

fn about(error: A2AError, key: &str, value: &str) -> A2AError {
    let metadata = HashMap::from([(key.to_owned(), value.to_owned())]);
    let reason = a2a::error_reason(error.code);
    let info = TypedDetail::error_info(reason, errordetails::PROTOCOL_DOMAIN, Some(metadata));
    error.with_details(vec![info])
}

/// What a session could not do, as a client may know it.
pub(crate) fn of_session(error: &SessionError) -> A2AError {
    match error {
        SessionError::Store(error) => of_store(error),
        SessionError::Busy => A2AError::internal("The task is busy; try again"),
        SessionError::NotUnderWay => A2AError::internal("The task changes too fast; try again"),
        SessionError::Suspended => {
            A2AError::internal("The server is stopping; the task goes on when it is back")
        }
        other => {
            tracing::error!(error = %other, "a session failed");
            A2AError::internal("The agent could not take this up")
        }
    }
}

/// What a store could not do. Its own words may name files, so they go to the log only.
pub(crate) fn of_store(error: &StoreError) -> A2AError {
    match error {
        StoreError::NotFound(id) => not_found(id.as_str()),
        StoreError::Exists(_) => invalid("id", "it is taken; choose another"),
        other => {
            tracing::error!(error = %other, "the journal failed");
            A2AError::internal("The journal cannot be read or written now")
        }
    }
}
