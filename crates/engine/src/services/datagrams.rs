//! Datagrams of whose fragments the first has been seen: it alone has ports.

use alloc::vec::Vec;

use windtunnel_wire::packet::ParsedPacket;

use super::call::{DatagramKey, ServicePacketHeader, ServicePacketKind};
use super::hash::mix;
use super::pins::CoarseTime;

/// The last datagrams that came in fragments.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// At their hash; a newer one takes the place of an older one.
    places: Vec<Option<(DatagramKey, ServicePacketHeader, CoarseTime)>>,
    /// Datagrams whose place another one took before their time.
    pub(super) displaced: u64,
    /// Later fragments whose first one had not been seen.
    pub(super) unknown: u64,
}

impl Datagrams {
    /// Reads a packet to a service; fragments have what was read of the first.
    #[inline]
    pub(super) fn read(
        &mut self,
        now: CoarseTime,
        packet: &ParsedPacket<'_>,
    ) -> Option<ServicePacketHeader> {
        match ServicePacketKind::of(packet) {
            ServicePacketKind::Call(call) => Some(call),
            ServicePacketKind::First(whole, call) => {
                self.note(now, whole, call);
                Some(call)
            }
            ServicePacketKind::Later(whole) => {
                let found = self.find(now, &whole);
                self.unknown += u64::from(found.is_none());
                found
            }
            ServicePacketKind::Nothing => None,
        }
    }

    /// The same, without that anything comes of it.
    pub(super) fn peek(
        &self,
        now: CoarseTime,
        packet: &ParsedPacket<'_>,
    ) -> Option<ServicePacketHeader> {
        match ServicePacketKind::of(packet) {
            ServicePacketKind::Call(call) | ServicePacketKind::First(_, call) => Some(call),
            ServicePacketKind::Later(whole) => self.find(now, &whole),
            ServicePacketKind::Nothing => None,
        }
    }

    /// The first fragment of a datagram came.
    fn note(&mut self, now: CoarseTime, whole: DatagramKey, call: ServicePacketHeader) {
        if self.places.is_empty() {
            self.places.resize(PLACES, None);
        }
        let place = &mut self.places[place(&whole)];
        let displaces = place.is_some_and(|(known, _, seen)| {
            known != whole && now.since(seen) < CoarseTime::DATAGRAM
        });
        self.displaced += u64::from(displaces);
        *place = Some((whole, call.plain(), now));
    }

    /// The flow of a later fragment; `None`: its first one has not been seen lately.
    fn find(&self, now: CoarseTime, whole: &DatagramKey) -> Option<ServicePacketHeader> {
        let (known, call, seen) = self.places.get(place(whole))?.as_ref()?;
        (known == whole && now.since(*seen) < CoarseTime::DATAGRAM).then_some(*call)
    }
}

fn place(whole: &DatagramKey) -> usize {
    let own = u64::from(whole.identification) << 8 | u64::from(whole.protocol);
    let hash = mix(whole.source ^ whole.destination.rotate_left(64), own);
    usize::try_from(hash >> 32).unwrap_or(0) % PLACES
}

/// How many datagrams are remembered.
const PLACES: usize = 1024;
