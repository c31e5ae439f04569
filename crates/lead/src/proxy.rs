//! The control socket of a run over several machines: each request goes to the part that can do it.

use std::io;

use windtunnel_cluster::Parts;
use windtunnel_cluster::protocol::run::RunSetup;
use windtunnel_control::{
    Connection, Incoming, LaneStatus, Listener, RecordStatus, Reply, Request, RunStatus,
    ServiceList, Snapshot, services,
};
use windtunnel_host::Folder;

use crate::command;

/// The clients of the control socket in the run folder.
pub(crate) struct Proxy {
    listener: Listener,
    open: Vec<Connection>,
    name: String,
    /// By node: its name and member.
    nodes: Vec<(String, u16)>,
}

impl Proxy {
    pub(crate) fn open(folder: &Folder, setup: &RunSetup) -> io::Result<Self> {
        let names = setup.plan.nodes.iter().map(|node| node.name.clone());
        Ok(Proxy {
            listener: Listener::open(folder.path())?,
            open: Vec::new(),
            name: setup.plan.name.clone(),
            nodes: names.zip(setup.placement.iter().copied()).collect(),
        })
    }

    /// Answers what has been asked. `alive` says by member whether the part lives.
    pub(crate) fn serve(&mut self, parts: &Parts, alive: &[bool]) {
        while self.open.len() < CONNECTIONS_MAX {
            let Ok(Some(connection)) = self.listener.accept(&self.name) else { break };
            self.open.push(connection);
        }
        let open = std::mem::take(&mut self.open);
        let served = open.into_iter().filter_map(|one| self.serve_one(one, parts, alive));
        self.open = served.collect();
    }

    /// Returns the connection if it is still there, and runs no command.
    fn serve_one(
        &self,
        mut connection: Connection,
        parts: &Parts,
        alive: &[bool],
    ) -> Option<Connection> {
        // A client that has gone shows in the next lines.
        let _ = connection.flush();
        for _ in 0..REQUESTS_A_STEP {
            if connection.is_behind() {
                break;
            }
            let Some(incoming) = connection.receive() else { break };
            let reply = match incoming {
                Incoming::Request(request, ends) => match self.place_of(&request, alive) {
                    Some(Ok(member)) => {
                        command::start(parts.runner(member), connection, *request, ends);
                        return None;
                    }
                    Some(Err(reply)) => reply,
                    None => self.answer(&request, parts, alive),
                },
                Incoming::Unreadable(message) => Reply::Error { message, hint: None },
                Incoming::Closed => return None,
            };
            connection.reply(&reply).ok()?;
        }
        Some(connection)
    }

    /// On which member a command is to run, if that is what is asked for.
    fn place_of(&self, request: &Request, alive: &[bool]) -> Option<Result<u16, Reply>> {
        let Request::Exec { node, .. } = request else { return None };
        let error = |message: String, hint| Err(Reply::Error { message, hint });
        let Some((_, member)) = self.nodes.iter().find(|(name, _)| name == node) else {
            let names = self.nodes.iter().map(|(name, _)| name.as_str()).take(NAMES_LISTED);
            let names = names.collect::<Vec<_>>().join(", ");
            let hint = Some(format!("the nodes are {names}"));
            return Some(error(format!("no node is called {node}"), hint));
        };
        Some(match alive.get(usize::from(*member)) {
            Some(true) => Ok(*member),
            _ => error(format!("the machine of node {node} is not there any more"), None),
        })
    }

    fn answer(&self, request: &Request, parts: &Parts, alive: &[bool]) -> Reply {
        let living: Vec<u16> =
            (0_u16..).zip(alive).filter(|(_, alive)| **alive).map(|(member, _)| member).collect();
        if living.is_empty() {
            return Reply::Error { message: "the run is over".to_owned(), hint: None };
        }
        match request {
            Request::Ps => match all(parts, &living, request) {
                Ok(replies) => {
                    let statuses = replies.into_iter().filter_map(status_of);
                    Reply::Ps(Box::new(self.status(statuses)))
                }
                Err(reply) => reply,
            },
            Request::Snapshot => match all(parts, &living, request) {
                Ok(replies) => self.snapshot(replies),
                Err(reply) => reply,
            },
            Request::RecordStart(_) | Request::RecordStop | Request::RecordStatus => {
                all(parts, &living, request).map_or_else(|reply| reply, records)
            }
            Request::Services { .. } => match all(parts, &living, request) {
                Ok(replies) => self.services(replies),
                Err(reply) => reply,
            },
            Request::Reservations => {
                all(parts, &living, request).map_or_else(|reply| reply, reservations)
            }
            Request::Capture { place, .. } => Reply::Error {
                message: format!(
                    "frames of {place} cannot be captured: the run is over several machines, and a \
                     capture is written on the machine of its node"
                ),
                hint: Some(HEADERS.to_owned()),
            },
            other => {
                // A reservation is on one machine, which not all know.
                let replies = living.iter().map(|member| ask(parts, *member, other));
                let mut replies = replies.skip_while(|reply| matches!(reply, Reply::Elsewhere));
                replies.next().unwrap_or_else(|| Reply::Error {
                    message: "the machine of that reservation is not there any more".to_owned(),
                    hint: None,
                })
            }
        }
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
    fn services(&self, replies: Vec<(u16, Reply)>) -> Reply {
        let mut whole: Option<ServiceList> = None;
        for (member, reply) in replies {
            let Reply::Services(list) = reply else { return reply };
            match &mut whole {
                None => whole = Some(list),
                Some(whole) => whole.add(list, |node| self.is_on(node, member)),
            }
        }
        let over = || Reply::Error { message: "the run is over".to_owned(), hint: None };
        whole.map_or_else(over, Reply::Services)
    }

    fn snapshot(&self, replies: Vec<(u16, Reply)>) -> Reply {
        let mut whole: Option<Box<Snapshot>> = None;
        let mut statuses = Vec::new();
        for (member, reply) in replies {
            let Reply::Snapshot(snapshot) = reply else { return reply };
            statuses.push((member, snapshot.status.clone()));
            match &mut whole {
                None => whole = Some(snapshot),
                Some(whole) => {
                    whole.links.iter_mut().zip(&snapshot.links).for_each(|(a, b)| add(a, b));
                }
            }
        }
        match whole {
            Some(mut whole) => {
                whole.status = self.status(statuses.into_iter());
                Reply::Snapshot(whole)
            }
            None => Reply::Error { message: "the run is over".to_owned(), hint: None },
        }
    }
}

/// What all machines record, together; the first refusal, if one has refused.
fn records(replies: Vec<(u16, Reply)>) -> Reply {
    let mut whole: Option<RecordStatus> = None;
    for (_, reply) in replies {
        let Reply::Records(status) = reply else { return reply };
        match &mut whole {
            None => whole = Some(status),
            Some(whole) => whole.add(status),
        }
    }
    whole.map_or_else(
        || Reply::Error { message: "the run is over".to_owned(), hint: None },
        Reply::Records,
    )
}

/// Those of all machines, each of which knows its own.
fn reservations(replies: Vec<(u16, Reply)>) -> Reply {
    let mut whole = Vec::new();
    for (_, reply) in replies {
        let Reply::Reservations { parts } = reply else { return reply };
        whole.extend(parts);
    }
    Reply::Reservations { parts: whole }
}

fn status_of((member, reply): (u16, Reply)) -> Option<(u16, RunStatus)> {
    match reply {
        Reply::Ps(status) => Some((member, *status)),
        _ => None,
    }
}

fn all(parts: &Parts, living: &[u16], request: &Request) -> Result<Vec<(u16, Reply)>, Reply> {
    let replies = living.iter().map(|member| (*member, ask(parts, *member, request)));
    replies
        .map(|(member, reply)| match reply {
            Reply::Error { .. } => Err(reply),
            reply => Ok((member, reply)),
        })
        .collect()
}

fn ask(parts: &Parts, member: u16, request: &Request) -> Reply {
    parts.control(member, request).unwrap_or_else(|error| {
        let source = std::error::Error::source(&error);
        let why = source.map_or_else(String::new, |source| format!(": {source}"));
        Reply::Error { message: format!("{error}{why}"), hint: error.hint() }
    })
}

const NAMES_LISTED: usize = 12;
const HEADERS: &str = "`record start`, then `records export --format pcapng` has packets' headers";
/// What one client may ask in one step: others wait, too.
const REQUESTS_A_STEP: usize = 8;
/// Further ones wait in the socket's queue.
const CONNECTIONS_MAX: usize = 256;

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
    use std::collections::BTreeMap;
    use std::thread;

    use windtunnel_control::{Client, NodeLimits, NodeStatus};

    use super::*;
    use crate::tests::{key, setup};

    fn proxy(folder: &std::path::Path) -> Proxy {
        let nodes = [("a", 0), ("b", 1), ("c", 1)].map(|(name, member)| (name.to_owned(), member));
        let listener = Listener::open(folder).unwrap();
        Proxy { listener, open: Vec::new(), name: "net".to_owned(), nodes: nodes.into() }
    }

    /// The answers to requests of one client, while these members live.
    fn answers(alive: &[bool], requests: Vec<Request>) -> Vec<Reply> {
        let home = tempfile::tempdir().unwrap();
        let mut proxy = proxy(home.path());
        let parts = Parts::watch(&RunSetup { members: Vec::new(), ..setup() }, &key());
        let folder = home.path().to_owned();
        let client = thread::spawn(move || {
            let mut client = Client::connect(&folder).unwrap();
            assert_eq!(client.name(), "net");
            requests.iter().map(|request| client.ask(request).unwrap()).collect::<Vec<_>>()
        });
        while !client.is_finished() {
            proxy.serve(&parts, alive);
            thread::yield_now();
        }
        client.join().unwrap()
    }

    fn error(message: &str, hint: Option<&str>) -> Reply {
        Reply::Error { message: message.to_owned(), hint: hint.map(str::to_owned) }
    }

    fn exec(node: &str) -> Request {
        Request::Exec {
            node: node.to_owned(),
            argv: vec!["ls".to_owned()],
            cwd: None,
            env: BTreeMap::new(),
            terminal: false,
        }
    }

    #[test]
    fn a_run_without_a_living_part_is_over() {
        let requests = vec![Request::Ps, Request::Snapshot, Request::Links, Request::Stop];
        let over = error("the run is over", None);
        assert_eq!(answers(&[false, false], requests), vec![over; 4]);
    }

    #[test]
    fn a_command_needs_a_node_that_exists_on_a_machine_that_lives() {
        let seen = answers(&[true, false], vec![exec("z"), exec("b")]);
        let expected = [
            error("no node is called z", Some("the nodes are a, b, c")),
            error("the machine of node b is not there any more", None),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_capture_is_refused_with_the_reason() {
        let request = Request::Capture { place: "b".to_owned(), snap_bytes: 0 };
        let message = "frames of b cannot be captured: the run is over several machines, and a \
                       capture is written on the machine of its node";
        assert_eq!(answers(&[true, true], vec![request]), [error(message, Some(HEADERS))]);
    }

    fn status(elapsed_ns: u64, pid: i32) -> RunStatus {
        let node = |name: &str| NodeStatus {
            node: name.to_owned(),
            addresses: Vec::new(),
            init_pid: pid,
            absent: false,
            limits: NodeLimits::default(),
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
        let home = tempfile::tempdir().unwrap();
        let proxy = proxy(home.path());
        let whole = proxy.status([(0, status(5, 10)), (1, status(6, 20))].into_iter());
        let pids: Vec<i32> = whole.nodes.iter().map(|node| node.init_pid).collect();
        assert_eq!((pids, whole.elapsed_ns), (vec![10, 20, 20], 5));
        // Of a machine that is lost, the first part that answers shows the nodes.
        let rest = proxy.status([(1, status(6, 20))].into_iter());
        assert!(rest.nodes.iter().all(|node| node.init_pid == 20));
        let none = proxy.status(std::iter::empty());
        assert_eq!((none.name.as_str(), none.nodes.len()), ("net", 0));
    }

    #[test]
    fn traffic_of_all_parts_is_added_and_of_maxima_the_greatest_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let proxy = proxy(home.path());
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
        let snapshot = |pid, packets, lateness| {
            Reply::Snapshot(Box::new(Snapshot {
                status: status(1, pid),
                sampled_ns: 2,
                window_ns: 3,
                links: vec![lane(packets, lateness), lane(u64::MAX / 8, 0)],
            }))
        };
        let replies = vec![(0, snapshot(10, 100, 5)), (1, snapshot(20, 30, 9))];
        let Reply::Snapshot(whole) = proxy.snapshot(replies) else { panic!("no snapshot") };
        let (first, second) = (&whole.links[0], &whole.links[1]);
        assert_eq!((first.offered_packets, first.offered_bit_per_s), (130, 1040));
        assert_eq!((first.delivered_packets, first.dropped_packets), (65, 2));
        assert_eq!((first.recent_queue_max_packets, first.lateness_max_ns), (100, 9));
        // What is asked of a link is the same everywhere.
        assert_eq!((first.latency_ns, second.offered_bit_per_s), (7, u64::MAX));
        assert_eq!(whole.status.nodes[1].init_pid, 20);
        let failed = proxy.snapshot(vec![(0, snapshot(1, 1, 1)), (1, error("no", None))]);
        assert_eq!(failed, error("no", None));
        assert_eq!(proxy.snapshot(Vec::new()), error("the run is over", None));
    }
}
