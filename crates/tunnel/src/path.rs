//! How large a datagram may be on the way to one peer, how long the way takes, and whether it is
//! there at all.
//!
//! A state machine without a socket, in the manner of RFC 8899: sizes are tried with probes that
//! are longer than the data, and used when they have been answered. It never trusts an ICMP
//! message, which anybody can send.

use windtunnel_model::{Span, Time};

use crate::batch::BYTES_MAX;
use crate::silence::PathLiveness;

/// Bytes of a datagram that every path carries: the least IPv6 MTU, 1280, without headers, and some
/// room for tunnels.
pub(crate) const SAFE: usize = 1200;
/// Sizes that are tried first: common MTUs without the headers of IPv4 or IPv6, and UDP.
const USUAL: [usize; 15] = [
    1232, 1372, 1392, 1422, 1444, 1452, 1472, 4052, 8873, 8952, 8972, 16_356, 32_768, 65_000,
    BYTES_MAX,
];
/// Between sizes that pass and that do not, the search ends here.
const FINE: usize = 16;
/// An answer takes no longer.
const PATIENCE: Span = Span::from_millis(250);
/// Probes of a new size that go unanswered before it is taken for too large.
const TRIES: u32 = 3;
/// Probes of the present size that go unanswered before it is given up.
const TRIES_IN_USE: u32 = 4;
/// How often the present size is tried when all is well.
const KEEP: Span = Span::from_secs(1);
/// After so long larger sizes are tried again.
const RAISE: Span = Span::from_secs(60);
/// Pause between the first two hellos; it doubles up to the greatest.
const HELLO: Span = Span::from_millis(20);
const HELLO_MOST: Span = Span::from_millis(320);
/// The least round trip is that of one or two such times.
const RTT_KEPT: Span = Span::from_secs(4);

/// The path to one peer.
#[derive(Debug)]
pub(crate) struct PeerPathState {
    /// Bytes of a datagram in use.
    size: usize,
    /// This does not pass, and nothing larger.
    over: Option<usize>,
    /// Whether a probe of the present size has been answered.
    answered: bool,
    asked: Option<SizeProbe>,
    due: Time,
    hello: Span,
    /// When larger sizes are tried again.
    raise: Time,
    rtt: [Option<Span>; 2],
    rtt_since: Time,
    silence: PathLiveness,
    /// When the present size is tried again, also in the middle of a search: a probe that is too
    /// large gives no information on whether the peer is alive.
    keep: Time,
}

#[derive(Debug, Clone, Copy)]
struct SizeProbe {
    size: usize,
    times: u32,
}

impl PeerPathState {
    pub(crate) fn new() -> Self {
        PeerPathState {
            size: SAFE,
            over: None,
            answered: false,
            asked: None,
            due: Time::ZERO,
            hello: HELLO,
            raise: Time::MAX,
            rtt: [None; 2],
            rtt_since: Time::ZERO,
            silence: PathLiveness::default(),
            keep: Time::MAX,
        }
    }

    /// Bytes of a datagram that may be used.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The least round trip of the last seconds.
    pub(crate) fn rtt(&self) -> Option<Span> {
        self.rtt.into_iter().flatten().min()
    }

    /// Since when no probe was answered, if that is for long.
    pub(crate) fn silent_since(&self, now: Time) -> Option<Time> {
        self.silence.since(now)
    }

    /// When [`poll`](Self::poll) is to be called.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// The size of the probe that is to be sent now, if one is.
    pub(crate) fn poll(&mut self, now: Time) -> Option<usize> {
        if now < self.due {
            return None;
        }
        let asked = self.asked.take().and_then(|asked| self.unanswered(asked));
        let asked = asked.unwrap_or_else(|| SizeProbe { size: self.next_size(now), times: 0 });
        self.asked = Some(SizeProbe { times: asked.times + 1, ..asked });
        self.due = now + self.pause();
        if asked.size <= self.size {
            self.silence.asked(now);
            self.keep = now + KEEP;
        }
        Some(asked.size)
    }

    /// The peer has answered a probe of `size` bytes after `rtt`.
    pub(crate) fn answered(&mut self, now: Time, size: usize, rtt: Span) {
        self.learn_rtt(now, rtt);
        self.silence.answered();
        self.hello = HELLO;
        let size = size.min(BYTES_MAX);
        if size < self.size || size < SAFE {
            return;
        }
        (self.size, self.answered) = (size, true);
        self.over = self.over.filter(|&over| over > size);
        if self.asked.is_none_or(|asked| asked.size <= size) {
            self.asked = None;
            self.due = if self.larger().is_some() { now } else { now + KEEP };
        }
    }

    /// The device does not take datagrams of `size` bytes.
    pub(crate) fn too_big(&mut self, now: Time, size: usize) {
        if size > SAFE {
            self.over = Some(self.over.map_or(size, |over| over.min(size)));
            self.due = now;
            self.asked = None;
        }
        if size <= self.size {
            self.size = SAFE;
            self.answered = false;
        }
    }

    /// A probe got no answer; returns the probe, if it is to be sent once more.
    fn unanswered(&mut self, asked: SizeProbe) -> Option<SizeProbe> {
        if asked.size > self.size {
            if asked.times < TRIES {
                return Some(asked);
            }
            self.over = Some(asked.size);
            return None;
        }
        if self.answered && asked.times < TRIES_IN_USE {
            return Some(asked);
        }
        if self.answered {
            (self.size, self.over, self.answered) = (SAFE, None, false);
        }
        self.hello = (self.hello + self.hello).min(HELLO_MOST);
        None
    }

    fn next_size(&mut self, now: Time) -> usize {
        if !self.answered {
            return SAFE;
        }
        if now >= self.raise {
            (self.over, self.raise) = (None, Time::MAX);
        }
        if let Some(larger) = self.larger() {
            return if now < self.keep { larger } else { self.size };
        }
        if self.over.is_some() && self.raise == Time::MAX {
            self.raise = now + RAISE;
        }
        self.size
    }

    /// The next size to try, until the search has ended.
    fn larger(&self) -> Option<usize> {
        let below = |size: usize| self.over.is_none_or(|over| size < over);
        let usual = USUAL.into_iter().find(|&size| size > self.size && below(size));
        let middle = || {
            let gap = self.over?.saturating_sub(self.size);
            (gap > FINE).then(|| self.size + gap / 2)
        };
        usual.or_else(middle)
    }

    fn pause(&self) -> Span {
        if self.answered { PATIENCE } else { self.hello }
    }

    fn learn_rtt(&mut self, now: Time, rtt: Span) {
        if now.since(self.rtt_since) > RTT_KEPT {
            self.rtt = [None, self.rtt[0]];
            self.rtt_since = now;
        }
        self.rtt[0] = Some(self.rtt[0].map_or(rtt, |least| least.min(rtt)));
    }
}

#[cfg(test)]
mod tests;
