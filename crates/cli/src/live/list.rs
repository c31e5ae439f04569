//! Every live run of this user.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use windtunnel_control::{ControlClient, ControlRequest, ProgramStatus, RunStatus, registry};
use windtunnel_model::word::ProgramState;

/// A live run as it is seen from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LiveRunSummary {
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Name of the experiment; `None`: it does not answer, as when it is stopped.
    pub(crate) name: Option<String>,
    /// Time since it began.
    pub(crate) elapsed_ns: Option<u64>,
    /// How many nodes it has.
    pub(crate) nodes: usize,
    /// How many programs.
    pub(crate) programs: usize,
    /// How many of these run now.
    pub(crate) running: usize,
}

/// The folders of all live runs: those that have registered their place, and those in `runs` here.
pub(crate) fn folders() -> Vec<PathBuf> {
    let here = super::below(Path::new(super::RUNS))
        .into_iter()
        .filter_map(|path| path.canonicalize().ok());
    let known = registry::live().into_iter().map(|path| path.canonicalize().unwrap_or(path));
    let mut folders: Vec<PathBuf> = known.chain(here).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// The replies of all live runs, each awaited for a bounded time.
pub(crate) fn list() -> Vec<LiveRunSummary> {
    let asked: Vec<_> = folders().into_iter().map(|folder| (folder.clone(), ask(folder))).collect();
    asked.into_iter().filter_map(|(folder, answer)| answered(folder, &answer)).collect()
}

/// Asks in a thread of its own.
fn ask(folder: PathBuf) -> mpsc::Receiver<Option<RunStatus>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let status =
            ControlClient::connect(&folder).and_then(|mut run| run.ask(&ControlRequest::ps()));
        // The receiver may have given up waiting.
        let _ = sender.send(status.ok());
    });
    receiver
}

/// `None` for a run that has ended since it was found.
fn answered(folder: PathBuf, answer: &mpsc::Receiver<Option<RunStatus>>) -> Option<LiveRunSummary> {
    match answer.recv_timeout(PATIENCE) {
        Ok(Some(status)) => Some(LiveRunSummary::new(folder, status)),
        Ok(None) if !registry::is_live(&folder) => None,
        _ => Some(LiveRunSummary {
            folder,
            name: None,
            elapsed_ns: None,
            nodes: 0,
            programs: 0,
            running: 0,
        }),
    }
}

impl LiveRunSummary {
    fn new(folder: PathBuf, status: RunStatus) -> Self {
        let programs = || status.nodes.iter().flat_map(|node| &node.programs);
        LiveRunSummary {
            folder,
            elapsed_ns: Some(status.elapsed_ns),
            nodes: status.nodes.len(),
            programs: programs().count(),
            running: programs().filter(|program| is_running(program)).count(),
            name: Some(status.name),
        }
    }
}

fn is_running(program: &ProgramStatus) -> bool {
    use ProgramState::{Paused, Ready, Running};
    matches!(program.state.known(), Some(Running | Ready | Paused))
}

/// How long a run may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
