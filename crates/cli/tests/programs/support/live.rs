//! A run that is under way.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;

use serde_json::Value;

use super::machine::must;
use super::{Lab, Outcome, until, until_within};

/// Ended with the test, whatever happens.
pub(crate) struct Live<'a> {
    lab: &'a Lab,
    child: Child,
    folder: PathBuf,
}

impl<'a> Live<'a> {
    pub(crate) fn start(lab: &'a Lab, mut command: Command, folder: PathBuf) -> Live<'a> {
        // Files hold any amount of output, unlike pipes without a reader.
        let stdout = File::create(beside(&folder, "stdout")).unwrap();
        let stderr = File::create(beside(&folder, "stderr")).unwrap();
        let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        Live { lab, child, folder }
    }

    /// Waits for a line of `events.jsonl` that has these fields.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, fields: &[(&str, &str)]) -> Value {
        until(&format!("event {fields:?}, saw {:?}", self.folder), || {
            let seen = events(&self.folder).into_iter().find(|event| has(event, fields));
            if seen.is_none() {
                self.assert_alive();
            }
            seen
        })
    }

    /// Waits until a node's program has written this.
    #[track_caller]
    pub(crate) fn wait_for_output(&mut self, node: &str, text: &str) {
        let path = self.folder.join("nodes").join(node).join("stdout");
        until(&format!("{text:?} in {}", path.display()), || {
            let seen = fs::read_to_string(&path).is_ok_and(|output| output.contains(text));
            if !seen {
                self.assert_alive();
            }
            seen.then_some(())
        });
    }

    /// The process of windtunnel, or of its launcher.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The run folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs another verb on this run.
    pub(crate) fn ask(&self, verb: &str, arguments: &[&str]) -> Output {
        self.command(verb, arguments).output().unwrap()
    }

    /// A command line with another verb on this run.
    pub(crate) fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let run = self.folder.to_str().unwrap();
        self.lab.windtunnel(&[&[verb, "--run", run], arguments].concat())
    }

    /// Runs `service` on this run.
    pub(crate) fn ask_service(&self, words: &[&str]) -> Output {
        let run = self.folder.to_str().unwrap();
        self.lab.windtunnel(&[&["service"], words, &["--run", run]].concat()).output().unwrap()
    }

    /// Runs a command in a node.
    pub(crate) fn exec(&self, node: &str, words: &[&str]) -> Output {
        self.ask("exec", &[&[node, "--"], words].concat())
    }

    /// Signals windtunnel itself: `INT`, `TERM`, `KILL`.
    pub(crate) fn signal(&self, name: &str) {
        must(Command::new("kill").args(["-s", name, &self.child.id().to_string()]));
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Outcome {
        let status =
            until_within(LONGEST_RUN, "the end of the run", || self.child.try_wait().unwrap());
        Outcome::new(status, &self.folder)
    }

    #[track_caller]
    fn assert_alive(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("the run has ended: {}", Outcome::new(status, &self.folder).describe());
        }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        // It has usually ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file beside the run folder: what windtunnel wrote to its own standard output or error.
pub(super) fn beside(folder: &Path, stream: &str) -> PathBuf {
    folder.with_extension(stream)
}

/// The lines of `events.jsonl`; the last may still be unfinished.
pub(super) fn events(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("events.jsonl")).unwrap_or_default();
    text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

/// Whether an event has these fields.
pub(super) fn has(event: &Value, fields: &[(&str, &str)]) -> bool {
    fields.iter().all(|(key, wanted)| match &event[key] {
        Value::String(text) => text == wanted,
        other => serde_json::to_string(other).is_ok_and(|text| text == *wanted),
    })
}

/// A run that lasts longer hangs.
const LONGEST_RUN: Duration = Duration::from_secs(120);
