//! The one event loop of a machine: real clock, packet socket, engine and programs.
//!
//! Promises: [`run`] does a whole run and leaves nothing behind; every packet's lateness is
//! measured; what was not faithful is said. Refuses: dropping or delaying anything itself; parsing
//! text; rendering.
//!
//! | module | what |
//! | --- | --- |
//! | `run` | [`run`]: the stages of a run, from folder to verdict |
//! | `live` | the main loop of a run: programs, events, control requests |
//! | `part` | [`part`]: one machine's part of a run over several |
//! | `supervisor` | which program starts when, and what its end means |
//! | `output` | what programs write, on its own thread |
//! | `recorder` | `links.csv` and `events.jsonl`, on its own thread |
//! | `records` | what is recorded as evidence: its sources, and the thread that writes it |
//! | `machine` | [`fits`]: whether a plan fits this machine; [`presence::missing`]: whether it has the programs of a plan; [`MachineActivity`]: whether it has time for a run |
//! | [`roots`] | file systems of nodes' own: images unpacked, folders for what nodes write |
//! | `observer` | observers of a run |
//!
//! A run needs namespaces, so this is not run here:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let plan: windtunnel_model::Plan = unreachable!();
//! use std::sync::Arc;
//! use windtunnel_host::{RunOptions, observer::SilentObserver, run};
//!
//! let options = RunOptions::new("runs/mine".into(), "/experiments".into());
//! let report = run(plan, &options, Arc::new(SilentObserver))?;
//! println!("{}", report.verdict.text);
//! # Ok(())
//! # }
//! ```

mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod live;
mod machine;
pub mod observer;
mod options;
mod output;
mod part;
mod recorder;
mod records;
pub mod roots;
mod run;
mod supervisor;

pub use error::RunError;
pub use machine::{MachineActivity, PlanFitConcern, fits, presence};
pub use observer::{Observer, ObserverNotice};
pub use options::{Foreground, RunOptions};
pub use part::{PartPlace, part};
pub use run::{capture_places, run, run_in_foreground};
