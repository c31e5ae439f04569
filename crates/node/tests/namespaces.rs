//! What needs namespaces. Not the usual harness: a process must be single-threaded to fork nodes,
//! and `enter` changes it for good, so each case runs in a host process of its own.
//!
//! As root, all cases run twice: as root and as an ordinary user; the case of a node's root that
//! becomes another user runs a third time, as an account with subordinate identities. `ok`,
//! `FAILED` or `skipped` is said of each; `WINDTUNNEL_REQUIRE_NAMESPACES=1` makes a failure of what
//! is skipped. A word on the command line chooses the cases whose names contain it.

#![expect(clippy::unwrap_used, reason = "a case fails by a panic")]

#[path = "namespaces/account.rs"]
mod account;
#[path = "namespaces/echo.rs"]
mod echo;
#[path = "namespaces/ending.rs"]
mod ending;
#[path = "namespaces/errors.rs"]
mod errors;
#[path = "namespaces/guard.rs"]
mod guard;
#[path = "namespaces/network.rs"]
mod network;
#[path = "namespaces/programs.rs"]
mod programs;
#[path = "namespaces/services.rs"]
mod services;
#[path = "namespaces/support.rs"]
mod support;

use std::io::{self, Write};
use std::panic;

use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::process::{self, ProcessExitStatus};

use account::Account;

/// A case: a sentence, and what checks it.
pub(crate) type Case = (&'static str, fn());

fn main() {
    let filters: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let cases = [
        network::CASES,
        services::CASES,
        programs::CASES,
        echo::CASES,
        errors::CASES,
        guard::CASES,
        ending::CASES,
    ];
    let chosen: Vec<&Case> = cases
        .into_iter()
        .flatten()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str())))
        .collect();
    if std::env::args().any(|argument| argument == "--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let user = if process::current_user().uid == 0 { "root" } else { "user" };
    if let Some(missing) = missing_for_all() {
        println!("skipped: all cases as {user}: {missing}");
        process::exit_now(i32::from(is_required()));
    }
    let failed: Vec<&str> = chosen
        .iter()
        .filter(|(name, body)| !passes(user, name, *body))
        .map(|case| case.0)
        .collect();
    println!("as {user}: {} passed, {} failed", chosen.len() - failed.len(), failed.len());
    let accounts = if user == "user" { &[][..] } else { &Account::ALL };
    let failed_as = accounts.iter().filter(|account| !account.passes(&filters)).count();
    process::exit_now(i32::from(!failed.is_empty() || failed_as > 0));
}

/// What forbids all cases, if anything: found by entering in a process of its own.
fn missing_for_all() -> Option<String> {
    let folder = support::Folder::new("missing");
    let report = folder.path().join("report");
    let entered = in_a_process(|| {
        if let Err(error) = windtunnel_node::enter() {
            let text = format!("{error}: {}", error.hint().unwrap_or_default());
            std::fs::write(&report, text).expect("the folder is there");
            process::exit_now(1);
        }
    });
    (entered != ProcessExitStatus::Exited(0))
        .then(|| std::fs::read_to_string(&report).unwrap_or_default())
}

/// Says what a case misses; a failure where nothing may be missing.
pub(crate) fn missing(what: &str) {
    println!("skipped: missing: {what}");
    assert!(!is_required(), "missing: {what}");
}

fn is_required() -> bool {
    std::env::var_os("WINDTUNNEL_REQUIRE_NAMESPACES").is_some_and(|value| value == "1")
}

fn passes(user: &str, name: &str, body: fn()) -> bool {
    let started = windtunnel_sys::clock::monotonic_ns();
    let passed = in_a_process(body) == ProcessExitStatus::Exited(0);
    let milliseconds = (windtunnel_sys::clock::monotonic_ns() - started) / 1_000_000;
    println!("{} {name} (as {user}, {milliseconds} ms)", if passed { "ok" } else { "FAILED" });
    passed
}

/// A panic is an exit with 101.
pub(crate) fn in_a_process(body: impl FnOnce() + panic::UnwindSafe) -> ProcessExitStatus {
    io::stdout().flush().expect("standard output takes text");
    match namespace::fork_into(NamespaceFlags::NONE).expect("a process can be forked") {
        NamespaceFork::Child => {
            process::exit_now(if panic::catch_unwind(body).is_ok() { 0 } else { 101 });
        }
        NamespaceFork::Parent { pid, .. } => {
            process::wait_pid(pid, false).expect("the child is ours").expect("it has ended")
        }
    }
}
