//! Choices for random tests.

use windtunnel_model::LinkDirection;
use windtunnel_model::random::RandomStream;

/// A sequence of choices that a seed fixes.
#[derive(Debug)]
pub struct SimulationRng {
    stream: RandomStream,
    drawn: u64,
}

impl SimulationRng {
    /// The choices of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        SimulationRng {
            stream: RandomStream::derive(seed, "simlab", LinkDirection::Up, "choices"),
            drawn: 0,
        }
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
