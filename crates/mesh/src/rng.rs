//! Random decisions from a seed.

use core::convert::Infallible;

use rand_core::TryRng;
use windtunnel_model::Span;
use windtunnel_model::random::{RandomSequence, RandomStream};

/// A sequence of choices that the seed and the agent fix.
#[derive(Debug, Clone)]
pub(crate) struct SeededRng {
    draws: RandomSequence,
}

impl SeededRng {
    pub(crate) fn new(seed: u64, agent: &str, purpose: &str) -> Self {
        SeededRng {
            draws: RandomSequence::new(RandomStream::named(
                seed,
                &["mesh", agent, purpose, "choices"],
            )),
        }
    }

    /// An independent stream of choices.
    pub(crate) fn fork(&self, purpose: &str) -> Self {
        let seed = self.draws.clone().below(u64::MAX);
        SeededRng {
            draws: RandomSequence::new(RandomStream::named(
                seed,
                &["mesh", "fork", purpose, "choices"],
            )),
        }
    }

    /// A number below `bound`; 0 where that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.draws.below(bound)
    }

    /// A time from 7/8 of `span` to 9/8 of it, so that agents do not all speak at once.
    pub(crate) fn about(&mut self, span: Span) -> Span {
        let eighth = span.as_nanos() / 8;
        Span::from_nanos(span.as_nanos() - eighth + self.below(2 * eighth))
    }
}

impl TryRng for SeededRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::try_from(self.below(1 << 32)).unwrap_or(0))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.below(1 << 32) << 32 | self.below(1 << 32))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.iter_mut().for_each(|byte| *byte = u8::try_from(self.below(256)).unwrap_or(0));
        Ok(())
    }
}
