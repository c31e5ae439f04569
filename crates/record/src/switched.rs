//! A source that cannot be stopped where it is, and whose records are left out instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windtunnel_evidence::file::Source;
use windtunnel_model::record::Record;

use crate::drain::Feed;

/// Passes on the records of `feed` while `is_on`.
#[derive(Debug)]
pub struct Switched<F> {
    feed: F,
    is_on: Arc<AtomicBool>,
}

impl<F: Feed> Switched<F> {
    /// Off as long as the switch is.
    #[must_use]
    pub fn new(feed: F, is_on: Arc<AtomicBool>) -> Switched<F> {
        Switched { feed, is_on }
    }
}

impl<F: Feed> Feed for Switched<F> {
    fn source(&self) -> Source {
        self.feed.source()
    }

    fn take(&mut self, most: usize, records: &mut Vec<Record>) {
        let before = records.len();
        self.feed.take(most, records);
        if !self.is_on.load(Ordering::Relaxed) {
            records.truncate(before);
        }
    }

    fn fill(&self) -> (u64, u64) {
        self.feed.fill()
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::record::kind::Layer;

    use super::*;
    use crate::shelf::Shelf;

    #[test]
    fn records_of_a_source_that_is_off_are_taken_and_left_out() {
        let (shelf, feed) = Shelf::new(Source::of_node(Layer::Kernel, 0, 0), 8);
        let is_on = Arc::new(AtomicBool::new(false));
        let mut feed = Switched::new(feed, Arc::clone(&is_on));
        let mut records = vec![Record { time: 1, ..Record::default() }];
        shelf.put(&Record { time: 2, ..Record::default() });
        feed.take(8, &mut records);
        is_on.store(true, Ordering::Relaxed);
        shelf.put(&Record { time: 3, ..Record::default() });
        feed.take(8, &mut records);
        assert_eq!(records.iter().map(|record| record.time).collect::<Vec<_>>(), [1, 3]);
    }
}
