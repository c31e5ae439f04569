//! The packet socket on the loopback device of a fresh network namespace, where every frame sent
//! comes back in once.

use std::net::{Ipv4Addr, UdpSocket};

use windtunnel_sys::namespace::NamespaceFlags;
use windtunnel_sys::packet::{
    PacketSocket, PacketSocketStatistics, SLOTS_MIN, TransmitFrame, VNET_HEADER_BYTES,
};
use windtunnel_sys::poll::{PollFd, PollFlags, wait};
use windtunnel_sys::{capability, clock};

use crate::{Case, Outcome, ip};

pub(crate) const CASES: &[Case] = &[
    Case { name: "frames_arrive_with_device_and_time", flags: NamespaceFlags::NET, body: arrival },
    Case { name: "several_slots_are_held_at_once", flags: NamespaceFlags::NET, body: holding },
    Case { name: "a_full_ring_drops_and_counts", flags: NamespaceFlags::NET, body: counting },
    Case {
        name: "a_leaked_slot_is_never_given_out_again",
        flags: NamespaceFlags::NET,
        body: leaking,
    },
    Case { name: "a_ring_comes_round_many_times", flags: NamespaceFlags::NET, body: coming_round },
    Case { name: "sent_frames_arrive_in_order", flags: NamespaceFlags::NET, body: sending },
    Case { name: "a_frame_for_no_device_is_an_error", flags: NamespaceFlags::NET, body: no_device },
    Case {
        name: "sending_stops_at_the_first_bad_frame",
        flags: NamespaceFlags::NET,
        body: partial,
    },
    Case { name: "the_send_buffer_grows", flags: NamespaceFlags::NET, body: send_buffer },
    Case {
        name: "without_the_right_there_is_no_socket",
        flags: NamespaceFlags::NET,
        body: no_right,
    },
];

/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;

/// Two UDP sockets that see each other over a loopback device that is up.
fn talkers() -> Result<(UdpSocket, UdpSocket), String> {
    ip("link set lo up")?;
    let open = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (left, right) = (open(), open());
    left.connect(right.local_addr().unwrap()).unwrap();
    right.connect(left.local_addr().unwrap()).unwrap();
    Ok((left, right))
}

/// Sends a datagram and waits until it has been received, thus passed the packet socket.
fn talk(talkers: &(UdpSocket, UdpSocket), text: &[u8]) {
    talkers.0.send(text).unwrap();
    assert_eq!(talkers.1.recv(&mut [0; 2048]).unwrap(), text.len());
}

fn arrival() -> Outcome {
    let talkers = talkers()?;
    let socket = PacketSocket::open(SLOTS_MIN + 1).unwrap();
    assert_eq!(socket.ring().slots(), 2 * SLOTS_MIN);
    assert!(socket.ring().next().is_none());
    let before = clock::realtime_ns();
    talk(&talkers, b"hello");
    let mut watched = [PollFd::new(&socket, PollFlags::IN)];
    assert_eq!(wait(&mut watched, None).unwrap(), 1);
    let slot = socket.ring().next().unwrap();
    assert_eq!(slot.interface(), 1);
    assert_eq!(&slot.frame()[HEADERS..], b"hello");
    assert_eq!(slot.frame().len(), HEADERS + 5);
    assert_eq!((slot.truncated(), slot.original_bytes(), slot.vlan_tag()), (false, 47, None));
    assert!((before..=clock::realtime_ns()).contains(&slot.arrival_ns()));
    slot.release();
    assert!(socket.ring().next().is_none());
    assert_eq!(socket.statistics().unwrap(), PacketSocketStatistics { packets: 1, drops: 0 });
    assert_eq!(socket.statistics().unwrap(), PacketSocketStatistics::default());
    Ok(())
}

fn holding() -> Outcome {
    let talkers = talkers()?;
    let socket = PacketSocket::open(SLOTS_MIN).unwrap();
    for text in [b"one", b"two", b"six"] {
        talk(&talkers, text);
    }
    let mut slots: Vec<_> = std::iter::from_fn(|| socket.ring().next()).collect();
    slots[1].bytes_mut()[VNET_HEADER_BYTES + HEADERS..].copy_from_slice(b"TWO");
    slots[2].parts_mut().0.fill(0xff);
    let texts: Vec<_> = slots.iter().map(|slot| &slot.frame()[HEADERS..]).collect();
    assert_eq!(texts, [b"one", b"TWO", b"six"]);
    assert_eq!(slots[2].vnet_header(), &[0xff; VNET_HEADER_BYTES]);
    slots.reverse();
    slots.clear();
    talk(&talkers, b"ten");
    assert_eq!(&socket.ring().next().unwrap().frame()[HEADERS..], b"ten");
    Ok(())
}

fn counting() -> Outcome {
    let talkers = talkers()?;
    let socket = PacketSocket::open(SLOTS_MIN).unwrap();
    (0..20).for_each(|_| talk(&talkers, b"x"));
    assert_eq!(socket.statistics().unwrap(), PacketSocketStatistics { packets: 20, drops: 5 });
    let taken = std::iter::from_fn(|| socket.ring().next()).count();
    assert_eq!(taken, SLOTS_MIN);
    Ok(())
}

fn leaking() -> Outcome {
    let talkers = talkers()?;
    let socket = PacketSocket::open(SLOTS_MIN).unwrap();
    talk(&talkers, b"x");
    std::mem::forget(socket.ring().next().unwrap());
    for _ in 1..SLOTS_MIN {
        talk(&talkers, b"y");
        drop(socket.ring().next().unwrap());
    }
    talk(&talkers, b"z");
    assert!(socket.ring().next().is_none());
    assert_eq!(socket.statistics().unwrap().drops, 1);
    Ok(())
}

fn coming_round() -> Outcome {
    let talkers = talkers()?;
    let socket = PacketSocket::open(3 * SLOTS_MIN).unwrap();
    for number in 0..1000_u32 {
        talk(&talkers, &number.to_be_bytes());
        let slot = socket.ring().next().unwrap();
        assert_eq!(&slot.frame()[HEADERS..], number.to_be_bytes());
    }
    assert_eq!(socket.statistics().unwrap(), PacketSocketStatistics { packets: 1000, drops: 0 });
    Ok(())
}

fn sending() -> Outcome {
    ip("link set lo up")?;
    let mut sender = PacketSocket::open(SLOTS_MIN).unwrap();
    let receiver = PacketSocket::open(5 * SLOTS_MIN).unwrap();
    let frames: Vec<[u8; 60]> = (0..70)
        .map(|number| {
            let mut frame = FRAME;
            frame[59] = number;
            frame
        })
        .collect();
    let outgoing = |frame| TransmitFrame { frame, ..outgoing(1) };
    let batch: Vec<_> = frames.iter().map(|frame| outgoing(frame.as_slice())).collect();
    // More than one call takes: the rest is for the next one.
    assert_eq!(sender.send(&batch).unwrap(), 64);
    assert_eq!(sender.send(&batch[64..]).unwrap(), 6);
    assert_eq!(sender.send(&[]).unwrap(), 0);
    for frame in &frames {
        let mut watched = [PollFd::new(&receiver, PollFlags::IN)];
        assert_eq!(wait(&mut watched, None).unwrap(), 1);
        assert_eq!(receiver.ring().next().unwrap().frame(), frame);
    }
    Ok(())
}

fn no_device() -> Outcome {
    ip("link set lo up")?;
    let mut socket = PacketSocket::open(SLOTS_MIN).unwrap();
    for interface in [77, u32::MAX] {
        let error = socket.send(&[outgoing(interface)]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
    }
    Ok(())
}

fn partial() -> Outcome {
    ip("link set lo up")?;
    let mut socket = PacketSocket::open(SLOTS_MIN).unwrap();
    let batch = [outgoing(1), outgoing(1), outgoing(77), outgoing(1)];
    assert_eq!(socket.send(&batch).unwrap(), 2);
    let error = socket.send(&batch[2..]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
    Ok(())
}

fn send_buffer() -> Outcome {
    let socket = PacketSocket::open(SLOTS_MIN).unwrap();
    assert_eq!(socket.set_send_buffer(100_000).unwrap(), 200_000);
    Ok(())
}

fn no_right() -> Outcome {
    capability::drop_all().unwrap();
    let error = PacketSocket::open(SLOTS_MIN).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    Ok(())
}

/// Something to send out of a device.
fn outgoing(interface: u32) -> TransmitFrame<'static> {
    TransmitFrame { interface, vnet_header: &[0; VNET_HEADER_BYTES], frame: &FRAME }
}

/// A frame that no stack wants: of a local experimental Ethernet type.
const FRAME: [u8; 60] = {
    let mut frame = [0; 60];
    (frame[12], frame[13]) = (0x88, 0xb5);
    frame
};
