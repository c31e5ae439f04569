//! What the gateway has carried, refused and lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::log::InternetFlowKind;
use crate::policy::EgressRefusal;

/// What the gateway process has carried, refused and lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayReport {
    /// Flows by what they are.
    pub flows: BTreeMap<InternetFlowKind, u64>,
    /// Bytes of payload from the network to the outside.
    pub sent_bytes: u64,
    /// Bytes of payload from the outside to the network.
    pub received_bytes: u64,
    /// Packets (of TCP: attempts to connect) that were refused, by why.
    pub refused: BTreeMap<EgressRefusal, u64>,
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
pub enum GatewayCounterUpdate {
    /// A flow began.
    Flow(InternetFlowKind),
    Refused(EgressRefusal),
    /// A packet that nothing can be done with.
    Ignored(&'static str),
    /// So many packets or connections that should have been carried.
    Lost(&'static str, u64),
}

impl GatewayReport {
    pub(crate) fn count(&mut self, count: GatewayCounterUpdate) {
        match count {
            GatewayCounterUpdate::Flow(kind) => add(&mut self.flows, kind, 1),
            GatewayCounterUpdate::Refused(why) => add(&mut self.refused, why, 1),
            GatewayCounterUpdate::Ignored(why) => add(&mut self.ignored, why.to_owned(), 1),
            GatewayCounterUpdate::Lost(what, number) => {
                add(&mut self.lost, what.to_owned(), number);
            }
        }
    }

    /// What counts of it, where it was this when the run ended: flows and their bytes are known when they
    /// are over, but what is lost or refused while programs are being stopped is no part of the run.
    #[must_use]
    pub(crate) fn of_run(self, at_end: Option<&GatewayReport>) -> GatewayReport {
        let Some(GatewayReport { refused, ignored, lost, echo_denied, .. }) = at_end.cloned()
        else {
            return self;
        };
        GatewayReport { refused, ignored, lost, echo_denied, ..self }
    }

    /// All that was refused.
    #[must_use]
    pub fn refused_in_all(&self) -> u64 {
        self.refused.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K, number: u64) {
    if number > 0 {
        let known = counts.entry(key).or_default();
        *known = known.saturating_add(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_or_refused_after_the_end_of_the_run_does_not_count_and_bytes_do() {
        let mut report = GatewayReport::default();
        report.count(GatewayCounterUpdate::Lost("packets", 2));
        report.count(GatewayCounterUpdate::Refused(EgressRefusal::Machine));
        let at_end = report.clone();
        report.count(GatewayCounterUpdate::Lost("packets", 5));
        report.count(GatewayCounterUpdate::Lost("connections", 1));
        report.count(GatewayCounterUpdate::Refused(EgressRefusal::Machine));
        report.count(GatewayCounterUpdate::Ignored("malformed"));
        report.count(GatewayCounterUpdate::Flow(InternetFlowKind::Tcp));
        (report.echo_denied, report.sent_bytes) = (3, 700);
        let whole = report.clone().of_run(None);
        assert_eq!((whole.lost["packets"], whole.echo_denied), (7, 3), "its end was not said");
        let counted = report.of_run(Some(&at_end));
        assert_eq!(counted.lost, BTreeMap::from([("packets".to_owned(), 2)]));
        assert_eq!((counted.refused_in_all(), counted.ignored.len()), (1, 0));
        assert_eq!(
            (counted.flows[&InternetFlowKind::Tcp], counted.sent_bytes, counted.echo_denied),
            (1, 700, 0)
        );
    }
}
