//! A run in a process of its own: it leaves the machine's network for good, and the next one has to
//! start from there again.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use windtunnel_sys::namespace::{self, Flags, Fork};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::signal::Reader;
use windtunnel_trace::report::Report;

use crate::exit::Exit;
use crate::failure::Failure;

/// The message from the child to its parent.
#[derive(Serialize, Deserialize)]
enum ChildResult {
    Report(Box<Report>),
    Failure { text: String, hint: Option<String>, code: u8 },
}

/// Has a child do a run, and returns its result. Signals that end a run are passed on to the
/// child, which ends with its parent. The calling process must have one thread only.
pub(super) fn run(run: impl FnOnce() -> Result<Report, Failure>) -> Result<Report, Failure> {
    let cannot = |error: io::Error| {
        Failure::new(Exit::Machine, format!("cannot run in a process of its own: {error}"))
    };
    let answer = memfd_create("report", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let mut answer = File::from(answer.map_err(cannot)?);
    let signals = Reader::open(&PASSED_ON).map_err(cannot)?;
    match namespace::fork_into(Flags::NONE).map_err(cannot)? {
        Fork::Child => {
            drop(signals);
            let code = in_child(run, &mut answer);
            process::exit_now(code);
        }
        Fork::Parent { pidfd, .. } => {
            let status = wait(&pidfd, &signals).map_err(cannot)?;
            drop(signals);
            result(&mut answer, status)
        }
    }
}

/// The child's side. Its group is its own: the terminal's Ctrl-C comes through the parent, once.
fn in_child(run: impl FnOnce() -> Result<Report, Failure>, answer: &mut File) -> i32 {
    let alone = rustix::process::setpgid(None, None).map_err(io::Error::from);
    let alone = alone.and_then(|()| process::set_parent_death_signal(Some(Signal::TERM)));
    let result = match alone {
        Err(error) => {
            ChildResult::Failure { text: error.to_string(), hint: None, code: Exit::Machine.code() }
        }
        Ok(()) => match run() {
            Ok(report) => ChildResult::Report(Box::new(report)),
            Err(failure) => {
                let (text, code) = (failure.causes(), failure.code());
                let hint = if let Failure::Error { hint, .. } = failure { hint } else { None };
                ChildResult::Failure { text, hint, code }
            }
        },
    };
    let written = serde_json::to_vec(&result).map_err(io::Error::from);
    i32::from(written.and_then(|text| answer.write_all(&text)).is_err())
}

/// Waits for the end of the child.
fn wait(child: &OwnedFd, signals: &Reader) -> io::Result<process::Status> {
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
fn result(answer: &mut File, status: process::Status) -> Result<Report, Failure> {
    let mut text = Vec::new();
    let read = answer.rewind().and_then(|()| answer.read_to_end(&mut text));
    let message = read.and_then(|_| serde_json::from_slice(&text).map_err(io::Error::from));
    match message {
        Ok(ChildResult::Report(report)) => Ok(*report),
        Ok(ChildResult::Failure { text, hint, code }) => {
            Err(Failure::Error { error: text.into(), hint, code })
        }
        Err(_) => {
            let text = format!("the process of the run ended without a report: {status:?}");
            Err(Failure::new(Exit::Internal, text))
        }
    }
}

/// Signals that end a run.
const PASSED_ON: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];
