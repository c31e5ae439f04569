//! Readings of processor time, in windows for reports.

use serde::{Deserialize, Serialize};

/// The length of a window: it ends with the first reading after that.
pub const WINDOW_NS: u64 = 1_000_000_000;

/// What a group has had so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuUsageReading {
    /// The time of the reading.
    pub now_ns: u64,
    /// Processor time that it has used.
    pub used_ns: u64,
    /// How long it was kept from running.
    pub held_ns: u64,
}

/// What a group has had in about a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUsageWindow {
    /// When it ended.
    pub end_ns: u64,
    /// How long it was.
    pub length_ns: u64,
    /// Processor time that was used.
    pub used_ns: u64,
    /// How long the group was kept from running.
    pub held_ns: u64,
    /// Thousandths of a processor that were asked.
    pub asked_millis: u32,
}

/// Makes windows of readings.
#[derive(Debug, Clone)]
pub struct CpuUsageMeter {
    began: CpuUsageReading,
}

impl CpuUsageMeter {
    /// The first window begins with this reading.
    #[must_use]
    pub fn new(began: CpuUsageReading) -> Self {
        CpuUsageMeter { began }
    }

    /// When the window under way will be complete.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        self.began.now_ns.saturating_add(WINDOW_NS)
    }

    /// The window that is complete with this reading, if one is; `asked_millis` were asked in it.
    pub fn read(&mut self, reading: CpuUsageReading, asked_millis: u32) -> Option<CpuUsageWindow> {
        (reading.now_ns >= self.due_ns()).then(|| self.cut(reading, asked_millis))
    }

    /// Ends the window under way with this reading, however long it is.
    pub fn cut(&mut self, reading: CpuUsageReading, asked_millis: u32) -> CpuUsageWindow {
        let began = core::mem::replace(&mut self.began, reading);
        CpuUsageWindow {
            end_ns: reading.now_ns,
            length_ns: reading.now_ns.saturating_sub(began.now_ns),
            used_ns: reading.used_ns.saturating_sub(began.used_ns),
            held_ns: reading.held_ns.saturating_sub(began.held_ns),
            asked_millis,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(now_ms: u64, used_ms: u64, held_ms: u64) -> CpuUsageReading {
        let ns = |ms: u64| ms * 1_000_000;
        CpuUsageReading { now_ns: ns(now_ms), used_ns: ns(used_ms), held_ns: ns(held_ms) }
    }

    #[test]
    fn a_window_ends_with_the_first_reading_after_a_second_and_the_next_begins_there() {
        let mut meter = CpuUsageMeter::new(reading(5, 1, 0));
        assert_eq!(meter.read(reading(1004, 250, 700), 250), None);
        let window = meter.read(reading(1010, 252, 703), 250).unwrap();
        assert_eq!((window.length_ns, window.used_ns), (1_005_000_000, 251_000_000));
        assert_eq!((window.end_ns, window.held_ns), (1_010_000_000, 703_000_000));
        assert_eq!(meter.read(reading(2009, 500, 1400), 250), None);
        let rest = meter.cut(reading(2009, 500, 1400), 250);
        assert_eq!((rest.length_ns, rest.used_ns), (999_000_000, 248_000_000));
    }
}
