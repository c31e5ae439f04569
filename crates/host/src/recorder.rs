//! A thread that writes `links.csv` and `events.jsonl`, so that a slow disk never delays a packet.
//!
//! Records reach it through a bounded channel. What does not fit is counted, and a disk that is
//! full is reported once at the end; neither stops the run.

mod recent;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use windtunnel_dataplane::SampleSink;
use windtunnel_folder::{FolderError, LineFileWriter, RunOutputFolder, failed};
use windtunnel_model::{Plan, Time};
use windtunnel_trace::event::EventLogEntry;
use windtunnel_trace::peaks::LanePeakRates;
use windtunnel_trace::sample::{self, LinkSampleRow, lane_names, write_rows};
use windtunnel_verdict::evidence::RunRecorderSummary;

pub(crate) use recent::RecentLaneSamples;

/// The sending side; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RunRecorder {
    records: Sender<RunRecorderMessage>,
    waiting: Arc<RunRecorderBacklog>,
    lost: Arc<AtomicU64>,
    recent: RecentLaneSamples,
}

/// Records that the thread has not taken yet.
#[derive(Debug, Default)]
struct RunRecorderBacklog {
    samples: AtomicUsize,
    events: AtomicUsize,
}

/// The thread, to be joined at the end.
#[derive(Debug)]
pub(crate) struct RunRecorderThread {
    thread: JoinHandle<RunRecorderSummary>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum RunRecorderMessage {
    Sample { at: Time, rows: Vec<LinkSampleRow>, last: bool },
    Event(Box<EventLogEntry>),
    End,
}

impl RunRecorder {
    /// Starts the thread. `names` are the link and direction by lane index.
    ///
    /// # Errors
    /// If the files cannot be made.
    pub(crate) fn start(
        folder: &RunOutputFolder,
        plan: &Plan,
    ) -> Result<(RunRecorder, RunRecorderThread), FolderError> {
        let open = |name: &str, ahead| {
            LineFileWriter::create(folder, name, ahead).map_err(failed("write", &folder.file(name)))
        };
        let links = open("links.csv", LINKS_AHEAD_BYTES)?;
        let files = RunRecorderFiles { links, events: open("events.jsonl", EVENTS_AHEAD_BYTES)? };
        let names = lane_names(plan);
        let (records, receiver) = channel();
        let (waiting, lost) = (Arc::<RunRecorderBacklog>::default(), Arc::new(AtomicU64::new(0)));
        let recent = RecentLaneSamples::default();
        let (kept, taken) = (recent.clone(), Arc::clone(&waiting));
        let thread = std::thread::spawn(move || write_all(&receiver, files, &names, &kept, &taken));
        let recording = RunRecorderThread { thread, lost: Arc::clone(&lost) };
        Ok((RunRecorder { records, waiting, lost, recent }, recording))
    }

    /// Records an event.
    pub(crate) fn event(&self, event: EventLogEntry) {
        let record = RunRecorderMessage::Event(Box::new(event));
        self.send(record, &self.waiting.events, EVENTS_WAITING_MAX);
    }

    /// What links did lately.
    pub(crate) fn recent(&self) -> &RecentLaneSamples {
        &self.recent
    }

    fn send(&self, record: RunRecorderMessage, waiting: &AtomicUsize, most: usize) {
        let full = waiting.fetch_add(1, Ordering::Relaxed) >= most;
        if full || self.records.send(record).is_err() {
            waiting.fetch_sub(1, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Orders the thread to finish; [`RunRecorderThread::finish`] waits for it.
    pub(crate) fn end(&self) {
        // If the thread is gone, `finish` says so.
        let _ = self.records.send(RunRecorderMessage::End);
    }
}

impl SampleSink for RunRecorder {
    fn sample(&self, at: Time, rows: Vec<LinkSampleRow>) {
        let record = RunRecorderMessage::Sample { at, rows, last: false };
        self.send(record, &self.waiting.samples, SAMPLES_WAITING_MAX);
    }

    fn last_sample(&self, at: Time, rows: Vec<LinkSampleRow>) {
        let record = RunRecorderMessage::Sample { at, rows, last: true };
        self.send(record, &self.waiting.samples, SAMPLES_WAITING_MAX);
    }
}

/// Records that nothing writes.
#[cfg(test)]
pub(crate) struct RunRecorderTestReceiver(Receiver<RunRecorderMessage>);

#[cfg(test)]
impl RunRecorderTestReceiver {
    /// Events that have been recorded since the last call.
    pub(crate) fn events(&self) -> Vec<EventLogEntry> {
        let event = |record| match record {
            RunRecorderMessage::Event(event) => Some(*event),
            _ => None,
        };
        self.0.try_iter().filter_map(event).collect()
    }
}

#[cfg(test)]
impl RunRecorder {
    /// A recorder without a thread, and what it records.
    pub(crate) fn to_channel() -> (RunRecorder, RunRecorderTestReceiver) {
        let (records, receiver) = channel();
        let (waiting, lost, recent) = Default::default();
        (RunRecorder { records, waiting, lost, recent }, RunRecorderTestReceiver(receiver))
    }
}

impl RunRecorderThread {
    /// Waits until all is written.
    #[must_use]
    pub(crate) fn finish(self) -> RunRecorderSummary {
        let mut recorded = self.thread.join().unwrap_or_else(|_| RunRecorderSummary {
            failure: Some("the recording thread panicked".to_owned()),
            ..RunRecorderSummary::default()
        });
        recorded.lost = self.lost.load(Ordering::Relaxed);
        recorded
    }
}

struct RunRecorderFiles {
    links: LineFileWriter,
    events: LineFileWriter,
}

fn write_all(
    records: &Receiver<RunRecorderMessage>,
    mut files: RunRecorderFiles,
    names: &[(String, String)],
    recent: &RecentLaneSamples,
    waiting: &RunRecorderBacklog,
) -> RunRecorderSummary {
    let mut peaks = LanePeakRates::new(names.len());
    files.links.waiting().extend(format!("{}\n", sample::COLUMNS).into_bytes());
    files.links.commit();
    let mut first = true;
    'all: while let Ok(record) = records.recv() {
        // What has come in meanwhile goes out in one write.
        for record in std::iter::once(record).chain(records.try_iter().take(BATCH_RECORDS)) {
            match record {
                RunRecorderMessage::End => break 'all,
                RunRecorderMessage::Event(event) => {
                    waiting.events.fetch_sub(1, Ordering::Relaxed);
                    event.write_line(files.events.waiting());
                }
                RunRecorderMessage::Sample { at, rows, last } => {
                    waiting.samples.fetch_sub(1, Ordering::Relaxed);
                    peaks.add(at, &rows);
                    let whole = std::mem::take(&mut first) || last;
                    write_rows(files.links.waiting(), at, &rows, names, whole);
                    recent.add(at, rows);
                }
            }
        }
        files.links.commit();
        files.events.commit();
    }
    let failure = |file: &str, lines: LineFileWriter| {
        lines.finish().err().map(|error| format!("cannot write {file}: {error}"))
    };
    let failures = [failure("links.csv", files.links), failure("events.jsonl", files.events)];
    let failure = failures.into_iter().flatten().reduce(|one, other| format!("{one}; {other}"));
    RunRecorderSummary { peak_bytes_per_s: peaks.finish(), lost: 0, failure }
}

/// 25 s of samples: a disk that stalls longer loses (counted) records, not packets.
const SAMPLES_WAITING_MAX: usize = 256;
/// The starts of some 10 000 programs at once are no more than this.
const EVENTS_WAITING_MAX: usize = 1 << 16;
const BATCH_RECORDS: usize = 256;
/// Room that is kept on the disk for what is recorded after programs have filled it.
const LINKS_AHEAD_BYTES: u64 = 1 << 20;
const EVENTS_AHEAD_BYTES: u64 = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    fn tenths(n: u64) -> Time {
        Time::from_nanos(n * 100_000_000)
    }

    #[test]
    fn no_event_is_lost_when_thousands_come_at_once_and_the_first_and_last_samples_are_whole() {
        let root = tempfile::tempdir().unwrap();
        let plan = windtunnel_dataplane::testing::plan(
            "nodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]",
        );
        let folder = RunOutputFolder::create(root.path(), &plan).unwrap();
        let (recorder, recording) = RunRecorder::start(&folder, &plan).unwrap();
        for at_ns in 0..20_000 {
            let what = windtunnel_trace::event::EventLogEntryKind::Healed;
            recorder.event(EventLogEntry { at_ns, intended_ns: None, what });
        }
        for tenth in 1..=50 {
            recorder.sample(tenths(tenth), vec![LinkSampleRow::default(); 2]);
        }
        recorder.last_sample(tenths(51), vec![LinkSampleRow::default(); 2]);
        recorder.end();
        let recorded = recording.finish();
        assert_eq!((recorded.lost, recorded.failure), (0, None));
        let lines = |name| std::fs::read_to_string(folder.file(name)).unwrap().lines().count();
        assert_eq!((lines("events.jsonl"), lines("links.csv")), (20_000, 1 + 2 + 2));
    }
}
