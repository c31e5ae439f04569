//! The defaults of a node's network namespace: nothing happens by itself, ordinary users may bind
//! port 80 and ping. Source: the kernel's Documentation/networking/ip-sysctl.rst.

use std::fs;
use std::io;
use std::path::Path;

use windtunnel_sys::namespace::{self, IdRange};
use windtunnel_sys::process;

use super::mounts;
use crate::message::{NodeSetupFailure, NodeSetupStage};
use crate::node_set::tables::TableLimits;

/// Sets the defaults. Devices take them over when they are made.
pub(crate) fn apply(
    forward: bool,
    v6: bool,
    notes: &mut Vec<String>,
) -> Result<(), NodeSetupFailure> {
    let groups = ping_groups().map_err(|error| failure("ipv4/ping_group_range", &error))?;
    for (key, value) in v4_settings(forward, &groups) {
        write(key, value, notes)?;
    }
    if Path::new("/proc/sys/net/ipv6").exists() {
        for (key, value) in v6_settings(forward, v6) {
            write(key, value, notes)?;
        }
    } else if v6 {
        return Err(NodeSetupFailure {
            stage: NodeSetupStage::Settings,
            message: "this kernel has no IPv6, but the node has an IPv6 address".into(),
            hint: Some("switch IPv6 off in the file, or boot without ipv6.disable=1".into()),
        });
    }
    Ok(())
}

/// Sets the limits that the kernel would derive from the length of the node's own table of
/// connections, if it has one, to what they are without.
pub(super) fn keep_limits(
    tables: Option<&TableLimits>,
    notes: &mut Vec<String>,
) -> Result<(), NodeSetupFailure> {
    let settings = tables.into_iter().flat_map(|tables| &tables.settings);
    settings.into_iter().try_for_each(|(name, value)| write(&format!("ipv4/{name}"), value, notes))
}

/// `ip_forward` comes first: changing it resets others to what suits a host or a router.
fn v4_settings(forward: bool, groups: &str) -> [(&'static str, &str); 9] {
    [
        ("ipv4/ip_forward", flag(forward)),
        ("ipv4/ip_unprivileged_port_start", "0"),
        ("ipv4/ping_group_range", groups),
        // A reply may take another link than the request.
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv4/conf/all/send_redirects", "0"),
        ("ipv4/conf/default/send_redirects", "0"),
        ("ipv4/conf/all/accept_redirects", "0"),
        ("ipv4/conf/default/accept_redirects", "0"),
    ]
}

fn v6_settings(forward: bool, v6: bool) -> [(&'static str, &'static str); 14] {
    [
        ("ipv6/conf/all/disable_ipv6", flag(!v6)),
        ("ipv6/conf/default/disable_ipv6", flag(!v6)),
        ("ipv6/conf/all/forwarding", flag(forward)),
        ("ipv6/conf/default/forwarding", flag(forward)),
        // No looking for duplicates, no asking for routers, no link-local addresses (mode 1).
        ("ipv6/conf/all/accept_dad", "0"),
        ("ipv6/conf/default/accept_dad", "0"),
        ("ipv6/conf/all/accept_ra", "0"),
        ("ipv6/conf/default/accept_ra", "0"),
        ("ipv6/conf/all/autoconf", "0"),
        ("ipv6/conf/default/autoconf", "0"),
        ("ipv6/conf/default/addr_gen_mode", "1"),
        ("ipv6/conf/default/router_solicitations", "0"),
        ("ipv6/conf/all/accept_redirects", "0"),
        ("ipv6/conf/default/accept_redirects", "0"),
    ]
}

/// The groups that may ping: all that exist in the user namespace (others are refused) from the
/// caller's on, in one range.
fn ping_groups() -> io::Result<String> {
    let own = process::current_user().gid;
    let groups = namespace::current_id_map()?.groups;
    let last = |range: &IdRange| range.inside.saturating_add(range.count - 1).min(GROUP_MAX);
    let range = groups.iter().find(|range| (range.inside..=last(range)).contains(&own));
    let (first, last) = range.map_or((own, own), |range| (range.inside, last(range)));
    Ok(format!("{first} {last}"))
}

/// An older kernel may lack a setting; whatever else is wrong is fatal.
fn write(key: &str, value: &str, notes: &mut Vec<String>) -> Result<(), NodeSetupFailure> {
    match fs::write(Path::new("/proc/sys/net").join(key), value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            notes.push(format!("this kernel has no setting net/{key}"));
            Ok(())
        }
        written => written.map_err(|error| failure(key, &error)),
    }
}

fn failure(key: &str, error: &io::Error) -> NodeSetupFailure {
    NodeSetupFailure {
        stage: NodeSetupStage::Settings,
        message: format!("cannot set net/{key}: {error}"),
        hint: mounts::read_only_hint(error),
    }
}

fn flag(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

/// The largest group in `ping_group_range` (`GID_T_MAX` in the kernel's
/// net/ipv4/sysctl_net_ipv4.c).
const GROUP_MAX: u32 = i32::MAX.cast_unsigned();
