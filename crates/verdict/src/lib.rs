//! What a run's figures mean: faithful or not and why, passed or not and why.
//!
//! Promises: [`conclude`] says of each doubt and each failure what, when, where and, as far as it is
//! known, why; [`gather`] makes one run of what the machines of a run have left, whatever these may
//! have written. Refuses: measuring anything itself, beside adding up what was read.
//!
//! | module | what |
//! | --- | --- |
//! | [`evidence`] | all that is known of a run when it is over: [`RunEvidence`](evidence::RunEvidence) |
//! | `verdict` | doubts, failures, expectations, and the report of them |
//! | `tables` | what was measured, as tables of the run folder |
//! | `conclusion` | [`conclude`]: judges a run and writes what is known of it |
//! | `results` | [`PartResults`]: what one of several machines has seen, as a file |
//! | `gather` | [`gather`]: the verdict on a run over several machines |

mod conclusion;
pub mod evidence;
mod gather;
mod pairs;
mod results;
mod tables;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;
mod verdict;

pub use conclusion::conclude;
pub use evidence::JudgingTerms;
pub use gather::{EventFilter, GatherError, RunPartFolders, gather};
pub use results::PartResults;
pub use text::rounded;
