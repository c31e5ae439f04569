//! What a run reserves of its machine, admitted beside what this user's other runs have reserved.

mod parts;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windtunnel_budget::admission::{self, ReservationHolder, ResourceShortfall};
use windtunnel_control::reservations::{self, HoldError, ReservationLock, RunReservation};
use windtunnel_limit::ResourceLimitOwner;
use windtunnel_model::{Plan, Resource, ResourceAmounts};
use windtunnel_sys::limits;

use crate::error::ResourceError;
use parts::MachineReservations;

/// What a run has reserved, until its last process has ended.
#[derive(Debug)]
pub(crate) struct RunAdmission {
    capacity: ResourceAmounts,
    name: String,
    folder: PathBuf,
    parts: MachineReservations,
    /// Where something is reserved, and other runs can know of it.
    holding: Option<ReservationLock>,
}

impl RunAdmission {
    /// Reserves what nodes ask that are `here`. Where other runs cannot know of it, because this user
    /// has no folder to say it in, that is returned, too.
    ///
    /// # Errors
    /// [`ResourceError::Admission`].
    pub(crate) fn begin(
        plan: &Plan,
        folder: &Path,
        here: Option<&[bool]>,
    ) -> Result<(RunAdmission, Option<String>), ResourceError> {
        let mut admitted = RunAdmission {
            capacity: capacity(),
            name: plan.name.clone(),
            folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
            parts: MachineReservations::of(plan, here),
            holding: None,
        };
        let asked = admitted.parts.sum();
        admitted.parts.fit().map_err(ResourceError::Admission)?;
        if asked.is_none() {
            return Ok((admitted, None));
        }
        match admitted.hold(asked) {
            Ok(()) => Ok((admitted, None)),
            Err(HoldError::Refused(lacking)) => Err(ResourceError::Admission(lacking)),
            Err(HoldError::Io(error)) => {
                let alone = admission::admit(admitted.capacity, &[], asked);
                alone.map_err(ResourceError::Admission)?;
                let note = format!("other runs do not know what this one has reserved: {error}");
                Ok((admitted, Some(note)))
            }
        }
    }

    /// Reserves something else for a node or reservation, which has a new `limit`. What does not fit
    /// changes nothing, and is said.
    pub(crate) fn change(
        &mut self,
        owner: ResourceLimitOwner,
        wanted: ResourceAmounts,
        limit: Option<(Resource, Option<u64>)>,
    ) -> Result<(), String> {
        let had = self.parts.clone();
        self.parts.set(owner, wanted, limit);
        let done = self.admit();
        if done.is_err() {
            self.parts = had;
        }
        done.map_err(|lacking| crate::error::lacking(&lacking))
    }

    /// Reserves what parts ask now.
    fn admit(&mut self) -> Result<(), Vec<ResourceShortfall>> {
        self.parts.fit()?;
        let asked = self.parts.sum();
        match self.hold(asked) {
            Ok(()) => Ok(()),
            Err(HoldError::Refused(lacking)) => Err(lacking),
            Err(HoldError::Io(_)) => admission::admit(self.capacity, &[], asked),
        }
    }

    fn hold(&mut self, asked: ResourceAmounts) -> Result<(), HoldError<Vec<ResourceShortfall>>> {
        let capacity = self.capacity;
        let admit = |others: &[RunReservation]| admission::admit(capacity, &holders(others), asked);
        if let Some(holding) = &mut self.holding {
            return holding.change(&asked, admit);
        }
        let (name, folder) = (self.name.clone(), self.folder.clone());
        let wanted = RunReservation::new(name, folder, &asked);
        self.holding = Some(ReservationLock::begin(wanted, admit)?);
        Ok(())
    }

    /// What a node or reservation has reserved by its own words.
    pub(crate) fn of(&self, owner: ResourceLimitOwner) -> ResourceAmounts {
        self.parts.get(owner)
    }
}

/// Whether what a plan reserves fits this machine now, beside what this user's runs have reserved.
///
/// # Errors
/// [`ResourceError::Admission`].
pub fn fits_reservations(plan: &Plan) -> Result<(), ResourceError> {
    let parts = MachineReservations::of(plan, None);
    parts.fit().map_err(ResourceError::Admission)?;
    let others = holders(&reservations::live());
    admission::admit(capacity(), &others, parts.sum()).map_err(ResourceError::Admission)
}

/// What this machine has that can be reserved: the processors that this process may use, and all
/// memory. What cannot be found out counts as nothing.
#[must_use]
pub fn capacity() -> ResourceAmounts {
    let cpus = limits::cpus().map_or(0, |cpus| cpus.len());
    ResourceAmounts {
        cpu_millis: Some(u64::try_from(cpus).unwrap_or(0).saturating_mul(1000)),
        memory: memory_bytes().ok(),
        ..ResourceAmounts::default()
    }
}

fn memory_bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    let kilobytes: u64 = kilobytes.ok_or(io::ErrorKind::InvalidData)?;
    Ok(kilobytes.saturating_mul(1024))
}

fn holders(runs: &[RunReservation]) -> Vec<ReservationHolder> {
    let holder =
        |run: &RunReservation| ReservationHolder { name: run.name.clone(), amounts: run.amounts() };
    runs.iter().map(holder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_something_to_reserve() {
        let capacity = capacity();
        assert!(capacity.cpu_millis >= Some(1000) && capacity.memory > Some(100_000_000));
    }
}
