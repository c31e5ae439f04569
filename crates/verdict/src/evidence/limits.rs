//! What programs had of what is limited, and whether that was more than they may.

mod account;
mod bound;
mod disk_use;
mod owner;

pub use account::{CpuAccountWindow, CpuUsageAccount, exceeded};
pub use bound::{ResourceLimit, ResourceLimitHit, ResourceLimitKind, ResourceLimitSample};
pub use owner::ResourceLimitOwner;
