//! The processor time of all that was in a group, whatever it limits.
//!
//! Version 2 counts it in each group. Version 1 counts it in the hierarchy `cpuacct`: a group is in it
//! that limits processors, and every one where that hierarchy has no other controller, as it divides
//! nothing then.

use std::fs::File;
use std::io;

use super::{get, malformed, value};
use crate::place::CgroupParentFolders;

#[derive(Debug)]
pub(super) enum TimeFile {
    V2(File),
    V1(File),
}

impl TimeFile {
    /// Of a group at a place; `None` where it has no account of its own.
    pub(super) fn open(
        place: &CgroupParentFolders,
        outside: &CgroupParentFolders,
    ) -> Option<TimeFile> {
        let unified = place.unified.as_ref().filter(|_| place.unified != outside.unified);
        if let Some(folder) = unified {
            return File::open(folder.join("cpu.stat")).ok().map(TimeFile::V2);
        }
        let account = place.account.as_ref().filter(|_| place.account != outside.account)?;
        File::open(account.join("cpuacct.usage")).ok().map(TimeFile::V1)
    }

    pub(super) fn read(&mut self) -> io::Result<u64> {
        match self {
            TimeFile::V2(stat) => Ok(value(&get(stat)?, "usage_usec")? * 1000),
            TimeFile::V1(usage) => {
                get(usage)?.trim().parse().map_err(|_| malformed("cpuacct.usage"))
            }
        }
    }
}
