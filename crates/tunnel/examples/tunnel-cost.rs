//! Frames a second between two threads over the loopback device: a plain UDP socket, a plain TCP
//! connection, the tunnel plain and sealed, in turns. `bench/tunnel` runs it. Rows of size,
//! carrier, frames/s and Gbit/s, between tabs: median (least to greatest) of the rounds. Then the
//! cost to refuse a stranger's datagrams, and forged ones.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;
use windtunnel_model::Time;
use windtunnel_sys::clock::monotonic_ns;
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_tunnel::{Label, OutgoingFrame, Security, TunnelSettings, UdpTunnel};

const ROUNDS: usize = 5;
const ROUND_NS: u64 = 300_000_000;
const LABEL: Label = Label { port: 1, lane: 2, intended: 3, vnet: [0; 10] };

#[derive(Debug, Clone, Copy)]
enum Carrier {
    Udp,
    Tcp,
    Tunnel(Security),
}

fn main() {
    let sealed = Carrier::Tunnel(Security::Sealed([1; 32]));
    let carriers = [
        ("UDP", Carrier::Udp),
        ("TCP", Carrier::Tcp),
        ("tunnel, plain", Carrier::Tunnel(Security::Plain)),
        ("tunnel, sealed", sealed),
    ];
    // Longer than a UDP datagram carries: UDP has 65 507 instead.
    for size in [64, 1514, 65_549] {
        let mut seen = carriers.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for ((_, carrier), seen) in carriers.iter().zip(&mut seen) {
                seen.push(round(*carrier, size));
            }
        }
        for ((name, _), seen) in carriers.iter().zip(seen) {
            let gbit: Vec<f64> = seen.iter().map(|rate| rate * size as f64 * 8e-9).collect();
            println!("{size}\t{name}\t{}\t{}", spread(seen, 0), spread(gbit, 2));
        }
    }
    println!(
        "a stranger's datagram, ns\t{}",
        spread((0..ROUNDS).map(|_| flood(false)).collect(), 0)
    );
    println!("a forged datagram, ns\t{}", spread((0..ROUNDS).map(|_| flood(true)).collect(), 0));
}

/// Median (least to greatest).
fn spread(mut seen: Vec<f64>, digits: usize) -> String {
    seen.sort_by(f64::total_cmp);
    let (least, most) = (seen[0], seen[seen.len() - 1]);
    format!("{:.digits$} ({least:.digits$} to {most:.digits$})", seen[seen.len() / 2])
}

/// State that both ends share: frames received, and whether it is over.
#[derive(Default)]
struct Shared {
    received: AtomicU64,
    over: AtomicBool,
}

/// Frames a second that arrive.
fn round(carrier: Carrier, size: usize) -> f64 {
    let shared = Shared::default();
    match carrier {
        Carrier::Udp => {
            let [sender, receiver, ..] = sockets();
            receiver.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket option");
            let to = receiver.local_addr().expect("bound");
            let frame = vec![7; size.min(65_507)];
            let receive = || {
                let mut buffer = vec![0; 1 << 16];
                while !shared.over.load(Ordering::Relaxed) {
                    if receiver.recv(&mut buffer).is_ok() {
                        shared.received.fetch_add(1, Ordering::Relaxed);
                    }
                }
            };
            measure(&shared, size, receive, || u64::from(sender.send_to(&frame, to).is_ok()))
        }
        Carrier::Tcp => tcp(&shared, size),
        Carrier::Tunnel(security) => tunnel(&shared, size, security),
    }
}

fn tcp(shared: &Shared, size: usize) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let mut sender = TcpStream::connect(address).expect("it listens");
    let (mut receiver, _) = listener.accept().expect("it has connected");
    receiver.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket option");
    let frame = vec![7; size];
    let receive = || {
        let (mut buffer, mut bytes) = (vec![0; 1 << 18], 0);
        while !shared.over.load(Ordering::Relaxed) {
            bytes += receiver.read(&mut buffer).unwrap_or(0);
            shared.received.store((bytes / size) as u64, Ordering::Relaxed);
        }
    };
    measure(shared, size, receive, || u64::from(sender.write_all(&frame).is_ok()))
}

fn tunnel(shared: &Shared, size: usize, security: Security) -> f64 {
    let [mut sender, mut receiver] = tunnels(security);
    while sender.mtu(1) != Some(65_487) {
        sender.handle_timeout(now());
        receiver.receive(now(), |_| {}).expect("a socket");
        sender.receive(now(), |_| {}).expect("a socket");
    }
    let frame = vec![7; size];
    // The frames sent in one turn of the packet loop.
    let batch = (65_549 / size as u64).min(64);
    let receive = || {
        while !shared.over.load(Ordering::Relaxed) {
            let mut frames = 0;
            if receiver.receive(now(), |_| frames += 1).expect("a socket") == 0 {
                let mut watched = [PollFd::new(&receiver, PollFlags::IN)];
                let _ = poll::wait(&mut watched, Some(Duration::from_millis(50)));
            }
            shared.received.fetch_add(frames, Ordering::Relaxed);
        }
    };
    measure(shared, size, receive, || {
        let at = now();
        for _ in 0..batch {
            sender.push(at, &OutgoingFrame { to: 1, label: LABEL, frame: &frame });
        }
        sender.flush(at).sent
    })
}

/// Lets `send` (which says how many frames it has sent) run against `receive`, with 1 MiB or 256
/// frames under way at the most.
fn measure(
    shared: &Shared,
    size: usize,
    receive: impl FnMut() + Send,
    mut send: impl FnMut() -> u64,
) -> f64 {
    let window = ((1 << 20) / size as u64).min(256);
    thread::scope(|scope| {
        scope.spawn(receive);
        let (mut sent, mut lost, begin) = (0, 0, monotonic_ns());
        let mut moved = (0, begin);
        loop {
            let (at, received) = (monotonic_ns(), shared.received.load(Ordering::Relaxed));
            if at - begin >= ROUND_NS {
                shared.over.store(true, Ordering::Relaxed);
                return received as f64 * 1e9 / (at - begin) as f64;
            }
            if received != moved.0 {
                moved = (received, at);
            } else if at - moved.1 > 10_000_000 {
                lost = sent - received;
            }
            if sent < received + lost + window {
                sent += send();
            } else {
                thread::yield_now();
            }
        }
    })
}

/// Nanoseconds to take in one datagram of 1200 bytes from an address of no peer, or from a peer's
/// with a broken seal; the time of the system call included.
fn flood(forged: bool) -> f64 {
    const DATAGRAMS: u64 = 20_000;
    const AT_ONCE: u64 = 50;
    let [attacker, socket, other] = sockets();
    let address = |socket: &UdpSocket| Some(socket.local_addr().expect("bound"));
    let peer = if forged { address(&attacker) } else { address(&other) };
    let to = address(&socket).expect("bound");
    let mut tunnel = open(socket, 1, vec![peer, None], Security::Sealed([1; 32]));
    let mut datagram = vec![0; 1200];
    datagram[..8].copy_from_slice(&[1, 0x80, 0, 0, 0, 1, 0x04, 0x98]);
    datagram[15] = 7;
    let (mut taken, mut spent) = (0, 0);
    while taken < DATAGRAMS {
        for _ in 0..AT_ONCE {
            attacker.send_to(&datagram, to).expect("loopback");
        }
        let begin = monotonic_ns();
        while tunnel.receive(now(), |_| {}).expect("a socket") > 0 {}
        spent += monotonic_ns() - begin;
        taken += AT_ONCE;
    }
    let refused = tunnel.counters().refused;
    let counted = if forged { refused.forged } else { refused.stranger };
    assert_eq!(counted, DATAGRAMS, "{refused:?}");
    spent as f64 / DATAGRAMS as f64
}

fn tunnels(security: Security) -> [UdpTunnel; 2] {
    let [first, second, _] = sockets();
    let peers = [&first, &second].map(|socket| Some(socket.local_addr().expect("bound"))).to_vec();
    [open(first, 0, peers.clone(), security), open(second, 1, peers, security)]
}

fn open(
    socket: UdpSocket,
    own: u16,
    peers: Vec<Option<SocketAddr>>,
    security: Security,
) -> UdpTunnel {
    UdpTunnel::open(socket, TunnelSettings { run: 7, own, peers, security }).expect("a right setup")
}

/// With as much room as the tunnel asks for.
fn sockets() -> [UdpSocket; 3] {
    [0; 3].map(|_| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20);
        socket
    })
}

fn now() -> Time {
    Time::from_nanos(monotonic_ns())
}
