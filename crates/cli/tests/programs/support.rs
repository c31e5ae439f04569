//! Users, folders and runs for the tests.

#[path = "support/evidence.rs"]
pub(crate) mod evidence;
#[path = "support/guest.rs"]
pub(crate) mod guest;
#[path = "support/image.rs"]
pub(crate) mod image;
#[path = "support/lab.rs"]
mod lab;
#[path = "support/limits.rs"]
mod limits;
#[path = "support/live.rs"]
mod live;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/outcome.rs"]
mod outcome;
#[path = "../common/registry.rs"]
pub(crate) mod registry;
#[path = "../common/wait.rs"]
mod wait;

pub(crate) use lab::Lab;
pub(crate) use limits::assert_limits_were_held;
pub(crate) use live::Live;
pub(crate) use machine::{
    User, any_user, cpu_time_of, find_program, is_missing, is_root, missing, unprivileged, users,
};
pub(crate) use outcome::Outcome;
pub(crate) use wait::{until, until_within};

use machine::{must, processes_with};
