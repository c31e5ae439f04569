//! What the gateway has carried, refused and lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::policy::Refusal;

/// What the gateway process has carried, refused and lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Flows by their protocol: `tcp`, `udp`, `echo`, `dns`, `publish`.
    pub flows: BTreeMap<String, u64>,
    /// Bytes of payload from the network to the outside.
    pub sent_bytes: u64,
    /// Bytes of payload from the outside to the network.
    pub received_bytes: u64,
    /// Packets (of TCP: attempts to connect) that were refused, by why.
    pub refused: BTreeMap<String, u64>,
    /// Packets that made no sense: no IP, wrong lengths or checksums, protocols that nothing
    /// carries.
    pub ignored: BTreeMap<String, u64>,
    /// What could not be carried for lack of room or time, by what that was.
    pub lost: BTreeMap<String, u64>,
    /// Echo requests that the machine does not let an ordinary program send.
    pub echo_denied: u64,
    /// Lines that are missing in `internet.csv`.
    pub lines_lost: u64,
}

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// A flow began.
    Flow(&'static str),
    Refused(Refusal),
    /// A packet that nothing can be done with.
    Ignored(&'static str),
    /// So many packets or connections that should have been carried.
    Lost(&'static str, u64),
}

impl Report {
    pub(crate) fn count(&mut self, count: Count) {
        let (map, name, number) = match count {
            Count::Flow(name) => (&mut self.flows, name, 1),
            Count::Refused(why) => (&mut self.refused, why.name(), 1),
            Count::Ignored(why) => (&mut self.ignored, why, 1),
            Count::Lost(what, number) => (&mut self.lost, what, number),
        };
        if number > 0 {
            let known = map.entry(name.to_owned()).or_default();
            *known = known.saturating_add(number);
        }
    }

    /// All that was refused.
    #[must_use]
    pub fn refused_in_all(&self) -> u64 {
        self.refused.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}
