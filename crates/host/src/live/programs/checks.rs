//! Commands that say whether programs are ready: when each runs, and what its end means.
//!
//! The first check is made as soon as the program runs, the next some time after the end of the one
//! before, until one succeeds or the program ends. While all programs are paused because the emulation
//! is behind, no check begins, and one that runs has that much more time.

mod written;

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};

use windtunnel_model::plan::ReadinessCheck;
use windtunnel_model::{Span, Time};
use windtunnel_verdict::evidence::ProgramKey;

use crate::live::under_way::UnderWay;
use written::CommandOutputTail;

/// All checks of this machine's programs.
#[derive(Debug)]
pub(in crate::live) struct ReadinessCheckTable {
    programs: BTreeMap<ProgramKey, ReadinessCheckState>,
    /// Commands that run. One that is not wanted any more stays until it has ended.
    under_way: UnderWay<InFlightReadinessCheck>,
}

/// A program that is not ready yet.
#[derive(Debug)]
struct ReadinessCheckState {
    check: ReadinessCheck,
    /// When it started.
    since: Span,
    /// When the next check begins, unless one runs.
    due: Span,
    /// The number of the command that runs.
    running: Option<u64>,
    is_first: bool,
    /// Failures one after the other that count.
    failed: u32,
}

#[derive(Debug)]
struct InFlightReadinessCheck {
    key: ProgramKey,
    began: Span,
    written: CommandOutputTail,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadinessCheckAction {
    Begin { token: u64, key: ProgramKey, argv: Vec<String> },
    Kill { token: u64, key: ProgramKey },
    Ready { key: ProgramKey },
    Failed(FailedReadinessCheck),
}

/// A check that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedReadinessCheck {
    pub(super) key: ProgramKey,
    /// Why, with the command and what it wrote.
    pub(super) why: String,
    /// How many have failed, if no more are made.
    pub(super) last: Option<u32>,
}

impl Default for ReadinessCheckTable {
    fn default() -> Self {
        ReadinessCheckTable { programs: BTreeMap::new(), under_way: UnderWay::new(CHECK_FIRST) }
    }
}

impl ReadinessCheckTable {
    /// A program has started, and is checked from now on.
    pub(super) fn add(&mut self, key: ProgramKey, check: ReadinessCheck, now: Span) {
        let checked = ReadinessCheckState {
            check,
            since: now,
            due: now,
            running: None,
            is_first: true,
            failed: 0,
        };
        self.programs.insert(key, checked);
    }

    /// What is to be done now.
    pub(super) fn tick(&mut self, now: Span) -> Vec<ReadinessCheckAction> {
        if self.under_way.is_frozen() {
            return Vec::new();
        }
        let mut steps = self.expire(now);
        for (key, program) in &mut self.programs {
            if program.running.is_some() || program.due > now {
                continue;
            }
            let (key, argv) = (*key, program.check.argv.clone());
            let begun =
                InFlightReadinessCheck { key, began: now, written: CommandOutputTail::default() };
            let token = self.under_way.begin(begun, time(now), program.check.timeout);
            program.running = Some(token);
            steps.push(ReadinessCheckAction::Begin { token, key, argv });
        }
        steps
    }

    /// When [`ReadinessCheckTable::tick`] has something to do next.
    pub(super) fn next(&self) -> Option<Span> {
        if self.under_way.is_frozen() {
            return None;
        }
        let waits = self.programs.values().filter(|program| program.running.is_none());
        let deadline = self.under_way.next_deadline().map(|at| at.since(Time::ZERO));
        waits.map(|program| program.due).chain(deadline).min()
    }

    /// Whether a node runs a check of this number.
    pub(in crate::live) fn expects(&self, node: usize, token: u64) -> bool {
        self.under_way.get(token).is_some_and(|it| it.key.node == node)
    }

    /// What a command writes comes from there.
    pub(super) fn carry(&mut self, token: u64, pipe: OwnedFd) {
        if let Some(it) = self.under_way.get_mut(token) {
            it.written = CommandOutputTail::from(pipe);
        }
    }

    /// For polling: readable when commands have written something.
    pub(in crate::live) fn outputs(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.under_way.iter().filter_map(|it| it.written.pipe())
    }

    /// Reads what commands have written.
    pub(in crate::live) fn read(&mut self) {
        self.under_way.iter_mut().for_each(|it| it.written.read());
    }

    /// A command has ended, or could not begin; why that is no success.
    pub(super) fn end(
        &mut self,
        token: u64,
        now: Span,
        failure: Option<String>,
    ) -> Option<ReadinessCheckAction> {
        let (mut ended, counts) = self.under_way.end(token)?;
        let key = ended.key;
        let program = self.programs.get_mut(&key).filter(|it| it.running == Some(token))?;
        program.running = None;
        if !counts {
            return None;
        }
        let Some(why) = failure else {
            self.programs.remove(&key);
            return Some(ReadinessCheckAction::Ready { key });
        };
        ended.written.read();
        Some(ReadinessCheckAction::Failed(program.fail(&ended, now, &why)))
    }

    /// A program is ready, or has ended. What is to be done to its check.
    pub(super) fn remove(&mut self, key: ProgramKey) -> Option<ReadinessCheckAction> {
        let token = self.programs.remove(&key)?.running?;
        self.under_way.get(token)?;
        self.under_way.give_up(token);
        Some(ReadinessCheckAction::Kill { token, key })
    }

    /// A node is gone, and all that ran there.
    pub(super) fn forget(&mut self, node: usize) {
        self.programs.retain(|key, _| key.node != node);
        self.under_way.retain(|it| it.key.node != node);
    }

    /// No program is checked any more.
    pub(super) fn clear(&mut self) -> Vec<ReadinessCheckAction> {
        let keys: Vec<ProgramKey> = self.programs.keys().copied().collect();
        keys.into_iter().filter_map(|key| self.remove(key)).collect()
    }

    /// Programs are paused from now on, or no longer.
    pub(super) fn freeze(&mut self, frozen: bool, now: Span) {
        self.under_way.freeze(frozen, time(now));
    }

    /// Checks whose time is over have failed, whatever their nodes still say.
    fn expire(&mut self, now: Span) -> Vec<ReadinessCheckAction> {
        let mut steps = Vec::new();
        for (token, counted) in self.under_way.expire(time(now)) {
            let Some(it) = self.under_way.get_mut(token) else { continue };
            it.written.read();
            if let Some(program) = self.programs.get_mut(&it.key).filter(|_| counted) {
                let why = format!("took longer than {}, and was killed", program.check.timeout);
                steps.push(ReadinessCheckAction::Failed(program.fail(it, now, &why)));
            }
            steps.push(ReadinessCheckAction::Kill { token, key: it.key });
        }
        steps
    }
}

impl ReadinessCheckState {
    fn fail(
        &mut self,
        check: &InFlightReadinessCheck,
        now: Span,
        why: &str,
    ) -> FailedReadinessCheck {
        let starts = |at: Span| at < self.since + self.check.start_period;
        let counts = !self.is_first && !starts(check.began);
        self.is_first = false;
        self.failed += u32::from(counts);
        self.due = now + if starts(now) { self.check.start_every } else { self.check.every };
        let last = self.check.fall.filter(|fall| self.failed >= *fall);
        let why = format!("`{}` {why}{}", self.check.command(), check.written);
        FailedReadinessCheck { key: check.key, why, last }
    }
}

/// So long after the beginning.
fn time(elapsed: Span) -> Time {
    Time::ZERO + elapsed
}

/// Commands of checks have numbers from here on, above those of probes of services.
pub(in crate::live) const CHECK_FIRST: u64 = 1 << 57;

#[cfg(test)]
mod tests {
    use windtunnel_model::plan::ReadinessCheckSettings;

    use super::*;

    const KEY: ProgramKey = ProgramKey { node: 1, program: 0 };

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn asking() -> ReadinessCheckSettings {
        ReadinessCheckSettings {
            argv: vec!["ask".into()],
            timeout: Some(ms(300)),
            ..ReadinessCheckSettings::default()
        }
    }

    /// Of one program that started after a second: a check every second, of 300 ms at the most.
    fn checks(said: ReadinessCheckSettings) -> ReadinessCheckTable {
        let mut checks = ReadinessCheckTable::default();
        checks.add(KEY, said.or(asking()).of_file(), ms(1000));
        checks
    }

    fn begin(number: u64) -> Vec<ReadinessCheckAction> {
        vec![ReadinessCheckAction::Begin {
            token: CHECK_FIRST + number,
            key: KEY,
            argv: vec!["ask".into()],
        }]
    }

    fn failed(why: &str, last: Option<u32>) -> ReadinessCheckAction {
        ReadinessCheckAction::Failed(FailedReadinessCheck {
            key: KEY,
            why: format!("`ask` {why}"),
            last,
        })
    }

    #[test]
    fn a_program_is_checked_at_once_and_then_some_time_after_the_end_of_each_check() {
        let mut checks = checks(ReadinessCheckSettings::default());
        assert_eq!(checks.next(), Some(ms(1000)));
        assert_eq!(checks.tick(ms(1000)), begin(0));
        assert!(checks.expects(1, CHECK_FIRST) && !checks.expects(0, CHECK_FIRST));
        assert_eq!(checks.tick(ms(1100)), []);
        let why = Some("exited with 1".to_owned());
        assert_eq!(checks.end(CHECK_FIRST, ms(1200), why), Some(failed("exited with 1", None)));
        assert_eq!(checks.next(), Some(ms(2200)));
        assert_eq!(checks.tick(ms(2200)), begin(1));
        let ready = ReadinessCheckAction::Ready { key: KEY };
        assert_eq!(checks.end(CHECK_FIRST + 1, ms(2300), None), Some(ready));
        assert_eq!((checks.next(), checks.tick(ms(9000))), (None, Vec::new()));
    }

    #[test]
    fn a_check_that_takes_too_long_has_failed_and_is_killed_and_the_next_waits_for_its_end() {
        let mut checks = checks(ReadinessCheckSettings::default());
        checks.tick(ms(1000));
        assert_eq!(checks.next(), Some(ms(1300)));
        let kill = ReadinessCheckAction::Kill { token: CHECK_FIRST, key: KEY };
        let late = failed("took longer than 300ms, and was killed", None);
        assert_eq!(checks.tick(ms(1300)), [late, kill]);
        assert_eq!(checks.tick(ms(2300)), [], "it still runs");
        let why = Some("was ended by signal 9".to_owned());
        assert_eq!(checks.end(CHECK_FIRST, ms(2400), why), None);
        assert_eq!(checks.tick(ms(2400)), begin(1));
    }

    /// Fails each check at once; the times of their begins, and after how many no more is made.
    fn fail_all(said: ReadinessCheckSettings) -> (Vec<u64>, Option<u32>) {
        let mut checks = checks(said);
        let mut begins = Vec::new();
        loop {
            let now = checks.next().unwrap();
            let steps = checks.tick(now);
            let [ReadinessCheckAction::Begin { token, .. }] = steps[..] else {
                panic!("{steps:?}")
            };
            begins.push(now.as_nanos() / 1_000_000);
            let why = Some("exited with 1".to_owned());
            let Some(ReadinessCheckAction::Failed(FailedReadinessCheck { last, .. })) =
                checks.end(token, now, why)
            else {
                panic!("no failure");
            };
            if last.is_some() || begins.len() == 9 {
                return (begins, last);
            }
        }
    }

    /// `moby/daemon/health.go`: the first check comes an interval after the start, and failures count
    /// if their check begins after the start period. The one that comes at once is ours.
    #[test]
    fn a_program_is_given_up_when_docker_would_call_it_unhealthy() {
        let said = |period, start_every| ReadinessCheckSettings {
            every: Some(ms(1000)),
            fall: Some(3),
            start_period: Some(ms(period)),
            start_every: Some(ms(start_every)),
            ..ReadinessCheckSettings::default()
        };
        assert_eq!(fail_all(said(0, 1)), (vec![1000, 2000, 3000, 4000], Some(3)));
        let starting = vec![1000, 1400, 1800, 2200, 3200, 4200];
        assert_eq!(fail_all(said(1000, 400)), (starting, Some(3)));
        let (begins, last) = fail_all(ReadinessCheckSettings { fall: None, ..said(0, 1) });
        assert_eq!((begins.len(), last), (9, None), "without a number it goes on");
    }

    #[test]
    fn a_program_that_ends_is_not_checked_and_its_check_is_killed() {
        let mut checks = checks(ReadinessCheckSettings::default());
        checks.tick(ms(1000));
        let kill = ReadinessCheckAction::Kill { token: CHECK_FIRST, key: KEY };
        assert_eq!(checks.remove(KEY), Some(kill));
        assert_eq!((checks.next(), checks.end(CHECK_FIRST, ms(1100), None)), (None, None));
        // It starts again before its old check has ended.
        checks.add(KEY, asking().of_file(), ms(1200));
        checks.tick(ms(1200));
        checks.remove(KEY);
        checks.add(KEY, asking().of_file(), ms(1300));
        assert_eq!(checks.tick(ms(1300)), begin(2));
        assert_eq!(checks.end(CHECK_FIRST + 1, ms(1400), None), None, "of the program before");
        assert_eq!(
            checks.end(CHECK_FIRST + 2, ms(1400), None),
            Some(ReadinessCheckAction::Ready { key: KEY })
        );
    }

    #[test]
    fn nothing_begins_or_is_late_while_programs_are_paused() {
        let mut checks = checks(ReadinessCheckSettings::default());
        checks.tick(ms(1000));
        checks.freeze(true, ms(1100));
        assert_eq!((checks.next(), checks.tick(ms(5000))), (None, Vec::new()));
        checks.freeze(false, ms(5100));
        assert_eq!(checks.next(), Some(ms(5300)), "200 ms are left");
    }
}
