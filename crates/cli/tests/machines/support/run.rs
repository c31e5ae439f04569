//! A run over machines, under way or over.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;

use super::machine::must;
use super::{until, until_within};

/// A command line that leads or follows a run. Ended with the test, whatever happens.
pub(crate) struct Run {
    child: Child,
    folder: PathBuf,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code, 128+n for a signal n.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The run folder.
    pub(crate) folder: PathBuf,
}

impl Run {
    pub(crate) fn start(mut command: Command, folder: PathBuf) -> Run {
        // Files hold any amount of output, read or not.
        let stdout = File::create(folder.with_extension("stdout")).unwrap();
        let stderr = File::create(folder.with_extension("stderr")).unwrap();
        let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        Run { child, folder }
    }

    /// The command line's process: every program before it has become it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the command line has printed this, on either stream.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        until(&format!("{text:?} of {}", self.folder.display()), || {
            let output = self.output();
            let seen = output.contains(text);
            assert!(
                seen || self.child.try_wait().unwrap().is_none(),
                "the run has ended: {output}"
            );
            seen.then_some(())
        });
    }

    /// Waits until this has been printed three times more than until now.
    #[track_caller]
    pub(crate) fn wait_for_more(&mut self, text: &str) {
        let count = |run: &Run| run.output().matches(text).count();
        let before = count(self);
        until(&format!("more of {text:?}"), || {
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "the run has ended: {}",
                self.output()
            );
            (count(self) >= before + 3).then_some(())
        });
    }

    /// The run folder, as a command line's word.
    pub(crate) fn name(&self) -> &str {
        self.folder.to_str().unwrap()
    }

    /// Signals the command line: `INT`, `KILL`.
    pub(crate) fn signal(&self, name: &str) {
        must(Command::new("kill").args(["-s", name, &self.child.id().to_string()]));
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn finish(self) -> Outcome {
        self.finish_within(LONGEST_RUN)
    }

    /// Waits for an end that must come so soon.
    #[track_caller]
    pub(crate) fn finish_within(mut self, patience: Duration) -> Outcome {
        let what = format!("the end of the run, {}", self.output());
        let status = until_within(patience, &what, || self.child.try_wait().unwrap());
        Outcome {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            stdout: read(&self.folder.with_extension("stdout")),
            stderr: read(&self.folder.with_extension("stderr")),
            folder: self.folder.clone(),
        }
    }

    /// What the command line has printed until now.
    pub(crate) fn output(&self) -> String {
        let streams = ["stderr", "stdout"].map(|stream| read(&self.folder.with_extension(stream)));
        streams.concat()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It has usually ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Outcome {
    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        let Outcome { stdout, stderr, .. } = self;
        assert_eq!(self.code, code, "exit code {}\nstdout: {stdout}\nstderr: {stderr}", self.code);
    }

    /// The run passed. It was faithful as well, unless this machine was too busy for it, which is
    /// printed: such a run of a test that takes part in it cannot be repeated.
    #[track_caller]
    pub(crate) fn assert_passed(&self) {
        let verdict = &self.report()["verdict"];
        if verdict["disturbed"] == true && verdict["passed"] == true {
            eprintln!("this machine was too busy: {}", verdict["unfaithful"]);
            return;
        }
        self.assert_code(0);
    }

    /// A file of the run folder; empty if there is none.
    pub(crate) fn file(&self, name: &str) -> String {
        read(&self.folder.join(name))
    }

    /// What a node's only program wrote to its standard output.
    pub(crate) fn output(&self, node: &str) -> String {
        self.file(&format!("nodes/{node}/stdout"))
    }

    /// The code that a node's only program exited with.
    pub(crate) fn exit(&self, node: &str) -> String {
        self.file(&format!("nodes/{node}/exit")).trim().to_owned()
    }

    /// `run.json`.
    #[track_caller]
    pub(crate) fn report(&self) -> Value {
        serde_json::from_str(&self.file("run.json")).unwrap()
    }

    /// Every event of a kind, in order.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let text = self.file("events.jsonl");
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["event"] == kind).collect()
    }
}

/// A file's text; what is no UTF-8 is replaced.
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// A run that lasts longer hangs.
pub(super) const LONGEST_RUN: Duration = Duration::from_secs(60);
