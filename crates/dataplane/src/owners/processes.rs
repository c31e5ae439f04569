//! Which program of a node a process belongs to, and what sockets it has.
//!
//! The init starts each program, so it is the parent of their first processes; what these start
//! belongs to the program. A process whose parents have ended becomes a child of the init: it is
//! known if it was seen before that.

use std::collections::BTreeMap;
use std::fs;

use windtunnel_record::owners::{children, sockets};

use super::ProgramRootProcesses;

/// The processes of a node, as last seen.
#[derive(Debug, Default)]
pub(super) struct NodeProcessTable {
    /// By the number that the machine gives them: when they started, and their program.
    seen: BTreeMap<u32, (u64, Option<usize>)>,
}

/// Whose a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketOwner {
    /// `None`: a process that no program of the file has started.
    pub(super) program: Option<usize>,
    /// Whether processes of several programs have it.
    pub(super) is_shared: bool,
}

impl NodeProcessTable {
    /// The sockets of all processes of a node, by inode.
    pub(super) fn sockets(
        &mut self,
        node: usize,
        init: u32,
        roots: &ProgramRootProcesses,
    ) -> SocketOwnerTable {
        let mut found = BTreeMap::new();
        let mut seen = BTreeMap::new();
        let first = children(init).into_iter().map(|process| {
            let program = number_in_node(process).and_then(|pid| roots.program(node, pid));
            (process, program)
        });
        let mut next: Vec<(u32, Option<usize>)> = first.collect();
        while let Some((process, program)) = next.pop() {
            let Some(started) = started(process) else { continue };
            let before = self.seen.get(&process).filter(|(at, _)| *at == started);
            let program = program.or_else(|| before.and_then(|(_, program)| *program));
            if seen.insert(process, (started, program)).is_some() {
                continue;
            }
            next.extend(children(process).into_iter().map(|child| (child, program)));
            sockets(process).into_iter().for_each(|inode| add(&mut found, inode, program));
        }
        self.seen = seen;
        SocketOwnerTable(found)
    }
}

/// Whose the sockets of a node are, by inode.
#[derive(Debug)]
pub(super) struct SocketOwnerTable(BTreeMap<u32, SocketOwner>);

impl SocketOwnerTable {
    /// Whose a flow is that may be of any of these sockets: the first program's, and shared if they
    /// are not all its.
    pub(super) fn owner(&self, inodes: &[u32]) -> Option<SocketOwner> {
        let owners = inodes.iter().filter_map(|inode| self.0.get(inode));
        owners.copied().reduce(SocketOwner::with)
    }
}

impl SocketOwner {
    fn with(self, other: SocketOwner) -> SocketOwner {
        let is_shared = self.is_shared || other.is_shared || self.program != other.program;
        let program = self.program.into_iter().chain(other.program).min();
        SocketOwner { program, is_shared }
    }
}

fn add(found: &mut BTreeMap<u32, SocketOwner>, inode: u32, program: Option<usize>) {
    let owner = SocketOwner { program, is_shared: false };
    found.entry(inode).and_modify(|other| *other = other.with(owner)).or_insert(owner);
}

/// The number that a process has in its own PID namespace: the last of `NSpid` (proc_pid_status(5)).
fn number_in_node(process: u32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

/// When a process started, in ticks since the machine did: the 22nd field of proc_pid_stat(5), the
/// second of which ends with the last bracket.
fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// The number of the inode of a socket.
    fn inode(socket: &impl AsRawFd) -> u32 {
        let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let text = link.to_string_lossy();
        text.trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap()
    }

    #[test]
    fn a_socket_that_a_process_of_a_program_has_is_the_programs() {
        // This process stands for an init, and a child that inherits a socket for a program.
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .stdin(std::os::fd::OwnedFd::from(socket.try_clone().unwrap()))
            .spawn()
            .unwrap();
        let roots = ProgramRootProcesses::default();
        let pid = number_in_node(child.id()).unwrap();
        let mut processes = NodeProcessTable::default();
        let own = std::process::id();
        let owner = |processes: &mut NodeProcessTable| {
            processes.sockets(4, own, &roots).owner(&[inode(&socket)])
        };
        assert_eq!(owner(&mut processes).unwrap().program, None, "it is not known yet");
        roots.insert(4, pid, 2);
        assert_eq!(owner(&mut processes), Some(SocketOwner { program: Some(2), is_shared: false }));
        roots.insert(4, pid, 2);
        assert!(processes.seen.contains_key(&child.id()), "it is known from now on");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_socket_of_two_programs_is_the_firsts_and_shared() {
        let mut found = BTreeMap::new();
        add(&mut found, 7, Some(3));
        add(&mut found, 7, Some(1));
        add(&mut found, 8, Some(1));
        add(&mut found, 8, Some(1));
        let sockets = SocketOwnerTable(found);
        assert_eq!(sockets.owner(&[7]), Some(SocketOwner { program: Some(1), is_shared: true }));
        assert_eq!(sockets.owner(&[8]), Some(SocketOwner { program: Some(1), is_shared: false }));
        assert_eq!(sockets.owner(&[9]), None);
        assert!(sockets.owner(&[8, 7]).unwrap().is_shared);
    }
}
