//! Sources of evidence inside of real nodes. Not the usual harness: a process must be
//! single-threaded to fork nodes, so each case runs in a process of its own. As root, all cases run
//! twice: as root and as an ordinary user. A word on the command line chooses the cases whose names
//! contain it; `WINDTUNNEL_REQUIRE_NAMESPACES=1` makes a failure of what is skipped.

#![expect(clippy::unwrap_used, reason = "a case fails by a panic")]

#[path = "../../node/tests/namespaces/account.rs"]
#[expect(dead_code, reason = "shared with the tests of nodes")]
mod account;
#[path = "sources/diagnosis.rs"]
mod diagnosis;
#[path = "sources/listeners.rs"]
mod listeners;
#[path = "sources/notification.rs"]
mod notification;
#[path = "sources/program.rs"]
mod program;
#[path = "../../node/tests/namespaces/support.rs"]
#[expect(dead_code, reason = "shared with the tests of nodes")]
mod support;

use std::panic;

use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::process::{self, ProcessExitStatus};

use account::Account;

/// A case: a sentence, and what checks it.
pub(crate) type Case = (&'static str, fn());

fn main() {
    let filters: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen =
        |name: &str| filters.is_empty() || filters.iter().any(|word| name.contains(word.as_str()));
    let cases = [diagnosis::CASES, listeners::CASES, notification::CASES].concat();
    let chosen: Vec<&Case> = cases.iter().filter(|(name, _)| is_chosen(name)).collect();
    if std::env::args().any(|argument| argument == "--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    if in_a_process(|| drop(windtunnel_node::enter().unwrap())) != ProcessExitStatus::Exited(0) {
        println!("skipped: all cases: no namespaces here");
        let required = std::env::var_os("WINDTUNNEL_REQUIRE_NAMESPACES").is_some();
        process::exit_now(i32::from(required));
    }
    let is_root = process::current_user().uid == 0;
    let user = if is_root { "root" } else { "user" };
    let mut failed = 0;
    for (name, body) in chosen {
        let passed = in_a_process(body) == ProcessExitStatus::Exited(0);
        println!("{} {name} (as {user})", if passed { "ok" } else { "FAILED" });
        failed += i32::from(!passed);
    }
    let passed_as_user = !is_root || Account::Plain.passes(&filters);
    process::exit_now(i32::from(failed > 0 || !passed_as_user));
}

/// Runs something in a child.
pub(crate) fn in_a_process(body: impl FnOnce()) -> ProcessExitStatus {
    match namespace::fork_into(NamespaceFlags::NONE).unwrap() {
        NamespaceFork::Child => {
            let lived = panic::catch_unwind(panic::AssertUnwindSafe(body));
            process::exit_now(if lived.is_ok() { 0 } else { 1 })
        }
        NamespaceFork::Parent { pid, .. } => process::wait_pid(pid, false).unwrap().unwrap(),
    }
}
