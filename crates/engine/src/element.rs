//! What a lane does to packets, one element a file, in the order in which a packet meets them:
//! [`cut`], [`mtu`], [`loss`], [`duplicate`], [`corrupt`], [`queue`] with its disciplines,
//! [`rate`], [`delay`] with [`jitter`] and [`reorder`]; [`trace`] is what rate, delay and loss may
//! follow.
//!
//! Each file opens with the same headings: parameters, effect on time, order and bytes, drop
//! reasons, and the model that it follows.

pub(crate) mod corrupt;
pub(crate) mod cut;
pub(crate) mod delay;
pub(crate) mod duplicate;
pub(crate) mod jitter;
pub(crate) mod loss;
pub(crate) mod mtu;
mod quantiles;
pub(crate) mod queue;
pub(crate) mod rate;
pub(crate) mod reorder;
pub(crate) mod trace;

use alloc::format;

use windtunnel_model::random::RandomStream;
use windtunnel_model::{LinkDirection, Probability};

/// Names the streams of one lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RngKey<'a> {
    pub(crate) seed: u64,
    pub(crate) link: &'a str,
    pub(crate) direction: LinkDirection,
    /// Which of the machines with this lane it is: each draws for itself.
    pub(crate) part: u32,
}

impl RngKey<'_> {
    pub(crate) fn stream(&self, element: &str) -> RandomStream {
        if self.part == 0 {
            return RandomStream::derive(self.seed, self.link, self.direction, element);
        }
        let part = format!("part {}", self.part);
        RandomStream::named(self.seed, &[self.link, self.direction.name(), element, &part])
    }
}

/// The draws of one element: a packet and its duplicate have the same number but other draws.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RandomDraws {
    original: RandomStream,
    copy: RandomStream,
}

impl RandomDraws {
    pub(crate) fn new(rng: &RngKey<'_>, element: &str) -> Self {
        let copy = rng.stream(&format!("{element}-copy"));
        RandomDraws { original: rng.stream(element), copy }
    }

    pub(crate) fn at(&self, number: u64, copy: bool) -> u64 {
        if copy { self.copy.at(number) } else { self.original.at(number) }
    }

    pub(crate) fn decide(&self, probability: Probability, number: u64, copy: bool) -> bool {
        !probability.is_never() && probability.decides(self.at(number, copy))
    }
}
