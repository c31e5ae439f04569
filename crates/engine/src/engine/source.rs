//! The model of paths: packets that leave their source, and flows that come and go.

use windtunnel_model::profile::Setting;
use windtunnel_model::routing::Target;
use windtunnel_model::{Lane, LinkPatch, PortId, Rate, Span, Time};
use windtunnel_sharing::{Appetite, FlowId, Terms, Use};
use windtunnel_wire::flow::Key;
use windtunnel_wire::packet::Info;
use windtunnel_wire::vnet;

use super::Engine;
use crate::chain::{Chain, Site};
use crate::counters::DropReason;
use crate::element::Luck;
use crate::network::End;
use crate::packet::{Packet, Shape};
use crate::paths::traffic::{PERIOD, Sign};
use crate::paths::{Paths, Way, shaper_profile};

/// Packets in the queue that show that a flow wants more than was thought.
const CROWD: u64 = 4;

impl Engine {
    /// Puts a packet of a node into the queue at its source; `false` where it has none, so that it enters
    /// its first lane at once.
    pub(super) fn queue_at_source(
        &mut self,
        now: Time,
        port: PortId,
        (vnet, shape): (vnet::Header, Shape),
        frame: &[u8],
    ) -> bool {
        let Ok(info) = Info::parse(frame) else { return false };
        let Some(target) = self.network.target(info.destination) else { return false };
        let key = Key::new(&info, frame);
        let Some(way) = self.way(now, port, target, &info, &key) else { return false };
        self.see(now, way, key, Sign::of(&info, frame), &shape);
        let Some(paths) = &self.paths else { return false };
        let shaper = paths.shaper(way);
        let first = paths.way(way).lanes[0];
        let Some(buf) = self.work.pool.copy(frame) else {
            self.chains[first.index()].offer_without_memory(&shape, frame);
            self.note_memory(now, first);
            return true;
        };
        let mut packet = Packet::new(buf, vnet, shape, now, &mut self.work.pool);
        packet.origin = Some(port);
        self.wait_at_source(now, way, shaper, packet);
        true
    }

    /// Lets a packet that has left its source pass the first lane of its way.
    pub(super) fn leave_source(&mut self, way: usize, packet: Packet) {
        let Some(first) = self.paths.as_ref().map(|paths| paths.way(way).lanes[0]) else { return };
        let at = packet.times.first;
        self.offer(at, first, packet);
    }

    /// The end of a period: who has used what.
    pub(super) fn take_measure(&mut self, now: Time) {
        if let Some(paths) = &mut self.paths {
            let taken = paths.traffic.take(now);
            debug_assert!(taken.is_some(), "it is called at the end of a period");
        }
        let keys = self.paths.as_ref().map_or_else(Vec::new, |paths| paths.traffic.keys());
        for key in keys {
            self.measure_flow(&key);
        }
        self.divide(now);
    }

    /// Takes over what changed of lanes and routes.
    pub(super) fn follow_network(&mut self, now: Time) {
        let Some(mut paths) = self.paths.take() else { return };
        for (index, chain) in (0..).zip(&self.chains[..paths.lanes()]) {
            let changed = paths.shares.set_capacity(index, chain.profile().rate);
            debug_assert!(changed.is_ok(), "rates of links are bounded");
        }
        for number in 0..paths.ways() {
            let way = paths.way(number);
            let lanes = self.trace(way.port, way.target, way.source, way.hash);
            let bottleneck = self.bottleneck(&lanes);
            let way = paths.way_mut(number);
            (way.lanes, way.bottleneck) = (lanes, bottleneck);
        }
        for key in paths.traffic.keys() {
            let Some(flow) = paths.traffic.get_mut(&key) else { continue };
            let (id, number, runs) = (flow.id, flow.way, flow.runs);
            let way = paths.way(number);
            let lanes = self.trace(way.port, way.target, key.source, key.hash64());
            let terms = self.terms(&lanes, paths.traffic.flow(id).map(|flow| &flow.appetite));
            let Some(flow) = paths.traffic.get_mut(&key) else { continue };
            let before = std::mem::replace(&mut flow.lanes, lanes.clone());
            if runs {
                paths.stop(number, id, &before);
                paths.start(number, id, &lanes, terms);
            }
        }
        self.paths = Some(paths);
        self.divide(now);
        for number in 0..self.paths.as_ref().map_or(0, Paths::ways) {
            self.fit_queue(now, number);
        }
    }

    /// The way of a packet, if any of its lanes has a rate.
    fn way(
        &mut self,
        now: Time,
        port: PortId,
        target: Target,
        info: &Info,
        key: &Key,
    ) -> Option<usize> {
        let known = self.paths.as_ref()?.find(port, target);
        let number = match known {
            Some(number) => number,
            None => {
                let mut way = Way::new(port, target, info.source, key.hash64());
                way.lanes = self.trace(port, target, way.source, way.hash);
                way.bottleneck = self.bottleneck(&way.lanes);
                let number = self.paths.as_mut()?.add(way);
                self.add_shaper(now, number);
                number
            }
        };
        self.paths.as_ref()?.way(number).bottleneck.map(|_| number)
    }

    fn add_shaper(&mut self, now: Time, number: usize) {
        let Some(paths) = &self.paths else { return };
        let index = paths.shaper(number);
        debug_assert_eq!(index, self.chains.len(), "shapers are added in order");
        let way = paths.way(number);
        let profile = way.bottleneck.map(|(lane, _)| self.chains[lane.index()].profile().clone());
        let lane = Lane::from_index(index);
        let luck = Luck { seed: 0, link: "", direction: lane.direction };
        let site = Site { ends_at_node: false, on_lan: false, routed: true, of_paths: false };
        let profile = shaper_profile(profile.as_ref());
        self.chains.push(Chain::new(lane, &luck, &profile, site, &self.work.book));
        self.set_rate(now, number);
    }

    /// Counts a packet for its flow, which may be new, or want more than was thought.
    fn see(&mut self, now: Time, way: usize, key: Key, sign: Sign, shape: &Shape) {
        let Some(paths) = &mut self.paths else { return };
        let shaper = &self.chains[paths.shaper(way)];
        let bytes = shape.charge(shaper.profile().effective_overhead().0);
        let crowded = shaper.counters.queue_packets >= CROWD;
        if let Some(flow) = paths.traffic.count(&key, sign, bytes) {
            if crowded && flow.runs && flow.appetite.demand().is_some() {
                flow.appetite = Appetite::new();
                let id = flow.id;
                self.renew_terms(id);
                self.divide(now);
            }
            return;
        }
        if !sign.begins() {
            return;
        }
        let (port, target) = (paths.way(way).port, paths.way(way).target);
        let lanes = self.trace(port, target, key.source, key.hash64());
        let terms = self.terms(&lanes, None);
        let Some(paths) = &mut self.paths else { return };
        let flow = paths.traffic.add(now, key, sign, way, lanes.clone());
        flow.bytes = bytes;
        let (id, runs) = (flow.id, flow.runs);
        if runs {
            paths.start(way, id, &lanes, terms);
            self.divide(now);
        }
    }

    fn measure_flow(&mut self, key: &Key) {
        let Some(paths) = &mut self.paths else { return };
        let Some(flow) = paths.traffic.get_mut(key) else { return };
        let (id, way, bytes) = (flow.id, flow.way, flow.bytes);
        let waits =
            self.chains[self.paths.as_ref().map_or(0, |paths| paths.shaper(way))].in_lane() > 0;
        let Some(paths) = &mut self.paths else { return };
        let share = paths.share(id).filter(|share| *share > 0);
        let Some(flow) = paths.traffic.get_mut(key) else { return };
        if flow.has_ended(waits) {
            let lanes = std::mem::take(&mut flow.lanes);
            paths.stop(way, id, &lanes);
            paths.traffic.remove(key);
            return;
        }
        flow.bytes = 0;
        if !flow.runs {
            flow.runs = true;
            let lanes = flow.lanes.clone();
            let terms = self.terms(&lanes, None);
            if let Some(paths) = &mut self.paths {
                paths.start(way, id, &lanes, terms);
            }
            return;
        }
        let share = share.and_then(Rate::from_bits_per_second);
        let before = flow.appetite.demand();
        // What waits in its queue wants to go as well.
        if !waits && flow.appetite.observe(Use { bytes, over: PERIOD, share }) != before {
            self.renew_terms(id);
        }
    }

    /// Tells the shares what a flow wants now.
    fn renew_terms(&mut self, id: FlowId) {
        let Some(flow) = self.paths.as_ref().and_then(|paths| paths.traffic.flow(id)) else {
            return;
        };
        let terms = self.terms(&flow.lanes, Some(&flow.appetite));
        if let Some(paths) = &mut self.paths {
            let changed = paths.shares.change(id, terms);
            debug_assert!(changed.is_ok() || paths.share(id).is_none(), "it runs");
        }
    }

    /// Gives every way the rate that it may have now.
    fn divide(&mut self, now: Time) {
        let Some(paths) = &mut self.paths else { return };
        paths.divide();
        for number in 0..paths.ways() {
            self.set_rate(now, number);
        }
    }

    fn set_rate(&mut self, now: Time, number: usize) {
        let Some(paths) = &self.paths else { return };
        let index = paths.shaper(number);
        let rate = paths.rate(number, |lane| self.chains[lane.index()].profile().rate);
        let shaper = &mut self.chains[index];
        if shaper.profile().rate != rate {
            let rate = rate.map_or(Setting::Default, Setting::To);
            let patch = LinkPatch { rate: Some(rate), ..LinkPatch::default() };
            shaper.patch(now, &patch, &mut self.work);
        }
    }

    /// Gives a way's queue the properties of its bottleneck.
    fn fit_queue(&mut self, now: Time, number: usize) {
        let Some(paths) = &self.paths else { return };
        let Some((lane, _)) = paths.way(number).bottleneck else { return };
        let profile = shaper_profile(Some(self.chains[lane.index()].profile()));
        let patch = LinkPatch {
            queue: profile.queue.map(Setting::To),
            overhead: profile.overhead.map(Setting::To),
            ..LinkPatch::default()
        };
        self.chains[paths.shaper(number)].patch(now, &patch, &mut self.work);
    }

    /// Offers a packet to its way's queue; what that drops counts as dropped at the bottleneck.
    fn wait_at_source(&mut self, now: Time, way: usize, shaper: usize, packet: Packet) {
        let chain = &mut self.chains[shaper];
        let (each, before) = (u64::from(packet.shape.each), chain.counters.dropped);
        chain.offer(now, packet, &mut self.work);
        let after = chain.counters.dropped;
        let bottleneck = self.paths.as_ref().and_then(|paths| paths.way(way).bottleneck);
        let Some((lane, _)) = bottleneck.filter(|_| after != before) else { return };
        let starved = after[DropReason::Memory] > before[DropReason::Memory];
        let counters = &mut self.chains[lane.index()].counters;
        for reason in DropReason::ALL {
            let dropped = after[reason] - before[reason];
            counters.offered_packets += dropped;
            counters.offered_bytes += dropped * each;
            counters.dropped[reason] += dropped;
        }
        if starved {
            self.note_memory(now, lane);
        }
    }

    fn terms(&self, lanes: &[Lane], appetite: Option<&Appetite>) -> Terms {
        let latency = |lane: Lane| self.chains[lane.index()].profile().latency;
        let there = lanes.iter().fold(Span::ZERO, |sum, lane| sum + latency(*lane));
        let rtt = lanes.iter().fold(there, |sum, lane| sum + latency(lane.reverse()));
        Terms { demand: appetite.and_then(Appetite::demand), ..Terms::new(rtt) }
    }

    fn bottleneck(&self, lanes: &[Lane]) -> Option<(Lane, Rate)> {
        let rate = |lane: &Lane| Some((*lane, self.chains[lane.index()].profile().rate?));
        lanes.iter().filter_map(rate).min_by_key(|(_, rate)| *rate)
    }

    /// The lanes that a packet would pass now.
    fn trace(
        &mut self,
        port: PortId,
        target: Target,
        source: std::net::IpAddr,
        hash: u64,
    ) -> Vec<Lane> {
        let mut lanes = vec![self.network.lane_of(port)];
        while let Some(End::Router(id)) = lanes.last().map(|lane| self.network.end(*lane)) {
            // Routes that change may make loops.
            if target == Target::Router(id) || lanes.len() > self.vertices.len() {
                break;
            }
            let Some(next) = self.network.next_hop(id, Some(source), target, || hash) else {
                break;
            };
            lanes.push(next);
        }
        lanes
    }
}
