//! The run folder: where everything about a run is kept.
//!
//! Promises: results of another run are never mixed or overwritten; what is written goes to the folder
//! that was opened when it was made, through no link; a file of the report is whole or not there, a
//! file of lines ends with a whole one; room on the disk that programs may fill is kept for what is
//! written last. Refuses: knowing what its files mean.
//!
//! | module | what |
//! | --- | --- |
//! | `run_folder` | [`RunOutputFolder`]: the folder, its files, and the link `latest` |
//! | `reserve` | [`PreallocatedFile`]: room for what is written last |
//! | `lines` | [`LineFileWriter`]: files that grow by whole lines |

mod lines;
mod reserve;
mod run_folder;

pub use lines::LineFileWriter;
pub use reserve::{PreallocatedFile, junit_bytes, report_bytes};
pub use run_folder::{FolderError, RunOutputFolder, failed};

/// The folder of records, below that of the run.
pub const RECORDS: &str = "records";
/// The folder of named volumes.
pub const VOLUMES: &str = "volumes";
