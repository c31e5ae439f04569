//! A TCP segment that has come, read once; and the packet that it came in.

use core::net::{IpAddr, SocketAddr};

use crate::offset::len64;
use crate::options::TcpOptions;
use crate::refusal::ReplicationRefusal;
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{checksum, ecn::EcnCodepoint, tcp, vnet};

/// Flag: the urgent pointer counts.
pub(crate) const URG: u8 = 0x20;
/// Flags that this protocol passes on; AccECN's ninth flag is in another byte, and is left out.
pub(crate) const CONTROL: u8 = tcp::FIN | tcp::SYN | tcp::RST;

/// A segment, perhaps a train of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParsedTcpSegment<'a> {
    /// The frame up to the TCP header.
    pub(crate) head: &'a [u8],
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) ecn: EcnCodepoint,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    /// As it stands, not scaled.
    pub(crate) window: u16,
    /// The urgent pointer, where [`URG`] is set.
    pub(crate) urgent: Option<u16>,
    pub(crate) options: TcpOptions,
    pub(crate) payload: &'a [u8],
    /// Payload bytes of each packet of a train; 0 for one packet.
    pub(crate) gso_size: u16,
}

impl<'a> ParsedTcpSegment<'a> {
    /// Reads a frame. A train is read as the one long segment that it is before it is cut.
    pub(crate) fn parse(
        vnet: &vnet::VirtioNetHeader,
        frame: &'a [u8],
    ) -> Result<Self, ReplicationRefusal> {
        let packet = ParsedPacket::parse(frame).map_err(|_| ReplicationRefusal::Malformed)?;
        let info = &packet.info;
        if info.protocol != tcp::PROTOCOL {
            return Err(ReplicationRefusal::NotTcp);
        }
        if info.is_fragment {
            return Err(ReplicationRefusal::Fragment);
        }
        // A partial checksum never left this machine. Any other is checked here: what is sent on
        // has a new checksum, which would hide an error.
        let is_trusted = vnet.flags & (vnet::NEEDS_CSUM | vnet::DATA_VALID) != 0;
        if !is_trusted && !checksum::holds(&packet) {
            return Err(ReplicationRefusal::Malformed);
        }
        let bytes = packet.payload();
        let view = tcp::TcpSegment::parse(bytes).map_err(|_| ReplicationRefusal::Malformed)?;
        let urgent = match bytes {
            [_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, high, low, ..] => {
                u16::from_be_bytes([*high, *low])
            }
            _ => 0,
        };
        Ok(Self {
            head: frame.get(..info.transport).unwrap_or_default(),
            source: address(info.source, view.source_port()),
            destination: address(info.final_destination, view.destination_port()),
            ecn: info.ecn,
            sequence: view.sequence(),
            acknowledgement: view.acknowledgement(),
            flags: view.flags(),
            window: view.window(),
            urgent: (view.flags() & URG != 0).then_some(urgent),
            options: TcpOptions::parse(view.options()),
            payload: view.payload(),
            gso_size: if view.payload().len() > usize::from(vnet.gso_size) {
                vnet.gso_size
            } else {
                0
            },
        })
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Sequence numbers that it takes: payload, SYN and FIN.
    pub(crate) fn len(&self) -> u64 {
        len64(self.payload.len()) + u64::from(self.has(tcp::SYN)) + u64::from(self.has(tcp::FIN))
    }
}

fn address(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip, port)
}
