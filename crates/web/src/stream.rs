//! Messages as server-sent events, and other bytes that come over time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use futures_core::Stream;
use tokio::sync::{Semaphore, mpsc};

use crate::answer;
use crate::hub::{EventReadOutcome, EventStreamReader, ServerSentEvent};

/// Bytes from a task. A reader that does not read keeps the task waiting, and nothing else.
#[derive(Debug)]
pub(crate) struct ByteChunkStream(mpsc::Receiver<Bytes>);

impl Stream for ByteChunkStream {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(Ok))
    }
}

/// A body of what is sent.
pub(crate) fn body() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    (sender, Body::from_stream(ByteChunkStream(receiver)))
}

/// The messages that a reader gets, until there are no more or the browser goes.
pub(crate) fn events(mut reader: EventStreamReader, streams: &Arc<Semaphore>) -> Response<Body> {
    let Ok(place) = Arc::clone(streams).try_acquire_owned() else {
        let text = "too many pages look at runs";
        return answer::wrong(StatusCode::SERVICE_UNAVAILABLE, text, Some("close some of them"));
    };
    let (sender, body) = body();
    tokio::spawn(async move {
        let _place = place;
        loop {
            let text = match reader.take() {
                EventReadOutcome::Message(message) => text(&message),
                EventReadOutcome::Gap(missed) => {
                    format!("event: gap\ndata: {{\"missed\":{missed}}}\n\n")
                }
                EventReadOutcome::End => break,
                EventReadOutcome::Wait => {
                    let quiet = tokio::time::timeout(QUIET, reader.wait()).await.is_err();
                    if sender.is_closed() {
                        break;
                    }
                    if !quiet {
                        continue;
                    }
                    // A comment: a browser that has gone is noticed.
                    ":\n\n".to_owned()
                }
            };
            if sender.send(Bytes::from(text)).await.is_err() {
                break;
            }
        }
    });
    answer::response(StatusCode::OK, "text/event-stream", body)
}

/// In the format of HTML's server-sent events.
fn text(message: &ServerSentEvent) -> String {
    let id = message.at_ns.map(|at| format!("id: {at}\n")).unwrap_or_default();
    format!("event: {}\n{id}data: {}\n\n", message.event, message.data)
}

const CHUNKS_MAX: usize = 4;
const QUIET: Duration = Duration::from_secs(10);
