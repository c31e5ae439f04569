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
//! | [`explain`] | why a request took as long as it did |
//! | [`export`] | JSON lines, CSV, Parquet, pcapng and a timeline |
//! | [`mod@file`] | the file: header, batches of sources, gaps |
//! | [`filter`] | which records are wanted |
//! | [`flows`] | one flow for what each layer and machine numbers for itself |
//! | [`history`] | a flow's records of all layers, in one numbering |
//! | [`modulation`] | what the stacks made of the programs' writes, and how long it took |
//! | [`follow`] | records of a run that goes on, and their rates |
//! | [`rows`] | a record as named fields |
//! | [`statistics`] | sums by layer, flow and lane, and what was not seen |
//! | [`workload`] | what programs did, to be done again over another network |

pub mod evidence;
pub mod explain;
pub mod export;
pub mod file;
pub mod filter;
pub mod flows;
pub mod follow;
pub mod history;
pub mod modulation;
pub mod rows;
pub mod statistics;
pub mod workload;

pub use evidence::{AttributedRecord, EventOrigin, EvidenceLoader, RecordedRun, RecordingMachine};
