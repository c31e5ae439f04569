//! Segments that no TCP would send: nothing panics, and memory stays bounded.

use windtunnel_failover::{ReplicaId, ReplicationConfig};
use windtunnel_model::Span;
use windtunnel_model::random::{RandomSequence, RandomStream};
use windtunnel_wire::vnet;

use crate::hand::{Hand, ISN, ISNS, from_client, from_replica, syn_ack};
use crate::seg::Seg;

/// A partial checksum is not looked at, so that damaged headers are read.
const TRUSTED: vnet::VirtioNetHeader = vnet::VirtioNetHeader {
    flags: vnet::DATA_VALID,
    gso_type: 0,
    hdr_len: 0,
    gso_size: 0,
    csum_start: 0,
    csum_offset: 0,
};

struct Attacker(RandomSequence);

impl Attacker {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Numbers near those that count, and far from them.
    fn near(&mut self, base: u32) -> u32 {
        let offset = match self.below(4) {
            0 => self.below(4) as u32,
            1 => self.below(70_000) as u32,
            2 => (self.below(1_000) as u32).wrapping_neg(),
            _ => self.below(1 << 32) as u32,
        };
        base.wrapping_add(offset)
    }

    fn segment(&mut self, from: Option<u32>) -> Seg {
        let mut seg = match from {
            None => from_client(1, 1, b""),
            Some(replica) => from_replica(replica, 1, 1, b""),
        };
        let (mine, theirs) = match from {
            None => (ISN, ISNS[0]),
            Some(replica) => (ISNS[replica as usize], ISN),
        };
        (seg.seq, seg.ack) = (self.near(mine), self.near(theirs));
        seg.flags = self.below(256) as u8;
        seg.window = self.below(1 << 16) as u16;
        seg.urgent = self.below(1 << 16) as u16;
        seg.payload = vec![self.below(256) as u8; self.below(1_400) as usize];
        seg.ecn = self.below(4) as u8;
        if self.below(2) == 0 {
            seg.stamps = Some((self.near(7), self.near(5_000)));
        }
        for _ in 0..self.below(3) {
            seg.sacks.push((self.near(theirs), self.near(theirs)));
        }
        if self.below(8) == 0 {
            (seg.mss, seg.shift) = (Some(self.below(1 << 16) as u16), Some(self.below(256) as u8));
        }
        seg
    }

    fn damaged(&mut self, mut frame: Vec<u8>) -> Vec<u8> {
        for _ in 0..self.below(4) {
            let at = self.below(frame.len() as u64) as usize;
            frame[at] ^= 1 << self.below(8);
        }
        frame.truncate(frame.len() - self.below(3) as usize);
        frame
    }
}

fn attack(seed: u64) {
    let mut attacker =
        Attacker(RandomSequence::new(RandomStream::named(seed, &["failover", "hostile"])));
    let mut config = ReplicationConfig::default();
    (config.limits.output, config.limits.output_total) = (30_000, 50_000);
    let mut hand = Hand::new(config, 3);
    hand.client(&hand.syn()).unwrap();
    for replica in 0..attacker.below(4) as u32 {
        hand.replica(replica, &syn_ack(replica));
    }
    for _ in 0..150 {
        let from = [None, Some(0), Some(1), Some(2)][attacker.below(4) as usize];
        let frame = attacker.segment(from).frame();
        let frame = attacker.damaged(frame);
        let order = hand.order.clone();
        let _ = match from {
            None => hand.machine.handle_client(hand.now, &TRUSTED, &frame, &order),
            Some(id) => hand.machine.handle_replica(hand.now, ReplicaId(id), &TRUSTED, &frame),
        };
        let _ = hand.machine.handle_icmp(hand.now, &frame);
        while hand.machine.poll_transmit().is_some() {}
        if let Some(view) = hand.machine.view(hand.key()) {
            assert!(view.buffered <= 90_000, "{} bytes", view.buffered);
            assert!(view.memory <= 400_000, "{} bytes", view.memory);
        }
        hand.now += Span::from_millis(attacker.below(30));
        hand.machine.handle_timeout(hand.now);
        while hand.machine.poll_transmit().is_some() {}
        if attacker.below(40) == 0 {
            hand.machine.replica_lost(hand.now, ReplicaId(attacker.below(4) as u32));
        }
    }
}

#[test]
fn segments_that_no_tcp_would_send_neither_panic_nor_fill_memory() {
    for seed in 0..1_500 {
        if std::panic::catch_unwind(|| attack(seed)).is_err() {
            panic!("seed {seed}");
        }
    }
}
