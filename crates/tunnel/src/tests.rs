//! Two members over a network of a test's own, in virtual time; and over real sockets.

mod corpus;
mod hostile;
mod network;
mod sockets;

use std::collections::VecDeque;
use std::net::SocketAddr;

use windtunnel_model::Time;
use windtunnel_wire::tunnel::Label;

use crate::members::{
    DatagramCarrier, DatagramCarrierRefusal, OutgoingFrame, TunnelFlushOutcome, TunnelMembership,
};
use crate::setup::{Security, TunnelSettings};

const SEALED: Security = Security::Sealed([3; 32]);

/// Takes datagrams up to a size, and keeps them one by one.
struct Wire {
    datagrams: VecDeque<Vec<u8>>,
    limit: usize,
    /// Says so of everything.
    refusal: Option<DatagramCarrierRefusal>,
}

impl DatagramCarrier for Wire {
    fn carry(
        &mut self,
        _: SocketAddr,
        bytes: &[u8],
        size: usize,
        _: bool,
    ) -> Result<(), DatagramCarrierRefusal> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        if size.min(bytes.len()) > self.limit {
            return Err(DatagramCarrierRefusal::TooBig);
        }
        assert!(bytes.len() <= 65_487 && bytes.len().div_ceil(size) <= 64, "not one GSO send");
        self.datagrams.extend(bytes.chunks(size).map(<[u8]>::to_vec));
        Ok(())
    }
}

/// A member and the wire on which it sends.
struct End {
    members: TunnelMembership,
    wire: Wire,
}

impl End {
    fn new(own: u16, security: Security) -> Self {
        End::of_run(7, own, security)
    }

    fn of_run(run: u64, own: u16, security: Security) -> Self {
        let peers = (0..2).map(|number| (number != own).then(|| address(number))).collect();
        let setup = TunnelSettings { run, own, peers, security };
        let members = TunnelMembership::new(setup, address(own)).unwrap();
        let wire = Wire { datagrams: VecDeque::new(), limit: 1472, refusal: None };
        End { members, wire }
    }

    fn push(&mut self, now: Time, port: u32, frame: &[u8]) {
        let outgoing = OutgoingFrame { to: 1 - self.members.own, label: label(port), frame };
        self.members.push(now, &outgoing, &mut self.wire);
    }

    fn flush(&mut self, now: Time) -> TunnelFlushOutcome {
        self.members.flush(now, &mut self.wire)
    }

    /// Sends one frame and returns the datagrams that it became.
    fn send(&mut self, now: Time, frame: &[u8]) -> Vec<Vec<u8>> {
        self.push(now, 1, frame);
        assert_eq!(
            self.flush(now),
            TunnelFlushOutcome { sent: 1, ..TunnelFlushOutcome::default() }
        );
        self.wire.datagrams.drain(..).collect()
    }

    /// Takes in a datagram of the other side and returns the completed frames, by port.
    fn accept(&mut self, now: Time, datagram: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.accept_from(now, address(1 - self.members.own), datagram)
    }

    fn accept_from(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut frames = Vec::new();
        let answer = self.members.accept(now, from, &mut datagram.to_vec(), &mut |received| {
            assert_eq!(received.label, label(received.label.port));
            frames.push((received.label.port, received.frame.to_vec()));
        });
        if let Some((peer, answer)) = answer {
            self.members.answer(peer, answer, &mut self.wire);
        }
        frames
    }
}

fn address(member: u16) -> SocketAddr {
    ([10, 0, 0, 1], 1000 + member).into()
}

/// All of a label follows from its port.
fn label(port: u32) -> Label {
    Label { port, lane: port ^ 1, intended: u64::from(port) << 33, vnet: [9; 10] }
}

/// A frame that differs everywhere, and from others.
fn frame(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 251 + seed * 7).to_le_bytes()[0]).collect()
}

fn ms(millis: u64) -> Time {
    Time::from_nanos(1_000_000 * millis)
}
