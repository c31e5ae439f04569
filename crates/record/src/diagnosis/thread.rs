//! A thread that looks at all nodes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use windtunnel_evidence::file::EventSource;
use windtunnel_model::NodeId;
use windtunnel_model::record::EventRecord;
use windtunnel_model::record::kind::RecordSource;
use windtunnel_sys::poll::{self, EventFd, PollFd, PollFlags, Timer};

use super::{Stats, TcpDiagnosis};
use crate::drain::RecordFeed;
use crate::shelf::SourceRecordBuffer;

/// A thread that looks at nodes, until it is dropped or finished.
#[derive(Debug)]
pub struct TcpDiagnosisThread {
    stop: Arc<EventFd>,
    recording: Arc<AtomicBool>,
    shown: Arc<Mutex<TcpDiagnosisReport>>,
    thread: Option<JoinHandle<()>>,
}

/// What a [`TcpDiagnosisThread`] has done.
#[derive(Debug, Clone, Default)]
pub struct TcpDiagnosisReport {
    pub stats: Stats,
    /// The first failure of the kernel to answer, and how many there were.
    pub failure: Option<(String, u64)>,
}

impl TcpDiagnosisThread {
    /// Starts it, recording; a feed for each node, with room for so many records.
    ///
    /// # Errors
    /// If the thread, or what wakes it, cannot be made.
    pub fn start(
        nodes: Vec<(NodeId, OwnedFd)>,
        interval: Duration,
        room: usize,
    ) -> io::Result<(TcpDiagnosisThread, Vec<Box<dyn RecordFeed>>)> {
        let mut shelves = BTreeMap::new();
        let mut feeds: Vec<Box<dyn RecordFeed>> = Vec::new();
        for (node, _) in &nodes {
            let (shelf, feed) =
                SourceRecordBuffer::new(EventSource::of_node(RecordSource::Tcp, node.0, 0), room);
            shelves.insert(*node, shelf);
            feeds.push(Box::new(feed));
        }
        let (stop, timer) = (Arc::new(EventFd::open()?), Timer::open()?);
        let (recording, shown) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let work = TcpDiagnosisWorker {
            diagnosis: TcpDiagnosis::new(nodes, interval),
            interval,
            shelves,
            stop: Arc::clone(&stop),
            timer,
            recording: Arc::clone(&recording),
            was_recording: true,
            shown: Arc::clone(&shown),
        };
        let thread = std::thread::Builder::new().name("tcp state".to_owned());
        let thread = Some(thread.spawn(move || work.run())?);
        Ok((TcpDiagnosisThread { stop, recording, shown, thread }, feeds))
    }

    /// Records from now on, or no longer. Each start defines all flows anew and records the whole
    /// state of each connection.
    pub fn set_recording(&self, on: bool) {
        self.recording.store(on, Ordering::Relaxed);
    }

    /// What has been done so far, at most one interval old.
    #[must_use]
    pub fn findings(&self) -> TcpDiagnosisReport {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at all nodes for a last time, and ends. The nodes' programs should have ended, or be
    /// about to.
    #[must_use]
    pub fn finish(mut self) -> TcpDiagnosisReport {
        self.end();
        self.findings()
    }

    fn end(&mut self) {
        // The counter of an event cannot overflow by one.
        let _ = self.stop.raise();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed, and shows by what is missing from the findings.
            let _ = thread.join();
        }
    }
}

impl Drop for TcpDiagnosisThread {
    fn drop(&mut self) {
        self.end();
    }
}

struct TcpDiagnosisWorker {
    diagnosis: TcpDiagnosis,
    interval: Duration,
    shelves: BTreeMap<NodeId, SourceRecordBuffer>,
    stop: Arc<EventFd>,
    timer: Timer,
    recording: Arc<AtomicBool>,
    was_recording: bool,
    shown: Arc<Mutex<TcpDiagnosisReport>>,
}

impl TcpDiagnosisWorker {
    fn run(mut self) {
        while !self.is_stopped() {
            self.look(false);
        }
        self.look(true);
    }

    /// Waits for the next look; whether there is to be none.
    fn is_stopped(&self) -> bool {
        let armed = self.timer.arm_at(self.diagnosis.due_ns().max(1));
        let mut wanted =
            [PollFd::new(&*self.stop, PollFlags::IN), PollFd::new(&self.timer, PollFlags::IN)];
        // Without the timer, a pause of one interval.
        let pause = armed.is_err().then_some(self.interval);
        // A signal's handler is no reason to stop.
        let _ = poll::wait(&mut wanted, pause);
        !wanted[0].revents().is_empty()
    }

    fn look(&mut self, last: bool) {
        let (shelves, recording) = (&self.shelves, self.recording.load(Ordering::Relaxed));
        if recording && !self.was_recording {
            self.diagnosis.begin_anew();
        }
        self.was_recording = recording;
        let mut put = |node: NodeId, record: &EventRecord| {
            if let (true, Some(shelf)) = (recording, shelves.get(&node)) {
                shelf.put(record);
            }
        };
        let diagnosis = &mut self.diagnosis;
        let looked = if last { diagnosis.look_at_all(&mut put) } else { diagnosis.poll(&mut put) };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.stats = self.diagnosis.stats();
        if let Err(error) = looked {
            let (_, count) = shown.failure.get_or_insert_with(|| (error.to_string(), 0));
            *count += 1;
        }
    }
}
