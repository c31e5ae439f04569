//! Goal: TCP between two namespaces passes the packet socket as GSO packets, unharmed. Method:
//! two children in namespaces of their own, a veth pair from each to this one, and this process
//! as the cable: what comes in from one device goes out of the other, as it came.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::packet::{PacketReceiveRing, PacketSender, PacketSocket, TransmitFrame};
use windtunnel_sys::poll::{PollFd, PollFlags, wait};
use windtunnel_sys::process::{self, Pid, ProcessExitStatus};
use windtunnel_sys::{netdev, unix};

use crate::{Case, Outcome, ip};

pub(crate) const CASES: &[Case] = &[Case {
    name: "tcp_passes_in_gso_packets_between_two_namespaces",
    flags: NamespaceFlags::NET,
    body: relay,
}];

const BYTES: usize = 64 << 20;

/// What the cable has seen.
#[derive(Debug, Default)]
struct Seen {
    frames: u64,
    gso_frames: u64,
    frame_bytes_max: usize,
}

/// A namespace at one end of the cable: its process, and the socket to talk to it.
struct End {
    pid: Pid,
    pidfd: OwnedFd,
    control: OwnedFd,
}

fn relay() -> Outcome {
    ip("link show lo")?;
    let server = End::fork(|control| {
        let listener = TcpListener::bind("10.9.0.1:5001").unwrap();
        unix::send(control, b"ready", &[]).unwrap();
        receive_all(listener.accept().unwrap().0)
    });
    let client = End::fork(|_| send_all(TcpStream::connect("10.9.0.1:5001").unwrap()));
    connect(&server, "left", "10.9.0.1/24")?;
    connect(&client, "right", "10.9.0.2/24")?;
    let mut socket = PacketSocket::open(480).unwrap();
    socket.set_send_buffer(4 << 20).unwrap();
    unix::receive(&server.control, &mut [0; 8]).unwrap();
    unix::send(&client.control, b"go", &[]).unwrap();
    let seen = carry(&mut socket, &client.pidfd);
    for end in [&client, &server] {
        assert_eq!(
            process::wait_pidfd(&end.pidfd, false).unwrap(),
            Some(ProcessExitStatus::Exited(0))
        );
    }
    assert_eq!(socket.statistics().unwrap().drops, 0);
    assert!(seen.frame_bytes_max > 1514, "{seen:?}");
    assert!(seen.gso_frames > 0, "{seen:?}");
    Ok(())
}

/// Carries frames between the two devices until the process of `until` is gone.
fn carry(socket: &mut PacketSocket, until: &OwnedFd) -> Seen {
    let ends = ["left", "right"].map(|name| netdev::index_of(name).unwrap());
    let mut seen = Seen::default();
    loop {
        let mut watched = [PollFd::new(socket, PollFlags::IN), PollFd::new(until, PollFlags::IN)];
        let ready = wait(&mut watched, Some(Duration::from_secs(20))).unwrap();
        assert_ne!(ready, 0, "nothing moves any more: {seen:?}");
        let over = !watched[1].revents().is_empty();
        let (ring, mut sender) = socket.split();
        carry_arrived(ring, &mut sender, ends, &mut seen);
        if over {
            return seen;
        }
    }
}

fn carry_arrived(
    ring: &PacketReceiveRing,
    sender: &mut PacketSender<'_>,
    ends: [u32; 2],
    seen: &mut Seen,
) {
    while let Some(slot) = ring.next() {
        assert!(!slot.truncated());
        seen.frames += 1;
        seen.gso_frames += u64::from(slot.vnet_header()[1] != 0);
        seen.frame_bytes_max = seen.frame_bytes_max.max(slot.frame().len());
        let interface = if slot.interface() == ends[0] { ends[1] } else { ends[0] };
        let (vnet_header, frame) = (slot.vnet_header(), slot.frame());
        send_one(sender, TransmitFrame { interface, vnet_header, frame });
    }
}

/// Sends a frame, or loses it where there is no room.
fn send_one(sender: &mut PacketSender<'_>, outgoing: TransmitFrame<'_>) {
    match sender.send(&[outgoing]) {
        Ok(sent) => assert_eq!(sent, 1),
        // A cable may lose: TCP repeats. (No room, or a device that is down.)
        Err(error) => {
            let errno = error.raw_os_error();
            assert!(matches!(errno, Some(libc::EAGAIN | libc::ENOBUFS | libc::ENETDOWN)));
        }
    }
}

/// Makes the veth pair of an end and reports to it that its device is there.
fn connect(end: &End, device: &str, address: &str) -> Outcome {
    let pid = end.pid.as_raw_nonzero();
    ip(&format!("link add {device} type veth peer name eth0 netns {pid}"))?;
    ip(&format!("link set {device} up"))?;
    unix::send(&end.control, address.as_bytes(), &[]).unwrap();
    Ok(())
}

impl End {
    /// Forks an end, which configures its device when given its address, and then runs `body`.
    fn fork(body: impl FnOnce(&OwnedFd) -> bool) -> End {
        let (control, theirs) = unix::seqpacket_pair().unwrap();
        match namespace::fork_into(NamespaceFlags::NET).unwrap() {
            NamespaceFork::Parent { pid, pidfd } => End { pid, pidfd, control },
            NamespaceFork::Child => {
                drop(control);
                process::set_parent_death_signal(Some(process::Signal::KILL)).unwrap();
                let mut buffer = [0; 32];
                let length = unix::receive(&theirs, &mut buffer).unwrap().bytes;
                let address = std::str::from_utf8(&buffer[..length]).unwrap();
                ip(&format!("address add {address} dev eth0")).unwrap();
                ip("link set eth0 up").unwrap();
                if address == "10.9.0.2/24" {
                    unix::receive(&theirs, &mut buffer).unwrap();
                }
                process::exit_now(i32::from(!body(&theirs)))
            }
        }
    }
}

/// The byte at each place: a period that divides no segment size.
fn pattern() -> Vec<u8> {
    (0..251).cycle().take(251 * 256).collect()
}

fn send_all(mut stream: TcpStream) -> bool {
    let pattern = pattern();
    let mut left = BYTES;
    while left > 0 {
        let part = left.min(pattern.len());
        stream.write_all(&pattern[..part]).unwrap();
        left -= part;
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap() == 2
}

fn receive_all(mut stream: TcpStream) -> bool {
    let (mut buffer, mut total) = (vec![0; 1 << 16], 0);
    loop {
        let read = stream.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        let right = buffer[..read].iter().enumerate();
        assert!(right.into_iter().all(|(at, byte)| usize::from(*byte) == (total + at) % 251));
        total += read;
    }
    stream.write_all(b"ok").unwrap();
    total == BYTES
}
