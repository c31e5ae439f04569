//! Packets that were fragmented on their way, put together again where a tunnel ends or at a middlebox
//! (RFC 791, 3.2; RFC 2003, 5.1).

use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Range;

use windtunnel_model::{Span, Time};
use windtunnel_wire::packet::IpPacketSummary;
use windtunnel_wire::{ecn, fragment, vnet};

use crate::buffer::PacketBufferPool;
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::tunnel::endpoint::TunnelEndpoint;

/// Packets of which fragments are missing.
#[derive(Debug, Default)]
pub(crate) struct ReassemblyBuffer {
    open: Vec<PartialDatagram>,
    lost: u64,
}

#[derive(Debug)]
struct PartialDatagram {
    place: TunnelEndpoint,
    ends: (IpAddr, IpAddr, u8),
    identification: u16,
    since: Time,
    parts: Vec<DatagramFragment>,
}

#[derive(Debug)]
struct DatagramFragment {
    /// Where its payload begins in the packet's.
    offset: usize,
    /// Where that lies in the frame.
    bytes: Range<usize>,
    is_last: bool,
    packet: EmulatedPacket,
}

impl ReassemblyBuffer {
    /// Takes a fragment that came to a place; the whole packet, if it was the last that was missing.
    pub(crate) fn push(
        &mut self,
        now: Time,
        at: TunnelEndpoint,
        info: &IpPacketSummary,
        mut packet: EmulatedPacket,
        pool: &mut PacketBufferPool,
    ) -> Option<EmulatedPacket> {
        self.expire(now, pool);
        // A train has no fragments.
        packet.settled(pool);
        let Some(place) = fragment::FragmentPosition::of(packet.frame()) else {
            packet.discard(pool);
            return None;
        };
        let ends = (info.source, info.destination, info.protocol);
        let is_this = |it: &PartialDatagram| {
            (it.place, it.ends, it.identification) == (at, ends, place.identification)
        };
        let at = self.open.iter().position(is_this).unwrap_or_else(|| {
            if self.open.len() >= OPEN_MAX {
                // They lie in the order in which they began.
                let oldest = self.open.remove(0);
                self.lost += 1;
                oldest.discard(pool);
            }
            self.open.push(PartialDatagram {
                place: at,
                ends,
                identification: place.identification,
                since: now,
                parts: Vec::new(),
            });
            self.open.len() - 1
        });
        let datagram = &mut self.open[at];
        let offset = place.offset;
        let known = datagram.parts.iter().position(|part| part.offset >= offset);
        let position = known.unwrap_or(datagram.parts.len());
        let is_copy = datagram.parts.get(position).is_some_and(|part| part.offset == offset);
        if is_copy || datagram.parts.len() >= PARTS_MAX {
            packet.discard(pool);
            return None;
        }
        let bytes = info.transport..info.end;
        let part = DatagramFragment { offset, bytes, is_last: !place.more, packet };
        datagram.parts.insert(position, part);
        if !datagram.is_whole() {
            return None;
        }
        let whole = self.open.remove(at).join(pool);
        self.lost += u64::from(whole.is_none());
        whole
    }

    /// When something is given up.
    pub(crate) fn next(&self) -> Option<Time> {
        self.open.first().map(|datagram| datagram.since + PATIENCE)
    }

    /// Gives up what waited for too long.
    pub(crate) fn expire(&mut self, now: Time, pool: &mut PacketBufferPool) {
        while self.next().is_some_and(|at| at <= now) {
            self.lost += 1;
            self.open.remove(0).discard(pool);
        }
    }

    /// Packets that never became whole.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

impl PartialDatagram {
    fn is_whole(&self) -> bool {
        let mut end = 0;
        let follows = self.parts.iter().all(|part| {
            let fits = part.offset == end;
            end += part.bytes.len();
            fits
        });
        follows && self.parts.last().is_some_and(|part| part.is_last)
    }

    /// The packet of all parts; it is there when the last of them is, and marked if any is.
    fn join(self, pool: &mut PacketBufferPool) -> Option<EmulatedPacket> {
        let payload: usize = self.parts.iter().map(|part| part.bytes.len()).sum();
        let mut parts = self.parts.into_iter();
        let DatagramFragment { packet: mut whole, bytes, .. } = parts.next()?;
        let mut buf = pool.take(bytes.start + payload);
        let mut end = bytes.end;
        if let (Some(buf), Some(first)) = (&mut buf, whole.frame().get(..end)) {
            buf[..end].copy_from_slice(first);
        }
        for DatagramFragment { packet, bytes, .. } in parts {
            let len = bytes.len();
            whole.times = whole.times.map(|time| time.max(packet.times.last));
            whole.marked |= packet.marked;
            if let (Some(buf), Some(bytes)) = (&mut buf, packet.frame().get(bytes)) {
                buf[end..end + len].copy_from_slice(bytes);
            }
            let codepoint = ecn::codepoint(packet.frame());
            if let (Some(buf), Some(ecn::EcnCodepoint::Ce)) = (&mut buf, codepoint) {
                ecn::mark_ce(buf);
            }
            end += len;
            packet.discard(pool);
        }
        let Some(mut buf) = buf else {
            whole.discard(pool);
            return None;
        };
        if fragment::make_whole(&mut buf).is_none() {
            pool.give(buf);
            whole.discard(pool);
            return None;
        }
        let header = vnet::VirtioNetHeader::default();
        whole.shape = PacketTrainShape::of(&buf, &header);
        whole.rewrite(buf, header, pool);
        Some(whole)
    }

    fn discard(self, pool: &mut PacketBufferPool) {
        self.parts.into_iter().for_each(|part| part.packet.discard(pool));
    }
}

/// Packets that wait for fragments at a time.
const OPEN_MAX: usize = 64;
/// Fragments of a packet: 64 KiB in those of the least MTU of IPv4 links in use, 576.
const PARTS_MAX: usize = 128;
/// How long (`net.ipv4.ipfrag_time`).
const PATIENCE: Span = Span::from_secs(30);
