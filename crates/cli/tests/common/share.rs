//! How tests divide the machine: most run beside each other (`--test-threads`), some have it alone.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A test's share of the machine, until the last that its thread has is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    /// It belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "a lock is held, not looked at")]
enum Held {
    Beside(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// Modules whose tests have the machine alone: they use all processors, or measure how programs share
/// them.
const ALONE: [&str; 16] = [
    "bounds",
    "cgroup_v2",
    "disk_limits",
    "image_limits",
    "limit",
    "loss",
    "node_limits",
    "overload",
    "patience",
    "reservations",
    "reserve_files",
    "reserve_tree",
    "shares",
    "slow",
    "small_machines",
    "starting",
];

// A waiting writer comes before new readers in the standard library's lock on Linux: a test that needs
// the machine alone waits for those that run, and for no others.
static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    static SHARES: Cell<u32> = const { Cell::new(0) };
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

impl Share {
    /// The share of the test that calls.
    pub(crate) fn of_this_test() -> Share {
        if SHARES.get() == 0 {
            HELD.set(Some(Held::of(&test())));
        }
        SHARES.set(SHARES.get() + 1);
        Share { _not_send: PhantomData }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        SHARES.set(SHARES.get() - 1);
        if SHARES.get() == 0 {
            HELD.take();
        }
    }
}

impl Held {
    // A test that has failed leaves nothing in the lock that others see.
    fn of(test: &str) -> Held {
        if test.split("::").next().is_some_and(|module| ALONE.contains(&module)) {
            Held::Alone(MACHINE.write().unwrap_or_else(PoisonError::into_inner))
        } else {
            Held::Beside(MACHINE.read().unwrap_or_else(PoisonError::into_inner))
        }
    }
}

/// The path of the test that calls; of one that runs by itself, nothing.
fn test() -> String {
    // The harness gives each test a thread of its name, unless there is one thread for all.
    std::thread::current().name().unwrap_or_default().to_owned()
}
