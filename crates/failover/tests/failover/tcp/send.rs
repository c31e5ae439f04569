//! Segments that go, and what their acknowledgements mean.

use windtunnel_model::{Span, Time};

use super::{State, Tcp, unwrap};
use crate::seg::{FIN, Seg};

const RTO_MIN: Span = Span::from_millis(200);

impl Tcp {
    pub(super) fn take_ack(&mut self, now: Time, seg: &Seg, acked: u64, offset: u64) {
        if acked < self.una {
            return;
        }
        let edge = acked + (u64::from(seg.window) << self.peer_shift);
        let is_newer = acked > self.una
            || offset > self.updated_by
            || offset == self.updated_by && edge > self.edge;
        let same_window = edge == self.edge;
        if is_newer {
            self.edge = edge;
            self.updated_by = offset;
        }
        if self.has_sack {
            for (start, end) in &seg.sacks {
                let start = unwrap(self.settings.isn, *start, acked).max(0) as u64;
                let end = unwrap(self.settings.isn, *end, acked).max(0) as u64;
                assert!(end <= self.max, "a sack of what was never sent");
                if start >= acked && end > start {
                    let known = self.sacked.entry(start).or_insert(end);
                    *known = end.max(*known);
                }
            }
        }
        if seg.flags & 0x40 != 0 && self.has_ecn && acked > self.ecn_recover {
            self.ssthresh = (self.cwnd / 2).max(2 * self.mss());
            self.cwnd = self.ssthresh;
            self.ecn_recover = self.nxt;
            self.cwr = true;
        }
        if acked > self.una {
            self.advance(now, seg, acked);
        } else if seg.len() == 0 && same_window && self.max > self.una {
            self.duplicate(now);
        }
    }

    fn advance(&mut self, now: Time, seg: &Seg, acked: u64) {
        self.measure(now, seg, acked);
        let gained = acked - self.una;
        self.una = acked;
        self.nxt = self.nxt.max(acked);
        self.sacked.retain(|_, end| *end > acked);
        self.duplicates = 0;
        self.backoff = 0;
        match self.recover {
            Some(recover) if acked < recover => {
                self.hole_at = self.hole_at.max(acked);
                self.send_hole(now);
            }
            Some(_) => {
                self.recover = None;
                self.cwnd = self.ssthresh;
            }
            None if self.cwnd < self.ssthresh => self.cwnd += gained.min(2 * self.mss()),
            None => self.cwnd += (self.mss() * self.mss() / self.cwnd).max(1),
        }
        self.rto_at = (self.max > self.una).then_some(now + self.timeout());
    }

    fn measure(&mut self, now: Time, seg: &Seg, acked: u64) {
        let sample = match seg.stamps.filter(|_| self.has_stamps) {
            Some((_, echo)) => {
                let tick = self.settings.stamps.unwrap().1;
                let ticks = self.clock(now).wrapping_sub(echo);
                (ticks < 1 << 31).then(|| Span::from_nanos(u64::from(ticks) * tick))
            }
            None => self.timed.take_if(|(end, _)| acked >= *end).map(|(_, at)| now.since(at)),
        };
        let Some(sample) = sample else { return };
        self.round_trips.push(sample);
        let (mean, deviation) = match self.srtt {
            None => (sample.as_nanos(), sample.as_nanos() / 2),
            Some((mean, deviation)) => {
                let error = mean.as_nanos().abs_diff(sample.as_nanos());
                let mean = (7 * mean.as_nanos() + sample.as_nanos()) / 8;
                (mean, (3 * deviation.as_nanos() + error) / 4)
            }
        };
        self.srtt = Some((Span::from_nanos(mean), Span::from_nanos(deviation)));
        // Linux bounds the deviation's part from below, not the sum.
        self.rto = Span::from_nanos(mean) + Span::from_nanos(4 * deviation).max(RTO_MIN);
    }

    fn timeout(&self) -> Span {
        Span::from_nanos(self.rto.as_nanos() << self.backoff.min(8))
    }

    fn duplicate(&mut self, now: Time) {
        self.duplicates += 1;
        let sacked: u64 = self.sacked.iter().map(|(start, end)| end - start).sum();
        if self.recover.is_some() {
            self.send_hole(now);
        } else if self.duplicates >= 3 || sacked > 3 * self.mss() {
            self.recover = Some(self.max);
            self.ssthresh = (self.cwnd / 2).max(2 * self.mss());
            self.cwnd = self.ssthresh + 3 * self.mss();
            self.hole_at = self.una;
            self.send_hole(now);
        }
    }

    /// Sends the next hole again.
    fn send_hole(&mut self, now: Time) {
        let start = self.after_sacked(self.hole_at.max(self.una));
        let known = self.sacked.range(start..).next().map(|(start, _)| *start);
        let limit = known.unwrap_or(if start == self.una { self.max } else { start });
        if start < limit {
            self.hole_at = self.send_range(now, start, limit);
        }
    }

    fn after_sacked(&self, mut at: u64) -> u64 {
        for (start, end) in &self.sacked {
            if *start <= at {
                at = at.max(*end);
            }
        }
        at
    }

    /// Sends what may be sent.
    pub(crate) fn flush(&mut self, now: Time) {
        if self.state != State::Open {
            return;
        }
        let end = self.end() + u64::from(self.fin_queued);
        loop {
            self.nxt = self.after_sacked(self.nxt);
            let window = self.una + self.cwnd;
            let limit = end.min(window).min(self.edge.max(self.una));
            // FIN takes no place in the window.
            let is_fin_only = self.fin_queued && self.nxt + 1 == end && self.edge >= self.nxt;
            if self.nxt >= limit && !(is_fin_only && self.nxt < end) {
                break;
            }
            let known = self.sacked.range(self.nxt..).next().map_or(u64::MAX, |(at, _)| *at);
            self.nxt = self.send_range(now, self.nxt, limit.max(self.nxt + 1).min(known));
        }
        let is_shut = self.nxt < end && self.max == self.una && self.edge <= self.nxt;
        if !is_shut {
            self.probe_at = None;
        } else if self.probe_at.is_none() {
            self.probe_at = Some(now + self.timeout());
        }
    }

    /// Sends one segment from an offset; where it ends.
    fn send_range(&mut self, now: Time, from: u64, limit: u64) -> u64 {
        let data_end = limit.min(self.end());
        let to = data_end.min(from + self.mss()).max(from);
        let mut seg = self.segment(now, from);
        seg.payload = self.data[(from - 1) as usize..(to - 1) as usize].to_vec();
        let has_fin = self.fin_queued && to == self.end() && limit > to || from == self.end();
        let next = to + u64::from(has_fin);
        seg.flags |= if has_fin { FIN } else { 0 } | 0x08;
        if let Some(urgent) = self.urgent.filter(|urgent| *urgent > from) {
            seg.flags |= 0x20;
            seg.urgent = (urgent - from) as u16;
        }
        if self.has_ecn && from >= self.max && !seg.payload.is_empty() {
            seg.ecn = 2;
            seg.flags |= if self.cwr { 0x80 } else { 0 };
            self.cwr = false;
        }
        self.mark_acked(&mut seg);
        if from >= self.max && self.timed.is_none() {
            self.timed = Some((next, now));
        } else if from < self.max {
            self.timed = None;
        }
        self.max = self.max.max(next);
        if self.rto_at.is_none() {
            self.rto_at = Some(now + self.timeout());
        }
        self.out.push(seg);
        next
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.send_ack(now);
        }
        if self.probe_at.is_some_and(|at| at <= now) {
            self.probe(now);
        }
        if self.rto_at.is_none_or(|at| at > now) {
            return;
        }
        self.rto_at = None;
        self.backoff += 1;
        match self.state {
            State::SynSent | State::SynReceived => self.send_syn(now),
            State::Open if self.max > self.una => {
                self.ssthresh = ((self.max - self.una) / 2).max(2 * self.mss());
                self.cwnd = self.mss();
                self.recover = None;
                self.duplicates = 0;
                // What was only SACKed may have been discarded (RFC 2018, 8).
                self.sacked.clear();
                self.nxt = self.una;
                self.nxt = self.send_range(now, self.una, self.max);
            }
            State::Open | State::Closed => {}
        }
    }

    fn probe(&mut self, now: Time) {
        self.backoff = (self.backoff + 1).min(6);
        self.probe_at = Some(now + self.timeout());
        if self.settings.probes_with_a_byte && self.nxt < self.end() {
            // Not counted as sent: it is sent again when the window opens.
            let mut seg = self.segment(now, self.nxt);
            seg.payload = vec![self.data[(self.nxt - 1) as usize]];
            self.max = self.max.max(self.nxt + 1);
            self.out.push(seg);
        } else {
            let seg = self.segment(now, self.una.saturating_sub(1));
            self.out.push(seg);
        }
    }
}
