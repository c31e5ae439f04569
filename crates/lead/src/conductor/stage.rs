//! How far a run is, and what takes it further.

use std::net::SocketAddr;
use std::time::Duration;

use windtunnel_cluster::protocol::run::{PartCommand, RunMember};

use super::ClusterRunCoordinator;
use super::part_state::PartState;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClusterRunStage {
    /// Parts open their sockets.
    Binding,
    /// Parts make their nodes.
    Preparing,
    /// Parts look for each other.
    Reaching,
    /// Parts measure paths.
    Measuring,
    Running,
}

impl ClusterRunCoordinator {
    /// All parts are through with a stage.
    pub(super) fn next_stage(&mut self) {
        self.stage = match self.stage {
            ClusterRunStage::Binding => {
                self.send_addresses();
                ClusterRunStage::Preparing
            }
            ClusterRunStage::Preparing => ClusterRunStage::Reaching,
            ClusterRunStage::Reaching => {
                self.parts.order_all(&PartCommand::Measure);
                ClusterRunStage::Measuring
            }
            ClusterRunStage::Measuring | ClusterRunStage::Running => {
                self.begin();
                ClusterRunStage::Running
            }
        };
    }

    fn send_addresses(&self) {
        let address = |(member, state): (&RunMember, &PartState)| {
            state.port.map(|port| SocketAddr::new(member.address.ip(), port))
        };
        let all: Vec<Option<SocketAddr>> =
            self.setup.members.iter().zip(&self.members).map(address).collect();
        for member in 0..self.members.len() {
            let mut addresses = all.clone();
            addresses[member] = None;
            let number = u16::try_from(member).unwrap_or(u16::MAX);
            self.parts.order(number, PartCommand::Peers { addresses });
        }
    }

    /// At the same time everywhere: a little later on the first machine's clock.
    fn begin(&self) {
        let Some((now_ns, at)) = self.members.first().and_then(|member| member.clock) else {
            return;
        };
        let rtts: Vec<Duration> = self.members.iter().map(|member| member.rtt).collect();
        let lead = u64::try_from((at.elapsed() + lead(&rtts)).as_nanos()).unwrap_or(u64::MAX);
        let agent = self.setup.members[0].agent.clone();
        self.parts.order_all(&PartCommand::Begin { agent, at_ns: now_ns.saturating_add(lead) });
    }
}

/// How much later than the last message of the first machine (by the clock in it) a run can begin.
/// That message has taken up to a round trip to come, and the order takes up to one to each
/// machine, and some more if it is lost on the way and sent again.
fn lead(rtts: &[Duration]) -> Duration {
    let first = rtts.first().copied().unwrap_or_default();
    let longest = rtts.iter().copied().max().unwrap_or_default();
    LEAD + first + longest * 4
}

/// The time in which every machine learns that the run begins, beside what the network takes.
const LEAD: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_after_every_machine_has_the_order_however_far_each_is() {
        let ms = Duration::from_millis;
        let rtts = [[500, 1, 1], [1, 500, 1], [500, 500, 500], [0, 0, 0], [2, 40, 900]];
        for rtts in rtts.map(|all| all.map(ms)) {
            // Shares of a round trip that the way there takes.
            for (up, there) in [(0, 100), (50, 50), (100, 100)] {
                let message_took = rtts[0] * up / 100;
                let arrives = rtts.map(|rtt| message_took + rtt * there / 100);
                let slowest = arrives.into_iter().max().unwrap();
                assert!(lead(&rtts) >= slowest + LEAD, "{rtts:?}");
            }
        }
        // A quiet network does not pay for a far one.
        assert_eq!(lead(&[ms(0), ms(0)]), LEAD);
    }
}
