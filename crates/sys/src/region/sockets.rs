//! The table of sockets in a region: how far each stream is, over all processes that use it. The
//! preload library compiles this file into itself, as it does `raw.rs`.

use core::hint;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::raw::RecordRegionView;
use super::record::kind::{CallBlindSpot, Kind, NO_FLOW};
use super::record::region::{OFFSET_BITS, SOCKETS_PROBED, header, socket, socket_state};
use super::record::{EventRecord, halves, words};

/// An entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct RegionSocketEntry<'region> {
    raw: &'region RecordRegionView,
    entry: u32,
    at: usize,
}

/// The way of the bytes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketCallDirection {
    /// Out of the program.
    Sent,
    /// Into the program.
    Received,
}

/// The two ends of a socket, as [`Kind::FlowFrom`] and [`Kind::FlowTo`] have them: IPv4 addresses
/// are mapped into IPv6, and what is not known is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketTuple {
    /// Of IP.
    pub protocol: u8,
    /// The socket's own address.
    pub from: [u8; 16],
    /// Its own port.
    pub from_port: u16,
    /// The address of the other side.
    pub to: [u8; 16],
    /// Its port.
    pub to_port: u16,
}

/// What a new entry starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialSocketEntry {
    /// The socket's ends.
    pub tuple: SocketTuple,
    /// Bits of [`socket_state`].
    pub state: u32,
    /// The process.
    pub pid: u32,
    /// The descriptor there.
    pub descriptor: u32,
}

/// The key of a socket, by its cookie; and of one peer of a socket that is not connected.
#[must_use]
pub fn key(cookie: u64, peer: Option<(&[u8; 16], u16)>) -> u64 {
    let mut hash = mix(cookie ^ 0x9e37_79b9_7f4a_7c15);
    if let Some((address, port)) = peer {
        let [a, b, c, d] = words(*address).map(u64::from);
        hash = mix(hash ^ (a | b << 32));
        hash = mix(hash ^ (c | d << 32));
        hash = mix(hash ^ u64::from(port) ^ 0x5851_f42d_4c95_7f2d);
    }
    if hash == 0 || hash == CLAIMED { 1 } else { hash }
}

impl RecordRegionView {
    /// The entry of a number (modulo their number, which must not be 0).
    #[must_use]
    #[inline]
    pub fn entry(&self, entry: u32) -> RegionSocketEntry<'_> {
        RegionSocketEntry { raw: self, entry, at: self.socket(entry) }
    }

    /// All entries with a socket; those of peers are as well.
    pub fn entries(&self) -> impl Iterator<Item = RegionSocketEntry<'_>> {
        let all = (0..self.layout().sockets).map(|entry| self.entry(entry));
        all.filter(|entry| ![0, CLAIMED].contains(&entry.key()) && entry.references() != 0)
    }

    /// The entry of a key, if it has references.
    #[must_use]
    pub fn find(&self, key: u64) -> Option<RegionSocketEntry<'_>> {
        self.probe(key).find(|entry| entry.key() == key && entry.references() != 0)
    }

    /// The entry of a key, found or made by `origin`, with one more reference; whether it is new.
    /// `None`: there is no room, which has been counted.
    pub fn hold(
        &self,
        key: u64,
        cookie: u64,
        origin: impl FnOnce() -> InitialSocketEntry,
    ) -> Option<(RegionSocketEntry<'_>, bool)> {
        if self.layout().sockets == 0 {
            return None;
        }
        if let Some(found) = self.find(key).filter(RegionSocketEntry::refer) {
            return Some((found, false));
        }
        let claim = |entry: &RegionSocketEntry<'_>| {
            let key = self.word(entry.at + socket::KEY);
            key.compare_exchange(0, CLAIMED, Acquire, Relaxed).is_ok()
        };
        let Some(made) = self.probe(key).find(claim) else {
            self.half(header::SOCKETS_REFUSED).fetch_add(1, Relaxed);
            return None;
        };
        made.start(cookie, &origin(), self.number_flow());
        self.word(made.at + socket::KEY).store(key, Release);
        // Where another process has made one at the same time, the one that is first in the table
        // stays.
        match self.first_of(key, made.entry) {
            Some(other) if other.refer() => {
                made.free();
                Some((other, false))
            }
            _ => Some((made, true)),
        }
    }

    /// The entry with this key before one in the table, after those that are being made there
    /// are there.
    fn first_of(&self, key: u64, before: u32) -> Option<RegionSocketEntry<'_>> {
        for entry in self.probe(key) {
            for _ in 0..CLAIMED_SPINS {
                if entry.key() != CLAIMED {
                    break;
                }
                hint::spin_loop();
            }
        }
        let earlier = self.probe(key).take_while(|entry| entry.entry != before);
        earlier.into_iter().find(|entry| entry.key() == key && entry.references() != 0)
    }

    /// The entries that a key can have.
    fn probe(&self, key: u64) -> impl Iterator<Item = RegionSocketEntry<'_>> {
        let sockets = self.layout().sockets;
        #[expect(clippy::cast_possible_truncation, reason = "the low bits choose the entry")]
        let first = key as u32;
        (0..SOCKETS_PROBED.min(sockets))
            .map(move |step| self.entry(first.wrapping_add(step) & (sockets - 1)))
    }
}

impl<'region> RegionSocketEntry<'region> {
    /// The number of the entry.
    #[must_use]
    #[inline]
    pub fn number(&self) -> u32 {
        self.entry
    }

    /// The key; 0 for a free entry.
    #[must_use]
    #[inline]
    pub fn key(&self) -> u64 {
        self.raw.word(self.at + socket::KEY).load(Acquire)
    }

    /// The flow's number.
    #[must_use]
    #[inline]
    pub fn flow(&self) -> u32 {
        self.half(socket::FLOW)
    }

    /// Bits of [`socket_state`].
    #[must_use]
    #[inline]
    pub fn state(&self) -> u32 {
        self.half(socket::STATE)
    }

    /// The kernel's cookie.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.raw.word(self.at + socket::COOKIE).load(Relaxed)
    }

    /// The size of segments into which datagrams are cut, or 0.
    #[must_use]
    #[inline]
    pub fn segment(&self) -> u16 {
        self.raw.quarter(self.at + socket::SEGMENT).load(Relaxed)
    }

    /// Sets the size of segments.
    pub fn set_segment(&self, bytes: u16) {
        self.raw.quarter(self.at + socket::SEGMENT).store(bytes, Relaxed);
    }

    /// Sets or clears bits of the state.
    pub fn change_state(&self, set: u32, clear: u32) {
        let state = self.raw.half(self.at + socket::STATE);
        if set != 0 {
            state.fetch_or(set, Relaxed);
        }
        if clear != 0 {
            state.fetch_and(!clear, Relaxed);
        }
    }

    /// A call begins: how far the direction is, and whether another call goes on there.
    #[inline]
    pub fn begin(&self, direction: SocketCallDirection) -> (u64, bool) {
        let word = self.raw.word(self.at + place(direction)).fetch_add(ONE_CALL, Relaxed);
        (word & OFFSET_MASK, word >> OFFSET_BITS != 0)
    }

    /// It has ended and moved so many bytes (datagrams): the offset of the first, and whether
    /// another call goes on.
    #[inline]
    pub fn end(&self, direction: SocketCallDirection, count: u64) -> (u64, bool) {
        let change = count.wrapping_sub(ONE_CALL);
        let word = self.raw.word(self.at + place(direction)).fetch_add(change, Relaxed);
        (word & OFFSET_MASK, word >> OFFSET_BITS != 1)
    }

    /// Bytes (datagrams) were moved, by a call of which nothing else is recorded.
    #[inline]
    pub fn advance(&self, direction: SocketCallDirection, count: u64) -> u64 {
        self.raw.word(self.at + place(direction)).fetch_add(count, Relaxed) & OFFSET_MASK
    }

    /// One descriptor more refers to the socket. False: it has none any more, and is going.
    #[must_use]
    pub fn refer(&self) -> bool {
        let change = |references: u32| references.checked_add(1).filter(|_| references != 0);
        let references = self.raw.half(self.at + socket::REFERENCES);
        references.fetch_update(AcqRel, Relaxed, change).is_ok()
    }

    /// One descriptor less. With the last one the entry is free, and those of its peers.
    pub fn release(&self) {
        let change = |references: u32| references.checked_sub(1);
        let references = self.raw.half(self.at + socket::REFERENCES);
        if references.fetch_update(AcqRel, Relaxed, change) == Ok(1) {
            self.free();
        }
    }

    /// The socket is gone, whatever refers to it: the entry is free.
    pub fn forget(&self) {
        self.raw.half(self.at + socket::REFERENCES).store(0, Relaxed);
        self.free();
    }

    /// The entry of one peer of this socket, which is not connected.
    #[must_use]
    pub fn peer(&self, address: &[u8; 16], port: u16) -> Option<RegionSocketEntry<'region>> {
        let key = key(self.cookie(), Some((address, port)));
        if let Some(found) = self.raw.find(key) {
            return Some(found);
        }
        let origin = || {
            let tuple = SocketTuple { to: *address, to_port: port, ..self.tuple() };
            let (pid, descriptor) = (self.half(socket::PID), self.half(socket::DESCRIPTOR));
            InitialSocketEntry { tuple, state: self.state(), pid, descriptor }
        };
        let (made, is_new) = self.raw.hold(key, self.cookie(), origin)?;
        if is_new {
            let next = self.raw.half(self.at + socket::NEXT_PEER).swap(made.entry + 1, AcqRel);
            self.raw.half(made.at + socket::NEXT_PEER).store(next, Release);
        }
        Some(made)
    }

    /// The ends, as they were set last.
    #[must_use]
    pub fn tuple(&self) -> SocketTuple {
        SocketTuple {
            protocol: self.raw.byte(self.at + socket::PROTOCOL).load(Relaxed),
            from: self.address(socket::FROM),
            from_port: self.raw.quarter(self.at + socket::FROM_PORT).load(Relaxed),
            to: self.address(socket::TO),
            to_port: self.raw.quarter(self.at + socket::TO_PORT).load(Relaxed),
        }
    }

    /// Other ends, which make another flow: its number is new, and its offsets begin at 0.
    pub fn set_tuple(&self, tuple: &SocketTuple) {
        self.store_tuple(tuple);
        self.raw.word(self.at + socket::SENT).fetch_and(!OFFSET_MASK, Relaxed);
        self.raw.word(self.at + socket::RECEIVED).fetch_and(!OFFSET_MASK, Relaxed);
        self.raw.half(self.at + socket::FLOW).store(self.raw.number_flow(), Relaxed);
        self.raw.half(self.at + socket::DEFINED).store(0, Release);
    }

    /// Ends of the same flow, which were not known until now.
    pub fn set_ends(&self, tuple: &SocketTuple) {
        self.store_tuple(tuple);
        self.raw.half(self.at + socket::DEFINED).store(0, Release);
    }

    /// The C library reads or writes the socket itself from now on: offsets are not known any more.
    pub fn set_stdio(&self) {
        self.change_state(socket_state::STDIO | socket_state::OFFSET_UNKNOWN, 0);
        self.raw.half(self.at + socket::DEFINED).store(0, Release);
    }

    /// The same of the socket's own end.
    pub fn set_own(&self, from: &[u8; 16], from_port: u16) {
        self.set_ends(&SocketTuple { from: *from, from_port, ..self.tuple() });
    }

    /// Whether the flow was defined since recording started; `recording` is the region's word.
    #[must_use]
    #[inline]
    pub fn is_defined(&self, recording: u32) -> bool {
        self.half(socket::DEFINED) == recording
    }

    /// Defines the flow, for `recording`. Where there is no room the definitions count as lost, and
    /// the flow is defined with the next call.
    #[cold]
    pub fn define(&self, ring: u32, time_ns: u64, recording: u32) {
        let tuple = self.tuple();
        let record = |kind: Kind, port, args| EventRecord {
            time: time_ns,
            kind: kind as u8,
            flags: tuple.protocol,
            extra: port,
            flow: self.flow(),
            args,
        };
        let [low, high] = halves(self.cookie());
        let socket = [low, high, self.half(socket::PID), self.half(socket::DESCRIPTOR)];
        let records = [
            record(Kind::FlowFrom, tuple.from_port, words(tuple.from)),
            record(Kind::FlowTo, tuple.to_port, words(tuple.to)),
            EventRecord { flags: 0, ..record(Kind::FlowSocket, 0, socket) },
        ];
        let unseen = unseen(time_ns, self.flow(), CallBlindSpot::Stdio as u32, socket[2]);
        let is_stdio = self.state() & socket_state::STDIO != 0;
        let mut all = records.iter().chain(is_stdio.then_some(&unseen));
        if all.all(|record| self.raw.push(ring, record)) {
            self.raw.half(self.at + socket::DEFINED).store(recording, Release);
        }
    }

    /// What a new entry holds, before it has a key.
    fn start(&self, cookie: u64, origin: &InitialSocketEntry, flow: u32) {
        let half = |at: usize, value: u32| self.raw.half(self.at + at).store(value, Relaxed);
        for at in [socket::SENT, socket::RECEIVED] {
            self.raw.word(self.at + at).store(0, Relaxed);
        }
        self.raw.word(self.at + socket::COOKIE).store(cookie, Relaxed);
        half(socket::FLOW, flow);
        half(socket::DEFINED, 0);
        half(socket::STATE, origin.state);
        half(socket::REFERENCES, 1);
        half(socket::NEXT_PEER, 0);
        half(socket::PID, origin.pid);
        half(socket::DESCRIPTOR, origin.descriptor);
        self.set_segment(0);
        self.store_tuple(&origin.tuple);
    }

    fn store_tuple(&self, tuple: &SocketTuple) {
        self.raw.byte(self.at + socket::PROTOCOL).store(tuple.protocol, Relaxed);
        for (at, address) in [(socket::FROM, tuple.from), (socket::TO, tuple.to)] {
            for (index, word) in words(address).into_iter().enumerate() {
                self.raw.half(self.at + at + index * 4).store(word, Relaxed);
            }
        }
        self.raw.quarter(self.at + socket::FROM_PORT).store(tuple.from_port, Relaxed);
        self.raw.quarter(self.at + socket::TO_PORT).store(tuple.to_port, Relaxed);
    }

    /// Gives the entry back, and those of its peers. The chain is bounded, because another process
    /// may have made a circle of it.
    fn free(&self) {
        let mut next = self.raw.half(self.at + socket::NEXT_PEER).swap(0, AcqRel);
        self.raw.word(self.at + socket::KEY).store(0, Release);
        for _ in 0..self.raw.layout().sockets {
            let Some(number) = next.checked_sub(1) else { return };
            let peer = self.raw.entry(number);
            next = self.raw.half(peer.at + socket::NEXT_PEER).swap(0, AcqRel);
            self.raw.half(peer.at + socket::REFERENCES).store(0, Relaxed);
            self.raw.word(peer.at + socket::KEY).store(0, Release);
        }
    }

    fn address(&self, at: usize) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
            let word = self.raw.half(self.at + at + index * 4).load(Relaxed);
            part.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn references(&self) -> u32 {
        self.half(socket::REFERENCES)
    }

    #[inline]
    fn half(&self, at: usize) -> u32 {
        self.raw.half(self.at + at).load(Relaxed)
    }
}

/// A record of calls that a source cannot see; `flow`: of which, or [`NO_FLOW`].
#[must_use]
pub fn unseen(time_ns: u64, flow: u32, reason: u32, pid: u32) -> EventRecord {
    debug_assert!(flow != 0, "0 is no flow: NO_FLOW is {NO_FLOW}");
    let args = [reason, pid, 0, 0];
    EventRecord { time: time_ns, kind: Kind::Unseen as u8, flow, args, ..EventRecord::default() }
}

#[inline]
fn place(direction: SocketCallDirection) -> usize {
    match direction {
        SocketCallDirection::Sent => socket::SENT,
        SocketCallDirection::Received => socket::RECEIVED,
    }
}

/// The finalizer of splitmix64: a bijection.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The key of an entry that is being made.
const CLAIMED: u64 = u64::MAX;
/// How long an entry that is being made is waited for. Its maker may have been killed.
const CLAIMED_SPINS: u32 = 1000;
const ONE_CALL: u64 = 1 << OFFSET_BITS;
const OFFSET_MASK: u64 = ONE_CALL - 1;
