//! Frames that leave the gateway: to the node's link, or to the kernel of the node.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use windtunnel_sys::packet::{BATCH_MAX, PacketSendSocket, TransmitFrame};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_wire::icmp::{self, IcmpErrorKind};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::reset::{self, TcpResetSegment};
use windtunnel_wire::{ethernet, vnet};

use crate::inside::GatewayDevices;
use crate::report::{GatewayCounterUpdate, GatewayReport};
use crate::said;
use crate::settings::GatewaySettings;

/// Sends frames in the node's network namespace, and counts what cannot be sent.
#[derive(Debug)]
pub(crate) struct WireOut {
    outlet: PacketSendSocket,
    devices: GatewayDevices,
    mac: [u8; 6],
    own: Vec<IpAddr>,
}

impl WireOut {
    pub(crate) fn new(
        descriptor: OwnedFd,
        devices: GatewayDevices,
        settings: &GatewaySettings,
    ) -> std::io::Result<WireOut> {
        let outlet = PacketSendSocket::adopt(descriptor)?;
        Ok(WireOut { outlet, devices, mac: settings.mac, own: settings.own.clone() })
    }

    /// Has a frame be one that the kernel of the node takes.
    pub(crate) fn address_to_kernel(&self, frame: &mut [u8]) {
        ethernet::set_addresses(frame, self.devices.far_mac, self.mac);
    }

    /// Has the kernel of the node take these frames, whose Ethernet addresses fit already.
    pub(crate) fn send_to_kernel(
        &mut self,
        frames: &[(&[u8; vnet::VirtioNetHeader::LEN], &[u8])],
        report: &mut GatewayReport,
    ) {
        for batch in frames.chunks(BATCH_MAX) {
            let interface = self.devices.near;
            let outgoing: Vec<TransmitFrame<'_>> = batch
                .iter()
                .map(|(vnet_header, frame)| TransmitFrame { interface, vnet_header, frame })
                .collect();
            send_all(&mut self.outlet, &outgoing, report);
        }
    }

    /// Sends a frame out of the node's link, to the next hop with this Ethernet address.
    pub(crate) fn send_to_link(
        &mut self,
        frame: &mut [u8],
        to: [u8; 6],
        report: &mut GatewayReport,
    ) {
        ethernet::set_addresses(frame, to, self.mac);
        let vnet_header = vnet::VirtioNetHeader::default().emit();
        let interface = self.devices.link;
        send_all(
            &mut self.outlet,
            &[TransmitFrame { interface, vnet_header: &vnet_header, frame }],
            report,
        );
    }

    /// Says to the sender of a packet what went wrong, if that may be said.
    pub(crate) fn answer_error(
        &mut self,
        packet: &ParsedPacket<'_>,
        kind: IcmpErrorKind,
        to: [u8; 6],
        report: &mut GatewayReport,
    ) {
        if !icmp::may_send_error(packet) {
            return;
        }
        let info = &packet.info;
        let own = self.own.iter().copied().find(|own| own.is_ipv4() == info.source.is_ipv4());
        let is_of_host = said::is_of_host(kind, info.source.is_ipv4());
        let Some(source) = own.map(|own| if is_of_host { info.final_destination } else { own })
        else {
            return;
        };
        let mut out = [0; ERROR_LEN];
        let reply = icmp::IcmpErrorReply { kind, source, mac: self.mac };
        if let Some(length) = icmp::write_error(&reply, packet.frame, &mut out) {
            self.send_to_link(&mut out[..length], to, report);
        }
    }

    /// Resets the connection of a segment.
    pub(crate) fn answer_reset(&mut self, frame: &[u8], to: [u8; 6], report: &mut GatewayReport) {
        let mut out = [0; reset::FRAME_LEN];
        let written =
            TcpResetSegment::answer(frame, self.mac).and_then(|reset| reset.write(&mut out));
        if let Some(length) = written {
            self.send_to_link(&mut out[..length], to, report);
        }
    }
}

/// Sends all frames; what the kernel refuses is lost, and the others go on. A full send buffer is
/// waited for: the kernel empties it without this process, and the link behind is what limits.
fn send_all(
    outlet: &mut PacketSendSocket,
    mut frames: &[TransmitFrame<'_>],
    report: &mut GatewayReport,
) {
    while !frames.is_empty() {
        match outlet.send(frames) {
            Ok(sent) => frames = frames.get(sent.max(1)..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && has_room_soon(outlet) => {}
            Err(_) => {
                report.count(GatewayCounterUpdate::Lost("packets that the kernel refused", 1));
                frames = frames.get(1..).unwrap_or_default();
            }
        }
    }
}

/// Whether the send buffer has room within [`PATIENCE`].
fn has_room_soon(outlet: &PacketSendSocket) -> bool {
    let mut waited = [PollFd::new(outlet, PollFlags::OUT)];
    poll::wait(&mut waited, Some(PATIENCE)).is_ok_and(|ready| ready > 0)
}

/// A buffer that stays full for so long belongs to a kernel that does not work.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest ICMP error with its Ethernet header (RFC 4443, 2.4).
const ERROR_LEN: usize = 1280 + ethernet::HEADER_LEN;
