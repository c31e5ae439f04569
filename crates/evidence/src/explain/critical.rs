//! The critical path of a request: from the read that ended it back to the write that began it.
//!
//! Each step asks for the latest cause of what has been reached: a read ends because its last byte
//! had come; that byte came as a packet, lane by lane, which was sent because the byte had been
//! written, or because an earlier copy was dropped, or because a window opened; the byte was
//! written because the program had read something, or after its last write. Time between a cause
//! and its effect has one name ([`LatencyComponent`]).

use super::index::FlowIndex;
use super::losses::{LossDetectionMethod, PacketRetransmission};
use super::part::LatencyComponent;
use super::program::DataCall;
use super::request::RequestSpan;
use super::walk::{LatencyAttribution, LatencySegment};
use crate::history::{EndpointRole, FlowSocketType};

/// Where a request's time went, the earliest first, and the losses that took part.
pub(super) fn explain(
    flow: &FlowIndex<'_>,
    request: &RequestSpan,
) -> (Vec<LatencySegment>, Vec<PacketRetransmission>) {
    let mut path = CriticalPath {
        flow,
        walk: LatencyAttribution::new(request.begin, request.end),
        losses: Vec::new(),
        left: flow.programs.each_ref().map(|program| program.calls.len()),
    };
    let (mut side, mut read) = request.last;
    while !path.walk.is_done() {
        let Some(write) = path.back_to_write(side, read) else { break };
        side = side.peer();
        let Some(cause) = path.back_to_read(side, write) else { break };
        read = cause;
    }
    let rest = path.rest(side);
    let CriticalPath { walk, mut losses, .. } = path;
    losses.sort_by_key(|loss| (loss.resent_at, loss.sender, loss.offset));
    losses.dedup();
    (walk.finish(rest), losses)
}

struct CriticalPath<'a> {
    flow: &'a FlowIndex<'a>,
    walk: LatencyAttribution,
    losses: Vec<PacketRetransmission>,
    /// By side: calls from there on have been walked over.
    left: [usize; 2],
}

impl CriticalPath<'_> {
    fn call(&self, side: EndpointRole, at: usize) -> DataCall {
        self.flow.programs[side.index()].calls[at]
    }

    fn is_recorded(&self, side: EndpointRole) -> bool {
        self.flow.programs[side.index()].is_recorded
    }

    /// What the time is, for which no cause is known.
    fn rest(&self, side: EndpointRole) -> LatencyComponent {
        match self.is_recorded(side) {
            true => LatencyComponent::Thinking(side),
            false => LatencyComponent::Unrecorded(side),
        }
    }

    /// From the end of a read to the begin of the peer's write that wrote its last byte: the
    /// position of that.
    fn back_to_write(&mut self, reader: EndpointRole, read: usize) -> Option<usize> {
        let (call, sender) = (self.call(reader, read), reader.peer());
        let byte = call.to - 1;
        let Some((arrival, missing)) = self.flow.readable(sender, byte) else {
            return self.over_unknown(sender, byte);
        };
        self.back_over_read(reader, &call, byte, arrival);
        let route = &self.flow.routes[sender.index()];
        let until = arrival + self.flow.history.order_error_ns;
        let Some(sent) = route.journey(missing, until, &mut self.walk) else {
            return self.over_unknown(sender, missing);
        };
        self.back_over_copies(sender, missing, sent);
        let write = self.flow.programs[sender.index()].write_of(missing)?;
        self.back_over_hold(sender, self.call(sender, write).begin);
        self.visit(sender, write)
    }

    /// Where packets do not show the byte.
    fn over_unknown(&mut self, sender: EndpointRole, byte: u64) -> Option<usize> {
        let Some(write) = self.flow.programs[sender.index()].write_of(byte) else {
            self.over_unrecorded(sender);
            return None;
        };
        self.walk.back_to(self.call(sender, write).begin, LatencyComponent::Network);
        self.visit(sender, write)
    }

    /// Where neither packets nor calls of the sender show anything: back to the last write of the
    /// reader, which the sender may have answered.
    fn over_unrecorded(&mut self, sender: EndpointRole) {
        let (reader, now) = (sender.peer(), self.walk.now());
        if self.is_recorded(sender) {
            return;
        }
        let calls = self.flow.programs[reader.index()].calls.iter();
        let last = calls.filter(|call| call.is_write && call.end <= now).max_by_key(|it| it.end);
        if let Some(write) = last.copied() {
            self.walk.back_to(write.end, LatencyComponent::Network);
            self.back_over_write(reader, &write);
        }
    }

    fn visit(&mut self, side: EndpointRole, at: usize) -> Option<usize> {
        let left = &mut self.left[side.index()];
        let is_earlier = at < *left;
        *left = at.min(*left);
        is_earlier.then_some(at)
    }

    /// From the end of a read to the arrival of its last byte.
    fn back_over_read(&mut self, reader: EndpointRole, call: &DataCall, byte: u64, arrival: u64) {
        if arrival < call.begin {
            self.walk.back_to(call.begin, LatencyComponent::Kernel(reader));
            self.walk.back_to(arrival, LatencyComponent::Unread(reader));
            return;
        }
        // The call was waiting. Once the stack has acknowledged the byte, it could have been read.
        let acks = &self.flow.senders[reader.peer().index()].acks;
        if let Some(acknowledged) = acks.left_for(byte, arrival) {
            self.walk.back_to(acknowledged, LatencyComponent::Unread(reader));
        }
        self.walk.back_to(arrival, LatencyComponent::Kernel(reader));
    }

    /// From the copy that arrived to the first time that the byte was sent.
    fn back_over_copies(&mut self, sender: EndpointRole, byte: u64, sent: u64) {
        let route = &self.flow.routes[sender.index()];
        let knowledge = &self.flow.senders[sender.index()];
        self.walk.back_to(sent, LatencyComponent::Kernel(sender));
        let mut sent = sent;
        while let Some(earlier) = sent.checked_sub(1).and_then(|it| route.last_entered(byte, it)) {
            let known = knowledge.losses.resent(byte, sent).copied();
            let loss = known.unwrap_or_else(|| PacketRetransmission {
                sender,
                offset: byte,
                sent_at: earlier,
                dropped: None,
                resent_at: sent,
                notice: knowledge.losses.notice(
                    byte,
                    earlier,
                    sent,
                    &knowledge.acks,
                    knowledge.samples,
                ),
            });
            self.walk
                .back_to(earlier, LatencyComponent::Recovery(loss.dropped.map(|(lane, ..)| lane)));
            self.losses.push(loss);
            sent = earlier;
        }
    }

    /// From when a byte was first sent to when the write of it began.
    fn back_over_hold(&mut self, sender: EndpointRole, begin: u64) {
        let knowledge = &self.flow.senders[sender.index()];
        let opened = knowledge.acks.before(self.walk.now()).map(|ack| ack.time);
        match opened.filter(|opened| *opened > begin) {
            Some(opened) => {
                self.walk.back_to(opened, LatencyComponent::Kernel(sender));
                let otherwise = LatencyComponent::SendBuffer(sender);
                knowledge.hold(&mut self.walk, begin, otherwise, &mut self.losses);
            }
            None => self.walk.back_to(begin, LatencyComponent::Kernel(sender)),
        }
    }

    /// From the begin of a write back over earlier ones to the end of the read that came before:
    /// the position of that.
    fn back_to_read(&mut self, side: EndpointRole, write: usize) -> Option<usize> {
        let mut at = write;
        while !self.walk.is_done() {
            let program = &self.flow.programs[side.index()];
            at = program.ended_before(at, self.walk.now())?;
            let call = program.calls[at];
            self.back_over_gap(side, &call);
            if !call.is_write {
                return self.visit(side, at);
            }
            self.visit(side, at);
            self.back_over_write(side, &call);
        }
        None
    }

    /// From the begin of a write to the end of the call before.
    fn back_over_gap(&mut self, side: EndpointRole, before: &DataCall) {
        let knowledge = &self.flow.senders[side.index()];
        let is_held = before.is_write && (before.is_short || !self.is_recorded(side));
        let otherwise = match self.is_recorded(side) {
            true => LatencyComponent::SendBuffer(side),
            false => LatencyComponent::Unrecorded(side),
        };
        if self.flow.history.transport == FlowSocketType::Datagrams && before.is_write {
            self.back_over_lost_datagram(side, before);
        } else if is_held {
            knowledge.hold(&mut self.walk, before.end, otherwise, &mut self.losses);
        }
        self.walk.back_to(before.end, self.rest(side));
    }

    /// A program that sends again because a datagram was lost waits for its own timer.
    fn back_over_lost_datagram(&mut self, side: EndpointRole, before: &DataCall) {
        let (from, to) = (before.end, self.walk.now());
        let dropped = |sender: EndpointRole, byte: u64| {
            let drop = self.flow.routes[sender.index()].dropped(byte, to);
            drop.map(|(lane, it)| (lane, it.time, u32::try_from(it.value).unwrap_or(u32::MAX)))
        };
        let answer = || self.flow.dropped_between(side.peer(), from, to);
        let own = dropped(side, before.from).map(|dropped| (side, before.from, dropped));
        let Some((sender, offset, dropped)) = own.or_else(answer) else { return };
        let sent_at = before.begin;
        let notice = LossDetectionMethod::Program;
        self.losses.push(PacketRetransmission {
            sender,
            offset,
            sent_at,
            dropped: Some(dropped),
            resent_at: to,
            notice,
        });
        self.walk.back_to(from, LatencyComponent::Recovery(Some(dropped.0)));
    }

    /// From the end of a write to its begin.
    fn back_over_write(&mut self, side: EndpointRole, call: &DataCall) {
        let knowledge = &self.flow.senders[side.index()];
        if !knowledge.acks.between(call.begin, call.end).is_empty() {
            let otherwise = LatencyComponent::SendBuffer(side);
            knowledge.hold(&mut self.walk, call.begin, otherwise, &mut self.losses);
        }
        self.walk.back_to(call.begin, LatencyComponent::Kernel(side));
    }
}
