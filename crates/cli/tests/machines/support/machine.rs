//! A machine: a network and a time namespace with a way into them, and what this real one has.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::until;

/// Namespaces, for as long as this lives. Whatever ends the test, its end closes the pipe that the
/// process waits at that holds the namespaces.
#[derive(Debug)]
pub(crate) struct Machine {
    holder: Child,
    /// Whether it is in a user namespace, too, because an ordinary user runs the test.
    own_users: bool,
    /// Whether its clocks are not those of the real machine.
    own_clocks: bool,
}

impl Machine {
    /// The first one: where the others are plugged in. With `own_users` in a user namespace of its
    /// own, in which the user who runs the tests is root.
    pub(crate) fn first(own_users: bool) -> Machine {
        let mut command = Command::new("unshare");
        command.args(if own_users {
            &["--user", "--map-root-user", "--net"][..]
        } else {
            &["--net"]
        });
        Machine::hold(command, own_users, false)
    }

    /// Another one, of the same users. Its clocks CLOCK_MONOTONIC and CLOCK_BOOTTIME are so many
    /// seconds ahead of the real machine's, as if it had been started earlier
    /// (time_namespaces(7)).
    pub(crate) fn another(&self, ahead_s: u32) -> Machine {
        let mut command = self.command("unshare");
        let ahead_s = ahead_s.to_string();
        command.args(["--net", "--time", "--monotonic", &ahead_s, "--boottime", &ahead_s]);
        Machine::hold(command, self.own_users, true)
    }

    fn hold(mut command: Command, own_users: bool, own_clocks: bool) -> Machine {
        let holder =
            command.args(["--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let machine = Machine { holder: holder.unwrap(), own_users, own_clocks };
        let program = PathBuf::from(format!("/proc/{}/comm", machine.id()));
        until("the machine's namespace", || {
            (fs::read_to_string(&program).ok()?.trim() == "cat").then_some(())
        });
        machine
    }

    /// The process that holds it.
    pub(crate) fn id(&self) -> u32 {
        self.holder.id()
    }

    /// A command line in it, as its root.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.id().to_string(), "--net"]);
        if self.own_users {
            command.args(["--user", "--preserve-credentials"]);
        }
        if self.own_clocks {
            // The namespace of its children: before Linux 6.1 a process does not enter by `exec`
            // the one that it made.
            command.arg(format!("--time=/proc/{}/ns/time_for_children", self.id()));
        }
        command.args(["--", program]);
        command
    }

    /// Runs `ip` in it.
    #[track_caller]
    pub(crate) fn ip(&self, words: &str) {
        must(self.command("ip").args(words.split(' ')));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It has only to close its namespace.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Whether one of these programs is missing, which is said.
pub(crate) fn is_missing(programs: &[&str]) -> bool {
    let absent: Vec<&str> =
        programs.iter().copied().filter(|name| find_program(name).is_none()).collect();
    absent.iter().for_each(|name| missing(&format!("the program {name}")));
    !absent.is_empty()
}

/// Where a program is, in the places that every user can reach.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    PATH.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// Says what is missing; a failure where nothing may be.
pub(crate) fn missing(what: &str) {
    eprintln!("missing: {what}");
    assert!(std::env::var_os("WINDTUNNEL_REQUIRE_NAMESPACES").is_none(), "missing: {what}");
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Runs a command of the test itself to its end, which must be good.
#[track_caller]
pub(crate) fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

/// The programs' search path: what an ordinary user can reach.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
