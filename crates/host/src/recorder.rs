//! A thread that writes `links.csv` and `events.jsonl`, so that a slow disk never delays a packet.
//!
//! Records reach it through a bounded channel. What does not fit is counted, and a disk that is full is
//! reported once at the end; neither stops the run.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};
use windtunnel_model::{Lane, Plan, Time};
use windtunnel_trace::event::Event;
use windtunnel_trace::sample::{self, Row};

use crate::folder::{Folder, FolderError, failed};
use crate::recent::Recent;

/// The sending side; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    records: SyncSender<Record>,
    lost: Arc<AtomicU64>,
    recent: Recent,
}

/// The thread, to be joined at the end.
#[derive(Debug)]
pub(crate) struct Recording {
    thread: JoinHandle<Recorded>,
    lost: Arc<AtomicU64>,
}

/// What the recorder found out.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// By lane index: the most wire bytes a second over any whole second.
    pub peak_bytes_per_s: Vec<u64>,
    /// Records that were not written.
    pub lost: u64,
    /// Why writing failed, if it did.
    pub failure: Option<String>,
}

#[derive(Debug)]
enum Record {
    Sample { at: Time, rows: Vec<Row> },
    Event(Box<Event>),
    End,
}

impl Recorder {
    /// Starts the thread. `names` are the link and direction by lane index.
    ///
    /// # Errors
    /// If the files cannot be made.
    pub(crate) fn start(
        folder: &Folder,
        plan: &Plan,
    ) -> Result<(Recorder, Recording), FolderError> {
        let open = |name: &str| {
            let path = folder.file(name);
            File::create(&path).map(BufWriter::new).map_err(failed("write", &path))
        };
        let files = Files { links: open("links.csv")?, events: open("events.jsonl")? };
        let names = lane_names(plan);
        let (records, receiver) = sync_channel(RECORDS_WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let recent = Recent::default();
        let kept = recent.clone();
        let thread = std::thread::spawn(move || write_all(&receiver, files, &names, &kept));
        let recording = Recording { thread, lost: Arc::clone(&lost) };
        Ok((Recorder { records, lost, recent }, recording))
    }

    /// Records an interval that ended `at` after the run began: one row per lane index.
    pub(crate) fn sample(&self, at: Time, rows: Vec<Row>) {
        self.send(Record::Sample { at, rows });
    }

    /// Records an event.
    pub(crate) fn event(&self, event: Event) {
        self.send(Record::Event(Box::new(event)));
    }

    /// What links did lately.
    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    fn send(&self, record: Record) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.records.try_send(record)
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tells the thread to finish; [`Recording::finish`] waits for it.
    pub(crate) fn end(&self) {
        // Blocking: everything before it is to be written.
        let _ = self.records.send(Record::End);
    }
}

impl Recording {
    /// Waits until all is written.
    #[must_use]
    pub(crate) fn finish(self) -> Recorded {
        let mut recorded = self.thread.join().unwrap_or_else(|_| Recorded {
            failure: Some("the recording thread panicked".to_owned()),
            ..Recorded::default()
        });
        recorded.lost = self.lost.load(Ordering::Relaxed);
        recorded
    }
}

/// Link name and direction (`from-to`) by lane index.
#[must_use]
pub(crate) fn lane_names(plan: &Plan) -> Vec<(String, String)> {
    (0..plan.links.len() * 2)
        .map(Lane::from_index)
        .map(|lane| (plan.links[lane.link.index()].name.clone(), plan.lane_name(lane)))
        .collect()
}

struct Files {
    links: BufWriter<File>,
    events: BufWriter<File>,
}

fn write_all(
    records: &Receiver<Record>,
    mut files: Files,
    names: &[(String, String)],
    recent: &Recent,
) -> Recorded {
    let mut peaks = Peaks::new(names.len());
    let mut failure = sample::write_heading(&mut files.links).err();
    // After a failure the channel is still drained, so that nobody counts records twice.
    while let Ok(record) = records.recv() {
        let written = match record {
            Record::End => break,
            Record::Event(event) => event.write(&mut files.events).and(files.events.flush()),
            Record::Sample { at, rows } => {
                peaks.add(at, &rows);
                let written = write_rows(&mut files.links, at, &rows, names);
                recent.add(at, rows);
                written
            }
        };
        if failure.is_none() {
            failure = written.err();
        }
    }
    let flushed = files.links.flush().and(files.events.flush());
    let failure = failure.or(flushed.err()).map(|error| error.to_string());
    Recorded { peak_bytes_per_s: peaks.finish(), lost: 0, failure }
}

fn write_rows(
    out: &mut impl Write,
    at: Time,
    rows: &[Row],
    names: &[(String, String)],
) -> io::Result<()> {
    for (row, (link, direction)) in rows.iter().zip(names) {
        row.write(out, at.as_nanos(), link, direction)?;
    }
    Ok(())
}

/// The best second of each lane, from the intervals of the last second.
pub(crate) struct Peaks {
    last: Time,
    /// End of the interval and delivered wire bytes, oldest first.
    window: Vec<std::collections::VecDeque<(Time, Time, u64)>>,
    best: Vec<u64>,
    whole: Vec<u64>,
}

impl Peaks {
    pub(crate) fn new(lanes: usize) -> Self {
        Peaks {
            last: Time::ZERO,
            window: vec![std::collections::VecDeque::new(); lanes],
            best: vec![0; lanes],
            whole: vec![0; lanes],
        }
    }

    pub(crate) fn add(&mut self, at: Time, rows: &[Row]) {
        for (lane, row) in rows.iter().enumerate() {
            let window = &mut self.window[lane];
            self.whole[lane] += row.delivered_wire_bytes;
            window.push_back((self.last, at, row.delivered_wire_bytes));
            // A window begins where an interval began; drop intervals that a whole second does not need.
            while window.get(1).is_some_and(|next| at.since(next.0).as_nanos() >= SECOND_NS) {
                window.pop_front();
            }
            let (Some(first), bytes) = (window.front(), window.iter().map(|i| i.2).sum::<u64>())
            else {
                continue;
            };
            let span = at.since(first.0).as_nanos();
            if span >= SECOND_NS {
                self.best[lane] = self.best[lane].max(per_second(bytes, span));
            }
        }
        self.last = at;
    }

    /// Runs shorter than a second have no whole one: their average stands for it.
    pub(crate) fn finish(self) -> Vec<u64> {
        let elapsed = self.last.as_nanos();
        if elapsed >= SECOND_NS {
            return self.best;
        }
        self.whole.iter().map(|&bytes| per_second(bytes, elapsed)).collect()
    }
}

fn per_second(bytes: u64, span_ns: u64) -> u64 {
    let scaled = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(span_ns.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

const SECOND_NS: u64 = 1_000_000_000;
/// A few seconds of samples: a disk that stalls longer loses (counted) records, not packets.
const RECORDS_WAITING_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: u64) -> [Row; 1] {
        [Row { delivered_wire_bytes: bytes, ..Row::default() }]
    }

    fn tenths(n: u64) -> Time {
        Time::from_nanos(n * SECOND_NS / 10)
    }

    #[test]
    fn the_peak_is_the_best_whole_second_not_the_best_interval() {
        let mut peaks = Peaks::new(1);
        for tenth in 1..=30 {
            // 1000 bytes an interval, and a burst of 5000 in one of them.
            peaks.add(tenths(tenth), &row(if tenth == 15 { 5000 } else { 1000 }));
        }
        assert_eq!(peaks.finish(), vec![14_000]);
    }

    #[test]
    fn a_run_shorter_than_a_second_reports_its_average() {
        let mut peaks = Peaks::new(1);
        peaks.add(tenths(5), &row(1000));
        assert_eq!(peaks.finish(), vec![2000]);
    }
}
