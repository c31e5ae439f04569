use std::net::IpAddr;

use super::{pairs, payload};
use crate::icmp::{
    self, IcmpErrorKind, IcmpErrorReply, echo_reply_in_place, may_send_error, write_error,
};
use crate::packet::ParsedPacket;
use crate::{build, checksum, tcp, vnet};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn error(kind: IcmpErrorKind, source: &str, original: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0xaa; 1294];
    let reply = IcmpErrorReply { kind, source: source.parse().unwrap(), mac: MAC };
    let length = write_error(&reply, original, &mut out)?;
    out.truncate(length);
    Some(out)
}

#[test]
fn a_literal_time_exceeded_is_exact() {
    let [(from, to), _] = pairs();
    let original = build::udp(from, to, b"");
    let frame = error(IcmpErrorKind::TimeExceeded, "10.0.0.9", &original).unwrap();
    let head = [
        2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 9, 0x08, 0x00, // Ethernet
        0x45, 0xc0, 0, 56, 0, 0, 0x40, 0, 64, 1, 0x25, 0xfc, 10, 0, 0, 9, 10, 0, 0, 1, // IP
        11, 0, 0x09, 0x1c, 0, 0, 0, 0, // ICMP
    ];
    assert_eq!(frame[..42], head);
    assert_eq!(frame[42..], original[14..]);
    assert!(checksum::verify(&frame));
}

#[test]
fn types_and_codes_are_those_of_the_rfcs() {
    let cases = [
        (IcmpErrorKind::TimeExceeded, [11, 0], [3, 0]),
        (IcmpErrorKind::NetUnreachable, [3, 0], [1, 0]),
        (IcmpErrorKind::HostUnreachable, [3, 1], [1, 3]),
        (IcmpErrorKind::PortUnreachable, [3, 3], [1, 4]),
        (IcmpErrorKind::AdminProhibited, [3, 13], [1, 1]),
        (IcmpErrorKind::TooBig { mtu: 1400 }, [3, 4], [2, 0]),
    ];
    let [(from, to), (from6, to6)] = pairs();
    for (kind, v4, v6) in cases {
        let frame = error(kind, "10.0.0.9", &build::udp(from, to, b"x")).unwrap();
        assert_eq!(frame[34..36], v4);
        let frame6 = error(kind, "fd00::9", &build::udp(from6, to6, b"x")).unwrap();
        assert_eq!(frame6[54..56], v6);
        assert!(checksum::verify(&frame) && checksum::verify(&frame6));
        let info = ParsedPacket::parse(&frame6).unwrap().info;
        assert_eq!((info.destination, info.ttl), (from6.ip(), 64));
        if matches!(kind, IcmpErrorKind::TooBig { .. }) {
            assert_eq!(frame[38..42], [0, 0, 0x05, 0x78]);
            assert_eq!(frame6[58..62], [0, 0, 0x05, 0x78]);
        }
    }
}

#[test]
fn long_packets_are_quoted_up_to_the_limit_of_their_version() {
    let [(from, to), (from6, to6)] = pairs();
    let original = build::udp(from, to, &payload(3000));
    let frame = error(IcmpErrorKind::PortUnreachable, "10.0.0.9", &original).unwrap();
    assert_eq!(frame.len(), 14 + 576);
    assert_eq!(frame[42..], original[14..14 + 548]);
    let original = build::udp(from6, to6, &payload(3000));
    let frame = error(IcmpErrorKind::PortUnreachable, "fd00::9", &original).unwrap();
    assert_eq!(frame.len(), 14 + 1280);
    assert_eq!(frame[62..], original[14..14 + 1232]);
}

#[test]
fn an_error_needs_a_packet_room_and_a_source_of_its_version() {
    let [(from, to), _] = pairs();
    let original = build::udp(from, to, b"");
    assert_eq!(error(IcmpErrorKind::TimeExceeded, "fd00::9", &original), None);
    assert_eq!(error(IcmpErrorKind::TimeExceeded, "10.0.0.9", &[0; 60]), None);
    let reply = IcmpErrorReply { kind: IcmpErrorKind::TimeExceeded, source: from.ip(), mac: MAC };
    assert_eq!(write_error(&reply, &original, &mut [0; 69]), None);
    assert_eq!(write_error(&reply, &original, &mut [0; 70]), Some(70));
}

fn may(frame: &[u8]) -> bool {
    may_send_error(&ParsedPacket::parse(frame).unwrap())
}

#[test]
fn no_error_answers_an_error_but_one_answers_ping() {
    for ((from, to), source) in pairs().into_iter().zip(["10.0.0.9", "fd00::9"]) {
        let ping = build::echo_request(from.ip(), to.ip(), 1, 1, b"");
        assert!(may(&ping) && may(&build::udp(from, to, b"")));
        for kind in [
            IcmpErrorKind::TimeExceeded,
            IcmpErrorKind::PortUnreachable,
            IcmpErrorKind::TooBig { mtu: 1280 },
        ] {
            assert!(!may(&error(kind, source, &ping).unwrap()));
        }
        // A redirect, and an ICMP message without even a type.
        let (protocol, redirect) = if from.is_ipv4() { (1, 5) } else { (58, 137) };
        assert!(!may(&build::ip(from.ip(), to.ip(), protocol, &[redirect; 8])));
        assert!(!may(&build::ip(from.ip(), to.ip(), protocol, &[])));
    }
}

#[test]
fn no_error_goes_to_or_about_a_group() {
    let [(from, to), (from6, to6)] = pairs();
    for source in ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"] {
        let source: IpAddr = source.parse().unwrap();
        assert!(!may(&build::ip(source, to.ip(), 17, &[0; 8])), "{source}");
    }
    for source in ["::", "::1", "ff02::1"] {
        let source: IpAddr = source.parse().unwrap();
        assert!(!may(&build::ip(source, to6.ip(), 17, &[0; 8])), "{source}");
    }
    assert!(!may(&build::udp(from, "224.0.0.251:5353".parse().unwrap(), b"")));
    assert!(!may(&build::udp(from6, "[ff02::fb]:5353".parse().unwrap(), b"")));
    let mut frame = build::udp(from, to, b"");
    frame[..6].fill(0xff);
    assert!(!may(&frame));
}

#[test]
fn an_error_is_about_the_first_fragment_only() {
    let [(from, to), (from6, to6)] = pairs();
    let mut frame = build::udp(from, to, b"");
    frame[20] = 0x20;
    assert!(may(&frame));
    frame[21] = 1;
    assert!(!may(&frame));
    let frame = build::udp(from6, to6, b"");
    assert!(may(&build::with_extension(frame.clone(), 44, &[0, 0, 0, 1, 0, 0, 0, 7])));
    assert!(!may(&build::with_extension(frame, 44, &[0, 0, 0, 8, 0, 0, 0, 7])));
}

#[test]
fn a_literal_echo_request_becomes_its_reply() {
    let [(from, to), _] = pairs();
    let mut frame = build::echo_request(from.ip(), to.ip(), 1, 2, b"ab");
    assert_eq!(frame[34..], [8, 0, 0x96, 0x9a, 0, 1, 0, 2, b'a', b'b']);
    let mut header =
        vnet::VirtioNetHeader { flags: vnet::DATA_VALID, ..vnet::VirtioNetHeader::default() };
    assert!(echo_reply_in_place(&mut frame, &mut header));
    let expected = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, // Ethernet
        0x45, 0, 0, 30, 0x12, 0x34, 0, 0, 64, 1, 0x54, 0xa9, 10, 0, 0, 2, 10, 0, 0, 1, // IP
        0, 0, 0x9e, 0x9a, 0, 1, 0, 2, b'a', b'b', // ICMP
    ];
    assert_eq!(frame, expected);
    assert_eq!(header, vnet::VirtioNetHeader::default());
}

#[test]
fn replies_swap_addresses_and_verify_in_both_versions() {
    for (from, to) in pairs() {
        let mut frame =
            build::with_ttl(build::echo_request(from.ip(), to.ip(), 7, 8, &payload(1400)), 3);
        assert!(echo_reply_in_place(&mut frame, &mut vnet::VirtioNetHeader::default()));
        let packet = ParsedPacket::parse(&frame).unwrap();
        let info = packet.info;
        assert_eq!((info.source, info.destination, info.ttl), (to.ip(), from.ip(), 64));
        let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
        assert_eq!((view.identifier(), view.sequence(), view.code()), (7, 8, 0));
        assert_eq!(view.body(), payload(1400));
        assert!(checksum::verify(&frame));
        assert!(!echo_reply_in_place(&mut frame, &mut vnet::VirtioNetHeader::default()), "a reply");
    }
}

#[test]
fn damaged_divided_and_foreign_packets_get_no_reply() {
    let [(from, to), _] = pairs();
    let ping = build::echo_request(from.ip(), to.ip(), 7, 8, b"abc");
    let refused = |frame: &[u8]| {
        let mut copy = frame.to_vec();
        !echo_reply_in_place(&mut copy, &mut vnet::VirtioNetHeader::default()) && copy == frame
    };
    let mut damaged = ping.clone();
    damaged[43] ^= 1;
    assert!(refused(&damaged));
    let mut fragment = ping.clone();
    fragment[20] = 0x20;
    build::refresh(&mut fragment);
    assert!(refused(&fragment));
    assert!(refused(&build::tcp(from, to, 1, tcp::SYN, b"")));
    assert!(refused(&build::echo_request(from.ip(), [224, 0, 0, 1].into(), 7, 8, b"")));
    assert!(refused(&ping[..41]));
}
