//! The room `evidence`: records of every layer, from bytes to answers.
//!
//! **Promises:** a file of records is read as far as it was written, and as far as this version
//! knows its kinds; no gap passes unseen; what is said of several layers joins by (flow, direction,
//! offset), never by guessing from times.
//!
//! **Refuses:** clocks, descriptors, threads; to decide or to block anything.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`evidence`] | all records of a run, merged, with their flows |
//! | [`file`] | the file: header, batches of sources, gaps |
//! | [`flows`] | one flow for what each layer and machine numbers for itself |

pub mod evidence;
pub mod file;
pub mod flows;

pub use evidence::{Entry, Evidence, Loader, Member, Origin};
