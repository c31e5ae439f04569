//! How many streams the other end of a connection may have open. Quinn keeps state for each stream
//! that may be opened, open or not: 4096 of them are 340 kB. So few are permitted first, and twice
//! as many whenever half of them are open, with the answer to which they are needed on its way.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use quinn::{Connection, RecvStream, VarInt};

/// Of one connection.
#[derive(Debug)]
pub(crate) struct StreamLimit {
    permitted: u32,
    /// Each open stream has a clone.
    open: Arc<()>,
}

impl StreamLimit {
    pub(crate) fn new() -> Self {
        StreamLimit { permitted: STREAMS_AT_FIRST, open: Arc::new(()) }
    }

    /// Counts a stream as open until it is dropped, and permits more if need be.
    pub(crate) fn count(&mut self, connection: &Connection, stream: RecvStream) -> CountedStream {
        let stream = CountedStream { stream, _open: Arc::clone(&self.open) };
        let permitted = permitted(self.permitted, Arc::strong_count(&self.open) - 1);
        if permitted > self.permitted {
            self.permitted = permitted;
            connection.set_max_concurrent_bi_streams(VarInt::from_u32(permitted));
        }
        stream
    }
}

/// How many streams are permitted when `open` are open and `so_far` were permitted.
fn permitted(so_far: u32, open: usize) -> u32 {
    let is_half = open.saturating_mul(2) >= so_far as usize;
    if is_half { so_far.saturating_mul(2).min(STREAMS_MAX) } else { so_far }
}

/// What comes on a stream that the other end has opened.
#[derive(Debug)]
pub(crate) struct CountedStream {
    stream: RecvStream,
    _open: Arc<()>,
}

impl Deref for CountedStream {
    type Target = RecvStream;

    fn deref(&self) -> &RecvStream {
        &self.stream
    }
}

impl DerefMut for CountedStream {
    fn deref_mut(&mut self) -> &mut RecvStream {
        &mut self.stream
    }
}

/// Enough for the first questions; also what a stranger may open before it has shown its key.
pub(crate) const STREAMS_AT_FIRST: u32 = 16;
/// One for each run that an agent can have ([`windtunnel_mesh::config::AgentResourceLimits`]), and questions.
pub(crate) const STREAMS_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_doubles_when_half_of_the_streams_are_open_and_stops_at_the_most() {
        assert_eq!(permitted(16, 7), 16);
        assert_eq!(permitted(16, 8), 32);
        let mut limit = STREAMS_AT_FIRST;
        (0..10_000).for_each(|open| limit = permitted(limit, open));
        assert_eq!(limit, STREAMS_MAX);
    }
}
