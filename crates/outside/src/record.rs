//! Records of programs outside any emulation, on the machine's own network.
//!
//! What is recorded is that of a run, except for the layer of the engine: [`command`] starts a
//! program with the library that records calls, or under a filter where the library cannot see
//! them; [`process()`] looks at one that runs already. TCP's state is that of the sockets of these
//! processes, and the kernel layer that of these processes, where CAP_BPF is there. The folder has
//! `records`, as that of a run, and `record.json`.

mod place;
mod sources;
mod start;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;
use windtunnel_folder::{FolderError, RunOutputFolder};
use windtunnel_model::Bytes;
use windtunnel_model::plan::RecordLayerSet;
use windtunnel_model::record::kind::RecordSource;
use windtunnel_sys::clock;
use windtunnel_sys::process::{self, Pid, ProcessExitStatus};
use windtunnel_trace::report;

use crate::error::{CommandStartError, SystemStepError};
use crate::program::{gains_rights, program_of};
use crate::signals::CommandSignalReader;
use sources::{ProcessRecorder, ProcessRecordingTarget};

/// What is recorded, and where to.
#[derive(Debug, Clone)]
pub struct ProcessRecordingOptions {
    /// New or empty.
    pub folder: PathBuf,
    /// Whether `latest` beside the folder is to point to it.
    pub link_latest: bool,
    /// Empty: all that there are.
    pub layers: RecordLayerSet,
    /// Leave addresses and ports out.
    pub anonymous: bool,
    /// The most bytes of all files together.
    pub max: Bytes,
}

/// A recording that has ended.
#[derive(Debug, Serialize)]
pub struct ProcessRecordingSummary {
    /// What wrote it.
    pub program: String,
    /// The command that was recorded; empty for a process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The process that was recorded, or in which the command began.
    pub process: u32,
    /// Nanoseconds since 1970.
    pub began_unix_ns: u64,
    pub duration_ns: u64,
    /// The command's, as a shell shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub records: report::RecordingReport,
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessRecordingError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("the layer {} cannot be recorded: {why}", .layer.name())]
    Layer { layer: RecordSource, why: String },
    #[error("process {0} is not there")]
    NoProcess(u32),
    #[error(transparent)]
    Command(#[from] CommandStartError),
    #[error(transparent)]
    System(#[from] SystemStepError),
}

/// Runs a command to its end, and records it. Its standard streams, its group and its other
/// descriptors are the caller's; signals that a process sends to the caller are passed on.
///
/// The caller inherits the orphans of the command from now on. Where programs of it are left whose
/// calls need this process, it waits for their end as well, once `waits` has been called, or for a
/// signal.
///
/// # Errors
/// If it does not start, or a layer that is named cannot be recorded.
pub fn command(
    wanted: &ProcessRecordingOptions,
    arguments: &[OsString],
    waits: impl FnOnce(u64),
) -> Result<ProcessRecordingSummary, ProcessRecordingError> {
    let folder = RunOutputFolder::create_bare(&wanted.folder)?;
    let result = record_command(wanted, &folder, arguments, waits);
    if let Err(ProcessRecordingError::Command(_) | ProcessRecordingError::Layer { .. }) = &result {
        folder.discard();
    }
    result
}

fn record_command(
    wanted: &ProcessRecordingOptions,
    folder: &RunOutputFolder,
    arguments: &[OsString],
    waits: impl FnOnce(u64),
) -> Result<ProcessRecordingSummary, ProcessRecordingError> {
    // Before there are threads, which must not take them.
    let signals = CommandSignalReader::open_for_command()?;
    let program = program_of(arguments);
    let name = program.display().to_string();
    let mut sources =
        ProcessRecorder::start(wanted, folder, ProcessRecordingTarget::Command(&name))?;
    if sources.place().is_some() && gains_rights(program) {
        sources.note_unseen(format!("{name}: {GAINS_RIGHTS}"));
    }
    let began = RecordingStartTime::now();
    let pid = match start::start(arguments, &sources) {
        Ok(pid) => pid,
        Err(source) => {
            // Nothing was recorded of it.
            let _ = sources.finish();
            return Err(CommandStartError::new(program.to_owned(), source).into());
        }
    };
    link(wanted, folder)?;
    let status = signals.wait_for(pid);
    // That the last program of a filter has ended shows a moment later.
    signals.wait_for_rest(|| sources.living(), waits);
    let command = arguments.iter().map(|word| word.display().to_string()).collect();
    let recorded = began.end(pid, command, Some(status), sources.finish());
    recorded.write(folder)?;
    Ok(recorded)
}

/// Records a process that runs, and what it starts, until it ends or a signal comes: the kernel
/// layer and TCP's state.
///
/// # Errors
/// If there is no such process, or a layer that is named cannot be recorded: without names, the
/// kernel layer.
pub fn process(
    wanted: &ProcessRecordingOptions,
    number: u32,
) -> Result<ProcessRecordingSummary, ProcessRecordingError> {
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(ProcessRecordingError::NoProcess(number))?;
    let ended = process::open_pidfd(pid).map_err(|_| ProcessRecordingError::NoProcess(number))?;
    let folder = RunOutputFolder::create_bare(&wanted.folder)?;
    let signals = CommandSignalReader::open()?;
    let sources =
        match ProcessRecorder::start(wanted, &folder, ProcessRecordingTarget::Process(number)) {
            Ok(sources) => sources,
            Err(error) => {
                folder.discard();
                return Err(error);
            }
        };
    let began = RecordingStartTime::now();
    link(wanted, &folder)?;
    signals.wait_for_end_of(&ended);
    let recorded = began.end(pid, Vec::new(), None, sources.finish());
    recorded.write(&folder)?;
    Ok(recorded)
}

fn link(
    wanted: &ProcessRecordingOptions,
    folder: &RunOutputFolder,
) -> Result<(), ProcessRecordingError> {
    if wanted.link_latest {
        folder.link_latest()?;
    }
    Ok(())
}

/// The layers that are in `wanted`, or all; and why some cannot be recorded of any program outside
/// an emulation.
fn refused(target: ProcessRecordingTarget<'_>) -> BTreeMap<RecordSource, String> {
    let mut refused = BTreeMap::from([(RecordSource::Engine, WITHOUT_ENGINE.to_owned())]);
    if let ProcessRecordingTarget::Process(_) = target {
        refused.insert(RecordSource::Calls, WITHOUT_LIBRARY.to_owned());
    }
    refused
}

/// When a recording began.
struct RecordingStartTime {
    unix_ns: u64,
    monotonic_ns: u64,
}

impl RecordingStartTime {
    fn now() -> RecordingStartTime {
        RecordingStartTime { unix_ns: clock::realtime_ns(), monotonic_ns: clock::monotonic_ns() }
    }

    fn end(
        &self,
        pid: Pid,
        command: Vec<String>,
        status: Option<ProcessExitStatus>,
        records: report::RecordingReport,
    ) -> ProcessRecordingSummary {
        ProcessRecordingSummary {
            program: format!("windtunnel {}", env!("CARGO_PKG_VERSION")),
            command,
            process: pid.as_raw_nonzero().get().cast_unsigned(),
            began_unix_ns: self.unix_ns,
            duration_ns: clock::monotonic_ns().saturating_sub(self.monotonic_ns),
            exit_code: status.map(ProcessExitStatus::shell_code),
            records,
        }
    }
}

impl ProcessRecordingSummary {
    fn write(&self, folder: &RunOutputFolder) -> Result<(), ProcessRecordingError> {
        let path = folder.path().join("record.json");
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        let failed = |source| FolderError { verb: "write", path: path.clone(), source };
        Ok(std::fs::write(&path, text).map_err(failed)?)
    }
}

const WITHOUT_ENGINE: &str = "there is no emulated network";
const GAINS_RIGHTS: &str = "it gains rights by its file, so that no library can be loaded into it";
const WITHOUT_LIBRARY: &str = "a program loads the library that records them only when it starts";
