//! Why a request took as long as it did: each nanosecond of it has one cause.
//!
//! The time of a request is measured where its program measures it: from the begin of the first
//! call that writes it (or of `connect`) to the end of the call that reads the last byte of the
//! answer. It is divided by a walk along the critical path, from the end back to the begin
//! (`critical`), so the parts add up to the whole by construction (`walk`).
//!
//! Where calls of a side are not recorded, packets show when it sent and when it could read; the
//! time between is then named [`LatencyComponent::Unrecorded`], and nothing is guessed.

mod acks;
mod arrivals;
mod critical;
mod datagrams;
mod hold;
pub(crate) mod index;
mod losses;
mod part;
mod passage;
mod program;
pub mod report;
mod request;
mod route;
mod setup;
#[cfg(test)]
pub(crate) mod tests;
mod walk;

use std::collections::BTreeMap;

pub use datagrams::DatagramLengthMismatch;
pub use losses::{LossDetectionMethod, PacketRetransmission};
pub use part::LatencyComponent;
pub use request::RequestKind;
pub use walk::LatencySegment;

use crate::history::{DirectedLinkEnds, EndpointRole, FlowHistory, FlowSocketType};
use index::FlowIndex;

/// A request, and where its time went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub flow: u32,
    /// Its number in the flow; 0 is the set-up of the connection.
    pub number: u32,
    pub kind: RequestKind,
    /// Who asked.
    pub from: EndpointRole,
    pub begin: u64,
    pub end: u64,
    /// Bytes (datagrams) of the request.
    pub asked: u64,
    /// Bytes (datagrams) of the answer.
    pub answered: u64,
    /// The earliest first; each begins where the one before ends.
    pub stretches: Vec<LatencySegment>,
    /// Losses that took part, the earliest first.
    pub losses: Vec<PacketRetransmission>,
}

impl Explanation {
    /// The measured time, in nanoseconds.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end - self.begin
    }

    /// Nanoseconds of each part; they add up to the duration.
    #[must_use]
    pub fn parts(&self) -> BTreeMap<LatencyComponent, u64> {
        let mut parts = BTreeMap::new();
        for stretch in &self.stretches {
            *parts.entry(stretch.part).or_default() += stretch.to - stretch.from;
        }
        parts
    }
}

/// What is said of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowExplanation {
    /// By begin.
    pub requests: Vec<Explanation>,
    /// Messages of which no read was seen: they had not been read when recording ended.
    pub unread_messages: u64,
}

/// Explains all requests of a flow.
///
/// # Errors
/// If calls and packets of datagrams do not join.
pub fn explain(
    history: &FlowHistory,
    lanes: &[DirectedLinkEnds],
) -> Result<FlowExplanation, DatagramLengthMismatch> {
    let flow = FlowIndex::new(history, lanes)?;
    let mut explained = FlowExplanation::default();
    if history.transport == FlowSocketType::Stream
        && let Some((begin, end)) = setup::span(&flow)
    {
        let (stretches, losses) = setup::explain(&flow, begin, end);
        explained.requests.push(Explanation {
            flow: history.flow,
            number: 0,
            kind: RequestKind::Connect,
            from: EndpointRole::Client,
            begin: begin.min(end),
            end,
            asked: 0,
            answered: 0,
            stretches,
            losses,
        });
    }
    let (requests, unread) = request::requests(&flow.programs);
    explained.unread_messages = unread.messages;
    for (number, request) in (1..).zip(&requests) {
        let (stretches, losses) = critical::explain(&flow, request);
        explained.requests.push(Explanation {
            flow: history.flow,
            number,
            kind: request.kind,
            from: request.from,
            begin: request.begin.min(request.end),
            end: request.end,
            asked: request.asked.1 - request.asked.0,
            answered: request.answered.1 - request.answered.0,
            stretches,
            losses,
        });
    }
    Ok(explained)
}
