//! UDP between the network and the outside: one socket outside for each endpoint inside, whatever
//! it sends to (endpoint-independent mapping, RFC 4787, 4.1), which gets answers from addresses
//! only that it has sent to (section 5).

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery};
use windtunnel_sys::{clock, socket_error};
use windtunnel_wire::{udp, vnet};

use crate::frames::{self, Fragmentation};
use crate::log::{FAILED, FlowLine, InternetFlowEnd, InternetFlowKind};
use crate::loopback;
use crate::poller::PollerToken;
use crate::report::GatewayCounterUpdate;
use crate::said;
use crate::socket;
use crate::worker::{GatewayContext, NodeLinkPacket};

/// All endpoints inside that have sent.
#[derive(Debug, Default)]
pub(crate) struct Udp {
    by_endpoint: HashMap<SocketAddr, u64>,
    sessions: HashMap<u64, UdpRelaySession>,
    next: u64,
    identification: u32,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct UdpRelaySession {
    id: u64,
    inside: SocketAddr,
    socket: UdpSocket,
    /// For servers of the machine's loopback that have an address of the other version of IP only.
    other: Option<UdpSocket>,
    /// Where frames for the endpoint go.
    mac: [u8; 6],
    /// Addresses that were sent to, by what they are outside.
    peers: HashMap<IpAddr, IpAddr>,
    /// Destinations that were found to be allowed, with what they are outside.
    ways: HashMap<SocketAddr, SocketAddr>,
    line: FlowLine,
    used_ns: u64,
    dropped: u32,
}

impl Udp {
    /// Takes a datagram, or a train of them.
    pub(crate) fn datagram(&mut self, context: &mut GatewayContext, packet: &NodeLinkPacket<'_>) {
        let payload = packet.parsed.payload();
        let ports = packet.parsed.ports();
        let (Ok(view), Some((from, to))) = (udp::UdpDatagram::parse(payload), ports) else {
            return context.report.count(GatewayCounterUpdate::Ignored("malformed"));
        };
        if !packet.is_intact() {
            return context.report.count(GatewayCounterUpdate::Ignored("checksum"));
        }
        let inside = SocketAddr::new(packet.parsed.info.source, from);
        let destination = SocketAddr::new(packet.parsed.info.final_destination, to);
        let Some(id) = self.session(context, inside, destination, packet) else { return };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(way) = session.way(context, destination, packet) else { return };
        session.mac = packet.mac;
        session.used_ns = clock::monotonic_ns();
        let is_train = packet.vnet.gso_type == vnet::GSO_UDP_L4 && packet.vnet.gso_size > 0;
        // A train has a length of its own only in the frame.
        let data = if is_train { &payload[udp::HEADER_LEN..] } else { view.payload() };
        let size = if is_train { usize::from(packet.vnet.gso_size) } else { data.len().max(1) };
        match data {
            [] => session.send(context, &[], way, packet),
            data => data.chunks(size).for_each(|part| session.send(context, part, way, packet)),
        }
    }

    /// Answers have come for an endpoint, or errors.
    pub(crate) fn answers(&mut self, context: &mut GatewayContext, id: u64, has_error: bool) {
        self.buffer.resize(DATAGRAM_MAX, 0);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if has_error {
            session.errors(context);
        }
        for _ in 0..TURN {
            let (length, from) = match session.receive(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // What came back for a datagram; the next call says more.
                Err(_) => continue,
            };
            let Some(visible) = session.peers.get(&from.ip()) else {
                context.report.count(GatewayCounterUpdate::Ignored("unasked"));
                continue;
            };
            let source = SocketAddr::new(*visible, from.port());
            session.used_ns = clock::monotonic_ns();
            let bytes = u64::try_from(length).unwrap_or(0);
            session.line.received_bytes = session.line.received_bytes.saturating_add(bytes);
            self.identification = self.identification.wrapping_add(1);
            let fragmentation =
                Fragmentation { mtu: context.settings.mtu, identification: self.identification };
            let payload = &self.buffer[..length];
            for mut frame in frames::datagram(source, session.inside, payload, fragmentation) {
                context.out.send_to_link(&mut frame, session.mac, &mut context.report);
            }
        }
    }

    /// Forgets endpoints that have been silent, and counts what their sockets had no room for.
    pub(crate) fn expire(&mut self, context: &mut GatewayContext) {
        let now_ns = clock::monotonic_ns();
        let idle_ns = u64::try_from(IDLE.as_nanos()).unwrap_or(u64::MAX);
        let is_idle = |session: &UdpRelaySession| now_ns.saturating_sub(session.used_ns) > idle_ns;
        self.sessions.values_mut().for_each(|session| session.count_drops(context));
        let idle: Vec<u64> =
            self.sessions.iter().filter(|(_, it)| is_idle(it)).map(|(id, _)| *id).collect();
        idle.into_iter().for_each(|id| self.end(context, id, InternetFlowEnd::Idle));
    }

    /// All is over.
    pub(crate) fn close(&mut self, context: &mut GatewayContext) {
        let ids: Vec<u64> = self.sessions.keys().copied().collect();
        ids.into_iter().for_each(|id| self.end(context, id, InternetFlowEnd::RunEnded));
    }

    /// The session of an endpoint, a new one if there is none and the destination is allowed.
    fn session(
        &mut self,
        context: &mut GatewayContext,
        inside: SocketAddr,
        destination: SocketAddr,
        packet: &NodeLinkPacket<'_>,
    ) -> Option<u64> {
        if let Some(id) = self.by_endpoint.get(&inside) {
            return Some(*id);
        }
        // What is refused leaves no socket behind.
        if let Err(refusal) = context.way(destination.ip(), Some(destination.port())) {
            context.refuse(packet, refusal);
            return None;
        }
        if self.sessions.len() >= SESSIONS_MAX {
            self.end_oldest(context);
        }
        self.next += 1;
        let id = self.next;
        let Ok(session) = UdpRelaySession::open(context, id, inside, destination, packet.mac)
        else {
            context.report.count(GatewayCounterUpdate::Lost(FAILED, 1));
            return None;
        };
        context.report.count(GatewayCounterUpdate::Flow(InternetFlowKind::Udp));
        self.by_endpoint.insert(inside, id);
        self.sessions.insert(id, session);
        Some(id)
    }

    fn end_oldest(&mut self, context: &mut GatewayContext) {
        let oldest = self.sessions.iter().min_by_key(|(_, session)| session.used_ns);
        if let Some(id) = oldest.map(|(id, _)| *id) {
            self.end(context, id, InternetFlowEnd::Displaced);
        }
    }

    fn end(&mut self, context: &mut GatewayContext, id: u64, how: InternetFlowEnd) {
        let Some(mut session) = self.sessions.remove(&id) else { return };
        self.by_endpoint.remove(&session.inside);
        session.count_drops(context);
        context.carried(&session.line);
        context.log.ended(&session.line, how);
    }
}

impl UdpRelaySession {
    fn open(
        context: &GatewayContext,
        id: u64,
        inside: SocketAddr,
        destination: SocketAddr,
        mac: [u8; 6],
    ) -> io::Result<UdpRelaySession> {
        Ok(UdpRelaySession {
            id,
            inside,
            socket: open(context, id, inside.is_ipv6())?,
            other: None,
            mac,
            peers: HashMap::new(),
            ways: HashMap::new(),
            line: FlowLine::new(InternetFlowKind::Udp, inside, destination),
            used_ns: clock::monotonic_ns(),
            dropped: 0,
        })
    }

    /// What a destination is outside, if it is allowed; else it is answered.
    fn way(
        &mut self,
        context: &mut GatewayContext,
        destination: SocketAddr,
        packet: &NodeLinkPacket<'_>,
    ) -> Option<SocketAddr> {
        if let Some(way) = self.ways.get(&destination) {
            return Some(*way);
        }
        let mut outside = match context.way(destination.ip(), Some(destination.port())) {
            Ok(outside) => outside,
            Err(refusal) => {
                context.refuse(packet, refusal);
                return None;
            }
        };
        // As for TCP: most servers of the loopback are at one of its two addresses.
        let is_host = context.policy.is_host(destination.ip());
        let serving = is_host.then(|| loopback::serving(outside, destination.port())).flatten();
        if let Some(serving) = serving {
            outside = serving;
        }
        if self.peers.len() >= PEERS_MAX {
            context
                .report
                .count(GatewayCounterUpdate::Lost("datagrams to more than 4096 addresses", 1));
            return None;
        }
        self.peers.insert(outside, destination.ip());
        if self.ways.len() >= PEERS_MAX {
            self.ways.clear();
        }
        let way = SocketAddr::new(outside, destination.port());
        // One that nothing serves yet may be served later, by the other version.
        if !is_host || serving.is_some() {
            self.ways.insert(destination, way);
        }
        Some(way)
    }

    fn send(
        &mut self,
        context: &mut GatewayContext,
        data: &[u8],
        to: SocketAddr,
        packet: &NodeLinkPacket<'_>,
    ) {
        if to.is_ipv6() != self.inside.is_ipv6() && self.other.is_none() {
            self.other = open(context, self.id, to.is_ipv6()).ok();
        }
        let mut sent = self.send_once(data, to);
        let is_of_room = |error: &io::Error| error.kind() == ErrorKind::WouldBlock;
        if sent.as_ref().is_err_and(|error| !is_of_room(error)) {
            // An error that came back for an earlier datagram is reported by the next call.
            self.errors(context);
            sent = self.send_once(data, to);
        }
        match sent {
            Ok(_) => {
                let bytes = u64::try_from(data.len()).unwrap_or(0);
                self.line.sent_bytes = self.line.sent_bytes.saturating_add(bytes);
            }
            Err(error) if is_of_room(&error) || error.kind() == ErrorKind::OutOfMemory => {
                context.report.count(GatewayCounterUpdate::Lost(
                    "datagrams that the machine had no room for",
                    1,
                ));
            }
            Err(error) => {
                let errno = rustix::io::Errno::from_io_error(&error);
                let refusal = errno.map_or(crate::policy::EgressRefusal::NoRoute, socket::refusal);
                context.refuse(packet, refusal);
            }
        }
    }

    fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        std::iter::once(&self.socket).chain(&self.other)
    }

    fn send_once(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        let is_own = to.is_ipv6() == self.inside.is_ipv6();
        let socket = if is_own { Some(&self.socket) } else { self.other.as_ref() };
        socket.ok_or(ErrorKind::AddrNotAvailable)?.send_to(data, to)
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match (self.socket.recv_from(buffer), &self.other) {
            (Err(error), Some(other)) if error.kind() == ErrorKind::WouldBlock => {
                other.recv_from(buffer)
            }
            (received, _) => received,
        }
    }

    /// Hands on errors that came back from outside.
    fn errors(&mut self, context: &mut GatewayContext) {
        let mut quoted = [0; QUOTED_MAX];
        while let Some(mut error) =
            self.sockets().find_map(|it| socket_error::next(it, &mut quoted).ok().flatten())
        {
            let Some(visible) = self.peers.get(&error.destination.ip()) else { continue };
            // A message of the other version has other numbers.
            error.is_icmp &= error.destination.is_ipv6() == self.inside.is_ipv6();
            let destination = SocketAddr::new(*visible, error.destination.port());
            let Some(kind) = said::kind(&error) else { continue };
            let payload = quoted.get(..error.bytes).unwrap_or_default();
            if let Some(frame) = frames::quoted(self.inside, destination, payload) {
                context.answer_error(&frame, self.mac, kind);
            }
        }
    }

    fn count_drops(&mut self, context: &mut GatewayContext) {
        let memory = |socket| windtunnel_sys::socket::memory(socket).unwrap_or_default();
        let dropped = self.sockets().fold(0_u32, |sum, it| sum.wrapping_add(memory(it).dropped));
        let new = dropped.wrapping_sub(self.dropped);
        self.dropped = dropped;
        let what = "datagrams from outside that the gateway did not take in time";
        context.report.count(GatewayCounterUpdate::Lost(what, u64::from(new)));
    }
}

/// A socket of an endpoint.
fn open(context: &GatewayContext, id: u64, v6: bool) -> io::Result<UdpSocket> {
    let socket = socket::datagrams(v6)?;
    socket_error::keep(&socket, v6)?;
    if !v6 {
        // What is too long for the way is cut outside, as it was not forbidden inside.
        sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DONT)?;
    }
    // As much as the machine lets anyone have.
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
    context.poller.add_readable(&socket, PollerToken::Session(id))?;
    Ok(socket)
}

/// RFC 4787, 4.3: five minutes are recommended.
const IDLE: Duration = Duration::from_secs(300);
const SESSIONS_MAX: usize = 8192;
const PEERS_MAX: usize = 4096;
/// Datagrams that one endpoint gets before others have their turn.
const TURN: usize = 64;
const DATAGRAM_MAX: usize = 65_536;
const RECEIVE_BUFFER: usize = 4 << 20;
/// Of a datagram, an ICMP error need not quote more (RFC 1812, 4.3.2.3).
const QUOTED_MAX: usize = 512;
