//! What routers do with flows to services, for the log: which replica new ones get, and what
//! happens to connections that outlive their server.

use windtunnel_engine::{FailOverNews, FailOverWhat, ReplicaFault, ServiceRow};
use windtunnel_model::word::ExpulsionCause;
use windtunnel_model::{NodeId, RouterId, Time};
use windtunnel_trace::event::EventLogEntryKind;

use crate::live::context::RunContext;

/// Logs redirections. Of single connections there can be very many.
#[derive(Debug, Default)]
pub(in crate::live) struct RedirectionLog {
    /// Events of connections that outlive their server.
    fail_overs: u64,
}

impl RedirectionLog {
    /// A router redirects new flows elsewhere than before.
    pub(in crate::live) fn redirected(
        &self,
        cx: &RunContext,
        at: Time,
        row: ServiceRow,
        router: RouterId,
        replica: NodeId,
    ) {
        let Some(service) = cx.plan.services.get(row.service.index()) else { return };
        let what = EventLogEntryKind::Redirected {
            service: service.name.clone(),
            address: row.address.to_string(),
            port: row.port.to_string(),
            router: cx.plan.routers[router.index()].name.clone(),
            replica: cx.nodes.name(replica.index()).to_owned(),
        };
        cx.journal.log_at(at.since(cx.journal.origin()), None, what);
    }

    /// A connection of a service with `fail-over: transparent` lost a replica, or went on.
    pub(in crate::live) fn fail_over(&mut self, cx: &RunContext, at: Time, news: &FailOverNews) {
        let Some(service) = cx.plan.services.get(news.service.index()) else { return };
        self.fail_overs += 1;
        if self.fail_overs > LOGGED_MAX {
            if self.fail_overs == LOGGED_MAX + 1 {
                cx.journal.warn(format!(
                    "more than {LOGGED_MAX} events of connections that outlive their server: further \
                     ones are in the report's counters only"
                ));
            }
            return;
        }
        let service = service.name.clone();
        let (address, client) = (news.address.to_string(), news.client.to_string());
        let name = |node: NodeId| cx.nodes.name(node.index()).to_owned();
        let what = match news.what {
            FailOverWhat::Expelled { replica, fault, after, left } => {
                EventLogEntryKind::ReplicaExpelled {
                    service,
                    address,
                    client,
                    replica: name(replica),
                    cause: cause(fault).into(),
                    offset: match fault {
                        ReplicaFault::Differed { offset } => Some(offset),
                        _ => None,
                    },
                    after_ns: after.as_nanos(),
                    left,
                }
            }
            FailOverWhat::Promoted { replica } => EventLogEntryKind::ReplicaPromoted {
                service,
                address,
                client,
                replica: name(replica),
            },
            FailOverWhat::Resumed { silence } => EventLogEntryKind::ConnectionResumed {
                service,
                address,
                client,
                silence_ns: silence.as_nanos(),
            },
            FailOverWhat::Lost => EventLogEntryKind::ConnectionLost { service, address, client },
            FailOverWhat::Unkept => {
                EventLogEntryKind::ConnectionUnkept { service, address, client }
            }
        };
        cx.journal.log_at(at.since(cx.journal.origin()), None, what);
    }
}

fn cause(fault: ReplicaFault) -> ExpulsionCause {
    match fault {
        ReplicaFault::Gone => ExpulsionCause::Gone,
        ReplicaFault::Silent => ExpulsionCause::Silent,
        ReplicaFault::Stalled => ExpulsionCause::Stalled,
        ReplicaFault::Differed { .. } => ExpulsionCause::Differed,
        ReplicaFault::FinishedAlone => ExpulsionCause::FinishedAlone,
        ReplicaFault::Reset => ExpulsionCause::Reset,
        ReplicaFault::Refused => ExpulsionCause::Refused,
        ReplicaFault::NoAnswer => ExpulsionCause::NoAnswer,
    }
}

/// Events of single connections that are logged; all are counted.
const LOGGED_MAX: u64 = 3000;
