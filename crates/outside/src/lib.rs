//! Programs outside any emulation, on the machine's own network: what they do is recorded.
//!
//! Promises: [`command`] starts a program as its user would have, with the library that records calls, or
//! under a filter where the library cannot see them; [`process()`] looks at one that runs already; what
//! could not be seen is said. Refuses: changing what programs do.
//!
//! | module | what |
//! | --- | --- |
//! | `record` | [`command`], [`process()`]: the folder of a recording |
//! | `sources` | what is recorded, by layer |
//! | `start`, `end` | starting a command, and what ends it |
//! | `place`, `own_folder` | the folder that holds the library while a command runs |

mod end;
mod own_folder;
mod place;
mod record;
mod sources;
mod start;

pub use end::RecordingSignalReader;
pub use own_folder::{OwnFolder, sweep_all};
pub use place::with_library;
pub use record::{
    OutsideError, ProcessRecordingOptions, ProcessRecordingSummary, command, process,
};
pub use start::{gains_rights, is_direct, strings};
