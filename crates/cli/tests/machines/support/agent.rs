//! An agent, until it is ended or the test is.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use super::machine::must;
use super::until;

/// An agent's process.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    log: PathBuf,
}

impl Agent {
    /// Starts it; what it says goes to `log`.
    pub(crate) fn start(mut command: Command, log: &Path) -> Agent {
        let file = File::create(log).unwrap();
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Agent { child, log: log.to_owned() }
    }

    /// Its process: every program before it has become it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has said this.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        until(&format!("{text:?} in {}", self.log.display()), || {
            let log = fs::read_to_string(&self.log).unwrap();
            assert!(self.child.try_wait().unwrap().is_none(), "the agent has ended: {log}");
            log.contains(text).then_some(())
        });
    }

    /// Signals it: `INT`, `KILL`.
    pub(crate) fn signal(&self, name: &str) {
        must(Command::new("kill").args(["-s", name, &self.child.id().to_string()]));
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("the end of the agent", || self.child.try_wait().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Its parts end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("{}:\n{log}", self.log.display());
        }
    }
}
