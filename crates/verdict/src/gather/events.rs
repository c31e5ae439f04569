//! `events.jsonl` of all parts, together: in order of time, and each event once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windtunnel_folder::{FolderError, LineFileWriter, RunOutputFolder, failed};
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};

use super::lines::BoundedLines;

pub(super) fn merge(folder: &RunOutputFolder, parts: &[&PathBuf]) -> Result<(), FolderError> {
    let mut events = Vec::new();
    for part in parts {
        read(&part.join("events.jsonl"), &mut events)?;
    }
    events.sort_by_key(|event| event.at_ns);
    let path = folder.file("events.jsonl");
    let mut lines =
        LineFileWriter::create(folder, "events.jsonl", 0).map_err(failed("write", &path))?;
    let mut once = EventFilter::default();
    for event in events.iter().filter(|event| once.is_new(event)) {
        event.write_line(lines.waiting());
        lines.commit();
    }
    lines.finish().map_err(failed("write", &path))
}

fn read(path: &Path, events: &mut Vec<EventLogEntry>) -> Result<(), FolderError> {
    let mut lines = BoundedLines::open(path)?;
    while let Some(line) = lines.next()? {
        // A last line may be cut: the part says itself that its disk was full.
        events.extend(serde_json::from_slice::<EventLogEntry>(line));
    }
    Ok(())
}

/// Every part reports an event of the network; the first report counts.
#[derive(Debug, Default)]
pub struct EventFilter {
    seen: BTreeSet<String>,
    /// Machines that do not answer now.
    silent: BTreeSet<String>,
}

impl EventFilter {
    /// Whether this has not been reported by another part.
    pub fn is_new(&mut self, event: &EventLogEntry) -> bool {
        if is_from_one_part(&event.what) {
            return true;
        }
        let key = match &event.what {
            EventLogEntryKind::HostSilent { host, .. } => return self.silent.insert(host.clone()),
            EventLogEntryKind::HostAnswers { host, .. } => return self.silent.remove(host),
            EventLogEntryKind::HostLost { host, .. } => format!("lost {host}"),
            EventLogEntryKind::RunEnded { .. } => "ended".to_owned(),
            what => format!("{:?} {what:?}", event.intended_ns),
        };
        self.seen.insert(key)
    }
}

/// Whether a part reports this of itself alone.
fn is_from_one_part(what: &EventLogEntryKind) -> bool {
    match what {
        EventLogEntryKind::RunBegan
        | EventLogEntryKind::RunEnded { .. }
        | EventLogEntryKind::HostLost { .. }
        | EventLogEntryKind::LinkSet { .. }
        | EventLogEntryKind::LinkState { .. }
        | EventLogEntryKind::LinkFlap { .. }
        | EventLogEntryKind::Partitioned { .. }
        | EventLogEntryKind::Healed
        | EventLogEntryKind::ServiceSet { .. } => false,
        // Several reroutes by themselves are several, and not at the same time on all machines.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_every_part_is_listed_once_and_one_parts_as_often_as_it_occurs() {
        let mut once = EventFilter::default();
        let event = |at_ns, intended_ns, what| EventLogEntry { at_ns, intended_ns, what };
        let healed = |at, intended| event(at, Some(intended), EventLogEntryKind::Healed);
        let warning = event(1, None, EventLogEntryKind::Warning { message: "w".to_owned() });
        assert!(once.is_new(&healed(1_001, 1_000)));
        assert!(!once.is_new(&healed(1_007, 1_000)));
        assert!(once.is_new(&healed(2_001, 2_000)));
        assert!(once.is_new(&warning) && once.is_new(&warning));
    }
}
