//! What happened in a world: the events of its agents, and all that left or came as one number.

use windtunnel_mesh::MeshEvent;
use windtunnel_model::Time;

/// An event of an agent, and when it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedMeshEvent {
    /// When, in the world's time.
    pub at: Time,
    /// To which machine.
    pub machine: usize,
    /// The event.
    pub event: MeshEvent,
}

/// The events that have not been taken yet, and a transcript of everything.
#[derive(Debug, Default)]
pub(super) struct MeshEventLog {
    events: Vec<TimedMeshEvent>,
    /// Stands for every datagram and event so far, with its time and place.
    pub(super) transcript: u64,
}

impl MeshEventLog {
    /// Takes something of a machine into the transcript (FNV-1a).
    pub(super) fn note(&mut self, now: Time, machine: usize, bytes: &[u8]) {
        let (now, machine) = (now.as_nanos().to_le_bytes(), machine.to_le_bytes());
        for byte in now.iter().chain(&machine).chain(bytes) {
            self.transcript = (self.transcript ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Keeps an event.
    pub(super) fn report(&mut self, at: Time, machine: usize, event: MeshEvent) {
        self.events.push(TimedMeshEvent { at, machine, event });
    }

    /// The events since the last call.
    pub(super) fn take(&mut self) -> Vec<TimedMeshEvent> {
        std::mem::take(&mut self.events)
    }

    /// The last of the events that were not taken, at most so many.
    pub(super) fn last(&self, count: usize) -> &[TimedMeshEvent] {
        &self.events[self.events.len().saturating_sub(count)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_mesh::RunId;

    #[test]
    fn a_transcript_depends_on_bytes_machine_and_time() {
        let of = |nanos, machine, bytes: &[u8]| {
            let mut log = MeshEventLog::default();
            log.note(Time::from_nanos(nanos), machine, bytes);
            log.transcript
        };
        let all = [of(1, 1, &[1]), of(2, 1, &[1]), of(1, 2, &[1]), of(1, 1, &[2])];
        assert_eq!(of(1, 1, &[1]), all[0]);
        assert!((1..4).all(|other| all[other] != all[0]));
    }

    #[test]
    fn events_are_kept_until_they_are_taken() {
        let mut log = MeshEventLog::default();
        for run in 1..4 {
            log.report(Time::ZERO, 0, MeshEvent::RunReady { run: RunId(run) });
        }
        assert_eq!(log.last(2)[0].event, MeshEvent::RunReady { run: RunId(2) });
        assert_eq!((log.take().len(), log.last(2).len()), (3, 0));
    }
}
