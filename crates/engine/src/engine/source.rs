//! The model of paths: packets that leave their source, and flows that come and go.

use windtunnel_model::profile::Setting;
use windtunnel_model::{Lane, LinkPatch, PortId, Rate, Span, Time};
use windtunnel_routing::Target;
use windtunnel_sharing::{Appetite, FlowId, Terms, Use};
use windtunnel_wire::flow::Key;
use windtunnel_wire::packet::Info;
use windtunnel_wire::vnet;

use super::Engine;
use crate::chain::{Chain, Pacing, Site};
use crate::counters::DropReason;
use crate::element::Luck;
use crate::network::End;
use crate::packet::{Packet, Shape};
use crate::paths::ledger::Crossing;
use crate::paths::traffic::{PERIOD, Sign};
use crate::paths::{Way, shaper_profile};

/// Packets in the queue that show that a flow wants more than was thought.
const CROWD: u64 = 4;

impl Engine {
    /// Puts a packet of a node into the queue at its source; `false` where it has none, so that it
    /// enters its first lane at once.
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
        for (index, chain) in self.chains[..paths.lanes()].iter().enumerate() {
            paths.division.set_capacity(Lane::from_index(index), chain.profile().rate);
        }
        for number in 0..paths.ways() {
            let way = paths.way(number);
            let lanes = self.trace(way.port, way.target, Some(way.source), way.hash);
            let bottleneck = self.bottleneck(&lanes);
            paths.lead(number, lanes, bottleneck);
        }
        for (key, id, way) in paths.traffic.running() {
            let way = paths.way(way);
            let lanes = self.trace(way.port, way.target, Some(key.source), key.hash64());
            let terms = self.terms(&lanes, paths.traffic.flow(id).map(|it| &it.appetite));
            paths.renew(id, lanes, terms);
        }
        self.retrace_remote(&mut paths);
        paths.divide();
        let (lanes, ways) = (0..paths.lanes(), 0..paths.ways());
        self.paths = Some(paths);
        self.set_terms(now, lanes);
        for number in ways.clone() {
            self.set_rate(now, number);
        }
        for number in ways {
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
                way.lanes = self.trace(port, target, Some(way.source), way.hash);
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
        let luck = Luck { seed: 0, link: "", direction: lane.direction, part: 0 };
        let site = Site {
            ends_at_node: false,
            on_lan: false,
            routed: true,
            of_paths: false,
            is_away: false,
        };
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
        let last = shaper.next_number() + u64::from(shape.count) - 1;
        let has_company = paths.way(way).has_company();
        if let Some(flow) = paths.traffic.meet(&key, sign) {
            flow.bring(bytes, last);
            let crowds = || !has_company || flow.exceeds(paths.division.rate(flow.id));
            if crowded && flow.runs && flow.appetite.demand().is_some() && crowds() {
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
        let flow = paths.traffic.add(now, key, sign, way);
        flow.bring(bytes, last);
        if flow.runs {
            let id = flow.id;
            self.start_flow(way, id, &key);
            self.divide(now);
        }
    }

    /// Lets a flow take part from now on.
    fn start_flow(&mut self, number: usize, id: FlowId, key: &Key) {
        let Some(paths) = &self.paths else { return };
        let (way, hash) = (paths.way(number), key.hash64());
        let lanes = self.trace(way.port, way.target, Some(key.source), hash);
        let terms = self.terms(&lanes, None);
        if let Some(paths) = &mut self.paths {
            paths.start(number, (id, hash), lanes, terms);
        }
    }

    fn measure_flow(&mut self, key: &Key) {
        let Some(paths) = &mut self.paths else { return };
        let Some(flow) = paths.traffic.get_mut(key) else { return };
        let (id, number, bytes, last) = (flow.id, flow.way, flow.bytes, flow.last);
        let waits = self.chains[paths.shaper(number)].waits_for(last);
        let has_company = paths.way(number).has_company();
        let share = paths.division.rate(id);
        let Some(flow) = paths.traffic.get_mut(key) else { return };
        if flow.has_ended(waits) {
            paths.stop(number, id);
            paths.traffic.remove(key);
            return;
        }
        let idles = flow.idles(share);
        flow.bytes = 0;
        if !flow.runs {
            flow.runs = true;
            return self.start_flow(number, id, key);
        }
        let before = flow.appetite.demand();
        // What waits wants to go as well; in company it may wait for others though.
        let tells = !waits || idles && has_company;
        if tells && flow.appetite.observe(Use { bytes, over: PERIOD, share }) != before {
            self.renew_terms(id);
        }
    }

    /// Tells the shares what a flow wants now.
    fn renew_terms(&mut self, id: FlowId) {
        let Some(paths) = &self.paths else { return };
        let Some(flow) = paths.traffic.flow(id) else { return };
        let terms = self.terms(paths.division.lanes(id), Some(&flow.appetite));
        if let Some(paths) = &mut self.paths {
            paths.change(id, terms);
        }
    }

    /// Gives every way the rate that it may have now.
    pub(super) fn divide(&mut self, now: Time) {
        let Some(paths) = &mut self.paths else { return };
        let (lanes, ways) = paths.divide();
        self.set_terms(now, lanes);
        for number in ways {
            self.set_rate(now, number);
        }
    }

    /// Tells the ledger what holds for lanes now.
    fn set_terms(&mut self, now: Time, lanes: impl IntoIterator<Item = usize>) {
        let Some(paths) = &self.paths else { return };
        for lane in lanes {
            let terms = paths.terms_of(lane, self.chains[lane].profile().rate);
            self.work.ledger.set(now, lane, terms);
        }
    }

    fn set_rate(&mut self, now: Time, number: usize) {
        let Some(paths) = &self.paths else { return };
        let index = paths.shaper(number);
        let rate = paths.rate(number, |lane| self.chains[lane.index()].profile().rate);
        let way = paths.way(number);
        let pacing = way.bottleneck.map(|(_, line)| {
            let mut after = Span::ZERO;
            let cross = |lane: &Lane| {
                let crossing = Crossing { lane: lane.index(), after };
                after = after + self.chains[lane.index()].profile().latency;
                crossing
            };
            let lanes = way.lanes.iter().map(cross).collect();
            Pacing::new(paths.share(number).map(|share| share.min(line)), line, lanes)
        });
        let shaper = &mut self.chains[index];
        shaper.set_pacing(pacing);
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
        let counters = &mut self.chains[lane.index()].counters;
        for reason in DropReason::ALL {
            let dropped = after[reason] - before[reason];
            counters.offered_packets += dropped;
            counters.offered_bytes += dropped * each;
            counters.dropped[reason] += dropped;
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
    pub(super) fn trace(
        &mut self,
        port: PortId,
        target: Target,
        source: Option<std::net::IpAddr>,
        hash: u64,
    ) -> Vec<Lane> {
        let mut lanes = vec![self.network.lane_of(port)];
        while let Some(End::Router(id)) = lanes.last().map(|lane| self.network.end(*lane)) {
            // Routes that change may make loops.
            if target == Target::Router(id) || lanes.len() > self.vertices.len() {
                break;
            }
            let Some(next) = self.network.next_hop(id, source, target, || hash) else {
                break;
            };
            lanes.push(next);
        }
        lanes
    }
}
