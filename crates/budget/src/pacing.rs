//! When the bytes of programs that share a budget may move, first come, first served, from 1 B/s to
//! 100 GB/s.
//!
//! Idle time is lent up to [`CREDIT_NS`], and up to [`BUFFER_NS`] where calls wait. The preload library compiles these files into itself, so
//! they use `core` only, and each other by `super`.
//!
//! | module | content |
//! | --- | --- |
//! | `controller` | [`PacingController`], the contract of whatever says when bytes may move |
//! | `budget` | [`PacingBudget`], the controller that is used: a rate |
//! | `region` | [`PacingRegion`], the memory that programs under one limit share |
//!
//! ```
//! use windtunnel_budget::pacing::{PacingBudget, PacingController};
//!
//! let (budget, rate_bps) = (PacingBudget::new(0), 8_000);
//! // A message of 1000 bytes at 1000 bytes a second: the next one starts a second later.
//! assert_eq!(budget.claim(0, rate_bps, 1000), 0);
//! assert_eq!(budget.claim(0, rate_bps, 1000), 1_000_000_000);
//! // Half of it was not sent after all.
//! budget.refund(rate_bps, 500);
//! assert_eq!(budget.free_at_ns(), 1_500_000_000);
//! ```

pub mod budget;
pub mod controller;
pub mod region;

pub use budget::{BUFFER_NS, CREDIT_NS, PacingBudget};
pub use controller::{PacingController, piece, rescaled};
pub use region::{Escape, PacingBudgetScope, PacingMechanism, PacingRegion, TransferDirection};
