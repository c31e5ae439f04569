//! ICMP echo between the network and the outside: a ping socket for each identifier inside, where
//! the machine lets its programs have them (`net.ipv4.ping_group_range`); else a raw socket, which
//! root may have; else nothing is answered, and that is counted.

mod outside;

use std::collections::HashMap;
use std::io::ErrorKind::WouldBlock;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustix::io::Errno;
use windtunnel_sys::clock;
use windtunnel_wire::icmp::{self, IcmpErrorKind};

use crate::frames::{self, AddressPair, EchoNumbers, Fragmentation};
use crate::log::{FAILED, FlowLine, InternetFlowEnd, InternetFlowKind};
use crate::policy::EgressRefusal;
use crate::poller::PollerToken;
use crate::report::GatewayCounterUpdate;
use crate::worker::{GatewayContext, NodeLinkPacket};
use crate::{said, socket};
use outside::EchoSocket;

/// Programs inside that send echo requests.
#[derive(Debug, Default)]
pub(crate) struct EchoRelay {
    by_identifier: HashMap<(IpAddr, u16), u64>,
    flows: HashMap<u64, EchoRelayFlow>,
    next: u64,
    replies: u32,
}

#[derive(Debug)]
struct EchoRelayFlow {
    inside: IpAddr,
    identifier: u16,
    socket: EchoSocket,
    peers: Vec<IpAddr>,
    mac: [u8; 6],
    line: FlowLine,
    used_ns: u64,
}

impl EchoRelay {
    /// Takes a request.
    pub(crate) fn request(&mut self, context: &mut GatewayContext, packet: &NodeLinkPacket<'_>) {
        let Ok(view) = icmp::IcmpMessage::parse(packet.parsed.payload()) else {
            return context.report.count(GatewayCounterUpdate::Ignored("malformed"));
        };
        if !packet.is_intact() {
            return context.report.count(GatewayCounterUpdate::Ignored("checksum"));
        }
        let destination = packet.parsed.info.final_destination;
        match context.way(destination, None) {
            Err(refusal) => context.refuse(packet, refusal),
            // It is the gateway's own address.
            Ok(_) if context.policy.is_host(destination) => {
                self.reply_as_host(context, packet, &view);
            }
            Ok(outside) => {
                let Some(flow) = self.flow(context, packet, view.identifier()) else { return };
                flow.mac = packet.mac;
                flow.used_ns = clock::monotonic_ns();
                if !flow.peers.contains(&outside) && flow.peers.len() < PEERS_MAX {
                    flow.peers.push(outside);
                }
                let mut sent = flow.socket.send(outside, view.sequence(), view.body());
                if sent.is_err() {
                    // That of an earlier request is reported by the next call.
                    flow.errors(context);
                    sent = flow.socket.send(outside, view.sequence(), view.body());
                }
                match sent {
                    Ok(()) => {
                        let bytes = u64::try_from(view.body().len()).unwrap_or(0);
                        flow.line.sent_bytes = flow.line.sent_bytes.saturating_add(bytes);
                    }
                    Err(error) => {
                        context.report.count(GatewayCounterUpdate::Ignored("echo not sent"));
                        let refusal = Errno::from_io_error(&error).map(socket::refusal);
                        if refusal == Some(EgressRefusal::NoRoute) && error.kind() != WouldBlock {
                            context.answer(packet, IcmpErrorKind::HostUnreachable);
                        }
                    }
                }
            }
        }
    }

    /// Replies have come.
    pub(crate) fn answers(&mut self, context: &mut GatewayContext, id: u64) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let mut buffer = vec![0; outside::PAYLOAD_MAX];
        flow.errors(context);
        for _ in 0..TURN {
            let (from, sequence, length) = match flow.socket.receive(&mut buffer) {
                Ok(Some(reply)) => reply,
                Ok(None) => return,
                // Of a request that was sent; the queue of errors says which.
                Err(_) => continue,
            };
            if !flow.peers.contains(&from) {
                continue;
            }
            let bytes = u64::try_from(length).unwrap_or(0);
            flow.line.received_bytes = flow.line.received_bytes.saturating_add(bytes);
            self.replies = self.replies.wrapping_add(1);
            let addresses = AddressPair { source: from, destination: flow.inside };
            let numbers = EchoNumbers { identifier: flow.identifier, sequence };
            let payload = buffer.get(..length).unwrap_or_default();
            let fragmentation =
                Fragmentation { mtu: context.settings.mtu, identification: self.replies };
            for mut frame in frames::echo_reply(addresses, numbers, payload, fragmentation) {
                context.out.send_to_link(&mut frame, flow.mac, &mut context.report);
            }
        }
    }

    /// Forgets programs that have been silent.
    pub(crate) fn expire(&mut self, context: &mut GatewayContext) {
        let now_ns = clock::monotonic_ns();
        let idle_ns = u64::try_from(IDLE.as_nanos()).unwrap_or(u64::MAX);
        let idle = self.flows.iter().filter(|(_, it)| now_ns.saturating_sub(it.used_ns) > idle_ns);
        let idle: Vec<u64> = idle.map(|(id, _)| *id).collect();
        idle.into_iter().for_each(|id| self.end(context, id, InternetFlowEnd::Idle));
    }

    /// All is over.
    pub(crate) fn close(&mut self, context: &mut GatewayContext) {
        let ids: Vec<u64> = self.flows.keys().copied().collect();
        ids.into_iter().for_each(|id| self.end(context, id, InternetFlowEnd::RunEnded));
    }

    /// A reply that is longer than the link's MTU is cut, as its request was.
    fn reply_as_host(
        &mut self,
        context: &mut GatewayContext,
        packet: &NodeLinkPacket<'_>,
        view: &icmp::IcmpMessage<'_>,
    ) {
        self.replies = self.replies.wrapping_add(1);
        let (source, destination) =
            (packet.parsed.info.final_destination, packet.parsed.info.source);
        let addresses = AddressPair { source, destination };
        let numbers = EchoNumbers { identifier: view.identifier(), sequence: view.sequence() };
        let fragmentation =
            Fragmentation { mtu: context.settings.mtu, identification: self.replies };
        for mut frame in frames::echo_reply(addresses, numbers, view.body(), fragmentation) {
            context.out.send_to_link(&mut frame, packet.mac, &mut context.report);
        }
    }

    fn flow(
        &mut self,
        context: &mut GatewayContext,
        packet: &NodeLinkPacket<'_>,
        identifier: u16,
    ) -> Option<&mut EchoRelayFlow> {
        let inside = packet.parsed.info.source;
        let key = (inside, identifier);
        if let Some(id) = self.by_identifier.get(&key) {
            return self.flows.get_mut(id);
        }
        if self.flows.len() >= FLOWS_MAX {
            let oldest = self.flows.iter().min_by_key(|(_, flow)| flow.used_ns).map(|(id, _)| *id);
            oldest.into_iter().for_each(|id| self.end(context, id, InternetFlowEnd::Displaced));
        }
        self.next += 1;
        let id = self.next;
        let Ok(socket) = EchoSocket::open(inside.is_ipv6(), identifier_of(id)) else {
            context.report.echo_denied += 1;
            return None;
        };
        if context.poller.add_readable(&socket, PollerToken::Echo(id)).is_err() {
            context.report.count(GatewayCounterUpdate::Lost(FAILED, 1));
            return None;
        }
        context.report.count(GatewayCounterUpdate::Flow(InternetFlowKind::Echo));
        let from = SocketAddr::new(inside, identifier);
        let line = FlowLine::new(
            InternetFlowKind::Echo,
            from,
            SocketAddr::new(packet.parsed.info.final_destination, 0),
        );
        let (peers, mac, used_ns) = (Vec::new(), packet.mac, clock::monotonic_ns());
        self.by_identifier.insert(key, id);
        let flow = EchoRelayFlow { inside, identifier, socket, peers, mac, line, used_ns };
        Some(self.flows.entry(id).or_insert(flow))
    }

    fn end(&mut self, context: &mut GatewayContext, id: u64, how: InternetFlowEnd) {
        let Some(flow) = self.flows.remove(&id) else { return };
        self.by_identifier.remove(&(flow.inside, flow.identifier));
        context.carried(&flow.line);
        context.log.ended(&flow.line, how);
    }
}

impl EchoRelayFlow {
    /// Hands on errors that came back for requests.
    fn errors(&self, context: &mut GatewayContext) {
        let mut quoted = [0; QUOTED_MAX];
        while let Ok(Some((error, sequence, length))) = self.socket.error(&mut quoted) {
            let to = error.destination.ip();
            let Some(kind) = said::kind(&error).filter(|_| self.peers.contains(&to)) else {
                continue;
            };
            let payload = quoted.get(..length).unwrap_or_default();
            let addresses = AddressPair { source: self.inside, destination: to };
            let numbers = EchoNumbers { identifier: self.identifier, sequence };
            if let Some(frame) = frames::quoted_echo(addresses, numbers, payload) {
                context.answer_error(&frame, self.mac, kind);
            }
        }
    }
}

/// Identifiers outside: few of them are in use at once.
fn identifier_of(id: u64) -> u16 {
    u16::try_from(id % 0xffff).unwrap_or(0)
}

/// RFC 5508, 3.2: a minute at the least.
const IDLE: Duration = Duration::from_secs(60);
const FLOWS_MAX: usize = 512;
const PEERS_MAX: usize = 256;
const TURN: usize = 64;
/// Of a request, an ICMP error need not quote more (RFC 1812, 4.3.2.3).
const QUOTED_MAX: usize = 512;
