//! What needs namespaces of its own. Not the usual harness: a process must be single-threaded to
//! fork into namespaces, so each case runs in a child of this one, forked into what it asks for.
//! Works as root and, where user namespaces are allowed, as anybody. `ok`, `FAILED` or `skipped`
//! is said of each case; `WINDTUNNEL_REQUIRE_NAMESPACES=1` makes a failure of what is skipped.

#![expect(clippy::unwrap_used, reason = "a test's helpers are tests as well")]

#[path = "namespaces/capability.rs"]
mod capability;
#[path = "namespaces/devices.rs"]
mod devices;
#[path = "namespaces/fork.rs"]
mod fork;
#[path = "namespaces/mount.rs"]
mod mount;
#[path = "namespaces/packet.rs"]
mod packet;
#[path = "namespaces/process.rs"]
mod process_cases;
#[path = "namespaces/relay.rs"]
mod relay;

use std::io::{self, Write};
use std::panic;

use windtunnel_sys::namespace::{
    self, IdMap, IdRange, NamespaceFlags, NamespaceFork, UserNamespaceTarget,
};
use windtunnel_sys::process::{self, ProcessExitStatus};

/// A case: its name, the namespaces it wants, and its body. As another user than root it gets a
/// user namespace as well, in which it is root.
pub(crate) struct Case {
    name: &'static str,
    flags: NamespaceFlags,
    body: fn() -> Outcome,
}

/// A case that did not panic either passed or says what it misses.
pub(crate) type Outcome = Result<(), String>;

const SKIPPED: i32 = 77;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let cases = [
        fork::CASES,
        mount::CASES,
        capability::CASES,
        process_cases::CASES,
        devices::CASES,
        packet::CASES,
        relay::CASES,
    ];
    let chosen = cases.into_iter().flatten().filter(|case| {
        filters.is_empty() || filters.iter().any(|filter| case.name.contains(filter.as_str()))
    });
    if arguments.iter().any(|argument| argument == "--list") {
        chosen.for_each(|case| println!("{}: test", case.name));
        return;
    }
    let required = std::env::var_os("WINDTUNNEL_REQUIRE_NAMESPACES").is_some_and(|v| v == "1");
    let (mut passed, mut failed) = (0, 0);
    for case in chosen {
        match run(case) {
            Ok(ProcessExitStatus::Exited(0)) => {
                println!("ok {}", case.name);
                passed += 1;
            }
            Ok(ProcessExitStatus::Exited(SKIPPED)) if !required => {}
            Ok(status) => {
                println!("FAILED {}: {status:?}", case.name);
                failed += 1;
            }
            Err(error) if !required => println!("skipped {}: no namespaces: {error}", case.name),
            Err(error) => {
                println!("FAILED {}: no namespaces: {error}", case.name);
                failed += 1;
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    std::process::exit(i32::from(failed > 0));
}

/// Runs one case in a child and waits for it.
fn run(case: &Case) -> io::Result<ProcessExitStatus> {
    io::stdout().flush()?;
    let root = process::current_user().uid == 0;
    let flags = if root { case.flags } else { case.flags | NamespaceFlags::USER };
    let maps = root_map();
    match namespace::fork_into(flags)? {
        NamespaceFork::Parent { pidfd, .. } => {
            Ok(process::wait_pidfd(&pidfd, false)?.expect("waited for"))
        }
        NamespaceFork::Child => {
            if flags.contains(NamespaceFlags::USER) {
                namespace::write_id_maps(UserNamespaceTarget::Current, &maps, true)
                    .expect("the own user maps");
            }
            process::exit_now(outcome_of(case))
        }
    }
}

fn outcome_of(case: &Case) -> i32 {
    match panic::catch_unwind(case.body) {
        Ok(Ok(())) => 0,
        Ok(Err(reason)) => {
            println!("skipped {}: {reason}", case.name);
            SKIPPED
        }
        Err(_) => 1,
    }
}

/// The map that anybody may make: oneself as root.
pub(crate) fn root_map() -> IdMap {
    let user = process::current_user();
    let only = |outside| vec![IdRange { inside: 0, outside, count: 1 }];
    IdMap { users: only(user.uid), groups: only(user.gid) }
}

/// Runs iproute2, which the cases about devices need.
pub(crate) fn ip(arguments: &str) -> Outcome {
    let program = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
        .ok_or("the program ip of iproute2 is missing")?;
    let words = arguments.split_ascii_whitespace();
    let output = std::process::Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    Ok(())
}
