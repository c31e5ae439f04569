//! One entry to everything, for fuzzers.

use crate::{
    checksum, corrupt, ecn, ethernet, flow, fragment, hop, icmp, ipv4, ipv6, packet, segment, tcp,
    tunnel, udp, vnet,
};

/// Pieces of a train or fragmentation that one input is made to write.
const PIECES_MAX: u32 = 24;

/// Calls every public function on arbitrary bytes: a virtio-net header, then a frame.
///
/// # Panics
/// When a function panics, or breaks one of the laws asserted here.
pub fn fuzz_one(data: &[u8]) {
    let (header, frame) =
        vnet::VirtioNetHeader::split(data).unwrap_or((vnet::VirtioNetHeader::default(), data));
    assert_eq!(vnet::VirtioNetHeader::parse(&header.emit()), header);
    views(frame);
    facts(frame);
    edits(frame, &header);
    pieces(frame, &header);
    errors(frame);
    datagrams(frame);
}

fn views(frame: &[u8]) {
    for start in [0, ethernet::HEADER_LEN, 34, 54] {
        let bytes = frame.get(start..).unwrap_or_default();
        let shown = (
            ethernet::EthernetFrame::parse(bytes)
                .map(|v| (v.destination(), v.source(), v.ethertype())),
            ipv4::Ipv4Packet::parse(bytes).map(|v| (v.header_len(), v.options(), v.payload())),
            ipv6::Ipv6Packet::parse(bytes).map(|v| (v.chain(), v.flow_label(), v.payload())),
            tcp::TcpSegment::parse(bytes).map(|v| (v.sequence(), v.acknowledgement(), v.payload())),
            udp::UdpDatagram::parse(bytes).map(|v| (v.length(), v.checksum(), v.payload())),
            icmp::IcmpMessage::parse(bytes).map(|v| (v.kind(), v.rest(), v.body())),
        );
        core::hint::black_box(&shown);
    }
}

fn facts(frame: &[u8]) {
    core::hint::black_box((checksum::verify(frame), ecn::codepoint(frame)));
    let Ok(packet) = packet::ParsedPacket::parse(frame) else { return };
    let info = packet.info;
    assert!(ethernet::HEADER_LEN <= info.transport);
    assert!(info.transport <= info.end && info.end <= frame.len());
    let key = flow::FiveTuple::of(&packet);
    assert_eq!(key.reversed().reversed().hash64(), key.hash64());
    core::hint::black_box((packet.ports(), icmp::may_send_error(&packet)));
}

fn edits(frame: &[u8], header: &vnet::VirtioNetHeader) {
    let fresh = || (frame.to_vec(), *header);
    let (mut copy, mut vnet) = fresh();
    if checksum::complete(&mut copy, &mut vnet) {
        assert!(!vnet.needs_csum());
    }
    let (mut copy, mut vnet) = fresh();
    let random = u64::from(header.csum_start) * 77 + u64::from(header.gso_size);
    if !corrupt::corrupt(&mut copy, &mut vnet, random) {
        assert_eq!((&copy[..], vnet), (frame, *header));
    }
    let (mut copy, mut vnet) = fresh();
    if icmp::echo_reply_in_place(&mut copy, &mut vnet) {
        assert!(checksum::verify(&copy));
    }
    let (mut copy, _) = fresh();
    let before = ecn::codepoint(&copy);
    if ecn::mark_ce(&mut copy) {
        assert_eq!(ecn::codepoint(&copy), Some(ecn::EcnCodepoint::Ce));
        assert_ne!(before, Some(ecn::EcnCodepoint::NotEct));
    }
    core::hint::black_box(hop::decrement_ttl(&mut copy).is_ok());
    core::hint::black_box(ethernet::set_addresses(&mut copy, [2; 6], [4; 6]));
}

fn pieces(frame: &[u8], header: &vnet::VirtioNetHeader) {
    let mut out = vec![0; frame.len()];
    let train = segment::PacketTrain::new(frame, header);
    assert!(train.count >= 1 && train.wire_len(train.count) == 0);
    for index in 0..train.count.min(PIECES_MAX) {
        let written = segment::write_range(frame, header, index..index + 1, &mut out);
        if train.count > 1 {
            let (length, vnet) = written.expect("every packet of a train can be written");
            assert_eq!(u32::try_from(length), Ok(train.wire_len(index)));
            assert_eq!(segment::PacketTrain::new(&out[..length], &vnet).count, 1);
        }
        let (half, all) = (index / 2, train.count);
        core::hint::black_box(segment::write_range(frame, header, half..all, &mut out));
        core::hint::black_box(segment::write_range(frame, header, half..all, &mut []));
    }
    for mtu in [0, 27, 68, u32::from(header.gso_size), 1500, u32::MAX] {
        let count = fragment::count(frame, mtu).unwrap_or(1);
        for index in (0..count.min(PIECES_MAX)).chain([count - 1, count]) {
            core::hint::black_box(fragment::write(frame, mtu, index, &mut out));
        }
    }
}

fn errors(frame: &[u8]) {
    let kinds = [
        icmp::IcmpErrorKind::TimeExceeded,
        icmp::IcmpErrorKind::NetUnreachable,
        icmp::IcmpErrorKind::HostUnreachable,
        icmp::IcmpErrorKind::PortUnreachable,
        icmp::IcmpErrorKind::AdminProhibited,
        icmp::IcmpErrorKind::TooBig { mtu: 1_400 },
    ];
    let mut out = [0; 1294];
    for kind in kinds {
        for source in [[10, 9, 9, 9].into(), [0xfd, 0, 0, 0, 0, 0, 0, 9].into()] {
            let reply = icmp::IcmpErrorReply { kind, source, mac: [2, 0, 0, 0, 0, 9] };
            if let Some(length) = icmp::write_error(&reply, frame, &mut out) {
                assert!(checksum::verify(&out[..length]));
                let error = packet::ParsedPacket::parse(&out[..length]);
                assert!(error.is_ok_and(|error| error.info.is_icmp_error));
            }
            core::hint::black_box(icmp::write_error(&reply, frame, &mut []));
        }
    }
}

fn datagrams(bytes: &[u8]) {
    if let Ok(header) = tunnel::TunnelHeader::parse(bytes) {
        let emitted = header.emit(bytes.len() - tunnel::HEADER_LEN);
        assert_eq!(emitted.as_ref().map(|header| &header[..]), bytes.get(..tunnel::HEADER_LEN));
    }
    let shown = (
        tunnel::TunnelProbeRequest::parse(bytes).ok(),
        tunnel::TunnelProbeReply::parse(bytes).ok(),
    );
    core::hint::black_box(&shown);
    let mut at = 0;
    while let Ok(Some(placed)) = tunnel::FrameFragment::parse(bytes, at) {
        assert!(at < placed.start && placed.start < placed.end && placed.end <= bytes.len());
        assert!(placed.piece.offset < placed.piece.total);
        at = placed.end;
    }
}
