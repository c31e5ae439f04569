//! A TCP endpoint for tests, after RFC 9293, 5681, 6298, 2018, 7323, 3168 and 5961, with Linux's
//! times. It shares no code with the crate.

// The engine's tests have this file, too, from another folder.
#[path = "tcp/receive.rs"]
mod receive;
#[path = "tcp/send.rs"]
mod send;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use windtunnel_model::{Span, Time};

use crate::seg::{ACK, RST, SYN, Seg};

/// How an endpoint is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) isn: u32,
    pub(crate) mss: u16,
    pub(crate) shift: Option<u8>,
    pub(crate) sack: bool,
    /// The first timestamp, and nanoseconds of a tick.
    pub(crate) stamps: Option<(u32, u64)>,
    pub(crate) ecn: bool,
    /// Bytes that may wait for the program.
    pub(crate) room: u64,
    /// Whether a closed window is probed with a new byte, as RFC 9293 has it, or with an old
    /// sequence number, as Linux does.
    pub(crate) probes_with_a_byte: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            isn: 1_000_000,
            mss: 1460,
            shift: Some(7),
            sack: true,
            stamps: Some((500_000, 1_000_000)),
            ecn: false,
            room: 256 << 10,
            probes_with_a_byte: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    SynSent,
    SynReceived,
    Open,
    /// Reset, or refused: what still comes is answered with a reset.
    Closed,
}

/// What an endpoint met that should not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Oddities {
    /// Acknowledgements of what it never sent.
    pub(crate) unsent_acked: u32,
    /// Segments with an earlier timestamp.
    pub(crate) paws: u32,
    /// Resets that were not exact.
    pub(crate) inexact_resets: u32,
    /// Segments beyond the window.
    pub(crate) beyond_window: u32,
    /// Timestamps echoed that it never sent.
    pub(crate) echoes_of_the_future: u32,
}

/// An endpoint. Offsets count from its SYN, 0; data begins at 1.
#[derive(Debug, Clone)]
pub(crate) struct Tcp {
    pub(crate) me: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) settings: Settings,
    pub(crate) state: State,
    pub(crate) odd: Oddities,
    pub(crate) was_reset: bool,
    /// The program was killed: what comes for it is answered with a reset.
    pub(crate) is_orphan: bool,
    pub(crate) out: Vec<Seg>,
    peer_isn: u32,
    peer_mss: u16,
    peer_shift: u8,
    my_shift: u8,
    has_sack: bool,
    has_stamps: bool,
    has_ecn: bool,
    // Sending.
    pub(crate) data: Vec<u8>,
    pub(crate) fin_queued: bool,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    pub(crate) max: u64,
    edge: u64,
    updated_by: u64,
    cwnd: u64,
    ssthresh: u64,
    duplicates: u32,
    recover: Option<u64>,
    hole_at: u64,
    sacked: BTreeMap<u64, u64>,
    rto: Span,
    srtt: Option<(Span, Span)>,
    pub(crate) backoff: u32,
    rto_at: Option<Time>,
    probe_at: Option<Time>,
    timed: Option<(u64, Time)>,
    pub(crate) urgent: Option<u64>,
    cwr: bool,
    ecn_recover: u64,
    pub(crate) round_trips: Vec<Span>,
    // Receiving.
    pub(crate) received: Vec<u8>,
    pub(crate) taken: usize,
    pub(crate) rcv_nxt: u64,
    pub(crate) peer_fin: Option<u64>,
    ahead: BTreeMap<u64, Vec<u8>>,
    latest_block: Option<u64>,
    advertised: u64,
    ts_recent: u32,
    last_ack_sent: u64,
    ack_at: Option<Time>,
    unacked_segments: u32,
    ece: bool,
    pub(crate) urgent_seen: Option<u64>,
    pub(crate) marks_seen: u32,
}

impl Tcp {
    fn new(me: SocketAddr, peer: SocketAddr, settings: Settings, state: State) -> Self {
        Self {
            me,
            peer,
            settings,
            state,
            odd: Oddities::default(),
            was_reset: false,
            is_orphan: false,
            out: Vec::new(),
            peer_isn: 0,
            peer_mss: 536,
            peer_shift: 0,
            my_shift: 0,
            has_sack: false,
            has_stamps: false,
            has_ecn: false,
            data: Vec::new(),
            fin_queued: false,
            una: 0,
            nxt: 0,
            max: 0,
            edge: 1,
            updated_by: 0,
            cwnd: 10 * u64::from(settings.mss),
            ssthresh: u64::MAX,
            duplicates: 0,
            recover: None,
            hole_at: 0,
            sacked: BTreeMap::new(),
            rto: Span::from_secs(1),
            srtt: None,
            backoff: 0,
            rto_at: None,
            probe_at: None,
            timed: None,
            urgent: None,
            cwr: false,
            ecn_recover: 0,
            round_trips: Vec::new(),
            received: Vec::new(),
            taken: 0,
            rcv_nxt: 0,
            peer_fin: None,
            ahead: BTreeMap::new(),
            latest_block: None,
            advertised: 0,
            ts_recent: 0,
            last_ack_sent: 0,
            ack_at: None,
            unacked_segments: 0,
            ece: false,
            urgent_seen: None,
            marks_seen: 0,
        }
    }

    /// A client that sends its SYN.
    pub(crate) fn connect(now: Time, me: SocketAddr, peer: SocketAddr, settings: Settings) -> Self {
        let mut tcp = Self::new(me, peer, settings, State::SynSent);
        tcp.nxt = 1;
        tcp.max = 1;
        tcp.send_syn(now);
        tcp
    }

    /// A server that a SYN has come to.
    pub(crate) fn accept(now: Time, syn: &Seg, settings: Settings) -> Self {
        let mut tcp = Self::new(syn.to, syn.from, settings, State::SynReceived);
        tcp.negotiate(syn);
        tcp.has_ecn = settings.ecn && syn.flags & 0xc0 == 0xc0;
        tcp.nxt = 1;
        tcp.max = 1;
        tcp.send_syn(now);
        tcp
    }

    fn negotiate(&mut self, syn: &Seg) {
        self.peer_isn = syn.seq;
        self.rcv_nxt = 1;
        self.peer_mss = syn.mss.unwrap_or(536);
        if let (Some(mine), Some(peers)) = (self.settings.shift, syn.shift) {
            self.my_shift = mine;
            self.peer_shift = peers;
        }
        self.has_sack = self.settings.sack && syn.sack_permitted;
        self.has_stamps = self.settings.stamps.is_some() && syn.stamps.is_some();
        self.ts_recent = syn.stamps.map_or(0, |(value, _)| value);
        self.edge = 1 + u64::from(syn.window);
        self.cwnd = 10 * self.mss();
    }

    fn send_syn(&mut self, now: Time) {
        let is_answer = self.state == State::SynReceived;
        let mut seg = self.segment(now, 0);
        seg.flags = SYN;
        let set = self.settings;
        if is_answer {
            seg.flags |= ACK | if self.has_ecn { 0x40 } else { 0 };
        } else {
            seg.ack = 0;
            seg.flags |= if set.ecn { 0xc0 } else { 0 };
        }
        seg.window = u16::try_from(set.room.min(65535)).unwrap();
        self.advertised = self.rcv_nxt + u64::from(seg.window);
        seg.mss = Some(set.mss);
        let peer_has = |has: bool| !is_answer || has;
        seg.shift = set.shift.filter(|_| peer_has(self.my_shift > 0 || self.peer_shift > 0));
        seg.sack_permitted = set.sack && peer_has(self.has_sack);
        seg.stamps = set
            .stamps
            .filter(|_| peer_has(self.has_stamps))
            .map(|_| (self.clock(now), if is_answer { self.ts_recent } else { 0 }));
        self.out.push(seg);
        self.rto_at = Some(now + Span::from_nanos(1_000_000_000 << self.backoff));
    }

    /// Its own clock.
    fn clock(&self, now: Time) -> u32 {
        let (base, tick) = self.settings.stamps.unwrap_or((0, 1));
        base.wrapping_add((now.as_nanos() / tick) as u32)
    }

    /// A segment without data that begins at an offset.
    fn segment(&mut self, now: Time, offset: u64) -> Seg {
        let mut seg = Seg::new(self.me, self.peer);
        seg.seq = self.settings.isn.wrapping_add(offset as u32);
        seg.ack = self.peer_isn.wrapping_add(self.rcv_nxt as u32);
        seg.flags = ACK;
        let free = self.settings.room.saturating_sub((self.received.len() - self.taken) as u64);
        // The right edge never goes back (RFC 9293, 3.8.6).
        self.advertised = self.advertised.max(self.rcv_nxt + free);
        let field = (self.advertised - self.rcv_nxt) >> self.my_shift;
        seg.window = u16::try_from(field).unwrap_or(u16::MAX);
        self.advertised =
            self.advertised.min(self.rcv_nxt + (u64::from(seg.window) << self.my_shift));
        if self.has_stamps {
            seg.stamps = Some((self.clock(now), self.ts_recent));
        }
        seg
    }

    /// The program writes.
    pub(crate) fn write(&mut self, now: Time, bytes: &[u8]) {
        assert!(!self.fin_queued, "a program that writes after it has closed");
        self.data.extend(bytes);
        self.flush(now);
    }

    /// The program closes its side.
    pub(crate) fn shutdown(&mut self, now: Time) {
        self.fin_queued = true;
        self.flush(now);
    }

    /// The program reads so many bytes at the most; a window that opens is announced.
    pub(crate) fn read(&mut self, now: Time, max: usize) -> usize {
        let count = max.min(self.received.len() - self.taken);
        self.taken += count;
        let free = self.settings.room - (self.received.len() - self.taken) as u64;
        let grows = (self.rcv_nxt + free).saturating_sub(self.advertised);
        if count > 0 && grows >= (2 * self.mss()).min(self.settings.room / 2) {
            self.send_ack(now);
        }
        count
    }

    /// The program is killed: its kernel resets the connection if something was not read, and
    /// finishes the stream otherwise (RFC 2525, 2.17).
    pub(crate) fn kill(&mut self, now: Time) {
        self.is_orphan = true;
        if self.received.len() > self.taken || self.state != State::Open {
            self.reset(now);
        } else {
            self.fin_queued = true;
            self.flush(now);
        }
    }

    /// The program aborts.
    pub(crate) fn reset(&mut self, now: Time) {
        let mut seg = self.segment(now, self.nxt);
        seg.flags = RST | ACK;
        self.out.push(seg);
        self.close();
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.rto_at = None;
        self.probe_at = None;
        self.ack_at = None;
    }

    /// Everything was sent and acknowledged, and the peer has finished.
    pub(crate) fn is_finished(&self) -> bool {
        let has_all = self.peer_fin.is_some_and(|fin| self.rcv_nxt > fin);
        has_all && self.fin_queued && self.una > self.end()
    }

    /// Offset of FIN: the end of the data.
    pub(crate) fn end(&self) -> u64 {
        1 + self.data.len() as u64
    }

    /// Bytes of a segment at the most.
    fn mss(&self) -> u64 {
        u64::from(self.peer_mss.min(self.settings.mss)) - if self.has_stamps { 12 } else { 0 }
    }

    /// When something is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        [self.rto_at, self.probe_at, self.ack_at].into_iter().flatten().min()
    }

    fn answer_closed(&mut self, seg: &Seg) {
        if seg.has(RST) {
            return;
        }
        let mut reset = Seg::new(seg.to, seg.from);
        if seg.has(ACK) {
            reset.seq = seg.ack;
            reset.flags = RST;
        } else {
            reset.ack = seg.seq.wrapping_add(seg.len() as u32);
            reset.flags = RST | ACK;
        }
        self.out.push(reset);
    }
}

/// The offset of a sequence number near another.
fn unwrap(isn: u32, seq: u32, near: u64) -> i64 {
    let delta = seq.wrapping_sub(isn.wrapping_add(near as u32)) as i32;
    near as i64 + i64::from(delta)
}
