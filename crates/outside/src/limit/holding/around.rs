//! The mechanisms that hold a program which runs already, with all below it.
//!
//! What can be undone comes first; where something fails after that, it is undone.

use std::sync::Arc;

use windtunnel_limit::attach::check_rights;
use windtunnel_limit::census::ProcessCensus;
use windtunnel_limit::watch::data_of;
use windtunnel_limit::{
    AttachRefusal, CgroupLimits, CgroupRelocation, PerProcess, ProcessScope, ProcessTree,
    ResumeGuardProcess,
};
use windtunnel_model::{LimitMechanism, Resource, ResourceAmounts};
use windtunnel_sys::limits::{self, ProcessResourceLimitKind};
use windtunnel_sys::process::Pid;

use super::making::CommandGroups;
use super::{CommandLimitEnforcer, supervised};
use crate::error::system;
use crate::limit::error::LimitError;
use crate::limit::resources::shared;

/// A tree that was not started from here.
#[derive(Debug)]
pub(super) struct ForeignProcessTree {
    pub(super) tree: Arc<ProcessTree>,
    pub(super) around: Option<CgroupRelocation>,
    pub(super) per_process: PerProcess,
}

impl CommandLimitEnforcer {
    /// Chooses the mechanisms for a process and all below it, and has it enter a control group, where
    /// one can be made. To be called before this process has threads.
    pub(crate) fn around(
        wanted: &ResourceAmounts,
        root: Pid,
    ) -> Result<CommandLimitEnforcer, LimitError> {
        let tree = Arc::new(ProcessTree::of(root));
        check_rights(&tree).map_err(LimitError::NotAttached)?;
        check(wanted, &tree, root)?;
        let asked = shared(wanted);
        let resources: Vec<Resource> = asked.iter().map(|(resource, _)| resource).collect();
        // What no group limits is limited otherwise, and the line at the end says how.
        let mut around = CgroupRelocation::choose(&tree, &resources).ok().flatten();
        let grouped =
            asked.of_those(|it| around.as_ref().is_some_and(|made| made.mechanism(it).is_some()));
        let entered = around.as_mut().map(|it| it.enter(&tree, &CgroupLimits::of(grouped)));
        let group = entered.and_then(Result::ok);
        let around = around.filter(|_| group.is_some());
        let groups = group.map(|group| CommandGroups { own: None, group });
        let mut limits = supervised(groups, *wanted);
        // What a process had before it entered a group is in the account of another one.
        if let Some(memory) = limits.limit_mut(Resource::Memory) {
            memory.held.mechanism = memory.held.mechanism.and_watch();
        }
        let stops = limits.mechanism(Resource::Cpu) == Some(LimitMechanism::DutyCycle);
        if let Some(shell) = stops.then(|| ProcessTree::shell_of(root)).flatten() {
            // Before their group goes away.
            drop(around);
            return Err(foreground(root, shell));
        }
        let is_watched = limits.mechanism(Resource::Memory) == Some(LimitMechanism::Watch);
        let per_process = PerProcess::new(own_limits(wanted, is_watched));
        let mut foreign = ForeignProcessTree { tree, around, per_process };
        // The guard knows what limits processes had.
        foreign.look();
        let guard = match ResumeGuardProcess::start_with(|| foreign.undo()) {
            Ok(guard) => guard,
            Err(error) => {
                foreign.undo();
                return Err(system("start a guard")(error).into());
            }
        };
        let guard_pid = Some(guard.pid());
        foreign.tree.set_guard(guard);
        let tree = Some(Arc::clone(&foreign.tree));
        Ok(CommandLimitEnforcer {
            guard_pid,
            foreign: Some(foreign),
            ..CommandLimitEnforcer::of(limits, tree)
        })
    }

    /// Whether no process is left of a tree that was not started from here.
    pub(crate) fn is_over(&self) -> bool {
        self.foreign.as_ref().is_none_or(ForeignProcessTree::is_over)
    }
}

impl ForeignProcessTree {
    /// Takes what has been made since into the limits.
    pub(super) fn look(&mut self) {
        self.per_process.look(&self.tree.processes());
        if let Some(around) = &self.around {
            // Those that were made inside are there.
            let _ = around.gather(&self.tree);
        }
    }

    /// Lifts the limits.
    pub(super) fn lift(mut self) {
        self.undo();
        self.tree.dismiss_guard();
    }

    /// Puts back what limits processes had by themselves, and has them leave the group.
    pub(super) fn undo(&mut self) {
        self.per_process.restore(&self.tree.walk());
        if let Some(around) = &mut self.around {
            around.leave();
        }
    }

    /// Whether no process of it is left.
    fn is_over(&self) -> bool {
        self.tree.is_over() && self.around.as_ref().is_none_or(CgroupRelocation::is_empty)
    }
}

/// Whether a process and all below it use no more than they may already.
fn check(wanted: &ResourceAmounts, tree: &Arc<ProcessTree>, root: Pid) -> Result<(), LimitError> {
    let scope = ProcessScope::Tree(Arc::clone(tree));
    let census = ProcessCensus::take(&scope);
    let refused = |why: String, hint: &str| {
        let root = root.as_raw_nonzero().get();
        Err(LimitError::NotAttached(AttachRefusal::about(root, why, hint)))
    };
    if let Some(pids) = wanted.pids.filter(|pids| census.threads() > *pids) {
        let why = format!(
            "it has {} processes and threads below it already, more than {pids}",
            census.threads()
        );
        return refused(why, "give --pids more");
    }
    let page_bytes = limits::page_bytes();
    if let Some(memory) = wanted.memory.filter(|memory| census.resident(page_bytes) > *memory) {
        let used: u64 = census.proportional(page_bytes).iter().map(|(_, bytes)| bytes).sum();
        if used > memory {
            let why = format!("it uses {used} bytes of memory already, more than {memory}");
            return refused(why, "give --memory more");
        }
    }
    Ok(())
}

/// What each process is limited in for itself.
fn own_limits(wanted: &ResourceAmounts, is_watched: bool) -> Vec<(ProcessResourceLimitKind, u64)> {
    let data = wanted.memory.filter(|_| is_watched).map(data_of);
    let own = [
        (ProcessResourceLimitKind::OpenFiles, wanted.open_files),
        (ProcessResourceLimitKind::Data, data),
    ];
    own.into_iter().filter_map(|(what, most)| Some((what, most?))).collect()
}

/// A duty cycle stops a process, which its parent sees.
fn foreground(root: Pid, shell: Pid) -> LimitError {
    let why = format!(
        "it is in the foreground of process {shell}, a shell, which would take the stops of a duty \
         cycle for ^Z",
        shell = shell.as_raw_nonzero()
    );
    let hint = "send it to the background (^Z and `bg`), or run windtunnel as root where there are \
                control groups";
    LimitError::NotAttached(AttachRefusal::about(root.as_raw_nonzero().get(), why, hint))
}
