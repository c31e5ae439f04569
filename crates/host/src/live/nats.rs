//! NATs as clients of the control socket see them.

use windtunnel_control::{NatMapping, NatStatus};
use windtunnel_engine::MappingState;

use super::inspector::RunInspector;
use windtunnel_dataplane::NatTally;

impl RunInspector<'_> {
    /// All NATs and their mappings.
    pub(super) fn nat_statuses(&self) -> Vec<NatStatus> {
        if self.cx.plan.middleboxes.iter().all(|it| it.nat.is_none()) {
            return Vec::new();
        }
        self.network.redirections(None).nats.iter().map(|it| self.nat_status(it)).collect()
    }

    fn nat_status(&self, tally: &NatTally) -> NatStatus {
        let plan = &self.cx.plan;
        let nat = plan.middlebox(tally.router).and_then(|it| it.nat.as_ref());
        let count = |held: usize| u64::try_from(held).unwrap_or(u64::MAX);
        NatStatus {
            router: plan.routers[tally.router.index()].name.clone(),
            r#type: nat.map(|nat| nat.nat_type().into()).unwrap_or_default(),
            mappings_made: tally.counters.mappings_made,
            mappings_held: count(tally.held.0),
            sessions_held: count(tally.held.1),
            mappings: tally.live.iter().map(|it| mapping(tally, it)).collect(),
        }
    }
}

fn mapping(tally: &NatTally, state: &MappingState) -> NatMapping {
    NatMapping {
        protocol: state.transport.into(),
        internal: state.internal.to_string(),
        external: state.external.to_string(),
        remote: state.remote.map(|it| it.to_string()),
        forwarded: state.forwarded,
        expires_ns: state.expires.map(|at| tally.in_run(at)),
        sessions: state.sessions,
        outbound: state.outbound,
        inbound: state.inbound,
    }
}
