//! Scripted endpoints: a node's reactions to frames and time.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::SocketAddr;

use windtunnel_model::{Span, Time};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, checksum, ecn, udp};

/// The actions of an endpoint at its turn.
#[derive(Debug)]
pub struct EndpointActions {
    /// The time.
    pub now: Time,
    /// Frames to send.
    pub frames: Vec<Vec<u8>>,
    /// When to be woken; stays as it is until it has come.
    pub wake: Option<Time>,
}

/// A node's behaviour.
pub trait SimulatedEndpoint: Debug {
    /// It has just been attached, or its wake-up has come.
    fn on_wake(&mut self, turn: &mut EndpointActions);
    /// A frame has come.
    fn on_frame(&mut self, turn: &mut EndpointActions, frame: &[u8]);
}

/// Sends UDP packets at a constant pace.
#[derive(Debug, Clone)]
pub struct ConstantRateSender {
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// UDP payload bytes.
    pub payload: usize,
    /// Time between two packets.
    pub gap: Span,
    /// Packets left to send.
    pub left: u64,
}

impl SimulatedEndpoint for ConstantRateSender {
    fn on_wake(&mut self, turn: &mut EndpointActions) {
        if self.left > 0 {
            self.left -= 1;
            turn.frames.push(build::udp(self.from, self.to, &vec![0; self.payload]));
            turn.wake = Some(turn.now + self.gap);
        }
    }

    fn on_frame(&mut self, _turn: &mut EndpointActions, _frame: &[u8]) {}
}

/// Sends every UDP packet back to where it came from.
#[derive(Debug, Clone, Copy)]
pub struct UdpEchoServer;

impl SimulatedEndpoint for UdpEchoServer {
    fn on_wake(&mut self, _turn: &mut EndpointActions) {}

    fn on_frame(&mut self, turn: &mut EndpointActions, frame: &[u8]) {
        if let Some((from, to, payload)) = datagram(frame) {
            turn.frames.push(build::udp(to, from, payload));
        }
    }
}

/// Takes the packets of a [`RenoSender`] and acknowledges each with the first number that is missing,
/// and with one byte more where the packet was marked as having met congestion.
#[derive(Debug, Clone, Default)]
pub struct RenoReceiver {
    next: u64,
    early: BTreeSet<u64>,
}

impl SimulatedEndpoint for RenoReceiver {
    fn on_wake(&mut self, _turn: &mut EndpointActions) {}

    fn on_frame(&mut self, turn: &mut EndpointActions, frame: &[u8]) {
        let Some((from, to, payload)) = datagram(frame) else { return };
        let Some(number) = number(payload) else { return };
        if number >= self.next {
            self.early.insert(number);
        }
        while self.early.remove(&self.next) {
            self.next += 1;
        }
        let mut answer = self.next.to_be_bytes().to_vec();
        if ecn::codepoint(frame) == Some(ecn::EcnCodepoint::Ce) {
            answer.push(1);
        }
        turn.frames.push(build::udp(to, from, &answer));
    }
}

/// A bulk sender with a window, after Reno (RFC 5681): slow start, congestion avoidance, fast
/// retransmit after three duplicate acknowledgements with one packet resent for each partial one
/// (RFC 6582), and a fixed time-out. It always has something to send.
#[derive(Debug, Clone)]
pub struct RenoSender {
    from: SocketAddr,
    to: SocketAddr,
    payload: usize,
    timeout: Span,
    /// In thousandths of a packet.
    window: u64,
    threshold: u64,
    next: u64,
    acknowledged: u64,
    repeats: u32,
    /// Fast recovery lasts until this number is acknowledged.
    recover: u64,
    progress: Time,
    /// Marks do not halve the window again until this number is acknowledged.
    reduced: u64,
    /// Whether it takes part in ECN (RFC 3168): first transmissions are marked ECN-capable.
    ecn: bool,
}

impl RenoSender {
    /// A sender of packets of `payload` UDP bytes (at least 16: number, time of sending in ns)
    /// that starts with a window of 10.
    #[must_use]
    pub fn new(from: SocketAddr, to: SocketAddr, payload: usize, timeout: Span) -> Self {
        RenoSender {
            from,
            to,
            payload: payload.max(16),
            timeout,
            window: 10_000,
            threshold: u64::MAX,
            next: 0,
            acknowledged: 0,
            repeats: 0,
            recover: 0,
            progress: Time::ZERO,
            reduced: 0,
            ecn: false,
        }
    }

    /// The same, taking part in ECN: a mark halves the window, once in a round trip.
    #[must_use]
    pub fn with_ecn(self) -> Self {
        RenoSender { ecn: true, ..self }
    }

    fn packet(&self, number: u64, now: Time) -> Vec<u8> {
        let mut payload = vec![0; self.payload];
        payload[..8].copy_from_slice(&number.to_be_bytes());
        payload[8..16].copy_from_slice(&now.as_nanos().to_be_bytes());
        build::udp(self.from, self.to, &payload)
    }

    fn fill(&mut self, turn: &mut EndpointActions) {
        while (self.next - self.acknowledged) * 1000 < self.window {
            let packet = self.packet(self.next, turn.now);
            turn.frames.push(if self.ecn { build::with_ecn(packet, ECT_0) } else { packet });
            self.next += 1;
        }
    }

    fn advance(&mut self, acknowledged: u64, turn: &mut EndpointActions) {
        let new = acknowledged - self.acknowledged;
        self.acknowledged = acknowledged;
        self.next = self.next.max(acknowledged);
        self.repeats = 0;
        self.progress = turn.now;
        if acknowledged < self.recover {
            turn.frames.push(self.packet(acknowledged, turn.now));
        } else if self.window < self.threshold {
            self.window += new * 1000;
        } else {
            self.window += new * 1_000_000 / self.window;
        }
    }

    fn halve(&mut self) {
        self.threshold = (self.window / 2).max(2000);
        self.recover = self.next;
    }
}

impl SimulatedEndpoint for RenoSender {
    fn on_wake(&mut self, turn: &mut EndpointActions) {
        if self.next > self.acknowledged && turn.now.since(self.progress) >= self.timeout {
            self.halve();
            self.window = 1000;
            self.next = self.acknowledged;
            self.recover = self.acknowledged;
            self.progress = turn.now;
        }
        self.fill(turn);
        turn.wake = Some((self.progress + self.timeout).max(turn.now + Span::from_millis(1)));
    }

    fn on_frame(&mut self, turn: &mut EndpointActions, frame: &[u8]) {
        let Some((_, _, payload)) = datagram(frame) else { return };
        let Some(acknowledged) = number(payload) else { return };
        if payload.len() > 8 && acknowledged >= self.reduced.max(self.recover) {
            self.threshold = (self.window / 2).max(2000);
            self.window = self.threshold;
            self.reduced = self.next;
        }
        if acknowledged > self.acknowledged {
            self.advance(acknowledged, turn);
        } else if self.next > self.acknowledged {
            self.repeats += 1;
            if self.repeats == 3 && self.acknowledged >= self.recover {
                self.halve();
                self.window = self.threshold;
                turn.frames.push(self.packet(self.acknowledged, turn.now));
            }
        }
        self.fill(turn);
    }
}

/// The codepoint ECT(0).
const ECT_0: u8 = 2;

/// Sender, receiver and payload of an intact UDP packet.
fn datagram(frame: &[u8]) -> Option<(SocketAddr, SocketAddr, &[u8])> {
    let packet = ParsedPacket::parse(frame).ok()?;
    let info = &packet.info;
    let is_intact = info.protocol == udp::PROTOCOL && checksum::holds(&packet);
    let (from, to) = packet.ports().filter(|_| is_intact)?;
    let payload = packet.payload().get(udp::HEADER_LEN..)?;
    Some((SocketAddr::new(info.source, from), SocketAddr::new(info.destination, to), payload))
}

fn number(payload: &[u8]) -> Option<u64> {
    payload.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}
