//! Buffers of packets that have gone, for those that come.

/// Two stacks, so that acknowledgements do not take the buffers of trains.
#[derive(Debug, Default)]
pub(super) struct BufferPool {
    short: Vec<Vec<u8>>,
    long: Vec<Vec<u8>>,
}

impl BufferPool {
    /// A buffer for a frame of `length` bytes, of any content and length.
    pub(super) fn take(&mut self, length: usize) -> Vec<u8> {
        self.of(length).pop().unwrap_or_default()
    }

    /// Takes back a buffer with a frame in it.
    pub(super) fn give(&mut self, buffer: Vec<u8>) {
        let kept = self.of(buffer.len());
        if kept.len() < KEPT {
            kept.push(buffer);
        }
    }

    fn of(&mut self, length: usize) -> &mut Vec<Vec<u8>> {
        if length <= SHORT { &mut self.short } else { &mut self.long }
    }
}

/// What an Ethernet frame has; jumbo frames and trains are longer.
const SHORT: usize = 1600;
/// Of each kind: what a turn of the loop takes in, and 8 MiB at the most.
const KEPT: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_for_frames_of_their_kind() {
        let mut buffer_pool = BufferPool::default();
        buffer_pool.give(vec![1; 60]);
        assert_eq!(buffer_pool.take(65_226).capacity(), 0);
        assert!(buffer_pool.take(1514).capacity() >= 60);
        buffer_pool.give(vec![1; 65_226]);
        assert_eq!(buffer_pool.take(60).capacity(), 0);
        assert!(buffer_pool.take(9000).capacity() >= 65_226);
        (0..200).for_each(|_| buffer_pool.give(vec![1; 60]));
        assert_eq!(
            std::iter::from_fn(|| Some(buffer_pool.take(60)).filter(|it| it.capacity() > 0))
                .count(),
            KEPT
        );
    }
}
