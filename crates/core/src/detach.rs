//! Work that goes on when whoever began it goes away.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use tokio::task::JoinHandle;

/// Drive a future here as far as it goes at once, and from then on in a task of its own. Much of what
/// must not be left half done never has to wait, and a task for it would cost more than it does.
pub fn detach<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Detached<T> {
    let mut work = Box::pin(work);
    // Nobody is woken: where it has to wait, the new task asks at once again.
    let mut nobody = Context::from_waker(Waker::noop());
    match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut nobody))) {
        Ok(Poll::Ready(result)) => Detached(State::Over(Some(Ok(result)))),
        Ok(Poll::Pending) => Detached(State::UnderWay(tokio::spawn(work))),
        Err(panic) => Detached(State::Over(Some(Err(Broken(words_of(&*panic)))))),
    }
}

/// Detached work, to be waited for. Dropping this does not end the work.
#[derive(Debug)]
pub struct Detached<T>(State<T>);

#[derive(Debug)]
enum State<T> {
    Over(Option<Result<T, Broken>>),
    UnderWay(JoinHandle<T>),
}

// Nothing in it is ever pinned.
impl<T> Unpin for Detached<T> {}

/// Detached work that ended by a defect, a panic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

impl<T> Future for Detached<T> {
    type Output = Result<T, Broken>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Over(result) => match result.take() {
                Some(result) => Poll::Ready(result),
                // Whoever asks again has had it.
                None => Poll::Pending,
            },
            State::UnderWay(task) => {
                Pin::new(task).poll(cx).map_err(|error| Broken(error.to_string()))
            }
        }
    }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a word"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_goes_on_when_nobody_waits_for_it() {
        let (sender, receiver) = oneshot::channel();
        drop(detach(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            sender.send(7)
        }));
        assert_eq!(receiver.await, Ok(7));
    }

    #[tokio::test]
    async fn what_need_not_wait_is_done_at_once() {
        let (sender, mut receiver) = oneshot::channel();
        let work = detach(async move { sender.send(7) });
        assert_eq!(receiver.try_recv(), Ok(7));
        assert_eq!(work.await, Ok(Ok(())));
    }

    #[tokio::test]
    async fn a_defect_is_told_and_goes_no_further() {
        let at_once = detach(async { panic!("no such luck") });
        assert_eq!(at_once.await, Err::<(), _>(Broken("it panicked: no such luck".into())));
        let later = detach(async {
            tokio::task::yield_now().await;
            panic!("no such luck")
        });
        assert!(matches!(later.await, Err::<(), _>(Broken(why)) if why.contains("no such luck")));
    }
}
