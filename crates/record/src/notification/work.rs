//! The thread: which listener has something, and whose it is.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use windtunnel_model::NodeId;
use windtunnel_sys::poll::{EpollSet, EventFd};
use windtunnel_sys::seccomp::{HANDOVER_BYTES, Handover, SeccompListener};
use windtunnel_sys::{clock, unix};

use super::CallSupervisionReport;
use super::node::SupervisedNode;
use crate::shelf::SourceRecordBuffer;

pub(super) struct CallSupervisionWorker {
    set: EpollSet,
    nodes: Vec<SupervisedNode>,
    /// Where listeners are handed over, with the position of the node.
    doors: BTreeMap<u64, (usize, OwnedFd)>,
    listeners: BTreeMap<u64, (usize, SeccompListener)>,
    token_next: u64,
    recording: Arc<AtomicBool>,
    findings: Arc<Mutex<CallSupervisionReport>>,
}

impl CallSupervisionWorker {
    pub(super) fn new(
        set: EpollSet,
        stop: &EventFd,
        shelves: Vec<(NodeId, OwnedFd, SourceRecordBuffer)>,
        recording: Arc<AtomicBool>,
        findings: Arc<Mutex<CallSupervisionReport>>,
    ) -> io::Result<CallSupervisionWorker> {
        set.add(stop, STOP)?;
        let (doors, listeners) = (BTreeMap::new(), BTreeMap::new());
        let (nodes, token_next) = (Vec::new(), STOP + 1);
        let mut work =
            CallSupervisionWorker { set, nodes, doors, listeners, token_next, recording, findings };
        for (id, socket, shelf) in shelves {
            work.nodes.push(SupervisedNode::new(id, shelf));
            work.open_door(work.nodes.len() - 1, socket)?;
        }
        Ok(work)
    }

    pub(super) fn run(mut self) {
        loop {
            let mut ready = Vec::new();
            // A signal's handler is no reason to stop.
            let _ = self.set.wait(|token, is_closed| ready.push((token, is_closed)));
            for (token, is_closed) in ready {
                if token == STOP {
                    return;
                }
                if self.doors.contains_key(&token) {
                    self.take_listener(token, is_closed);
                } else {
                    self.serve(token, is_closed);
                }
            }
        }
    }

    fn open_door(&mut self, node: usize, socket: OwnedFd) -> io::Result<()> {
        let token = self.token();
        self.set.add(&socket, token)?;
        self.doors.insert(token, (node, socket));
        Ok(())
    }

    fn token(&mut self) -> u64 {
        self.token_next += 1;
        self.token_next
    }

    /// A process hands over its listener; or the node's init sends the door for preload libraries.
    fn take_listener(&mut self, token: u64, is_closed: bool) {
        let Some((node, socket)) = self.doors.get(&token) else { return };
        let node = *node;
        let mut message = [0; HANDOVER_BYTES];
        let received = match unix::receive(socket, &mut message) {
            Ok(received) if received.bytes > 0 => received,
            _ if is_closed => return drop(self.doors.remove(&token)),
            _ => return,
        };
        let descriptor = received.descriptors.into_iter().next();
        let message = &message[..received.bytes];
        if message == b"inside" {
            // From the init: where preload libraries hand over listeners.
            let opened = descriptor.map_or(Ok(()), |inside| self.open_door(node, inside));
            return opened.unwrap_or_else(|error| {
                self.cannot_see(node, "programs started by others".into(), error.to_string());
            });
        }
        // Whatever else a program of the node sends is not understood.
        let Some(handover) = Handover::read(message) else { return };
        match descriptor {
            Some(descriptor) => self.add_listener(node, SeccompListener::new(descriptor)),
            None => {
                let error = io::Error::from_raw_os_error(handover.errno);
                self.cannot_see(node, handover.program, format!("no filter: {error}"));
            }
        }
    }

    fn add_listener(&mut self, node: usize, listener: SeccompListener) {
        let token = self.token();
        if self.set.add(&listener, token).is_ok() {
            self.listeners.insert(token, (node, listener));
            self.note(|findings| {
                findings.programs += 1;
                findings.living += 1;
            });
        }
    }

    /// A call waits, or all processes of a filter have ended.
    fn serve(&mut self, token: u64, is_closed: bool) {
        let Some((node, listener)) = self.listeners.get(&token) else { return };
        let node = *node;
        let shown = match listener.receive() {
            Ok(Some(shown)) => shown,
            // Where all have ended the kernel may say that the call has gone, for ever.
            Ok(None) if !is_closed => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Ok(None) | Err(_) => {
                if is_closed {
                    self.nodes[node].end(token);
                }
                self.listeners.remove(&token);
                return self.note(|findings| findings.living -= 1);
            }
        };
        let time = clock::monotonic_ns();
        let looked = self.recording.load(Ordering::Relaxed).then(|| {
            let node = &mut self.nodes[node];
            panic::catch_unwind(AssertUnwindSafe(|| node.look(token, &shown, time)))
        });
        // An error says that the listener is no listener.
        let _ = listener.resume(shown.id);
        let spent_ns = clock::monotonic_ns().saturating_sub(time);
        let failure = match looked {
            None | Some(Ok(Ok(None))) => None,
            Some(Ok(Ok(Some(unseen)))) => {
                let (program, why) = unseen;
                return self.cannot_see(node, program, why);
            }
            Some(Ok(Err(error))) => Some(error.to_string()),
            Some(Err(_)) => Some("looking at a call panicked".to_owned()),
        };
        self.note(|findings| {
            findings.shown += 1;
            findings.spent_ns += spent_ns;
            if let Some(failure) = failure {
                findings.failed += 1;
                findings.failure.get_or_insert(failure);
            }
        });
    }

    fn cannot_see(&self, node: usize, program: String, why: String) {
        let unseen = (self.nodes[node].id(), program, why);
        self.note(|findings| {
            if findings.unseen.contains(&unseen) {
            } else if findings.unseen.len() < UNSEEN_MAX {
                findings.unseen.push(unseen);
            } else {
                findings.unseen_more += 1;
            }
        });
    }

    fn note(&self, change: impl FnOnce(&mut CallSupervisionReport)) {
        change(&mut self.findings.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

const STOP: u64 = 0;
/// Programs that are named.
const UNSEEN_MAX: usize = 100;
