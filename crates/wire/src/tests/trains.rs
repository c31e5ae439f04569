use proptest::prelude::*;

use super::{endpoints, pairs, payload};
use crate::packet::ParsedPacket;
use crate::segment::{PacketTrain, write_range};
use crate::{build, bytes, checksum, ipv4, tcp, udp, vnet};

/// Writes some packets of a train into a frame of their own.
fn cut(
    frame: &[u8],
    header: &vnet::VirtioNetHeader,
    range: core::ops::Range<u32>,
) -> (Vec<u8>, vnet::VirtioNetHeader) {
    let mut out = vec![0xaa; frame.len()];
    let (length, header) = write_range(frame, header, range, &mut out).unwrap();
    out.truncate(length);
    (out, header)
}

fn segment(frame: &[u8]) -> tcp::TcpSegment<'_> {
    tcp::TcpSegment::parse(ParsedPacket::parse(frame).unwrap().payload()).unwrap()
}

#[test]
fn a_train_is_measured_per_packet() {
    for ((from, to), header_len) in pairs().into_iter().zip([54, 74]) {
        let (frame, header) = build::tcp_train(from, to, 1, tcp::ACK, &payload(3001), 1000);
        let train = PacketTrain::new(&frame, &header);
        assert_eq!((train.count, train.header_len, train.payload_len), (4, header_len, 3001));
        assert_eq!((train.wire_len(0), train.wire_len(3)), (header_len + 1000, header_len + 1));
        assert_eq!(train.wire_len(4), 0);
        assert_eq!(train.wire_len_range(1..4), 3 * header_len + 2001);
        assert_eq!(train.wire_len_total(), 4 * header_len + 3001);
        assert_eq!(train.payload_range(1..3), 1000..3000);
    }
}

#[test]
fn a_plain_packet_is_a_train_of_one_and_copied() {
    let [(from, to), _] = pairs();
    let plain = vnet::VirtioNetHeader::default();
    let mut frame = build::udp(from, to, b"hello");
    frame.extend([0; 13]);
    let train = PacketTrain::new(&frame, &plain);
    assert_eq!((train.count, train.wire_len(0), train.wire_len_total()), (1, 60, 60));
    assert_eq!(cut(&frame, &plain, 0..1), (frame.clone(), plain));
    let arp = [0xff; 42];
    assert_eq!(PacketTrain::new(&arp, &plain).wire_len_total(), 42);
    assert_eq!(cut(&arp, &plain, 0..1), (arp.to_vec(), plain));
}

#[test]
fn a_gso_type_that_contradicts_the_frame_makes_a_plain_packet() {
    let [(from, to), _] = pairs();
    let (frame, header) = build::tcp_train(from, to, 1, tcp::ACK, &payload(3000), 1000);
    for (gso_type, gso_size, csum_start) in [
        (vnet::GSO_TCPV6, 1000, 34),
        (vnet::GSO_UDP_L4, 1000, 34),
        (vnet::GSO_UDP, 1000, 34),
        (vnet::GSO_TCPV4, 0, 34),
        (vnet::GSO_TCPV4, 1000, 35),
    ] {
        let header = vnet::VirtioNetHeader { gso_type, gso_size, csum_start, ..header };
        assert_eq!(PacketTrain::new(&frame, &header).count, 1);
    }
}

#[test]
fn the_middle_packet_of_a_literal_train_is_exact() {
    // 10.0.0.1:1000 to 10.0.0.2:2000, id 0x1234, sequence 0xffffffff, ACK|PSH|FIN, "abcdef" in
    // twos.
    let [(from, to), _] = pairs();
    let flags = tcp::ACK | tcp::PSH | tcp::FIN;
    let (frame, header) = build::tcp_train(from, to, u32::MAX, flags, b"abcdef", 2);
    let (middle, header) = cut(&frame, &header, 1..2);
    let expected = [
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
        0x45, 0, 0, 42, 0x12, 0x35, 0, 0, 64, 6, 0x54, 0x97, 10, 0, 0, 1, 10, 0, 0, 2, // IP
        0x03, 0xe8, 0x07, 0xd0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0x03, 0xe8, // TCP
        // 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + protocol 6 + length 22
        0x14, 0x1f, 0, 0, b'c', b'd',
    ];
    assert_eq!(middle, expected);
    let plain = vnet::VirtioNetHeader {
        flags: vnet::NEEDS_CSUM,
        csum_start: 34,
        csum_offset: 16,
        ..vnet::VirtioNetHeader::default()
    };
    assert_eq!(header, plain);
}

#[test]
fn flags_stay_with_the_packet_they_belong_to() {
    let [(from, to), _] = pairs();
    let all = tcp::ACK | tcp::PSH | tcp::FIN | tcp::CWR | tcp::ECE;
    let (frame, mut header) = build::tcp_train(from, to, 1, all, &payload(40), 10);
    header.gso_type |= vnet::GSO_ECN;
    let flags = |range| {
        let (frame, header) = cut(&frame, &header, range);
        (segment(&frame).flags(), header.gso_type)
    };
    let (first, middle) = (tcp::ACK | tcp::ECE | tcp::CWR, tcp::ACK | tcp::ECE);
    assert_eq!(flags(0..1), (first, vnet::GSO_NONE));
    assert_eq!(flags(0..2), (first, vnet::GSO_TCPV4 | vnet::GSO_ECN));
    assert_eq!(flags(1..3), (middle, vnet::GSO_TCPV4));
    assert_eq!(flags(3..4), (middle | tcp::PSH | tcp::FIN, vnet::GSO_NONE));
    assert_eq!(flags(0..4), (all, vnet::GSO_TCPV4 | vnet::GSO_ECN));
}

#[test]
fn ranges_outside_the_train_and_short_buffers_are_refused() {
    let [_, (from, to)] = pairs();
    let (frame, header) = build::udp_train(from, to, &payload(250), 100);
    let mut out = vec![0; frame.len()];
    assert_eq!(write_range(&frame, &header, 1..1, &mut out), None);
    assert_eq!(write_range(&frame, &header, 2..4, &mut out), None);
    assert_eq!(write_range(&frame, &header, 0..1, &mut out[..161]), None);
    assert!(write_range(&frame, &header, 0..1, &mut out[..162]).is_some());
    assert_eq!(write_range(&frame, &header, 0..3, &mut out[..311]), None);
}

#[test]
fn a_train_of_one_becomes_a_plain_packet() {
    let [(from, to), _] = pairs();
    let (frame, header) = build::tcp_train(from, to, 1, tcp::ACK, b"short", 1448);
    let (copy, plain) = cut(&frame, &header, 0..1);
    assert_eq!((copy, plain.gso_type, plain.gso_size), (frame, vnet::GSO_NONE, 0));
    assert!(plain.needs_csum());
}

#[test]
fn a_train_behind_extension_headers_is_cut_like_any_other() {
    let [_, (from, to)] = pairs();
    let (frame, mut header) = build::tcp_train(from, to, 1, tcp::ACK, &payload(300), 100);
    let frame = build::with_extension(frame, 60, &[0, 0, 1, 4, 0, 0, 0, 0]);
    header.csum_start += 8;
    for index in 0..3 {
        let (mut single, mut header) = cut(&frame, &header, index..index + 1);
        assert_eq!(single.len(), 14 + 40 + 8 + 20 + 100);
        assert!(checksum::complete(&mut single, &mut header) && checksum::verify(&single));
    }
}

#[test]
fn datagrams_without_checksum_stay_without() {
    let [(from, to), _] = pairs();
    let mut frame = build::udp(from, to, &payload(20));
    frame[40..42].fill(0);
    let header = vnet::VirtioNetHeader {
        gso_type: vnet::GSO_UDP_L4,
        gso_size: 10,
        ..vnet::VirtioNetHeader::default()
    };
    let (single, _) = cut(&frame, &header, 1..2);
    assert_eq!(single[40..42], [0, 0]);
    assert!(checksum::verify(&single));
}

#[test]
fn trains_made_by_linux_hold_what_we_take_for_a_partial_checksum() {
    // Captured at a veth: 5000 bytes written to a TCP socket, 1800 to one with UDP_SEGMENT 500.
    let captures = [
        (&include_bytes!("../../corpus/kernel-tcp4-train")[..], 4, 66, 1448),
        (&include_bytes!("../../corpus/kernel-udp4-train")[..], 4, 42, 500),
    ];
    for (capture, count, header_len, gso_size) in captures {
        let (header, frame) = vnet::VirtioNetHeader::split(capture).unwrap();
        let train = PacketTrain::new(frame, &header);
        assert_eq!((train.count, train.header_len, train.gso_size), (count, header_len, gso_size));
        assert_eq!(u32::from(header.hdr_len), header_len);
        let mut again = frame.to_vec();
        checksum::write_partial(&mut again, &ParsedPacket::parse(frame).unwrap().info).unwrap();
        assert_eq!(again, frame);
        for index in 0..count {
            let (mut single, mut header) = cut(frame, &header, index..index + 1);
            assert!(checksum::complete(&mut single, &mut header) && checksum::verify(&single));
        }
    }
}

/// A train, and whether its checksum is partial.
fn trains() -> impl Strategy<Value = (Vec<u8>, vnet::VirtioNetHeader)> {
    let shape = (1..9000usize, 1..2000u16, any::<u32>(), any::<[bool; 2]>());
    (endpoints(), shape).prop_map(|((from, to), (length, size, sequence, [tcp, partial]))| {
        let data = payload(length);
        let (mut frame, mut header) = match tcp {
            true => build::tcp_train(from, to, sequence, tcp::ACK | tcp::FIN, &data, size),
            false => build::udp_train(from, to, &data, size),
        };
        if !partial {
            build::refresh(&mut frame);
            (header.flags, header.csum_start, header.csum_offset) = (0, 0, 0);
        }
        (frame, header)
    })
}

fn transport_payload(frame: &[u8]) -> Vec<u8> {
    let packet = ParsedPacket::parse(frame).unwrap();
    let payload = packet.payload();
    match packet.info.protocol {
        tcp::PROTOCOL => tcp::TcpSegment::parse(payload).unwrap().payload().to_vec(),
        _ => udp::UdpDatagram::parse(payload).unwrap().payload().to_vec(),
    }
}

proptest! {
    #[test]
    fn single_packets_verify_and_together_carry_the_payload((frame, header) in trains()) {
        let train = PacketTrain::new(&frame, &header);
        let mut carried = Vec::new();
        for index in 0..train.count {
            let (mut single, mut plain) = cut(&frame, &header, index..index + 1);
            prop_assert_eq!(bytes::len32(single.len()), train.wire_len(index));
            prop_assert_eq!(plain.gso_type, vnet::GSO_NONE);
            prop_assert_eq!(plain.needs_csum(), header.needs_csum());
            prop_assert!(checksum::complete(&mut single, &mut plain));
            prop_assert!(checksum::verify(&single));
            let info = ParsedPacket::parse(&single).unwrap().info;
            if info.protocol == tcp::PROTOCOL {
                let sent = segment(&single).sequence().wrapping_sub(segment(&frame).sequence());
                prop_assert_eq!(bytes::index(sent), carried.len());
            }
            if let Ok(ip) = ipv4::Ipv4Packet::parse(&single[14..]) {
                prop_assert_eq!(u32::from(ip.identification()), 0x1234 + index);
            }
            carried.extend(transport_payload(&single));
        }
        prop_assert_eq!(carried, transport_payload(&frame));
    }

    #[test]
    fn cutting_twice_gives_what_cutting_once_gives(
        (frame, header) in trains(), random in any::<[u32; 2]>()
    ) {
        let train = PacketTrain::new(&frame, &header);
        let start = random[0] % train.count;
        let end = start + 1 + random[1] % (train.count - start);
        let (part, part_header) = cut(&frame, &header, start..end);
        let again = PacketTrain::new(&part, &part_header);
        prop_assert_eq!(again.count, end - start);
        prop_assert_eq!(again.wire_len_total(), train.wire_len_range(start..end));
        for index in [0, again.count / 2, again.count - 1] {
            let twice = cut(&part, &part_header, index..index + 1);
            let once = cut(&frame, &header, start + index..start + index + 1);
            prop_assert_eq!(twice, once);
        }
    }

    #[test]
    fn the_whole_range_is_the_frame_itself((frame, header) in trains()) {
        let train = PacketTrain::new(&frame, &header);
        let (copy, same) = cut(&frame, &header, 0..train.count);
        prop_assert_eq!(copy, frame);
        prop_assert_eq!(same.gso_size, if train.count > 1 { header.gso_size } else { 0 });
    }
}
