//! The one event loop of a machine: real clock, packet socket, engine, programs, and the verdict.
//!
//! Promises: [`run`] does a whole run and leaves nothing behind; every packet's lateness is
//! measured; what was not faithful is said. Refuses: dropping or delaying anything itself; parsing
//! text; rendering.
//!
//! | module | what |
//! | --- | --- |
//! | `run` | [`run`]: the stages of a run, from folder to verdict |
//! | `live` | the main loop of a run: programs, events, control requests |
//! | `agent_group` | [`AgentGroup`]: a limit of all nodes of an agent together |
//! | `part` | [`part`]: one machine's part of a run over several |
//! | `gather` | [`gather`]: the verdict on a run over several machines |
//! | `supervisor` | which program starts when, and what its end means |
//! | `output` | what programs write, on its own thread |
//! | `recorder` | `links.csv` and `events.jsonl`, on its own thread |
//! | [`outside`] | records of programs outside any emulation |
//! | `records` | what is recorded as evidence: its sources, and the thread that writes it |
//! | `reserve` | room on the disk for the report |
//! | `recent` | what links did in the last second, for observers |
//! | `tables` | `echoes.csv` and `paths.csv`, for expectations of paths |
//! | `verdict` | what a run's figures mean |
//! | `fit` | [`fits`]: whether a plan fits this machine |
//! | `quiet` | [`MachineActivity`]: whether this machine has time for a run |
//! | `presence` | [`presence::missing`]: whether this machine has the programs of a plan |
//! | [`roots`] | file systems of nodes' own: images unpacked, folders for what nodes write |
//! | `limit` | programs outside any emulation that move no more bytes than they may |
//! | `folder`, `observer` | where a run is kept, and its observers |
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

mod admission;
mod agent_group;
mod clock;
mod devices;
mod echo;
mod ending;
mod error;
mod fit;
pub mod folder;
mod freeze;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod gateway;
pub mod gather;
pub mod limit;
mod live;
mod load;
mod node_limits;
pub mod observer;
mod options;
mod output;
pub mod outside;
mod pairs;
mod part;
mod planned;
pub mod presence;
mod quiet;
mod recent;
mod recorder;
mod records;
mod reserve;
pub mod roots;
mod run;
mod supervisor;
mod tables;
mod text;
mod verdict;

pub use admission::{capacity, fits_reservations};
pub use agent_group::AgentGroup;
pub use error::RunError;
pub use fit::{PlanFitConcern, fits};
pub use folder::{FolderError, RunOutputFolder};
pub use observer::{Observer, ObserverNotice};
pub use options::{Foreground, RunOptions};
pub use part::{PartPlace, part};
pub use quiet::MachineActivity;
pub use reserve::{PreallocatedFile, junit_bytes};
pub use run::{capture_places, run, run_in_foreground};
