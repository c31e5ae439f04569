//! Packets that leave their source, and flows that come and go.

use windtunnel_model::flow::FlowTerms;
use windtunnel_model::profile::PropertySetting;
use windtunnel_model::{DropReason, Lane, LinkPatch, PortId, Span, Time};
use windtunnel_sharing::{DemandEstimator, FlowId, FlowPeriodUsage};
use windtunnel_wire::flow::FiveTuple;
use windtunnel_wire::packet::ParsedPacket;

use super::traffic::{FlowSignal, PERIOD};
use super::virtual_clock::PathHop;
use super::{Bottleneck, PacketCourse, PathModel, ShapedPath, shaper_profile};
use crate::chain::{ElementChain, ElementChainRole, LaneLocation, Pacing};
use crate::departure::ImmediateDeparture;
use crate::element::RngKey;
use crate::engine::core::Core;
use crate::packet::{EmulatedPacket, EnteringFrame, PacketTrainShape};
use crate::records::{self, SOURCE_QUEUE};
use crate::underlay::LaneSet;

/// Packets in the queue that show that a flow wants more than was thought.
const BACKLOG_MIN: u64 = 4;

impl PathModel {
    /// Puts a packet of a node into the queue at its source, or where it has none, on its first
    /// lane at once.
    pub(crate) fn enter(
        &mut self,
        core: &mut Core,
        frame: EnteringFrame<'_>,
    ) -> Option<ImmediateDeparture> {
        let (now, port) = (core.now, frame.origin.port);
        let found = ParsedPacket::parse(frame.bytes).ok().and_then(|packet| {
            let (course, aim) = core.redirection().course(now, port, &packet)?;
            let key = FiveTuple::of(&packet);
            let path = self.path_to(core, now, port, course, &key)?;
            Some((path, aim, (key, FlowSignal::of(&packet))))
        });
        let Some((path, aim, (key, signal))) = found else {
            return core.enter(now, frame);
        };
        self.see(core, now, path, key, signal, &frame.shape);
        let mut packet = core.net.lanes.take_in(now, self.paths[path].lanes[0], &frame)?;
        packet.aim = aim;
        self.wait_at_source(core, now, path, packet);
        None
    }

    /// The end of a period: measures what each flow has used.
    pub(crate) fn take_measure(&mut self, core: &mut Core, now: Time) {
        let taken = self.traffic.take(now);
        debug_assert!(taken.is_some(), "it is called at the end of a period");
        for key in self.traffic.keys() {
            self.measure_flow(core, &key);
        }
        self.divide(core, now);
    }

    /// Takes over what changed of lanes and routes.
    pub(crate) fn follow(&mut self, core: &mut Core, now: Time) {
        for (index, chain) in core.net.lanes.chains.iter().enumerate() {
            self.allocation.set_capacity(Lane::from_index(index), chain.profile().rate);
        }
        for number in 0..self.paths.len() {
            let ShapedPath { port, course, source, hash, .. } = self.paths[number];
            let traced = core.net.network.trace(port, course, Some(source), hash);
            let bottleneck = core.net.lanes.bottleneck(&course, &traced);
            self.lead(number, traced.lanes, bottleneck);
        }
        for (key, id, path) in self.traffic.running() {
            let ShapedPath { port, course, .. } = self.paths[path];
            let lanes = core.net.network.trace(port, course, Some(key.source), key.hash64()).lanes;
            let terms = core.net.lanes.terms(&lanes, self.traffic.flow(id).map(|it| &it.estimator));
            self.renew(id, lanes, terms);
            self.announce(core, path, id, key.hash64());
        }
        self.retrace_remote(core);
        self.settle();
        self.set_terms(core, now, 0..self.lanes);
        for number in 0..self.paths.len() {
            self.set_rate(core, now, number);
        }
        for number in 0..self.paths.len() {
            self.fit_queue(core, now, number);
        }
    }

    /// The path of a packet, if any of its lanes has a rate.
    fn path_to(
        &mut self,
        core: &mut Core,
        now: Time,
        port: PortId,
        course: PacketCourse,
        key: &FiveTuple,
    ) -> Option<usize> {
        let number = self.find(port, course).unwrap_or_else(|| {
            let mut path = ShapedPath::new(port, course, key.source, key.hash64());
            let traced = core.net.network.trace(port, course, Some(path.source), path.hash);
            path.bottleneck = core.net.lanes.bottleneck(&course, &traced);
            path.lanes = traced.lanes;
            let number = self.add(path);
            self.add_shaper(core, now, number);
            number
        });
        self.paths[number].bottleneck.map(|_| number)
    }

    fn add_shaper(&mut self, core: &mut Core, now: Time, number: usize) {
        debug_assert_eq!(number, self.shapers.len(), "shapers are added in order");
        let bottleneck = self.paths[number].bottleneck;
        let LaneSet { chains, work, .. } = &core.net.lanes;
        let profile =
            bottleneck.map(|it| (chains[it.lane.index()].profile().clone(), it.tunnel_overhead));
        let lane = Lane::from_index(self.lanes + number);
        let rng = RngKey { seed: 0, link: "", direction: lane.direction, part: 0 };
        let site = LaneLocation { ends_at_node: false, on_lan: false, routed: true };
        let profile = shaper_profile(profile.as_ref().map(|(profile, more)| (profile, *more)));
        let role = ElementChainRole::Shaper(None);
        self.shapers.push(ElementChain::new(lane, &rng, &profile, site, role, &work.traces));
        self.set_rate(core, now, number);
    }

    /// Counts a packet for its flow, which may be new, or want more than was thought.
    fn see(
        &mut self,
        core: &mut Core,
        now: Time,
        path: usize,
        key: FiveTuple,
        signal: FlowSignal,
        shape: &PacketTrainShape,
    ) {
        let shaper = &self.shapers[path];
        let bytes = shape.charge(shaper.profile().effective_overhead().0);
        let backlogged = shaper.meter.counters.queue_packets >= BACKLOG_MIN;
        let last = shaper.next_number() + u64::from(shape.count) - 1;
        let is_shared = self.paths[path].is_shared();
        self.leave_replica(path, &key);
        if let Some(flow) = self.traffic.meet(&key, signal) {
            flow.bring(bytes, last);
            let wants_more = || !is_shared || flow.exceeds(self.allocation.rate(flow.id));
            if backlogged && flow.runs && flow.estimator.demand().is_some() && wants_more() {
                flow.estimator = DemandEstimator::new();
                let id = flow.id;
                self.renew_terms(core, id);
                self.divide(core, now);
            }
            return;
        }
        if !signal.begins() {
            return;
        }
        let flow = self.traffic.add(now, key, signal, path);
        flow.bring(bytes, last);
        if flow.runs {
            let id = flow.id;
            self.start_flow(core, path, id, &key);
            self.divide(core, now);
        }
    }

    /// Ends a flow to a service that goes to another replica now, by another redirector, or straight
    /// to the origin: what it sent before goes on, and has no share any more.
    fn leave_replica(&mut self, path: usize, key: &FiveTuple) {
        let Some(flow) = self.traffic.get_mut(key).filter(|flow| flow.path != path) else { return };
        let (id, before) = (flow.id, flow.path);
        let [own, former] = [path, before].map(|number| &self.paths[number]);
        let is_redirected = [own, former].iter().any(|path| path.course.leads_to_replica());
        if own.port == former.port && is_redirected {
            self.stop(before, id);
            self.traffic.remove(key);
        }
    }

    /// Lets a flow take part from now on.
    fn start_flow(&mut self, core: &mut Core, number: usize, id: FlowId, key: &FiveTuple) {
        let ShapedPath { port, course, .. } = self.paths[number];
        let hash = key.hash64();
        let lanes = core.net.network.trace(port, course, Some(key.source), hash).lanes;
        let terms = core.net.lanes.terms(&lanes, self.traffic.flow(id).map(|it| &it.estimator));
        self.start(number, id, lanes, terms);
        self.announce(core, number, id, hash);
    }

    fn measure_flow(&mut self, core: &mut Core, key: &FiveTuple) {
        let Some(flow) = self.traffic.get_mut(key) else { return };
        let (id, number) = (flow.id, flow.path);
        let waits = self.shapers[number].waits_for(flow.last);
        let is_shared = self.paths[number].is_shared();
        let has_others = !self.paths[number].flows.is_empty();
        let share = self.allocation.rate(id);
        if flow.has_ended(waits) {
            self.stop(number, id);
            self.traffic.remove(key);
            return;
        }
        let idles = flow.idles(share);
        let bytes = core::mem::take(&mut flow.bytes);
        if !flow.runs {
            flow.runs = true;
            // A packet now and then takes no share from flows that fill the link. What waits may
            // want any rate, but among others it may wait for them.
            if !waits || has_others {
                flow.estimator = DemandEstimator::of_use(bytes, PERIOD);
            }
            return self.start_flow(core, number, id, key);
        }
        let before = flow.estimator.demand();
        // What waits wants to go as well; in company it may wait for others though.
        let observes = !waits || idles && is_shared;
        if observes
            && flow.estimator.observe(FlowPeriodUsage { bytes, period: PERIOD, share }) != before
        {
            self.renew_terms(core, id);
        }
    }

    /// Passes the demand of a flow on to the shares.
    fn renew_terms(&mut self, core: &Core, id: FlowId) {
        let Some(flow) = self.traffic.flow(id) else { return };
        let terms = core.net.lanes.terms(self.allocation.lanes(id), Some(&flow.estimator));
        self.change(id, terms);
    }

    /// Gives every path the rate that it may have now.
    pub(super) fn divide(&mut self, core: &mut Core, now: Time) {
        let (lanes, paths) = self.settle();
        self.set_terms(core, now, lanes);
        for number in paths {
            self.set_rate(core, now, number);
        }
    }

    /// Sets the terms of lanes' clocks.
    fn set_terms(&self, core: &mut Core, now: Time, lanes: impl IntoIterator<Item = usize>) {
        for lane in lanes {
            let terms = self.terms_of(lane, core.net.lanes.chains[lane].profile().rate);
            core.net.lanes.work.clocks.set(now, lane, terms);
        }
    }

    fn set_rate(&mut self, core: &mut Core, now: Time, number: usize) {
        let profile = |lane: Lane| core.net.lanes.chains[lane.index()].profile();
        let rate = self.rate(number, |lane| profile(lane).rate);
        let path = &self.paths[number];
        let pacing = path.bottleneck.map(|Bottleneck { rate: line, .. }| {
            let mut after = Span::ZERO;
            let cross = |lane: &Lane| {
                let hop = PathHop { lane: lane.index(), after };
                after = after + profile(*lane).latency;
                hop
            };
            let lanes = path.lanes.iter().map(cross).collect();
            Pacing::new(self.share(number).map(|share| share.min(line)), line, lanes)
        });
        let bottleneck = path.bottleneck;
        let shaper = &mut self.shapers[number];
        if let Some(Bottleneck { lane, .. }) = bottleneck {
            shaper.meter.label = SOURCE_QUEUE | records::number(lane);
        }
        shaper.set_pacing(pacing);
        if shaper.profile().rate != rate {
            let rate = rate.map_or(PropertySetting::Default, PropertySetting::To);
            let patch = LinkPatch { rate: Some(rate), ..LinkPatch::default() };
            shaper.patch(now, &patch, &mut core.net.lanes.work);
        }
    }

    /// Gives a path's queue the properties of its bottleneck.
    fn fit_queue(&mut self, core: &mut Core, now: Time, number: usize) {
        let Some(Bottleneck { lane, tunnel_overhead, .. }) = self.paths[number].bottleneck else {
            return;
        };
        let profile = core.net.lanes.chains[lane.index()].profile();
        let profile = shaper_profile(Some((profile, tunnel_overhead)));
        let patch = LinkPatch {
            queue: profile.queue.map(PropertySetting::To),
            overhead: profile.overhead.map(PropertySetting::To),
            ..LinkPatch::default()
        };
        self.shapers[number].patch(now, &patch, &mut core.net.lanes.work);
    }

    /// Offers a packet to its path's queue; what that drops counts as dropped at the bottleneck.
    fn wait_at_source(&mut self, core: &mut Core, now: Time, path: usize, packet: EmulatedPacket) {
        let shaper = &mut self.shapers[path];
        let (each, before) = (u64::from(packet.shape.each), shaper.meter.counters.dropped);
        shaper.offer(now, packet, &mut core.net.lanes.work);
        let after = shaper.meter.counters.dropped;
        let bottleneck = self.paths[path].bottleneck.filter(|_| after != before);
        let Some(Bottleneck { lane, .. }) = bottleneck else { return };
        let counters = &mut core.net.lanes.chains[lane.index()].meter.counters;
        for reason in DropReason::ALL {
            let dropped = after[reason] - before[reason];
            counters.offered_packets += dropped;
            counters.offered_bytes += dropped * each;
            counters.dropped[reason] += dropped;
        }
    }
}

impl LaneSet {
    /// The terms of a flow over these lanes, as they are now.
    fn terms(&self, lanes: &[Lane], estimator: Option<&DemandEstimator>) -> FlowTerms {
        let latency = |lane: Lane| self.chains[lane.index()].profile().latency;
        let there = lanes.iter().fold(Span::ZERO, |sum, lane| sum + latency(*lane));
        let rtt = lanes.iter().fold(there, |sum, lane| sum + latency(lane.reverse()));
        FlowTerms { demand: estimator.and_then(DemandEstimator::demand), ..FlowTerms::new(rtt) }
    }
}
