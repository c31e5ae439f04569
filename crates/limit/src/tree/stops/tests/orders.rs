//! All orders in which the steps of several threads can come, each on the code that runs.
//!
//! A thread asks before each step, and waits until it is its turn. Each order is tried from the
//! beginning; one that leads where another has been, with the same left to do, is not followed
//! further. (What a thread has left to do depends on what it has seen.)

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Condvar, MutexGuard};

use super::super::*;
use super::{BTreeMap, Cause, World, pid};

/// What the threads do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lab {
    pub(super) processes: i32,
    /// How often the thread that continues looks whether it may.
    pub(super) rounds: u32,
    /// What something else does meanwhile to the first process.
    pub(super) other: Option<Program>,
    /// Whether a mark is erased once its process goes on.
    pub(super) erases: bool,
    /// Whether the last walk finds nothing.
    pub(super) is_missed: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Program {
    Continue,
    Replace,
}

impl Default for Lab {
    fn default() -> Lab {
        Lab { processes: 1, rounds: 2, other: None, erases: false, is_missed: false }
    }
}

impl Lab {
    /// How many states there were, or the order in which a process stays stopped.
    pub(super) fn try_all(&self) -> Result<usize, String> {
        let (mut seen, mut left) = (HashSet::new(), vec![Vec::new()]);
        while let Some(order) = left.pop() {
            let tried = self.try_one(order, seen);
            if let Some(wrong) = tried.wrong {
                return Err(wrong);
            }
            seen = tried.seen;
            left.extend(tried.others);
        }
        Ok(seen.len())
    }

    fn try_one(&self, given: Vec<usize>, seen: HashSet<u64>) -> Order {
        let order = Order { given, seen, ..Order::of(World::of(self.processes)) };
        let turns = Turns { order: Mutex::new(order), changed: Default::default() };
        let stops = StoppedProcessRegistry::default();
        let actor = |number| Actor { turns: &turns, number, erases: self.erases };
        let actors = [actor(0), actor(1), actor(2)];
        std::thread::scope(|scope| {
            let (stops, [looks, continues, other]) = (&stops, &actors);
            scope.spawn(|| looks.run(|actor| self.stop_and_go(stops, actor)));
            scope.spawn(|| continues.run(|actor| self.go(stops, actor)));
            scope.spawn(|| other.run(|actor| self.meddle(actor)));
        });
        // The end of a limit.
        turns.order().is_free = true;
        stops.resume(|| false, &actors[1]);
        let mut order = turns.order.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stopped = order.world.stopped_by_tree();
        if !stopped.is_empty() {
            order.wrong.get_or_insert(format!("{stopped:?} stay stopped: {:?}", order.steps));
        }
        order
    }

    /// The thread that looks and stops: twice, and in the end all may go on.
    fn stop_and_go(&self, stops: &StoppedProcessRegistry, actor: &Actor<'_>) {
        for is_last in [false, true] {
            actor.step("are to stop", |order| order.is_stopped = true);
            self.stop(stops, actor, self.is_missed && is_last);
            actor.step("may go on", |order| order.is_stopped = false);
        }
    }

    fn stop(&self, stops: &StoppedProcessRegistry, actor: &Actor<'_>, is_missed: bool) {
        let count = if is_missed { 0 } else { self.processes };
        let all: Vec<Pid> = (1..=count).map(pid).collect();
        for _ in 0..3 {
            if stops.stop(&all, actor).0 == 0 {
                break;
            }
        }
    }

    /// The thread that continues.
    fn go(&self, stops: &StoppedProcessRegistry, actor: &Actor<'_>) {
        let is_stopped = || actor.step("asks", |order| order.is_stopped);
        for _ in 0..self.rounds {
            stops.resume(is_stopped, actor);
            if is_stopped() {
                self.stop(stops, actor, false);
            }
        }
    }

    /// Something else.
    fn meddle(&self, actor: &Actor<'_>) {
        match self.other {
            Some(Program::Continue) => actor.step("continues from outside", |order| {
                let _ = order.world.signal(pid(1), Signal::CONT, Cause::Other);
            }),
            Some(Program::Replace) => actor.step("replaces", |order| {
                let first = order.world.processes.get_mut(&1).unwrap();
                (first.began, first.used_ns, first.stopped) = (200, 0, None);
            }),
            None => {}
        }
    }
}

/// Whose turn it is.
struct Turns {
    order: Mutex<Order>,
    /// Of each thread: it is its turn.
    changed: [Condvar; THREADS],
}

struct Order {
    world: World,
    list: StoppedProcessList,
    /// Whether all are to be stopped.
    is_stopped: bool,
    threads: [Thread; THREADS],
    /// The threads whose turn comes first, one each step.
    given: Vec<usize>,
    taken: Vec<usize>,
    steps: Vec<String>,
    /// To be tried after this one.
    others: Vec<Vec<usize>>,
    /// States that orders have led to.
    seen: HashSet<u64>,
    turn: Option<usize>,
    /// No thread waits any more: this order has been followed far enough.
    is_free: bool,
    wrong: Option<String>,
}

#[derive(Clone, Default)]
struct Thread {
    waits: bool,
    has_ended: bool,
    /// What its steps have returned.
    seen: DefaultHasher,
}

impl Order {
    fn of(world: World) -> Order {
        Order {
            world,
            list: StoppedProcessList::default(),
            is_stopped: false,
            threads: Default::default(),
            given: Vec::new(),
            taken: Vec::new(),
            steps: Vec::new(),
            others: Vec::new(),
            seen: HashSet::new(),
            turn: None,
            is_free: false,
            wrong: None,
        }
    }

    /// Chooses one that waits; what would be if this process were killed now is tried before.
    fn choose(&mut self) {
        let is_still = self.threads.iter().all(|thread| thread.waits || thread.has_ended);
        if self.is_free || self.turn.is_some() || !is_still {
            return;
        }
        let left = self.world.left_by_guard();
        if !left.is_empty() {
            self.wrong = Some(format!("killed, and {left:?} stay stopped: {:?}", self.steps));
            self.is_free = true;
            return;
        }
        let waiting = (0..THREADS).filter(|number| self.threads[*number].waits);
        let waiting: Vec<usize> = waiting.collect();
        let Some(first) = waiting.first().copied() else { return };
        let given = self.given.get(self.taken.len()).copied();
        if given.is_none() {
            if !self.seen.insert(self.digest()) {
                self.is_free = true;
                return;
            }
            let others = waiting[1..].iter().map(|next| [&self.taken[..], &[*next]].concat());
            self.others.extend(others);
        }
        let next = given.unwrap_or(first);
        self.taken.push(next);
        self.turn = Some(next);
    }

    /// All on which the rest depends.
    fn digest(&self) -> u64 {
        let used_ns: BTreeMap<i32, u64> =
            self.list.used_ns.iter().map(|(pid, ns)| (pid.as_raw_nonzero().get(), *ns)).collect();
        let mut hasher = DefaultHasher::new();
        (&self.world, self.is_stopped, &self.list.order, used_ns).hash(&mut hasher);
        for thread in &self.threads {
            (thread.has_ended, thread.seen.finish()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Turns {
    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses a thread, once all wait, and wakes it if it is not the one that asks.
    fn choose(&self, order: &mut Order, asking: Option<usize>) {
        order.choose();
        match order.turn {
            _ if order.is_free => self.changed.iter().for_each(Condvar::notify_all),
            Some(next) if Some(next) != asking => self.changed[next].notify_all(),
            _ => {}
        }
    }
}

/// A thread, as the code sees it that it runs.
struct Actor<'a> {
    turns: &'a Turns,
    number: usize,
    erases: bool,
}

impl Actor<'_> {
    fn run(&self, program: impl FnOnce(&Self)) {
        program(self);
        let mut order = self.turns.order();
        order.threads[self.number].has_ended = true;
        self.turns.choose(&mut order, None);
    }

    /// One step, when it is its turn.
    fn step<T: fmt::Debug>(&self, what: &str, step: impl FnOnce(&mut Order) -> T) -> T {
        let mut order = self.turns.order();
        order.threads[self.number].waits = true;
        self.turns.choose(&mut order, Some(self.number));
        while !order.is_free && order.turn != Some(self.number) {
            let changed = &self.turns.changed[self.number];
            order = changed.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
        order.turn = None;
        order.threads[self.number].waits = false;
        let result = step(&mut order);
        format!("{what} {result:?}").hash(&mut order.threads[self.number].seen);
        order.steps.push(format!("{} {what}", self.number));
        result
    }
}

impl ProcessController for Actor<'_> {
    fn state(&self, pid: Pid) -> Option<ProcessState> {
        self.step("looks", |order| order.world.state(pid))
    }

    fn used_ns(&self, pid: Pid) -> u64 {
        // No step of its own: it is over before another thread has its turn.
        let mut order = self.turns.order();
        let used_ns = order.world.used_ns(pid);
        used_ns.hash(&mut order.threads[self.number].seen);
        used_ns
    }

    fn pending_stops(&self, _: Pid) -> Vec<Signal> {
        Vec::new()
    }

    fn mark(&self, pid: Pid, began: u64) {
        self.step("marks", |order| order.world.mark(pid, began));
    }

    fn stop(&self, pid: Pid, began: u64) -> io::Result<()> {
        self.step("stops", |order| order.world.stop(pid, began))
    }

    fn signal(&self, pid: Pid, signal: Signal) -> io::Result<()> {
        let sent = self.step("continues", |order| order.world.signal(pid, signal, Cause::Tree));
        if self.erases {
            self.step("erases", |order| order.world.marks.remove(&pid.as_raw_nonzero().get()));
        }
        sent
    }

    fn share<T: fmt::Debug>(
        &self,
        list: &Mutex<StoppedProcessList>,
        step: impl FnOnce(&mut StoppedProcessList) -> T,
    ) -> T {
        self.step("shares", |order| {
            let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
            let result = step(&mut list);
            order.list = list.clone();
            result
        })
    }
}

const THREADS: usize = 3;
