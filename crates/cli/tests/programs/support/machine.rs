//! Capabilities of this machine, and the users that tests run as.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::Lab;

/// The user that runs windtunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// The user that runs the tests.
    Invoker,
    /// An ordinary user without any privileges; only where root runs the tests.
    Ordinary,
}

impl User {
    /// The user's number.
    pub(crate) fn number(self) -> u32 {
        match self {
            User::Invoker => fs::metadata("/proc/self").unwrap().uid(),
            User::Ordinary => NOBODY,
        }
    }

    /// The beginning of a command line that runs the rest as this user.
    pub(crate) fn prefix(self) -> &'static [&'static str] {
        match self {
            User::Invoker => &[],
            User::Ordinary => {
                &["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]
            }
        }
    }
}

/// The users that a test of what depends on rights runs as: as root, root and an ordinary user; else
/// the current one.
pub(crate) fn users() -> Vec<User> {
    let mut users = vec![User::Invoker];
    if is_root() {
        users.push(User::Ordinary);
    }
    users.retain(|user| can_run(*user));
    users
}

/// The users of a test whose outcome does not depend on rights: the one with the fewest; both users
/// with `WINDTUNNEL_TEST_USERS=all`; none if namespaces are denied.
pub(crate) fn any_user() -> Vec<User> {
    let mut users = users();
    if std::env::var_os("WINDTUNNEL_TEST_USERS").is_none_or(|which| which != "all") {
        users = users.pop().into_iter().collect();
    }
    users
}

/// The ordinary user, or none if namespaces are denied.
pub(crate) fn unprivileged() -> Option<User> {
    users().last().copied()
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Prints the missing requirement; a failure where none may be missing.
pub(crate) fn missing(what: &str) {
    eprintln!("missing: {what}");
    assert!(std::env::var_os("WINDTUNNEL_REQUIRE_NAMESPACES").is_none(), "missing: {what}");
}

/// Whether one of these programs is missing, which is said.
pub(crate) fn is_missing(programs: &[&str]) -> bool {
    let absent: Vec<&str> =
        programs.iter().copied().filter(|name| find_program(name).is_none()).collect();
    for name in &absent {
        missing(&format!("the program {name}"));
    }
    !absent.is_empty()
}

/// Where a program is, in the places that every user can reach.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    PATH.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// Process ids, as seen from here, of the processes with `marker` in their environment
/// or arguments.
pub(crate) fn processes_with(marker: &str) -> Vec<u32> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").expect("Linux has /proc").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| *id != own).filter(|id| is_alive(*id) && mentions(*id, marker)).collect()
}

/// Nanoseconds of a processor that the main thread of a process has taken (proc_pid_schedstat(5));
/// `None` once it is gone.
pub(crate) fn cpu_time_of(process: u32) -> Option<u64> {
    let path = format!("/proc/{process}/task/{process}/schedstat");
    let spent: u64 = fs::read_to_string(path).ok()?.split(' ').next()?.parse().ok()?;
    is_alive(process).then_some(spent)
}

/// The ordinary user's and its group's number.
pub(super) const NOBODY: u32 = 65534;

/// The programs' search path: what an ordinary user can reach.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn is_alive(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

fn mentions(id: u32, marker: &str) -> bool {
    let holds = |file: &str| {
        let bytes = fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
        bytes.windows(marker.len()).any(|part| part == marker.as_bytes())
    };
    holds("environ") || holds("cmdline")
}

/// Asks windtunnel's own doctor, once for each user.
fn can_run(user: User) -> bool {
    static ANSWERS: [OnceLock<bool>; 2] = [OnceLock::new(), OnceLock::new()];
    let answer = match user {
        User::Invoker => &ANSWERS[0],
        User::Ordinary => &ANSWERS[1],
    };
    let can = *answer.get_or_init(|| {
        let has_setpriv = user == User::Invoker || find_program("setpriv").is_some();
        has_setpriv && Lab::new(user).windtunnel(&["doctor"]).output().unwrap().status.success()
    });
    if !can {
        missing(&format!("what windtunnel needs as {user:?} (see `windtunnel doctor`)"));
    }
    can
}

/// Runs a command of the test itself to its end, which must be good.
pub(super) fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}
