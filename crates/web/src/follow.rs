//! What a run does, as messages: its files as they grow, and its control socket. Two threads for a run
//! that something looks at: a run that does not answer keeps only the second waiting.

mod control;
mod files;
mod outputs;
mod samples;
mod tail;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windtunnel_control::registry;
use windtunnel_report::ReportDocument;

use crate::hub::{EventStreamReader, ServerSentEvent, ServerSentEventHub};
use files::RunFileFollower;

/// A run that is followed.
#[derive(Debug)]
pub(crate) struct FollowedRun {
    folder: PathBuf,
    hub: Arc<ServerSentEventHub>,
    stopped: AtomicBool,
}

impl FollowedRun {
    /// Follows the run in this folder from here on: what is read of its files afterwards has all that
    /// happened before.
    pub(crate) fn start(folder: PathBuf) -> Arc<Self> {
        let followed = FollowedRun {
            folder,
            hub: ServerSentEventHub::new(BUFFER_BYTES),
            stopped: AtomicBool::new(false),
        };
        let followed = Arc::new(followed);
        // Without the folder the rest still shows that the run is over.
        let files = RunFileFollower::open(&followed.folder).ok();
        let (one, other) = (Arc::clone(&followed), Arc::clone(&followed));
        thread::spawn(move || one.follow(files));
        thread::spawn(move || control::follow(&other));
        followed
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn reader(&self, after_ns: Option<u64>) -> EventStreamReader {
        self.hub.reader(after_ns)
    }

    /// Whether it has been given up, or the run has ended.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn follow(&self, mut files: Option<RunFileFollower>) {
        let mut looked_at = Instant::now();
        loop {
            let lives = registry::is_live(&self.folder);
            // After the look at the socket: all of a run that is over has been written.
            files.iter_mut().for_each(|files| files.read(&self.hub));
            if !lives {
                self.end(files.as_mut());
                break;
            }
            if self.hub.readers() > 0 {
                looked_at = Instant::now();
            } else if looked_at.elapsed() > UNUSED {
                break;
            }
            thread::sleep(TICK);
        }
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Results are written after the socket is closed.
    fn end(&self, files: Option<&mut RunFileFollower>) {
        let closed = Instant::now();
        while !self.folder.join("run.json").exists() && closed.elapsed() < RESULTS {
            thread::sleep(TICK);
        }
        files.into_iter().for_each(|files| files.read(&self.hub));
        let document = match ReportDocument::live(&self.folder) {
            Ok(document) => serde_json::json!({ "document": document }),
            Err(error) => serde_json::json!({ "error": error.to_string() }),
        };
        self.hub.end(ServerSentEvent::new("ended", &document));
    }
}

/// As often as a run takes samples.
const TICK: Duration = Duration::from_millis(100);
/// Without a reader, for so long, it is not followed any more.
const UNUSED: Duration = Duration::from_secs(60);
/// A run over several machines gathers its results first; one that was killed has none.
const RESULTS: Duration = Duration::from_secs(20);
/// Messages of a run.
const BUFFER_BYTES: usize = 16 << 20;
