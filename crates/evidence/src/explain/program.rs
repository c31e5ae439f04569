//! What a program did with a flow: writes and reads, by offset.

use super::arrivals::InOrderDeliverySeries;
use crate::history::{EndpointRole, FlowHistory, is_read, is_write};

/// A call that moved bytes; for a side whose calls are not recorded, what packets show of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataCall {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Its bytes: `from..to`.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) is_write: bool,
    /// The socket took less than it was given: the program waits for room.
    pub(crate) is_short: bool,
}

/// One side's calls, sorted by begin.
#[derive(Debug, Default)]
pub(crate) struct SocketCallHistory {
    pub(crate) is_recorded: bool,
    pub(crate) calls: Vec<DataCall>,
    /// Positions of writes and of reads, sorted by offset.
    writes: Vec<usize>,
    reads: Vec<usize>,
}

impl SocketCallHistory {
    /// From a side's recorded calls.
    pub(crate) fn recorded(history: &FlowHistory, side: EndpointRole) -> SocketCallHistory {
        let mut calls: Vec<DataCall> = Vec::new();
        for call in &history.calls[side.index()] {
            let is_write = is_write(call.call);
            if call.result < 0 && is_write {
                let before = calls.iter_mut().rev().find(|before| before.is_write);
                before.into_iter().for_each(|before| before.is_short = true);
            }
            let Some(length) = u64::try_from(call.result).ok().filter(|length| *length > 0) else {
                continue;
            };
            if !is_write && !is_read(call.call) {
                continue;
            }
            calls.push(DataCall {
                begin: call.begin,
                end: call.end.max(call.begin),
                from: call.offset,
                to: call.offset + length,
                is_write,
                is_short: is_write && length < u64::from(call.asked),
            });
        }
        SocketCallHistory::new(true, calls)
    }

    /// From what a side sent, (time, end), and what it could read.
    pub(crate) fn seen_by_packets(
        sent: &[(u64, u64)],
        arrivals: &InOrderDeliverySeries,
    ) -> SocketCallHistory {
        let call = |time, from, to, is_write| DataCall {
            begin: time,
            end: time,
            from,
            to,
            is_write,
            is_short: false,
        };
        let mut calls = Vec::new();
        let mut before = 0;
        for (time, end) in sent {
            calls.push(call(*time, before, *end, true));
            before = *end;
        }
        before = 0;
        for (time, end) in arrivals.steps() {
            calls.push(call(time, before, end, false));
            before = end;
        }
        SocketCallHistory::new(false, calls)
    }

    pub(crate) fn new(is_recorded: bool, mut calls: Vec<DataCall>) -> SocketCallHistory {
        calls.sort_by_key(|call| call.begin);
        let positions = |is_write: bool| {
            let wanted = calls.iter().enumerate().filter(|(_, call)| call.is_write == is_write);
            let mut positions: Vec<usize> = wanted.map(|(at, _)| at).collect();
            positions.sort_by_key(|at| calls[*at].from);
            positions
        };
        let (writes, reads) = (positions(true), positions(false));
        SocketCallHistory { is_recorded, calls, writes, reads }
    }

    /// The position of the write that gave the byte to the socket.
    pub(crate) fn write_of(&self, byte: u64) -> Option<usize> {
        self.covering(&self.writes, byte)
    }

    /// The position of the read that took the byte.
    pub(crate) fn read_of(&self, byte: u64) -> Option<usize> {
        self.covering(&self.reads, byte)
    }

    fn covering(&self, positions: &[usize], byte: u64) -> Option<usize> {
        let at = positions.partition_point(|at| self.calls[*at].to <= byte);
        positions.get(at).copied().filter(|at| self.calls[*at].from <= byte)
    }

    /// The last call before position `at` that had ended by `time`.
    pub(crate) fn ended_before(&self, at: usize, time: u64) -> Option<usize> {
        self.calls[..at].iter().rposition(|call| call.end <= time)
    }
}
