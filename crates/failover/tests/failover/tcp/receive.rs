//! Segments that come.

use windtunnel_model::{Span, Time};

use super::{State, Tcp, unwrap};
use crate::seg::{ACK, FIN, RST, SYN, Seg};

impl Tcp {
    /// A segment has come.
    pub(crate) fn receive(&mut self, now: Time, seg: &Seg) {
        match self.state {
            State::Closed => self.answer_closed(seg),
            State::SynSent => self.receive_syn_ack(now, seg),
            State::SynReceived | State::Open => self.receive_open(now, seg),
        }
    }

    fn receive_syn_ack(&mut self, now: Time, seg: &Seg) {
        let acks_syn = seg.has(ACK) && seg.ack == self.settings.isn.wrapping_add(1);
        if seg.has(ACK) && !acks_syn {
            self.answer_closed(seg);
        } else if seg.has(RST) {
            self.was_reset |= acks_syn;
            if acks_syn {
                self.close();
            }
        } else if seg.has(SYN) && acks_syn {
            self.negotiate(seg);
            self.has_ecn = self.settings.ecn && seg.flags & 0xc0 == 0x40;
            self.check_echo(now, seg);
            self.una = 1;
            self.edge = 1 + u64::from(seg.window);
            self.state = State::Open;
            self.rto_at = None;
            self.backoff = 0;
            self.send_ack(now);
            self.flush(now);
        }
    }

    fn receive_open(&mut self, now: Time, seg: &Seg) {
        if let (Some((value, _)), true) = (seg.stamps, self.has_stamps)
            && !seg.has(RST)
            && (value.wrapping_sub(self.ts_recent) as i32) < 0
        {
            self.odd.paws += 1;
            self.send_ack(now);
            return;
        }
        let offset = unwrap(self.peer_isn, seg.seq, self.rcv_nxt);
        let end = offset + seg.len() as i64;
        let window_end = self.advertised.max(self.rcv_nxt) as i64;
        if end < self.rcv_nxt.min(self.last_ack_sent.max(1)) as i64 || offset > window_end {
            if offset > window_end {
                self.odd.beyond_window += 1;
            }
            if seg.has(SYN) && self.state == State::SynReceived && offset == 0 {
                self.send_syn(now);
            } else if !seg.has(RST) {
                self.send_ack(now);
            }
            return;
        }
        if seg.has(RST) {
            if offset == self.rcv_nxt as i64 {
                self.was_reset = true;
                self.close();
            } else {
                self.odd.inexact_resets += 1;
                self.send_ack(now);
            }
            return;
        }
        if seg.has(SYN) {
            if self.state == State::SynReceived && offset == 0 && !seg.has(ACK) {
                self.send_syn(now);
            } else {
                self.send_ack(now);
            }
            return;
        }
        let acked = unwrap(self.settings.isn, seg.ack, self.una);
        if !seg.has(ACK) || acked > self.max as i64 {
            self.odd.unsent_acked += u32::from(seg.has(ACK));
            self.send_ack(now);
            return;
        }
        if self.state == State::SynReceived {
            if acked < 1 {
                return;
            }
            self.state = State::Open;
            self.rto_at = None;
            self.backoff = 0;
        }
        if let (Some((value, _)), true) = (seg.stamps, self.has_stamps)
            && offset <= self.last_ack_sent as i64
        {
            self.ts_recent = value;
        }
        self.check_echo(now, seg);
        self.take_ack(now, seg, acked.max(0) as u64, offset.max(0) as u64);
        self.take_data(now, seg, offset);
        self.flush(now);
    }

    fn check_echo(&mut self, now: Time, seg: &Seg) {
        if let (Some((_, echo)), true) = (seg.stamps, self.has_stamps)
            && (echo.wrapping_sub(self.clock(now)) as i32) > 0
        {
            self.odd.echoes_of_the_future += 1;
        }
    }

    fn take_data(&mut self, now: Time, seg: &Seg, offset: i64) {
        if seg.len() == 0 {
            return;
        }
        if seg.ecn == 3 {
            self.marks_seen += 1;
            self.ece = self.has_ecn;
        }
        if seg.flags & 0x80 != 0 && seg.ecn != 3 {
            self.ece = false;
        }
        if self.is_orphan && !seg.payload.is_empty() && offset >= self.rcv_nxt as i64 {
            // Data for a program that is gone.
            self.answer_closed(seg);
            self.close();
            return;
        }
        if seg.flags & 0x20 != 0 {
            self.urgent_seen = Some((offset + i64::from(seg.urgent)) as u64).max(self.urgent_seen);
        }
        if seg.has(FIN) {
            self.peer_fin.get_or_insert((offset + seg.payload.len() as i64) as u64);
        }
        let before = self.rcv_nxt;
        let had_gap = !self.ahead.is_empty();
        let skip = (self.rcv_nxt as i64 - offset).max(0) as usize;
        if let Some(rest) = seg.payload.get(skip..).filter(|rest| !rest.is_empty()) {
            let start = offset.max(self.rcv_nxt as i64) as u64;
            let room = self.advertised.saturating_sub(start).min(rest.len() as u64) as usize;
            if room > 0 {
                let known = self.ahead.entry(start).or_default();
                if known.len() < room {
                    *known = rest[..room].to_vec();
                }
                self.latest_block = Some(start);
            }
        }
        while let Some((&start, _)) = self.ahead.first_key_value() {
            if start > self.rcv_nxt {
                break;
            }
            let bytes = self.ahead.pop_first().unwrap().1;
            let skip = (self.rcv_nxt - start) as usize;
            if let Some(rest) = bytes.get(skip..) {
                self.received.extend(rest);
                self.rcv_nxt += rest.len() as u64;
            }
        }
        if self.peer_fin == Some(self.rcv_nxt) {
            self.rcv_nxt += 1;
        }
        let is_in_order = self.rcv_nxt > before && !had_gap && !seg.has(FIN);
        self.unacked_segments += 1 + u32::from(seg.payload.len() as u64 > self.mss());
        if is_in_order && self.unacked_segments < 2 {
            self.ack_at.get_or_insert(now + Span::from_millis(40));
        } else {
            self.send_ack(now);
        }
    }

    /// A pure acknowledgement.
    pub(crate) fn send_ack(&mut self, now: Time) {
        let mut seg = self.segment(now, self.nxt);
        self.mark_acked(&mut seg);
        if self.has_sack && !self.ahead.is_empty() {
            let mut blocks: Vec<(u64, u64)> = Vec::new();
            for (start, bytes) in &self.ahead {
                let end = start + bytes.len() as u64;
                match blocks.last_mut().filter(|last| last.1 >= *start) {
                    Some(last) => last.1 = last.1.max(end),
                    None => blocks.push((*start, end)),
                }
            }
            let latest = self.latest_block;
            blocks.sort_by_key(|(start, end)| {
                (!latest.is_some_and(|at| *start <= at && at < *end), u64::MAX - start)
            });
            blocks.truncate(if self.has_stamps { 3 } else { 4 });
            let seq = |offset: u64| self.peer_isn.wrapping_add(offset as u32);
            seg.sacks = blocks.into_iter().map(|(start, end)| (seq(start), seq(end))).collect();
        }
        self.out.push(seg);
    }

    /// A segment that acknowledges is on its way.
    pub(super) fn mark_acked(&mut self, seg: &mut Seg) {
        seg.flags |= if self.ece { 0x40 } else { 0 };
        self.ack_at = None;
        self.unacked_segments = 0;
        self.last_ack_sent = self.rcv_nxt;
    }
}

impl Tcp {
    /// Whether a range has come.
    pub(crate) fn has(&self, start: u64, end: u64) -> bool {
        let mut at = start.max(self.rcv_nxt);
        for (from, bytes) in &self.ahead {
            if *from <= at {
                at = at.max(from + bytes.len() as u64);
            }
        }
        at >= end
    }
}
