//! What machines of a run answer, put together.

use std::collections::BTreeMap;
use std::convert::Infallible;

use windtunnel_cluster::{AgentClientError, RunAgents};
use windtunnel_control::{
    CaptureResult, CommandProgress, ControlReply, ControlRequest, ControlRequestHandler,
    EventInjectionResult, LaneChoice, LaneStatus, LinkList, RecordOrder, RecordStatus,
    RequestAnswer, ReservationStatus, RunStatus, ServiceList, Snapshot, TypedRequest, services,
};
use windtunnel_model::LinkPatch;
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::ScheduledEvent;

use super::PartReachability;

/// What is known of a run without a question.
#[derive(Debug)]
pub(super) struct ControlProxyResponder {
    pub(super) name: String,
    /// By node: its name and member.
    pub(super) nodes: Vec<(String, u16)>,
}

impl ControlProxyResponder {
    /// The answer of all machines together, or of one that can give it.
    pub(super) fn answer(
        &self,
        request: ControlRequest,
        agents: &RunAgents,
        present: &[PartReachability],
    ) -> ControlReply {
        let living = living(present);
        if living.is_empty() {
            return over();
        }
        request.dispatch(&mut ProxiedRequestHandler { responder: self, agents, living })
    }

    /// Each node as its own part sees it.
    fn status(&self, statuses: impl Iterator<Item = (u16, RunStatus)>) -> RunStatus {
        let mut whole: Option<RunStatus> = None;
        for (member, mut status) in statuses {
            let others = std::mem::take(&mut status.services);
            let is_own = |node: &str| self.is_on(node, member);
            let whole = match &mut whole {
                Some(whole) => {
                    services::add_all(&mut whole.services, others, is_own);
                    whole
                }
                none => none.insert(RunStatus { services: others, ..status.clone() }),
            };
            for node in status.nodes {
                let own = self.is_on(&node.node, member);
                if let Some(slot) = whole.nodes.iter_mut().find(|it| own && it.node == node.node) {
                    *slot = node;
                }
            }
        }
        whole.unwrap_or_else(|| RunStatus {
            name: self.name.clone(),
            elapsed_ns: 0,
            nodes: Vec::new(),
            services: Vec::new(),
            nats: Vec::new(),
        })
    }

    fn is_on(&self, node: &str, member: u16) -> bool {
        self.nodes.iter().any(|known| known.0 == node && known.1 == member)
    }

    /// Replicas as their own parts see them, and the flows of all.
    fn services(&self, lists: Vec<(u16, ServiceList)>) -> Result<ServiceList, ControlReply> {
        let mut whole: Option<ServiceList> = None;
        for (member, list) in lists {
            match &mut whole {
                None => whole = Some(list),
                Some(whole) => whole.add(list, |node| self.is_on(node, member)),
            }
        }
        whole.ok_or_else(over)
    }

    fn snapshot(&self, snapshots: Vec<(u16, Snapshot)>) -> Result<Snapshot, ControlReply> {
        let mut whole: Option<Snapshot> = None;
        let mut statuses = Vec::new();
        for (member, snapshot) in snapshots {
            statuses.push((member, snapshot.status.clone()));
            match &mut whole {
                None => whole = Some(snapshot),
                Some(whole) => {
                    whole.links.iter_mut().zip(&snapshot.links).for_each(|(a, b)| add(a, b));
                }
            }
        }
        let mut whole = whole.ok_or_else(over)?;
        whole.status = self.status(statuses.into_iter());
        Ok(whole)
    }
}

/// Asks the machines of a run that live.
struct ProxiedRequestHandler<'a> {
    responder: &'a ControlProxyResponder,
    agents: &'a RunAgents,
    /// Members, in the order in which they are asked.
    living: Vec<u16>,
}

impl ControlRequestHandler for ProxiedRequestHandler<'_> {
    /// An answer, or the reply of a machine that is none.
    type Outcome<A: RequestAnswer> = Result<A, ControlReply>;
    type Conclusion = ControlReply;

    fn conclude<A: RequestAnswer>(&mut self, outcome: Self::Outcome<A>) -> ControlReply {
        outcome.map_or_else(|reply| reply, A::into_reply)
    }

    fn ps(&mut self) -> Self::Outcome<RunStatus> {
        let statuses = self.all(&ControlRequest::ps())?;
        Ok(self.responder.status(statuses.into_iter()))
    }

    fn snapshot(&mut self) -> Self::Outcome<Snapshot> {
        self.responder.snapshot(self.all(&ControlRequest::snapshot())?)
    }

    fn links(&mut self) -> Self::Outcome<LinkList> {
        self.any(&ControlRequest::links())
    }

    fn exec(
        &mut self,
        node: String,
        argv: Vec<String>,
        cwd: Option<String>,
        env: BTreeMap<String, String>,
        terminal: bool,
    ) -> Self::Outcome<CommandProgress> {
        self.any(&ControlRequest::exec(node, argv, cwd, env, terminal))
    }

    /// A connection with a command is passed through: this one has none.
    fn signal(&mut self, _signal: i32) -> Self::Outcome<Infallible> {
        Err(ControlReply::Error {
            message: "a signal is for a command that the connection runs: it runs none".to_owned(),
            hint: None,
        })
    }

    fn set(&mut self, lanes: LaneChoice, patch: Box<LinkPatch>) -> Self::Outcome<()> {
        self.any(&ControlRequest::set(lanes, patch))
    }

    fn limit(&mut self, who: String, demand: Demand) -> Self::Outcome<()> {
        self.any(&ControlRequest::limit(who, demand))
    }

    /// Those of all machines, each of which knows its own.
    fn reservations(&mut self) -> Self::Outcome<Vec<ReservationStatus>> {
        let all = self.all(&ControlRequest::reservations())?;
        Ok(all.into_iter().flat_map(|(_, parts)| parts).collect())
    }

    fn services(&mut self, service: Option<String>) -> Self::Outcome<ServiceList> {
        self.responder.services(self.all(&ControlRequest::services(service))?)
    }

    fn state(&mut self, lanes: LaneChoice, up: bool) -> Self::Outcome<()> {
        self.any(&ControlRequest::state(lanes, up))
    }

    fn inject(&mut self, events: Vec<ScheduledEvent>) -> Self::Outcome<EventInjectionResult> {
        self.any(&ControlRequest::inject(events))
    }

    fn record_start(&mut self, order: RecordOrder) -> Self::Outcome<RecordStatus> {
        records(self.all(&ControlRequest::record_start(order))?)
    }

    fn record_stop(&mut self) -> Self::Outcome<RecordStatus> {
        records(self.all(&ControlRequest::record_stop())?)
    }

    fn record_status(&mut self) -> Self::Outcome<RecordStatus> {
        records(self.all(&ControlRequest::record_status())?)
    }

    fn capture(&mut self, place: String, _snap_bytes: u32) -> Self::Outcome<()> {
        Err(ControlReply::Error {
            message: format!(
                "frames of {place} cannot be captured: the run is over several machines, and a \
                 capture is written on the machine of its node"
            ),
            hint: Some(HEADERS.to_owned()),
        })
    }

    fn capture_end(&mut self) -> Self::Outcome<CaptureResult> {
        self.any(&ControlRequest::capture_end())
    }

    fn stop(&mut self) -> Self::Outcome<()> {
        self.any(&ControlRequest::stop())
    }
}

impl ProxiedRequestHandler<'_> {
    /// The answers of all; the first reply that is none.
    fn all<A: RequestAnswer>(
        &self,
        request: &TypedRequest<A>,
    ) -> Result<Vec<(u16, A)>, ControlReply> {
        let request = request.message();
        let ask = |member: &u16| {
            let reply = self.agents.control(*member, request);
            (*member, reply.unwrap_or_else(|error| failure(&error)))
        };
        answers(self.living.iter().map(ask))
    }

    /// The answer of the first that can give it.
    fn any<A: RequestAnswer>(&self, request: &TypedRequest<A>) -> Result<A, ControlReply> {
        let request = request.message();
        let mut failed = None;
        for member in &self.living {
            match self.agents.control(*member, request) {
                // A reservation is on one machine, which not all know.
                Ok(ControlReply::Elsewhere) => {}
                Ok(reply) => return A::of(reply),
                Err(error) => {
                    let is_last = !may_be_asked_of_another(request, &error);
                    failed = Some(failure(&error));
                    if is_last {
                        break;
                    }
                }
            }
        }
        Err(failed.unwrap_or_else(|| ControlReply::Error {
            message: "the machine of that reservation is not there any more".to_owned(),
            hint: None,
        }))
    }
}

fn over() -> ControlReply {
    ControlReply::Error { message: "the run is over".to_owned(), hint: None }
}

/// What all machines record, together.
fn records(statuses: Vec<(u16, RecordStatus)>) -> Result<RecordStatus, ControlReply> {
    let mut whole: Option<RecordStatus> = None;
    for (_, status) in statuses {
        match &mut whole {
            None => whole = Some(status),
            Some(whole) => whole.add(status),
        }
    }
    whole.ok_or_else(over)
}

/// What replies say; the first that is a refusal.
fn answers<A: RequestAnswer>(
    replies: impl Iterator<Item = (u16, ControlReply)>,
) -> Result<Vec<(u16, A)>, ControlReply> {
    replies.map(|(member, reply)| Ok((member, A::of(reply)?))).collect()
}

/// The members that can be asked, those first that answer soon.
fn living(present: &[PartReachability]) -> Vec<u16> {
    let of = |wanted: PartReachability| {
        let all = (0_u16..).zip(present);
        all.filter(move |(_, presence)| **presence == wanted).map(|(member, _)| member)
    };
    of(PartReachability::There).chain(of(PartReachability::Silent)).collect()
}

/// Whether another machine can do what one has not confirmed: it was never asked, or to do it twice
/// is to do it once.
fn may_be_asked_of_another(request: &ControlRequest, error: &AgentClientError) -> bool {
    matches!(error, AgentClientError::NoAgent { .. }) || matches!(request, ControlRequest::Stop)
}

fn failure(error: &AgentClientError) -> ControlReply {
    let source = std::error::Error::source(error);
    let why = source.map_or_else(String::new, |source| format!(": {source}"));
    ControlReply::Error { message: format!("{error}{why}"), hint: error.hint() }
}

pub(super) const HEADERS: &str =
    "`record start`, then `records export --format pcapng` has packets' headers";
/// Adds what another part's nodes send over the same lane.
fn add(sum: &mut LaneStatus, more: &LaneStatus) {
    sum.offered_bit_per_s = sum.offered_bit_per_s.saturating_add(more.offered_bit_per_s);
    sum.delivered_bit_per_s = sum.delivered_bit_per_s.saturating_add(more.delivered_bit_per_s);
    sum.delivered_wire_bit_per_s =
        sum.delivered_wire_bit_per_s.saturating_add(more.delivered_wire_bit_per_s);
    sum.queue_packets = sum.queue_packets.saturating_add(more.queue_packets);
    sum.queue_bytes = sum.queue_bytes.saturating_add(more.queue_bytes);
    sum.recent_queue_max_packets = sum.recent_queue_max_packets.max(more.recent_queue_max_packets);
    sum.recent_dropped_packets =
        sum.recent_dropped_packets.saturating_add(more.recent_dropped_packets);
    sum.recent_marked_packets =
        sum.recent_marked_packets.saturating_add(more.recent_marked_packets);
    sum.recent_lateness_max_ns = sum.recent_lateness_max_ns.max(more.recent_lateness_max_ns);
    sum.offered_packets = sum.offered_packets.saturating_add(more.offered_packets);
    sum.delivered_packets = sum.delivered_packets.saturating_add(more.delivered_packets);
    sum.dropped_packets = sum.dropped_packets.saturating_add(more.dropped_packets);
    sum.marked_packets = sum.marked_packets.saturating_add(more.marked_packets);
    sum.lateness_max_ns = sum.lateness_max_ns.max(more.lateness_max_ns);
}

#[cfg(test)]
mod tests {
    use std::io;

    use windtunnel_control::NodeStatus;
    use windtunnel_model::ResourceUsage;

    use super::*;

    fn net() -> ControlProxyResponder {
        let nodes = [("a", 0), ("b", 1), ("c", 1)].map(|(name, member)| (name.to_owned(), member));
        ControlProxyResponder { name: "net".to_owned(), nodes: nodes.into() }
    }

    fn error(message: &str, hint: Option<&str>) -> ControlReply {
        ControlReply::Error { message: message.to_owned(), hint: hint.map(str::to_owned) }
    }

    #[test]
    fn machines_that_are_silent_are_asked_last_and_those_that_are_gone_never() {
        use PartReachability::{Gone, Silent, There};
        assert_eq!(living(&[Silent, There, Gone, There, Silent]), [1, 3, 0, 4]);
        assert!(living(&[Gone, Gone]).is_empty());
    }

    #[test]
    fn another_machine_is_asked_where_nothing_can_be_done_twice() {
        let host = || "10.0.0.2:7447".to_owned();
        let silent =
            AgentClientError::NoAgent { host: host(), why: "nothing was received".to_owned() };
        let source = io::Error::from(io::ErrorKind::TimedOut);
        let broken = AgentClientError::Broken { host: host(), source };
        let seen = [&ControlRequest::Stop, &ControlRequest::Links]
            .map(|request| [&silent, &broken].map(|error| may_be_asked_of_another(request, error)));
        assert_eq!(seen, [[true, true], [true, false]]);
    }

    fn status(elapsed_ns: u64, pid: i32) -> RunStatus {
        let node = |name: &str| NodeStatus {
            node: name.to_owned(),
            addresses: Vec::new(),
            init_pid: pid,
            absent: false,
            limits: ResourceUsage::default(),
            programs: Vec::new(),
        };
        let nodes = ["a", "b", "c"].map(node).into();
        RunStatus {
            name: "net".to_owned(),
            elapsed_ns,
            nodes,
            services: Vec::new(),
            nats: Vec::new(),
        }
    }

    #[test]
    fn each_node_is_shown_as_its_own_part_sees_it() {
        let whole = net().status([(0, status(5, 10)), (1, status(6, 20))].into_iter());
        let pids: Vec<i32> = whole.nodes.iter().map(|node| node.init_pid).collect();
        assert_eq!((pids, whole.elapsed_ns), (vec![10, 20, 20], 5));
        // Of a machine that is lost, the first part that answers shows the nodes.
        let rest = net().status([(1, status(6, 20))].into_iter());
        assert!(rest.nodes.iter().all(|node| node.init_pid == 20));
        let none = net().status(std::iter::empty());
        assert_eq!((none.name.as_str(), none.nodes.len()), ("net", 0));
    }

    #[test]
    fn traffic_of_all_parts_is_added_and_of_maxima_the_greatest_is_taken() {
        let lane = |packets: u64, lateness: u64| LaneStatus {
            latency_ns: 7,
            offered_packets: packets,
            offered_bit_per_s: packets * 8,
            delivered_packets: packets / 2,
            dropped_packets: 1,
            recent_queue_max_packets: packets,
            lateness_max_ns: lateness,
            ..LaneStatus::default()
        };
        let snapshot = |pid, packets, lateness| Snapshot {
            status: status(1, pid),
            sampled_ns: 2,
            window_ns: 3,
            links: vec![lane(packets, lateness), lane(u64::MAX / 8, 0)],
        };
        let replies = vec![(0, snapshot(10, 100, 5)), (1, snapshot(20, 30, 9))];
        let whole = net().snapshot(replies).unwrap();
        let (first, second) = (&whole.links[0], &whole.links[1]);
        assert_eq!((first.offered_packets, first.offered_bit_per_s), (130, 1040));
        assert_eq!((first.delivered_packets, first.dropped_packets), (65, 2));
        assert_eq!((first.recent_queue_max_packets, first.lateness_max_ns), (100, 9));
        // What is asked of a link is the same everywhere.
        assert_eq!((first.latency_ns, second.offered_bit_per_s), (7, u64::MAX));
        assert_eq!(whole.status.nodes[1].init_pid, 20);
        let reply = ControlReply::Snapshot(Box::new(snapshot(1, 1, 1)));
        let failed = answers::<Snapshot>([(0, reply), (1, error("no", None))].into_iter());
        assert_eq!(failed, Err(error("no", None)));
        assert_eq!(net().snapshot(Vec::new()), Err(error("the run is over", None)));
    }
}
