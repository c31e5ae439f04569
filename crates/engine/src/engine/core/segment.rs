//! What happens on LANs: frames through a segment, and routers that find their neighbours there.

use core::net::IpAddr;

use windtunnel_model::{LanId, Lane, RouterId, Time};
use windtunnel_wire::arp::{self, ArpPacket};
use windtunnel_wire::ethernet;
use windtunnel_wire::icmp::{self, NEIGHBOUR_FRAME_LEN, Neighbour};
use windtunnel_wire::packet::Info;

use super::Core;
use crate::counters::DropReason;
use crate::lan::SwitchEgress;
use crate::middlebox::Changes;
use crate::network::{LaneEndpoint, RouterLanInterface};
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::records::{RouterReason, TaggedShape};
use crate::timer::LaneActivity;
use crate::tunnel::PacketTunnel;

/// Room for a question or an answer.
const MESSAGE_LEN: usize = NEIGHBOUR_FRAME_LEN;
const BROADCAST: [u8; 6] = [0xff; 6];

impl Core {
    /// Takes a frame through a segment to the lanes by which it leaves.
    pub(super) fn switch(&mut self, now: Time, lan: LanId, came: Lane, mut packet: EmulatedPacket) {
        packet.came_by = Some(came);
        match self.segments[lan.index()].pass(now, came, packet.frame()) {
            SwitchEgress::None => packet.discard(&mut self.work.pool),
            SwitchEgress::One(lane) => self.leave(now, lan, came, lane, packet),
            SwitchEgress::Others => {
                let mut position = 0;
                while let Some(lane) = self.segments[lan.index()].attachment(position) {
                    position += 1;
                    if lane != came.reverse() {
                        self.leave_copy(now, lan, came, lane, &mut packet);
                    }
                }
                packet.discard(&mut self.work.pool);
            }
        }
    }

    /// The lane by which alone a frame leaves a segment; `None`: it is not one, or a partition cuts
    /// it.
    pub(super) fn only_outlet(
        &mut self,
        now: Time,
        lan: LanId,
        came: Lane,
        frame: &[u8],
    ) -> Option<Lane> {
        let segment = &mut self.segments[lan.index()];
        match segment.pass(now, came, frame) {
            SwitchEgress::One(lane) if !segment.parts(came, lane) => Some(lane),
            _ => None,
        }
    }

    /// Whether a router takes a frame: on a LAN, those for its own address and for groups.
    pub(super) fn is_for_router(&self, lane: Lane, frame: &[u8]) -> bool {
        self.network.station(lane).is_none_or(|station| {
            let view = ethernet::EthernetFrame::parse(frame);
            view.is_ok_and(|view| view.is_multicast() || view.destination() == station.mac)
        })
    }

    /// Takes ARP and neighbour discovery messages; whether the frame was one.
    pub(super) fn take_resolution(&mut self, now: Time, lane: Lane, frame: &[u8]) -> bool {
        let Some(station) = self.network.station(lane) else { return false };
        if let Ok(message) = ArpPacket::parse(frame) {
            self.take_arp(now, lane, station, &message);
            return true;
        }
        if let Some(neighbour) = Neighbour::parse(frame) {
            self.take_neighbour(now, lane, station, frame, &neighbour);
            return true;
        }
        false
    }

    /// Writes the Ethernet addresses of a router's frame that enters `lane`, where that needs no
    /// question.
    pub(super) fn address_next(
        &self,
        now: Time,
        lane: Lane,
        frame: &mut [u8],
        tunnel: Option<&PacketTunnel>,
    ) -> bool {
        let LaneEndpoint::Lan(lan) = self.network.end(lane) else { return true };
        let Some(station) = self.network.station(lane.reverse()) else { return false };
        let mac = neighbour_of(self, lan, frame, tunnel)
            .and_then(|address| self.neighbours.get(&lane)?.fresh(now, address));
        mac.is_some_and(|mac| ethernet::set_addresses(frame, mac, station.mac))
    }

    /// The Ethernet addresses of a middlebox's frame that enters `lane` with these changes, where that
    /// needs no question; `None`: it does.
    pub(super) fn next_addresses(
        &self,
        now: Time,
        lane: Lane,
        info: &Info,
        changes: &Changes,
    ) -> Option<NextAddresses> {
        let LaneEndpoint::Lan(lan) = self.network.end(lane) else {
            return Some(NextAddresses(None));
        };
        let station = self.network.station(lane.reverse())?;
        let destination = changes.destination(info);
        let address = self.network.neighbour(lan, Some(info.source), destination)?;
        let mac = self.neighbours.get(&lane)?.fresh(now, address)?;
        Some(NextAddresses(Some((mac, station.mac))))
    }

    /// Puts a router's packet on a lane; on a LAN, as soon as its next receiver has been found.
    pub(super) fn hand_on(
        &mut self,
        now: Time,
        id: RouterId,
        lane: Lane,
        mut packet: EmulatedPacket,
    ) {
        let (LaneEndpoint::Lan(lan), Some(station)) =
            (self.network.end(lane), self.network.station(lane.reverse()))
        else {
            return self.depart(now, id, lane, packet);
        };
        let tunnel = packet.tunnel.as_ref();
        let Some(address) = neighbour_of(self, lan, packet.frame(), tunnel) else {
            self.routers[id.index()].no_route += u64::from(packet.shape.count);
            self.work.recorder.note_refusal(RouterReason::NoRoute, &packet);
            return packet.discard(&mut self.work.pool);
        };
        let answer = self.neighbours.entry(lane).or_default().find(now, address);
        if answer.ask {
            self.ask(now, lane, station, address);
        }
        if let Some(mac) = answer.mac {
            let (frame, _) = packet.settled(&mut self.work.pool);
            ethernet::set_addresses(frame, mac, station.mac);
            return self.depart(now, id, lane, packet);
        }
        let displaced = self.neighbours.entry(lane).or_default().wait(address, packet);
        self.arm_questions(lane);
        if let Some(displaced) = displaced {
            self.routers[id.index()].no_route += u64::from(displaced.shape.count);
            self.work.recorder.note_refusal(RouterReason::NoRoute, &displaced);
            displaced.discard(&mut self.work.pool);
        }
    }

    /// Asks again, and gives up what was asked for long enough.
    pub(super) fn ask_again(&mut self, now: Time, lane: Lane) {
        let Some(station) = self.network.station(lane.reverse()) else { return };
        let Some(neighbours) = self.neighbours.get_mut(&lane) else { return };
        let (again, lost) = neighbours.due(now);
        for address in again {
            self.ask(now, lane, station, address);
        }
        for packet in lost {
            let counters = &mut self.routers[station.router.index()];
            counters.no_route += u64::from(packet.shape.count);
            self.work.recorder.note_refusal(RouterReason::NoRoute, &packet);
            if packet.came_by.is_some() {
                self.report(now, station.router, icmp::IcmpErrorKind::HostUnreachable, &packet);
            }
            packet.discard(&mut self.work.pool);
        }
        self.arm_questions(lane);
    }

    /// Puts a packet on a lane; one of another sender has been forwarded then.
    fn depart(&mut self, now: Time, id: RouterId, lane: Lane, packet: EmulatedPacket) {
        if packet.came_by.is_some() {
            self.routers[id.index()].forwarded += u64::from(packet.shape.count);
        }
        self.offer(now, lane, packet);
    }

    fn leave(&mut self, now: Time, lan: LanId, came: Lane, lane: Lane, packet: EmulatedPacket) {
        if self.segments[lan.index()].parts(came, lane) {
            let chain = &mut self.chains[lane.index()];
            let (reason, time) = (DropReason::Partition, packet.times.first);
            let recorder = &mut self.work.recorder;
            chain.offer_in_vain(reason, time, packet.tagged(), packet.frame(), recorder);
            return packet.discard(&mut self.work.pool);
        }
        self.offer(now, lane, packet);
    }

    fn leave_copy(
        &mut self,
        now: Time,
        lan: LanId,
        came: Lane,
        lane: Lane,
        packet: &mut EmulatedPacket,
    ) {
        if let Some(copy) = packet.duplicate(&mut self.work.pool) {
            return self.leave(now, lan, came, lane, copy);
        }
        let (chain, work) = (&mut self.chains[lane.index()], &mut self.work);
        let (time, recorder) = (packet.times.first, &mut work.recorder);
        chain.offer_without_memory(time, packet.tagged(), packet.frame(), recorder);
    }

    fn take_arp(
        &mut self,
        now: Time,
        lane: Lane,
        station: RouterLanInterface,
        message: &ArpPacket,
    ) {
        let (mac, address) = message.sender;
        let asked = station.v4 == Some(message.target.1);
        self.learn(now, lane, address.into(), mac, asked);
        if asked && message.operation == arp::REQUEST {
            let answer = ArpPacket {
                operation: arp::REPLY,
                sender: (station.mac, message.target.1),
                target: message.sender,
            };
            self.say(now, lane.reverse(), |buf| answer.write(mac, buf));
        }
    }

    fn take_neighbour(
        &mut self,
        now: Time,
        lane: Lane,
        station: RouterLanInterface,
        frame: &[u8],
        message: &Neighbour,
    ) {
        let asked = message.asks && station.v6 == Some(message.target);
        let about = if message.asks { message.source } else { message.target };
        if let Some(mac) = message.mac {
            self.learn(now, lane, about.into(), mac, asked);
        }
        if asked {
            let to = ethernet::EthernetFrame::parse(frame).map_or(BROADCAST, |view| view.source());
            let to = message.mac.unwrap_or(to);
            self.say(now, lane.reverse(), |buf| message.write_answer(station.mac, to, buf));
        }
    }

    /// Notes where an address is, and sends what waited for that.
    fn learn(&mut self, now: Time, lane: Lane, address: IpAddr, mac: [u8; 6], unasked: bool) {
        let out = lane.reverse();
        let LaneEndpoint::Lan(lan) = self.network.end(out) else { return };
        let Some(station) = self.network.station(lane) else { return };
        let is_group = mac[0] & 1 != 0;
        if is_group || !self.network.is_on(lan, address) {
            return;
        }
        let neighbours = self.neighbours.entry(out).or_default();
        let waiting = neighbours.learn(now, address, mac, unasked);
        self.arm_questions(out);
        for mut packet in waiting {
            packet.times = packet.times.map(|time| time.max(now));
            let (frame, _) = packet.settled(&mut self.work.pool);
            ethernet::set_addresses(frame, mac, station.mac);
            self.depart(now, station.router, out, packet);
        }
    }

    fn ask(&mut self, now: Time, lane: Lane, station: RouterLanInterface, address: IpAddr) {
        match (address, station.v4, station.v6) {
            (IpAddr::V4(target), Some(own), _) => {
                let question = ArpPacket {
                    operation: arp::REQUEST,
                    sender: (station.mac, own),
                    target: ([0; 6], target),
                };
                self.say(now, lane, |buf| question.write(BROADCAST, buf));
            }
            (IpAddr::V6(target), _, Some(own)) => {
                let write =
                    |buf: &mut [u8]| Neighbour::write_solicitation(own, station.mac, target, buf);
                self.say(now, lane, write);
            }
            _ => {}
        }
        self.arm_questions(lane);
    }

    /// Sends a message of a router's own on a lane that enters a LAN.
    fn say(&mut self, now: Time, lane: Lane, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        let Some(mut buf) = self.work.pool.take(MESSAGE_LEN) else {
            // It was never written, so it has no length.
            let recorder = &mut self.work.recorder;
            let tag = recorder.tag_without_flow();
            let chain = &mut self.chains[lane.index()];
            let unwritten = TaggedShape { tag: &tag, shape: &PacketTrainShape::single(0) };
            return chain.offer_without_memory(now, unwritten, &[], recorder);
        };
        let Some(len) = write(&mut buf) else { return self.work.pool.give(buf) };
        buf.truncate(len);
        let packet = self.own_packet(now, buf);
        self.offer(now, lane, packet);
    }

    fn arm_questions(&mut self, lane: Lane) {
        let next = self.neighbours.get(&lane).and_then(crate::neighbours::Neighbours::next);
        if let (Some(at), Ok(index)) = (next, u32::try_from(lane.index())) {
            let alarms = &mut self.chains[lane.index()].alarms;
            alarms.set(&mut self.work.timers, index, LaneActivity::Ask, at);
        }
    }
}

/// Destination and source in an Ethernet header; off LANs they stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextAddresses(Option<([u8; 6], [u8; 6])>);

impl NextAddresses {
    pub(super) fn write(self, frame: &mut [u8]) {
        if let Some((destination, source)) = self.0 {
            ethernet::set_addresses(frame, destination, source);
        }
    }
}

/// The next hop on a LAN for a router's frame.
fn neighbour_of(
    core: &Core,
    lan: LanId,
    frame: &[u8],
    tunnel: Option<&PacketTunnel>,
) -> Option<IpAddr> {
    let info = Info::parse(frame).ok()?;
    let Some(tunnel) = tunnel else {
        return core.network.neighbour(lan, Some(info.source), info.destination);
    };
    let end = core.network.address_of_mouth(tunnel.end, info.destination)?;
    core.network.neighbour(lan, None, end)
}
