//! What happens to connections that outlive their server, for the log.

use windtunnel_engine::{FailOverNews, FailOverWhat, ReplicaFault};
use windtunnel_model::Time;
use windtunnel_trace::event::EventLogEntryKind;

use crate::live::RunLoop;

impl RunLoop {
    /// A connection of a service with `fail-over: transparent` lost a replica, or went on.
    pub(in crate::live) fn log_fail_over(&mut self, at: Time, news: &FailOverNews) {
        let Some(service) = self.cx.plan.services.get(news.service.index()) else { return };
        self.services.logged += 1;
        if self.services.logged > LOGGED_MAX {
            if self.services.logged == LOGGED_MAX + 1 {
                self.cx.journal.warn(format!(
                    "more than {LOGGED_MAX} events of connections that outlive their server: further \
                     ones are in the report's counters only"
                ));
            }
            return;
        }
        let service = service.name.clone();
        let (address, client) = (news.address.to_string(), news.client.to_string());
        let name = |node: windtunnel_model::NodeId| self.cx.nodes.name(node.index()).to_owned();
        let what = match news.what {
            FailOverWhat::Expelled { replica, fault, after, left } => {
                EventLogEntryKind::ReplicaExpelled {
                    service,
                    address,
                    client,
                    replica: name(replica),
                    cause: word(fault).to_owned(),
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
        self.cx.journal.log_at(at.since(self.cx.journal.origin()), None, what);
    }
}

fn word(fault: ReplicaFault) -> &'static str {
    match fault {
        ReplicaFault::Gone => "gone",
        ReplicaFault::Silent => "silent",
        ReplicaFault::Stalled => "stalled",
        ReplicaFault::Differed { .. } => "differed",
        ReplicaFault::FinishedAlone => "finished-alone",
        ReplicaFault::Reset => "reset",
        ReplicaFault::Refused => "refused",
        ReplicaFault::NoAnswer => "no-answer",
    }
}

/// Events of single connections that are logged; all are counted.
const LOGGED_MAX: u64 = 3000;
