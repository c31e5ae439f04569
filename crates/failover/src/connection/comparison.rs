//! Whether what live replicas have sent is the same.

use alloc::vec::Vec;
use core::ops::Range;

use super::delivered::DeliveredStream;
use super::replica_set::ConnectionReplicaSet;
use crate::event::ReplicaExpulsionCause;
use crate::offset::len64;
use crate::output::ReplicaOutputBuffer;
use crate::ranges::StreamRangeSet;
use crate::replica::ConnectionReplica;

/// The output of live replicas side by side.
pub(super) struct OutputComparison<'a> {
    replicas: &'a ConnectionReplicaSet,
    /// What all live replicas have sent and the client has not been given.
    common: StreamRangeSet,
}

/// A place where live replicas have sent different things.
pub(super) struct OutputConflict {
    /// The first byte that differs, or FIN.
    offset: u64,
    /// Those that are wrong there.
    pub(super) losers: Vec<usize>,
}

impl<'a> OutputComparison<'a> {
    /// `came` is the only range in which there may be something new, if it is known.
    pub(super) fn new(
        replicas: &'a ConnectionReplicaSet,
        delivered: &DeliveredStream,
        came: Option<&Range<u64>>,
    ) -> Self {
        let mut live = replicas.live();
        let Some(first) = live.next() else {
            return Self { replicas, common: StreamRangeSet::default() };
        };
        let mut common = match came {
            Some(range) => first.output.present().within(range),
            None => first.output.present().clone(),
        };
        for replica in live {
            common = common.intersection(replica.output.present());
        }
        Self { replicas, common: delivered.missing(&common) }
    }

    /// What the client can be given: new ranges that all have sent, and sent the same.
    pub(super) fn agreed(self) -> Result<StreamRangeSet, OutputConflict> {
        match self.conflict() {
            Some(conflict) => Err(conflict),
            None => Ok(self.common),
        }
    }

    /// The first place in what is common where live replicas differ, and those that are wrong
    /// there.
    ///
    /// Of two, the primary is right. Of three and more, what most sent is right, and the primary
    /// where no byte has a majority. A replica that goes on is right against one that has finished
    /// its stream: a kernel finishes the streams of a program that was killed.
    fn conflict(&self) -> Option<OutputConflict> {
        let members = &self.replicas.members;
        let live: Vec<usize> =
            (0..members.len()).filter(|index| members[*index].is_live()).collect();
        if live.len() < 2 {
            return None;
        }
        let different = self.common.iter().find_map(|range| self.first_difference(&live, range));
        if let Some(offset) = different {
            return Some(OutputConflict { offset, losers: self.minority(&live, offset) });
        }
        let outputs = || live.iter().map(|index| &members[*index].output);
        let end = outputs().map(ReplicaOutputBuffer::data_end).min()?;
        if outputs().all(|output| output.data_end() == end) {
            return None;
        }
        let has_finished = |index: &usize| members[*index].output.fin == Some(end);
        let losers: Vec<usize> = live.into_iter().filter(has_finished).collect();
        (!losers.is_empty()).then_some(OutputConflict { offset: end, losers })
    }

    /// Where bytes of a range differ from those of the primary.
    fn first_difference(&self, live: &[usize], range: &Range<u64>) -> Option<u64> {
        let primary = self.replicas.primary;
        let reference = self.replicas.members[primary].output.slice(range.clone());
        let others = live.iter().filter(|index| **index != primary);
        let first = others.filter_map(|index| {
            let bytes = self.replicas.members[*index].output.slice(range.clone());
            if bytes == reference {
                return None;
            }
            bytes.iter().zip(reference).position(|(one, other)| one != other)
        });
        Some(range.start + len64(first.min()?))
    }

    /// The replicas whose byte at an offset is not the right one.
    fn minority(&self, live: &[usize], offset: u64) -> Vec<usize> {
        let byte = |index: usize| {
            let output = &self.replicas.members[index].output;
            output.slice(offset..offset + 1).first().copied()
        };
        let votes = |index: usize| live.iter().filter(|one| byte(**one) == byte(index)).count();
        let majority = live.iter().copied().find(|index| votes(*index) * 2 > live.len());
        let right = byte(majority.unwrap_or(self.replicas.primary));
        live.iter().copied().filter(|index| byte(*index) != right).collect()
    }
}

impl OutputConflict {
    /// Why one of those that are wrong is expelled.
    pub(super) fn cause(&self, loser: &ConnectionReplica) -> ReplicaExpulsionCause {
        if loser.output.fin == Some(self.offset) {
            return ReplicaExpulsionCause::FinishedAlone;
        }
        // The first byte has offset 1, after SYN.
        ReplicaExpulsionCause::Differed { offset: self.offset.saturating_sub(1) }
    }
}
