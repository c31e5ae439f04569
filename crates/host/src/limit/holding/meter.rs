//! What a command has of the processors, by the second.

use windtunnel_budget::processor::{self, CpuUsageMeter, CpuUsageReading};
use windtunnel_limit::{ControlGroup, Mechanism};
use windtunnel_verdict::evidence::{CpuAccountWindow, exceeded};

use crate::limit::resources::{CommandCpuSample, ProcessorUse};

/// The meter of a control group, or of a duty cycle.
#[derive(Debug, Default)]
pub(super) struct ProcessorMeter {
    meter: Option<CpuUsageMeter>,
    began: CpuUsageReading,
    last: CpuUsageReading,
    windows: Vec<CpuAccountWindow>,
    failure: Option<String>,
}

impl ProcessorMeter {
    pub(super) fn begin(&mut self, group: Option<&mut ControlGroup>) {
        if let Some(reading) = self.read(group) {
            (self.began, self.last) = (reading, reading);
            self.meter = Some(CpuUsageMeter::new(reading));
        } else {
            self.began.now_ns = windtunnel_sys::clock::monotonic_ns();
            self.last = self.began;
        }
    }

    /// Takes the window of a group that is complete, if one is.
    pub(super) fn look(&mut self, group: Option<&mut ControlGroup>, asked_millis: u32) {
        let Some(reading) = self.read(group) else { return };
        self.last = reading;
        let window = self.meter.as_mut().and_then(|meter| meter.read(reading));
        self.windows.extend(window.map(|window| CpuAccountWindow::new(window, asked_millis)));
    }

    /// A window has one share: the one under way is left out.
    pub(super) fn cut(&mut self, group: Option<&mut ControlGroup>) {
        if let Some(reading) = self.read(group) {
            let _ = self.meter.as_mut().map(|meter| meter.cut(reading));
        }
    }

    /// Takes what a duty cycle has seen.
    pub(super) fn take(
        &mut self,
        windows: Vec<(processor::CpuUsageWindow, u32)>,
        last: CpuUsageReading,
        failure: Option<String>,
    ) {
        let windows = windows.into_iter();
        self.windows.extend(
            windows.map(|(window, asked_millis)| CpuAccountWindow::new(window, asked_millis)),
        );
        if last.now_ns > 0 {
            self.last = last;
        }
        if let Some(why) = failure {
            self.fail(why);
        }
    }

    /// The last window ends, if it is long enough to judge.
    pub(super) fn finish(&mut self, group: Option<&mut ControlGroup>, asked_millis: u32) {
        let Some(reading) = self.read(group) else { return };
        self.last = reading;
        let window = self.meter.as_mut().map(|meter| meter.cut(reading));
        let window = window.filter(|window| window.length_ns >= WINDOW_NS_LEAST);
        self.windows.extend(window.map(|window| CpuAccountWindow::new(window, asked_millis)));
    }

    /// The first reason counts.
    pub(super) fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }

    /// Processor time since the beginning.
    pub(super) fn used_ns(&self) -> u64 {
        self.last.used_ns.saturating_sub(self.began.used_ns)
    }

    pub(super) fn used(&self, asked_millis: u32, by: Mechanism) -> ProcessorUse {
        let used_ns = self.used_ns();
        let length_ns = self.last.now_ns.saturating_sub(self.began.now_ns).max(1);
        let exceeded = exceeded(&self.windows);
        ProcessorUse {
            mechanism: by.to_string(),
            asked_cpus: f64::from(asked_millis) / 1000.0,
            delivered_cpus: used_ns as f64 / length_ns as f64,
            latest_cpus: self.windows.last().map(CpuAccountWindow::delivered),
            used_ns,
            throttled_ns: self.last.held_ns.saturating_sub(self.began.held_ns),
            windows: self.windows.len(),
            bound_windows: self.windows.iter().filter(|window| window.is_bound()).count(),
            exceeded_windows: exceeded.len(),
            exceeded_max_cpus: exceeded.iter().map(|window| window.delivered()).reduce(f64::max),
            around_cpus: None,
            failure: self.failure.clone(),
        }
    }

    pub(super) fn seconds(&self, began_ns: u64) -> Vec<CommandCpuSample> {
        self.windows.iter().map(|window| CommandCpuSample::of(window, began_ns)).collect()
    }

    fn read(&mut self, group: Option<&mut ControlGroup>) -> Option<CpuUsageReading> {
        match group?.read()? {
            Ok(reading) => Some(reading),
            Err(error) => {
                self.fail(error.to_string());
                None
            }
        }
    }
}

/// A tenth of a second, over which quotas and ticks of the kernel's clock are evened out.
const WINDOW_NS_LEAST: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_duty_cycle_has_seen_is_averaged_from_the_beginning() {
        let mut meter = ProcessorMeter::default();
        meter.began.now_ns = 1_000_000_000;
        let window = |end_ns, used_ns| processor::CpuUsageWindow {
            end_ns,
            length_ns: 1_000_000_000,
            used_ns,
            held_ns: 500_000_000,
        };
        let windows = vec![
            (window(2_000_000_000, 250_000_000), 250),
            (window(3_000_000_000, 400_000_000), 250),
        ];
        let last =
            CpuUsageReading { now_ns: 3_000_000_000, used_ns: 650_000_000, held_ns: 1_000_000_000 };
        meter.take(windows, last, None);
        let used = meter.used(250, Mechanism::DutyCycle);
        assert!((used.delivered_cpus - 0.325).abs() < 1e-9, "{used:?}");
        assert_eq!((used.windows, used.bound_windows, used.exceeded_windows), (2, 2, 1));
        assert_eq!(used.latest_cpus, Some(0.4));
        assert_eq!(used.exceeded_max_cpus, Some(0.4));
        let seconds = meter.seconds(1_000_000_000);
        assert_eq!((seconds[1].time_s, seconds[1].delivered_cpus), (2.0, 0.4));
    }
}
