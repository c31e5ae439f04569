//! A server that sends at delivery opportunities.

use windtunnel_model::trace::DeliveryOpportunities;
use windtunnel_model::{Span, Time};

use super::{LaneTransmitter, LineRateSource};
use crate::packet::{EmulatedPacket, PacketTrainTimes};

impl LaneTransmitter {
    /// Whether packets leave at delivery opportunities.
    pub(crate) fn has_slots(&self) -> bool {
        matches!(self.supply, LineRateSource::Slots(..))
    }

    /// Whether a packet is begun and not settled.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// The next delivery opportunity, unless that is being waited for already.
    pub(crate) fn await_slot(&mut self, now: Time) -> Option<Time> {
        let LineRateSource::Slots(slots, awaited) = &mut self.supply else { return None };
        if awaited.is_some() {
            return None;
        }
        *awaited = slots.after(now);
        awaited.map(|slot| slot.at)
    }

    /// The bytes of the opportunity that is there now, and the time since the one before it; `None`
    /// where none was waited for.
    pub(crate) fn take_slot(&mut self, now: Time) -> Option<(u64, Span)> {
        let LineRateSource::Slots(_, awaited) = &mut self.supply else { return None };
        let slot = awaited.take_if(|slot| slot.at <= now)?;
        let each = DeliveryOpportunities::BYTES + u64::from(self.overhead);
        Some((slot.count.saturating_mul(each), slot.gap))
    }

    /// Begins a packet that opportunities serve.
    pub(crate) fn begin_slotted(&mut self, mut packet: EmulatedPacket) {
        packet.sent = Time::MAX;
        let bytes = packet.shape.charge(self.overhead);
        self.pending = Some((packet, bytes));
    }

    /// Uses bytes of the opportunity at `now`; answers with what is left of them, and with the
    /// packet if these were its last. A packet that is not there yet uses none.
    pub(crate) fn use_slot(&mut self, now: Time, bytes: u64) -> (u64, Option<EmulatedPacket>) {
        let Some((mut packet, needed)) = self.pending.take() else { return (bytes, None) };
        if packet.times.first >= now {
            self.pending = Some((packet, needed));
            return (bytes, None);
        }
        packet.sent = packet.sent.min(now);
        if needed > bytes {
            self.pending = Some((packet, needed - bytes));
            return (0, None);
        }
        packet.times = PacketTrainTimes::at_once(now);
        (bytes - needed, Some(packet))
    }

    /// Takes the packet that is begun, and the bytes that it needs, where a rate or none has taken
    /// the place of what began it.
    pub(crate) fn take_pending(&mut self) -> Option<(EmulatedPacket, u64)> {
        self.pending.take()
    }
}
