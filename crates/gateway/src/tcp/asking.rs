//! Questions for names by TCP (RFC 7766): the machine's resolvers are tried one after the other, as they
//! are for those by UDP.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use windtunnel_sys::clock;

use super::{NAMES_PORT, Tcp};
use crate::flows::ProxiedConnectionKey;
use crate::log::{FlowLine, InternetFlowEnd, InternetFlowKind};
use crate::names;
use crate::poller::PollerToken;
use crate::report::GatewayCounterUpdate;
use crate::socket::{self, PendingConnection};
use crate::splice::SplicedConnectionPair;
use crate::worker::GatewayContext;

/// A client that asks.
#[derive(Debug)]
pub(super) struct DnsTcpQuery {
    accepted: OwnedFd,
    line: FlowLine,
    /// How many resolvers were tried.
    asked: usize,
    is_v6: bool,
    since_ns: u64,
}

impl DnsTcpQuery {
    fn new(accepted: OwnedFd, line: FlowLine) -> DnsTcpQuery {
        DnsTcpQuery { accepted, line, asked: 0, is_v6: false, since_ns: 0 }
    }
}

impl Tcp {
    /// A question for names by TCP: its stream is that of the first resolver that takes it.
    pub(super) fn ask_names(
        &mut self,
        context: &mut GatewayContext,
        key: ProxiedConnectionKey,
        accepted: OwnedFd,
    ) {
        let line = FlowLine::new(InternetFlowKind::Dns, key.client, key.server);
        match context.policy.names() {
            Ok(()) => self.try_resolver(context, DnsTcpQuery::new(accepted, line)),
            Err(refusal) => {
                context.report.count(GatewayCounterUpdate::Refused(refusal));
                socket::tear(accepted);
            }
        }
    }

    /// Tries the next resolver; where there is none, the question is torn.
    fn try_resolver(&mut self, context: &mut GatewayContext, mut asking: DnsTcpQuery) {
        let resolvers = context.resolvers();
        while let Some(resolver) = resolvers.get(asking.asked) {
            asking.asked += 1;
            (asking.is_v6, asking.since_ns) = (resolver.is_ipv6(), clock::monotonic_ns());
            match socket::dial(SocketAddr::new(*resolver, NAMES_PORT)) {
                Ok(PendingConnection::Now(socket)) => {
                    return self.join_resolver(context, asking, socket);
                }
                Ok(PendingConnection::Soon(socket)) => {
                    self.next += 1;
                    let dial = self.next;
                    if context.poller.add_once_writable(&socket, PollerToken::Dial(dial)).is_ok() {
                        self.asking.insert(dial, (asking, socket));
                        return;
                    }
                }
                Err(_) => {}
            }
        }
        context.log.ended(&asking.line, InternetFlowEnd::Unanswered);
        socket::tear(asking.accepted);
    }

    fn join_resolver(
        &mut self,
        context: &mut GatewayContext,
        asking: DnsTcpQuery,
        socket: OwnedFd,
    ) {
        socket::made(&socket, asking.is_v6);
        context.report.count(GatewayCounterUpdate::Flow(InternetFlowKind::Dns));
        self.join(context, SplicedConnectionPair::new(asking.accepted, socket, asking.line, None));
    }

    /// Whether the connection was one to a resolver, which has come out.
    pub(super) fn has_resolver_answered(
        &mut self,
        context: &mut GatewayContext,
        dial: u64,
    ) -> bool {
        let Some((asking, socket)) = self.asking.remove(&dial) else { return false };
        match socket::outcome(&socket) {
            Ok(()) => {
                // It is waited for in another way from now on.
                let _ = context.poller.remove(&socket);
                self.join_resolver(context, asking, socket);
            }
            Err(_) => self.try_resolver(context, asking),
        }
        true
    }

    /// Tries the next resolver where one has been silent.
    pub(super) fn ask_others(&mut self, context: &mut GatewayContext) {
        let now_ns = clock::monotonic_ns();
        let patience_ns = u64::try_from(names::PATIENCE.as_nanos()).unwrap_or(u64::MAX);
        let is_late = |asking: &DnsTcpQuery| now_ns.saturating_sub(asking.since_ns) > patience_ns;
        let late: Vec<_> = self.asking.extract_if(|_, (asking, _)| is_late(asking)).collect();
        late.into_iter().for_each(|(_, (asking, _))| self.try_resolver(context, asking));
    }
}
