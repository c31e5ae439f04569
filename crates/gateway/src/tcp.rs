//! TCP from the network to the outside.
//!
//! The first SYN of a connection is held until the outside has accepted (or not): only then the
//! kernel of the node gets it, and its TCP answers in the name of the address outside. From then on
//! every segment of the client goes to the kernel, which answers by the node's own link.

mod asking;
mod listeners;
mod table;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use windtunnel_sys::clock;
use windtunnel_wire::icmp::IcmpErrorKind;
use windtunnel_wire::tcp;

use crate::flows::{ProxiedConnectionKey, SegmentDisposition, step};
use crate::log::{FAILED, FlowLine, InternetFlowEnd, InternetFlowKind};
use crate::poller::PollerToken;
use crate::report::GatewayCounterUpdate;
use crate::socket::{self, PendingConnection};
use crate::splice::{SplicePipePool, SpliceProgress, SplicedConnectionPair};
use crate::worker::{GatewayContext, NodeLinkPacket};
use asking::DnsTcpQuery;
use listeners::InsideTcpListeners;
use table::{ProxiedConnection, ProxiedConnectionTable, Syn};

/// Connections from the network to the outside, and published ones the other way round.
#[derive(Debug, Default)]
pub(crate) struct Tcp {
    flows: ProxiedConnectionTable,
    listeners: InsideTcpListeners,
    pairs: std::collections::HashMap<u64, SplicedConnectionPair>,
    /// Pairs that have more to carry.
    more: std::collections::VecDeque<u64>,
    pipes: SplicePipePool,
    /// Questions for names, and the connections to resolvers that are being made for them.
    asking: std::collections::HashMap<u64, (DnsTcpQuery, OwnedFd)>,
    next: u64,
}

impl Tcp {
    /// Takes a segment; whether it goes to the kernel.
    pub(crate) fn segment(
        &mut self,
        context: &mut GatewayContext,
        packet: &NodeLinkPacket<'_>,
    ) -> bool {
        let payload = packet.parsed.payload();
        let view = tcp::TcpSegment::parse(payload).ok();
        let key = ProxiedConnectionKey::of(packet.parsed);
        let Some((view, key)) = view.zip(key) else {
            context.report.count(GatewayCounterUpdate::Ignored("malformed"));
            return false;
        };
        match step(self.flows.stage(&key), view.flags()) {
            SegmentDisposition::Pass => {
                self.flows.touch(&key);
                return true;
            }
            SegmentDisposition::Begin => self.begin(context, key, packet),
            SegmentDisposition::Keep => self.flows.keep(&key, Syn::of(packet)),
            SegmentDisposition::Cancel => self.cancel(context, &key),
            SegmentDisposition::Stray => {
                context.out.answer_reset(packet.parsed.frame, packet.mac, &mut context.report);
            }
            SegmentDisposition::Drop => {}
        }
        false
    }

    /// A connection to the outside has come out.
    pub(crate) fn dialled(&mut self, context: &mut GatewayContext, dial: u64) {
        if self.has_resolver_answered(context, dial) {
            return;
        }
        let Some((key, syn, socket, line)) = self.flows.take_dialled(dial) else { return };
        match socket::outcome(&socket) {
            Ok(()) => {
                // It is joined later, and waited for in another way then.
                let _ = context.poller.remove(&socket);
                socket::made(&socket, key.server.is_ipv6());
                self.offer(context, key, &syn, socket, line);
            }
            Err(errno) => refuse(context, &syn, &line, errno, socket::said(&socket)),
        }
    }

    /// Connections wait at a listener inside.
    pub(crate) fn accept(&mut self, context: &mut GatewayContext, listener: u64) {
        while let Some(accepted) = self.listeners.accept(context, listener) {
            let (peer, local) =
                (windtunnel_sys::socket::peer(&accepted), windtunnel_sys::socket::local(&accepted));
            let (Ok(Some(client)), Ok(server)) = (peer, local) else { continue };
            let key = ProxiedConnectionKey { client, server };
            if let Some((outside, line)) = self.flows.take_offered(&key) {
                let pair = SplicedConnectionPair::new(accepted, outside, line, Some(key));
                self.join(context, pair);
            } else if context.is_own(server.ip()) && server.port() == NAMES_PORT {
                self.ask_names(context, key, accepted);
            } else {
                socket::tear(accepted);
            }
        }
    }

    /// One of the ends of a pair can go on.
    pub(crate) fn pump(&mut self, context: &mut GatewayContext, id: u64, has_error: bool) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        let mut pumped = pair.pump(&mut self.pipes);
        if has_error && !matches!(pumped, SpliceProgress::Over(_)) {
            pumped = pair.failure().map_or(pumped, SpliceProgress::Over);
        }
        match pumped {
            SpliceProgress::Waits => {}
            SpliceProgress::More => self.more.push_back(id),
            SpliceProgress::Over(why) => self.end(context, id, why),
        }
    }

    /// Goes on with pairs that have had their turn; whether any of them has more still.
    pub(crate) fn pump_more(&mut self, context: &mut GatewayContext) -> bool {
        for id in std::mem::take(&mut self.more) {
            self.pump(context, id, false);
        }
        !self.more.is_empty()
    }

    /// Joins two connections.
    pub(crate) fn join(&mut self, context: &mut GatewayContext, pair: SplicedConnectionPair) {
        self.next += 1;
        let id = self.next;
        let [inside, outside] = pair.ends();
        let token = PollerToken::Pair(id);
        let added = context.poller.add_edges(inside, token);
        let added = added.and_then(|()| context.poller.add_edges(outside, token));
        if let Some(key) = pair.key {
            self.flows.insert(key, ProxiedConnection::Joined);
        }
        self.pairs.insert(id, pair);
        if added.is_err() {
            self.end(context, id, InternetFlowEnd::Exhausted);
        }
    }

    /// Opens the listener for names that are asked for by TCP.
    pub(crate) fn listen_for_names(&mut self, context: &mut GatewayContext) -> std::io::Result<()> {
        let families: Vec<bool> = context.settings.own.iter().map(IpAddr::is_ipv6).collect();
        families.into_iter().try_for_each(|v6| self.listeners.ensure(context, v6, NAMES_PORT))
    }

    /// Forgets what has been over for long.
    pub(crate) fn expire(&mut self, context: &mut GatewayContext) {
        self.listeners.resume(context);
        self.ask_others(context);
        for (socket, line) in self.flows.expire(clock::monotonic_ns()) {
            socket::tear(socket);
            context.log.ended(&line, InternetFlowEnd::Abandoned);
        }
    }

    /// All is over.
    pub(crate) fn close(&mut self, context: &mut GatewayContext) {
        let ids: Vec<u64> = self.pairs.keys().copied().collect();
        ids.into_iter().for_each(|id| self.end(context, id, InternetFlowEnd::RunEnded));
    }

    fn begin(
        &mut self,
        context: &mut GatewayContext,
        key: ProxiedConnectionKey,
        packet: &NodeLinkPacket<'_>,
    ) {
        if !packet.is_intact() {
            return context.report.count(GatewayCounterUpdate::Ignored("checksum"));
        }
        let port = key.server.port();
        let to = match context.way(key.server.ip(), Some(port)) {
            Ok(outside) => SocketAddr::new(outside, port),
            Err(refusal) => return context.refuse(packet, refusal),
        };
        if self.flows.len() >= FLOWS_MAX {
            return context.report.count(GatewayCounterUpdate::Lost("connections beyond 32768", 1));
        }
        let line = FlowLine::new(InternetFlowKind::Tcp, key.client, key.server);
        let syn = Syn::of(packet);
        match dial(to, context.policy.is_host(key.server.ip())) {
            Ok(PendingConnection::Now(socket)) => {
                socket::made(&socket, to.is_ipv6());
                self.offer(context, key, &syn, socket, line);
            }
            Ok(PendingConnection::Soon(socket)) => {
                self.next += 1;
                let dial = self.next;
                if context.poller.add_once_writable(&socket, PollerToken::Dial(dial)).is_err() {
                    return context.report.count(GatewayCounterUpdate::Lost(FAILED, 1));
                }
                self.flows.insert(key, ProxiedConnection::Dialled { dial, syn, socket, line });
            }
            Err(errno) => refuse(context, &syn, &line, errno, None),
        }
    }

    /// Hands the client's SYN to the kernel.
    fn offer(
        &mut self,
        context: &mut GatewayContext,
        key: ProxiedConnectionKey,
        syn: &Syn,
        socket: OwnedFd,
        line: FlowLine,
    ) {
        let listening = self.listeners.ensure(context, key.server.is_ipv6(), key.server.port());
        if listening.is_err() {
            return context.report.count(GatewayCounterUpdate::Lost(FAILED, 1));
        }
        context.report.count(GatewayCounterUpdate::Flow(InternetFlowKind::Tcp));
        let since_ns = clock::monotonic_ns();
        self.flows.insert(key, ProxiedConnection::Offered { socket, line, since_ns });
        let mut frame = syn.frame.clone();
        context.out.address_to_kernel(&mut frame);
        context.out.send_to_kernel(&[(&syn.vnet, &frame)], &mut context.report);
    }

    fn cancel(&mut self, context: &mut GatewayContext, key: &ProxiedConnectionKey) {
        if let Some((socket, line)) = self.flows.cancel(key) {
            drop(socket);
            context.log.ended(&line, InternetFlowEnd::Abandoned);
        }
    }

    fn end(&mut self, context: &mut GatewayContext, id: u64, how: InternetFlowEnd) {
        let Some(pair) = self.pairs.remove(&id) else { return };
        if how == InternetFlowEnd::Exhausted {
            context.report.count(GatewayCounterUpdate::Lost(FAILED, 1));
        }
        let (line, key) = pair.end(how, &mut self.pipes);
        context.carried(&line);
        context.log.ended(&line, how);
        if let Some(key) = key {
            self.flows.insert(key, ProxiedConnection::Over { since_ns: clock::monotonic_ns() });
        }
    }
}

/// Begins a connection outside. The machine's loopback has two addresses, and most servers listen
/// at one of them: where that of the client's version refuses, the other is tried.
fn dial(to: SocketAddr, is_host: bool) -> Result<PendingConnection, Errno> {
    let other: IpAddr = match to {
        SocketAddr::V4(_) => Ipv6Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv4Addr::LOCALHOST.into(),
    };
    let dialled = match socket::dial(to) {
        Ok(PendingConnection::Soon(socket)) if is_host => socket::settled(socket),
        dialled => dialled,
    };
    match dialled {
        Err(Errno::CONNREFUSED) if is_host => {
            // The client learns the answer for its own version.
            socket::dial(SocketAddr::new(other, to.port())).map_err(|_| Errno::CONNREFUSED)
        }
        dialled => dialled,
    }
}

/// Says to the client what became of its connection outside, as an ICMP message has `said` it, if one has.
fn refuse(
    context: &mut GatewayContext,
    syn: &Syn,
    line: &FlowLine,
    errno: Errno,
    said: Option<IcmpErrorKind>,
) {
    let kind = match errno {
        Errno::HOSTUNREACH => IcmpErrorKind::HostUnreachable,
        Errno::NETUNREACH | Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT => {
            IcmpErrorKind::NetUnreachable
        }
        Errno::ACCESS | Errno::PERM => IcmpErrorKind::AdminProhibited,
        Errno::TIMEDOUT => {
            // The outside was silent, and so are we.
            return context.log.ended(line, InternetFlowEnd::TimedOut);
        }
        lack if socket::is_lack(lack) => {
            return context.report.count(GatewayCounterUpdate::Lost(FAILED, 1));
        }
        _ => {
            context.out.answer_reset(&syn.frame, syn.mac, &mut context.report);
            return context.log.ended(line, InternetFlowEnd::Refused);
        }
    };
    context.answer_error(&syn.frame, syn.mac, said.unwrap_or(kind));
    context.log.ended(line, InternetFlowEnd::Unreachable);
}

/// As many connections as two ports of the outside would have: more is an error of a program.
const FLOWS_MAX: usize = 32_768;
/// Of RFC 1035, 4.2.
const NAMES_PORT: u16 = 53;
