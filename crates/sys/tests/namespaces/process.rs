//! What the first process of a namespace has to do.

use std::io::{Read, Write};
use std::time::Duration;

use windtunnel_sys::mount;
use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::process::{self, Pid, ProcessExitStatus, Signal};
use windtunnel_sys::signal::SignalReader;

use crate::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    Case { name: "the_init_reaps_orphans", flags: NamespaceFlags::PID, body: orphans },
    Case { name: "the_init_can_end_everybody_else", flags: NamespaceFlags::PID, body: end_all },
    Case { name: "a_child_ends_with_its_parent", flags: NamespaceFlags::PID, body: parent_death },
    Case {
        name: "a_child_may_be_born_stopped",
        flags: NamespaceFlags::PID.with(NamespaceFlags::MOUNT),
        body: born_stopped,
    },
    Case {
        name: "a_childs_end_is_a_signal_to_read",
        flags: NamespaceFlags::NONE,
        body: child_signal,
    },
];

/// Forks without new namespaces; in the child, runs `body` and exits with its code.
fn fork(body: impl FnOnce() -> i32) -> Pid {
    match namespace::fork_into(NamespaceFlags::NONE).unwrap() {
        NamespaceFork::Child => process::exit_now(body()),
        NamespaceFork::Parent { pid, .. } => pid,
    }
}

fn orphans() -> Outcome {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let child = fork(move || {
        fork(move || {
            reader.read_exact(&mut [0; 1]).unwrap();
            7
        });
        3
    });
    // The child's child lives until it is written to.
    let (pid, status) = process::wait_any(false).unwrap().unwrap();
    assert_eq!((pid, status), (child, ProcessExitStatus::Exited(3)));
    assert_eq!(process::wait_any(true).unwrap(), None);
    writer.write_all(b"x").unwrap();
    let (_, status) = process::wait_any(false).unwrap().unwrap();
    assert_eq!(status, ProcessExitStatus::Exited(7));
    Ok(())
}

/// The kernel discards SIGCONT before it would reach a child whose fork is under way, and not SIGSTOP.
fn born_stopped() -> Outcome {
    mount::set_propagation("/", mount::Propagation::Private).unwrap();
    mount::proc("/proc").unwrap();
    let memory = vec![1_u8; 64 << 20];
    let forks = fork(|| {
        while !memory.is_empty() {
            let child = fork(|| 0);
            process::wait_pid(child, false).unwrap();
        }
        0
    });
    let children = format!("/proc/{}/task/{0}/children", forks.as_raw_nonzero());
    let stopped = (0..5000).find_map(|_| {
        process::kill_all(Signal::STOP).unwrap();
        process::kill_all(Signal::CONT).unwrap();
        std::thread::sleep(Duration::from_millis(3));
        let child = std::fs::read_to_string(&children).unwrap().trim().parse().ok()?;
        let child = Pid::from_raw(child)?;
        is_stopped(child).then_some(child)
    });
    // Otherwise the kernel has been mended.
    if let Some(child) = stopped {
        assert!(process::is_in_fork(child).unwrap());
        let itself = fork(|| process::kill(process::current(), Signal::STOP).map_or(1, |()| 0));
        while !is_stopped(itself) {
            std::thread::yield_now();
        }
        assert!(!process::is_in_fork(itself).unwrap());
    }
    Ok(())
}

fn is_stopped(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|text| text.contains(") T "))
}

fn end_all() -> Outcome {
    let (reader, _writer) = std::io::pipe().unwrap();
    let sleeper = || (&reader).read(&mut [0; 1]).map_or(1, |_| 0);
    let children = [fork(sleeper), fork(sleeper)];
    assert_eq!(process::wait_any(true).unwrap(), None);
    process::kill_all(Signal::KILL).unwrap();
    for _ in children {
        let (pid, status) = process::wait_any(false).unwrap().unwrap();
        assert!(children.contains(&pid));
        assert_eq!(status, ProcessExitStatus::Killed(9));
    }
    let error = process::wait_any(false).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ECHILD));
    Ok(())
}

fn parent_death() -> Outcome {
    let (mut ready, mut writer) = std::io::pipe().unwrap();
    let (forever, _never) = std::io::pipe().unwrap();
    process::set_child_subreaper().unwrap();
    process::set_name("parent_death").unwrap();
    let parent = fork(move || {
        fork(move || {
            process::set_parent_death_signal(Some(Signal::KILL)).unwrap();
            writer.write_all(b"x").unwrap();
            (&forever).read(&mut [0; 1]).map_or(1, |_| 0)
        });
        ready.read_exact(&mut [0; 1]).unwrap();
        0
    });
    let statuses = [process::wait_any(false), process::wait_any(false)];
    for (pid, status) in statuses.map(|ended| ended.unwrap().unwrap()) {
        let expected =
            if pid == parent { ProcessExitStatus::Exited(0) } else { ProcessExitStatus::Killed(9) };
        assert_eq!(status, expected);
    }
    Ok(())
}

fn child_signal() -> Outcome {
    let reader = SignalReader::open(&[Signal::CHILD]).unwrap();
    let child = fork(|| 4);
    let mut watched =
        [windtunnel_sys::poll::PollFd::new(&reader, windtunnel_sys::poll::PollFlags::IN)];
    windtunnel_sys::poll::wait(&mut watched, None).unwrap();
    let received = reader.read().unwrap().unwrap();
    assert_eq!((received.signal, received.sender), (Signal::CHILD.as_raw(), Some(child)));
    assert_eq!(process::wait_any(true).unwrap(), Some((child, ProcessExitStatus::Exited(4))));
    Ok(())
}
