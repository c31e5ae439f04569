//! Choices for random tests.

use windtunnel_model::Direction;
use windtunnel_model::random::Stream;

/// A sequence of choices that a seed fixes.
#[derive(Debug)]
pub struct Rng {
    stream: Stream,
    drawn: u64,
}

impl Rng {
    /// The choices of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Rng { stream: Stream::derive(seed, "simlab", Direction::Up, "choices"), drawn: 0 }
    }

    /// A number below `limit`; 0 where that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.drawn += 1;
        self.stream.at(self.drawn) % limit.max(1)
    }

    /// One of `items`.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        items[usize::try_from(self.below(count)).unwrap_or(0)]
    }
}
