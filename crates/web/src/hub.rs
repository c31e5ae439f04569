//! Messages for all who look at a run: one bounded buffer with the newest, which each reads at its own
//! pace. Whatever is too slow finds that messages are gone, and how many; no reader can make the
//! buffer larger, or keep anything from being written.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

/// A server-sent event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerSentEvent {
    pub(crate) event: &'static str,
    /// JSON, in one line.
    pub(crate) data: String,
    /// When it happened in the run, of messages that are sent to those who come later.
    pub(crate) at_ns: Option<u64>,
}

impl ServerSentEvent {
    pub(crate) fn new(event: &'static str, data: &impl Serialize) -> Self {
        // All that is sent has texts for keys.
        let data = serde_json::to_string(data).unwrap_or_default();
        ServerSentEvent { event, data, at_ns: None }
    }

    pub(crate) fn at(self, at_ns: u64) -> Self {
        ServerSentEvent { at_ns: Some(at_ns), ..self }
    }

    fn bytes(&self) -> usize {
        self.data.len() + 64
    }
}

/// The buffer.
#[derive(Debug)]
pub(crate) struct ServerSentEventHub {
    inner: Mutex<ServerSentEventBuffer>,
    /// The number of the next message.
    written: watch::Sender<u64>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct ServerSentEventBuffer {
    kept: VecDeque<Arc<ServerSentEvent>>,
    bytes: usize,
    /// The number of the first that is kept.
    first: u64,
    /// The last messages of kinds that replace the one before: `status` and `links`.
    latest: Vec<Arc<ServerSentEvent>>,
    /// The last message of all.
    ended: Option<Arc<ServerSentEvent>>,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventReadOutcome {
    Message(Arc<ServerSentEvent>),
    /// So many are gone.
    Gap(u64),
    /// Nothing is new.
    Wait,
    /// There will be no more.
    End,
}

/// A reader's place.
#[derive(Debug)]
pub(crate) struct EventStreamReader {
    hub: Arc<ServerSentEventHub>,
    next: u64,
    /// What comes before messages from the buffer.
    first: VecDeque<EventReadOutcome>,
    written: watch::Receiver<u64>,
    ended: bool,
}

impl ServerSentEventHub {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(ServerSentEventHub {
            inner: Mutex::default(),
            written: watch::Sender::new(0),
            bytes_max,
        })
    }

    /// Adds a message; old ones go where there is no room.
    pub(crate) fn write(&self, message: ServerSentEvent) {
        let message = Arc::new(message);
        let mut inner = self.lock();
        if REPLACED.contains(&message.event) {
            inner.latest.retain(|latest| latest.event != message.event);
            inner.latest.push(Arc::clone(&message));
        }
        inner.bytes += message.bytes();
        inner.kept.push_back(message);
        while inner.kept.len() > 1 && (inner.bytes > self.bytes_max || inner.kept.len() > KEPT_MAX)
        {
            let gone = inner.kept.pop_front().map_or(0, |gone| gone.bytes());
            inner.bytes -= gone;
            inner.first += 1;
        }
        let next = inner.next();
        drop(inner);
        self.written.send_replace(next);
    }

    /// The last message.
    pub(crate) fn end(&self, message: ServerSentEvent) {
        self.lock().ended = Some(Arc::new(message));
        self.written.send_modify(|_| {});
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// How many readers there are.
    pub(crate) fn readers(&self) -> usize {
        self.written.receiver_count()
    }

    /// A reader of what comes from now on; or of what happened after this time too.
    pub(crate) fn reader(self: &Arc<Self>, after_ns: Option<u64>) -> EventStreamReader {
        let inner = self.lock();
        let mut first: VecDeque<EventReadOutcome> = inner
            .latest
            .iter()
            .map(|message| EventReadOutcome::Message(Arc::clone(message)))
            .collect();
        if let Some(after) = after_ns {
            let timed = || inner.kept.iter().filter(|message| message.at_ns.is_some());
            let reaches_back = timed().next().is_none_or(|first| first.at_ns <= Some(after));
            if !reaches_back && inner.first > 0 {
                first.push_back(EventReadOutcome::Gap(inner.first));
            }
            let later = timed().filter(|message| message.at_ns > Some(after));
            first.extend(later.map(|message| EventReadOutcome::Message(Arc::clone(message))));
        }
        let next = inner.next();
        drop(inner);
        let written = self.written.subscribe();
        EventStreamReader { hub: Arc::clone(self), next, first, written, ended: false }
    }

    fn lock(&self) -> MutexGuard<'_, ServerSentEventBuffer> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerSentEventBuffer {
    fn next(&self) -> u64 {
        self.first + u64::try_from(self.kept.len()).unwrap_or(u64::MAX)
    }
}

impl EventStreamReader {
    pub(crate) fn take(&mut self) -> EventReadOutcome {
        if let Some(first) = self.first.pop_front() {
            return first;
        }
        let inner = self.hub.lock();
        if self.next < inner.first {
            let missed = inner.first - self.next;
            self.next = inner.first;
            return EventReadOutcome::Gap(missed);
        }
        let index = usize::try_from(self.next - inner.first).unwrap_or(usize::MAX);
        if let Some(message) = inner.kept.get(index) {
            self.next += 1;
            return EventReadOutcome::Message(Arc::clone(message));
        }
        match &inner.ended {
            Some(_) if self.ended => EventReadOutcome::End,
            Some(message) => {
                self.ended = true;
                EventReadOutcome::Message(Arc::clone(message))
            }
            None => EventReadOutcome::Wait,
        }
    }

    /// Until there may be something new.
    pub(crate) async fn wait(&mut self) {
        // The hub lives as long as this reader.
        let _ = self.written.changed().await;
    }
}

const REPLACED: [&str; 2] = ["status", "links"];
/// Some 30 s of samples, with what else happens.
const KEPT_MAX: usize = 600;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64) -> ServerSentEvent {
        ServerSentEvent::new("sample", &number).at(number)
    }

    fn text(next: &EventReadOutcome) -> String {
        match next {
            EventReadOutcome::Message(message) => format!("{} {}", message.event, message.data),
            other => format!("{other:?}"),
        }
    }

    fn all(reader: &mut EventStreamReader) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            match reader.take() {
                EventReadOutcome::Wait | EventReadOutcome::End => return texts,
                next => texts.push(text(&next)),
            }
        }
    }

    #[test]
    fn a_reader_gets_what_is_written_after_it_came_and_the_newest_state() {
        let hub = ServerSentEventHub::new(1 << 20);
        hub.write(ServerSentEvent::new("status", &"old"));
        hub.write(ServerSentEvent::new("status", &"new"));
        hub.write(sample(1));
        let mut reader = hub.reader(None);
        hub.write(sample(2));
        assert_eq!(all(&mut reader), ["status \"new\"", "sample 2"]);
        hub.end(ServerSentEvent::new("ended", &3));
        assert_eq!(all(&mut reader), ["ended 3"]);
        assert_eq!(reader.take(), EventReadOutcome::End);
    }

    #[test]
    fn a_slow_reader_misses_messages_and_knows_how_many() {
        let hub = ServerSentEventHub::new(1 << 20);
        let mut reader = hub.reader(None);
        for number in 0..KEPT_MAX as u64 + 7 {
            hub.write(sample(number));
        }
        assert_eq!(reader.take(), EventReadOutcome::Gap(7));
        assert_eq!(text(&reader.take()), "sample 7");
        assert_eq!(all(&mut reader).len(), KEPT_MAX - 1);
    }

    #[test]
    fn the_buffer_has_no_more_bytes_than_it_may() {
        let hub = ServerSentEventHub::new(1000);
        let mut reader = hub.reader(None);
        for _ in 0..10 {
            hub.write(ServerSentEvent::new("output", &"x".repeat(300)));
        }
        assert!(hub.lock().bytes <= 1000);
        assert_eq!(reader.take(), EventReadOutcome::Gap(8));
        // One that is larger than the buffer is still passed on.
        hub.write(ServerSentEvent::new("links", &"x".repeat(3000)));
        assert_eq!(hub.lock().kept.len(), 1);
    }

    #[test]
    fn what_happened_after_a_time_is_sent_first() {
        let hub = ServerSentEventHub::new(1 << 20);
        for number in [10, 20, 30] {
            hub.write(sample(number));
        }
        assert_eq!(all(&mut hub.reader(Some(10))), ["sample 20", "sample 30"]);
        assert_eq!(all(&mut hub.reader(Some(5))).len(), 3);
        let full = ServerSentEventHub::new(1 << 20);
        for number in 0..KEPT_MAX as u64 + 1 {
            full.write(sample(number * 10));
        }
        assert_eq!(text(&full.reader(Some(3)).take()), "Gap(1)");
    }
}
