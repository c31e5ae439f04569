//! The maximum segment size that a TCP segment with SYN offers (RFC 9293, 3.7.1).

use crate::packet::ParsedPacket;
use crate::{bytes, checksum, tcp, vnet};

/// Lowers the offer of a SYN to `most` bytes; whether it was greater.
///
/// A segment without SYN or without the option is left alone: the other end takes 536 bytes then
/// (RFC 9293, 3.7.1), or 1220 (RFC 8200, 8.3). A complete checksum follows; a partial one does not
/// cover options.
pub fn clamp(frame: &mut [u8], vnet: &vnet::VirtioNetHeader, most: u16) -> bool {
    let Some((at, transport)) = place(frame) else { return false };
    let Some(offer) = bytes::u16_at(frame, at).filter(|offer| *offer > most) else { return false };
    let words = ChecksumWords::of(at - transport);
    let before = words.read(frame, transport);
    if bytes::put_u16(frame, at, most).is_none() {
        return false;
    }
    if !vnet.needs_csum() {
        let after = words.read(frame, transport);
        let field = transport + tcp::CHECKSUM;
        let sum = bytes::u16_at(frame, field).unwrap_or(0);
        let sum =
            before.iter().zip(after).fold(sum, |sum, (old, new)| checksum::update(sum, *old, new));
        // It was read, so it can be written.
        let _ = bytes::put_u16(frame, field, sum);
    }
    offer > most
}

/// The offer of a SYN; `None` where there is none.
#[must_use]
pub fn offer(frame: &[u8]) -> Option<u16> {
    let (at, _) = place(frame)?;
    bytes::u16_at(frame, at)
}

/// The frame offsets of the option's value, and of the TCP header.
fn place(frame: &[u8]) -> Option<(usize, usize)> {
    let packet = ParsedPacket::parse(frame).ok()?;
    let info = &packet.info;
    if info.protocol != tcp::PROTOCOL || info.is_fragment {
        return None;
    }
    let segment = tcp::TcpSegment::parse(packet.payload()).ok()?;
    if segment.flags() & tcp::SYN == 0 {
        return None;
    }
    let options = segment.options();
    let mut at = 0;
    loop {
        match *options.get(at)? {
            END => return None,
            NO_OPERATION => at += 1,
            kind => {
                let length = usize::from(*options.get(at + 1)?);
                let fits = length >= 2 && at + length <= options.len();
                match kind {
                    MAXIMUM_SEGMENT_SIZE if fits && length == 4 => {
                        return Some((info.transport + tcp::HEADER_LEN + at + 2, info.transport));
                    }
                    _ if fits => at += length,
                    _ => return None,
                }
            }
        }
    }
}

/// The words of a checksum that two bytes lie in: two of them where they do not start at one.
struct ChecksumWords {
    first: usize,
}

impl ChecksumWords {
    /// Of the bytes at an offset from where the checksum begins.
    fn of(offset: usize) -> ChecksumWords {
        ChecksumWords { first: offset & !1 }
    }

    fn read(&self, frame: &[u8], start: usize) -> [u16; 2] {
        // The second belongs to the segment or is padding; where nothing changes in it, the sum
        // does not either.
        [0, 2].map(|next| bytes::u16_at(frame, start + self.first + next).unwrap_or(0))
    }
}

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;

    /// A SYN-ACK with these options, whose length is a multiple of 4.
    fn syn_ack(v6: bool, options: &[u8]) -> Vec<u8> {
        let (from, to) = match v6 {
            false => ("10.1.0.80:80", "10.0.0.1:5000"),
            true => ("[fd00::80]:80", "[fd00::1]:5000"),
        };
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let frame = build::tcp(from, to, 7, tcp::SYN | tcp::ACK, options);
        let at = ParsedPacket::parse(&frame).unwrap().info.transport;
        let mut frame = frame;
        let words = u8::try_from(options.len() / 4).unwrap();
        frame[at + 12] = (5 + words) << 4;
        build::refresh(&mut frame);
        frame
    }

    #[test]
    fn an_offer_is_lowered_and_the_checksum_follows_wherever_it_lies() {
        let plain = [2, 4, 0x05, 0xb4].as_slice();
        let odd = [1, 2, 4, 0x05, 0xb4, 1, 1, 0].as_slice();
        let behind = [4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 2, 4, 0x05, 0xb4].as_slice();
        for (v6, options) in [(false, plain), (false, odd), (true, behind), (true, odd)] {
            let mut frame = syn_ack(v6, options);
            assert_eq!(offer(&frame), Some(1460));
            assert!(clamp(&mut frame, &vnet::VirtioNetHeader::default(), 1440));
            assert_eq!(offer(&frame), Some(1440));
            assert!(checksum::verify(&frame), "{options:?}");
            assert!(
                !clamp(&mut frame, &vnet::VirtioNetHeader::default(), 1440),
                "it is low enough"
            );
        }
    }

    #[test]
    fn a_partial_checksum_stays_as_it_is() {
        let (mut frame, header) = build::partial(syn_ack(false, &[2, 4, 0x05, 0xb4]));
        let before = frame.clone();
        assert!(clamp(&mut frame, &header, 1000));
        let differs = (0..frame.len()).filter(|at| frame[*at] != before[*at]);
        assert_eq!(differs.collect::<Vec<_>>(), [56, 57], "the option's value alone");
        let mut header = header;
        assert!(checksum::complete(&mut frame, &mut header) && checksum::verify(&frame));
    }

    #[test]
    fn what_offers_nothing_is_left_alone() {
        let none = syn_ack(false, &[]);
        let cut = syn_ack(false, &[1, 1, 1, 2]);
        let long = syn_ack(false, &[2, 9, 5, 0xb4]);
        let ended = syn_ack(false, &[0, 2, 4, 5]);
        let mut data = syn_ack(false, &[2, 4, 5, 0xb4]);
        data[14 + 20 + 13] = tcp::ACK;
        let udp = build::udp("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap(), b"x");
        for mut frame in [none, cut, long, ended, data, udp, Vec::new()] {
            let before = frame.clone();
            assert!(!clamp(&mut frame, &vnet::VirtioNetHeader::default(), 100));
            assert_eq!(frame, before);
        }
    }
}
