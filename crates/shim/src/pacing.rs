//! When bytes may move: files of `windtunnel-budget`.

#[path = "../../budget/src/pacing/budget.rs"]
pub mod budget;
#[path = "../../budget/src/pacing/controller.rs"]
pub mod controller;
#[path = "../../budget/src/pacing/region.rs"]
pub mod region;

pub use budget::BUFFER_NS;
pub use controller::{PacingController, piece, rescaled};
pub use region::{
    Escape, PacingBudgetScope, PacingBudgetSlot, PacingMechanism, PacingRegion, TransferDirection,
};
