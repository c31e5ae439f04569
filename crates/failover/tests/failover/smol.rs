//! The same with smoltcp at all ends: a TCP that shares nothing with this crate or its tests.

use std::cell::Cell;
use std::collections::VecDeque;

use smoltcp::iface::{Config as InterfaceConfig, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};
use windtunnel_failover::{
    ConnectionReplicator, ReplicaId, ReplicationConfig, ReplicationEventKind, TransmitDestination,
};
use windtunnel_model::random::{RandomSequence, RandomStream};
use windtunnel_model::{Span, Time};
use windtunnel_wire::vnet;

use crate::programs::pattern;
use crate::seg::cut;

const CLIENT: Ipv4Address = Ipv4Address::new(10, 0, 0, 7);
const SERVICE: Ipv4Address = Ipv4Address::new(10, 1, 0, 80);
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];

thread_local! {
    /// Milliseconds, for smoltcp's timestamps, whose source has no argument.
    static CLOCK: Cell<u32> = const { Cell::new(0) };
}

#[derive(Default)]
struct Wire {
    inbox: VecDeque<Vec<u8>>,
    outbox: Vec<Vec<u8>>,
}

struct Received(Vec<u8>);
struct Sending<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut packet = vec![0; length];
        let result = f(&mut packet);
        self.0.push(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        let packet = self.inbox.pop_front()?;
        Some((Received(packet), Sending(&mut self.outbox)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.outbox))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities.checksum = ChecksumCapabilities::default();
        capabilities
    }
}

struct Stack {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
}

impl Stack {
    fn new(address: Ipv4Address, seed: u64, room: usize) -> Self {
        let mut wire = Wire::default();
        let mut config = InterfaceConfig::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|all| all.push(IpCidr::new(address.into(), 8)).unwrap());
        interface.routes_mut().add_default_ipv4_route(Ipv4Address::new(10, 9, 9, 9)).unwrap();
        let buffer = || SocketBuffer::new(vec![0; room]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_tsval_generator(Some(|| CLOCK.with(Cell::get)));
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Self { wire, interface, sockets, handle }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    fn poll(&mut self, now: Time) -> Vec<Vec<u8>> {
        let now = Instant::from_micros((now.as_nanos() / 1_000) as i64);
        self.interface.poll(now, &mut self.wire, &mut self.sockets);
        std::mem::take(&mut self.wire.outbox)
    }
}

/// Where a packet is on its way to.
#[derive(Clone, Copy)]
enum Hop {
    Client,
    Replica(usize),
    FromClient,
    FromReplica(usize),
}

struct Lab {
    now: Time,
    machine: ConnectionReplicator,
    client: Stack,
    replicas: Vec<Stack>,
    is_cut: Vec<bool>,
    queue: VecDeque<(Time, Hop, Vec<u8>)>,
    draws: RandomSequence,
    loss: u64,
    packets: u64,
}

const STEP: Span = Span::from_millis(1);

impl Lab {
    fn new(seed: u64, loss: u64) -> Self {
        // Its segments with timestamps are else longer than its MTU.
        let mut config = ReplicationConfig { mss_max: 1_400, ..ReplicationConfig::default() };
        // smoltcp answers segments out of its window once a second.
        config.detection.probe_interval = Span::from_millis(1_100);
        config.detection.probes = 2;
        config.detection.stall = Span::from_secs(6);
        config.detection.answer = Span::from_secs(2);
        let mut lab = Self {
            now: Time::ZERO,
            machine: ConnectionReplicator::new(config),
            client: Stack::new(CLIENT, seed, 20_000),
            replicas: (0..2).map(|index| Stack::new(SERVICE, seed + 100 + index, 16_000)).collect(),
            is_cut: vec![false; 2],
            queue: VecDeque::new(),
            draws: RandomSequence::new(RandomStream::named(seed, &["failover", "smoltcp"])),
            loss,
            packets: 0,
        };
        for replica in &mut lab.replicas {
            replica.socket().listen(80).unwrap();
        }
        let Stack { interface, sockets, handle, .. } = &mut lab.client;
        let socket = sockets.get_mut::<Socket<'_>>(*handle);
        socket.connect(interface.context(), (IpAddress::from(SERVICE), 80), 40_000).unwrap();
        lab
    }

    /// All packets take one way in 2 ms.
    fn carry(&mut self, hop: Hop, packet: Vec<u8>) {
        if self.draws.below(1_000_000) >= self.loss {
            self.queue.push_back((self.now + STEP + STEP, hop, packet));
        }
    }

    fn step(&mut self, death: Option<(u64, usize)>) {
        self.now += STEP;
        CLOCK.with(|clock| clock.set((self.now.as_nanos() / 1_000_000) as u32));
        while self.queue.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, hop, packet) = self.queue.pop_front().unwrap();
            match hop {
                Hop::Client => self.client.wire.inbox.push_back(packet),
                Hop::Replica(index) if !self.is_cut[index] => {
                    self.replicas[index].wire.inbox.push_back(packet);
                }
                Hop::FromReplica(index) if self.is_cut[index] => {}
                Hop::Replica(_) => {}
                Hop::FromClient | Hop::FromReplica(_) => self.redirect(hop, &packet, death),
            }
        }
        self.machine.handle_timeout(self.now);
        self.forward();
        for packet in self.client.poll(self.now) {
            self.carry(Hop::FromClient, packet);
        }
        for index in 0..self.replicas.len() {
            for packet in self.replicas[index].poll(self.now) {
                self.carry(Hop::FromReplica(index), packet);
            }
        }
    }

    fn redirect(&mut self, hop: Hop, packet: &[u8], death: Option<(u64, usize)>) {
        self.packets += 1;
        if let Some((at, index)) = death
            && at == self.packets
        {
            self.is_cut[index] = true;
        }
        let frame = [&ETHERNET[..], packet].concat();
        let header = vnet::VirtioNetHeader::default();
        let taken = match hop {
            Hop::FromReplica(index) => {
                let id = ReplicaId(index as u32);
                self.machine.handle_replica(self.now, id, &header, &frame)
            }
            _ => {
                let order = [ReplicaId(0), ReplicaId(1)];
                self.machine.handle_client(self.now, &header, &frame, &order)
            }
        };
        taken.unwrap();
        self.forward();
    }

    fn forward(&mut self) {
        while let Some(transmit) = self.machine.poll_transmit() {
            for frame in cut(&transmit.vnet, &transmit.frame) {
                let hop = match transmit.to {
                    TransmitDestination::Client => Hop::Client,
                    TransmitDestination::Replica(id) => Hop::Replica(id.0 as usize),
                };
                self.carry(hop, frame[14..].to_vec());
            }
        }
    }

    /// Sends `bytes` to the servers, which send everything back; what the client reads.
    fn echo(&mut self, bytes: &[u8], death: Option<(u64, usize)>) -> Vec<u8> {
        let (mut written, mut read) = (0, Vec::new());
        for _ in 0..60_000 {
            self.step(death);
            for replica in &mut self.replicas {
                let socket = replica.socket();
                while socket.can_recv() && socket.can_send() {
                    let room = socket.send_capacity() - socket.send_queue();
                    let piece = socket.recv(|data| {
                        let length = data.len().min(room);
                        (length, data[..length].to_vec())
                    });
                    let piece = piece.unwrap();
                    assert_eq!(socket.send_slice(&piece), Ok(piece.len()));
                }
                if !socket.may_recv() && socket.may_send() && !socket.can_recv() {
                    socket.close();
                }
            }
            let socket = self.client.socket();
            assert_ne!((socket.state(), written > 0), (State::Closed, true), "reset");
            if socket.can_send() && written < bytes.len() {
                written += socket.send_slice(&bytes[written..]).unwrap();
            }
            while socket.can_recv() {
                read.extend(socket.recv(|data| (data.len(), data.to_vec())).unwrap());
            }
            // Not before: smoltcp does not send data again in LAST-ACK.
            if read.len() >= bytes.len() && socket.state() == State::Established {
                socket.close();
            }
            if read.len() >= bytes.len() && !socket.may_recv() {
                return read;
            }
        }
        panic!(
            "stuck after {written} written, {} read: {}, {}, {:?} {:?}",
            read.len(),
            self.client.socket().state(),
            self.replicas[0].socket().state(),
            self.machine.poll_event(),
            self.machine.counters(),
        );
    }
}

#[test]
fn smoltcp_at_all_ends_gets_its_stream_back_over_lossy_links() {
    for seed in 0..40 {
        let bytes = pattern(30_000);
        let mut lab = Lab::new(seed, [0, 10_000][seed as usize % 2]);
        assert!(lab.echo(&bytes, None) == bytes, "seed {seed}");
        let opened = lab.machine.poll_event().unwrap().what;
        assert!(
            matches!(opened, ReplicationEventKind::Opened { replicas: 2, .. }),
            "seed {seed}: {opened:?}"
        );
    }
}

#[test]
fn smoltcp_at_all_ends_survives_a_host_that_is_cut_off_at_any_packet() {
    let bytes = pattern(12_000);
    let mut lab = Lab::new(1, 0);
    assert!(lab.echo(&bytes, None) == bytes);
    for packet in 1..=lab.packets {
        for replica in 0..2 {
            let mut lab = Lab::new(1, 0);
            assert!(lab.echo(&bytes, Some((packet, replica))) == bytes, "packet {packet}");
        }
    }
}
