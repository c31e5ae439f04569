//! The node's programs: starting, signalling, reaping.

use std::collections::BTreeMap;
use std::ffi::{CString, NulError, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use windtunnel_limit::{ProcessLimiter, ProcessScope};
use windtunnel_model::ResourceAmounts;
use windtunnel_sys::clock;
use windtunnel_sys::poll::EventFd;
use windtunnel_sys::process::{
    self, Pid, ProcessExitStatus, Signal, SpawnError, SpawnPlan, SpawnSession, SpawnStep,
    UserIdentity,
};

use super::observe::ProgramSupervision;
use super::own::DefaultProgramEnvironment;
use super::program_limits::ProgramLimitTable;
use super::record::ProgramRecordingFiles;
use super::resumption::ResumptionMonitor;
use super::setup::InitSetup;
use super::{receive, record};
use crate::hint;
use crate::message::{ExitStatus, NodeInitReply, ProgramSpawnRequest};

/// The programs that run.
pub(super) struct NodeProgramTable {
    node: String,
    /// Where they are, unless in that of the init.
    user_namespace: Option<OwnedFd>,
    /// Whether they are root, whose programs are in folders of their own.
    are_root: bool,
    /// What they have of the node's own file system, if it has one.
    own: Option<DefaultProgramEnvironment>,
    /// The user that they become.
    account: Option<UserIdentity>,
    /// Their supplementary groups, unless as they are.
    groups: Option<Vec<u32>>,
    /// By what they leave records, and declare what they send.
    left: Option<ProgramRecordingFiles>,
    /// The nice value of programs. The init has a lower one, so that what limits them comes first.
    nice: i32,
    /// By process number.
    running: BTreeMap<i32, (u64, Pid)>,
    supervision: Option<ProgramSupervision>,
    limiter: ProcessLimiter,
    resumption: ResumptionMonitor,
    limits: ProgramLimitTable,
}

impl NodeProgramTable {
    pub(super) fn new(
        setup: &InitSetup<'_>,
        user_namespace: Option<OwnedFd>,
        left: Option<ProgramRecordingFiles>,
    ) -> Self {
        let node = setup.node();
        let own = setup
            .own
            .zip(node.root.as_ref())
            .map(|(own, root)| DefaultProgramEnvironment::new(own, root, node));
        NodeProgramTable {
            node: node.name.clone(),
            user_namespace,
            are_root: node.programs_are_root(),
            own,
            account: setup.account,
            groups: setup.own.and_then(|own| own.groups.clone()),
            left,
            nice: setup.nice,
            running: BTreeMap::new(),
            supervision: None,
            limiter: ProcessLimiter::new(ProcessScope::Namespace),
            resumption: ResumptionMonitor::default(),
            limits: ProgramLimitTable::default(),
        }
    }

    /// Has programs that start from now on supervised, where the preload library cannot see their
    /// calls. What came with the request is the supervisor's socket.
    pub(super) fn supervise(
        &mut self,
        mut descriptors: Vec<OwnedFd>,
        library: Option<String>,
    ) -> Option<NodeInitReply> {
        let socket = descriptors.pop()?;
        match ProgramSupervision::begin(socket, library) {
            Ok(supervision) => self.supervision = Some(supervision),
            Err(error) => {
                return Some(NodeInitReply::SuperviseFailed { message: error.to_string() });
            }
        }
        None
    }

    /// Limits what all programs use together. What goes wrong is reported.
    pub(super) fn limit(&mut self, asked: &ResourceAmounts) -> Option<NodeInitReply> {
        if asked.cpu_millis.is_some() {
            self.resumption.end();
        }
        self.limiter.set(asked).err().map(NodeInitReply::Limited)
    }

    /// Has packets that enter the node delivered within its limits.
    pub(super) fn receive(&mut self, descriptors: Vec<OwnedFd>) -> Option<NodeInitReply> {
        match receive::begin(descriptors, self.nice) {
            Ok(worker) => self.limiter.include(worker),
            Err(error) => return Some(NodeInitReply::ReceiveFailed { message: error.to_string() }),
        }
        None
    }

    /// What holds them together to limits.
    pub(super) fn limiter(&self) -> &ProcessLimiter {
        &self.limiter
    }

    /// What each process has for itself.
    pub(super) fn limits(&mut self) -> &mut ProgramLimitTable {
        &mut self.limits
    }

    /// What becomes readable when there is something to report of limits.
    pub(super) fn news(&self) -> impl Iterator<Item = &EventFd> {
        self.limiter.news()
    }

    /// Starts a program in a session of its own.
    pub(super) fn spawn(
        &mut self,
        spawn: &ProgramSpawnRequest,
        stdio: &[OwnedFd],
    ) -> NodeInitReply {
        let failed = |message: String, errno| NodeInitReply::SpawnFailed {
            id: spawn.id,
            message,
            errno,
            by_program: false,
        };
        let [input, output, error] = stdio else {
            return failed("cannot start a program without its three descriptors".into(), 0);
        };
        let Ok((arguments, mut environment, folder)) = self.strings(spawn) else {
            let message = "cannot pass a zero byte in an argument, a variable or a folder's name";
            return failed(message.into(), hint::ERRNO_EINVAL);
        };
        let working = self.folder_of(spawn).map(Path::new);
        let supervisor = self.supervision.as_ref();
        let supervisor = supervisor
            .and_then(|supervision| supervision.of_program(&arguments, &mut environment, working));
        let stdio = [input.as_fd(), output.as_fd(), error.as_fd()];
        let mut plan = SpawnPlan::new(&arguments, &environment, stdio);
        plan.folder = folder.as_deref();
        plan.supervisor = supervisor;
        plan.nice = Some(self.nice);
        plan.user = self.account;
        plan.supplementary = self.groups.as_deref();
        let (limits, groups) = self.limits.of(spawn.program);
        (plan.limits, plan.groups) = (limits, &groups);
        plan.user_namespace = self.user_namespace.as_ref().map(OwnedFd::as_fd);
        // In the init's session: the scheduler would weigh a session of its own like the packet
        // loop's (autogroups, sched(7)).
        plan.session =
            if spawn.terminal { SpawnSession::NewWithTerminal } else { SpawnSession::NewGroup };
        match process::spawn(&plan) {
            Ok(pid) => {
                let at_ns = clock::monotonic_ns();
                let number = pid.as_raw_nonzero().get();
                self.running.insert(number, (spawn.id, pid));
                if self.limiter.is_stopped() {
                    // With the others, until these go on. It may have ended already.
                    let _ = process::kill_group(pid, Signal::STOP);
                }
                NodeInitReply::Spawned { id: spawn.id, pid: number.cast_unsigned(), at_ns }
            }
            Err(error) => NodeInitReply::SpawnFailed {
                id: spawn.id,
                message: what_failed(&error, spawn, self.folder_of(spawn)),
                errno: error.error.raw_os_error().unwrap_or(0),
                by_program: error.step == SpawnStep::Exec,
            },
        }
    }

    /// Signals a program's process group, or all processes of the node. That no process is
    /// there (any more) is not a failure.
    pub(super) fn signal(&mut self, id: Option<u64>, number: i32) -> Option<NodeInitReply> {
        let failed = |error: &io::Error| {
            let message = format!("cannot send signal {number}: {error}");
            Some(NodeInitReply::SignalFailed { id, message })
        };
        let Some(signal) = Signal::from_named_raw(number) else {
            return failed(&io::Error::from_raw_os_error(hint::ERRNO_EINVAL));
        };
        let sent = match id {
            None => self.signal_all(signal),
            Some(id) => match self.running.values().find(|(other, _)| *other == id) {
                Some((_, leader)) => process::kill_group(*leader, signal),
                None => Ok(()),
            },
        };
        match sent {
            Err(error) if error.raw_os_error() != Some(ERRNO_ESRCH) => failed(&error),
            _ => None,
        }
    }

    /// With a limit, who is stopped depends on that, too.
    fn signal_all(&mut self, signal: Signal) -> io::Result<()> {
        let held = match signal {
            Signal::STOP => self.limiter.hold(true),
            Signal::CONT => self.limiter.hold(false),
            _ => None,
        };
        if let Some(held) = held {
            return held;
        }
        let sent = process::kill_all(signal);
        match signal {
            Signal::STOP => self.resumption.end(),
            Signal::CONT => self.resumption.begin(clock::monotonic_ns()),
            _ => {}
        }
        sent
    }

    /// What is left to do after all were let go on.
    pub(super) fn resumption(&self) -> &ResumptionMonitor {
        &self.resumption
    }

    /// Does that, if it is time.
    pub(super) fn resume(&mut self) {
        self.resumption.turn(clock::monotonic_ns());
    }

    /// Reaps processes that have ended: the next of our programs among them, silently passing over
    /// orphans that programs have left to us.
    pub(super) fn reap(&mut self) -> Option<NodeInitReply> {
        while let Ok(Some((pid, status))) = process::wait_any(true) {
            if let Some((id, _)) = self.running.remove(&pid.as_raw_nonzero().get()) {
                let status = match status {
                    ProcessExitStatus::Exited(code) => ExitStatus::Code(code),
                    ProcessExitStatus::Killed(signal) => ExitStatus::Signal(signal),
                };
                return Some(NodeInitReply::Exited { id, status });
            }
        }
        None
    }

    fn folder_of<'a>(&'a self, spawn: &'a ProgramSpawnRequest) -> Option<&'a str> {
        let own = self.own.as_ref().map(|own| own.folder.as_str());
        match spawn.cwd.as_deref() {
            // A command from outside comes with the folder that it was asked in, which may not be here.
            Some(cwd) if spawn.program.is_none() && own.is_some() && !Path::new(cwd).is_dir() => {
                own
            }
            Some(cwd) => Some(cwd),
            None => own,
        }
    }

    #[expect(clippy::type_complexity, reason = "private, and destructured at its only call")]
    fn strings(
        &self,
        spawn: &ProgramSpawnRequest,
    ) -> Result<(Vec<CString>, Vec<CString>, Option<CString>), NulError> {
        let arguments = spawn.argv.iter().map(|word| CString::new(word.as_str()));
        let mut variables: BTreeMap<OsString, OsString> = match &self.own {
            Some(own) => own.variables.clone(),
            None => std::env::vars_os().collect(),
        };
        if self.are_root
            && self.own.is_none()
            && let Some(path) = variables.get_mut(OsStr::new("PATH"))
        {
            add_folders_of_root(path);
        }
        let overrides = spawn.env.iter().map(|(name, value)| (name.into(), value.into()));
        variables.extend(overrides);
        if let Some(left) = &self.left {
            let own = variables.get(OsStr::new(record::PRELOAD)).map(OsString::as_os_str);
            let ours = left.variables(own, spawn.program);
            variables.extend(ours);
        }
        variables.insert("WINDTUNNEL_NODE".into(), self.node.clone().into());
        let environment = variables.into_iter().map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            CString::new(entry.into_vec())
        });
        let folder = self.folder_of(spawn).map(CString::new).transpose()?;
        Ok((arguments.collect::<Result<_, _>>()?, environment.collect::<Result<_, _>>()?, folder))
    }
}

/// An ordinary user's `PATH` often lacks them.
fn add_folders_of_root(path: &mut OsString) {
    for folder in ["/usr/local/sbin", "/usr/sbin", "/sbin"] {
        if !std::env::split_paths(path).any(|known| known == Path::new(folder)) {
            path.push(":");
            path.push(folder);
        }
    }
}

fn what_failed(error: &SpawnError, spawn: &ProgramSpawnRequest, folder: Option<&str>) -> String {
    let program = spawn.argv.first().map_or("", String::as_str);
    match error.step {
        SpawnStep::Exec => format!("{error} {program:?}"),
        SpawnStep::Folder => format!("{error} {:?}", folder.unwrap_or("")),
        _ => format!("{error} for {program:?}"),
    }
}

/// "No such process", of errno(3).
const ERRNO_ESRCH: i32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_finds_its_programs_and_those_of_everybody_first() {
        let mut path = OsString::from("/home/ann/bin:/usr/bin:/usr/sbin");
        add_folders_of_root(&mut path);
        assert_eq!(path, "/home/ann/bin:/usr/bin:/usr/sbin:/usr/local/sbin:/sbin");
    }
}
