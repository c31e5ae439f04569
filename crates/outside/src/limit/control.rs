//! How a limit is changed and looked at while its command runs: a socket beside the limit's file, by
//! which the process that started the command answers. One of a group has several.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windtunnel_model::ResourceAmounts;
use windtunnel_sys::poll::{self, EventFd, PollFd, PollFlags};
use windtunnel_sys::unix;

use super::holding::CommandLimitEnforcer;
use super::resources::CommandResourceUsage;

/// What is asked: nothing new, to look at it only.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitChangeRequest {
    pub(super) resources: ResourceAmounts,
    /// Whether rates are to change, which the asking process does itself.
    pub(super) rates: bool,
}

/// The thread that answers. Dropping it ends it.
#[derive(Debug)]
pub(super) struct LimitControlThread {
    path: PathBuf,
    holding: Arc<Mutex<CommandLimitEnforcer>>,
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct LimitControlServer {
    listener: UnixListener,
    holding: Arc<Mutex<CommandLimitEnforcer>>,
    stop: Arc<EventFd>,
    /// Whether programs are under rates.
    moves: bool,
}

impl LimitControlThread {
    /// Answers at a path, for a limit with rates or without.
    pub(super) fn start(
        path: PathBuf,
        holding: CommandLimitEnforcer,
        moves: bool,
    ) -> io::Result<LimitControlThread> {
        // A process of the same number may have left it.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::from(unix::listen(&path, 0o600)?);
        let (stop, holding) = (Arc::new(EventFd::open()?), Arc::new(Mutex::new(holding)));
        let (again, halt) = (Arc::clone(&holding), Arc::clone(&stop));
        let server = LimitControlServer { listener, holding: again, stop: halt, moves };
        let thread = std::thread::Builder::new().name("control".to_owned());
        let thread = Some(thread.spawn(move || server.run())?);
        Ok(LimitControlThread { path, holding, stop, thread })
    }

    pub(super) fn holding(&self) -> MutexGuard<'_, CommandLimitEnforcer> {
        lock(&self.holding)
    }

    /// Ends the thread, and returns what it has answered for.
    pub(super) fn finish(mut self) -> Option<CommandLimitEnforcer> {
        self.end();
        let holding = Arc::clone(&self.holding);
        drop(self);
        let holding = Arc::into_inner(holding)?;
        Some(holding.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) {
        // The counter of an event cannot overflow by one.
        let _ = self.stop.raise();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for LimitControlThread {
    fn drop(&mut self) {
        self.end();
    }
}

impl LimitControlServer {
    fn run(self) {
        loop {
            let both = [self.stop.as_fd(), self.listener.as_fd()];
            let mut wanted = both.map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN));
            // Interrupted: it looks earlier.
            let _ = poll::wait(&mut wanted, Some(LOOK_EVERY));
            let [stop, asked] = wanted.map(|it| !it.revents().is_empty());
            if stop {
                return;
            }
            if asked && let Ok((stream, _)) = self.listener.accept() {
                // A process that does not ask, or does not read, gets no answer.
                let _ = self.answer(&stream);
            }
            lock(&self.holding).look();
        }
    }

    fn answer(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
        let reply = match serde_json::from_str(&line) {
            Ok(request) => self.reply(&request),
            Err(error) => Err(format!("malformed request: {error}")),
        };
        write_line(stream, &reply)
    }

    fn reply(&self, request: &LimitChangeRequest) -> Result<CommandResourceUsage, String> {
        if request.rates && !self.moves {
            return Err(WITHOUT_RATES.to_owned());
        }
        let mut holding = lock(&self.holding);
        holding.set(&request.resources).map(|()| holding.used())
    }
}

/// Asks the processes of a limit, all that there are. The first that refuses is the answer.
///
/// # Errors
/// Why one refuses.
pub(super) fn ask(
    folder: &Path,
    id: &str,
    request: &LimitChangeRequest,
) -> Result<Option<CommandResourceUsage>, String> {
    let mut used = None;
    for path in sockets(folder, id) {
        match ask_one(&path, request) {
            Ok(seen) => used = used.or(Some(seen?)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // A process that was killed has left it.
                let _ = fs::remove_file(&path);
            }
            Err(error) => return Err(format!("{} does not answer: {error}", path.display())),
        }
    }
    Ok(used)
}

/// Where a process answers for a limit.
pub(super) fn socket(folder: &Path, id: &str, process: u32) -> PathBuf {
    folder.join(format!("{id}{SOCKET}{process}"))
}

/// Removes the sockets of a limit that no process has.
pub(super) fn remove_all(folder: &Path, id: &str) {
    for path in sockets(folder, id) {
        // Another process may have removed it meanwhile.
        let _ = fs::remove_file(path);
    }
}

fn sockets(folder: &Path, id: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let prefix = format!("{id}{SOCKET}");
    names.filter(|name| name.starts_with(&prefix)).map(|name| folder.join(name)).collect()
}

fn ask_one(
    path: &Path,
    request: &LimitChangeRequest,
) -> io::Result<Result<CommandResourceUsage, String>> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write_line(&stream, request)?;
    let mut line = String::new();
    BufReader::new(stream.take(REPLY_BYTES_MAX)).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::other)
}

fn write_line(mut stream: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn lock(holding: &Mutex<CommandLimitEnforcer>) -> MutexGuard<'_, CommandLimitEnforcer> {
    // Each change is complete in itself.
    holding.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Not in the name of a group.
const SOCKET: &str = ".control.";
const WITHOUT_RATES: &str =
    "it was started without --send and --receive, which cannot be added while it runs";
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(2);
const REQUEST_BYTES_MAX: u64 = 4_096;
const REPLY_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use windtunnel_model::Resource;

    use super::*;

    fn control(folder: &Path, moves: bool) -> LimitControlThread {
        let wanted = ResourceAmounts::only(Resource::OpenFiles, 9);
        let holding = CommandLimitEnforcer::prepare(&wanted, None).unwrap();
        LimitControlThread::start(socket(folder, "downloads", 7), holding, moves).unwrap()
    }

    #[test]
    fn what_is_not_limited_cannot_be_changed_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let control = control(folder.path(), false);
        let ask = |request: &LimitChangeRequest| ask(folder.path(), "downloads", request);
        let seen = ask(&LimitChangeRequest::default()).unwrap().unwrap();
        assert_eq!(seen.open_files.unwrap().asked, 9);
        let rates = LimitChangeRequest { rates: true, ..LimitChangeRequest::default() };
        assert_eq!(ask(&rates).unwrap_err(), WITHOUT_RATES);
        let resources = ResourceAmounts::only(Resource::Memory, 1);
        let refused = ask(&LimitChangeRequest { resources, rates: false }).unwrap_err();
        assert!(refused.contains("started without --memory"), "{refused}");
        assert!(control.finish().is_some());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_socket_that_a_killed_process_has_left_is_removed_and_a_bad_request_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let left = socket(folder.path(), "downloads", 6);
        drop(UnixListener::bind(&left).unwrap());
        let control = control(folder.path(), true);
        let rates = LimitChangeRequest { rates: true, ..LimitChangeRequest::default() };
        assert!(ask(folder.path(), "downloads", &rates).unwrap().is_some());
        assert!(!left.exists());
        let mut stream = UnixStream::connect(socket(folder.path(), "downloads", 7)).unwrap();
        stream.write_all(b"{\"share\": 1}\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("{\"Err\":\"malformed request: unknown field"), "{answer}");
        drop(control);
    }
}
