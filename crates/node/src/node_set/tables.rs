//! Tables of connections of the nodes' own, so that looking at a node's sockets is cheap.
//!
//! Network namespaces share one table of TCP connections, which has a row for each 16 to 64 KiB of
//! the machine's memory; the kernel goes through all of it when it is asked for the sockets of one
//! namespace: 200 µs on a machine of 16 GiB, for each look at each node. A namespace with a table of
//! its own (Linux 6.1) is looked through in 4 µs. Source: the kernel's
//! Documentation/networking/ip-sysctl.rst (tcp_child_ehash_entries).

use std::fs;
use std::io;

/// What the kernel derives from the length of the table, as it is without one of their own: nodes
/// are to behave as if they were not looked at.
#[derive(Debug, Clone)]
pub(crate) struct TableLimits {
    /// Pairs of a setting below `net/ipv4` and its value.
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// Gives a table of its own to each network namespace that is made from now on by this process, or
/// by one that it forks; `None` where the kernel cannot.
pub(super) fn give_own() -> io::Result<Option<TableLimits>> {
    let read = |name: &'static str| {
        let value = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"))?;
        Ok((name, value.trim().to_owned()))
    };
    let settings = DERIVED.into_iter().map(read).collect::<io::Result<Vec<_>>>()?;
    match fs::write(ENTRIES_PATH, ENTRIES.to_string()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        written => written.map(|()| Some(TableLimits { settings })),
    }
}

const ENTRIES_PATH: &str = "/proc/sys/net/ipv4/tcp_child_ehash_entries";
/// For some ten thousand connections of a node, a few in each row.
const ENTRIES: u32 = 1024;
/// What `tcp_set_hashinfo` of the kernel's tcp_ipv4.c sets.
const DERIVED: [&str; 2] = ["tcp_max_tw_buckets", "tcp_max_syn_backlog"];
