//! The replicas of one connection together: what all of them have, and which one speaks.

use alloc::vec::Vec;

use crate::config::{FailureDetectorConfig, REPLICAS_MAX};
use crate::context::ReplicationContext;
use crate::event::{
    ReplicaExpulsionCause, ReplicaId, ReplicatedConnectionKey, ReplicationEventKind,
};
use crate::ranges::StreamRangeSet;
use crate::replica::{ConnectionReplica, ReplicaLifecycleStage};
use windtunnel_model::Time;

/// All replicas that a connection began with, and the primary.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionReplicaSet {
    /// In the order of the caller. One that is out keeps its place.
    pub(super) members: Vec<ConnectionReplica>,
    /// Index of the replica that speaks to the client, and whose bytes are right where two differ.
    pub(super) primary: usize,
}

impl ConnectionReplicaSet {
    /// All are being sent a SYN.
    pub(super) fn new(order: &[ReplicaId], now: Time) -> Self {
        let members = order.iter().take(REPLICAS_MAX).map(|id| ConnectionReplica::new(*id, now));
        Self { members: members.collect(), primary: 0 }
    }

    /// The replicas that take part.
    pub(crate) fn live(&self) -> impl Iterator<Item = &ConnectionReplica> {
        self.members.iter().filter(|replica| replica.is_live())
    }

    /// The same, to be changed.
    pub(super) fn live_mut(&mut self) -> impl Iterator<Item = &mut ConnectionReplica> {
        self.members.iter_mut().filter(|replica| replica.is_live())
    }

    /// How many take part.
    pub(super) fn live_count(&self) -> usize {
        self.live().count()
    }

    /// Those that take part beside one.
    pub(super) fn others(&self, index: usize) -> impl Iterator<Item = &ConnectionReplica> {
        let others = self.members.iter().enumerate().filter(move |(other, _)| *other != index);
        others.map(|(_, replica)| replica).filter(|replica| replica.is_live())
    }

    /// The replica that speaks, if one takes part.
    pub(crate) fn speaking(&self) -> Option<ReplicaId> {
        self.members.get(self.primary).filter(|replica| replica.is_live()).map(|one| one.id)
    }

    /// The index of one that is not out.
    pub(super) fn index_of(&self, id: ReplicaId) -> Option<usize> {
        let index = self.members.iter().position(|replica| replica.id == id)?;
        (self.members[index].status != ReplicaLifecycleStage::Out).then_some(index)
    }

    /// Whether the answer of one to the SYN is waited for.
    pub(super) fn is_asked(&self, index: usize) -> bool {
        self.members[index].status == ReplicaLifecycleStage::Asked
    }

    /// Bytes of output that are kept.
    pub(crate) fn buffered(&self) -> usize {
        self.members.iter().map(|replica| replica.output.len()).sum()
    }

    /// Bytes of memory, the value itself not counted.
    pub(super) fn memory(&self) -> usize {
        let members = self.members.iter().map(|replica| {
            replica.output.memory() + replica.sacked.memory() + replica.stamps.memory()
        });
        members.sum::<usize>() + self.members.capacity() * size_of::<ConnectionReplica>()
    }

    /// All live replicas have the client's stream up to here; `None` if there is no live one.
    pub(super) fn acked(&self) -> Option<u64> {
        self.live().map(|replica| replica.acked).min()
    }

    /// All live replicas take the client's stream up to here.
    pub(super) fn edge(&self) -> Option<u64> {
        self.live().map(|replica| replica.edge).min()
    }

    /// Whose duplicate acknowledgements the client is shown: of the replicas that have the least,
    /// the primary, or else the first.
    pub(super) fn speaker(&self) -> usize {
        let acked = self.acked();
        let has_least = |index: &usize| {
            self.members.get(*index).is_some_and(|one| one.is_live() && Some(one.acked) == acked)
        };
        let all = core::iter::once(self.primary).chain(0..self.members.len());
        all.into_iter().find(has_least).unwrap_or(self.primary)
    }

    /// How often all that have no more than the client is acknowledged have repeated that.
    pub(super) fn repeated(&self) -> u32 {
        let acked = self.acked();
        let least = self.live().filter(|one| Some(one.acked) == acked);
        least.map(|one| one.repeated).min().unwrap_or(0)
    }

    /// What lies beyond the acknowledgement and every live replica has.
    pub(super) fn sacked(&self) -> StreamRangeSet {
        let Some(acked) = self.acked() else { return StreamRangeSet::default() };
        let mut all: Option<StreamRangeSet> = None;
        for replica in self.live() {
            if replica.acked == acked && replica.sacked.is_empty() {
                return StreamRangeSet::default();
            }
            let mut own = replica.sacked.clone();
            own.insert(acked..replica.acked, usize::MAX);
            all = Some(match all {
                None => own,
                Some(others) => others.intersection(&own),
            });
        }
        all.unwrap_or_default()
    }

    /// Whether all live replicas have finished their stream at an offset.
    pub(super) fn all_finish_at(&self, offset: u64) -> bool {
        let mut live = self.live().peekable();
        live.peek().is_some() && live.all(|replica| replica.output.fin == Some(offset))
    }

    /// A packet of a replica has come. Where it had been silent, the others that are begin again,
    /// too: what kept all from answering may be over.
    pub(super) fn note_alive(
        &mut self,
        index: usize,
        now: Time,
        detection: &FailureDetectorConfig,
    ) {
        if self.members[index].health.is_silent(detection) {
            let others = self.members.iter_mut().filter(|other| other.health.is_silent(detection));
            others.for_each(|other| other.health.begin_again(now));
        }
        self.members[index].health.is_alive(now, detection);
    }

    /// A segment of the client goes to all: those that it brings the next byte, and that have room
    /// for it, are offered that.
    pub(super) fn count_offers(&mut self, offset: u64, end: u64) {
        for replica in &mut self.members {
            let is_next = offset <= replica.acked && replica.acked < end;
            if is_next && replica.acked < replica.edge {
                replica.offers = replica.offers.saturating_add(1);
            }
        }
    }

    /// Once no answer to the SYN is waited for, those that have answered take part, and the first
    /// of them speaks. `None` if there is none.
    pub(super) fn begin(&mut self) -> Option<ReplicaId> {
        for replica in &mut self.members {
            if replica.status == ReplicaLifecycleStage::Answered {
                replica.status = ReplicaLifecycleStage::Live;
            }
        }
        self.primary = self.members.iter().position(ConnectionReplica::is_live)?;
        self.speaking()
    }

    /// A replica leaves. What that means to the others is the caller's to see to.
    pub(super) fn leave(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        key: &ReplicatedConnectionKey,
        index: usize,
        cause: ReplicaExpulsionCause,
        since: Time,
    ) {
        self.members[index].leave();
        cx.sink.counters.expelled += 1;
        if matches!(cause, ReplicaExpulsionCause::Differed { .. }) {
            cx.sink.counters.differed += 1;
        }
        let left =
            self.members.iter().filter(|one| one.status != ReplicaLifecycleStage::Out).count();
        let (replica, after) = (self.members[index].id, cx.now.since(since));
        cx.sink.event(*key, ReplicationEventKind::Expelled { replica, cause, after, left });
    }

    /// The first of the live replicas speaks. All have what the client has, so that any could.
    pub(super) fn promote(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        key: &ReplicatedConnectionKey,
    ) {
        let Some(next) = self.members.iter().position(ConnectionReplica::is_live) else { return };
        self.primary = next;
        cx.sink.counters.promoted += 1;
        cx.sink.event(*key, ReplicationEventKind::Promoted { replica: self.members[next].id });
    }
}
