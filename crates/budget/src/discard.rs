//! Early discard: datagrams that a socket would have no room for are dropped where that costs
//! nearly nothing, before the kernel has worked for them.
//!
//! A program that reads datagrams more slowly than they come loses some in any case. If the kernel
//! first carries each to the socket, that work takes processor time from the program, which then
//! reads even more slowly: receive livelock (Mogul and Ramakrishnan, USENIX ATC 1996). So where
//! sockets overflow, only the share of datagrams that is read is let through: [`Controller`] finds
//! it for each destination port from what was handed over and what overflowed, and [`Gate`] lets
//! that share through. Shares and no rates, because the reader may be stopped at times, and those
//! who hand over with it.
//!
//! ```
//! use windtunnel_budget::discard::{ALL, Controller, Gate};
//!
//! let mut controller = Controller::default();
//! (0..1000).for_each(|_| controller.handed(53));
//! // 400 of them found no room.
//! controller.review([(53, 400)].into_iter());
//! let (port, share) = controller.shares().next().unwrap();
//! assert_eq!((port, share * 100 / ALL), (53, 59));
//! let mut gate = Gate::default();
//! let passed = (0..1000).filter(|_| gate.passes(53, share)).count();
//! assert!(passed.abs_diff(600) <= 1);
//! ```

use alloc::collections::BTreeMap;

/// The share that stands for all datagrams.
pub const ALL: u32 = 1 << 16;
/// After so many datagrams the sockets are worth a look.
pub const REVIEW_EVERY: u32 = 512;

/// Finds the share of datagrams to each port that sockets have room for.
#[derive(Debug, Clone, Default)]
pub struct Controller {
    ports: BTreeMap<u16, Port>,
    /// How many datagrams each port's sockets had no room for, when that was last known.
    overflowed: BTreeMap<u16, u64>,
    since_review: u32,
}

#[derive(Debug, Clone, Copy)]
struct Port {
    /// Datagrams since the last review.
    handed: u32,
    /// Of [`ALL`].
    share: u32,
    /// The share at which sockets last overflowed.
    too_much: u32,
    /// Reviews since then.
    fits: u32,
}

impl Controller {
    /// A datagram to this port was handed to the kernel.
    pub fn handed(&mut self, port: u16) {
        let port = self.ports.entry(port).or_insert(Port {
            handed: 0,
            share: ALL,
            too_much: ALL,
            fits: 0,
        });
        port.handed = port.handed.saturating_add(1);
        self.since_review = self.since_review.saturating_add(1);
    }

    /// How many datagrams were handed over since the last review.
    #[must_use]
    pub fn since_review(&self) -> u32 {
        self.since_review
    }

    /// Takes what each port's sockets have overflowed by so far, several entries of a port added
    /// up, and finds new shares. A count that is less than before begins anew.
    pub fn review(&mut self, overflowed: impl Iterator<Item = (u16, u64)>) {
        let mut now = BTreeMap::new();
        for (port, count) in overflowed {
            let sum: &mut u64 = now.entry(port).or_default();
            *sum = sum.saturating_add(count);
        }
        for (number, port) in &mut self.ports {
            let count = now.get(number).copied().unwrap_or(0);
            let before = self.overflowed.get(number).copied().unwrap_or(0);
            port.adapt(count.checked_sub(before).unwrap_or(count));
        }
        // Those that have room for all are forgotten, so that unused ports are, too.
        self.ports.retain(|_, port| port.share < ALL);
        (self.overflowed, self.since_review) = (now, 0);
    }

    /// The ports of which less than all is wanted.
    pub fn shares(&self) -> impl Iterator<Item = (u16, u32)> {
        self.ports.iter().map(|(number, port)| (*number, port.share))
    }
}

impl Port {
    fn adapt(&mut self, overflowed: u64) {
        let handed = core::mem::take(&mut self.handed);
        if overflowed == 0 {
            self.fits += 1;
            if self.fits >= FORGET {
                (self.too_much, self.fits) = (ALL, 0);
            }
            // Quickly to what had nearly fitted, slowly from there on.
            let near = self.too_much / 4 * 3;
            let next = match self.share < near {
                true => (self.share * 2).min(near),
                false => self.share + self.share / GROWTH + 1,
            };
            self.share = next.min(ALL);
            return;
        }
        (self.too_much, self.fits) = (self.share, 0);
        // A reader that was only late, and then finds a burst, must not be taken for a slow one.
        let handed = u64::from(handed.max(1));
        let read = handed.saturating_sub(overflowed).max(handed.div_ceil(2));
        let share = u64::from(self.share) * read / handed;
        self.share = u32::try_from(share).unwrap_or(ALL).clamp(1, ALL - 1);
    }
}

/// Lets shares of datagrams through, evenly spread.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// By port, what is left of shares, of [`ALL`].
    carried: BTreeMap<u16, u32>,
}

impl Gate {
    /// Whether the next datagram to this port goes through, if so much of [`ALL`] should.
    pub fn passes(&mut self, port: u16, share: u32) -> bool {
        let carried = self.carried.entry(port).or_insert(0);
        *carried += share.min(ALL);
        let passes = *carried >= ALL;
        if passes {
            *carried -= ALL;
        }
        passes
    }
}

/// Near what had been too much, a share grows by one of so many parts at a review.
const GROWTH: u32 = 64;
/// After so many reviews without overflow, what had been too much does not count any more.
const FORGET: u32 = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A socket with room for `room` datagrams whose reader takes `reads` in the time in which
    /// `comes` come; the share of what was handed over that found no room, and what was read of
    /// what could be, in the second half of `rounds`.
    fn flood(comes: u64, reads: u64, room: u64, rounds: u64) -> (f64, f64) {
        let (mut controller, mut gate) = (Controller::default(), Gate::default());
        let (mut queued, mut lost, mut handed, mut read) = (0, 0, 0, 0);
        let (mut owed, mut half) = (0, None);
        for round in 0..rounds {
            let share = controller.shares().find(|(port, _)| *port == 9).map(|(_, share)| share);
            if share.is_none_or(|share| gate.passes(9, share)) {
                controller.handed(9);
                handed += 1;
                if queued < room { queued += 1 } else { lost += 1 }
            }
            owed += reads;
            while owed >= comes {
                owed -= comes;
                read += queued.min(1);
                queued -= queued.min(1);
            }
            if controller.since_review() >= REVIEW_EVERY {
                controller.review([(9, lost)].into_iter());
            }
            if round == rounds / 2 {
                half = Some((lost, handed, read));
            }
        }
        let (lost_before, handed_before, read_before) = half.unwrap();
        let could = (rounds - rounds / 2) as f64 * reads as f64 / comes as f64;
        let wasted = (lost - lost_before) as f64 / (handed - handed_before) as f64;
        (wasted, (read - read_before) as f64 / could)
    }

    proptest! {
        #[test]
        fn what_is_handed_over_is_what_is_read(
            comes in 1_100_u64..20_000, room in 64_u64..2000, rounds in 400_000_u64..600_000,
        ) {
            let (wasted, read) = flood(comes, 1000, room, rounds);
            prop_assert!(wasted < 0.03, "{wasted} of the work was for nothing");
            prop_assert!(read > 0.97, "{read} of what could be read");
        }
    }

    #[test]
    fn a_reader_that_keeps_up_gets_everything() {
        assert_eq!(flood(1000, 1000, 256, 100_000).0, 0.0);
    }

    #[test]
    fn a_reader_that_recovers_gets_everything_again() {
        let mut controller = Controller::default();
        let mut overflowed = 0;
        for _ in 0..10 {
            (0..1000).for_each(|_| controller.handed(5));
            overflowed += 999;
            controller.review([(5, overflowed)].into_iter());
        }
        let share = controller.shares().next().map(|(_, share)| share);
        assert_eq!(share, Some(ALL >> 10), "half at a time");
        let mut reviews = 0;
        while controller.shares().next().is_some() {
            controller.handed(5);
            controller.review([(5, overflowed)].into_iter());
            reviews += 1;
        }
        assert!(reviews < 100, "{reviews}");
    }

    #[test]
    fn one_port_does_not_pay_for_another() {
        let mut controller = Controller::default();
        for _ in 0..100 {
            controller.handed(1);
            controller.handed(2);
        }
        controller.review([(1, 20), (1, 30), (2, 0), (3, 7)].into_iter());
        let shares: Vec<_> = controller.shares().collect();
        assert_eq!(shares, [(1, ALL / 2)]);
    }

    #[test]
    fn a_socket_that_was_made_anew_counts_from_nothing() {
        let mut controller = Controller::default();
        controller.handed(1);
        controller.review([(1, 1_000_000)].into_iter());
        (0..100).for_each(|_| controller.handed(1));
        let before = controller.shares().next().unwrap().1;
        controller.review([(1, 10)].into_iter());
        let after = controller.shares().next().unwrap().1;
        assert_eq!(u64::from(after), (u64::from(before) * 9 / 10).max(1));
    }

    #[test]
    fn no_share_is_nothing() {
        let mut controller = Controller::default();
        controller.handed(1);
        controller.review([(1, u64::MAX)].into_iter());
        assert_eq!(controller.shares().next(), Some((1, ALL - 1)), "one was handed, one counts");
        (0..10).for_each(|_| controller.handed(1));
        controller.review([(1, 7)].into_iter());
        assert!(controller.shares().next().unwrap().1 >= 1);
    }
}
