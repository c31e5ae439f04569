//! A machine driven segment by segment.

use std::net::SocketAddr;

use windtunnel_failover::{
    ConnectionReplicator, ReplicaId, ReplicatedConnectionKey, ReplicationConfig,
    ReplicationEventKind, ReplicationRefusal, TransmitDestination,
};
use windtunnel_model::{Span, Time};
use windtunnel_wire::vnet;

use crate::seg::{ACK, SYN, Seg, cut};

pub(crate) const CLIENT: &str = "10.0.0.7:40000";
pub(crate) const SERVICE: &str = "10.1.0.80:80";
/// Initial sequence numbers: the client's, and the replicas'.
pub(crate) const ISN: u32 = 1_000;
pub(crate) const ISNS: [u32; 3] = [70_000, 0xffff_fffe, 5];

pub(crate) struct Hand {
    pub(crate) machine: ConnectionReplicator,
    pub(crate) now: Time,
    pub(crate) order: Vec<ReplicaId>,
}

/// A packet that was sent, and to which replica, or the client.
pub(crate) type Sent = (Option<u32>, Seg);

impl Hand {
    pub(crate) fn new(config: ReplicationConfig, replicas: u32) -> Self {
        let order = (0..replicas).map(ReplicaId).collect();
        Self {
            machine: ConnectionReplicator::new(config),
            now: Time::ZERO + Span::from_secs(5),
            order,
        }
    }

    /// With a connection that is open: options of SYN and SYN-ACK as of Linux, without timestamps.
    pub(crate) fn open(config: ReplicationConfig, replicas: u32) -> Self {
        let mut hand = Self::new(config, replicas);
        hand.client(&hand.syn()).unwrap();
        for replica in 0..replicas {
            hand.replica(replica, &syn_ack(replica));
        }
        hand.client(&from_client(1, 1, b"")).unwrap();
        hand.events();
        hand
    }

    pub(crate) fn syn(&self) -> Seg {
        let mut syn = Seg::new(address(CLIENT), address(SERVICE));
        syn.seq = ISN;
        syn.flags = SYN;
        syn.window = 64_000;
        syn.mss = Some(1460);
        syn.sack_permitted = true;
        syn.shift = Some(7);
        syn
    }

    pub(crate) fn client(&mut self, seg: &Seg) -> Result<Vec<Sent>, ReplicationRefusal> {
        self.client_frame(&vnet::VirtioNetHeader::default(), &seg.frame())
    }

    pub(crate) fn client_frame(
        &mut self,
        header: &vnet::VirtioNetHeader,
        frame: &[u8],
    ) -> Result<Vec<Sent>, ReplicationRefusal> {
        let order = self.order.clone();
        self.machine.handle_client(self.now, header, frame, &order)?;
        Ok(self.sent())
    }

    pub(crate) fn replica(&mut self, replica: u32, seg: &Seg) -> Vec<Sent> {
        let header = vnet::VirtioNetHeader::default();
        let frame = seg.frame();
        self.machine.handle_replica(self.now, ReplicaId(replica), &header, &frame).unwrap();
        self.sent()
    }

    /// Lets time pass, and does what is due.
    pub(crate) fn wait(&mut self, time: Span) -> Vec<Sent> {
        let end = self.now + time;
        let mut sent = Vec::new();
        while let Some(at) = self.machine.poll_timeout().filter(|at| *at <= end) {
            assert!(at >= self.now, "{at} has passed");
            self.now = at;
            self.machine.handle_timeout(self.now);
            sent.extend(self.sent());
        }
        self.now = end;
        sent
    }

    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        while let Some(transmit) = self.machine.poll_transmit() {
            let to = match transmit.to {
                TransmitDestination::Client => None,
                TransmitDestination::Replica(id) => Some(id.0),
            };
            for frame in cut(&transmit.vnet, &transmit.frame) {
                all.push((to, Seg::parse(&frame)));
            }
        }
        all
    }

    pub(crate) fn events(&mut self) -> Vec<ReplicationEventKind> {
        std::iter::from_fn(|| self.machine.poll_event()).map(|event| event.what).collect()
    }

    pub(crate) fn key(&self) -> ReplicatedConnectionKey {
        ReplicatedConnectionKey { client: address(CLIENT), service: address(SERVICE) }
    }
}

/// A SYN-ACK of a replica: MSS 1460, shift 7, window 60 000, SACK.
pub(crate) fn syn_ack(replica: u32) -> Seg {
    let mut seg = Seg::new(address(SERVICE), address(CLIENT));
    seg.seq = ISNS[replica as usize];
    seg.ack = ISN + 1;
    seg.flags = SYN | ACK;
    seg.window = 60_000;
    seg.mss = Some(1460);
    seg.sack_permitted = true;
    seg.shift = Some(7);
    seg
}

/// Data of the client by offset, and what it acknowledges of the server's stream (offsets from the
/// first replica's SYN).
pub(crate) fn from_client(offset: u32, acked: u32, payload: &[u8]) -> Seg {
    let mut seg = Seg::new(address(CLIENT), address(SERVICE));
    seg.seq = ISN.wrapping_add(offset);
    seg.ack = ISNS[0].wrapping_add(acked);
    seg.flags = ACK;
    seg.window = 500;
    seg.payload = payload.to_vec();
    seg
}

/// The same of a replica, in its own numbers.
pub(crate) fn from_replica(replica: u32, offset: u32, acked: u32, payload: &[u8]) -> Seg {
    let mut seg = Seg::new(address(SERVICE), address(CLIENT));
    seg.seq = ISNS[replica as usize].wrapping_add(offset);
    seg.ack = ISN.wrapping_add(acked);
    seg.flags = ACK;
    seg.window = 400;
    seg.payload = payload.to_vec();
    seg
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
