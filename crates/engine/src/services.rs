//! Services: which packets are redirected, and to which replica.
//!
//! Theory of operation. A router asks the [`ServiceAddressFilter`] about a packet's destination; nearly every
//! packet ends there. What may be for a service is read into a [`ServicePacketHeader`], found in the table of
//! [`RedirectionTable`], and then among the [`ReplicaPinTable`], which say to which replica its flow goes. A flow that has
//! none gets one by the service's policy (`choice`). All routers share the pins, so that a flow
//! stays with its replica where routes change. What happens to the packet then is the engine's
//! business (`engine/core/redirect.rs`).
//!
//! `docs/internals/services.md` has the rules.

mod call;
mod choice;
mod counters;
mod datagrams;
mod directory;
mod filter;
mod flows;
mod hash;
mod holder;
mod last_choices;
mod maglev;
mod ping;
mod pins;
mod replica;
mod reply;
mod rows;
mod service;
mod status;
mod transparent;
mod update;

use alloc::vec::Vec;

use windtunnel_model::plan::{Plan, ReplicaLossResponse, Service as Planned, TransportProtocol};
use windtunnel_model::{PortId, RouterId, ServiceId, Time};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::tcp;

use crate::tunnel::PacketTunnel;
use call::CallKind;
pub(crate) use call::DatagramKey;
use datagrams::Datagrams;
use directory::{RedirectionRequest, ServiceDirectory};
use flows::PinnedFlowTable;
use last_choices::{LastReplicaChoices, ReplicaChoiceChange};
use ping::PingTargetTable;
use pins::CoarseTime;

pub(crate) use choice::{FindWay, ReplicaPathMetrics};
pub use counters::{PinCounts, ServiceCounters};
pub(crate) use filter::ServiceAddressFilter;
pub use replica::{ReplicaCounters, ServiceReplicaStatus};
pub(crate) use reply::LostReplicaFrame;
pub use status::{PinnedFlow, ServiceRow};
use transparent::TransparentFailOver;
pub use transparent::{ExpelledCounts, FailOverCounters, FailOverNews, FailOverWhat, ReplicaFault};
pub(crate) use transparent::{FailOverDisposition, FailOverPacket, FailOverSender};

/// What redirectors know and do, all of them together.
#[derive(Debug)]
pub(crate) struct ServiceRedirector {
    pub(crate) filter: ServiceAddressFilter,
    services: ServiceDirectory,
    pinged: PingTargetTable,
    datagrams: Datagrams,
    flows: PinnedFlowTable,
    choices: LastReplicaChoices,
    transparent: TransparentFailOver,
    counts: PinCounts,
}

/// What becomes of a packet to a service's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// It is routed like any other.
    None,
    /// It enters a tunnel, and goes on.
    To(TunnelEntry),
    /// It is an echo request that the router answers.
    Answer,
    /// Its connection is lost with its replica's node.
    Lost(ServiceId, ReplicaLossResponse),
    /// It is of a connection that outlives its server, which this router keeps.
    Keep,
}

/// A tunnel that a packet enters at a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TunnelEntry {
    pub(crate) tunnel: PacketTunnel,
    /// Of one to a replica; else it leads to the router that keeps the packet's connection.
    pub(crate) hit: Option<RedirectionHit>,
}

/// A packet that is redirected, to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RedirectionHit {
    service: u16,
    replica: u16,
}

/// Where a flow goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplicaAssignment {
    Nowhere,
    To(u16),
    Lost,
}

/// What is known of the flow of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowOutlook {
    /// It has this pin, which says where it goes.
    Pinned(u32, ReplicaAssignment),
    /// Another redirector has a way to its replica, and this one has none.
    Elsewhere,
    /// It is to be given a replica; before, it may have had this pin.
    New(Option<u32>),
}

impl ServiceRedirector {
    pub(crate) fn new(plan: &Plan) -> ServiceRedirector {
        let addresses: Vec<_> = plan.services.iter().flat_map(Planned::addresses).collect();
        ServiceRedirector {
            filter: ServiceAddressFilter::new(&addresses),
            services: ServiceDirectory::new(plan),
            pinged: PingTargetTable::new(plan),
            datagrams: Datagrams::default(),
            flows: PinnedFlowTable::new(pins::CAPACITY_MAX),
            choices: LastReplicaChoices::default(),
            transparent: TransparentFailOver::new(plan),
            counts: PinCounts::default(),
        }
    }

    /// For at most so many pins, for tests.
    #[cfg(test)]
    fn with_pins(plan: &Plan, capacity: usize) -> ServiceRedirector {
        ServiceRedirector { flows: PinnedFlowTable::new(capacity), ..ServiceRedirector::new(plan) }
    }

    /// What becomes of a packet at a router; pins its flow where that is new. Asking twice about
    /// one packet is harmless. `aim` is the replica that it is known to be for already.
    pub(crate) fn redirect(
        &mut self,
        now: Time,
        router: RouterId,
        packet: &ParsedPacket<'_>,
        aim: Option<PortId>,
        way: &mut FindWay<'_>,
    ) -> Redirection {
        if let Some(answered) = self.pinged.redirect(&self.services, router, packet, way) {
            return answered;
        }
        let call = self.datagrams.read(CoarseTime::of(now), packet);
        let request = call.and_then(|call| self.services.request(now, router, call));
        let Some(request) = request else { return Redirection::None };
        let aim = aim.and_then(|port| self.services.replica_at(&request.row, port));
        let service = self.services.of(&request.row);
        if let Some(replica) = aim.filter(|replica| service.reaches(*replica, way)) {
            let assignment = ReplicaAssignment::To(replica);
            return self.services.redirection(router, &request.row, assignment);
        }
        self.held(&request, way).unwrap_or_else(|| self.pass(&request, way))
    }

    /// What would become of a packet that is for no replica yet: by the same steps, without that
    /// anything comes of it.
    pub(crate) fn foresee(
        &self,
        now: Time,
        router: RouterId,
        packet: &ParsedPacket<'_>,
        way: &mut FindWay<'_>,
    ) -> Redirection {
        if let Some(answered) = self.pinged.redirect(&self.services, router, packet, way) {
            return answered;
        }
        let call = self.datagrams.peek(CoarseTime::of(now), packet);
        let request = call.and_then(|call| self.services.request(now, router, call));
        let Some(request) = request else { return Redirection::None };
        if let Some(held) = self.held(&request, way) {
            return held;
        }
        let assignment = match self.look_up(&request, way) {
            FlowOutlook::Pinned(_, assignment) => assignment,
            FlowOutlook::Elsewhere => ReplicaAssignment::Nowhere,
            FlowOutlook::New(_) => {
                let chosen = self.choose(&request, way);
                chosen.map_or(ReplicaAssignment::Nowhere, ReplicaAssignment::To)
            }
        };
        self.services.redirection(router, &request.row, assignment)
    }

    /// The same as `redirect` for what the protocol of a transparent service refused.
    pub(crate) fn redirect_plainly(
        &mut self,
        now: Time,
        router: RouterId,
        packet: &ParsedPacket<'_>,
        way: &mut FindWay<'_>,
    ) -> Redirection {
        let call = self.datagrams.read(CoarseTime::of(now), packet);
        let request = call.and_then(|call| self.services.request(now, router, call));
        request.map_or(Redirection::None, |request| self.pass(&request, way))
    }

    /// Where a packet goes that has one replica.
    fn pass(&mut self, request: &RedirectionRequest, way: &mut FindWay<'_>) -> Redirection {
        let assignment = match self.look_up(request, way) {
            FlowOutlook::Pinned(pin, assignment) => {
                self.flows.touch(&mut self.services, pin, request);
                assignment
            }
            FlowOutlook::Elsewhere => ReplicaAssignment::Nowhere,
            FlowOutlook::New(before) => {
                if let Some(pin) = before {
                    self.flows.forget(&mut self.services, pin);
                }
                self.begin(request, way)
            }
        };
        self.services.redirection(request.router, &request.row, assignment)
    }

    /// What is known of a packet's flow.
    #[inline]
    fn look_up(&self, request: &RedirectionRequest, way: &mut FindWay<'_>) -> FlowOutlook {
        let (services, flows) = (&self.services, &self.flows);
        let Some(pin) = flows.known(services, request.tick(), &request.key) else {
            return FlowOutlook::New(None);
        };
        match flows.follow(services, pin, request) {
            None => FlowOutlook::New(Some(pin)),
            Some(ReplicaAssignment::To(replica))
                if !flows.is_of(pin, request.router)
                    && !services.of(&request.row).reaches(replica, way) =>
            {
                FlowOutlook::Elsewhere
            }
            Some(assignment) => FlowOutlook::Pinned(pin, assignment),
        }
    }

    /// The replica that a new flow gets.
    fn choose(&self, request: &RedirectionRequest, way: &mut FindWay<'_>) -> Option<u16> {
        let RedirectionRequest { router, row, call, .. } = request;
        // A flow that is not known has sent nothing that an error could be about.
        let is_error = matches!(call.kind, CallKind::Error);
        if is_error || self.services.of(row).planned.is_of_origin(row, call) {
            return None;
        }
        self.services.choose(*router, row, call, way)
    }

    /// Gives a flow a replica.
    fn begin(&mut self, request: &RedirectionRequest, way: &mut FindWay<'_>) -> ReplicaAssignment {
        let RedirectionRequest { row, key, call, .. } = request;
        let Some(replica) = self.choose(request, way) else {
            let is_error = matches!(call.kind, CallKind::Error);
            self.services.of_mut(row).counters.unserved += u64::from(!is_error);
            return ReplicaAssignment::Nowhere;
        };
        // A reset of nothing begins nothing.
        if call.flags() & tcp::RST == 0 {
            let service = self.services.of_mut(row);
            let picked_up = row.port.transport == TransportProtocol::Tcp && !call.opens();
            service.counters.picked_up += u64::from(picked_up);
            service.took(key.router, replica);
            self.transparent.count_plain(row);
            self.choices.note(&self.services, request, replica);
            self.flows.note_moved(&mut self.services, request, replica);
            self.flows.pin(&mut self.services, request, replica);
        }
        ReplicaAssignment::To(replica)
    }

    /// A choice that changed since the last call.
    pub(crate) fn take_moved(&mut self) -> Option<ReplicaChoiceChange> {
        self.choices.take_moved()
    }

    /// Whether tunnels end at the node of a port.
    #[inline]
    pub(crate) fn ends_at(&self, port: PortId) -> bool {
        self.services.ends_at(port)
    }

    /// Counts a packet that is redirected.
    pub(crate) fn count(&mut self, hit: RedirectionHit, packets: u32, bytes: u64) {
        self.services.count(hit, packets, bytes);
    }

    /// Counts an error about what a replica sent that cannot be passed on to it.
    pub(crate) fn count_lost_error(&mut self) {
        self.counts.lost_errors += 1;
    }

    /// Counts a packet whose connection is lost, and whether its client was reset.
    pub(crate) fn count_lost(&mut self, service: ServiceId, packets: u32, reset: bool) {
        let counters = &mut self.services.list[service.index()].counters;
        counters.lost += u64::from(packets);
        counters.resets += u64::from(reset);
    }

    /// When pins are to be looked at.
    pub(crate) fn next(&self) -> Option<Time> {
        self.flows.next_sweep()
    }

    /// Looks at some pins, whether their time is over.
    pub(crate) fn sweep(&mut self, now: Time) {
        self.flows.sweep(&mut self.services, now);
    }
}

#[cfg(test)]
mod tests;
