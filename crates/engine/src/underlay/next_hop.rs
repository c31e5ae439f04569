//! Routers that find their next hop on a LAN.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use windtunnel_model::{LanId, Lane, RouterId, Time};
use windtunnel_wire::packet::{IpPacketSummary, ParsedPacket};
use windtunnel_wire::{ethernet, vnet};

use super::Underlay;
use super::resolution::{ResolutionFrame, ResolutionOutcome};
use crate::middlebox::PacketRewrite;
use crate::network::{LaneEndpoint, RouterLanInterface};
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::records::{RouterReason, TaggedShape};
use crate::tunnel::PacketTunnel;

impl Underlay {
    /// Whether a router takes a frame: on a LAN, those for its own address and for groups.
    pub(crate) fn is_for_router(&self, lane: Lane, frame: &[u8]) -> bool {
        self.network.station(lane).is_none_or(|station| {
            let view = ethernet::EthernetFrame::parse(frame);
            view.is_ok_and(|view| view.is_multicast() || view.destination() == station.mac)
        })
    }

    /// Whether a router may send a packet on: it is for its address, and no neighbour discovery.
    #[inline]
    pub(crate) fn may_forward(&self, lane: Lane, packet: &ParsedPacket<'_>) -> bool {
        self.network.station(lane).is_none()
            || self.is_for_router(lane, packet.frame)
                && self.read_resolution(lane, packet.frame, Some(packet)).is_none()
    }

    /// Reads an ARP or neighbour discovery message that has come by a lane; `None`: the frame is another.
    /// `packet` is the frame as an IP packet, if it is one.
    pub(crate) fn read_resolution(
        &self,
        lane: Lane,
        frame: &[u8],
        packet: Option<&ParsedPacket<'_>>,
    ) -> Option<ResolutionOutcome> {
        ResolutionOutcome::of(self.network.station(lane)?, frame, packet)
    }

    /// Notes what a message that has come by a lane says; the packets that waited for that.
    pub(crate) fn learn(
        &mut self,
        now: Time,
        lane: Lane,
        said: &ResolutionOutcome,
    ) -> VecDeque<EmulatedPacket> {
        let out = lane.reverse();
        let (Some((address, mac)), LaneEndpoint::Lan(lan)) = (said.found, self.network.end(out))
        else {
            return VecDeque::new();
        };
        let is_group = mac[0] & 1 != 0;
        if is_group || !self.network.is_on(lan, address) {
            return VecDeque::new();
        }
        let waiting = self.neighbours.behind(out).learn(now, address, mac, said.is_own);
        self.arm_questions(out);
        waiting
    }

    /// Puts a router's packet that waited for a neighbour on a lane.
    pub(crate) fn send_found(
        &mut self,
        now: Time,
        lane: Lane,
        said: &ResolutionOutcome,
        mut packet: EmulatedPacket,
    ) {
        packet.times = packet.times.map(|time| time.max(now));
        let (frame, _) = packet.settled(&mut self.lanes.work.pool);
        if let Some((_, mac)) = said.found {
            ethernet::set_addresses(frame, mac, said.station.mac);
        }
        self.depart(now, said.station.router, lane, packet);
    }

    /// The Ethernet addresses of a router's frame that enters `lane`, where that needs no question;
    /// `None`: it does.
    #[inline]
    pub(crate) fn next_addresses(
        &self,
        now: Time,
        lane: Lane,
        info: &IpPacketSummary,
        rewrite: &PacketRewrite,
        tunnel: Option<&PacketTunnel>,
    ) -> Option<NextAddresses> {
        let LaneEndpoint::Lan(lan) = self.network.end(lane) else {
            return Some(NextAddresses(None));
        };
        let station = self.network.station(lane.reverse())?;
        let address = self.neighbour_of(lan, info, rewrite, tunnel)?;
        let mac = self.neighbours.fresh(now, lane, address)?;
        Some(NextAddresses(Some((mac, station.mac))))
    }

    /// Puts a router's packet on a lane; on a LAN, as soon as its next receiver has been found.
    pub(crate) fn hand_on(
        &mut self,
        now: Time,
        id: RouterId,
        lane: Lane,
        info: &IpPacketSummary,
        rewrite: &PacketRewrite,
        mut packet: EmulatedPacket,
    ) {
        let (LaneEndpoint::Lan(lan), Some(station)) =
            (self.network.end(lane), self.network.station(lane.reverse()))
        else {
            return self.depart(now, id, lane, packet);
        };
        let tunnel = packet.tunnel.as_ref();
        let Some(address) = self.neighbour_of(lan, info, rewrite, tunnel) else {
            return self.drop_refused(id, RouterReason::NoRoute, packet);
        };
        let answer = self.neighbours.behind(lane).find(now, address);
        if answer.ask {
            self.ask(now, lane, station, address);
        }
        if let Some(mac) = answer.mac {
            let (frame, _) = packet.settled(&mut self.lanes.work.pool);
            ethernet::set_addresses(frame, mac, station.mac);
            return self.depart(now, id, lane, packet);
        }
        let displaced = self.neighbours.behind(lane).wait(address, packet);
        self.arm_questions(lane);
        if let Some(displaced) = displaced {
            self.drop_refused(id, RouterReason::NoRoute, displaced);
        }
    }

    /// Asks again for what is behind a lane; the packets for which that has been done long enough,
    /// with the router that gives them up.
    pub(crate) fn ask_again(
        &mut self,
        now: Time,
        lane: Lane,
    ) -> Option<(RouterId, Vec<EmulatedPacket>)> {
        let station = self.network.station(lane.reverse())?;
        let (again, lost) = self.neighbours.known_behind(lane)?.due(now);
        for address in again {
            self.ask(now, lane, station, address);
        }
        Some((station.router, lost))
    }

    /// Sends a message of a router's own on a lane that enters a LAN.
    pub(crate) fn say(&mut self, now: Time, lane: Lane, message: &ResolutionFrame) {
        let work = &mut self.lanes.work;
        let Some(mut buf) = work.pool.take(ResolutionFrame::LEN) else {
            // It was never written, so it has no length.
            let tag = work.recorder.tag_without_flow();
            let unwritten = TaggedShape { tag: &tag, shape: &PacketTrainShape::single(0) };
            return self.lanes.offer_without_memory(now, lane, unwritten, &[]);
        };
        let Some(len) = message.write(&mut buf) else { return work.pool.give(buf) };
        buf.truncate(len);
        let packet = self.lanes.own_packet(now, buf, vnet::VirtioNetHeader::default());
        self.lanes.offer(now, lane, packet);
    }

    /// Sets the time of the next question behind a lane.
    pub(crate) fn arm_questions(&mut self, lane: Lane) {
        self.lanes.arm_questions(lane, self.neighbours.next(lane));
    }

    /// The next hop on a LAN for a router's packet: found as its route was, by the source that it
    /// had and the destination that it has now.
    fn neighbour_of(
        &self,
        lan: LanId,
        info: &IpPacketSummary,
        rewrite: &PacketRewrite,
        tunnel: Option<&PacketTunnel>,
    ) -> Option<IpAddr> {
        let Some(tunnel) = tunnel else {
            return self.network.neighbour(lan, Some(info.source), rewrite.destination(info));
        };
        let end = self.network.address_of_mouth(tunnel.end, info.destination)?;
        self.network.neighbour(lan, None, end)
    }

    fn ask(&mut self, now: Time, lane: Lane, station: RouterLanInterface, address: IpAddr) {
        if let Some(question) = ResolutionFrame::question(station, address) {
            self.say(now, lane, &question);
        }
        self.arm_questions(lane);
    }
}

/// Destination and source in an Ethernet header; off LANs they stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextAddresses(Option<([u8; 6], [u8; 6])>);

impl NextAddresses {
    pub(crate) fn write(self, frame: &mut [u8]) {
        if let Some((destination, source)) = self.0 {
            ethernet::set_addresses(frame, destination, source);
        }
    }
}
