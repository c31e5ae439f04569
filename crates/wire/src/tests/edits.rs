use proptest::prelude::*;

use super::{endpoints, frames, pairs, payload};
use crate::ecn::codepoint::EcnCodepoint;
use crate::ecn::{self};
use crate::hop::{ForwardingError, decrement_ttl};
use crate::packet::{IpVersion, ParsedPacket};
use crate::parse_error::PacketParseError;
use crate::{build, checksum, corrupt, flow, tcp, vnet};

#[test]
fn the_facts_of_a_packet_are_read_once() {
    let [(from, to), (from6, to6)] = pairs();
    let frame = build::with_dont_fragment(build::tcp(from, to, 1, tcp::SYN, b"abc"));
    let info = ParsedPacket::parse(&frame).unwrap().info;
    assert_eq!((info.version, info.source, info.destination), (IpVersion::V4, from.ip(), to.ip()));
    assert_eq!((info.protocol, info.transport, info.end), (6, 34, 57));
    assert_eq!((info.ip_len, info.ttl, info.ecn), (43, 64, EcnCodepoint::NotEct));
    assert!(info.dont_fragment && !info.is_fragment && !info.is_multicast && !info.is_icmp_error);
    let frame = build::with_extension(build::udp(from6, to6, b"abc"), 0, &[0; 8]);
    let packet = ParsedPacket::parse(&frame).unwrap();
    let info = packet.info;
    assert_eq!((info.protocol, info.transport, info.ip_len), (17, 62, 59));
    assert_eq!(packet.ports(), Some((1000, 2000)));
}

#[test]
fn a_malformed_packet_is_named() {
    let [(from, to), _] = pairs();
    let mut frame = build::udp(from, to, b"abc");
    assert_eq!(ParsedPacket::parse(&frame[..40]), Err(PacketParseError::TotalLength));
    assert_eq!(ParsedPacket::parse(&frame[..10]), Err(PacketParseError::Truncated));
    frame[13] = 6;
    assert_eq!(ParsedPacket::parse(&frame), Err(PacketParseError::NotIp(0x0806)));
    assert_eq!(
        PacketParseError::NotIp(0x0806).to_string(),
        "frame of ethertype 0x0806 holds no ip packet"
    );
}

#[test]
fn padding_behind_the_packet_is_not_part_of_it() {
    let [(from, to), _] = pairs();
    let (mut frame, mut header) = build::partial(build::udp(from, to, b"abc"));
    frame.extend([0xee; 15]);
    assert_eq!(ParsedPacket::parse(&frame).unwrap().info.end, 45);
    assert!(checksum::complete(&mut frame, &mut header) && checksum::verify(&frame));
}

#[test]
fn multicast_and_broadcast_are_recognised_by_either_layer() {
    let [(from, to), _] = pairs();
    let is_multicast = |frame: &[u8]| ParsedPacket::parse(frame).unwrap().info.is_multicast;
    let mut frame = build::udp(from, to, b"");
    assert!(!is_multicast(&frame));
    frame[0] = 0xff;
    assert!(is_multicast(&frame));
    for group in ["224.0.0.1:9", "255.255.255.255:9"] {
        assert!(is_multicast(&build::udp(from, group.parse().unwrap(), b"")));
    }
    let [_, (from, _)] = pairs();
    assert!(is_multicast(&build::udp(from, "[ff02::1]:9".parse().unwrap(), b"")));
}

#[test]
fn a_flow_hashes_the_same_forever_and_fragments_have_no_ports() {
    let [(from, to), (from6, to6)] = pairs();
    let mut frame = build::udp(from, to, b"abc");
    let key = flow::FiveTuple::parse(&frame).unwrap();
    assert_eq!((key.source_port, key.destination_port, key.protocol), (1000, 2000, 17));
    assert_eq!(key.hash64(), HASH_V4);
    assert_eq!(flow::FiveTuple::parse(&build::udp(to, from, b"")).unwrap(), key.reversed());
    assert_ne!(key.hash64(), key.reversed().hash64());
    let key6 = flow::FiveTuple::parse(&build::udp(from6, to6, b"")).unwrap();
    assert_eq!(key6.hash64(), HASH_V6);
    frame[20] = 0x20;
    let key = flow::FiveTuple::parse(&frame).unwrap();
    assert_eq!((key.source_port, key.destination_port), (0, 0));
}

// SplitMix64 over (protocol, ports) and the address words, computed separately from this code.
const HASH_V4: u64 = 0x2873_73f1_7703_690d;
const HASH_V6: u64 = 0x9ab8_f944_7761_ce83;

#[test]
fn a_literal_ttl_and_checksum_go_down_and_up() {
    let [(from, to), _] = pairs();
    let mut frame = build::udp(from, to, b"");
    assert_eq!(frame[22..26], [64, 17, 0x54, 0x9b]);
    assert_eq!(decrement_ttl(&mut frame), Ok(63));
    assert_eq!(frame[22..26], [63, 17, 0x55, 0x9b]);
}

#[test]
fn the_last_hop_is_refused_and_changes_nothing() {
    for (from, to) in pairs() {
        for ttl in [0, 1] {
            let mut frame = build::with_ttl(build::udp(from, to, b""), ttl);
            let before = frame.clone();
            assert_eq!(decrement_ttl(&mut frame), Err(ForwardingError::Expired));
            assert_eq!(frame, before);
        }
        assert_eq!(decrement_ttl(&mut build::with_ttl(build::udp(from, to, b""), 2)), Ok(1));
    }
    assert_eq!(decrement_ttl(&mut [0; 60]), Err(ForwardingError::NotIp));
}

#[test]
fn only_senders_that_take_part_are_marked() {
    for (from, to) in pairs() {
        for (bits, marked) in [(0, false), (1, true), (2, true), (3, true)] {
            let mut frame = build::with_ecn(build::udp(from, to, b"abc"), bits);
            let before = frame.clone();
            assert_eq!(ecn::codepoint(&frame), Some(EcnCodepoint::from_bits(bits)));
            assert_eq!(ecn::mark_ce(&mut frame), marked);
            assert_eq!(frame, if marked { build::with_ecn(before.clone(), 3) } else { before });
            assert!(checksum::verify(&frame));
        }
    }
    assert!(!ecn::mark_ce(&mut [0; 60]));
}

#[test]
fn an_udp_checksum_that_comes_out_as_zero_is_sent_as_ones() {
    let [(from, to), _] = pairs();
    let (mut frame, mut header) = build::partial(build::udp(from, to, &[0, 0]));
    let mut whole = frame.clone();
    let mut plain = header;
    assert!(checksum::complete(&mut whole, &mut plain));
    // Putting the checksum into the payload makes the sum all ones.
    let sum = [whole[40], whole[41]];
    frame[42..44].copy_from_slice(&sum);
    assert!(checksum::complete(&mut frame, &mut header));
    assert_eq!((frame[40], frame[41]), (0xff, 0xff));
    assert!(checksum::verify(&frame));
    assert_eq!(header, vnet::VirtioNetHeader::default());
}

#[test]
fn a_checksum_outside_the_frame_is_not_completed() {
    let [(from, to), _] = pairs();
    let (mut frame, mut header) = build::partial(build::udp(from, to, b""));
    let before = frame.clone();
    for (csum_start, csum_offset) in [(34, 7), (34, u16::MAX), (u16::MAX, u16::MAX), (42, 0)] {
        header = vnet::VirtioNetHeader { csum_start, csum_offset, ..header };
        assert!(!checksum::complete(&mut frame, &mut header));
        assert!(header.needs_csum() && frame == before);
    }
}

#[test]
fn a_routing_header_makes_the_checksum_cover_the_final_destination() {
    let [_, (from, to)] = pairs();
    let mut routing = vec![0, 2, 2, 1, 0, 0, 0, 0];
    routing.extend("fd00::2".parse::<core::net::Ipv6Addr>().unwrap().octets());
    let mut frame = build::with_extension(build::udp(from, to, b"abc"), 43, &routing);
    // The next stop in the fixed header; the checksum was made for fd00::2.
    frame[53] = 0x77;
    let packet = ParsedPacket::parse(&frame).unwrap();
    let info = packet.info;
    assert_eq!(info.destination.to_string(), "fd00::77");
    assert_eq!(info.final_destination, to.ip());
    assert!(checksum::verify(&frame));
    assert_eq!(flow::FiveTuple::of(&packet).destination, to.ip());
}

#[test]
fn an_ipv4_header_with_any_flipped_bit_does_not_verify() {
    let [(from, to), _] = pairs();
    let whole = build::udp(from, to, b"abc");
    for bit in 0..160 {
        let mut frame = whole.clone();
        frame[14 + bit / 8] ^= 1 << (bit % 8);
        assert!(!checksum::verify(&frame), "bit {bit}");
    }
}

#[test]
fn udp_without_checksum_is_right_over_ipv4_only() {
    for ((from, to), right) in pairs().into_iter().zip([true, false]) {
        let mut frame = build::udp(from, to, b"abc");
        let at = ParsedPacket::parse(&frame).unwrap().info.transport + 6;
        frame[at..at + 2].fill(0);
        assert_eq!(checksum::verify(&frame), right);
    }
}

#[test]
fn every_random_number_damages_even_an_empty_datagram() {
    let [(from, to), _] = pairs();
    for value in 0..16u64 {
        // Choose a source port so that the checksum is a single bit: flipping it would say "none".
        let bit = 1u16 << value;
        let mut frame = build::udp(from, to, b"");
        let sum = u16::from_be_bytes([frame[40], frame[41]]);
        let port = checksum::add(from.port(), checksum::add(sum, !bit));
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        build::refresh(&mut frame);
        assert_eq!(frame[40..42], bit.to_be_bytes());
        for random in 0..16 {
            let mut hit = frame.clone();
            assert!(corrupt::corrupt(&mut hit, &mut vnet::VirtioNetHeader::default(), random));
            assert!(!checksum::verify(&hit), "bit {random} of {bit:#06x}");
        }
    }
}

#[test]
fn a_train_is_not_damaged() {
    let [(from, to), _] = pairs();
    let (mut frame, mut header) = build::tcp_train(from, to, 1, 0, &payload(100), 10);
    assert!(!corrupt::corrupt(&mut frame, &mut header, 1));
}

#[test]
fn a_datagram_without_checksum_keeps_none_so_that_its_flipped_bit_arrives() {
    let [(from, to), v6] = pairs();
    for (from, to) in [(from, to), v6] {
        let mut whole = build::udp(from, to, b"abc");
        let at = ParsedPacket::parse(&whole).unwrap().info.transport + 6;
        whole[at..at + 2].fill(0);
        for random in 0..24 {
            let mut frame = whole.clone();
            assert!(corrupt::corrupt(&mut frame, &mut vnet::VirtioNetHeader::default(), random));
            assert_eq!(frame[..at + 2], whole[..at + 2], "the checksum is still 0");
            let bits = |(a, b): (&u8, &u8)| (a ^ b).count_ones();
            assert_eq!(frame.iter().zip(&whole).map(bits).sum::<u32>(), 1);
            assert_eq!(checksum::verify(&frame), from.is_ipv4(), "IPv4 takes it, IPv6 never did");
        }
    }
}

proptest! {
    #[test]
    fn an_updated_checksum_equals_a_recomputed_one(frame in frames(), ttl in 2..=255u8) {
        let mut frame = build::with_ttl(frame, ttl);
        let expected = build::with_ttl(frame.clone(), ttl - 1);
        prop_assert_eq!(decrement_ttl(&mut frame), Ok(ttl - 1));
        prop_assert_eq!(frame, expected);
    }

    #[test]
    fn update_follows_every_word(mut bytes in proptest::collection::vec(any::<u8>(), 20), new in any::<u16>()) {
        bytes[0] = 0x45;
        let before = checksum::checksum(&bytes);
        let old = u16::from_be_bytes([bytes[8], bytes[9]]);
        bytes[8..10].copy_from_slice(&new.to_be_bytes());
        prop_assert_eq!(checksum::update(before, old, new), checksum::checksum(&bytes));
    }

    #[test]
    fn built_frames_verify_and_a_completed_partial_equals_a_full(
        (from, to) in endpoints(), data in proptest::collection::vec(any::<u8>(), 0..3000)
    ) {
        for whole in [build::tcp(from, to, 7, tcp::ACK, &data), build::udp(from, to, &data)] {
            prop_assert!(checksum::verify(&whole));
            let (mut frame, mut header) = build::partial(whole.clone());
            prop_assert!(checksum::complete(&mut frame, &mut header));
            prop_assert_eq!((frame, header), (whole, vnet::VirtioNetHeader::default()));
        }
    }

    #[test]
    fn damage_is_one_bit_behind_the_ports_and_always_seen(
        whole in frames(), partial in any::<bool>(), random in any::<u64>()
    ) {
        let info = ParsedPacket::parse(&whole).unwrap().info;
        let (mut frame, mut header) = match (partial, info.protocol) {
            (true, 6 | 17) => build::partial(whole.clone()),
            _ => (whole.clone(), vnet::VirtioNetHeader { flags: vnet::DATA_VALID, ..Default::default() }),
        };
        prop_assert!(corrupt::corrupt(&mut frame, &mut header, random));
        prop_assert_eq!(header, vnet::VirtioNetHeader::default());
        prop_assert!(!checksum::verify(&frame));
        let bits = |a: &[u8], b: &[u8]| -> u32 {
            a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
        };
        prop_assert_eq!(bits(&frame, &whole), 1);
        let kept = info.transport + if matches!(info.protocol, 6 | 17) { 4 } else { 2 };
        prop_assert_eq!(&frame[..kept], &whole[..kept]);
    }
}
