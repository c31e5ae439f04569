//! The thread that carries records from their sources to files.
//!
//! Theory of operation. Every source leaves its records in memory of its own, where it never waits:
//! what finds no room there it counts. This thread looks at all sources every
//! [`INTERVAL`], sooner where one of them is filling, and puts what it finds through the
//! [`RecordDrainFilter`] into the files. A disk that is full or slow stops nothing but this thread;
//! what cannot be written is counted by source, and a [`Lost`](windtunnel_model::record::Kind::Lost)
//! record says so where it would have been, as soon as there is room again.

mod files;
mod filter;
mod gap;
mod scratch;
mod status;
#[cfg(test)]
mod tests;
mod unseen;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use windtunnel_evidence::file::{CLOCK, EventSource, RecordFileHeader};
use windtunnel_model::record::kind::NO_FLOW;
use windtunnel_model::record::{EventRecord, Kind, halves};
use windtunnel_sys::clock;

pub use files::RecordFileLimits;
use files::RotatingRecordFiles;
pub use filter::{AddressAnonymiser, FlowChoice, RecordDrainFilter};
pub(crate) use scratch::ScratchRecordFile;
pub use status::{LayerStatus, RecordDrainStatus};
pub use unseen::CallRecordingScope;

/// Where records wait.
pub trait RecordFeed: Send {
    /// Whose they are.
    fn source(&self) -> EventSource;

    /// Takes up to so many records that have come, in their order, with a
    /// [`Lost`](windtunnel_model::record::Kind::Lost) where some are missing.
    fn take(&mut self, most: usize, records: &mut Vec<EventRecord>);

    /// How many records wait, and for how many there is room.
    fn fill(&self) -> (u64, u64);
}

impl<F: RecordFeed + ?Sized> RecordFeed for Box<F> {
    fn source(&self) -> EventSource {
        (**self).source()
    }

    fn take(&mut self, most: usize, records: &mut Vec<EventRecord>) {
        (**self).take(most, records);
    }

    fn fill(&self) -> (u64, u64) {
        (**self).fill()
    }
}

/// A source of several sources' records that has to be asked.
pub trait PolledRecordSource: Send {
    /// Hands over what there is to say now, or at the end; what belongs to one source in its order.
    fn ask(&mut self, is_last: bool, sink: &mut dyn FnMut(EventSource, &EventRecord));
}

/// What is to be written, and where.
#[derive(Debug)]
pub struct RecordDrainSettings {
    /// The folder of the files; it is made.
    pub folder: PathBuf,
    /// What the names of the files begin with.
    pub prefix: String,
    /// What the files say of themselves.
    pub header: RecordFileHeader,
    pub limits: RecordFileLimits,
    pub filter: RecordDrainFilter,
    /// Whose calls should be recorded, of each connection that is seen.
    pub homes: CallRecordingScope,
    /// Replaces addresses and ports in definitions of flows.
    pub anonymity: Option<AddressAnonymiser>,
    /// From one look at the sources to the next.
    pub interval: Duration,
}

/// The usual time from one look at the sources to the next.
pub const INTERVAL: Duration = Duration::from_millis(10);

/// The thread. Dropped without [`RecordDrain::finish`], it ends with what it has written.
#[derive(Debug)]
pub struct RecordDrain {
    orders: Sender<RecordDrainCommand>,
    status: Arc<Mutex<RecordDrainStatus>>,
    thread: JoinHandle<RecordDrainStatus>,
}

/// What the thread is to do.
enum RecordDrainCommand {
    Add(Box<dyn RecordFeed>),
    Consult(Box<dyn PolledRecordSource>),
    Choose(Box<RecordDrainFilter>),
    Limit(RecordFileLimits),
    Clock(i64),
    Flush(Sender<()>),
    Finish,
}

impl RecordDrain {
    /// Makes the first file and starts the thread.
    ///
    /// # Errors
    /// If the folder, the file or the thread cannot be made.
    pub fn start(
        setup: RecordDrainSettings,
        feeds: Vec<Box<dyn RecordFeed>>,
    ) -> io::Result<RecordDrain> {
        let RecordDrainSettings {
            folder,
            prefix,
            header,
            limits,
            mut filter,
            homes,
            anonymity,
            interval,
        } = setup;
        filter.expect_calls_of(homes);
        let mut files = RotatingRecordFiles::new(folder, prefix, header, limits);
        files.open(clock::monotonic_ns())?;
        let (orders, receiver) = channel();
        let status = Arc::new(Mutex::new(RecordDrainStatus::default()));
        let shown = Arc::clone(&status);
        let work = RecordDrainWorker {
            feeds,
            asked: Vec::new(),
            files,
            filter,
            anonymity,
            spent: Vec::new(),
            shown,
            took_ns: 0,
            seen: 0,
        };
        let thread = std::thread::Builder::new()
            .name("records".to_owned())
            .spawn(move || work.run(&receiver, interval))?;
        Ok(RecordDrain { orders, status, thread })
    }

    /// Reads one more source.
    pub fn add(&self, feed: Box<dyn RecordFeed>) {
        self.order(RecordDrainCommand::Add(feed));
    }

    /// Asks one more source at each look.
    pub fn consult(&self, ask: Box<dyn PolledRecordSource>) {
        self.order(RecordDrainCommand::Consult(ask));
    }

    /// Records other events from now on.
    pub fn choose(&self, filter: RecordDrainFilter) {
        self.order(RecordDrainCommand::Choose(Box::new(filter)));
    }

    /// Files may become larger, or not, from now on.
    pub fn limit(&self, limits: RecordFileLimits) {
        self.order(RecordDrainCommand::Limit(limits));
    }

    /// Notes by how many nanoseconds the clock that records are compared on is ahead of this
    /// machine's.
    pub fn note_clock(&self, ahead_ns: i64) {
        self.order(RecordDrainCommand::Clock(ahead_ns));
    }

    /// Waits until what the sources have now is in files, or is lost.
    pub fn flush(&self) {
        let (done, wait) = channel();
        self.order(RecordDrainCommand::Flush(done));
        // The thread that is gone has nothing to write.
        let _ = wait.recv();
    }

    /// What has been done so far, at most one interval old.
    #[must_use]
    pub fn status(&self) -> RecordDrainStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what there is, and ends.
    #[must_use]
    pub fn finish(self) -> RecordDrainStatus {
        self.order(RecordDrainCommand::Finish);
        let failed = |_| RecordDrainStatus {
            failure: Some("the thread that writes records panicked".to_owned()),
            ..RecordDrainStatus::default()
        };
        self.thread.join().unwrap_or_else(failed)
    }

    fn order(&self, order: RecordDrainCommand) {
        // If the thread is gone, `finish` says why.
        let _ = self.orders.send(order);
    }
}

struct RecordDrainWorker {
    feeds: Vec<Box<dyn RecordFeed>>,
    asked: Vec<Box<dyn PolledRecordSource>>,
    files: RotatingRecordFiles,
    filter: RecordDrainFilter,
    anonymity: Option<AddressAnonymiser>,
    /// Room for records, kept from one look to the next.
    spent: Vec<EventRecord>,
    shown: Arc<Mutex<RecordDrainStatus>>,
    /// Processor time of all looks that found something.
    took_ns: u64,
    /// Records that they found.
    seen: u64,
}

impl RecordDrainWorker {
    fn run(
        mut self,
        orders: &Receiver<RecordDrainCommand>,
        interval: Duration,
    ) -> RecordDrainStatus {
        let mut wait = interval;
        loop {
            match orders.recv_timeout(wait) {
                Ok(RecordDrainCommand::Finish) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(order) => self.follow(order),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // A source that fills faster than it is emptied is looked at again at once.
            wait = if self.look() { Duration::ZERO } else { interval };
            self.show();
        }
        while self.look() {}
        self.seen += self.ask(true);
        self.files.finish(clock::monotonic_ns());
        self.show();
        RecordDrainStatus { unseen: self.filter.unseen(), ..self.status() }
    }

    fn follow(&mut self, order: RecordDrainCommand) {
        match order {
            RecordDrainCommand::Add(feed) => self.feeds.push(feed),
            RecordDrainCommand::Consult(ask) => self.asked.push(ask),
            RecordDrainCommand::Choose(filter) => {
                let definitions = self.filter.replace(*filter);
                let now = clock::monotonic_ns();
                for (source, records) in definitions {
                    self.files.add(now, source, &records);
                }
            }
            RecordDrainCommand::Limit(limits) => self.files.limit(limits),
            RecordDrainCommand::Clock(ahead_ns) => {
                let (time, ahead) = (clock::monotonic_ns(), halves(ahead_ns.cast_unsigned()));
                let (kind, args) = (Kind::Clock as u8, [ahead[0], ahead[1], 0, 0]);
                let record =
                    EventRecord { time, kind, flow: NO_FLOW, args, ..EventRecord::default() };
                self.files.add(time, CLOCK, &[record]);
            }
            RecordDrainCommand::Flush(done) => {
                while self.look() {}
                self.show();
                // Only a caller that has gone does not listen.
                let _ = done.send(());
            }
            RecordDrainCommand::Finish => {}
        }
    }

    /// Empties every source; whether one of them was more than half full.
    fn look(&mut self) -> bool {
        let began = clock::thread_cpu_ns();
        let (mut filling, mut seen) = (false, self.ask(false));
        let RecordDrainWorker { feeds, files, filter, anonymity, spent, .. } = self;
        for feed in feeds {
            let (waiting, room) = feed.fill();
            files.note_fill(feed.source(), waiting, room);
            filling |= waiting * 2 > room;
            spent.clear();
            feed.take(TAKE_MAX, spent);
            if spent.is_empty() {
                continue;
            }
            let source = feed.source();
            seen += spent.len() as u64;
            filter.apply(source, spent);
            if let Some(anonymity) = anonymity {
                spent.iter_mut().for_each(|record| anonymity.apply(record));
            }
            files.add(clock::monotonic_ns(), source, spent);
        }
        files.flush(clock::monotonic_ns());
        if seen > 0 {
            self.seen += seen;
            self.took_ns += clock::thread_cpu_ns().saturating_sub(began);
        }
        filling
    }

    /// Asks the sources that have to be asked; how many records they had.
    fn ask(&mut self, is_last: bool) -> u64 {
        let mut said: BTreeMap<EventSource, Vec<EventRecord>> = BTreeMap::new();
        for ask in &mut self.asked {
            ask.ask(is_last, &mut |source, record| said.entry(source).or_default().push(*record));
        }
        let now = clock::monotonic_ns();
        let mut seen = 0;
        for (source, mut records) in said {
            seen += records.len() as u64;
            self.filter.apply(source, &mut records);
            if let Some(anonymity) = &self.anonymity {
                records.iter_mut().for_each(|record| anonymity.apply(record));
            }
            self.files.add(now, source, &records);
        }
        seen
    }

    fn status(&self) -> RecordDrainStatus {
        RecordDrainStatus { seen: self.seen, took_ns: self.took_ns, ..self.files.status() }
    }

    fn show(&self) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = self.status();
    }
}

/// Of one source, before the next one has its turn.
const TAKE_MAX: usize = 1 << 16;
