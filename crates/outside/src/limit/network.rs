//! What a command needs whose bandwidth or destinations are limited: the library, and the thread that
//! looks at calls.
//!
//! A process has one listener for its calls. So where destinations are limited, which holds for all
//! programs from the first on, bytes are limited by the same thread, and the library is not loaded.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};

use windtunnel_limit::attach::keeper::{AttachOutcome, AttachRequest};
use windtunnel_limit::{SeccompCallLedger, SeccompKeeper};
use windtunnel_notification::NotificationThread;
use windtunnel_sys::capability;
use windtunnel_sys::process::{Pid, SpawnPlan};
use windtunnel_sys::seccomp::{self, SeccompFilterKind};
use windtunnel_sys::unix;

use super::error::LimitError;
use super::options::CommandLimitOptions;
use super::registry::LimitRegistryEntry;
use super::supervision::{CallLimiter, DestinationPolicy, RefusedDestinations};
use crate::error::system;
use crate::library::PreloadLibraryFolder;
use crate::program::is_direct;

#[derive(Debug)]
pub(super) struct CommandNetworkLimiter {
    /// The library, where it holds programs.
    place: Option<PreloadLibraryFolder>,
    /// The thread that looks at calls, which programs need: it has to live as long as they do.
    supervision: NotificationThread<CallLimiter>,
    /// Where the command hands over its listener.
    socket: OwnedFd,
    /// Whether bytes are limited.
    moves: bool,
    /// Of programs that ran already: it lets their calls pass once this is dropped.
    keeper: Option<SeccompKeeper>,
}

impl CommandNetworkLimiter {
    /// The calling thread, and all that it starts from now on, cannot use io_uring or MPTCP.
    pub(super) fn start(
        wanted: &CommandLimitOptions,
        shared: &LimitRegistryEntry,
    ) -> Result<CommandNetworkLimiter, LimitError> {
        let (moves, judges) = (wanted.moves(), !wanted.connect.is_empty());
        let place = (moves && !judges).then(PreloadLibraryFolder::make).transpose();
        let place = place.map_err(system("give programs the library"))?;
        let door = place.as_ref().map(PreloadLibraryFolder::make_door).transpose();
        let door = door.map_err(system("give programs a door for listeners"))?;
        let (supervision, socket) = supervise(wanted, shared, door, None)?;
        seccomp::refuse_hidden_ways().map_err(system("refuse io_uring to programs"))?;
        if judges {
            seccomp::refuse_other_ways().map_err(system("refuse sockets of packets"))?;
        }
        Ok(CommandNetworkLimiter { place, supervision, socket, moves, keeper: None })
    }

    /// Has the calls of a process shown that runs already, and of all below it.
    pub(super) fn attach(
        wanted: &CommandLimitOptions,
        shared: &LimitRegistryEntry,
        keeper: SeccompKeeper,
        door: OwnedFd,
        root: Pid,
    ) -> Result<(CommandNetworkLimiter, AttachOutcome), LimitError> {
        let (moves, confines) = (wanted.moves(), !wanted.connect.is_empty());
        // It answers from the first call on.
        let ledger = Some(keeper.ledger().clone());
        let (supervision, socket) = supervise(wanted, shared, Some(door), ledger)?;
        let attached = keeper.attach(AttachRequest { root, filter: filter(moves), confines });
        let keeper = Some(keeper);
        let network = CommandNetworkLimiter { place: None, supervision, socket, moves, keeper };
        match attached {
            Ok(attached) => Ok((network, attached)),
            Err(refusal) => {
                network.finish();
                Err(LimitError::NotAttached(refusal))
            }
        }
    }

    /// Whether programs live whose calls are shown.
    pub(super) fn has_programs(&self) -> bool {
        self.supervision.living() > 0
    }

    /// The process that lets calls pass later.
    pub(super) fn keeper_pid(&self) -> Option<Pid> {
        self.keeper.as_ref().map(SeccompKeeper::pid)
    }

    /// Adds the variables of the command.
    pub(super) fn add_variables(
        &self,
        variables: &mut BTreeMap<OsString, OsString>,
        shared: &LimitRegistryEntry,
    ) {
        if let Some(place) = &self.place {
            variables.insert(VARIABLE.into(), shared.path().into());
            place.add_variables(variables);
        }
    }

    /// Has the calls of the command shown that the library does not hold.
    pub(super) fn show<'a>(&'a self, program: &OsStr, plan: &mut SpawnPlan<'a>) {
        let judges = self.place.is_none();
        if !judges && !is_direct(program) {
            return;
        }
        plan.supervisor = Some(self.socket.as_fd());
        plan.filter = filter(self.moves);
        plan.must_show = judges;
        // What a filter needs of a user without rights.
        plan.no_new_privs = !capability::effective().is_ok_and(|has| has.sys_admin);
    }

    /// Ends. Calls of programs that are left and that are shown will fail (`ENOSYS`), but for
    /// those that a keeper lets pass. Returns what was
    /// refused.
    pub(super) fn finish(self) -> RefusedDestinations {
        // A panic of the thread has been printed.
        self.supervision.finish().map(CallLimiter::refused).unwrap_or_default()
    }
}

/// The thread that looks at calls, and where the command hands over its listener. Preload libraries, or
/// a keeper, hand over theirs at the door.
fn supervise(
    wanted: &CommandLimitOptions,
    shared: &LimitRegistryEntry,
    door: Option<OwnedFd>,
    ledger: Option<SeccompCallLedger>,
) -> Result<(NotificationThread<CallLimiter>, OwnedFd), LimitError> {
    let region = shared.region_again().map_err(system("map the file of a limit"))?;
    let judge = (!wanted.connect.is_empty()).then(|| DestinationPolicy::of(wanted.connect.clone()));
    let watcher = CallLimiter::new(region, wanted.moves(), judge, ledger);
    let (ours, socket) = unix::seqpacket_pair().map_err(system(LOOK))?;
    let doors = [ours].into_iter().chain(door);
    let supervision = NotificationThread::start(watcher, doors).map_err(system(LOOK))?;
    Ok((supervision, socket))
}

/// Which calls are shown.
fn filter(moves: bool) -> SeccompFilterKind {
    if moves { SeccompFilterKind::Bytes } else { SeccompFilterKind::Destinations }
}

/// The variable that holds the path of the region.
pub(super) const VARIABLE: &str = "WINDTUNNEL_LIMIT";
const LOOK: &str = "look at the calls of programs";
