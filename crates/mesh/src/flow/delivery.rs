//! How far another member has been sent this agent's flows.

use alloc::vec::Vec;

use windtunnel_model::{Span, Time};

use super::own::OwnFlows;
use crate::id::RunId;
use crate::wire::message::{DELTA_HEAD_MAX, FlowTableDelta, entry_len};

/// A request for the same is answered again after this time only.
const REPAIR_WAIT: Span = Span::from_millis(5);
/// How many times as long as the one before each wait for a digest is.
const DIGEST_GROWTH: u64 = 8;

/// What one member of a run has been sent, and when its next digest is due.
#[derive(Debug, Default)]
pub(crate) struct FlowDelivery {
    /// It was sent our flows up to this version…
    pub(crate) sent: u64,
    /// …of which those up to this one in full, regardless of its own table.
    full_until: u64,
    /// The greatest version that it was ever sent.
    sent_max: u64,
    /// It is sent something that could wait.
    has_time: bool,
    /// How long after the last digest, or the last changes, the next digest is due.
    pub(crate) digest_wait: Span,
    /// The last request of its that was answered.
    rewound: Option<(Time, u64)>,
}

impl FlowDelivery {
    /// Whether there is something that the member has not been sent.
    pub(crate) fn has_more(&self, own: &OwnFlows, member: u32) -> bool {
        let full = self.sent < self.full_until;
        full || own.after(self.sent, member, self.sent_max).next().is_some()
    }

    /// The next message for the member, which then counts as sent.
    pub(crate) fn next_delta(
        &mut self,
        id: RunId,
        own: &OwnFlows,
        member: u32,
        mtu: usize,
    ) -> Option<FlowTableDelta> {
        if self.sent_max == 0 && own.after(0, member, 0).next().is_none() {
            return None;
        }
        if self.sent == 0 && self.full_until == 0 {
            // A member that has received nothing needs no ends.
            self.full_until = own.version();
        }
        let (prev, full) = (self.sent, self.sent < self.full_until);
        let last = if full { self.full_until } else { own.version() };
        let (mut room, mut top, mut entries) = (mtu - DELTA_HEAD_MAX, prev, Vec::new());
        let mut all = true;
        let ends = if full { 0 } else { self.sent_max };
        for entry in own.after(prev, member, ends).take_while(|entry| entry.version <= last) {
            let length = entry_len(&entry, top);
            if length > room {
                all = false;
                break;
            }
            room -= length;
            top = entry.version;
            entries.push(entry);
        }
        if all {
            top = last;
        }
        if top == prev || (entries.is_empty() && !full) {
            return None;
        }
        self.sent = top;
        self.sent_max = self.sent_max.max(top);
        Some(FlowTableDelta { run: id, prev, top, full, entries })
    }

    /// An end at a version is forgotten: a member that has not received it is sent everything.
    pub(crate) fn forget_end(&mut self, version: u64) {
        if self.sent < version {
            (self.sent, self.full_until) = (0, 0);
        }
    }

    /// The member asks for what is after a version. Whether it is to be sent that: not again so
    /// soon, and not what it was not sent before. `floor` is the version up to which ends are
    /// forgotten.
    pub(crate) fn rewind(&mut self, now: Time, have: u64, floor: u64) -> bool {
        let again = |(at, version): (_, u64)| version == have && now.since(at) < REPAIR_WAIT;
        if self.rewound.is_some_and(again) || have > self.sent {
            return false;
        }
        self.rewound = Some((now, have));
        self.sent = if have < floor { 0 } else { have };
        self.full_until = 0;
        true
    }

    /// What it is sent next could wait: its digest comes along with the next changes.
    pub(crate) fn give_time(&mut self) {
        self.has_time = true;
    }

    /// Whether what it is sent now could wait; not so what it is sent after that.
    pub(crate) fn take_time(&mut self) -> bool {
        core::mem::take(&mut self.has_time)
    }

    /// Changes have left. Returns how soon their digest is due.
    pub(crate) fn digest_after_changes(&mut self, first: Span, has_time: bool) -> Span {
        let first = first.max(Span::from_nanos(1));
        self.digest_wait =
            if has_time { Span::from_nanos(first.as_nanos() * DIGEST_GROWTH) } else { first };
        self.digest_wait
    }

    /// A digest leaves. Returns how soon the next one is due: each later than the one before, up
    /// to `steady`.
    pub(crate) fn digest_after_digest(&mut self, steady: Span) -> Span {
        let longer = self.digest_wait.as_nanos().saturating_mul(DIGEST_GROWTH);
        self.digest_wait = Span::from_nanos(longer).min(steady);
        self.digest_wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowAudience;
    use windtunnel_model::NodeId;
    use windtunnel_model::flow::{ActiveFlow, FlowKey, FlowTerms};

    const RUN: RunId = RunId(1);
    const MEMBER: u32 = 1;

    fn own(flows: u32) -> OwnFlows {
        let mut own = OwnFlows::new(2);
        for number in 0..flows {
            let key = FlowKey { source: NodeId(0), destination: NodeId(1), number };
            let terms = FlowTerms::new(Span::from_millis(1));
            let flow = ActiveFlow { terms, since: Time::ZERO };
            own.set(key, flow, &FlowAudience::new(vec![MEMBER]));
        }
        own
    }

    #[test]
    fn a_long_list_is_sent_in_several_messages_without_a_gap() {
        let (own, mut delivery, mut have) = (own(100), FlowDelivery::default(), 0);
        while let Some(delta) = delivery.next_delta(RUN, &own, MEMBER, 300) {
            assert_eq!((delta.prev, delta.full), (have, true));
            have = delta.top;
        }
        assert_eq!((have, delivery.has_more(&own, MEMBER)), (100, false));
    }

    #[test]
    fn a_request_is_answered_once_in_a_while_and_only_for_what_was_sent() {
        let (own, mut delivery) = (own(3), FlowDelivery::default());
        while delivery.next_delta(RUN, &own, MEMBER, 1200).is_some() {}
        let now = Time::from_nanos(1_000_000_000);
        assert!(!delivery.rewind(now, 4, 0), "never sent");
        assert!(delivery.rewind(now, 2, 0));
        assert!(delivery.has_more(&own, MEMBER));
        assert!(!delivery.rewind(now, 2, 0), "just answered");
        assert!(delivery.rewind(now + REPAIR_WAIT, 2, 3), "ends are forgotten");
        assert_eq!(delivery.sent, 0);
    }
}
