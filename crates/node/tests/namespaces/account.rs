//! Ordinary users: root runs the cases again as each of them.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use windtunnel_sys::mount::{self, BindMountAccess, Propagation};
use windtunnel_sys::namespace::{self, NamespaceFlags};
use windtunnel_sys::process::{self, ProcessExitStatus, SpawnPlan, SpawnSession, UserIdentity};

use crate::in_a_process;
use crate::support::Folder;

/// A user without any rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Account {
    /// A number that no account has.
    Plain,
    /// An account to which an administrator has given subordinate identities (subuid(5)).
    Subordinate,
}

impl Account {
    pub(crate) const ALL: [Account; 2] = [Account::Plain, Account::Subordinate];

    /// The account that this test runs as, if root has started it as another account.
    pub(crate) fn of_test() -> Option<Account> {
        let name = std::env::var(VARIABLE).ok()?;
        Account::ALL.into_iter().find(|account| account.name() == name)
    }

    /// Runs this test again, as this account, from a place that all may read.
    pub(crate) fn passes(self, filters: &[String]) -> bool {
        let Some(filters) = self.filters(filters) else { return true };
        let folder = Folder::new(self.name());
        let binary = folder.path().join("namespaces");
        fs::copy("/proc/self/exe", &binary).expect("the test can be copied");
        // In a process of its own, whose accounts are not the machine's.
        let ended = in_a_process(|| {
            if self == Account::Subordinate {
                give_identities(&folder);
            }
            let status = self.run(&binary, &filters);
            process::exit_now(i32::from(status != Some(ProcessExitStatus::Exited(0))));
        });
        ended == ProcessExitStatus::Exited(0)
    }

    /// Which cases it runs; `None`: none of the chosen ones.
    fn filters(self, chosen: &[String]) -> Option<Vec<String>> {
        match self {
            Account::Plain => Some(chosen.to_vec()),
            Account::Subordinate => {
                let is_chosen =
                    chosen.is_empty() || chosen.iter().any(|word| OTHERS.contains(word));
                is_chosen.then(|| vec![OTHERS.to_owned()])
            }
        }
    }

    fn run(self, binary: &Path, filters: &[String]) -> Option<ProcessExitStatus> {
        let text = |text: &str| CString::new(text).expect("no zero");
        let program = binary.to_str().expect("temporary paths are text");
        let words = [program].into_iter().chain(filters.iter().map(String::as_str));
        let arguments: Vec<CString> = words.map(text).collect();
        let own = (VARIABLE.to_owned(), self.name().to_owned());
        let environment: Vec<CString> = std::env::vars()
            .chain([own])
            .map(|(name, value)| text(&format!("{name}={value}")))
            .collect();
        let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
        let stdio = [input.as_fd(), output.as_fd(), error.as_fd()];
        let root = text("/");
        let mut plan = SpawnPlan::new(&arguments, &environment, stdio);
        plan.user = Some(UserIdentity { uid: ORDINARY, gid: ORDINARY });
        plan.session = SpawnSession::Inherited;
        plan.folder = Some(&root);
        let pid = process::spawn(&plan).expect("the test starts as an ordinary user");
        process::wait_pid(pid, false).expect("the child is ours")
    }

    fn name(self) -> &'static str {
        match self {
            Account::Plain => "plain-account",
            Account::Subordinate => "subordinate-account",
        }
    }
}

/// Makes an account with subordinate identities, which this process and its children see and no
/// else: newuidmap(1) wants an account, with a primary group, in /etc/passwd.
fn give_identities(folder: &Folder) {
    namespace::unshare(NamespaceFlags::MOUNT).expect("root may");
    mount::set_propagation("/", Propagation::Private).expect("the mounts are ours");
    let accounts = fs::read_to_string("/etc/passwd").expect("all users may read it");
    let account = format!("{accounts}wt-test:x:{ORDINARY}:{ORDINARY}::/:/bin/sh\n");
    let identities = format!("{ORDINARY}:{SUBORDINATE}:65536\n");
    for (name, text) in [("passwd", &account), ("subuid", &identities), ("subgid", &identities)] {
        let file = folder.path().join(name);
        fs::write(&file, text).expect("the folder is ours");
        mount::bind(&file, Path::new("/etc").join(name), BindMountAccess::Same)
            .unwrap_or_else(|error| panic!("/etc/{name}: {error}"));
    }
}

/// The case that asks for subordinate identities.
pub(crate) const OTHERS: &str =
    "a root program becomes another user where the machine has subordinate identities";
const VARIABLE: &str = "WINDTUNNEL_TEST_ACCOUNT";
const ORDINARY: u32 = 54_321;
/// The first of them.
const SUBORDINATE: u32 = 1_000_000_000;
