//! What programs write: a thread carries it from their pipes to files in the run folder and to the
//! observer.
//!
//! A program is never held up by a slow reader: pipes are always drained. What a stream writes
//! beyond its limit, or what a full disk refuses, is discarded and counted. An observer sees a
//! bounded number of lines a second of each stream; the files have them all.

mod carry;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use windtunnel_sys::clock;
use windtunnel_sys::poll::EventFd as Wake;
use windtunnel_verdict::evidence::{OutputCollectionSummary, ProgramKey};

use crate::observer::Observer;
pub(crate) use carry::{LogWatch, OutputStreamSetup};
use stream::{ClosedOutputStream, OutputPipe, PipeReadOutcome, PriorOutputFile};

/// From the thread to the main loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadinessLineMatch(pub ProgramKey);

/// The thread and the way to talk to it.
#[derive(Debug)]
pub(crate) struct OutputCollector {
    orders: Sender<OutputCollectorCommand>,
    wake: Arc<Wake>,
    thread: JoinHandle<OutputCollectionSummary>,
}

#[derive(Debug)]
enum OutputCollectorCommand {
    Carry(Box<OutputStreamSetup>),
    /// Finish as soon as every pipe has been closed by its last writer.
    Finish,
}

impl OutputCollector {
    /// Starts the thread. It raises `notify` when something is in the returned channel.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn start(
        observer: Arc<dyn Observer>,
        limit_bytes: u64,
        notify: Arc<Wake>,
    ) -> io::Result<(OutputCollector, Receiver<ReadinessLineMatch>)> {
        let wake = Arc::new(Wake::open()?);
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&set, &*wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        let (orders, receiver) = channel();
        let (matched, matches) = channel();
        let carrier = OutputCollectorThread {
            orders: receiver,
            wake: Arc::clone(&wake),
            set,
            streams: BTreeMap::new(),
            next: WAKE + 1,
            before: BTreeMap::new(),
            observer,
            limit_bytes,
            matched,
            notify,
            carried: OutputCollectionSummary::default(),
            finishing: false,
        };
        let thread = std::thread::spawn(move || carrier.run());
        Ok((OutputCollector { orders, wake, thread }, matches))
    }

    /// Hands over a pipe.
    pub(crate) fn carry(&self, carry: OutputStreamSetup) {
        self.order(OutputCollectorCommand::Carry(Box::new(carry)));
    }

    /// Waits until every pipe has been drained. Call when no writer is left.
    #[must_use]
    pub(crate) fn finish(self) -> OutputCollectionSummary {
        self.order(OutputCollectorCommand::Finish);
        self.thread.join().unwrap_or_else(|_| OutputCollectionSummary {
            failure: Some("the output thread panicked".to_owned()),
            ..OutputCollectionSummary::default()
        })
    }

    fn order(&self, order: OutputCollectorCommand) {
        // The thread outlives this handle; an eventfd counter cannot overflow from single raises.
        let _ = self.orders.send(order);
        let _ = self.wake.raise();
    }
}

struct OutputCollectorThread {
    orders: Receiver<OutputCollectorCommand>,
    wake: Arc<Wake>,
    set: OwnedFd,
    streams: BTreeMap<u64, OutputPipe>,
    next: u64,
    /// Of each file whose program has ended: one that starts again goes on with it.
    before: BTreeMap<PathBuf, PriorOutputFile>,
    observer: Arc<dyn Observer>,
    limit_bytes: u64,
    matched: Sender<ReadinessLineMatch>,
    notify: Arc<Wake>,
    carried: OutputCollectionSummary,
    finishing: bool,
}

impl OutputCollectorThread {
    fn run(mut self) -> OutputCollectionSummary {
        let mut ready = Vec::with_capacity(EVENTS_AT_ONCE);
        let mut buffer = vec![0; READ_BYTES];
        while !(self.finishing && self.streams.is_empty()) {
            ready.clear();
            match epoll::wait(&self.set, spare_capacity(&mut ready), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    self.fail(format!("cannot wait for output: {error}"));
                    break;
                }
            }
            for event in &ready {
                match event.data.u64() {
                    WAKE => self.take_orders(),
                    key => self.read(key, &mut buffer),
                }
            }
        }
        self.carried
    }

    fn take_orders(&mut self) {
        let _ = self.wake.clear();
        loop {
            match self.orders.try_recv() {
                Ok(OutputCollectorCommand::Carry(carry)) => self.add(*carry),
                Ok(OutputCollectorCommand::Finish) | Err(TryRecvError::Disconnected) => {
                    self.finishing = true;
                    return;
                }
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    fn add(&mut self, carry: OutputStreamSetup) {
        let key = self.next;
        self.next += 1;
        let data = epoll::EventData::new_u64(key);
        if let Err(error) = epoll::add(&self.set, &carry.pipe, data, epoll::EventFlags::IN) {
            self.fail(format!("cannot watch the output of {}: {error}", carry.source));
            return;
        }
        let before = self.before.remove(&carry.file).unwrap_or_default();
        let (stream, failure) = OutputPipe::open(carry, self.limit_bytes, before);
        if let Some(failure) = failure {
            self.fail(failure);
        }
        self.streams.insert(key, stream);
    }

    fn read(&mut self, key: u64, buffer: &mut [u8]) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let now_ns = clock::monotonic_ns();
        let progress = stream.read(buffer, now_ns, &*self.observer);
        if stream.take_match() {
            let _ = self.matched.send(ReadinessLineMatch(stream.key()));
            let _ = self.notify.raise();
        }
        match progress {
            PipeReadOutcome::More => {}
            PipeReadOutcome::Failed(message) => self.fail(message),
            PipeReadOutcome::Closed => {
                if let Some(stream) = self.streams.remove(&key) {
                    // Closing the pipe takes it out of the set.
                    let program = stream.key();
                    let ClosedOutputStream { volume, logs, path, before } =
                        stream.close(now_ns, &*self.observer);
                    self.carried.logs.extend(logs);
                    self.before.insert(path, before);
                    let total = self.carried.volumes.entry(program).or_default();
                    total.bytes += volume.bytes;
                    total.discarded += volume.discarded;
                }
            }
        }
    }

    fn fail(&mut self, message: String) {
        self.carried.failure.get_or_insert(message);
    }
}

const WAKE: u64 = 0;
const EVENTS_AT_ONCE: usize = 64;
/// A pipe's whole capacity, so that one read empties it.
const READ_BYTES: usize = 64 * 1024;
