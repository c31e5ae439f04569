//! The processor time of a group.
//!
//! The kernel gives a group a quota in each period. A group that did nothing for most of a period
//! may use all of the quota at once, at full speed; so periods are short ([`bandwidth`]). It charges
//! a thread that runs on at its clock's ticks only, 1 to 10 ms apart, and keeps no more than one
//! quota meanwhile: periods shorter than a tick would lose some (34 % of what was asked with 1 ms in
//! 1.11 ms, 3 % with 1 ms in 2.5 ms, at 250 ticks a second). A burst of one more quota keeps what is
//! given between two ticks, where the kernel has it (Linux 5.14).
//!
//! A group of version 1 cannot have a greater share than one around it (`EINVAL`), such as that of a
//! container; one of version 2 can, and has no more of it. In both it gets what those around leave,
//! which [`CpuFiles::around`] reports.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use windtunnel_budget::processor::{CpuUsageReading, bandwidth};
use windtunnel_model::Resource;
use windtunnel_sys::clock;

use super::{changed, get, malformed, put, unreadable, value};
use crate::place::{CgroupParentFolders, read_write, write_only};

/// The limit, and what holds it.
#[derive(Debug)]
pub(super) struct CpuFiles {
    files: CgroupCpuFiles,
    folder: PathBuf,
    /// What was set.
    asked: Option<Bandwidth>,
    around: Option<u32>,
}

/// How much time the group has: a quota in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bandwidth {
    /// `None`: groups around hold it.
    quota_us: Option<u64>,
    period_us: u64,
}

/// What is open: the process may leave the machine's view of files later.
#[derive(Debug)]
enum CgroupCpuFiles {
    V2 { max: File, burst: Option<File>, weight: File, stat: File },
    V1 { quota: File, period: File, burst: Option<File>, shares: File, stat: File, usage: File },
}

impl CpuFiles {
    /// `None` where the place limits no processors, or cannot be opened: what is then asked of the
    /// group fails.
    pub(super) fn open(place: &CgroupParentFolders) -> Option<CpuFiles> {
        let of = |files, folder: &Path| CpuFiles {
            files,
            folder: folder.to_owned(),
            asked: None,
            around: None,
        };
        if place.given.contains(&Resource::Cpu) {
            let folder = place.unified.as_deref()?;
            let files = CgroupCpuFiles::V2 {
                max: read_write(&folder.join("cpu.max")).ok()?,
                burst: write_only(&folder.join("cpu.max.burst")).ok(),
                weight: write_only(&folder.join("cpu.weight")).ok()?,
                stat: File::open(folder.join("cpu.stat")).ok()?,
            };
            return Some(of(files, folder));
        }
        let cpu = place.first_folder(Resource::Cpu)?;
        let account = place.account.as_deref()?;
        let files = CgroupCpuFiles::V1 {
            quota: read_write(&cpu.join("cpu.cfs_quota_us")).ok()?,
            period: read_write(&cpu.join("cpu.cfs_period_us")).ok()?,
            burst: write_only(&cpu.join("cpu.cfs_burst_us")).ok(),
            shares: write_only(&cpu.join("cpu.shares")).ok()?,
            stat: File::open(cpu.join("cpu.stat")).ok()?,
            usage: File::open(account.join("cpuacct.usage")).ok()?,
        };
        Some(of(files, cpu))
    }

    /// Limits it to thousandths of a processor, as far as the groups around leave it these.
    pub(super) fn limit(&mut self, share: u32) -> io::Result<()> {
        self.around = share_around(&self.folder).filter(|around| *around < share);
        let is_first = matches!(self.files, CgroupCpuFiles::V1 { .. });
        let most = self.around.filter(|_| is_first);
        let (quota_us, period_us) = bandwidth(most.unwrap_or(share));
        let mut asked = Bandwidth { quota_us: Some(quota_us), period_us };
        match self.write(asked) {
            // No quota is so exact that the kernel accepts it: those around hold it.
            Err(error) if most.is_some() && is_invalid(&error) => {
                asked.quota_us = None;
                self.write(asked)?;
            }
            done => done?,
        }
        self.asked = Some(asked);
        Ok(())
    }

    /// What the groups around leave it, where that is less than what was asked.
    pub(super) fn around(&self) -> Option<u32> {
        self.around
    }

    /// Sets what another process has changed, and says what.
    pub(super) fn correct(&mut self) -> Option<String> {
        let bandwidth = self.asked?;
        let (file, none) = match &self.files {
            CgroupCpuFiles::V2 { .. } => ("cpu.max", "max"),
            CgroupCpuFiles::V1 { .. } => ("cpu.cfs_quota_us", "-1"),
        };
        let quota = bandwidth.quota_us.map_or_else(|| none.to_owned(), |quota| quota.to_string());
        let asked = format!("{quota} {}", bandwidth.period_us);
        let found = match self.found() {
            Ok(found) => found,
            Err(error) => return Some(unreadable(file, &error)),
        };
        if found.trim() == asked {
            return None;
        }
        Some(changed(file, &found, &asked, self.write(bandwidth)))
    }

    /// The quota and the period that the kernel has.
    fn found(&mut self) -> io::Result<String> {
        match &mut self.files {
            CgroupCpuFiles::V2 { max, .. } => get(max),
            CgroupCpuFiles::V1 { quota, period, .. } => {
                Ok(format!("{} {}", get(quota)?.trim(), get(period)?.trim()))
            }
        }
    }

    fn write(&mut self, bandwidth: Bandwidth) -> io::Result<()> {
        let Bandwidth { quota_us, period_us } = bandwidth;
        // No burst may be more than its quota, the former one included.
        self.burst(0)?;
        match (&mut self.files, quota_us) {
            (CgroupCpuFiles::V2 { max, .. }, None) => put(max, "max")?,
            (CgroupCpuFiles::V2 { max, .. }, Some(quota)) => {
                put(max, &format!("{quota} {period_us}"))?;
            }
            (CgroupCpuFiles::V1 { quota, period, .. }, quota_us) => {
                // No pair of an old and a new value holds in between.
                put(quota, "-1")?;
                put(period, &period_us.to_string())?;
                quota_us.map_or(Ok(()), |quota_us| put(quota, &quota_us.to_string()))?;
            }
        }
        quota_us.map_or(Ok(()), |quota_us| self.burst(quota_us))
    }

    fn burst(&mut self, burst_us: u64) -> io::Result<()> {
        let (CgroupCpuFiles::V2 { burst, .. } | CgroupCpuFiles::V1 { burst, .. }) = &mut self.files;
        burst.as_mut().map_or(Ok(()), |burst| put(burst, &burst_us.to_string()))
    }

    /// The weight among groups that all have theirs from thousandths of a processor.
    pub(super) fn weigh(&mut self, share: u32) -> io::Result<()> {
        match &mut self.files {
            CgroupCpuFiles::V2 { weight, .. } => {
                put(weight, &(share / 10).clamp(1, WEIGHT_MAX).to_string())
            }
            CgroupCpuFiles::V1 { shares, .. } => {
                let value = u64::from(share) * 1024 / 1000;
                put(shares, &value.clamp(2, SHARES_MAX).to_string())
            }
        }
    }

    pub(super) fn read(&mut self) -> io::Result<CpuUsageReading> {
        let now_ns = clock::monotonic_ns();
        let (used_ns, held_ns) = match &mut self.files {
            CgroupCpuFiles::V2 { stat, .. } => {
                let text = get(stat)?;
                let used = value(&text, "usage_usec")?;
                // Absent where nothing is limited.
                (used * 1000, value(&text, "throttled_usec").unwrap_or(0) * 1000)
            }
            CgroupCpuFiles::V1 { stat, usage, .. } => {
                let used = get(usage)?.trim().parse().map_err(|_| malformed("cpuacct.usage"))?;
                (used, value(&get(stat)?, "throttled_time")?)
            }
        };
        Ok(CpuUsageReading { now_ns, used_ns, held_ns })
    }
}

/// The least share of the groups around one, in thousandths of a processor, as far as they are seen.
fn share_around(folder: &Path) -> Option<u32> {
    let around = folder.ancestors().skip(1).take_while(|it| it.join("cgroup.procs").exists());
    around.filter_map(share_of).min()
}

/// What a group may have; `None`: any share.
fn share_of(folder: &Path) -> Option<u32> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let text = match read("cpu.max") {
        Some(text) => text,
        None => format!("{} {}", read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?),
    };
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    u32::try_from(quota.saturating_mul(1000) / period.max(1)).ok()
}

/// `EINVAL`, of errno(3).
fn is_invalid(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

/// The greatest `cpu.weight`.
const WEIGHT_MAX: u32 = 10_000;
/// The greatest `cpu.shares`.
const SHARES_MAX: u64 = 262_144;

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of version 1, the outermost first, with their quotas of a period of 100 ms.
    fn groups(quotas: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let mut folder = root.path().to_owned();
        for quota in quotas {
            folder.push("group");
            fs::create_dir(&folder).unwrap();
            let files = [
                ("cgroup.procs", ""),
                ("cpu.cfs_quota_us", *quota),
                ("cpu.cfs_period_us", "100000\n"),
                ("cpu.shares", "1024\n"),
                ("cpu.stat", ""),
                ("cpuacct.usage", "0\n"),
            ];
            for (name, text) in files {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        (root, folder)
    }

    fn files(folder: &Path) -> CpuFiles {
        let first = vec![(Resource::Cpu, folder.to_owned())];
        let account = Some(folder.to_owned());
        CpuFiles::open(&CgroupParentFolders { first, account, ..CgroupParentFolders::default() })
            .unwrap()
    }

    #[test]
    fn a_group_gets_no_more_than_those_around_it_leave_and_says_so() {
        let (_root, folder) = groups(&["-1\n", "20000\n", "50000\n", "-1\n"]);
        let asked = |period_us| Some(Bandwidth { quota_us: Some(1_000), period_us });
        let mut files = files(&folder);
        files.limit(400).unwrap();
        assert_eq!((files.around(), files.asked), (Some(200), asked(5_000)));
        files.limit(150).unwrap();
        assert_eq!((files.around(), files.asked), (None, asked(6_667)));
    }

    #[test]
    fn a_quota_that_somebody_else_has_lifted_is_set_again_and_named() {
        let (_root, folder) = groups(&["-1\n"]);
        let mut files = files(&folder);
        files.limit(250).unwrap();
        // The kernel reads what is written as a whole; these are ordinary files.
        fs::write(folder.join("cpu.cfs_quota_us"), "1250\n").unwrap();
        fs::write(folder.join("cpu.cfs_period_us"), "5000\n").unwrap();
        assert_eq!(files.correct(), None);
        fs::write(folder.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        let said = files.correct().unwrap();
        assert!(said.contains("changed to `-1 5000` from `1250 5000`, and it was set"), "{said}");
    }
}
