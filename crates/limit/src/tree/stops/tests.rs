use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;

mod orders;

use orders::{Lab, Program};

fn pid(number: i32) -> Pid {
    Pid::from_raw(number).unwrap()
}

/// Processes that are not of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct World {
    processes: BTreeMap<i32, Virtual>,
    marks: BTreeMap<i32, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Virtual {
    began: u64,
    used_ns: u64,
    /// Stopped, by what.
    stopped: Option<Cause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Cause {
    Tree,
    Other,
}

impl World {
    fn of(count: i32) -> World {
        let process = Virtual { began: 100, used_ns: 0, stopped: None };
        let processes = (1..=count).map(|number| (number, process)).collect();
        World { processes, marks: BTreeMap::new() }
    }

    fn state(&self, pid: Pid) -> Option<ProcessState> {
        let process = self.processes.get(&pid.as_raw_nonzero().get())?;
        let letter = if process.stopped.is_some() { 'T' } else { 'R' };
        Some(ProcessState { letter, began: process.began, ..ProcessState::default() })
    }

    fn used_ns(&self, pid: Pid) -> u64 {
        self.processes.get(&pid.as_raw_nonzero().get()).map_or(0, |process| process.used_ns)
    }

    fn signal(&mut self, pid: Pid, signal: Signal, cause: Cause) -> io::Result<()> {
        let process = self.processes.get_mut(&pid.as_raw_nonzero().get());
        let process = process.ok_or(io::ErrorKind::NotFound)?;
        if signal == Signal::STOP {
            process.stopped.get_or_insert(cause);
        } else if process.stopped.take().is_some() {
            // It computes from then on.
            process.used_ns += 10_000_000;
        }
        Ok(())
    }

    fn mark(&mut self, pid: Pid, began: u64) {
        let marked = self.marks.entry(pid.as_raw_nonzero().get()).or_default();
        *marked = began.max(*marked);
    }

    fn stop(&mut self, pid: Pid, began: u64) -> io::Result<()> {
        let is_it = self.state(pid).is_some_and(|state| state.began == began);
        is_it.then_some(()).ok_or(io::ErrorKind::NotFound)?;
        self.signal(pid, Signal::STOP, Cause::Tree)
    }

    fn stopped_by_tree(&self) -> Vec<i32> {
        let stopped = self.processes.iter().filter(|(_, it)| it.stopped == Some(Cause::Tree));
        stopped.map(|(number, _)| *number).collect()
    }

    /// What the guard leaves stopped should this process end now.
    fn left_by_guard(&self) -> Vec<i32> {
        let marked: Vec<(Pid, u64)> =
            self.marks.iter().map(|(number, began)| (pid(*number), *began)).collect();
        let still = Still(RefCell::new(self.clone()));
        continue_all(marked, &still);
        still.0.into_inner().stopped_by_tree()
    }
}

/// A world in which nothing else happens meanwhile.
struct Still(RefCell<World>);

impl ProcessController for Still {
    fn state(&self, pid: Pid) -> Option<ProcessState> {
        self.0.borrow().state(pid)
    }

    fn used_ns(&self, pid: Pid) -> u64 {
        self.0.borrow().used_ns(pid)
    }

    fn pending_stops(&self, _: Pid) -> Vec<Signal> {
        Vec::new()
    }

    fn mark(&self, pid: Pid, began: u64) {
        self.0.borrow_mut().mark(pid, began);
    }

    fn stop(&self, pid: Pid, began: u64) -> io::Result<()> {
        self.0.borrow_mut().stop(pid, began)
    }

    fn signal(&self, pid: Pid, signal: Signal) -> io::Result<()> {
        self.0.borrow_mut().signal(pid, signal, Cause::Tree)
    }
}

#[test]
fn no_order_of_stopping_continuing_and_being_killed_leaves_a_process_stopped() {
    let states = Lab::default().try_all().unwrap();
    assert!(states > 300, "{states}");
}

#[test]
fn no_order_leaves_one_stopped_that_something_else_continues_or_whose_number_another_gets() {
    for other in [Program::Continue, Program::Replace] {
        let lab = Lab { rounds: 1, other: Some(other), ..Lab::default() };
        let states = lab.try_all().unwrap();
        assert!(states > 300, "{states}");
    }
}

#[test]
fn no_order_leaves_one_of_several_processes_stopped() {
    let states = Lab { processes: 2, rounds: 1, ..Lab::default() }.try_all().unwrap();
    assert!(states > 300, "{states}");
}

#[test]
fn a_process_that_a_walk_misses_is_continued() {
    let lab = Lab { is_missed: true, ..Lab::default() };
    lab.try_all().unwrap();
}

#[test]
fn a_mark_that_is_erased_after_a_process_was_continued_leaves_it_stopped_in_some_order() {
    let lab = Lab { erases: true, ..Lab::default() };
    let order = lab.try_all().unwrap_err();
    assert!(order.contains("killed, and [1] stay stopped"), "{order}");
}

#[test]
fn what_was_stopped_by_something_else_stays_so() {
    let world = Still(RefCell::new(World::of(2)));
    world.0.borrow_mut().signal(pid(2), Signal::STOP, Cause::Other).unwrap();
    let stops = StoppedProcessRegistry::default();
    assert_eq!(stops.stop(&[pid(1), pid(2)], &world).0, 1);
    stops.resume(|| false, &world);
    let world = world.0.into_inner();
    assert_eq!(world.processes[&1].stopped, None);
    assert_eq!(world.processes[&2].stopped, Some(Cause::Other));
    assert_eq!(world.marks, BTreeMap::from([(1, 100)]));
}

#[test]
fn the_guard_continues_what_was_ever_stopped_but_no_other_process_of_the_same_number() {
    let mut world = World::of(3);
    world.marks = BTreeMap::from([(1, 100), (2, 99)]);
    for number in 1..=3 {
        world.signal(pid(number), Signal::STOP, Cause::Tree).unwrap();
    }
    assert_eq!(world.left_by_guard(), [2, 3]);
}
