//! The client gets a byte once every live replica has sent the same, in whatever order they come:
//! what a replica's way has lost is missing to the client, too, whose acknowledgements then have it
//! sent again at once.

use alloc::vec::Vec;
use core::ops::Range;

use super::{ReplicatedConnection, ReplicationContext};
use crate::event::ReplicaExpulsionCause;
use crate::offset::len64;
use crate::output::ReplicaOutputBuffer;
use crate::ranges::StreamRangeSet;

impl ReplicatedConnection {
    /// Compares what has come, expels those that differ, and gives the client what all have sent.
    /// `came` is the only range in which there may be something new, if it is known.
    pub(super) fn deliver(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        mut came: Option<Range<u64>>,
    ) {
        loop {
            let common = self.common(came.as_ref());
            let Some((offset, losers)) = self.conflict(&common) else {
                for range in common.iter() {
                    self.send_new(cx, range.clone());
                }
                break;
            };
            for loser in losers {
                let has_finished = self.replicas[loser].output.fin == Some(offset);
                // The first byte has offset 1, after SYN.
                let differed = ReplicaExpulsionCause::Differed { offset: offset.saturating_sub(1) };
                let cause =
                    if has_finished { ReplicaExpulsionCause::FinishedAlone } else { differed };
                self.expel(cx, loser, cause, cx.now);
            }
            came = None;
        }
        if self.fin.is_none() && self.all_finish_at(self.delivered) {
            self.send_new(cx, self.delivered..self.delivered);
        }
    }

    /// Whether all live replicas have finished their stream at an offset.
    pub(super) fn all_finish_at(&self, offset: u64) -> bool {
        let mut live = self.replicas.iter().filter(|replica| replica.is_live()).peekable();
        live.peek().is_some() && live.all(|replica| replica.output.fin == Some(offset))
    }

    fn live_indices(&self) -> Vec<usize> {
        (0..self.replicas.len()).filter(|index| self.replicas[*index].is_live()).collect()
    }

    /// What all live replicas have sent and the client has not been given.
    fn common(&self, came: Option<&Range<u64>>) -> StreamRangeSet {
        let mut live = self.replicas.iter().filter(|replica| replica.is_live());
        let Some(first) = live.next() else { return StreamRangeSet::default() };
        let mut common = match came {
            Some(range) => first.output.present().within(range),
            None => first.output.present().clone(),
        };
        for replica in live {
            common = common.intersection(replica.output.present());
        }
        common.without(&self.sent)
    }

    /// The first place in what is common where live replicas differ, and those that are wrong
    /// there.
    ///
    /// Of two, the primary is right. Of three and more, what most sent is right, and the primary
    /// where no byte has a majority. A replica that goes on is right against one that has finished
    /// its stream: a kernel finishes the streams of a program that was killed.
    fn conflict(&self, common: &StreamRangeSet) -> Option<(u64, Vec<usize>)> {
        let live = self.live_indices();
        if live.len() < 2 {
            return None;
        }
        let different = common.iter().find_map(|range| self.first_difference(&live, range));
        if let Some(offset) = different {
            return Some((offset, self.minority(&live, offset)));
        }
        let outputs = || live.iter().map(|index| &self.replicas[*index].output);
        let end = outputs().map(ReplicaOutputBuffer::data_end).min()?;
        if outputs().all(|output| output.data_end() == end) {
            return None;
        }
        let has_finished = |index: &usize| self.replicas[*index].output.fin == Some(end);
        let finished: Vec<usize> = live.into_iter().filter(has_finished).collect();
        (!finished.is_empty()).then_some((end, finished))
    }

    /// Where bytes of a range differ from those of the primary.
    fn first_difference(&self, live: &[usize], range: &Range<u64>) -> Option<u64> {
        let reference = self.replicas[self.primary].output.slice(range.clone());
        let others = live.iter().filter(|index| **index != self.primary);
        let first = others.filter_map(|index| {
            let bytes = self.replicas[*index].output.slice(range.clone());
            if bytes == reference {
                return None;
            }
            bytes.iter().zip(reference).position(|(one, other)| one != other)
        });
        Some(range.start + len64(first.min()?))
    }

    /// The replicas whose byte at an offset is not the right one.
    fn minority(&self, live: &[usize], offset: u64) -> Vec<usize> {
        let byte =
            |index: usize| self.replicas[index].output.slice(offset..offset + 1).first().copied();
        let votes = |index: usize| live.iter().filter(|one| byte(**one) == byte(index)).count();
        let majority = live.iter().copied().find(|index| votes(*index) * 2 > live.len());
        let right = byte(majority.unwrap_or(self.primary));
        live.iter().copied().filter(|index| byte(*index) != right).collect()
    }
}
