//! What a part has seen, for the verdict on the whole run.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use windtunnel_control::part::PartSetup;
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::limits::{self, Processors};

use crate::dataplane::Tally;
use crate::devices::DeviceDrops;
use crate::folder::{Folder, FolderError};
use crate::live::{EchoesSeen, Freezes, Probe, Side};
use crate::output::{Carried, ProgramKey};
use crate::recorder::Recorded;
use crate::reserve;
use crate::run::Done;
use crate::supervisor::Supervised;
use crate::verdict::Ending;

/// A part's results, as `part.json` in its folder has them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    /// Number of the part.
    pub(crate) member: u16,
    /// Name of the machine.
    pub(crate) host: String,
    pub(crate) kernel: String,
    pub(crate) cpus: usize,
    pub(crate) began_unix_s: u64,
    pub(crate) setup: Span,
    pub(crate) elapsed: Span,
    pub(crate) ending: Ending,
    pub(crate) tally: Tally,
    pub(crate) recorded: Recorded,
    pub(crate) carried: Carried,
    /// The programs of this machine.
    #[serde(with = "crate::pairs")]
    pub(crate) programs: BTreeMap<ProgramKey, Supervised>,
    pub(crate) echoes: Vec<(Probe, EchoesSeen)>,
    /// When the run began, on this machine's monotonic clock.
    pub(crate) origin: Time,
    pub(crate) freezes: Freezes,
    pub(crate) device_drops: DeviceDrops,
    busy: u64,
    idle: u64,
    stolen: u64,
    pub(crate) notes: Vec<String>,
    /// Other members that were lost to this one, and when.
    #[serde(with = "crate::pairs")]
    pub(crate) lost: BTreeMap<u16, Span>,
    /// Whether the network was cut between them, and the run is what the other side did.
    pub(crate) apart: bool,
    /// How long after its time the run began on this machine.
    pub(crate) began_late: Span,
}

impl Results {
    pub(super) fn of(setup: &PartSetup, done: Done) -> Self {
        let Done { ended, processors, .. } = done;
        let own = ended.supervisor.programs().filter(|(key, _)| ended.supervisor.is_here(*key));
        Results {
            member: setup.member,
            host: setup.members.get(usize::from(setup.member)).cloned().unwrap_or_default(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            cpus: limits::cpus().map_or(1, |cpus| cpus.len()),
            began_unix_s: done.began_unix_s,
            setup: done.setup,
            elapsed: done.elapsed,
            ending: done.ending,
            programs: own.map(|(key, program)| (key, program.clone())).collect(),
            lost: ended.side.as_ref().map(Side::lost).cloned().unwrap_or_default(),
            apart: ended.side.as_ref().is_some_and(Side::is_apart),
            began_late: ended.began_late,
            tally: ended.tally,
            recorded: done.recorded,
            carried: ended.carried,
            echoes: ended.echoes,
            origin: ended.origin,
            freezes: ended.freezes,
            device_drops: done.device_drops,
            busy: processors.busy,
            idle: processors.idle,
            stolen: processors.stolen,
            notes: done.notes,
        }
    }

    /// What all processors of the machine did during the run.
    pub(crate) fn processors(&self) -> Processors {
        Processors { busy: self.busy, idle: self.idle, stolen: self.stolen }
    }

    /// # Errors
    /// If they cannot be written.
    pub(super) fn write(&self, folder: &Folder) -> Result<(), FolderError> {
        let text = serde_json::to_vec(self).map_err(|error| FolderError {
            verb: "write",
            path: folder.file(FILE),
            source: error.into(),
        })?;
        folder.write(FILE, &text)
    }

    /// Reads those of the part in `folder`.
    ///
    /// # Errors
    /// If they are not there, or of another version.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(folder.join(FILE))?)?)
    }
}

/// Keeps room for the results of a part of a run of `plan`.
///
/// # Errors
/// If there is none.
pub(super) fn reserve(folder: &Folder, plan: &Plan) -> Result<(), FolderError> {
    // It has the figures of the report, and histograms and samples of which nobody knows how many there will be.
    folder.reserve(FILE, 2 * reserve::report_bytes(plan))
}

const FILE: &str = "part.json";
