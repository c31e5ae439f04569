//! Programs outside any emulation, on the machine's own network: what they do is recorded, or what
//! they use is limited.
//!
//! Promises: a command starts as its user would have started it; a process that runs already goes on
//! as it did; what could not be seen, or was not held, is said. Refuses: emulating a network; a limit
//! of bandwidth where programs are recorded, or limited, already.
//!
//! | module | what |
//! | --- | --- |
//! | [`record`] | a command, or a process that runs, and the folder of a recording |
//! | [`limit`] | a command, or a program that runs, that uses and moves no more than it may |
//! | `error` | failures that both have |
//! | `program` | what the file of a program says, and its words for the kernel |
//! | `signals` | signals to this process, and the end of its command |
//! | `library`, `own_folder` | the library that programs load, and the folder that holds it while they run |

mod error;
mod library;
pub mod limit;
mod own_folder;
mod program;
pub mod record;
mod signals;

pub use error::{CommandStartError, SystemStepError};
