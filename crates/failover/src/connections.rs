//! All connections of a service's address: the contract with the caller.

mod shelf;
mod view;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::config::ReplicationConfig;
use crate::connection::ReplicatedConnection;
use crate::context::ReplicationContext;
use crate::counters::ReplicationRefusalCounters;
use crate::event::{
    ConnectionTermination, RedirectorNumber, ReplicaId, ReplicatedConnectionKey, ReplicationEvent,
    ReplicationEventKind, TransmitRequest,
};
use crate::icmp::IcmpQuotedSegment;
use crate::refusal::ReplicationRefusal;
use crate::segment::ParsedTcpSegment;
use crate::sink::ReplicationOutbox;
use shelf::{ConnectionEvictionClass, EvictableConnections};
use windtunnel_model::Time;
use windtunnel_wire::{tcp, vnet};

pub use view::ConnectionSnapshot;

/// The state machine. The same calls in the same order give the same packets and events.
///
/// The caller gives it the packets that meet its router, sends what [`ConnectionReplicator::poll_transmit`]
/// gives after each call, and calls [`ConnectionReplicator::handle_timeout`] when
/// [`ConnectionReplicator::poll_timeout`] has come. `now` never decreases. Packets may be trains; they are
/// translated whole.
#[derive(Debug, Clone)]
pub struct ConnectionReplicator {
    config: ReplicationConfig,
    table: BTreeMap<ReplicatedConnectionKey, ConnectionTableEntry>,
    /// When to look at which connection, in order.
    timers: BTreeSet<(Time, ReplicatedConnectionKey)>,
    /// Those that others may take the place of.
    shelves: EvictableConnections,
    /// A connection was not taken, and none has been since.
    is_full: bool,
    sink: ReplicationOutbox,
}

/// A connection, and its timer. The timer is never later than what is due, and often earlier: it is
/// not set anew for each packet, and does nothing when it comes too soon.
#[derive(Debug, Clone)]
struct ConnectionTableEntry {
    connection: ReplicatedConnection,
    place: RedirectorNumber,
    timer: Option<Time>,
    shelf: ConnectionEvictionClass,
}

impl ConnectionReplicator {
    /// Without connections.
    #[must_use]
    pub fn new(config: ReplicationConfig) -> Self {
        Self {
            config,
            table: BTreeMap::new(),
            timers: BTreeSet::new(),
            shelves: EvictableConnections::default(),
            is_full: false,
            sink: ReplicationOutbox::default(),
        }
    }

    /// A packet from a client to the service. `order` are the replicas that a new connection may
    /// use, the primary first; it is only looked at for SYNs.
    ///
    /// # Errors
    /// [`ReplicationRefusal`]: the packet is the caller's to send on.
    pub fn handle_client(
        &mut self,
        now: Time,
        vnet: &vnet::VirtioNetHeader,
        frame: &[u8],
        order: &[ReplicaId],
    ) -> Result<(), ReplicationRefusal> {
        self.handle_client_at(now, RedirectorNumber::default(), vnet, frame, order)
    }

    /// The same, where there are several places: a new connection is kept at this one, and all that
    /// comes of it leaves from there.
    ///
    /// # Errors
    /// As [`handle_client`](ConnectionReplicator::handle_client).
    pub fn handle_client_at(
        &mut self,
        now: Time,
        place: RedirectorNumber,
        vnet: &vnet::VirtioNetHeader,
        frame: &[u8],
        order: &[ReplicaId],
    ) -> Result<(), ReplicationRefusal> {
        let taken = self.take_client(now, place, vnet, frame, order);
        self.count(taken)
    }

    /// A packet from a replica, whose source is the service.
    ///
    /// # Errors
    /// [`ReplicationRefusal`]: the packet is the caller's to send on.
    pub fn handle_replica(
        &mut self,
        now: Time,
        replica: ReplicaId,
        vnet: &vnet::VirtioNetHeader,
        frame: &[u8],
    ) -> Result<(), ReplicationRefusal> {
        let taken = self.take_replica(now, replica, vnet, frame);
        self.count(taken)
    }

    /// An ICMP error for the service's address: if it is about a packet to a client of a connection
    /// here, each replica is sent it with its own sequence number.
    ///
    /// # Errors
    /// [`ReplicationRefusal::Unknown`]: it is about something else.
    pub fn handle_icmp(&mut self, now: Time, frame: &[u8]) -> Result<(), ReplicationRefusal> {
        let quote =
            IcmpQuotedSegment::parse(frame).filter(|quote| self.table.contains_key(&quote.key));
        if let Some(quote) = quote {
            self.step(now, quote.key, |connection, cx| connection.handle_icmp(cx, &quote, frame));
        }
        self.count(quote.map(|_| ()).ok_or(ReplicationRefusal::Unknown))
    }

    /// A replica is gone: its program has ended, or its node. All its connections go on without
    /// it. It may be in `order` again once it is back.
    pub fn replica_lost(&mut self, now: Time, replica: ReplicaId) {
        let keys: Vec<ReplicatedConnectionKey> = self.table.keys().copied().collect();
        for key in keys {
            self.step(now, key, |connection, cx| connection.lose(cx, replica));
        }
    }

    /// The next packet to be sent.
    pub fn poll_transmit(&mut self) -> Option<TransmitRequest> {
        self.sink.transmits.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ReplicationEvent> {
        self.sink.events.pop_front()
    }

    /// When [`ConnectionReplicator::handle_timeout`] is to be called: never before the last call. Perhaps nothing
    /// is due then, and it is called for a later time.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        // A timer that is set anew is later than now, so that this ends.
        while let Some((_, key)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            let mut goes_on = false;
            self.step(now, key, |connection, cx| goes_on = connection.handle_timeout(cx));
            if !goes_on {
                self.forget(key);
            }
        }
    }

    fn take_client(
        &mut self,
        now: Time,
        place: RedirectorNumber,
        vnet: &vnet::VirtioNetHeader,
        frame: &[u8],
        order: &[ReplicaId],
    ) -> Result<(), ReplicationRefusal> {
        let segment = ParsedTcpSegment::parse(vnet, frame)?;
        let key = ReplicatedConnectionKey { client: segment.source, service: segment.destination };
        let mut is_new = !self.table.contains_key(&key);
        if !is_new {
            self.sink.counters.from_clients += 1;
            self.step(now, key, |connection, cx| is_new = connection.handle_client(cx, &segment));
        }
        if is_new {
            self.open(now, key, place, &segment, order)?;
        }
        Ok(())
    }

    fn open(
        &mut self,
        now: Time,
        key: ReplicatedConnectionKey,
        place: RedirectorNumber,
        segment: &ParsedTcpSegment<'_>,
        order: &[ReplicaId],
    ) -> Result<(), ReplicationRefusal> {
        let opens = segment.has(tcp::SYN) && !segment.has(tcp::ACK | tcp::RST);
        if self.table.contains_key(&key) {
            self.abandon(now, key, ConnectionTermination::Replaced);
        }
        if !opens {
            return Err(ReplicationRefusal::Unknown);
        }
        if segment.options.is_signed {
            return Err(ReplicationRefusal::Signed);
        }
        if order.len() < 2 {
            return Err(ReplicationRefusal::TooFew);
        }
        if !self.make_room(now) {
            if !core::mem::replace(&mut self.is_full, true) {
                self.sink.event(key, ReplicationEventKind::TableFull);
            }
            return Err(ReplicationRefusal::TableFull);
        }
        self.is_full = false;
        self.sink.counters.from_clients += 1;
        self.sink.place = place;
        let mut cx = ReplicationContext { now, config: &self.config, sink: &mut self.sink };
        let connection = ReplicatedConnection::open(&mut cx, key, segment, order);
        self.table.insert(
            key,
            ConnectionTableEntry {
                connection,
                place,
                timer: None,
                shelf: ConnectionEvictionClass::None,
            },
        );
        self.step(now, key, |_, _| {});
        Ok(())
    }

    fn take_replica(
        &mut self,
        now: Time,
        replica: ReplicaId,
        vnet: &vnet::VirtioNetHeader,
        frame: &[u8],
    ) -> Result<(), ReplicationRefusal> {
        let segment = ParsedTcpSegment::parse(vnet, frame)?;
        let key = ReplicatedConnectionKey { client: segment.destination, service: segment.source };
        if !self.table.contains_key(&key) {
            return Err(ReplicationRefusal::Unknown);
        }
        self.sink.counters.from_replicas += 1;
        self.step(now, key, |connection, cx| connection.handle_replica(cx, replica, &segment));
        Ok(())
    }

    /// Lets a connection do something, and sets its timer.
    fn step(
        &mut self,
        now: Time,
        key: ReplicatedConnectionKey,
        act: impl FnOnce(&mut ReplicatedConnection, &mut ReplicationContext<'_>),
    ) {
        let Some(entry) = self.table.get_mut(&key) else { return };
        let ConnectionTableEntry { connection, place, timer, shelf } = entry;
        self.sink.place = *place;
        let before = connection.replicas.buffered();
        let mut cx = ReplicationContext { now, config: &self.config, sink: &mut self.sink };
        act(connection, &mut cx);
        // What is due at once is due now: a caller in virtual time goes to the time that it is given.
        let due = connection.deadline(&cx).max(now);
        let buffered = connection.replicas.buffered();
        self.sink.buffered = (self.sink.buffered + buffered).saturating_sub(before);
        self.shelves.put(key, shelf, ConnectionEvictionClass::of(connection));
        if timer.is_some_and(|at| now < at && at <= due) {
            return;
        }
        if let Some(at) = timer.replace(due) {
            self.timers.remove(&(at, key));
        }
        self.timers.insert((due, key));
    }

    fn forget(&mut self, key: ReplicatedConnectionKey) {
        let Some(mut entry) = self.table.remove(&key) else { return };
        self.shelves.put(key, &mut entry.shelf, ConnectionEvictionClass::None);
        let ConnectionTableEntry { connection, timer, .. } = entry;
        self.sink.buffered = self.sink.buffered.saturating_sub(connection.replicas.buffered());
        if let Some(at) = timer {
            self.timers.remove(&(at, key));
        }
    }

    /// Makes room for a connection that begins, if there is none: of connections that are over the
    /// one that would be forgotten first, else the oldest that is half open. The latter have a bound
    /// of their own, so that a flood of SYNs does not fill the table.
    fn make_room(&mut self, now: Time) -> bool {
        let limits = self.config.limits;
        if self.shelves.half_open() >= limits.half_open.max(1) {
            self.forget_half_open(now);
        }
        if self.table.len() < limits.connections {
            return true;
        }
        match self.shelves.first_over() {
            Some(key) => {
                self.forget(key);
                true
            }
            None => self.forget_half_open(now),
        }
    }

    fn forget_half_open(&mut self, now: Time) -> bool {
        let Some(key) = self.shelves.oldest_half_open() else { return false };
        self.sink.counters.half_open_forgotten += 1;
        self.abandon(now, key, ConnectionTermination::Idle);
        true
    }

    fn abandon(&mut self, now: Time, key: ReplicatedConnectionKey, ending: ConnectionTermination) {
        self.step(now, key, |connection, cx| connection.abandon(cx, ending));
        self.forget(key);
    }

    fn count(&mut self, taken: Result<(), ReplicationRefusal>) -> Result<(), ReplicationRefusal> {
        if let Err(refusal) = taken {
            let refused = &mut self.sink.counters.refused;
            *field(refused, refusal) += 1;
        }
        taken
    }
}

fn field(refused: &mut ReplicationRefusalCounters, refusal: ReplicationRefusal) -> &mut u64 {
    match refusal {
        ReplicationRefusal::NotTcp => &mut refused.not_tcp,
        ReplicationRefusal::Malformed => &mut refused.malformed,
        ReplicationRefusal::Fragment => &mut refused.fragment,
        ReplicationRefusal::Unknown => &mut refused.unknown,
        ReplicationRefusal::Signed => &mut refused.signed,
        ReplicationRefusal::TableFull => &mut refused.table_full,
        ReplicationRefusal::TooFew => &mut refused.too_few,
    }
}
