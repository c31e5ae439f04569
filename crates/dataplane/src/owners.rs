//! Whose the flows of a node are whose programs share its link.
//!
//! The packet loop sees addresses and ports. A thread beside it looks up what a new flow's socket is
//! (the kernel's tables of the node's network namespace), which process has that open (`/proc`), and
//! which program started the process. The packet loop does not wait for it. A look costs some 100 µs
//! for each process of the node, and 200 µs for the tables; looks take at most a tenth of a
//! processor.

mod processes;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windtunnel_model::profile::QueueDiscipline;
use windtunnel_model::{Lane, NetworkVertex, NodeId, Plan, Span, Time};
use windtunnel_sys::poll::EventFd as Wake;
use windtunnel_wire::flow::FiveTuple;

use crate::clock::now;
use processes::{NodeProcessTable, SocketOwner, SocketOwnerTable};
use table::SocketTable;

/// The first process of each program, as its node numbers it; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ProgramRootProcesses(Arc<Mutex<BTreeMap<(usize, i32), usize>>>);

impl ProgramRootProcesses {
    /// A node's program has started as this process.
    pub fn insert(&self, node: usize, pid: i32, program: usize) {
        self.lock().insert((node, pid), program);
    }

    fn program(&self, node: usize, pid: i32) -> Option<usize> {
        self.lock().get(&(node, pid)).copied()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(usize, i32), usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A flow on a lane that classes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowOwnerQuery {
    pub lane: Lane,
    pub key: FiveTuple,
}

/// Whose a flow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowOwnerReply {
    pub lane: Lane,
    pub key: FiveTuple,
    /// Its class; `None`: no process has it (any more).
    pub class: Option<u32>,
    /// Whether processes of several programs have its socket, or its port.
    pub is_shared: bool,
}

/// What looking for owners needs.
#[derive(Debug)]
pub struct FlowOwnerSearchSettings {
    places: Vec<(Lane, LaneSourceNode)>,
    roots: ProgramRootProcesses,
}

/// The node at the start of a lane.
#[derive(Debug, Clone, Copy)]
struct LaneSourceNode {
    node: usize,
    init: u32,
    /// The class of what belongs to no program.
    rest: u32,
}

/// The nodes whose programs share a link, and the lane from each; on this machine or another.
pub fn lanes(plan: &Plan) -> BTreeMap<NodeId, Lane> {
    shared(plan).map(|(lane, node, _)| (node, lane)).collect()
}

/// Lanes that programs share, the node at the start of each, and the class of what belongs to none of
/// its programs.
fn shared(plan: &Plan) -> impl Iterator<Item = (Lane, NodeId, u32)> {
    let lanes = (0..plan.links.len() * 2).map(Lane::from_index);
    lanes.filter_map(|lane| {
        let link = &plan.links[lane.link.index()];
        let profile = &link.profiles[lane.direction.index()];
        let QueueDiscipline::Wf2q(shares) = &profile.discipline else { return None };
        let NetworkVertex::Node(node) = link.ends[lane.direction.index()].vertex else {
            return None;
        };
        let rest = u32::try_from(shares.rest()).ok().filter(|rest| *rest > 0)?;
        Some((lane, node, rest))
    })
}

impl FlowOwnerSearchSettings {
    /// For the lanes that programs share; `None` where there are none.
    pub fn new(
        plan: &Plan,
        roots: &ProgramRootProcesses,
        init: impl Fn(NodeId) -> Option<u32>,
    ) -> Option<FlowOwnerSearchSettings> {
        let place = |(lane, node, rest): (Lane, NodeId, u32)| {
            Some((lane, LaneSourceNode { node: node.index(), init: init(node)?, rest }))
        };
        let places: Vec<(Lane, LaneSourceNode)> = shared(plan).filter_map(place).collect();
        (!places.is_empty()).then(|| FlowOwnerSearchSettings { places, roots: roots.clone() })
    }
}

/// The packet loop's end of the thread, which ends with it.
#[derive(Debug)]
pub struct FlowOwnerThread {
    questions: Sender<FlowOwnerQuery>,
    answers: Receiver<FlowOwnerReply>,
    shared: Arc<Mutex<BTreeMap<Lane, u64>>>,
}

impl FlowOwnerThread {
    /// Starts the thread, which raises `wake` when it has answers.
    pub fn start(setup: FlowOwnerSearchSettings, wake: Arc<Wake>) -> io::Result<FlowOwnerThread> {
        let (questions, asked) = channel();
        let (reply, answers) = channel();
        let counts = Arc::default();
        let search = FlowOwnerSearch {
            nodes: setup
                .places
                .iter()
                .map(|(_, place)| (place.node, NodeProcessTable::default()))
                .collect(),
            places: setup.places.into_iter().collect(),
            roots: setup.roots,
            asked,
            open: Vec::new(),
            shared: BTreeSet::new(),
            counts: Arc::clone(&counts),
        };
        std::thread::Builder::new()
            .name("owners".to_owned())
            .spawn(move || search.run(&reply, &wake))?;
        Ok(FlowOwnerThread { questions, answers, shared: counts })
    }

    /// Asks whose flows these are; [`FlowOwnerThread::answer`] has the answer later.
    pub fn ask(&self, question: FlowOwnerQuery) {
        // Without the thread nothing is found, which counts as such.
        let _ = self.questions.send(question);
    }

    /// The next answer, if one has come.
    pub fn answer(&self) -> Option<FlowOwnerReply> {
        self.answers.try_recv().ok()
    }

    /// Flows of a lane whose sockets processes of several programs had.
    pub fn shared_flows(&self, lane: Lane) -> u64 {
        let counts = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&lane).copied().unwrap_or(0)
    }
}

struct FlowOwnerSearch {
    places: BTreeMap<Lane, LaneSourceNode>,
    nodes: BTreeMap<usize, NodeProcessTable>,
    roots: ProgramRootProcesses,
    asked: Receiver<FlowOwnerQuery>,
    open: Vec<PendingOwnerQuery>,
    /// Flows that were counted as shared.
    shared: BTreeSet<FlowOwnerQuery>,
    counts: Arc<Mutex<BTreeMap<Lane, u64>>>,
}

/// A question without an answer.
#[derive(Debug)]
struct PendingOwnerQuery {
    question: FlowOwnerQuery,
    tries: usize,
    due: Time,
}

impl FlowOwnerSearch {
    fn run(mut self, reply: &Sender<FlowOwnerReply>, wake: &Wake) {
        while self.take() {
            let began = now();
            for answer in self.look(began) {
                // A loop that has ended takes none, and ends this thread.
                let _ = reply.send(answer);
            }
            let _ = wake.raise();
            let pause = Span::from_nanos(now().since(began).as_nanos().saturating_mul(PAUSE_PARTS));
            std::thread::sleep(Duration::from_nanos(pause.min(PAUSE_MOST).as_nanos()));
        }
    }

    /// Waits for questions, or until one is to be looked at again; false: there will be no more.
    fn take(&mut self) -> bool {
        let due = self.open.iter().map(|open| open.due).min();
        let first = match due {
            None => self.asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => {
                let wait = due.since(now()).as_nanos();
                self.asked.recv_timeout(Duration::from_nanos(wait))
            }
        };
        if matches!(first, Err(RecvTimeoutError::Disconnected)) {
            return false;
        }
        let due = now();
        let new = first.into_iter().chain(self.asked.try_iter());
        self.open.extend(new.map(|question| PendingOwnerQuery { question, tries: 0, due }));
        true
    }

    /// Answers what is due, as far as it can.
    fn look(&mut self, now: Time) -> Vec<FlowOwnerReply> {
        let (due, later) = std::mem::take(&mut self.open).into_iter().partition(|it| it.due <= now);
        self.open = later;
        let due: Vec<PendingOwnerQuery> = due;
        let mut asked: BTreeMap<Lane, BTreeSet<u8>> = BTreeMap::new();
        for FlowOwnerQuery { lane, key } in due.iter().map(|open| open.question) {
            asked.entry(lane).or_default().insert(key.protocol);
        }
        let view = |(lane, protocols)| Some((lane, self.view(lane, &protocols)?));
        let views: BTreeMap<Lane, (SocketTable, SocketOwnerTable)> =
            asked.into_iter().filter_map(view).collect();
        let mut answers = Vec::new();
        for open in due {
            let FlowOwnerQuery { lane, key } = open.question;
            let Some((table, sockets)) = views.get(&lane) else { continue };
            let owner = sockets.owner(&table.find(&key));
            match self.settle(lane, owner, open.tries) {
                Some(class) => {
                    let is_shared = owner.is_some_and(|owner| owner.is_shared);
                    self.count_shared(open.question, is_shared);
                    answers.push(FlowOwnerReply { lane, key, class, is_shared });
                }
                None => {
                    let due = now + PAUSES[open.tries.min(PAUSES.len() - 1)];
                    self.open.push(PendingOwnerQuery { tries: open.tries + 1, due, ..open });
                }
            }
        }
        answers
    }

    /// What there is now at the start of a lane.
    fn view(
        &mut self,
        lane: Lane,
        protocols: &BTreeSet<u8>,
    ) -> Option<(SocketTable, SocketOwnerTable)> {
        let place = *self.places.get(&lane)?;
        let table = SocketTable::of_process(place.init, |protocol| protocols.contains(&protocol));
        let processes = self.nodes.entry(place.node).or_default();
        let sockets = processes.sockets(place.node, place.init, &self.roots);
        Some((table, sockets))
    }

    /// The answer, if there is one already. A process may be newer than what is known of its
    /// program, and a socket newer than the packet that it sends.
    fn settle(&self, lane: Lane, owner: Option<SocketOwner>, tries: usize) -> Option<Option<u32>> {
        let is_last = tries >= PAUSES.len();
        let rest = self.places.get(&lane).map(|place| place.rest);
        match owner.map(|owner| owner.program) {
            Some(Some(program)) => {
                Some(u32::try_from(program).ok().filter(|class| Some(*class) < rest).or(rest))
            }
            Some(None) => is_last.then_some(rest),
            None => is_last.then_some(None),
        }
    }

    fn count_shared(&mut self, question: FlowOwnerQuery, is_shared: bool) {
        if is_shared && self.shared.len() < SHARED_MOST && self.shared.insert(question) {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(question.lane).or_default() += 1;
        }
    }
}

/// How long after each try the next one is made.
const PAUSES: [Span; 4] =
    [Span::from_millis(1), Span::from_millis(4), Span::from_millis(16), Span::from_millis(64)];
/// A look is followed by a pause of so many times its length.
const PAUSE_PARTS: u64 = 9;
const PAUSE_MOST: Span = Span::from_secs(1);
/// Flows that are counted as shared.
const SHARED_MOST: usize = 1 << 16;
