//! Whether a replica keeps up with the others: when it is probed, and when it is given up.

use crate::config::FailureDetectorConfig;
use windtunnel_model::{Span, Time};

/// Between two probes, and two SYNs, whatever the settings say.
const PAUSE_MIN: Span = Span::from_millis(1);
/// The longest between two probes of a replica that answers none while no other does either.
const PAUSE_MAX: Span = Span::from_secs(1);

/// What is known of a replica's life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplicaHealth {
    /// When it was sent the first SYN.
    pub(crate) asked: Time,
    /// From that SYN to its answer.
    pub(crate) round_trip: Span,
    /// From the last probe that it answered, to the answer.
    answered_in: Span,
    /// Since when the replicas do not stand at the same place, without any progress of this one.
    pub(crate) apart: Option<Time>,
    /// Whether what it lacks is its own fault.
    lag: Lag,
    /// When it made progress for the last time, or could not have made any until then.
    pub(crate) moved: Time,
    /// Since when it alone has finished its stream.
    pub(crate) finished: Option<Time>,
    /// When its last packet came.
    pub(crate) seen: Time,
    /// How far it was when it was last looked at.
    progress: ReplicaProgress,
    /// Probes since its last packet.
    unanswered: u32,
    /// The first of these.
    pub(crate) silent: Time,
    /// Probes whose answers may still come, whatever came in between.
    owed: u32,
    /// The last probe, or SYN that was sent again.
    probed: Option<Time>,
    /// Whether the client sent data again: the first probe is not waited for.
    hurry: bool,
}

/// How far a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReplicaStreamPosition {
    /// What it has acknowledged.
    pub(crate) acked: u64,
    /// The end of the data that it has sent.
    pub(crate) data: u64,
    /// The same with FIN.
    pub(crate) end: u64,
}

/// What of a replica changes while it does something, or is kept from it by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReplicaProgress {
    pub(crate) mark: ReplicaStreamPosition,
    /// The end of its window.
    pub(crate) edge: u64,
    /// The end of what it has sent, whether or not it came.
    pub(crate) reached: u64,
    /// Segments of it that the client needs, those that were sent again included.
    pub(crate) segments: u64,
    /// What the client has acknowledged: until that is all, it has to be sent again first.
    pub(crate) confirmed: u64,
}

/// Why a replica lacks what another has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lag {
    /// It lacks nothing, or others are to do something first.
    None,
    /// It could do it, and does not.
    Idle,
    /// It has sent something that did not come, and is to send it again.
    Lost,
}

/// What is to be done about a replica where they are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplicaHealthVerdict {
    /// Nothing yet.
    Wait,
    /// It is to be probed.
    Probe,
    /// It answers nothing.
    Silent,
}

impl ReplicaHealth {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            asked: now,
            round_trip: Span::ZERO,
            answered_in: Span::ZERO,
            apart: None,
            lag: Lag::None,
            moved: now,
            finished: None,
            seen: now,
            progress: ReplicaProgress::default(),
            unanswered: 0,
            owed: 0,
            silent: now,
            probed: None,
            hurry: false,
        }
    }

    /// A packet of it has come.
    pub(crate) fn is_alive(&mut self, now: Time, detection: &FailureDetectorConfig) {
        self.seen = now;
        if self.unanswered > 0 && !self.is_silent(detection) {
            self.answered_in = now.since(self.silent);
        }
        self.unanswered = 0;
    }

    /// How far it is, why it is not further, and whether all replicas are as far. One that is ahead
    /// is watched, too: it may be the dead one.
    pub(crate) fn compare(
        &mut self,
        now: Time,
        progress: ReplicaProgress,
        lag: Lag,
        are_apart: bool,
    ) {
        let has_moved = progress.mark != self.progress.mark;
        if progress != self.progress || self.lag == Lag::None {
            self.moved = now;
        }
        (self.progress, self.lag) = (progress, lag);
        if !are_apart {
            self.apart = None;
            self.hurry = false;
            self.unanswered = 0;
        } else if has_moved || self.apart.is_none() {
            self.apart = Some(now);
        }
    }

    /// The client has sent data again.
    pub(crate) fn hurry(&mut self) {
        self.hurry = true;
    }

    /// A probe is sent.
    pub(crate) fn probe(&mut self, now: Time) {
        if self.unanswered == 0 {
            self.silent = now;
        }
        self.unanswered = self.unanswered.saturating_add(1);
        self.owed = self.owed.saturating_add(1);
        self.probed = Some(now);
    }

    /// Whether an acknowledgement that says nothing new answers a probe: as many may as there were,
    /// within the time that is waited for the last.
    pub(crate) fn answers_probe(&mut self, now: Time, detection: &FailureDetectorConfig) -> bool {
        let until = self.probed.map(|probed| probed + detection.last_wait(self.way()));
        if until.is_none_or(|until| until < now) {
            self.owed = 0;
        }
        let is_owed = self.owed > 0;
        self.owed = self.owed.saturating_sub(1);
        is_owed
    }

    /// When a SYN that is not answered is sent again.
    pub(crate) fn ask_again(&self, first: Time, patience: Span) -> Time {
        self.probed.map_or(first, |at| at.max(first)) + patience.max(PAUSE_MIN)
    }

    /// Another has answered that had been as silent as this one: what kept both from it may be over,
    /// and only what comes from now on says whether this one lives and goes on.
    pub(crate) fn begin_again(&mut self, now: Time) {
        self.apart = self.apart.map(|_| now);
        (self.unanswered, self.probed, self.hurry) = (0, None, true);
    }

    /// Whether it has answered none of the probes that it had to.
    pub(crate) fn is_silent(&self, detection: &FailureDetectorConfig) -> bool {
        self.unanswered >= detection.probes
    }

    /// A SYN is sent again.
    pub(crate) fn asked_again(&mut self, now: Time) {
        self.probed = Some(now);
    }

    /// What is to be done at a time.
    pub(crate) fn verdict(
        &self,
        now: Time,
        detection: &FailureDetectorConfig,
    ) -> ReplicaHealthVerdict {
        match self.deadline(detection) {
            None => ReplicaHealthVerdict::Wait,
            Some(at) if at > now => ReplicaHealthVerdict::Wait,
            Some(_) if self.is_silent(detection) => ReplicaHealthVerdict::Silent,
            Some(_) => ReplicaHealthVerdict::Probe,
        }
    }

    /// When the next probe is due, or waiting for the answer to the last ends.
    pub(crate) fn deadline(&self, detection: &FailureDetectorConfig) -> Option<Time> {
        let apart = self.apart?;
        let first = if self.hurry { apart } else { apart + detection.patience + self.way() };
        Some(match self.probed {
            Some(probed) if self.is_silent(detection) => probed + self.pause(detection),
            Some(probed) => first.max(probed + detection.probe_interval.max(PAUSE_MIN)),
            None => first,
        })
    }

    /// The time for the answer to the last probe that counts. Each probe beyond doubles it: these are
    /// sent only where no other replica answers, and what keeps all silent may last.
    fn pause(&self, detection: &FailureDetectorConfig) -> Span {
        let first = detection.last_wait(self.way()).max(PAUSE_MIN);
        let beyond = (self.unanswered - detection.probes).min(u64::BITS - 1);
        let doubled = first.as_nanos().saturating_mul(1 << beyond);
        Span::from_nanos(doubled.min(PAUSE_MAX.max(first).as_nanos()))
    }

    /// Since when it does nothing, and when that is too long: only where it has answered a probe
    /// since, or else a caller that is late would make it so.
    pub(crate) fn stall(&self, detection: &FailureDetectorConfig) -> Option<(Time, Time)> {
        let apart = self.apart.filter(|_| self.unanswered == 0)?;
        let bound = match self.lag {
            Lag::None => return None,
            Lag::Idle => detection.stall,
            Lag::Lost => detection.recovery,
        };
        let since = apart.max(self.moved);
        let was_probed = self.probed.is_some_and(|probed| probed >= apart);
        was_probed.then_some((since, since + bound))
    }

    /// Whether it could do something that it does not.
    pub(crate) fn is_lagging(&self) -> bool {
        self.lag != Lag::None
    }

    /// The round trip to it: queues may have grown since the handshake.
    fn way(&self) -> Span {
        self.round_trip.max(self.answered_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn mark(acked: u64, data: u64) -> ReplicaStreamPosition {
        ReplicaStreamPosition { acked, data, end: data }
    }

    fn compare(
        health: &mut ReplicaHealth,
        millis: u64,
        own: ReplicaStreamPosition,
        best: ReplicaStreamPosition,
    ) {
        let is_behind = own.acked < best.acked || own.data < best.data;
        let lag = if is_behind { Lag::Idle } else { Lag::None };
        let progress = ReplicaProgress { mark: own, ..ReplicaProgress::default() };
        health.compare(at(millis), progress, lag, own != best);
    }

    #[test]
    fn a_silent_replica_is_given_up_within_the_stated_time() {
        let detection = FailureDetectorConfig::default();
        let mut health = ReplicaHealth::new(at(0));
        health.round_trip = Span::from_millis(10);
        compare(&mut health, 1_000, mark(1, 1), mark(2, 1));
        // 40 + 10 to the first of four probes, 3 × 20 to the last, 20 for its answer.
        for due in [1_050, 1_070, 1_090, 1_110] {
            assert_eq!(health.deadline(&detection), Some(at(due)));
            assert_eq!(health.verdict(at(due), &detection), ReplicaHealthVerdict::Probe);
            health.probe(at(due));
        }
        assert_eq!(health.verdict(at(1_129), &detection), ReplicaHealthVerdict::Wait);
        assert_eq!(health.verdict(at(1_130), &detection), ReplicaHealthVerdict::Silent);
        assert_eq!(detection.silent_within(Span::from_millis(10)), Span::from_millis(130));
    }

    #[test]
    fn a_replica_stalls_where_it_is_behind_and_has_answered() {
        let detection = FailureDetectorConfig::default();
        let mut health = ReplicaHealth::new(at(0));
        compare(&mut health, 1_000, mark(1, 1), mark(2, 1));
        assert_eq!(health.stall(&detection), None);
        health.probe(at(1_040));
        assert_eq!(health.stall(&detection), None);
        health.is_alive(at(1_050), &detection);
        assert_eq!(health.stall(&detection), Some((at(1_000), at(1_800))));
        assert_eq!(health.verdict(at(1_060), &detection), ReplicaHealthVerdict::Probe);
    }

    #[test]
    fn a_replica_that_is_ahead_or_lacks_a_fin_alone_is_probed_and_does_not_stall() {
        let detection = FailureDetectorConfig::default();
        let finished = ReplicaStreamPosition { acked: 1, data: 1, end: 2 };
        for (own, best) in [(mark(1, 1), finished), (mark(2, 2), mark(1, 1))] {
            let mut health = ReplicaHealth::new(at(0));
            compare(&mut health, 0, own, best);
            assert_eq!(health.verdict(at(40), &detection), ReplicaHealthVerdict::Probe);
            health.probe(at(40));
            health.is_alive(at(41), &detection);
            assert_eq!(health.stall(&detection), None);
        }
    }

    #[test]
    fn progress_begins_the_time_anew_and_agreement_ends_it() {
        let mut health = ReplicaHealth::new(at(0));
        compare(&mut health, 0, mark(1, 1), mark(5, 5));
        compare(&mut health, 100, mark(2, 1), mark(5, 5));
        compare(&mut health, 200, mark(2, 1), mark(5, 5));
        assert_eq!(health.apart, Some(at(100)));
        compare(&mut health, 300, mark(5, 5), mark(5, 5));
        assert_eq!(
            (health.apart, health.deadline(&FailureDetectorConfig::default())),
            (None, None)
        );
    }

    #[test]
    fn what_a_replica_sends_again_and_what_the_client_acknowledges_is_progress() {
        let detection = FailureDetectorConfig::default();
        let mut health = ReplicaHealth::new(at(0));
        let mut progress = ReplicaProgress { mark: mark(1, 1), ..ReplicaProgress::default() };
        health.compare(at(0), progress, Lag::Idle, true);
        health.probe(at(40));
        health.is_alive(at(41), &detection);
        for (millis, segments, confirmed) in [(500, 1, 0), (1_000, 1, 9), (1_500, 2, 9)] {
            (progress.segments, progress.confirmed) = (segments, confirmed);
            health.compare(at(millis), progress, Lag::Idle, true);
            assert_eq!(health.stall(&detection), Some((at(millis), at(millis + 800))));
        }
        health.compare(at(1_600), progress, Lag::Lost, true);
        assert_eq!(health.stall(&detection), Some((at(1_500), at(5_500))));
    }

    #[test]
    fn probes_that_are_answered_late_have_the_next_waited_for_as_long() {
        let detection = FailureDetectorConfig::default();
        let mut health = ReplicaHealth::new(at(0));
        compare(&mut health, 0, mark(1, 1), mark(2, 1));
        for due in [40, 60, 80] {
            health.probe(at(due));
        }
        health.is_alive(at(95), &detection);
        compare(&mut health, 1_000, mark(2, 1), mark(3, 1));
        // 40 ms, and the 55 from the first probe to the answer.
        assert_eq!(health.deadline(&detection), Some(at(1_095)));
    }

    #[test]
    fn a_late_caller_does_not_make_a_replica_dead() {
        let mut health = ReplicaHealth::new(at(0));
        compare(&mut health, 0, mark(1, 1), mark(2, 1));
        let detection = FailureDetectorConfig::default();
        // Half a second late: the first probe is due, and its answer is waited for.
        assert_eq!(health.verdict(at(540), &detection), ReplicaHealthVerdict::Probe);
        health.probe(at(540));
        assert_eq!(health.verdict(at(541), &detection), ReplicaHealthVerdict::Wait);
    }
}
