//! Nothing outlives the host process.

use std::os::fd::OwnedFd;
use std::time::Duration;

use windtunnel_node::NodeInitReply;
use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, Pid, Signal};
use windtunnel_sys::unix;

use crate::Case;
use crate::support::{Folder, World, next, star, start};

pub(crate) const CASES: &[Case] = &[
    ("nothing outlives a node_set", dropped),
    ("nothing outlives a host process that is killed", killed),
    ("nothing outlives a host process that is killed during set-up", killed_early),
    ("the death of one node leaves the others alone", one),
    ("a hundred nodes come and go", hundred),
];

fn dropped() {
    let world = World::new(star(&["a", "b"]));
    let programs = sleepers(&world);
    world.node_set.close();
    assert_gone(&programs);
}

fn killed() {
    killed_when(|socket| {
        let world = World::new(star(&["a", "b"]));
        sleepers(&world);
        std::fs::remove_dir_all(world.folder.path()).unwrap();
        unix::send(socket, b"ready", &[]).unwrap();
        std::mem::forget(world);
    });
}

fn killed_early() {
    killed_when(|socket| {
        let folder = Folder::new("early");
        let names: Vec<String> = (0..20).map(|number| format!("n{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let plan = star(&names);
        let namespaces = windtunnel_node::enter().unwrap();
        let routes = windtunnel_routing::Routes::compute(&plan);
        let options = windtunnel_node::NodeSetOptions::new(folder.path().into());
        let stop = |done, _| {
            if done == 1 {
                std::fs::remove_dir_all(folder.path()).unwrap();
                unix::send(socket, b"ready", &[]).unwrap();
                wait_for_ever(socket);
            }
        };
        let _ = windtunnel_node::create(&plan, &routes, &namespaces, &options, stop);
    });
}

fn one() {
    let world = World::new(star(&["a", "b"]));
    let pid = Pid::from_raw(world.node("a").pid().cast_signed()).unwrap();
    let pidfd = process::open_pidfd(pid).unwrap();
    process::pidfd_send_signal(&pidfd, Signal::KILL).unwrap();
    poll::wait(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
    assert!(matches!(world.node("a").recv(), Err(windtunnel_node::ChannelError::Gone)));
    assert_eq!(world.output("b", "echo alive"), "alive\n");
}

fn hundred() {
    let names: Vec<String> = (0..100).map(|number| format!("node-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::new(star(&names));
    assert_eq!(world.node_set.fabric().len(), 100);
    assert!(world.output("node-99", "getent hosts node-0").contains("fd00::1"));
    world.node_set.close();
}

/// Forks a host process that is killed once it has reported, and everything below it with it.
fn killed_when(host: impl FnOnce(&OwnedFd)) {
    let (ours, theirs) = unix::seqpacket_pair().unwrap();
    let pidfd = match namespace::fork_into(NamespaceFlags::NONE).unwrap() {
        NamespaceFork::Child => {
            drop(ours);
            host(&theirs);
            wait_for_ever(&theirs)
        }
        NamespaceFork::Parent { pidfd, pid } => {
            drop(theirs);
            let report = unix::receive(&ours, &mut [0; 16]).unwrap();
            assert_eq!(report.bytes, 5, "the host process has set up");
            let processes = descendants(pid);
            assert!(processes.len() >= 4, "{}", processes.len());
            process::pidfd_send_signal(&pidfd, Signal::KILL).unwrap();
            process::wait_pidfd(&pidfd, false).unwrap();
            processes
        }
    };
    assert_gone(&pidfd);
}

/// Ends with the case, should the case end first.
fn wait_for_ever(socket: &OwnedFd) -> ! {
    let _ = unix::receive(socket, &mut [0; 16]);
    process::exit_now(1)
}

/// Two programs in each node, one of which has left its parent's session; everything alive.
fn sleepers(world: &World) -> Vec<OwnedFd> {
    for node in world.node_set.nodes() {
        let script = "setsid sleep 1000 & exec sleep 1000";
        drop(start(node, 1, &["sh", "-c", script]));
        assert!(matches!(next(node), NodeInitReply::Spawned { .. }));
    }
    descendants(process::current())
}

/// All processes below one, as descriptors that become readable when they end.
fn descendants(of: Pid) -> Vec<OwnedFd> {
    let mut found = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        let number = parent.as_raw_nonzero();
        let path = format!("/proc/{number}/task/{number}/children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        for child in children.split_ascii_whitespace() {
            let child = Pid::from_raw(child.parse().unwrap()).unwrap();
            found.push(process::open_pidfd(child).unwrap());
            parents.push(child);
        }
    }
    found
}

fn assert_gone(processes: &[OwnedFd]) {
    assert!(!processes.is_empty());
    for process in processes {
        let mut watched = [PollFd::new(process, PollFlags::IN)];
        let ready = poll::wait(&mut watched, Some(Duration::from_secs(20))).unwrap();
        assert_eq!(ready, 1, "a process lives on");
    }
}
