//! What happens to connections that outlive their server, for the log.

use alloc::collections::VecDeque;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};
use windtunnel_failover::{
    ConnectionTermination, ReplicaExpulsionCause, ReplicaId, ReplicationEvent, ReplicationEventKind,
};
use windtunnel_model::{NodeId, ServiceId, Span};

use super::TransparentFailOver;
use crate::services::directory::ServiceDirectory;

/// Something that happened to a connection of a service with `fail-over: transparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailOverNews {
    /// The service.
    pub service: ServiceId,
    /// Its end of the connection.
    pub address: SocketAddr,
    /// The client's end.
    pub client: SocketAddr,
    /// What happened.
    pub what: FailOverWhat,
}

/// What happened to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailOverWhat {
    /// A replica takes no part in it any more.
    Expelled {
        /// Which.
        replica: NodeId,
        /// Why.
        fault: ReplicaFault,
        /// Time from when it fell behind, or sent what was wrong, until now.
        after: Span,
        /// How many replicas are left.
        left: u32,
    },
    /// The client gets the output of this replica from now on.
    Promoted {
        /// Which.
        replica: NodeId,
    },
    /// The client was sent the first packet since a replica was expelled.
    Resumed {
        /// Time since the one before; what the connection was idle is part of it.
        silence: Span,
    },
    /// No replica is left.
    Lost,
    /// The table is full: it goes to one replica, and so may others after it, until there is room.
    Unkept,
}

/// Why a replica was expelled from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaFault {
    /// Its node is gone.
    Gone,
    /// It answered no probe.
    Silent,
    /// It answered probes, but did not do what others did.
    Stalled,
    /// It sent other bytes than the others.
    Differed {
        /// From this byte of the server's stream on; 0 is the first.
        offset: u64,
    },
    /// It finished its stream where another goes on.
    FinishedAlone,
    /// It reset the connection.
    Reset,
    /// It refused the connection.
    Refused,
    /// It did not answer the SYN in time.
    NoAnswer,
}

/// News that wait.
#[derive(Debug, Default)]
pub(super) struct FailOverNewsQueue {
    waiting: VecDeque<FailOverNews>,
}

impl TransparentFailOver {
    /// Counts what the protocol says of a service's connections, and keeps what is for the log.
    pub(in crate::services) fn note_news(&mut self, services: &mut ServiceDirectory, service: u16) {
        let Some(position) = self.position(service) else { return };
        let (_, held) = &mut self.services[position];
        while let Some(event) = held.connections.poll_event() {
            held.counters.note(&event);
            if let ReplicationEventKind::Opened { .. } = event.what {
                let view = held.connections.view(event.key);
                let nodes = view.into_iter().flat_map(|view| view.replicas);
                let known = &mut services.list[usize::from(service)];
                for ReplicaId(node) in nodes {
                    if let Some(number) = known.position(NodeId(node)) {
                        known.replicas[number].counters.connections += 1;
                    }
                }
            }
            let Some(what) = what(&event).filter(|what| !held.is_of_a_flood(event.key, *what))
            else {
                continue;
            };
            let (address, client) = (event.key.service, event.key.client);
            let news = FailOverNews { service: ServiceId(service.into()), address, client, what };
            if self.news.waiting.len() < NEWS_MAX {
                self.news.waiting.push_back(news);
            } else {
                held.counters.news_lost += 1;
            }
        }
    }

    /// The next that happened to a connection.
    pub(in crate::services) fn take_news(&mut self) -> Option<FailOverNews> {
        self.news.waiting.pop_front()
    }
}

impl super::FailOverConnections {
    /// Whether a replica's node is gone and the client has not answered: of thousands of such
    /// connections, that the replica is gone says it all.
    fn is_of_a_flood(
        &self,
        key: windtunnel_failover::ReplicatedConnectionKey,
        what: FailOverWhat,
    ) -> bool {
        let is_gone = match what {
            FailOverWhat::Expelled { fault, .. } => fault == ReplicaFault::Gone,
            FailOverWhat::Promoted { .. } | FailOverWhat::Resumed { .. } => true,
            FailOverWhat::Lost | FailOverWhat::Unkept => false,
        };
        is_gone && self.connections.view(key).is_some_and(|view| view.is_half_open)
    }
}

fn what(event: &ReplicationEvent) -> Option<FailOverWhat> {
    let node = |ReplicaId(node)| NodeId(node);
    Some(match event.what {
        ReplicationEventKind::Expelled { replica, cause, after, left } => FailOverWhat::Expelled {
            replica: node(replica),
            fault: fault(cause),
            after,
            left: u32::try_from(left).unwrap_or(u32::MAX),
        },
        ReplicationEventKind::Promoted { replica } => {
            FailOverWhat::Promoted { replica: node(replica) }
        }
        ReplicationEventKind::Resumed { silence } => FailOverWhat::Resumed { silence },
        ReplicationEventKind::Closed(ConnectionTermination::Lost) => FailOverWhat::Lost,
        ReplicationEventKind::TableFull => FailOverWhat::Unkept,
        _ => return None,
    })
}

fn fault(cause: ReplicaExpulsionCause) -> ReplicaFault {
    match cause {
        ReplicaExpulsionCause::Withdrawn => ReplicaFault::Gone,
        ReplicaExpulsionCause::Silent => ReplicaFault::Silent,
        ReplicaExpulsionCause::Differed { offset } => ReplicaFault::Differed { offset },
        ReplicaExpulsionCause::FinishedAlone => ReplicaFault::FinishedAlone,
        ReplicaExpulsionCause::Reset => ReplicaFault::Reset,
        ReplicaExpulsionCause::Refused => ReplicaFault::Refused,
        ReplicaExpulsionCause::NoAnswer => ReplicaFault::NoAnswer,
        // The only one that is left.
        _ => ReplicaFault::Stalled,
    }
}

/// News that wait at the most, until the caller's own bound counts them.
const NEWS_MAX: usize = 4096;
