//! What the first process of a namespace has to do.

use std::io::{Read, Write};

use windtunnel_sys::namespace::{self, Flags, Fork};
use windtunnel_sys::process::{self, Pid, Signal, Status};
use windtunnel_sys::signal::Reader;

use crate::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    Case { name: "the_init_reaps_orphans", flags: Flags::PID, body: orphans },
    Case { name: "the_init_can_end_everybody_else", flags: Flags::PID, body: end_all },
    Case { name: "a_child_ends_with_its_parent", flags: Flags::PID, body: parent_death },
    Case { name: "a_childs_end_is_a_signal_to_read", flags: Flags::NONE, body: child_signal },
];

/// Forks without new namespaces; in the child, runs `body` and exits with its code.
fn fork(body: impl FnOnce() -> i32) -> Pid {
    match namespace::fork_into(Flags::NONE).unwrap() {
        Fork::Child => process::exit_now(body()),
        Fork::Parent { pid, .. } => pid,
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
    assert_eq!((pid, status), (child, Status::Exited(3)));
    assert_eq!(process::wait_any(true).unwrap(), None);
    writer.write_all(b"x").unwrap();
    let (_, status) = process::wait_any(false).unwrap().unwrap();
    assert_eq!(status, Status::Exited(7));
    Ok(())
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
        assert_eq!(status, Status::Killed(9));
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
        let expected = if pid == parent { Status::Exited(0) } else { Status::Killed(9) };
        assert_eq!(status, expected);
    }
    Ok(())
}

fn child_signal() -> Outcome {
    let reader = Reader::open(&[Signal::CHILD]).unwrap();
    let child = fork(|| 4);
    let mut watched =
        [windtunnel_sys::poll::PollFd::new(&reader, windtunnel_sys::poll::PollFlags::IN)];
    windtunnel_sys::poll::wait(&mut watched, None).unwrap();
    let received = reader.read().unwrap().unwrap();
    assert_eq!((received.signal, received.sender), (Signal::CHILD.as_raw(), Some(child)));
    assert_eq!(process::wait_any(true).unwrap(), Some((child, Status::Exited(4))));
    Ok(())
}
