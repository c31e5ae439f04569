//! A run in a process of its own: it leaves the machine's network for good, and the next one has to
//! start from there again.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::signal::SignalReader;
use windtunnel_trace::report::RunReport;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// The message from the child to its parent.
#[derive(Serialize, Deserialize)]
enum ChildResult {
    Report(Box<RunReport>),
    Failure { text: String, hint: Option<String>, code: u8 },
}

/// Has a child do a run, and returns its result. Signals that end a run are passed on to the
/// child, which ends with its parent. The calling process must have one thread only.
pub(super) fn run(
    run: impl FnOnce() -> Result<RunReport, VerbFailure>,
) -> Result<RunReport, VerbFailure> {
    let cannot = |error: io::Error| {
        VerbFailure::new(
            ExitCategory::Machine,
            format!("cannot run in a process of its own: {error}"),
        )
    };
    let answer = memfd_create("report", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let mut answer = File::from(answer.map_err(cannot)?);
    let signals = SignalReader::open(&PASSED_ON).map_err(cannot)?;
    match namespace::fork_into(NamespaceFlags::NONE).map_err(cannot)? {
        NamespaceFork::Child => {
            drop(signals);
            let code = in_child(run, &mut answer);
            process::exit_now(code);
        }
        NamespaceFork::Parent { pidfd, .. } => {
            let status = wait(&pidfd, &signals).map_err(cannot)?;
            drop(signals);
            result(&mut answer, status)
        }
    }
}

/// The child's side. Its group is its own: the terminal's Ctrl-C comes through the parent, once.
fn in_child(run: impl FnOnce() -> Result<RunReport, VerbFailure>, answer: &mut File) -> i32 {
    let alone = rustix::process::setpgid(None, None).map_err(io::Error::from);
    let alone = alone.and_then(|()| process::set_parent_death_signal(Some(Signal::TERM)));
    let result = match alone {
        Err(error) => ChildResult::Failure {
            text: error.to_string(),
            hint: None,
            code: ExitCategory::Machine.code(),
        },
        Ok(()) => match run() {
            Ok(report) => ChildResult::Report(Box::new(report)),
            Err(failure) => {
                let (text, code) = (failure.causes(), failure.code());
                let hint = if let VerbFailure::Error { hint, .. } = failure { hint } else { None };
                ChildResult::Failure { text, hint, code }
            }
        },
    };
    let written = serde_json::to_vec(&result).map_err(io::Error::from);
    i32::from(written.and_then(|text| answer.write_all(&text)).is_err())
}

/// Waits for the end of the child.
fn wait(child: &OwnedFd, signals: &SignalReader) -> io::Result<process::ProcessExitStatus> {
    loop {
        while let Some(received) = signals.read()? {
            let signal = PASSED_ON.into_iter().find(|one| one.as_raw() == received.signal);
            // The child may have just ended.
            let _ = signal.map(|signal| process::pidfd_send_signal(child, signal));
        }
        if let Some(status) = process::wait_pidfd(child, true)? {
            return Ok(status);
        }
        let mut wanted = [PollFd::new(child, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        match poll::wait(&mut wanted, None) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

/// Reads the message of the child.
fn result(answer: &mut File, status: process::ProcessExitStatus) -> Result<RunReport, VerbFailure> {
    let mut text = Vec::new();
    let read = answer.rewind().and_then(|()| answer.read_to_end(&mut text));
    let message = read.and_then(|_| serde_json::from_slice(&text).map_err(io::Error::from));
    match message {
        Ok(ChildResult::Report(report)) => Ok(*report),
        Ok(ChildResult::Failure { text, hint, code }) => {
            Err(VerbFailure::Error { error: text.into(), hint, code })
        }
        Err(_) => {
            let text = format!("the process of the run ended without a report: {status:?}");
            Err(VerbFailure::new(ExitCategory::Internal, text))
        }
    }
}

/// Signals that end a run.
const PASSED_ON: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];
