//! Flow queues against a transcription of RFC 8290, section 4, and the shares that it promises.

use std::collections::VecDeque;
use std::net::SocketAddr;

use windtunnel_model::profile::{
    CodelParameters, FairBy, FlowQueues, HostFairParameters, QueueDiscipline, QueueLimit,
};
use windtunnel_model::{DropReason, LinkPatch, LinkProfile, Packets, Span};
use windtunnel_wire::{build, vnet};

use crate::support::{MS, Net, pair, rated, up};

/// CoDel that never finds a delay too long.
const PATIENT: CodelParameters =
    CodelParameters { target: Span::from_secs(500), interval: Span::from_secs(1000), ecn: true };

fn limited(packets: u64, discipline: QueueDiscipline) -> LinkProfile {
    LinkProfile {
        discipline,
        queue: Some(QueueLimit::Packets(Packets(packets))),
        ..rated(8_000_000)
    }
}

fn queues(quantum: u32) -> FlowQueues {
    FlowQueues { flows: 1024, quantum, codel: PATIENT }
}

/// Sends a packet of `len` bytes whose payload begins with the number of its flow.
fn send(net: &mut Net, at: u64, flow: u16, len: usize) {
    let from = SocketAddr::new(net.address(0), 1000 + flow);
    send_from(net, at, from, u32::from(flow), len);
}

fn send_from(net: &mut Net, at: u64, from: SocketAddr, tag: u32, len: usize) {
    let mut payload = vec![0; len - 28];
    payload[..4].copy_from_slice(&tag.to_be_bytes());
    let frame = build::udp(from, net.socket(1), &payload);
    net.send(at, 0, vnet::VirtioNetHeader::default(), &frame);
}

/// The scheduler of RFC 8290, 4.1 and 4.2, for flows that never collide, without CoDel.
struct Reference {
    quantum: i64,
    limit: usize,
    queues: Vec<VecDeque<usize>>,
    credits: Vec<i64>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    dropped: usize,
}

impl Reference {
    fn enqueue(&mut self, flow: usize, len: usize) {
        self.queues[flow].push_back(len);
        if !self.new.contains(&flow) && !self.old.contains(&flow) {
            self.new.push_back(flow);
            self.credits[flow] = self.quantum;
        }
    }

    /// Half of the packets of the longest queue, 64 at most, from its head.
    fn overflow(&mut self) {
        while self.queues.iter().map(VecDeque::len).sum::<usize>() > self.limit {
            let bytes = |queue: &VecDeque<usize>| queue.iter().sum::<usize>();
            let longest = self.queues.iter_mut().max_by_key(|queue| bytes(queue)).unwrap();
            let count = (longest.len() / 2).clamp(1, 64);
            longest.drain(..count);
            self.dropped += count;
        }
    }

    fn dequeue(&mut self) -> Option<(usize, usize)> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let flow = *list.front()?;
            if self.credits[flow] <= 0 {
                self.credits[flow] += self.quantum;
                list.pop_front();
                self.old.push_back(flow);
                continue;
            }
            if let Some(len) = self.queues[flow].pop_front() {
                self.credits[flow] -= i64::try_from(len).unwrap();
                return Some((flow, len));
            }
            list.pop_front();
            if from_new {
                self.old.push_back(flow);
            }
        }
    }
}

/// When and what: five flows of their own sizes and paces, together 1.24 times the rate for a
/// second.
fn load() -> Vec<(u64, usize, usize)> {
    let flows = [(400, 3), (1500, 2), (1000, 4), (64, 2), (700, 9)];
    let mut load: Vec<_> = (0..5)
        .flat_map(|flow| {
            let (len, gap) = flows[flow];
            (0..1000 / gap).map(move |n| (n * gap * MS + u64::try_from(flow).unwrap(), flow, len))
        })
        .collect();
    load.sort_unstable();
    load
}

fn expected(load: &[(u64, usize, usize)], quantum: i64, limit: usize) -> (Vec<(u64, u32)>, usize) {
    let mut state = Reference {
        quantum,
        limit,
        queues: vec![VecDeque::new(); 5],
        credits: vec![0; 5],
        new: VecDeque::new(),
        old: VecDeque::new(),
        dropped: 0,
    };
    let (mut out, mut free_at, mut pending) = (Vec::new(), 0, load.iter().peekable());
    loop {
        // An end of transmission comes before an arrival of the same time.
        while let Some((_, flow, len)) = pending.next_if(|next| next.0 < free_at) {
            state.enqueue(*flow, *len);
            state.overflow();
        }
        if let Some((flow, len)) = state.dequeue() {
            free_at += u64::try_from(len).unwrap() * 1000;
            out.push((free_at, u32::try_from(flow).unwrap()));
            continue;
        }
        let Some((at, flow, len)) = pending.next() else { return (out, state.dropped) };
        state.enqueue(*flow, *len);
        free_at = *at;
    }
}

#[test]
fn turns_and_overflow_are_those_of_the_rfc() {
    for (quantum, limit) in [(1514, 10_000), (300, 10_000), (1514, 40)] {
        let load = load();
        let mut net = Net::new(pair(1, limited(limit, QueueDiscipline::FqCodel(queues(quantum)))));
        for (at, flow, len) in &load {
            send(&mut net, *at, u16::try_from(*flow).unwrap(), *len);
        }
        net.finish();
        let limit = usize::try_from(limit).unwrap();
        let (out, dropped) = expected(&load, i64::from(quantum), limit);
        assert_eq!(net.arrivals(), out, "quantum {quantum}, limit {limit}");
        let dropped = u64::try_from(dropped).unwrap();
        assert_eq!(net.lane(0).dropped[DropReason::QueueFull], dropped);
        assert_eq!(dropped > 0, limit == 40);
        net.check_conservation();
    }
}

#[test]
fn codel_works_in_each_flow_and_leaves_a_sparse_one_alone() {
    let codel = FlowQueues::default();
    let mut net = Net::new(pair(1, limited(10_240, QueueDiscipline::FqCodel(codel))));
    for n in 0..4000u64 {
        send(&mut net, n * MS / 2, 0, 1000);
        if n % 40 == 7 {
            send(&mut net, n * MS / 2, 1, 100);
        }
    }
    net.finish();
    let arrivals = net.arrivals();
    let sparse: Vec<u64> = arrivals.iter().filter(|a| a.1 == 1).map(|a| a.0).collect();
    assert_eq!(sparse.len(), 100, "the sparse flow loses nothing");
    // It waits for the packet on the line, 1 ms, and at most for one that came with it.
    for (n, at) in sparse.iter().enumerate() {
        let sent = (u64::try_from(n).unwrap() * 40 + 7) * MS / 2;
        assert!(at - sent <= MS + 100_000, "packet {n} took {} ns", at - sent);
    }
    assert!(net.lane(0).dropped[DropReason::Aqm] > 10, "{:?}", net.lane(0));
}

#[test]
fn two_backlogged_flows_get_half_each_whatever_they_send() {
    let mut net = Net::new(pair(1, limited(10_000, QueueDiscipline::FqCodel(queues(1514)))));
    // 1500 and 300 bytes: 2 Mbyte/s and 1.2 Mbyte/s offered where 1 Mbyte/s passes.
    for n in 0..4000u64 {
        if n % 3 == 0 {
            send(&mut net, n * MS / 4, 0, 1500);
        }
        send(&mut net, n * MS / 4, 1, 300);
    }
    net.run_until(1000 * MS);
    let bytes = |flow: u32, len: usize| {
        net.arrivals().iter().filter(|arrival| arrival.1 == flow).count() * len
    };
    let (large, small) = (bytes(0, 1500), bytes(1, 300));
    assert!(large.abs_diff(small) <= 2 * 1514, "{large} and {small} bytes");
    assert!(large + small > 995_000, "the line is never idle: {}", large + small);
}

#[test]
fn hosts_share_before_their_flows_do() {
    // Host 1 has one flow, host 2 has four.
    let fair = |by| QueueDiscipline::Fair(HostFairParameters { by, queues: queues(1514) });
    let share = |discipline| {
        let mut net = Net::new(pair(1, limited(100_000, discipline)));
        for n in 0..1000u64 {
            for flow in 0..5u16 {
                let host = if flow == 0 { "10.9.0.1" } else { "10.9.0.2" };
                let from = SocketAddr::new(host.parse().unwrap(), 1000 + flow);
                send_from(&mut net, n * MS, from, u32::from(flow), 1000);
            }
        }
        net.run_until(1000 * MS);
        [0, 1, 2, 3, 4].map(|flow| net.tags().iter().filter(|tag| **tag == flow).count())
    };
    let close = |shares: [usize; 5], expected: [usize; 5]| {
        let near = shares.iter().zip(expected).all(|(share, of)| share.abs_diff(of) <= 3);
        assert!(near, "{shares:?} instead of {expected:?}");
    };
    close(share(fair(FairBy::Source)), [500, 125, 125, 125, 125]);
    // All of them go to one host.
    close(share(fair(FairBy::Destination)), [200; 5]);
    close(share(QueueDiscipline::FqCodel(queues(1514))), [200; 5]);
}

#[test]
fn another_discipline_keeps_the_packets_that_wait() {
    let turns = [
        QueueDiscipline::FqCodel(queues(1514)),
        QueueDiscipline::DropTail,
        QueueDiscipline::Fair(HostFairParameters { by: FairBy::Source, queues: queues(1514) }),
        QueueDiscipline::Pie(windtunnel_model::profile::PieParameters::default()),
        QueueDiscipline::Red(windtunnel_model::profile::RedParameters::default()),
    ];
    let mut net = Net::new(pair(1, limited(100, QueueDiscipline::DropHead)));
    for flow in 0..20u16 {
        send(&mut net, 0, flow % 3, 1000);
    }
    for discipline in turns {
        let patch = LinkPatch { discipline: Some(discipline), ..LinkPatch::default() };
        net.patch(0, up(0), patch);
        assert_eq!((net.lane(0).queue_packets, net.lane(0).queue_bytes), (19, 19_000));
        net.check_conservation();
    }
    net.finish();
    assert_eq!(net.tags(), (0..20u32).map(|n| n % 3).collect::<Vec<_>>(), "in order of arrival");
    assert_eq!(net.lane(0).dropped.total(), 0);
}
