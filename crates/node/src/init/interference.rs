//! What programs have given to the node that delays, drops or changes packets beside the emulation, in
//! words: queue disciplines of devices, rules of packet filters, ports of bridges.

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use windtunnel_sys::netdev;
use windtunnel_sys::x_tables::{self, XtablesFamily};

use crate::filter;
use crate::message::NetworkInterference;
use crate::netlink::disciplines::DeviceQueueDiscipline;
use crate::netlink::{Netlink, NetlinkError};

/// Looks for all of it. What cannot be read is said in its place.
pub(super) fn look() -> NetworkInterference {
    let disciplines = disciplines().unwrap_or_else(|error| unread("queue disciplines", &error));
    let ports = bridge_ports().unwrap_or_else(|error| unread("devices", &error));
    let mut filters = nf_tables().unwrap_or_else(|error| unread("the rules of nftables", &error));
    filters.extend(all_x_tables());
    NetworkInterference { disciplines: few(disciplines), filters: few(filters), ports: few(ports) }
}

fn unread(what: &str, error: &io::Error) -> Vec<String> {
    vec![format!("{what}, which cannot be read ({error})")]
}

/// So many as are shown, and how many there are beside.
fn few(mut all: Vec<String>) -> Vec<String> {
    let more = all.len().saturating_sub(SHOWN_MOST);
    all.truncate(SHOWN_MOST);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all
}

/// The queue disciplines of the node's devices that delay or drop packets beside the emulation. What
/// the kernel gives to a device by itself is none, unless it has dropped something or holds it.
fn disciplines() -> io::Result<Vec<String>> {
    let all = settled(|| opened(Netlink::open())?.disciplines())?.into_iter();
    let matters =
        all.filter(|it| !USUAL.contains(&it.kind.as_str()) || it.dropped > 0 || it.waiting > 0);
    let text = |it: DeviceQueueDiscipline| {
        let DeviceQueueDiscipline { device, kind, dropped, waiting } = it;
        let device = device_name(device);
        format!("{kind} at {device} ({dropped} packets dropped, {waiting} waiting)")
    };
    Ok(matters.map(text).collect())
}

/// Ports of bridges that forward nothing.
fn bridge_ports() -> io::Result<Vec<String>> {
    let all = settled(|| opened(Netlink::open())?.bridge_ports())?.into_iter();
    let idle = all.filter_map(|port| Some((port.idle()?, port)));
    Ok(idle.map(|(why, it)| format!("{} of {} ({why})", it.name, device_name(it.bridge))).collect())
}

fn nf_tables() -> io::Result<Vec<String>> {
    let read = settled(|| opened(Netlink::open_filter())?.ruleset());
    match read {
        Ok(found) => Ok(found.describe()),
        // The kernel has no nf_tables, or not for packet filters.
        Err(error) if is_lacking(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The tables of `iptables-legacy` and `ip6tables-legacy`, if the kernel has any.
fn all_x_tables() -> Vec<String> {
    let mut found = Vec::new();
    for (file, version) in TABLES {
        let names = match names(file) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            // The file is of the machine's root where an ordinary user has made the namespace. To
            // read a table makes it, which lets all packets pass.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => NAMES.to_owned(),
            Err(error) => {
                found.extend(unread(file, &error));
                continue;
            }
        };
        for name in names.split_whitespace() {
            match x_table(version, name) {
                Ok(chains) => found.extend(chains),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => found.extend(unread(&format!("table {name} of {file}"), &error)),
            }
        }
    }
    found
}

fn x_table(version: XtablesFamily, name: &str) -> io::Result<Vec<String>> {
    let table = settled(|| x_tables::read(version, name, TABLE_BYTES_MAX))?;
    let chains = filter::x_tables::chains(version, name, &table).ok_or(ErrorKind::InvalidData)?;
    Ok(chains.iter().filter(|chain| !chain.is_idle()).map(ToString::to_string).collect())
}

/// The names of tables.
fn names(file: &str) -> io::Result<String> {
    let mut names = String::new();
    File::open(format!("/proc/self/net/{file}"))?
        .take(NAMES_BYTES_MAX)
        .read_to_string(&mut names)?;
    Ok(names)
}

/// Reads again what was changed while it was read.
fn settled<T>(read: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let is_changing =
        |error: &io::Error| matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock);
    let mut outcome = read();
    for _ in 1..TRIES {
        match outcome {
            Err(error) if is_changing(&error) => outcome = read(),
            other => return other,
        }
    }
    outcome
}

fn opened(opened: Result<Netlink, NetlinkError>) -> io::Result<Netlink> {
    opened.map_err(|error| error.source)
}

/// EINVAL is the answer of netfilter's netlink to what it does not know.
fn is_lacking(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported)
        || error.raw_os_error() == Some(ERRNO_EPROTONOSUPPORT)
}

fn device_name(index: u32) -> String {
    netdev::name_of(index).unwrap_or_else(|_| format!("device {index}"))
}

/// What devices have where no program has changed that.
const USUAL: [&str; 5] = ["noqueue", "pfifo_fast", "mq", "fq_codel", "fq"];
/// Files with the names of tables, and whose they are.
const TABLES: [(&str, XtablesFamily); 2] =
    [("ip_tables_names", XtablesFamily::V4), ("ip6_tables_names", XtablesFamily::V6)];
/// All that the kernel can have.
const NAMES: &str = "filter nat mangle raw security";
const SHOWN_MOST: usize = 20;
const TRIES: usize = 4;
/// 10,000 rules and more.
const TABLE_BYTES_MAX: usize = 4 << 20;
const NAMES_BYTES_MAX: u64 = 4096;
const ERRNO_EPROTONOSUPPORT: i32 = 93;
