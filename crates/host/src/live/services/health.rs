//! Probes of replicas: when each is due, and what its end means.
//!
//! A replica is probed while it is registered, at once and then every so often, from inside of its
//! node: a probe sees the program, not the network. It is unhealthy after `fall` probes one after the
//! other that fail, and healthy again after `rise` that do not. While all programs are paused because the emulation is
//! behind, nothing is probed, and what was under way then says nothing.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::plan::{HealthProbe, ReplicaHealthCheck, TransportProtocol};
use windtunnel_model::{NodeId, Plan, ServiceId, Span, Time};
use windtunnel_node::{
    NodeInitRequest, ProgramProbe as Look, ProgramProbeMethod, ProgramSpawnRequest,
};
use windtunnel_verdict::evidence::ServiceState;

use crate::live::under_way::UnderWay;

/// All probes of this machine's nodes.
#[derive(Debug)]
pub(super) struct HealthProbeSchedule {
    /// By service and node: when the next one is due.
    due: BTreeMap<(ServiceId, NodeId), Time>,
    under_way: UnderWay<InFlightHealthProbe>,
    /// How the last probes of each went: whether well, and how many one after the other.
    streaks: BTreeMap<(ServiceId, NodeId), (bool, u32)>,
    /// Those that were due and could not begin yet: they have no time of their own then.
    held: BTreeSet<(ServiceId, NodeId)>,
}

/// A probe that is under way.
#[derive(Debug, Clone, Copy)]
struct InFlightHealthProbe {
    service: ServiceId,
    node: NodeId,
    is_command: bool,
}

/// A probe that is over, or begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HealthProbeAction {
    Begin {
        token: u64,
        node: NodeId,
        request: NodeInitRequest,
        /// What it is called, and when it was due.
        name: String,
        due: Time,
    },
    /// A command has to be killed.
    Kill {
        token: u64,
        node: NodeId,
    },
    Over(HealthProbeOutcome),
}

/// What a probe found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HealthProbeOutcome {
    pub(super) service: ServiceId,
    pub(super) node: NodeId,
    /// `None`: nothing is wrong.
    pub(super) failure: Option<String>,
}

impl HealthProbeSchedule {
    /// Probes commands from now on by these numbers.
    pub(super) fn new() -> Self {
        HealthProbeSchedule {
            due: BTreeMap::new(),
            under_way: UnderWay::new(PROBE_FIRST),
            streaks: BTreeMap::new(),
            held: BTreeSet::new(),
        }
    }

    /// What is to be done now.
    pub(super) fn tick(
        &mut self,
        now: Time,
        plan: &Plan,
        states: &[ServiceState],
        is_here: impl Fn(NodeId) -> bool,
    ) -> Vec<HealthProbeAction> {
        let mut steps = self.expire(now);
        let services = plan.services.iter().zip(states).enumerate();
        for (position, (service, state)) in services {
            let Some(health) = &service.health else { continue };
            let id = ServiceId::from_index(position);
            for replica in &state.replicas {
                let key = (id, replica.state.node);
                let wanted = !replica.state.registered.is_empty() && is_here(replica.state.node);
                if !wanted {
                    self.due.remove(&key);
                    self.streaks.remove(&key);
                    continue;
                }
                let due = *self.due.entry(key).or_insert(now);
                if due > now {
                    continue;
                }
                if self.under_way.is_frozen() || self.is_under_way(id, replica.state.node) {
                    self.held.insert(key);
                    continue;
                }
                // What could not begin in time is not made up for.
                self.due.insert(key, now.max(due + health.every));
                let is_command = matches!(health.probe, HealthProbe::Command(_));
                let begun =
                    InFlightHealthProbe { service: id, node: replica.state.node, is_command };
                let token = self.under_way.begin(begun, now, health.timeout);
                let Some(request) = request(service, token, health.timeout) else {
                    self.under_way.end(token);
                    continue;
                };
                let due = if self.held.remove(&key) { now } else { due };
                let (node, name) = (replica.state.node, format!("probe of {}", service.name));
                steps.push(HealthProbeAction::Begin { token, node, request, name, due });
            }
        }
        steps
    }

    /// When [`HealthProbeSchedule::tick`] has something to do next.
    pub(super) fn next(&self) -> Option<Time> {
        let is_frozen = self.under_way.is_frozen();
        let waits = |service, node| !is_frozen && !self.is_under_way(service, node);
        let due = self.due.iter().filter(|((service, node), _)| waits(*service, *node));
        let due = due.map(|(_, due)| *due);
        due.chain(self.under_way.next_deadline()).min()
    }

    /// Whether a node has been asked with this number.
    pub(super) fn expects(&self, node: usize, token: u64) -> bool {
        self.under_way.get(token).is_some_and(|it| it.node.index() == node)
    }

    /// A probe has ended.
    pub(super) fn end(
        &mut self,
        token: u64,
        failure: Option<String>,
    ) -> Option<HealthProbeOutcome> {
        let (InFlightHealthProbe { service, node, .. }, counts) = self.under_way.end(token)?;
        counts.then_some(HealthProbeOutcome { service, node, failure })
    }

    /// Counts a probe that is over. Whether that is enough for its replica to be what the probe
    /// says: healthy or not.
    pub(super) fn is_enough(
        &mut self,
        outcome: &HealthProbeOutcome,
        health: &ReplicaHealthCheck,
    ) -> bool {
        let healthy = outcome.failure.is_none();
        let streak = self.streaks.entry((outcome.service, outcome.node)).or_insert((healthy, 0));
        if streak.0 != healthy {
            *streak = (healthy, 0);
        }
        streak.1 = streak.1.saturating_add(1);
        streak.1 >= if healthy { health.rise } else { health.fall }
    }

    /// Programs are paused from now on, or no longer. What is under way then says nothing.
    pub(super) fn freeze(&mut self, frozen: bool, now: Time) {
        if frozen {
            self.under_way.discount();
        }
        self.under_way.freeze(frozen, now);
    }

    /// Probes whose time is over have failed, whatever their nodes still say.
    fn expire(&mut self, now: Time) -> Vec<HealthProbeAction> {
        let mut steps = Vec::new();
        for (token, counted) in self.under_way.expire(now) {
            let Some(InFlightHealthProbe { service, node, is_command }) =
                self.under_way.get(token).copied()
            else {
                continue;
            };
            let failure = Some("it took too long".to_owned());
            let over = counted.then_some(HealthProbeAction::Over(HealthProbeOutcome {
                service,
                node,
                failure,
            }));
            steps.extend(over);
            steps.extend(is_command.then_some(HealthProbeAction::Kill { token, node }));
        }
        steps
    }

    fn is_under_way(&self, service: ServiceId, node: NodeId) -> bool {
        self.under_way.iter().any(|it| it.service == service && it.node == node)
    }
}

/// What a node is asked.
fn request(
    service: &windtunnel_model::plan::Service,
    token: u64,
    timeout: Span,
) -> Option<NodeInitRequest> {
    let probe = &service.health.as_ref()?.probe;
    let (what, transport) = match probe {
        HealthProbe::Tcp => (ProgramProbeMethod::Tcp, TransportProtocol::Tcp),
        HealthProbe::Http(path) => (
            ProgramProbeMethod::Http { path: path.clone(), host: service.name.clone() },
            TransportProtocol::Tcp,
        ),
        HealthProbe::Udp(question) => {
            (ProgramProbeMethod::Udp(question.clone()), TransportProtocol::Udp)
        }
        HealthProbe::Command(argv) => {
            let (argv, env) = (argv.clone(), BTreeMap::new());
            let spawn = ProgramSpawnRequest {
                id: token,
                argv,
                env,
                cwd: None,
                terminal: false,
                program: None,
            };
            return Some(NodeInitRequest::Spawn(spawn));
        }
    };
    let port = service.ports.iter().find(|port| port.transport == transport)?.port;
    let what = Look { address: service.addresses().next()?, port, what };
    // The host process counts, too; it is the later one.
    Some(NodeInitRequest::Probe { token, what, timeout_ns: timeout.as_nanos() })
}

/// Commands of probes have numbers from here on, above those of commands from outside.
pub(in crate::live) const PROBE_FIRST: u64 = 1 << 56;

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_model::plan::{HealthProbeDatagram, Service};

    const NODE: NodeId = NodeId(0);
    const WWW: ServiceId = ServiceId(0);

    fn plan(probe: HealthProbe) -> Plan {
        let mut plan =
            crate::live::testing::plan("nodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]");
        let (every, timeout) = (Span::from_millis(1000), Span::from_millis(300));
        let health = Some(ReplicaHealthCheck { probe, every, timeout, rise: 2, fall: 3 });
        plan.services.push(Service { health, ..crate::live::testing::service() });
        plan
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn registered(plan: &Plan) -> Vec<ServiceState> {
        let mut state = ServiceState::new(&plan.services[0]);
        state.saw(NODE, "10.1.0.80".parse().unwrap(), "80/tcp".parse().unwrap(), true);
        vec![state]
    }

    fn outcome(failure: Option<&str>) -> HealthProbeOutcome {
        HealthProbeOutcome { service: WWW, node: NODE, failure: failure.map(str::to_owned) }
    }

    #[test]
    fn a_replica_is_probed_at_once_when_it_registers_and_then_every_interval() {
        let plan = plan(HealthProbe::Http("/x".to_owned()));
        let mut probes = HealthProbeSchedule::new();
        let waiting = vec![ServiceState::new(&plan.services[0])];
        assert!(probes.tick(at(0), &plan, &waiting, |_| true).is_empty());
        assert!(probes.tick(at(0), &plan, &registered(&plan), |_| false).is_empty(), "elsewhere");
        let steps = probes.tick(at(5), &plan, &registered(&plan), |_| true);
        let [
            HealthProbeAction::Begin {
                token,
                node: NODE,
                request: NodeInitRequest::Probe { what, .. },
                due,
                ..
            },
        ] = &steps[..]
        else {
            panic!("{steps:?}");
        };
        let http = ProgramProbeMethod::Http { path: "/x".to_owned(), host: "www".to_owned() };
        assert_eq!((what.port, &what.what), (80, &http));
        assert_eq!(*due, at(5));
        assert!(probes.expects(0, *token) && !probes.expects(1, *token));
        assert_eq!(probes.next(), Some(at(305)), "its deadline");
        assert_eq!(probes.end(*token, None), Some(outcome(None)));
        assert_eq!(probes.next(), Some(at(1005)));
        assert!(probes.tick(at(1004), &plan, &registered(&plan), |_| true).is_empty());
        let late = probes.tick(at(1300), &plan, &registered(&plan), |_| true);
        assert!(
            matches!(&late[..], [HealthProbeAction::Begin { due, .. }] if *due == at(1005)),
            "{late:?}"
        );
    }

    #[test]
    fn a_command_that_takes_too_long_has_failed_and_is_killed() {
        let plan = plan(HealthProbe::Command(vec!["check".to_owned()]));
        let mut probes = HealthProbeSchedule::new();
        let states = registered(&plan);
        let steps = probes.tick(at(0), &plan, &states, |_| true);
        let [
            HealthProbeAction::Begin {
                token: PROBE_FIRST,
                request: NodeInitRequest::Spawn(spawn),
                ..
            },
        ] = &steps[..]
        else {
            panic!("{steps:?}");
        };
        assert_eq!(spawn.id, PROBE_FIRST);
        let over = probes.tick(at(300), &plan, &states, |_| true);
        let kill = HealthProbeAction::Kill { token: PROBE_FIRST, node: NODE };
        assert_eq!(over, [HealthProbeAction::Over(outcome(Some("it took too long"))), kill]);
        assert!(probes.tick(at(1000), &plan, &states, |_| true).is_empty(), "it still runs");
        assert_eq!(probes.end(PROBE_FIRST, Some("was ended".to_owned())), None);
        let next = probes.tick(at(1001), &plan, &states, |_| true);
        assert!(
            matches!(&next[..], [HealthProbeAction::Begin { due, .. }] if *due == at(1001)),
            "it was held"
        );
    }

    /// As `rise 2 fall 3` of HAProxy.
    #[test]
    fn a_replica_changes_after_its_count_of_probes_one_after_the_other() {
        let plan = plan(HealthProbe::Tcp);
        let health = plan.services[0].health.as_ref().unwrap();
        let mut probes = HealthProbeSchedule::new();
        let mut enough = |failures: &[Option<&str>]| -> Vec<bool> {
            failures.iter().map(|failure| probes.is_enough(&outcome(*failure), health)).collect()
        };
        let (bad, good) = (Some("refused"), None);
        assert_eq!(enough(&[bad, bad, good, bad, bad]), [false; 5], "never three together");
        assert_eq!(enough(&[bad, bad]), [true; 2]);
        assert_eq!(enough(&[good, bad, good, good]), [false, false, false, true]);
        // What registers again begins anew.
        assert_eq!(enough(&[bad, bad]), [false; 2]);
        let mut gone = probes;
        gone.tick(at(0), &plan, &[ServiceState::new(&plan.services[0])], |_| true);
        assert!(!gone.is_enough(&outcome(bad), health));
    }

    #[test]
    fn a_probe_of_datagrams_is_of_the_first_udp_port() {
        let question = HealthProbeDatagram { send: b"ping".to_vec(), expect: b"pong".to_vec() };
        let mut plan = plan(HealthProbe::Udp(question.clone()));
        plan.services[0].ports.push("53/udp".parse().unwrap());
        let Some(NodeInitRequest::Probe { what, .. }) =
            request(&plan.services[0], 1, Span::from_secs(1))
        else {
            panic!("no request");
        };
        assert_eq!((what.port, what.what), (53, ProgramProbeMethod::Udp(question)));
    }

    #[test]
    fn nothing_is_said_of_what_was_paused() {
        let plan = plan(HealthProbe::Tcp);
        let mut probes = HealthProbeSchedule::new();
        let states = registered(&plan);
        probes.tick(at(0), &plan, &states, |_| true);
        probes.freeze(true, at(100));
        assert!(probes.tick(at(2000), &plan, &states, |_| true).is_empty());
        assert_eq!(probes.next(), None);
        assert_eq!(probes.end(PROBE_FIRST, Some("late".to_owned())), None);
        probes.freeze(false, at(2100));
        assert_eq!(probes.tick(at(2100), &plan, &states, |_| true).len(), 1);
    }

    #[test]
    fn a_command_that_hangs_since_before_a_pause_is_killed_when_its_time_is_over() {
        let plan = plan(HealthProbe::Command(vec!["check".to_owned()]));
        let mut probes = HealthProbeSchedule::new();
        let states = registered(&plan);
        probes.tick(at(0), &plan, &states, |_| true);
        probes.freeze(true, at(100));
        probes.freeze(false, at(2100));
        assert_eq!(probes.next(), Some(at(2300)), "200 ms are left");
        let kill = HealthProbeAction::Kill { token: PROBE_FIRST, node: NODE };
        assert_eq!(probes.tick(at(2300), &plan, &states, |_| true), [kill], "and says nothing");
        assert_eq!(probes.end(PROBE_FIRST, Some("was ended".to_owned())), None);
        assert_eq!(probes.tick(at(2301), &plan, &states, |_| true).len(), 1, "the next begins");
    }
}
