//! A thread that looks at the listening sockets of nodes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use windtunnel_model::NodeId;
use windtunnel_sys::poll::{self, EventFd, PollFd, PollFlags, Timer};

use super::{ListenerChange, ListenerMonitor, ListenerStats, ListenerTarget};

/// What a [`ListenerThread`] has found.
#[derive(Debug)]
pub enum ListenerThreadEvent {
    Seen(ListenerChange),
    /// A node cannot be looked at (any longer).
    Failed {
        node: NodeId,
        error: io::Error,
    },
}

/// A thread that looks at nodes until it is dropped.
#[derive(Debug)]
pub struct ListenerThread {
    orders: Sender<ListenerMonitorCommand>,
    wake: Arc<EventFd>,
    shown: Arc<Mutex<ListenerStats>>,
    thread: Option<JoinHandle<()>>,
}

enum ListenerMonitorCommand {
    Watch {
        node: NodeId,
        /// Opens the socket that the node is asked by: it may have to be waited for.
        open: Box<dyn FnOnce() -> io::Result<OwnedFd> + Send>,
        targets: Vec<ListenerTarget>,
    },
    Forget {
        node: NodeId,
    },
    Lose {
        node: NodeId,
        losses: u32,
    },
    End,
}

impl ListenerThread {
    /// Starts it. `notify` is raised whenever it has found something.
    ///
    /// # Errors
    /// If the thread, or what wakes it, cannot be made.
    pub fn start(
        notify: Arc<EventFd>,
    ) -> io::Result<(ListenerThread, Receiver<ListenerThreadEvent>)> {
        let (orders, ordered) = channel();
        let (findings, found) = channel();
        let wake = Arc::new(EventFd::open()?);
        let shown = Arc::<Mutex<ListenerStats>>::default();
        let work = ListenerMonitorWorker {
            listeners: ListenerMonitor::new(),
            ordered,
            wake: Arc::clone(&wake),
            timer: Timer::open()?,
            findings,
            notify,
            shown: Arc::clone(&shown),
            failed: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new().name("listeners".to_owned());
        let thread = Some(thread.spawn(move || work.run())?);
        Ok((ListenerThread { orders, wake, shown, thread }, found))
    }

    /// Looks at a node from now on, for these targets instead of those before. `open` is called by
    /// the thread, and may wait a little.
    pub fn watch(
        &self,
        node: NodeId,
        open: impl FnOnce() -> io::Result<OwnedFd> + Send + 'static,
        targets: Vec<ListenerTarget>,
    ) {
        self.order(ListenerMonitorCommand::Watch { node, open: Box::new(open), targets });
    }

    /// Looks at a node no longer.
    pub fn forget(&self, node: NodeId) {
        self.order(ListenerMonitorCommand::Forget { node });
    }

    /// A node is lost, see [`ListenerMonitor::lose`].
    pub fn lose(&self, node: NodeId, losses: u32) {
        self.order(ListenerMonitorCommand::Lose { node, losses });
    }

    /// What looking has cost until now.
    #[must_use]
    pub fn stats(&self) -> ListenerStats {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has ended before it was to, by a panic: nothing is looked at any longer.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn order(&self, order: ListenerMonitorCommand) {
        // A thread that has ended by a panic has said so.
        let _ = self.orders.send(order);
        let _ = self.wake.raise();
    }
}

impl Drop for ListenerThread {
    fn drop(&mut self) {
        self.order(ListenerMonitorCommand::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct ListenerMonitorWorker {
    listeners: ListenerMonitor,
    ordered: Receiver<ListenerMonitorCommand>,
    wake: Arc<EventFd>,
    timer: Timer,
    findings: Sender<ListenerThreadEvent>,
    notify: Arc<EventFd>,
    shown: Arc<Mutex<ListenerStats>>,
    /// Looks at a node that have failed one after the other.
    failed: BTreeMap<NodeId, u32>,
}

impl ListenerMonitorWorker {
    fn run(mut self) {
        loop {
            let closed = self.wait();
            if !self.take_orders() {
                return;
            }
            let now_ns = windtunnel_sys::clock::monotonic_ns();
            if self.listeners.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                self.look_at_all();
            } else {
                closed.into_iter().for_each(|node| self.look_at(node));
            }
            *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = self.listeners.stats();
        }
    }

    /// Waits until it is time to look, a socket of a node was closed, or there are orders. Returns
    /// the nodes.
    fn wait(&self) -> Vec<NodeId> {
        let timeout = match self.listeners.due_ns() {
            // Without the timer, a pause of one interval.
            Some(due_ns) => self.timer.arm_at(due_ns.max(1)).is_err().then_some(super::INTERVAL),
            None => self.timer.disarm().err().map(|_| super::INTERVAL),
        };
        let mut wanted =
            vec![PollFd::new(&*self.wake, PollFlags::IN), PollFd::new(&self.timer, PollFlags::IN)];
        let nodes: Vec<NodeId> = self.listeners.descriptors().map(|(node, _)| node).collect();
        let sockets = self.listeners.descriptors();
        wanted.extend(sockets.map(|(_, it)| PollFd::from_borrowed_fd(it, PollFlags::IN)));
        // A signal's handler is no reason to stop.
        let _ = poll::wait(&mut wanted, timeout);
        let closed = nodes.into_iter().zip(&wanted[2..]);
        closed.filter(|(_, it)| !it.revents().is_empty()).map(|(node, _)| node).collect()
    }

    /// False if the thread is to end.
    fn take_orders(&mut self) -> bool {
        let _ = self.wake.clear();
        while let Ok(order) = self.ordered.try_recv() {
            match order {
                ListenerMonitorCommand::Watch { node, open, targets } => {
                    let watched =
                        open().and_then(|socket| self.listeners.watch(node, socket, targets));
                    if let Err(error) = watched {
                        self.find(ListenerThreadEvent::Failed { node, error });
                    }
                }
                ListenerMonitorCommand::Forget { node } => self.listeners.forget(node),
                ListenerMonitorCommand::Lose { node, losses } => self.listeners.lose(node, losses),
                ListenerMonitorCommand::End => return false,
            }
        }
        true
    }

    fn look_at_all(&mut self) {
        let mut seen = Vec::new();
        let looked = self.listeners.look_at_all(&mut |sighting| seen.push(sighting));
        seen.into_iter().for_each(|sighting| self.find(ListenerThreadEvent::Seen(sighting)));
        match looked {
            Ok(()) => self.failed.clear(),
            Err((node, error)) => self.fail(node, error),
        }
    }

    fn look_at(&mut self, node: NodeId) {
        let mut seen = Vec::new();
        let looked = self.listeners.look_at(node, &mut |sighting| seen.push(sighting));
        seen.into_iter().for_each(|sighting| self.find(ListenerThreadEvent::Seen(sighting)));
        if let Err(error) = looked {
            self.fail(node, error);
        }
    }

    /// A node that cannot be looked at so often is given up.
    fn fail(&mut self, node: NodeId, error: io::Error) {
        let times = self.failed.entry(node).or_default();
        *times += 1;
        if *times >= FAILURES_MAX {
            self.failed.remove(&node);
            self.listeners.forget(node);
            self.find(ListenerThreadEvent::Failed { node, error });
        }
    }

    fn find(&self, finding: ListenerThreadEvent) {
        // The main loop has ended, if it is not taken.
        let _ = self.findings.send(finding);
        let _ = self.notify.raise();
    }
}

/// Some errors pass, as where the kernel has no memory for an answer.
const FAILURES_MAX: u32 = 5;
