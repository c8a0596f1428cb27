//! Work that waits for the disk, away from the threads that drive everything else.

use duologue_core::ToolError;
use tokio_util::sync::CancellationToken;

/// Run it on a thread of its own. Its token is cancelled with the turn, and also when the caller
/// stops waiting, as it does after a timeout; the work should look at it now and then.
pub(crate) async fn blocking<T: Send + 'static>(
    cancel: CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let token = cancel.child_token();
    let _stop = token.clone().drop_guard();
    match tokio::task::spawn_blocking(move || work(&token)).await {
        Ok(result) => result,
        Err(error) => Err(ToolError(format!("the tool broke off: {error}"))),
    }
}
