//! Forking into namespaces and joining them.

use std::fs;

use windtunnel_sys::namespace::{
    self, IdMap, IdRange, NamespaceFlags, NamespaceFork, UserNamespaceTarget,
};
use windtunnel_sys::process::{self, Pid, ProcessExitStatus};

use crate::{Case, Outcome, root_map};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "a_child_is_pid_1_of_its_own_namespace",
        flags: NamespaceFlags::NET,
        body: child_is_init,
    },
    Case {
        name: "a_child_maps_itself_to_root",
        flags: NamespaceFlags::NONE,
        body: child_maps_itself,
    },
    Case {
        name: "a_parent_can_write_its_childs_maps",
        flags: NamespaceFlags::NONE,
        body: parent_maps,
    },
    Case {
        name: "a_process_with_threads_does_not_fork",
        flags: NamespaceFlags::NONE,
        body: threads,
    },
    Case { name: "a_network_namespace_is_left_and_joined", flags: NamespaceFlags::NET, body: join },
    Case {
        name: "a_host_name_stays_in_its_namespace",
        flags: NamespaceFlags::UTS,
        body: host_name,
    },
];

fn child_is_init() -> Outcome {
    let outside = fs::read_link("/proc/self/ns/net").unwrap();
    match namespace::fork_into(NamespaceFlags::PID | NamespaceFlags::NET | NamespaceFlags::IPC)
        .unwrap()
    {
        NamespaceFork::Child => {
            assert_eq!(process::current(), Pid::INIT);
            assert_eq!(process::parent(), None);
            // This /proc is still the outer one, which knows the caller by its outer number.
            assert_ne!(fs::read_link("/proc/self/ns/net").unwrap(), outside);
            process::exit_now(5)
        }
        NamespaceFork::Parent { pid, pidfd } => {
            assert_ne!(pid, Pid::INIT);
            assert_eq!(
                process::wait_pidfd(&pidfd, false).unwrap(),
                Some(ProcessExitStatus::Exited(5))
            );
            Ok(())
        }
    }
}

fn child_maps_itself() -> Outcome {
    let maps = root_map();
    match namespace::fork_into(NamespaceFlags::USER).map_err(missing)? {
        NamespaceFork::Child => {
            namespace::write_id_maps(UserNamespaceTarget::Current, &maps, true).unwrap();
            assert_eq!(namespace::current_id_map().unwrap(), maps);
            assert_eq!(process::current_user().uid, 0);
            process::exit_now(0)
        }
        NamespaceFork::Parent { pid, .. } => passed(pid),
    }
}

fn parent_maps() -> Outcome {
    let (go, wait) = windtunnel_sys::unix::seqpacket_pair().unwrap();
    let only = |inside| vec![IdRange { inside, outside: 0, count: 1 }];
    let maps = IdMap { users: only(1000), groups: only(100) };
    match namespace::fork_into(NamespaceFlags::USER).map_err(missing)? {
        NamespaceFork::Child => {
            windtunnel_sys::unix::receive(&wait, &mut [0; 1]).unwrap();
            assert_eq!(process::current_user(), process::UserIdentity { uid: 1000, gid: 100 });
            process::exit_now(0)
        }
        NamespaceFork::Parent { pid, .. } => {
            if process::current_user().uid != 0 {
                return Err("needs root, if only in a namespace".into());
            }
            namespace::write_id_maps(UserNamespaceTarget::Process(pid), &maps, true).unwrap();
            windtunnel_sys::unix::send(&go, b"x", &[]).unwrap();
            passed(pid)
        }
    }
}

fn threads() -> Outcome {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || receiver.recv());
    let error = namespace::fork_into(NamespaceFlags::NONE).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EDEADLK));
    drop(sender);
    thread.join().unwrap().unwrap_err();
    Ok(())
}

fn join() -> Outcome {
    let name = || fs::read_link("/proc/thread-self/ns/net").unwrap();
    let (first, descriptor) =
        (name(), namespace::open(UserNamespaceTarget::Current, NamespaceFlags::NET).unwrap());
    namespace::unshare(NamespaceFlags::NET).unwrap();
    assert_ne!(name(), first);
    let error = namespace::setns(&descriptor, NamespaceFlags::UTS).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    namespace::setns(&descriptor, NamespaceFlags::NET).unwrap();
    assert_eq!(name(), first);
    Ok(())
}

fn host_name() -> Outcome {
    process::set_host_name("box").unwrap();
    assert_eq!(fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), "box\n");
    Ok(())
}

/// Root may be without user namespaces of its own.
fn missing(error: std::io::Error) -> String {
    format!("no user namespaces: {error}")
}

/// Waits for a child that must end well.
pub(crate) fn passed(child: Pid) -> Outcome {
    assert_eq!(process::wait_pid(child, false).unwrap(), Some(ProcessExitStatus::Exited(0)));
    Ok(())
}
