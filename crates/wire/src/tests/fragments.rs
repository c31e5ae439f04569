use proptest::prelude::*;

use super::{pairs, payload};
use crate::{build, bytes, checksum, fragment, ipv4};

fn pieces(frame: &[u8], mtu: u32) -> Vec<Vec<u8>> {
    let count = fragment::count(frame, mtu).unwrap();
    let piece = |index| {
        let mut out = vec![0xaa; bytes::index(mtu) + 14];
        let length = fragment::write(frame, mtu, index, &mut out).unwrap();
        out.truncate(length);
        out
    };
    assert_eq!(fragment::write(frame, mtu, count, &mut [0; 2000]), None);
    (0..count).map(piece).collect()
}

/// Puts fragments together as RFC 791 says; `None` where a byte is missing or doubled.
fn reassemble(pieces: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut whole = pieces.first()?
        [..14 + ipv4::Ipv4Packet::parse(&pieces[0][14..]).ok()?.header_len()]
        .to_vec();
    let header_len = whole.len();
    for (index, piece) in pieces.iter().enumerate() {
        let view = ipv4::Ipv4Packet::parse(&piece[14..]).ok()?;
        let last = index + 1 == pieces.len();
        let in_place = bytes::index(view.fragment_offset()) == whole.len() - header_len;
        if !in_place || view.more_fragments() == last || !checksum::verify(piece) {
            return None;
        }
        whole.extend(view.payload());
    }
    let total = bytes::len16(whole.len() - 14)?;
    whole[16..18].copy_from_slice(&total.to_be_bytes());
    whole[20..22].fill(0);
    ipv4::set_checksum(&mut whole)?;
    Some(whole)
}

#[test]
fn a_datagram_of_1500_bytes_makes_two_fragments_for_an_mtu_of_1400() {
    let [(from, to), _] = pairs();
    let frame = build::udp(from, to, &payload(1472));
    let pieces = pieces(&frame, 1400);
    // 1400 - 20 leaves 1380 bytes: 172 units of 8 are 1376; 1480 - 1376 = 104 remain.
    assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [14 + 20 + 1376, 14 + 20 + 104]);
    assert_eq!(pieces[0][16..22], [0x05, 0x74, 0x12, 0x34, 0x20, 0x00]);
    assert_eq!(pieces[1][16..22], [0x00, 0x7c, 0x12, 0x34, 0x00, 172]);
    assert_eq!(reassemble(&pieces), Some(frame));
}

#[test]
fn packets_that_fit_or_may_not_be_divided_are_left_whole() {
    let [(from, to), (from6, to6)] = pairs();
    let frame = build::udp(from, to, &payload(100));
    assert_eq!(pieces(&frame, 128), std::slice::from_ref(&frame));
    assert_eq!(fragment::count(&frame, 127), Some(2));
    assert_eq!(fragment::count(&frame, 27), None);
    assert_eq!(fragment::count(&frame, 28), Some(14));
    assert_eq!(fragment::count(&build::with_dont_fragment(frame.clone()), 68), None);
    assert_eq!(fragment::count(&build::udp(from6, to6, &payload(100)), 68), None);
    assert_eq!(fragment::count(&[0; 60], 68), None);
    assert_eq!(fragment::write(&frame, 68, 0, &mut [0; 81]), None);
    assert_eq!(fragment::write(&frame, 68, 0, &mut [0; 82]), Some(82));
}

#[test]
fn options_are_repeated_in_every_fragment() {
    let [(from, to), _] = pairs();
    let mut frame = build::udp(from, to, &payload(92));
    frame.splice(34..34, [0x94, 4, 0, 0]);
    frame[14] = 0x46;
    frame[17] += 4;
    ipv4::set_checksum(&mut frame);
    let pieces = pieces(&frame, 72);
    assert_eq!(pieces.len(), 3);
    assert!(pieces.iter().all(|piece| piece[34..38] == [0x94, 4, 0, 0]));
    assert_eq!(reassemble(&pieces), Some(frame));
}

proptest! {
    #[test]
    fn fragments_and_fragments_of_fragments_come_together_again(
        length in 0..4000usize, outer in 28..2000u32, inner in 28..600u32
    ) {
        let [(from, to), _] = pairs();
        let frame = build::udp(from, to, &payload(length));
        let once = pieces(&frame, outer);
        prop_assert!(once.iter().all(|piece| piece.len() <= bytes::index(outer) + 14));
        prop_assert_eq!(reassemble(&once), Some(frame.clone()));
        let twice: Vec<_> = once.iter().flat_map(|piece| pieces(piece, inner)).collect();
        prop_assert_eq!(reassemble(&twice), Some(frame));
    }
}
