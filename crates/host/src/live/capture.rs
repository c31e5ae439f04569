//! Captures of frames: where they are asked for, when they end, and what became of them.

pub(crate) mod places;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use windtunnel_control::ControlReply;
use windtunnel_sys::poll::{self, EventFd as Wake, PollFd, PollFlags};

use super::connections::ControlConnectionTable;
use super::journal::Journal;
use super::refusal::RequestRefusal;
use super::state::RunLoop;
use places::capture_places;
use windtunnel_dataplane::PacketLoopCommand;
use windtunnel_dataplane::tap::{
    CaptureCounters, CaptureOutcome, CapturePoint, CaptureRequest, CaptureStopReason, ROOM_BYTES,
    Tap,
};

/// The captures of a run.
pub(super) struct Captures {
    running: Vec<ActiveCapture>,
    next: u64,
    outcomes: Receiver<CaptureOutcome>,
    sender: Sender<CaptureOutcome>,
    /// Raised when there is an outcome.
    wake: Arc<Wake>,
    incomplete: Incomplete,
}

/// What is missing in captures, a sentence each.
#[derive(Debug, Default)]
pub(crate) struct Incomplete {
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

impl Captures {
    pub(super) fn new(wake: Arc<Wake>) -> Self {
        let (sender, outcomes) = channel();
        let incomplete = Incomplete::default();
        Captures { running: Vec::new(), next: 0, outcomes, sender, wake, incomplete }
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
    pub(super) fn finish(mut self, connections: &mut ControlConnectionTable) -> Incomplete {
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
            connections
                .reply(client, &ControlReply::Captured { packets, lost, reader_gone, failure });
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

impl RunLoop {
    /// Captures to a client's descriptor, until the client ends it or has gone.
    pub(super) fn capture(
        &mut self,
        client: u64,
        place: &str,
        snap_bytes: u32,
        descriptors: &[OwnedFd],
    ) -> Result<(), RequestRefusal> {
        let places = capture_places(&self.cx.plan, place)?;
        let [file] = descriptors else {
            return Err("a capture needs a descriptor to write to".to_owned().into());
        };
        let to = CaptureDestination::Client(client);
        if self.captures.running.iter().any(|it| it.to == to) {
            return Err("this connection captures already".to_owned().into());
        }
        let file = file.try_clone();
        let file = file.map_err(|error| format!("cannot use the descriptor: {error}"))?;
        self.start_capture(place, places, snap_bytes, to, Patient(File::from(file)))
    }

    /// Ends the capture of a client, which is answered when all is written.
    pub(super) fn end_capture(&mut self, client: u64) -> Result<(), RequestRefusal> {
        let to = CaptureDestination::Client(client);
        let running = self.captures.running.iter().find(|it| it.to == to);
        let number = running.ok_or_else(|| "this connection captures nothing".to_owned())?.number;
        self.network.order(PacketLoopCommand::EndCapture(number));
        Ok(())
    }

    /// Captures each place to a file in the run folder, from now on.
    pub(crate) fn capture_to_files(&mut self, places: &[String]) {
        for place in places.iter().collect::<BTreeSet<_>>() {
            if let Err(why) = self.capture_to_file(place) {
                let text = format!("nothing of {place} is captured: {}", why.message());
                self.cx.journal.warn(text.clone());
                self.captures.incomplete.files.push(text);
            }
        }
    }

    fn capture_to_file(&mut self, place: &str) -> Result<(), RequestRefusal> {
        let places = capture_places(&self.cx.plan, place)?;
        let name = format!("{place}.pcapng");
        let path = self.cx.folder.path().join(FOLDER).join(&name);
        let folder = self.cx.folder.below().make_folder(FOLDER.as_ref());
        let file = folder.and_then(|folder| folder.create(&name));
        let file = file.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        self.start_capture(place, places, 0, CaptureDestination::Folder, Patient(file))
    }

    fn start_capture(
        &mut self,
        place: &str,
        places: Vec<CapturePoint>,
        snap_bytes: u32,
        to: CaptureDestination,
        out: Patient,
    ) -> Result<(), RequestRefusal> {
        if self.captures.running.len() >= RUNNING_MAX {
            let text = format!("{RUNNING_MAX} captures go on already");
            return Err(RequestRefusal::with_hint(
                text,
                "end one of them; a node has all of its links",
            ));
        }
        let Some(unix_offset_ns) = self.records.unix_offset_ns() else {
            return Err(RequestRefusal::with_hint(
                "the run has not begun".to_owned(),
                "ask again then",
            ));
        };
        let number = self.captures.next;
        self.captures.next += 1;
        let wanted = CaptureRequest {
            id: number,
            places,
            snap_bytes,
            unix_offset_ns,
            room_bytes: ROOM_BYTES,
        };
        let (sender, wake) = (self.captures.sender.clone(), Arc::clone(&self.captures.wake));
        let done = move |outcome| {
            // If nothing waits for it any more, the run is over and has said so.
            let _ = sender.send(outcome);
            let _ = wake.raise();
        };
        let (tap, counts) = Tap::start(&wanted, out, done)
            .map_err(|error| format!("cannot start a thread for the capture: {error}"))?;
        self.captures.running.push(ActiveCapture { number, place: place.to_owned(), to, counts });
        self.network.capture(tap);
        Ok(())
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
struct Patient(File);

impl Write for Patient {
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

#[cfg(test)]
mod tests {
    use windtunnel_control::{ControlClient, ControlListener};
    use windtunnel_model::PortId;

    use super::*;

    fn wanted(id: u64) -> CaptureRequest {
        let place =
            CapturePoint { port: PortId(0), name: "a eth0".to_owned(), description: String::new() };
        CaptureRequest {
            id,
            places: vec![place],
            snap_bytes: 0,
            unix_offset_ns: 0,
            room_bytes: 1000,
        }
    }

    /// A capture of `a` by this number, whose thread has nothing to say yet.
    fn running(captures: &mut Captures, number: u64, to: CaptureDestination) {
        let (tap, counts) = Tap::start(&wanted(number), io::sink(), |_| ()).unwrap();
        drop(tap);
        captures.running.push(ActiveCapture { number, place: "a".to_owned(), to, counts });
    }

    fn outcome(id: u64, lost: u64, stopped: Option<CaptureStopReason>) -> CaptureOutcome {
        CaptureOutcome { id, seen: 10, lost, stopped }
    }

    #[test]
    fn what_is_missing_in_a_capture_is_said_by_where_it_went() {
        let folder = tempfile::tempdir().unwrap();
        let mut connections =
            ControlConnectionTable::new(ControlListener::open(folder.path()).unwrap());
        let mut captures = Captures::new(Arc::new(Wake::open().unwrap()));
        let full = || Some(CaptureStopReason::Failed("it is full".to_owned()));
        let cases = [
            (CaptureDestination::Folder, outcome(0, 0, None)),
            (CaptureDestination::Folder, outcome(1, 3, None)),
            (CaptureDestination::Folder, outcome(2, 4, full())),
            (CaptureDestination::Client(5), outcome(3, 10, Some(CaptureStopReason::ReaderGone))),
            (CaptureDestination::Gone, outcome(4, 2, None)),
        ];
        for (to, outcome) in cases {
            running(&mut captures, outcome.id, to);
            captures.sender.send(outcome).unwrap();
        }
        let Incomplete { files, others } = captures.finish(&mut connections);
        let lost = |lost| {
            format!(
                "{lost} of 10 packets of the capture of a are missing: they came faster than they \
                 were read"
            )
        };
        let ended = "the capture of a ended before the run, after 10 packets: it is full";
        assert_eq!(files, [lost(3), ended.to_owned()]);
        assert_eq!(others, [lost(2)]);
    }

    #[test]
    fn a_client_is_answered_with_what_became_of_its_capture() {
        let folder = tempfile::tempdir().unwrap();
        let mut connections =
            ControlConnectionTable::new(ControlListener::open(folder.path()).unwrap());
        let path = folder.path().to_owned();
        let client =
            std::thread::spawn(move || ControlClient::connect(&path).unwrap().receive().unwrap());
        let mut captures = Captures::new(Arc::new(Wake::open().unwrap()));
        let began = Instant::now();
        while connections.turn().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(20));
            assert_eq!(connections.accept("net"), None);
        }
        let id = connections.turn()[0];
        running(&mut captures, 0, CaptureDestination::Client(id));
        captures.conclude(&outcome(0, 2, None), &mut connections);
        let (packets, lost) = (10, 2);
        let expected = ControlReply::Captured { packets, lost, reader_gone: false, failure: None };
        assert_eq!(client.join().unwrap(), expected);
    }

    #[test]
    fn a_capture_whose_client_has_gone_is_ended_by_its_number() {
        let mut captures = Captures::new(Arc::new(Wake::open().unwrap()));
        running(&mut captures, 8, CaptureDestination::Client(5));
        assert_eq!(captures.leave(4), None);
        assert_eq!(captures.leave(5), Some(8));
        assert_eq!(captures.leave(5), None);
    }
}
