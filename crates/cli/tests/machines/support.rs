//! Machines, agents and runs for the tests.

#[path = "support/agent.rs"]
mod agent;
#[path = "../common/image.rs"]
pub(crate) mod image;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/machines.rs"]
mod machines;
#[path = "../common/registry.rs"]
pub(crate) mod registry;
#[path = "support/run.rs"]
mod run;
#[path = "../common/wait.rs"]
mod wait;

pub(crate) use machine::{is_missing, is_root, missing};
pub(crate) use machines::{MAX_LATENESS, Machines, address, clock_ahead_s};
pub(crate) use run::{Outcome, Run};
pub(crate) use wait::{until, until_within};

use machine::{find_program, must};
