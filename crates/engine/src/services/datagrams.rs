//! Datagrams of whose fragments the first has been seen: it alone has ports.

use alloc::vec::Vec;

use super::call::{Call, DatagramKey};
use super::mix;
use super::pins::CoarseTime;

/// The last datagrams that came in fragments.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// At their hash; a newer one takes the place of an older one.
    places: Vec<Option<(DatagramKey, Call, CoarseTime)>>,
    /// Datagrams whose place another one took before their time.
    pub(super) displaced: u64,
}

impl Datagrams {
    /// The first fragment of a datagram came.
    pub(super) fn note(&mut self, now: CoarseTime, whole: DatagramKey, call: Call) {
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
    pub(super) fn find(&self, now: CoarseTime, whole: &DatagramKey) -> Option<Call> {
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
