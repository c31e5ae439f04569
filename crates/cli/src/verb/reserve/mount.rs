//! `reserve mount`: what a live run has reserved, as files.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::signal::SignalReader;

use super::filesystem::ReservationFilesystem;
use super::fuse::{FuseRequest, MESSAGE_BYTES_MAX};
use super::watcher;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::live::LiveRunSelector;
use crate::output;

/// Show and change how a live run divides what it has, as files
///
/// Each reservation and node is a folder, in that of the reservation around it, with `cpu.min`,
/// `cpu.weight`, `cpu.share`, `cpu.limit`, `cpu.used`, the same of memory and pids, and what a node
/// sends. What is written changes the run at once; a value that does not fit fails with EBUSY, and the
/// file `refused` at the top says why. Until Ctrl-C, or the end of the run. Needs root or fusermount3.
#[derive(Debug, clap::Args)]
pub(super) struct ReserveMountArguments {
    /// The folder [default: `reserve` in that of the run]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    live: LiveRunSelector,
}

impl ReserveMountArguments {
    pub(super) fn run(&self) -> Outcome {
        // A run that is over has nothing to show.
        self.live.connect()?;
        let run = self.live.folder()?.to_owned();
        let folder = self.folder.clone().unwrap_or_else(|| run.join("reserve"));
        let signals = SignalReader::open(&[Signal::INT, Signal::TERM, Signal::HUP])
            .map_err(|error| cannot("take over signals", &error))?;
        let is_new = make(&folder).map_err(|error| cannot("make the folder", &error))?;
        // The mount of a process that is killed is not to stay.
        let watched = watcher::start(&folder, is_new);
        let session = watched.and_then(|()| start(&folder, run.clone()));
        let session = session.map_err(|error| {
            remove(&folder, is_new);
            let message = format!("cannot mount at {}: {error}", folder.display());
            VerbFailure::new(ExitCategory::Machine, message).hint(
                "it needs /dev/fuse, and root or fusermount3; `reserve tree --json` and `set` do the \
                 same",
            )
        })?;
        output::talk(&format!("{}: until Ctrl-C, or the end of the run", folder.display()));
        wait(&session, &signals, &LiveRunSelector::of(Some(run)));
        // At once, also where a shell is inside: its folder ends with this process, and no mount is left
        // that answers nothing. It may have been unmounted by another process.
        let _ = watcher::unmount(&folder);
        remove(&folder, is_new);
        Ok(ExitCategory::Fine.code())
    }
}

/// Mounts, and answers the kernel in a thread until it is unmounted.
fn start(folder: &Path, run: PathBuf) -> io::Result<JoinHandle<()>> {
    let user = process::current_user();
    let files = ReservationFilesystem::of(LiveRunSelector::of(Some(run)), (user.uid, user.gid));
    let device = match windtunnel_sys::mount::fuse("windtunnel", folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => mount_by_helper(folder)?,
        other => other?,
    };
    let device = File::from(device);
    thread::Builder::new().name("files".to_owned()).spawn(move || serve(&device, &files))
}

/// Mounts by `fusermount3`, which may do that for ordinary users: it returns the descriptor through its standard input.
fn mount_by_helper(folder: &Path) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("fusermount3");
    command.args(["-o", "fsname=windtunnel,default_permissions,nosuid,noexec", "--"]).arg(folder);
    command.env("_FUSE_COMMFD", "0").stdin(OwnedFd::from(theirs));
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    // What it keeps here is closed, so that this cannot wait for what it did not send.
    drop(command);
    let message = windtunnel_sys::unix::receive(&ours, &mut [0])?;
    message
        .descriptors
        .into_iter()
        .next()
        .ok_or_else(|| io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

fn serve(mut device: &File, files: &ReservationFilesystem) {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    loop {
        match device.read(&mut buffer) {
            Ok(length) => {
                let request = FuseRequest::parse(&buffer[..length]);
                if let Some(answer) = request.and_then(|request| files.answer(&request)) {
                    // ENOENT: who asked was interrupted.
                    let _ = device.write(&answer);
                }
            }
            // ENOENT: who asked was interrupted before this process had read it.
            Err(error) if may_go_on(error.kind()) => {}
            // It was unmounted.
            Err(_) => return,
        }
    }
}

fn may_go_on(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Until the run has ended, a signal has come or the folder was unmounted.
fn wait(session: &JoinHandle<()>, signals: &SignalReader, live: &LiveRunSelector) {
    loop {
        let came = poll::wait(&mut [PollFd::new(signals, PollFlags::IN)], Some(LOOK_EVERY));
        if matches!(came, Ok(1..)) || session.is_finished() || live.connect().is_err() {
            return;
        }
    }
}

/// Makes the folder, unless it is there. What a mount has left whose process was killed is taken away.
fn make(folder: &Path) -> io::Result<bool> {
    let is_dead = watcher::is_dead(folder);
    if is_dead {
        watcher::unmount(folder)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(is_dead),
        Err(error) => Err(error),
    }
}

fn remove(folder: &Path, is_new: bool) {
    if is_new {
        // What is not empty is not ours alone.
        let _ = fs::remove_dir(folder);
    }
}

fn cannot(what: &str, error: &io::Error) -> VerbFailure {
    VerbFailure::new(ExitCategory::Machine, format!("cannot {what}: {error}"))
}

const LOOK_EVERY: Duration = Duration::from_millis(300);
