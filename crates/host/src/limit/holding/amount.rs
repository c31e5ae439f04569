//! What a command has of memory, processes and descriptors.

use windtunnel_limit::group::{MemoryReading, ProcessReading};
use windtunnel_limit::watch::{ResourceWatchLimits, ResourceWatchUsage};
use windtunnel_limit::{ControlGroup, Mechanism, ResourceWatch};

use crate::limit::resources::AmountUse;

/// The last that was seen.
#[derive(Debug, Default)]
pub(super) struct ResourceReadings {
    memory: MemoryReading,
    processes: ProcessReading,
    /// Processes that were ended because they were too many.
    ended: u64,
    names: Vec<String>,
    /// What a watch has seen that sees to memory beside a group.
    beside: Option<ResourceWatchUsage>,
    /// The most that was ever allowed of memory, and of processes.
    most: [u64; 2],
    failure: Option<String>,
}

impl ResourceReadings {
    /// Looks at the account of a group.
    pub(super) fn look(&mut self, group: Option<&mut ControlGroup>) {
        let Some(group) = group else { return };
        match group.memory() {
            Some(Ok(seen)) => self.memory = seen,
            Some(Err(error)) => self.fail(error.to_string()),
            None => {}
        }
        match group.processes() {
            Some(Ok(seen)) => self.processes = seen,
            Some(Err(error)) => self.fail(error.to_string()),
            None => {}
        }
    }

    /// Looks at what a watch has seen of what it is to watch; with `is_beside`, a group limits memory as
    /// well.
    pub(super) fn take(
        &mut self,
        watch: &ResourceWatch,
        watched: ResourceWatchLimits,
        is_beside: bool,
    ) {
        if let Some(news) = watch.take() {
            self.names.extend(news.ended.into_iter().map(|(name, _)| name));
        }
        let seen = watch.now();
        if let Some(why) = &seen.failure {
            self.fail(why.clone());
        }
        if watched.memory.is_some() && !is_beside {
            (self.memory.used, self.memory.peak) = (seen.memory, seen.memory_peak);
            self.memory.killed = seen.ended_for_memory;
            self.memory.reclaims = seen.ended_for_memory;
        }
        if watched.processes.is_some() {
            (self.processes.count, self.processes.peak) = (seen.processes, seen.processes_peak);
            self.ended = seen.ended_for_number;
        }
        self.beside = is_beside.then_some(seen);
    }

    /// From now on so much is allowed.
    pub(super) fn allow(&mut self, memory: Option<u64>, processes: Option<u32>) {
        let now = [memory.unwrap_or(0), processes.map_or(0, u64::from)];
        self.most = [self.most[0].max(now[0]), self.most[1].max(now[1])];
    }

    /// Why memory could not be held. A watch looks now and then: in between there can be more.
    pub(super) fn failure_of_memory(&self, by: Mechanism) -> Option<String> {
        self.overshot(by, self.memory.peak, self.most[0], "bytes were in use")
    }

    /// The same of processes.
    pub(super) fn failure_of_processes(&self, by: Mechanism) -> Option<String> {
        let what = "processes and threads ran";
        self.overshot(by, self.processes.peak, self.most[1], what)
    }

    fn overshot(&self, by: Mechanism, peak: u64, most: u64, what: &str) -> Option<String> {
        let over = (by == Mechanism::Watch && peak > most).then(|| {
            format!("{peak} {what} between two looks of the watch, where {most} are allowed")
        });
        self.failure.clone().or(over)
    }

    pub(super) fn memory(&self, asked: u64, by: Mechanism) -> AmountUse {
        let MemoryReading { used, peak, reclaims, killed, .. } = self.memory;
        let part = self.part(asked, by);
        let own =
            AmountUse { met: reclaims, ended: killed, used: Some(used), peak: Some(peak), ..part };
        let Some(beside) = &self.beside else { return own };
        AmountUse {
            mechanism: format!("{by} and watch"),
            met: reclaims + beside.ended_for_memory,
            ended: killed + beside.ended_for_memory,
            used: Some(used.max(beside.memory)),
            peak: Some(peak.max(beside.memory_peak)),
            names: self.names.clone(),
            ..own
        }
    }

    pub(super) fn processes(&self, asked: u64, by: Mechanism) -> AmountUse {
        let ProcessReading { count, peak, refused } = self.processes;
        let met = refused + self.ended;
        let own = AmountUse { met, ended: self.ended, ..self.part(asked, by) };
        AmountUse { used: Some(count), peak: Some(peak), ..own }
    }

    /// The kernel refuses what is more, and counts nothing.
    pub(super) fn descriptors(asked: u64) -> AmountUse {
        ResourceReadings::default().part(asked, Mechanism::PerProcess)
    }

    fn part(&self, asked: u64, by: Mechanism) -> AmountUse {
        let is_watched = by == Mechanism::Watch;
        AmountUse {
            mechanism: by.to_string(),
            asked,
            used: None,
            peak: None,
            met: 0,
            ended: 0,
            names: if is_watched { self.names.clone() } else { Vec::new() },
            failure: self.failure.clone(),
        }
    }

    /// The first reason counts.
    fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_between_two_looks_of_a_watch_was_not_limited() {
        let mut amounts = ResourceReadings::default();
        amounts.allow(Some(50_000_000), Some(5));
        (amounts.memory.peak, amounts.processes.peak) = (50_000_000, 5);
        assert_eq!(amounts.failure_of_memory(Mechanism::Watch), None);
        (amounts.memory.peak, amounts.processes.peak) = (50_004_096, 6);
        let why = amounts.failure_of_memory(Mechanism::Watch).unwrap();
        assert!(why.starts_with("50004096 bytes were in use between two looks"), "{why}");
        assert!(amounts.failure_of_processes(Mechanism::Watch).is_some());
        // A group counts pages of files that were there before.
        assert_eq!(amounts.failure_of_memory(Mechanism::GroupV1), None);
        // What was allowed before may have been used before.
        amounts.allow(Some(60_000_000), Some(5));
        amounts.allow(Some(40_000_000), Some(5));
        assert_eq!(amounts.failure_of_memory(Mechanism::Watch), None);
    }
}
