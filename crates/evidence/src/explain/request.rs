//! Which calls make up a request.
//!
//! A request is a burst of writes of the client and all that it reads until it writes again. Bytes
//! that nothing answers, and those that nothing asked for, are messages: a message ends where all
//! of it has been read by the other side before the sender writes again.

use serde::Serialize;

use super::program::SocketCallHistory;
use crate::history::EndpointRole;

/// What a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestKind {
    /// The set-up of the connection.
    Connect,
    /// Bytes of the client and those that answer them.
    #[serde(rename = "request")]
    Exchange,
    /// Bytes of one side that the other does not answer.
    Message,
}

impl RequestKind {
    /// The name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RequestKind::Connect => "connect",
            RequestKind::Exchange => "request",
            RequestKind::Message => "message",
        }
    }
}

/// A request, with its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestSpan {
    pub(super) kind: RequestKind,
    /// Who asks.
    pub(super) from: EndpointRole,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The bytes that were written, by `from`: first, and the one after the last.
    pub(super) asked: (u64, u64),
    /// The bytes that answered.
    pub(super) answered: (u64, u64),
    /// The read that ended it: a position among the calls of its side.
    pub(super) last: (EndpointRole, usize),
}

/// Bytes that were written and of which no read is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct UnreadMessageCount {
    pub(super) messages: u64,
}

/// All requests of a flow, by begin, and how many messages were never read.
pub(super) fn requests(
    programs: &[SocketCallHistory; 2],
) -> (Vec<RequestSpan>, UnreadMessageCount) {
    let mut found =
        RequestCollector { programs, requests: Vec::new(), unread: UnreadMessageCount::default() };
    let mut present = PartialRequest::default();
    let client = &programs[EndpointRole::Client.index()];
    for (at, call) in client.calls.iter().enumerate() {
        if call.is_write {
            if present.last_read.is_some() {
                found.close(std::mem::take(&mut present));
            }
            present.first_write.get_or_insert(at);
            present.asked = joined(present.asked, (call.from, call.to));
        } else {
            present.last_read = Some(at);
            present.answered = joined(present.answered, (call.from, call.to));
        }
    }
    found.close(present);
    found.requests.sort_by_key(|request| request.begin);
    (found.requests, found.unread)
}

/// What has been seen of a request.
#[derive(Debug, Clone, Copy, Default)]
struct PartialRequest {
    first_write: Option<usize>,
    last_read: Option<usize>,
    asked: Option<(u64, u64)>,
    answered: Option<(u64, u64)>,
}

fn joined(known: Option<(u64, u64)>, more: (u64, u64)) -> Option<(u64, u64)> {
    Some(known.map_or(more, |known| (known.0.min(more.0), known.1.max(more.1))))
}

struct RequestCollector<'a> {
    programs: &'a [SocketCallHistory; 2],
    requests: Vec<RequestSpan>,
    unread: UnreadMessageCount,
}

impl RequestCollector<'_> {
    fn close(&mut self, present: PartialRequest) {
        match (present.first_write, present.last_read, present.asked, present.answered) {
            (Some(write), Some(read), Some(asked), Some(answered)) => {
                let calls = &self.programs[EndpointRole::Client.index()].calls;
                self.requests.push(RequestSpan {
                    kind: RequestKind::Exchange,
                    from: EndpointRole::Client,
                    begin: calls[write].begin,
                    end: calls[read].end,
                    asked,
                    answered,
                    last: (EndpointRole::Client, read),
                });
            }
            (_, _, Some(asked), None) => self.messages(EndpointRole::Client, asked),
            (_, _, None, Some(answered)) => self.messages(EndpointRole::Server, answered),
            _ => {}
        }
    }

    /// Divides bytes of one direction into messages.
    fn messages(&mut self, from: EndpointRole, bytes: (u64, u64)) {
        let [sender, reader] = [from, from.peer()].map(|side| &self.programs[side.index()]);
        let mut present: Option<(u64, (u64, u64))> = None;
        let first = sender.write_of(bytes.0).unwrap_or(sender.calls.len());
        for call in &sender.calls[first..] {
            if !call.is_write {
                continue;
            }
            if call.from >= bytes.1 {
                break;
            }
            if let Some((begin, known)) = present {
                let read = reader.read_of(known.1 - 1).map(|at| reader.calls[at].end);
                if read.is_some_and(|end| end <= call.begin) {
                    self.message(from, begin, known);
                    present = None;
                }
            }
            let (begin, known) = present.unwrap_or((call.begin, (call.from, call.to)));
            present = Some((begin, (known.0, known.1.max(call.to))));
        }
        if let Some((begin, known)) = present {
            self.message(from, begin, known);
        }
    }

    fn message(&mut self, from: EndpointRole, begin: u64, asked: (u64, u64)) {
        let reader = &self.programs[from.peer().index()];
        let Some(read) = reader.read_of(asked.1 - 1) else {
            self.unread.messages += 1;
            return;
        };
        self.requests.push(RequestSpan {
            kind: RequestKind::Message,
            from,
            begin,
            end: reader.calls[read].end,
            asked,
            answered: (0, 0),
            last: (from.peer(), read),
        });
    }
}
