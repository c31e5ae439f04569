//! Subordinate identities: those that an administrator has given to an ordinary user for namespaces
//! of its own (subuid(5), subgid(5)). With them a program that is root of a node can become another
//! user, as `tcpdump` does.

use std::fs;
use std::io;
use std::process::Command;

use windtunnel_sys::namespace::{IdMap, IdRange};
use windtunnel_sys::process::{Pid, UserIdentity};

/// The invoker as itself, and its subordinate identities as themselves; `None` where it has none.
pub(crate) fn identities(invoker: UserIdentity) -> Option<IdMap> {
    let read = |path| fs::read_to_string(path).ok();
    let name = name_of(&read("/etc/passwd")?, invoker.uid);
    let range = |table: &str| first_range(table, invoker.uid, name.as_deref());
    let (users, groups) = (range(&read("/etc/subuid")?)?, range(&read("/etc/subgid")?)?);
    let with = |own, range: IdRange| vec![IdRange { inside: own, outside: own, count: 1 }, range];
    Some(IdMap { users: with(invoker.uid, users), groups: with(invoker.gid, groups) })
}

/// Writes the maps of a process, from outside, with the programs that may: newuidmap(1),
/// newgidmap(1).
pub(super) fn write(process: Pid, maps: &IdMap) -> io::Result<()> {
    run("newgidmap", process, &maps.groups)?;
    run("newuidmap", process, &maps.users)
}

fn run(program: &str, process: Pid, ranges: &[IdRange]) -> io::Result<()> {
    let numbers = ranges.iter().flat_map(|range| [range.inside, range.outside, range.count]);
    let mut command = Command::new(program);
    command.arg(process.as_raw_nonzero().to_string());
    command.args(numbers.map(|number| number.to_string()));
    // What it says would be about a fallback that the user need not know of.
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::from(io::ErrorKind::PermissionDenied))
}

/// `name:password:uid:…`.
fn name_of(accounts: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let own = |line: &&str| line.split(':').nth(2) == Some(uid.as_str());
    accounts.lines().find(own)?.split(':').next().map(str::to_owned)
}

/// `name or uid:first:count`.
fn first_range(table: &str, uid: u32, name: Option<&str>) -> Option<IdRange> {
    let uid = uid.to_string();
    table.lines().find_map(|line| {
        let mut words = line.trim().split(':');
        let owner = words.next()?;
        if owner != uid && Some(owner) != name {
            return None;
        }
        let (first, count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let range = IdRange { inside: first, outside: first, count };
        (count > 0 && first.checked_add(count).is_some()).then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_found_by_name_or_by_number() {
        let table = "root:1:2\nann:100000:65536\n1001:165536:65536\nbob:0:0\n";
        let range = |first, count| Some(IdRange { inside: first, outside: first, count });
        assert_eq!(first_range(table, 1000, Some("ann")), range(100_000, 65_536));
        assert_eq!(first_range(table, 1001, Some("eve")), range(165_536, 65_536));
        assert_eq!(first_range(table, 1002, Some("bob")), None);
        assert_eq!(first_range("ann:x:y\nann", 1000, Some("ann")), None);
    }

    #[test]
    fn an_account_has_a_name() {
        let accounts = "root:x:0:0::/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\n";
        assert_eq!(name_of(accounts, 1000).as_deref(), Some("ann"));
        assert_eq!(name_of(accounts, 7), None);
    }
}
