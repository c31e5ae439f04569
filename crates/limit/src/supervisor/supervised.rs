//! One limit, and what came of it by the accounts of what holds it.

use std::io;

use serde::{Deserialize, Serialize};
use windtunnel_budget::processor::{CpuUsageMeter, CpuUsageReading, CpuUsageWindow};
use windtunnel_model::{HeldLimit, LimitMechanism, Resource};
use windtunnel_sys::clock;

use super::disk::DiskMeter;
use crate::group::ControlGroup;
use crate::watch::ResourceWatchUsage;

/// One limit.
#[derive(Debug)]
pub struct SupervisedLimit {
    /// The position of the program whose own it is; `None`: it is that of all programs together.
    pub program: Option<usize>,
    pub resource: Resource,
    pub held: HeldLimit,
    /// Seconds of processor time, in the order of time.
    pub windows: Vec<CpuUsageWindow>,
    /// What was known each second of everything else, in the order of time.
    pub samples: Vec<LimitSample>,
    /// The most that was ever asked.
    most: u64,
    cpu: CpuAccount,
    disk: DiskMeter,
    /// What a watch sees of memory that a group limits.
    beside: Option<ResourceWatchUsage>,
}

/// What was known of a limit at some time; counts are those since the group was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitSample {
    /// After the beginning of the run.
    pub at_ns: u64,
    pub asked: u64,
    pub used: u64,
    pub met: u64,
    pub ended: u64,
    pub faults: u64,
    pub evicted: Option<u64>,
    pub refaulted: Option<u64>,
}

/// A limit was met, and something was refused or ended for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitHit {
    /// Of which program it is, or which was ended; `None`: that of all is.
    pub program: Option<usize>,
    pub resource: Resource,
    /// What is allowed.
    pub asked: u64,
    /// Processes that were ended for it since the last report.
    pub ended: u64,
    /// Names of some of these, where they are known.
    pub names: Vec<String>,
}

/// Processor time.
#[derive(Debug, Default)]
struct CpuAccount {
    /// Since when it counts.
    origin_ns: Option<u64>,
    /// When it came to its end.
    ended_ns: Option<u64>,
    /// Of a group.
    meter: Option<CpuUsageMeter>,
    began: CpuUsageReading,
    last: CpuUsageReading,
}

impl SupervisedLimit {
    pub(super) fn new(
        program: Option<usize>,
        resource: Resource,
        mechanism: LimitMechanism,
        asked: u64,
    ) -> SupervisedLimit {
        SupervisedLimit {
            program,
            resource,
            held: HeldLimit::new(resource, mechanism, asked),
            windows: Vec::new(),
            samples: Vec::new(),
            most: asked,
            cpu: CpuAccount::default(),
            disk: DiskMeter::default(),
            beside: None,
        }
    }

    /// It could not be held. The first reason counts, and none after the end.
    pub fn fail(&mut self, why: String) {
        if self.cpu.ended_ns.is_none() {
            self.held.fail(why);
        }
    }

    /// From now on it counts, where `origin_ns` is the time by which windows are judged.
    pub(super) fn begin(&mut self, group: Option<&mut ControlGroup>, origin_ns: u64) {
        let reading = self.read_cpu(group);
        let now_ns = clock::monotonic_ns();
        self.cpu = CpuAccount {
            origin_ns: Some(origin_ns),
            meter: reading.map(CpuUsageMeter::new),
            began: reading.unwrap_or(CpuUsageReading { now_ns, ..CpuUsageReading::default() }),
            ..CpuAccount::default()
        };
        self.cpu.last = self.cpu.began;
    }

    /// From now on nothing counts.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.cpu.ended_ns = Some(now_ns);
        self.cpu.meter = None;
    }

    /// From now on so much is asked, and held.
    pub(super) fn take_asked(&mut self, asked: u64, group: Option<&mut ControlGroup>) {
        (self.held.asked, self.most) = (asked, self.most.max(asked));
        self.disk.restart();
        if self.resource == Resource::Cpu {
            // A window has one share: the one under way is left out.
            self.cpu.meter = self.read_cpu(group).map(CpuUsageMeter::new);
        }
    }

    /// When the window of processor time under way will be complete, where a group has its account.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.cpu.meter.as_ref().map(CpuUsageMeter::due_ns)
    }

    /// Reads the processor time of its group.
    pub(super) fn meter(&mut self, group: Option<&mut ControlGroup>) {
        let Some(reading) = self.read_cpu(group) else {
            self.cpu.meter = None;
            return;
        };
        self.cpu.last = reading;
        let asked = self.asked_millis();
        let window = self.cpu.meter.as_mut().and_then(|meter| meter.read(reading, asked));
        window.into_iter().for_each(|window| self.add_window(window));
    }

    /// Ends the window under way, if it is long enough to judge.
    pub(super) fn finish(&mut self, group: Option<&mut ControlGroup>) {
        let Some(reading) = self.read_cpu(group) else { return };
        self.cpu.last = reading;
        let asked = self.asked_millis();
        let window = self.cpu.meter.as_mut().map(|meter| meter.cut(reading, asked));
        let window = window.filter(|window| window.length_ns >= WINDOW_NS_LEAST);
        window.into_iter().for_each(|window| self.add_window(window));
    }

    /// What a duty cycle has read last.
    pub fn note_last(&mut self, last: CpuUsageReading) {
        if last.now_ns > 0 {
            self.cpu.last = last;
        }
    }

    /// What was used of processors, and for how long programs were kept from running, in the time that
    /// passed, since it counts.
    #[must_use]
    pub fn total(&self) -> CpuUsageReading {
        let CpuAccount { began, last, .. } = self.cpu;
        CpuUsageReading {
            now_ns: last.now_ns.saturating_sub(began.now_ns),
            used_ns: last.used_ns.saturating_sub(began.used_ns),
            held_ns: last.held_ns.saturating_sub(began.held_ns),
        }
    }

    /// Adds a window that is complete, unless it began before it counts, or ended later.
    pub(super) fn add_window(&mut self, window: CpuUsageWindow) {
        let began_ns = window.end_ns.saturating_sub(window.length_ns);
        let is_over = self.cpu.ended_ns.is_some_and(|ended_ns| window.end_ns > ended_ns);
        if self.cpu.origin_ns.is_some_and(|origin_ns| began_ns >= origin_ns) && !is_over {
            self.windows.push(window);
        }
    }

    fn read_cpu(&mut self, group: Option<&mut ControlGroup>) -> Option<CpuUsageReading> {
        let group = group.filter(|_| self.resource == Resource::Cpu)?;
        group.read()?.map_err(|error| self.fail(error.to_string())).ok()
    }

    /// Thousandths of a processor.
    #[must_use]
    pub fn asked_millis(&self) -> u32 {
        u32::try_from(self.held.asked).unwrap_or(u32::MAX)
    }

    /// What is used now: of processors, what was in the last window.
    pub(super) fn used_now(&self) -> Option<u64> {
        if self.resource != Resource::Cpu {
            return self.held.used;
        }
        let window = self.windows.last()?;
        Some(window.used_ns.saturating_mul(1000) / window.length_ns.max(1))
    }

    /// Writes down what is known so long after the beginning of the run.
    pub(super) fn write_down(&mut self, at_ns: u64) {
        if matches!(self.resource, Resource::Memory | Resource::Pids | Resource::Disk) {
            let HeldLimit { asked, used, met, ended, faults, evicted, refaulted, .. } = self.held;
            let [used, faults] = [used, faults].map(Option::unwrap_or_default);
            let now = LimitSample { at_ns, asked, used, met, ended, faults, evicted, refaulted };
            self.samples.push(now);
        }
    }

    /// Looks at the account of the group that holds it. Says so where something new came of it.
    pub(super) fn read(&mut self, group: &mut ControlGroup) -> Option<LimitHit> {
        let (met, ended) = (self.held.met, self.held.ended);
        if let Err(error) = self.read_account(group)? {
            self.fail(error.to_string());
        }
        // Taking back memory is what programs do not notice; of the first refusal there is news.
        let refused = self.resource == Resource::Pids && met == 0 && self.held.met > 0;
        let ended = self.held.ended.saturating_sub(ended);
        (refused || ended > 0).then(|| self.hit(ended, Vec::new()))
    }

    fn read_account(&mut self, group: &mut ControlGroup) -> Option<io::Result<()>> {
        match self.resource {
            Resource::Memory => Some(group.memory()?.map(|seen| {
                self.held.note_used(seen.used, seen.peak);
                (self.held.met, self.held.ended) = (seen.reclaims, seen.killed);
                self.held.faults = Some(seen.faults);
                (self.held.evicted, self.held.refaulted) = (seen.evicted, seen.refaulted);
            })),
            Resource::Pids => Some(group.pids()?.map(|seen| {
                self.held.note_used(seen.count, seen.peak);
                self.held.met = seen.refused;
            })),
            Resource::Disk => Some(group.disks()?.map(|seen| {
                let excess = self.disk.take(seen, &mut self.held);
                excess.into_iter().for_each(|why| self.fail(why));
            })),
            Resource::Cpu | Resource::OpenFiles => None,
        }
    }

    /// What a watch says of it.
    pub(super) fn take_used(
        &mut self,
        seen: &ResourceWatchUsage,
        notes_full: bool,
    ) -> Option<LimitHit> {
        let before = self.held.ended;
        match self.resource {
            Resource::Memory if self.held.mechanism.is_group() => {
                self.beside = Some(seen.clone());
                return None;
            }
            Resource::Memory => {
                self.held.note_used(seen.memory, seen.memory_peak);
                (self.held.faults, self.held.ended) = (Some(seen.faults), seen.ended_for_memory);
            }
            Resource::Pids => {
                self.held.note_used(seen.pids, seen.pids_peak);
                self.held.ended = seen.ended_for_pids;
            }
            Resource::Cpu | Resource::Disk | Resource::OpenFiles => return None,
        }
        seen.failure.iter().for_each(|why| self.fail(why.clone()));
        // Its number of processes is not believed to shrink, but it may come from another process.
        let ended = self.held.ended.saturating_sub(before);
        self.held.met = self.held.met.saturating_add(ended);
        let is_full = self.resource == Resource::Pids && seen.pids >= self.held.asked;
        let full = notes_full && is_full && self.held.met == 0;
        self.held.met = self.held.met.saturating_add(u64::from(full));
        let names = || seen.ended.iter().map(|(name, _)| windtunnel_model::valid::shown(name));
        (ended > 0 || full).then(|| self.hit(ended, names().collect()))
    }

    fn hit(&self, ended: u64, names: Vec<String>) -> LimitHit {
        let SupervisedLimit { program, resource, .. } = *self;
        LimitHit { program, resource, asked: self.held.asked, ended, names }
    }

    /// Its state, with what a watch beside its group has seen, and more of what is not held: a watch
    /// looks now and then, and in between there can be more.
    #[must_use]
    pub fn state(&self) -> HeldLimit {
        let mut held = self.held.clone();
        if let Some(beside) = &self.beside {
            held.used = held.used.map(|used| used.max(beside.memory));
            held.peak = held.peak.map(|peak| peak.max(beside.memory_peak));
            held.met += beside.ended_for_memory;
            held.ended += beside.ended_for_memory;
        }
        let peak = held.peak.unwrap_or(0);
        if held.mechanism == LimitMechanism::Watch && peak > self.most {
            let most = self.most;
            let what = match self.resource {
                Resource::Memory => "bytes were in use",
                _ => "processes and threads ran",
            };
            held.fail(format!(
                "{peak} {what} between two looks of the watch, where {most} are allowed"
            ));
        }
        held
    }
}

/// A tenth of a second, over which quotas and ticks of the kernel's clock are evened out.
const WINDOW_NS_LEAST: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(resource: Resource, mechanism: LimitMechanism, asked: u64) -> SupervisedLimit {
        SupervisedLimit::new(None, resource, mechanism, asked)
    }

    #[test]
    fn what_is_ended_is_news_once() {
        let mut limit = limit(Resource::Memory, LimitMechanism::Watch, 1000);
        let mut seen =
            ResourceWatchUsage { memory: 900, memory_peak: 990, ..ResourceWatchUsage::default() };
        assert_eq!(limit.take_used(&seen, true), None);
        seen.ended_for_memory = 2;
        seen.ended = vec![("eat\u{7}er".to_owned(), 5)];
        let hit = limit.take_used(&seen, true).unwrap();
        assert_eq!((hit.ended, hit.names.len()), (2, 1));
        assert!(!hit.names[0].contains('\u{7}'));
        assert_eq!(limit.take_used(&seen, true), None);
        let held = &limit.held;
        assert_eq!((held.used, held.peak, held.ended, held.met), (Some(900), Some(990), 2, 2));
    }

    #[test]
    fn what_was_used_between_two_looks_of_a_watch_was_not_limited() {
        let seen = |memory_peak, pids_peak| ResourceWatchUsage {
            memory_peak,
            pids_peak,
            ..ResourceWatchUsage::default()
        };
        let mut memory = limit(Resource::Memory, LimitMechanism::Watch, 50_000_000);
        memory.take_used(&seen(50_000_000, 5), false);
        assert_eq!(memory.state().failure, None);
        memory.take_used(&seen(50_004_096, 6), false);
        let why = memory.state().failure.unwrap();
        assert!(why.starts_with("50004096 bytes were in use between two looks"), "{why}");
        let mut pids = limit(Resource::Pids, LimitMechanism::Watch, 5);
        pids.take_used(&seen(0, 6), false);
        assert!(pids.state().failure.is_some());
        // A group counts pages of files that were there before.
        memory.held.mechanism = LimitMechanism::GroupV1;
        assert_eq!(memory.state().failure, None);
        // What was allowed before may have been used before.
        memory.held.mechanism = LimitMechanism::Watch;
        memory.take_asked(60_000_000, None);
        memory.take_asked(40_000_000, None);
        assert_eq!(memory.state().failure, None);
    }

    #[test]
    fn what_ended_after_the_run_is_not_in_its_account_nor_is_what_failed_then() {
        let mut limit = limit(Resource::Cpu, LimitMechanism::DutyCycle, 250);
        limit.begin(None, 3_000_000_000);
        limit.end(5_500_000_000);
        let window = |end_ns| CpuUsageWindow {
            end_ns,
            length_ns: 1_000_000_000,
            asked_millis: 250,
            ..CpuUsageWindow::default()
        };
        // The last whole second of the run may be reported late.
        limit.add_window(window(5_000_000_000));
        limit.add_window(window(5_600_000_000));
        limit.fail("its init is gone".to_owned());
        let ends: Vec<u64> = limit.windows.iter().map(|it| it.end_ns).collect();
        assert_eq!((ends, limit.held.failure), (vec![5_000_000_000], None));
    }

    #[test]
    fn what_began_before_the_run_is_not_in_its_account() {
        let mut limit = limit(Resource::Cpu, LimitMechanism::DutyCycle, 250);
        let window = |used_ns| CpuUsageWindow {
            end_ns: 5_000_000_000,
            length_ns: 1_000_000_000,
            used_ns,
            ..CpuUsageWindow::default()
        };
        limit.add_window(window(1));
        limit.begin(None, 4_500_000_000);
        limit.add_window(window(2));
        limit.begin(None, 4_000_000_000);
        limit.add_window(window(3));
        let used: Vec<u64> = limit.windows.iter().map(|it| it.used_ns).collect();
        assert_eq!(used, [3]);
    }

    #[test]
    fn what_a_duty_cycle_has_seen_is_averaged_from_the_beginning() {
        let mut limit = limit(Resource::Cpu, LimitMechanism::DutyCycle, 250);
        limit.begin(None, 0);
        limit.cpu.began.now_ns = 1_000_000_000;
        limit.note_last(CpuUsageReading {
            now_ns: 3_000_000_000,
            used_ns: 650_000_000,
            held_ns: 1_000_000_000,
        });
        limit.note_last(CpuUsageReading::default());
        let total = limit.total();
        assert_eq!((total.now_ns, total.used_ns), (2_000_000_000, 650_000_000));
    }
}
