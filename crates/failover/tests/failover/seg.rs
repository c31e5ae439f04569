//! TCP segments as tests see and make them: written against RFC 9293, apart from the crate's own.

use std::net::SocketAddr;

use windtunnel_wire::ecn::{self, EcnCodepoint};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, checksum, tcp, vnet};

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seg {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) mss: Option<u16>,
    pub(crate) shift: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) stamps: Option<(u32, u32)>,
    pub(crate) sacks: Vec<(u32, u32)>,
    /// Option bytes of other kinds, as they stand.
    pub(crate) extra: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// The two bits of the IP header.
    pub(crate) ecn: u8,
}

pub(crate) const FIN: u8 = tcp::FIN;
pub(crate) const SYN: u8 = tcp::SYN;
pub(crate) const RST: u8 = tcp::RST;
pub(crate) const ACK: u8 = tcp::ACK;

impl Seg {
    /// A segment without anything.
    pub(crate) fn new(from: SocketAddr, to: SocketAddr) -> Self {
        Self {
            from,
            to,
            seq: 0,
            ack: 0,
            flags: 0,
            window: 0,
            urgent: 0,
            mss: None,
            shift: None,
            sack_permitted: false,
            stamps: None,
            sacks: Vec::new(),
            extra: Vec::new(),
            payload: Vec::new(),
            ecn: 0,
        }
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Sequence numbers that it takes.
    pub(crate) fn len(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.has(SYN)) + u64::from(self.has(FIN))
    }

    /// Reads a frame whose checksums must hold.
    pub(crate) fn parse(frame: &[u8]) -> Self {
        assert!(checksum::verify(frame), "a frame with a wrong checksum");
        let packet = ParsedPacket::parse(frame).unwrap();
        let (info, bytes) = (packet.info, packet.payload());
        let view = tcp::TcpSegment::parse(bytes).unwrap();
        let mut seg = Seg::new(
            (info.source, view.source_port()).into(),
            (info.final_destination, view.destination_port()).into(),
        );
        seg.seq = view.sequence();
        seg.ack = view.acknowledgement();
        seg.flags = view.flags();
        seg.window = view.window();
        seg.urgent = u16::from_be_bytes([bytes[18], bytes[19]]);
        seg.payload = view.payload().to_vec();
        seg.ecn = match ecn::codepoint(frame).unwrap() {
            EcnCodepoint::NotEct => 0,
            EcnCodepoint::Ect1 => 1,
            EcnCodepoint::Ect0 => 2,
            EcnCodepoint::Ce => 3,
        };
        seg.parse_options(view.options());
        seg
    }

    fn parse_options(&mut self, mut bytes: &[u8]) {
        let word = |at: &[u8]| u32::from_be_bytes(at[..4].try_into().unwrap());
        while let [kind, rest @ ..] = bytes {
            match kind {
                0 => return,
                1 => bytes = rest,
                _ => {
                    let length = usize::from(rest[0]);
                    let body = &bytes[2..length];
                    match kind {
                        2 => self.mss = Some(u16::from_be_bytes([body[0], body[1]])),
                        3 => self.shift = Some(body[0]),
                        4 => self.sack_permitted = true,
                        5 => {
                            let blocks = body.chunks(8);
                            self.sacks = blocks.map(|b| (word(b), word(&b[4..]))).collect();
                        }
                        8 => self.stamps = Some((word(body), word(&body[4..]))),
                        _ => self.extra.extend(&bytes[..length]),
                    }
                    bytes = &bytes[length..];
                }
            }
        }
    }

    /// The frame, with complete checksums.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut options = self.extra.clone();
        if let Some(mss) = self.mss {
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
        }
        if self.sack_permitted {
            options.extend([4, 2]);
        }
        if let Some((value, echo)) = self.stamps {
            options.extend([8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        if let Some(shift) = self.shift {
            options.extend([3, 3, shift]);
        }
        if !self.sacks.is_empty() {
            options.extend([5, 2 + 8 * self.sacks.len() as u8]);
            for (start, end) in &self.sacks {
                options.extend(start.to_be_bytes());
                options.extend(end.to_be_bytes());
            }
        }
        while !options.len().is_multiple_of(4) {
            options.push(1);
        }
        let mut bytes = Vec::new();
        bytes.extend(self.from.port().to_be_bytes());
        bytes.extend(self.to.port().to_be_bytes());
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([(((20 + options.len()) / 4) << 4) as u8, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.urgent.to_be_bytes());
        bytes.extend(options);
        bytes.extend(&self.payload);
        let frame = build::ip(self.from.ip(), self.to.ip(), tcp::PROTOCOL, &bytes);
        if self.ecn == 0 { frame } else { build::with_ecn(frame, self.ecn) }
    }
}

/// The packets that a frame stands for, with complete checksums.
pub(crate) fn cut(vnet: &vnet::VirtioNetHeader, frame: &[u8]) -> Vec<Vec<u8>> {
    let train = windtunnel_wire::segment::PacketTrain::new(frame, vnet);
    let cut_one = |index: u32| {
        let mut out = vec![0; frame.len()];
        let range = index..index + 1;
        let (length, mut header) =
            windtunnel_wire::segment::write_range(frame, vnet, range, &mut out).unwrap();
        out.truncate(length);
        assert!(checksum::complete(&mut out, &mut header));
        out
    };
    (0..train.count).map(cut_one).collect()
}
