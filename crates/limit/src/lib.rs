//! Holding the programs of a node, or a command with all that it starts, to limits of processor
//! time, memory, processes and disks.
//!
//! **Promises:** of the mechanisms that this machine allows, the best is chosen and named; every
//! process and thread of a node or a tree is inside, also those that are still to come; what an earlier run
//! has left is removed, and never a group that is not ours.
//!
//! **Refuses:** deciding what a limit is; judging whether a run is faithful.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`attach`] | having the calls of processes shown that run already |
//! | [`around`] | [`CgroupRelocation`]: a control group for processes that run already |
//! | [`births`] | processes that are born stopped, although all were let go on |
//! | [`choice`] | [`LimitMechanismChoice`]: the mechanism for a run, and the group of each node |
//! | [`membership`] | [`EscapedProcess`]: a process that has left its control group |
//! | [`account`] | [`LimitAccount`]: a limit of a run, and what came of it, for the verdict |
//! | [`supervisor`] | [`LimitSupervisor`]: the limits of a node, a reservation or a command |
//! | [`limiter`] | [`ProcessLimiter`]: what a process does itself where no group can hold a limit |
//! | [`group`] | [`ControlGroup`]: a control group of the kernel, of either version |
//! | [`scope`] | [`ProcessScope`]: all processes of a PID namespace, or of a tree |
//! | [`tree`] | [`ProcessTree`]: all processes below the calling one |
//! | [`per_process`] | [`PerProcess`]: limits of each process of a tree |
//! | [`guard`] | [`ResumeGuardProcess`]: a process that continues what one has stopped that was killed |
//! | [`duty`] | [`DutyCycleController`]: the threads that stop and continue processes |
//! | [`watch`] | [`ResourceWatch`]: the thread that ends what is too much |
//! | [`census`] | all processes of a scope, with what they use |
//! | [`usage`] | the processor time of all processes that a scope has had |
//! | [`disks`] | the disks of the machine, and what divides them |
//! | [`worker`] | [`PausableThread`]: a thread of the init whose time is the programs' |
//! | [`place`] | what groups limit, and the folders in which they are made |
//! | `hierarchy` (private) | where control groups can be made |
//! | `outliving` (private) | what a process does first that has to outlive the one that forked it |
//! | `owner` (private) | to which process a group belongs |

pub mod account;
pub mod around;
pub mod attach;
pub mod births;
pub mod census;
pub mod choice;
pub mod disks;
pub mod duty;
pub mod group;
pub mod guard;
mod hierarchy;
pub mod limiter;
pub mod membership;
mod outliving;
mod owner;
pub mod per_process;
pub mod place;
pub mod scope;
pub mod supervisor;
pub mod tree;
pub mod usage;
pub mod watch;
mod way;
pub mod worker;

pub use account::{LimitAccount, ResourceLimitOwner};
pub use around::CgroupRelocation;
pub use attach::{AttachRefusal, SeccompCallLedger, SeccompKeeper};
pub use choice::LimitMechanismChoice;
pub use duty::DutyCycleController;
pub use group::{CgroupLimits, ControlGroup};
pub use guard::ResumeGuardProcess;
pub use limiter::{LimiterReport, ProcessLimiter};
pub use membership::EscapedProcess;
pub use per_process::PerProcess;
pub use scope::ProcessScope;
pub use supervisor::{LimitGroups, LimitHit, LimitSupervisor};
pub use tree::ProcessTree;
pub use watch::ResourceWatch;
pub use worker::PausableThread;
