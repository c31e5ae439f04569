//! What services did, when a run is over.

use serde::{Deserialize, Serialize};
use windtunnel_dataplane::RedirectionTotals;
use windtunnel_model::Plan;
use windtunnel_model::valid::{PlanValidationError, ensure};
use windtunnel_trace::report::ReplicasWatched;

use super::replicas::ServiceState;

/// What services did, for the report.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ServicesEnded {
    /// In the plan's order; of another machine's part, empty where it has none.
    pub states: Vec<ServiceState>,
    /// How the sockets of replicas were looked at; `None`: there are no services.
    pub watched: Option<ReplicasWatched>,
    /// A sentence each: what may be missing among the registrations.
    pub doubts: Vec<String>,
    /// What redirectors had done when the run ended: what programs do that are being ended is no part
    /// of it.
    pub redirected: RedirectionTotals,
}

impl ServicesEnded {
    /// Adds what another part of the run has seen: each knows of its own nodes (`is_own`) what they
    /// did.
    pub fn add(&mut self, other: &ServicesEnded, is_own: impl Fn(usize) -> bool) {
        if let Some(theirs) = &other.watched {
            self.watched.get_or_insert_default().add(theirs);
        }
        self.redirected.add(&other.redirected);
        if self.states.is_empty() {
            self.states.clone_from(&other.states);
            return;
        }
        for (ours, theirs) in self.states.iter_mut().zip(&other.states) {
            for replica in &theirs.replicas {
                match ours.replicas.iter_mut().find(|known| known.state.node == replica.state.node)
                {
                    Some(known) if is_own(replica.state.node.index()) => known.clone_from(replica),
                    Some(_) => {}
                    None => ours.replicas.push(replica.clone()),
                }
            }
        }
    }

    /// Whether it can be that of a part of a run of the plan.
    pub fn validate(&self, plan: &Plan) -> Result<(), PlanValidationError> {
        let known =
            |state: &ServiceState| state.replicas.iter().all(|it| plan.has_node(it.state.node));
        let count = self.states.len();
        let redirected = self.redirected.services.len();
        let fits = [count, redirected].iter().all(|it| *it == 0 || *it == plan.services.len());
        ensure(fits && self.states.iter().all(known), || {
            "it has other services than the plan has".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::NodeId;
    use windtunnel_model::plan::Service;

    use super::*;

    #[test]
    fn each_part_knows_what_its_own_replicas_did() {
        let replica = |node| windtunnel_model::plan::Replica { node: NodeId(node), weight: 1 };
        let replicas = vec![replica(0), replica(1)];
        let service = Service { replicas, ..Service::new("www", [NodeId(0)]) };
        let of = |registrations: [u64; 2]| {
            let mut state = ServiceState::new(&service);
            for (replica, count) in state.replicas.iter_mut().zip(registrations) {
                replica.registrations = count;
            }
            let watched = ReplicasWatched { looks: 5, interval_max_ns: 7, ..Default::default() };
            let states = vec![state];
            ServicesEnded { states, watched: Some(watched), ..ServicesEnded::default() }
        };
        let mut whole = ServicesEnded::default();
        whole.add(&of([3, 9]), |node| node == 0);
        whole.add(&of([8, 4]), |node| node == 1);
        let counts: Vec<u64> =
            whole.states[0].replicas.iter().map(|replica| replica.registrations).collect();
        assert_eq!(counts, [3, 4]);
        assert_eq!(whole.watched.map(|it| (it.looks, it.interval_max_ns)), Some((10, 7)));
    }
}
