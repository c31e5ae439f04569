//! Whether this machine can do a run: whether it has what the plan needs, and time for it.

mod fit;
pub mod presence;
mod quiet;

pub use fit::{PlanFitConcern, fits};
pub use quiet::MachineActivity;
