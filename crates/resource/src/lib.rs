//! What the nodes and reservations of a run may use of this machine, and what they did use.
//!
//! Promises: what is reserved is admitted beside what this user's other runs have reserved, or the run
//! does not start; each limit is held by the best mechanism that the machine allows, looked after until
//! the run ends, and what was not held is said. Refuses: waiting, and logging: its caller says when it
//! is time, and gets what happened.
//!
//! | module | what |
//! | --- | --- |
//! | `limits` | [`MachineResourceLimits`]: the limits of the nodes and reservations of a run |
//! | `admission` | what is reserved of the machine: [`capacity`], [`fits_reservations`] |
//! | `agent_group` | [`AgentGroup`]: the control group around the runs of an agent |

mod admission;
mod agent_group;
mod error;
mod limits;

pub use admission::{capacity, fits_reservations};
pub use agent_group::AgentGroup;
pub use error::ResourceError;
pub use limits::{MachineResourceLimits, NodeLimiterNews};
