//! The files of a run that grow.

use std::path::Path;
use std::sync::Arc;

use windtunnel_report::document::{EventAnnotation, TopologyMap};
use windtunnel_report::read_plan;
use windtunnel_sys::below::FolderHandle;
use windtunnel_trace::event::EventLogEntry;

use super::outputs::ProgramOutputFollower;
use super::samples::Samples;
use super::tail::FileTailReader;
use crate::hub::{ServerSentEvent, ServerSentEventHub};

#[derive(Debug)]
pub(super) struct RunFileFollower {
    links: FileTailReader,
    samples: Samples,
    events: FileTailReader,
    outputs: Option<ProgramOutputFollower>,
}

impl RunFileFollower {
    /// At the ends of what is there.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub(super) fn open(folder: &Path) -> std::io::Result<Self> {
        let folder = Arc::new(FolderHandle::open(folder)?);
        let plan = read_plan(&folder).ok();
        let lanes = plan.as_ref().map(|plan| TopologyMap::of(plan).1).unwrap_or_default();
        Ok(RunFileFollower {
            links: FileTailReader::at_end(&folder, "links.csv".into()),
            samples: Samples::new(&lanes),
            events: FileTailReader::at_end(&folder, "events.jsonl".into()),
            outputs: plan.as_ref().map(|plan| ProgramOutputFollower::open(&folder, plan)),
        })
    }

    /// What is new, as messages.
    pub(super) fn read(&mut self, hub: &ServerSentEventHub) {
        let lines = self.links.lines(LINKS_BYTES);
        let none = lines.is_empty();
        for message in lines.iter().filter_map(|line| self.samples.take(line)) {
            hub.write(message);
        }
        if none {
            // The rows of an interval are written together.
            self.samples.whole().into_iter().for_each(|message| hub.write(message));
        }
        for line in self.events.lines(EVENTS_BYTES) {
            // What a later version writes is left out here; the document says so.
            let Ok(event) = serde_json::from_str::<EventLogEntry>(&line) else { continue };
            hub.write(ServerSentEvent::new("event", &EventAnnotation::of(&event)).at(event.at_ns));
        }
        if let Some(outputs) = &mut self.outputs {
            outputs.read(hub);
        }
    }
}

const LINKS_BYTES: u64 = 32 << 20;
const EVENTS_BYTES: u64 = 1 << 20;
