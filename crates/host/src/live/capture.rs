//! Captures of frames: where they are asked for, when they end, and what became of them.

pub(crate) mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use windtunnel_control::CaptureResult;
use windtunnel_sys::poll::{self, EventFd as Wake, PollFd, PollFlags};

use super::connections::ControlConnectionTable;
use super::context::RunContext;
use super::journal::Journal;
use super::network::NetworkController;
use super::outcome::AnswerPromise;
use super::refusal::RequestRefusal;
use places::capture_places;
use windtunnel_dataplane::PacketLoopCommand;
use windtunnel_dataplane::tap::{
    CaptureCounters, CaptureOutcome, CapturePoint, CaptureRequest, CaptureStopReason, CaptureTap,
    ROOM_BYTES,
};

/// The captures of a run.
pub(super) struct CaptureController {
    running: Vec<ActiveCapture>,
    next: u64,
    outcomes: Receiver<CaptureOutcome>,
    sender: Sender<CaptureOutcome>,
    /// Raised when there is an outcome.
    wake: Arc<Wake>,
    incomplete: IncompleteCaptures,
}

/// What is captured: places of a plan, at the packet loop, by the clock of a run that has begun.
#[derive(Clone, Copy)]
pub(super) struct CaptureSource<'a> {
    pub(super) cx: &'a RunContext,
    pub(super) network: &'a NetworkController,
    /// What is added to the clock of the run, to have the time of day; `None`: it has not begun.
    pub(super) unix_offset_ns: Option<u64>,
}

/// A node or link as it was named, and where its frames are seen.
struct TappedPlace<'a> {
    name: &'a str,
    places: Vec<CapturePoint>,
    snap_bytes: u32,
}

/// What is missing in captures, a sentence each.
#[derive(Debug, Default)]
pub(crate) struct IncompleteCaptures {
    /// In those to files of the run folder.
    pub(crate) files: Vec<String>,
    /// In those to other places.
    pub(crate) others: Vec<String>,
}

#[derive(Debug)]
struct ActiveCapture {
    number: u64,
    place: String,
    to: CaptureDestination,
    counts: Arc<CaptureCounters>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CaptureDestination {
    Folder,
    Client(u64),
    /// The client has gone; what it had not read is still written.
    Gone,
}

/// Each has a thread and [`ROOM_BYTES`].
const RUNNING_MAX: usize = 64;
/// Sentences about captures of clients: what more there are say nothing new.
const SENTENCES_MAX: usize = 64;
/// How long the end of a run waits for captures to be written.
const PATIENCE: Duration = Duration::from_secs(2);
/// Below the run folder.
const FOLDER: &str = "captures";

impl CaptureController {
    pub(super) fn new(wake: Arc<Wake>) -> Self {
        let (sender, outcomes) = channel();
        let incomplete = IncompleteCaptures::default();
        CaptureController { running: Vec::new(), next: 0, outcomes, sender, wake, incomplete }
    }

    /// Captures to a client's descriptor, until the client ends it or has gone.
    pub(super) fn start_for_client(
        &mut self,
        source: CaptureSource<'_>,
        client: u64,
        place: &str,
        snap_bytes: u32,
        descriptors: &[OwnedFd],
    ) -> Result<(), RequestRefusal> {
        let places = capture_places(&source.cx.plan, place)?;
        let [file] = descriptors else {
            return Err("a capture needs a descriptor to write to".to_owned().into());
        };
        let to = CaptureDestination::Client(client);
        if self.running.iter().any(|it| it.to == to) {
            return Err("this connection captures already".to_owned().into());
        }
        let file = file.try_clone();
        let file = file.map_err(|error| format!("cannot use the descriptor: {error}"))?;
        let tapped = TappedPlace { name: place, places, snap_bytes };
        self.start(source, tapped, to, BlockingFileWriter(File::from(file)))
    }

    /// Ends the capture of a client, which is answered when all is written.
    pub(super) fn end_for_client(
        &self,
        client: u64,
        network: &NetworkController,
    ) -> Result<AnswerPromise<CaptureResult>, RequestRefusal> {
        let to = CaptureDestination::Client(client);
        let running = self.running.iter().find(|it| it.to == to);
        let number = running.ok_or_else(|| "this connection captures nothing".to_owned())?.number;
        network.order(PacketLoopCommand::EndCapture(number));
        Ok(AnswerPromise::new())
    }

    /// Captures each place to a file in the run folder, from now on.
    pub(super) fn start_files(&mut self, source: CaptureSource<'_>, places: &[String]) {
        for place in places.iter().collect::<BTreeSet<_>>() {
            if let Err(why) = self.start_file(source, place) {
                let text = format!("nothing of {place} is captured: {}", why.message());
                source.cx.journal.warn(text.clone());
                self.incomplete.files.push(text);
            }
        }
    }

    fn start_file(&mut self, source: CaptureSource<'_>, place: &str) -> Result<(), RequestRefusal> {
        let places = capture_places(&source.cx.plan, place)?;
        let name = format!("{place}.pcapng");
        let folder = &source.cx.folder;
        let path = folder.path().join(FOLDER).join(&name);
        let folder = folder.below().make_folder(FOLDER.as_ref());
        let file = folder.and_then(|folder| folder.create(&name));
        let file = file.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let tapped = TappedPlace { name: place, places, snap_bytes: 0 };
        self.start(source, tapped, CaptureDestination::Folder, BlockingFileWriter(file))
    }

    fn start(
        &mut self,
        source: CaptureSource<'_>,
        tapped: TappedPlace<'_>,
        to: CaptureDestination,
        out: BlockingFileWriter,
    ) -> Result<(), RequestRefusal> {
        if self.running.len() >= RUNNING_MAX {
            let text = format!("{RUNNING_MAX} captures go on already");
            let hint = "end one of them; a node has all of its links";
            return Err(RequestRefusal::with_hint(text, hint));
        }
        let Some(unix_offset_ns) = source.unix_offset_ns else {
            let text = "the run has not begun".to_owned();
            return Err(RequestRefusal::with_hint(text, "ask again then"));
        };
        let number = self.next;
        self.next += 1;
        let TappedPlace { name, places, snap_bytes } = tapped;
        let (id, room_bytes) = (number, ROOM_BYTES);
        let wanted = CaptureRequest { id, places, snap_bytes, unix_offset_ns, room_bytes };
        let (sender, wake) = (self.sender.clone(), Arc::clone(&self.wake));
        let done = move |outcome| {
            // If nothing waits for it any more, the run is over and has said so.
            let _ = sender.send(outcome);
            let _ = wake.raise();
        };
        let (tap, counts) = CaptureTap::start(&wanted, out, done)
            .map_err(|error| format!("cannot start a thread for the capture: {error}"))?;
        self.running.push(ActiveCapture { number, place: name.to_owned(), to, counts });
        source.network.capture(tap);
        Ok(())
    }

    /// A client has gone. Returns the number of its capture, if it has one.
    pub(super) fn leave(&mut self, client: u64) -> Option<u64> {
        let it = self.running.iter_mut().find(|it| it.to == CaptureDestination::Client(client))?;
        it.to = CaptureDestination::Gone;
        Some(it.number)
    }

    /// Reports what became of captures that are over.
    pub(super) fn handle_outcomes(
        &mut self,
        connections: &mut ControlConnectionTable,
        journal: &Journal,
    ) {
        while let Ok(outcome) = self.outcomes.try_recv() {
            let said = self.conclude(&outcome, connections);
            said.into_iter().for_each(|text| journal.warn(text));
        }
    }

    /// The packet loop has ended them all. Waits until they are written, unless their readers stand
    /// still.
    pub(super) fn finish(mut self, connections: &mut ControlConnectionTable) -> IncompleteCaptures {
        let until = Instant::now() + PATIENCE;
        while !self.running.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(outcome) = self.outcomes.recv_timeout(left) else { break };
            self.conclude(&outcome, connections);
        }
        let late = self.running.iter().map(|it| {
            let why = format!("it was not read within {PATIENCE:?} of the end of the run");
            it.counts.outcome(it.number, Some(CaptureStopReason::Failed(why)))
        });
        for outcome in late.collect::<Vec<_>>() {
            self.conclude(&outcome, connections);
        }
        self.incomplete
    }

    /// Returns a sentence if something is missing.
    fn conclude(
        &mut self,
        outcome: &CaptureOutcome,
        connections: &mut ControlConnectionTable,
    ) -> Option<String> {
        let at = self.running.iter().position(|it| it.number == outcome.id)?;
        let ActiveCapture { place, to, .. } = self.running.remove(at);
        if let CaptureDestination::Client(client) = to {
            let (packets, lost) = (outcome.seen, outcome.lost);
            let reader_gone = outcome.stopped == Some(CaptureStopReason::ReaderGone);
            let failure = match &outcome.stopped {
                Some(CaptureStopReason::Failed(why)) => Some(why.clone()),
                _ => None,
            };
            let result = CaptureResult { packets, lost, reader_gone, failure };
            connections.answer(client, result);
        }
        let text = missing(&place, outcome)?;
        let sentences = match to {
            CaptureDestination::Folder => &mut self.incomplete.files,
            _ => &mut self.incomplete.others,
        };
        if sentences.len() < SENTENCES_MAX {
            sentences.push(text.clone());
        }
        Some(text)
    }
}

/// What is missing in a capture.
fn missing(place: &str, outcome: &CaptureOutcome) -> Option<String> {
    let CaptureOutcome { seen, lost, stopped, .. } = outcome;
    let packets = format!("{lost} of {seen} packets of the capture of {place} are missing");
    match stopped {
        // It wanted no more.
        Some(CaptureStopReason::ReaderGone) => None,
        Some(CaptureStopReason::Failed(why)) => Some(format!(
            "the capture of {place} ended before the run, after {seen} packets: {why}"
        )),
        None if *lost > 0 => Some(format!("{packets}: they came faster than they were read")),
        None => None,
    }
}

/// A file that may be non-blocking, because its client has made it so.
struct BlockingFileWriter(File);

impl Write for BlockingFileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll::wait(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
