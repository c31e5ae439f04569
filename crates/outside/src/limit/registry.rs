//! The limits of this user: a file for each, in a folder that is the user's own. A command under a
//! limit holds a shared lock of its file (flock(2)). A process that finds a file without a lock
//! removes it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use windtunnel_budget::pacing::{PacingBudgetScope, TransferDirection};
use windtunnel_model::ResourceAmounts;
use windtunnel_sys::limited::MappedPacingRegion;
use windtunnel_sys::{clock, process};

use super::control::{self, LimitChangeRequest, LimitControlThread};
use super::error::LimitError;
use super::holding::CommandLimitEnforcer;
use super::note::{LimitGroupRecord, LimitGroupRecordFile};
use super::options::CommandLimitOptions;
use super::resources::{CommandCpuSample, CommandResourceUsage, shared};
use super::status::{CommandLimitStatus, name_of};
use crate::error::system;
use crate::own_folder::sweep_all;

/// A limit that this process has a part in.
#[derive(Debug)]
pub(super) struct LimitRegistryEntry {
    id: String,
    path: PathBuf,
    /// Locked.
    file: File,
    region: MappedPacingRegion,
}

impl LimitRegistryEntry {
    /// The limit of a group, or a new one.
    pub(super) fn join(wanted: &CommandLimitOptions) -> Result<LimitRegistryEntry, LimitError> {
        let folder = folder().map_err(system("make a folder for limits"))?;
        LimitRegistryEntry::join_in(&folder, wanted)
    }

    fn join_in(
        folder: &Path,
        wanted: &CommandLimitOptions,
    ) -> Result<LimitRegistryEntry, LimitError> {
        let id = wanted.group.clone().unwrap_or_else(|| std::process::id().to_string());
        let path = folder.join(&id);
        let (file, is_new) = locked(&path).map_err(system("share the file of a limit"))?;
        let failed = system("map the file of a limit");
        let region = if is_new {
            MappedPacingRegion::create_in(&file)
        } else {
            MappedPacingRegion::open(&file)
        };
        let region = region.map_err(failed)?;
        let per = wanted.per.unwrap_or(PacingBudgetScope::Tree);
        if is_new {
            let rates = wanted.rates.map(|rate| rate.unwrap_or(0));
            region.begin(clock::monotonic_ns(), 0, per, rates);
        } else if wanted.per.is_some_and(|wanted| wanted != region.per()) {
            let (is, wanted) = (name_of(region.per()), name_of(per));
            return Err(LimitError::Per { name: id, is, wanted });
        } else {
            change(&region, wanted.rates);
        }
        if is_new {
            forget(&path);
        }
        Ok(LimitRegistryEntry { id, path, file, region })
    }

    /// Where commands of this name say what they share of the kernel; `None`: it has no name.
    pub(super) fn shelf(&self) -> Option<LimitGroupRecordFile> {
        self.id.parse::<u32>().is_err().then(|| LimitGroupRecordFile::of(&self.path))
    }

    /// Whether commands of this name are in a control group.
    pub(super) fn has_group(&self) -> bool {
        self.shelf().is_some_and(|shelf| shelf.has_note())
    }

    /// Says to other commands what is shared, and to those that run what is new of it.
    pub(super) fn publish(
        &mut self,
        holding: &CommandLimitEnforcer,
        newer: &ResourceAmounts,
    ) -> Result<(), LimitError> {
        if let Some((address, shelf)) = holding.address().zip(self.shelf()) {
            if shelf.has_note() {
                let resources = shared(newer);
                let request = LimitChangeRequest { resources, rates: false };
                // A process that does not answer goes on with the same group.
                let _ = control::ask(self.folder(), &self.id, &request);
            } else {
                let resources = shared(&holding.asked());
                let note = LimitGroupRecord { address, resources, lapses: Vec::new() };
                shelf.write(&note).map_err(system("share a control group"))?;
            }
        }
        Ok(self.admit_others().map_err(system("share the file of a limit"))?)
    }

    /// Others have waited for this.
    fn admit_others(&self) -> io::Result<()> {
        Ok(flock(&self.file, FlockOperation::LockShared)?)
    }

    /// Where this process answers for the limit.
    pub(super) fn socket(&self) -> PathBuf {
        control::socket(self.folder(), &self.id, std::process::id())
    }

    /// Ends what holds the command. Returns what it has had.
    pub(super) fn end(
        &self,
        control: LimitControlThread,
        began_ns: u64,
    ) -> (CommandResourceUsage, Vec<CommandCpuSample>) {
        let is_last = flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let ended = control.finish().map(|holding| holding.end(is_last, began_ns));
        ended.unwrap_or_default()
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The region, mapped once more: for a thread.
    pub(super) fn region_again(&self) -> io::Result<MappedPacingRegion> {
        MappedPacingRegion::open(&self.file)
    }

    pub(super) fn status(&self, used: CommandResourceUsage) -> CommandLimitStatus {
        CommandLimitStatus::of(self.id.clone(), &self.region, used)
    }
}

impl Drop for LimitRegistryEntry {
    fn drop(&mut self) {
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Another process removes it otherwise.
            let _ = fs::remove_file(&self.path);
            forget(&self.path);
        }
    }
}

/// Removes what goes with a limit that is no more: its note, and sockets of processes that were
/// killed.
fn forget(limit: &Path) {
    // Most have none.
    let _ = fs::remove_file(LimitGroupRecord::path(limit));
    if let (Some(folder), Some(id)) = (limit.parent(), limit.file_name()) {
        control::remove_all(folder, &id.to_string_lossy());
    }
}

/// Changes a limit that there is, and says what it is now. Waits begin anew at the new rates.
///
/// # Errors
/// If there is none of this name, or what is to change cannot be.
pub fn set(
    id: &str,
    rates: [Option<u64>; 2],
    resources: &ResourceAmounts,
) -> Result<CommandLimitStatus, LimitError> {
    let found = folders().into_iter().find_map(|folder| Some((live(&folder.join(id))?, folder)));
    let (region, folder) = found.ok_or_else(|| LimitError::NoLimit(id.to_owned()))?;
    let request = LimitChangeRequest { resources: *resources, rates: rates != [None; 2] };
    let used = control::ask(&folder, id, &request);
    let used = used.map_err(|why| LimitError::Refused { id: id.to_owned(), why })?;
    change(&region, rates);
    Ok(CommandLimitStatus::of(id.to_owned(), &region, used.unwrap_or_default()))
}

/// The limits of this user under which commands run, by their names.
#[must_use]
pub fn list() -> Vec<CommandLimitStatus> {
    sweep_all();
    let mut limits: Vec<CommandLimitStatus> =
        folders().iter().flat_map(|folder| list_in(folder)).collect();
    limits.sort_by(|a, b| a.id.cmp(&b.id));
    limits
}

fn list_in(folder: &Path) -> Vec<CommandLimitStatus> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    // Those with a dot go with a limit.
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let names: Vec<String> = names.filter(|name| !name.contains('.')).collect();
    let status = |id: String| {
        let region = live(&folder.join(&id))?;
        // One that does not answer is listed all the same.
        let used = control::ask(folder, &id, &LimitChangeRequest::default()).ok().flatten();
        Some(CommandLimitStatus::of(id, &region, used.unwrap_or_default()))
    };
    names.into_iter().filter_map(status).collect()
}

fn change(region: &MappedPacingRegion, rates: [Option<u64>; 2]) {
    for (direction, rate) in TransferDirection::ALL.into_iter().zip(rates) {
        if let Some(rate) = rate.filter(|rate| *rate != region.rate_bps(direction)) {
            region.set_rate(clock::monotonic_ns(), direction, rate);
        }
    }
    // Those that wait look again at the latest when they would have gone on.
    let _ = region.wake();
}

/// Opens the file with a lock, and whether no other process has one: it is to be filled then.
fn locked(path: &Path) -> io::Result<(File, bool)> {
    loop {
        let file = options().create(true).truncate(false).mode(0o600).open(path)?;
        let is_new = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if !is_new {
            flock(&file, FlockOperation::LockShared)?;
        }
        // The last user may have removed it meanwhile.
        if is_at(&file, path) {
            return Ok((file, is_new));
        }
    }
}

/// The region of a file with a lock; a file without one is removed.
fn live(path: &Path) -> Option<MappedPacingRegion> {
    let file = options().open(path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        if is_at(&file, path) {
            // Another process may have removed it meanwhile.
            let _ = fs::remove_file(path);
            forget(path);
        }
        return None;
    }
    MappedPacingRegion::open(&file).ok()
}

fn is_at(file: &File, path: &Path) -> bool {
    let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => same(open, named),
        _ => false,
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// The folder for new limits.
fn folder() -> io::Result<PathBuf> {
    let mut failure = io::ErrorKind::NotFound.into();
    for place in places() {
        match DirBuilder::new().mode(0o700).create(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => failure = error,
            _ if is_private(&place) => return Ok(place),
            _ => {
                let why = format!("{} is not this user's alone", place.display());
                failure = io::Error::new(io::ErrorKind::PermissionDenied, why);
            }
        }
    }
    Err(failure)
}

/// The folders in which limits may be.
fn folders() -> Vec<PathBuf> {
    places().into_iter().filter(|place| is_private(place)).collect()
}

/// A session may know its runtime folder when another of the same user does not.
fn places() -> Vec<PathBuf> {
    let uid = process::current_user().uid;
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    let runtime = named.into_iter().chain([usual]);
    let runtime = runtime.filter(|folder| folder.is_absolute() && is_private(folder));
    let mut places: Vec<PathBuf> = runtime.map(|folder| folder.join("windtunnel-limits")).collect();
    places.dedup();
    places.push(PathBuf::from(format!("/tmp/windtunnel-limits-{uid}")));
    places
}

/// Whether a path is a folder, and no link, that only this user can change or look into.
fn is_private(path: &Path) -> bool {
    let uid = process::current_user().uid;
    fs::symlink_metadata(path)
        .is_ok_and(|data| data.is_dir() && data.uid() == uid && data.mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(rates: [Option<u64>; 2]) -> CommandLimitOptions {
        let (per, denied, resources) = (None, Vec::new(), ResourceAmounts::default());
        let group = Some("downloads".to_owned());
        CommandLimitOptions { group, per, rates, resources, connect: Vec::new(), denied }
    }

    #[test]
    fn a_group_is_one_limit_until_its_last_user_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first =
            LimitRegistryEntry::join_in(folder.path(), &wanted([Some(8_000), None])).unwrap();
        first.admit_others().unwrap();
        let second =
            LimitRegistryEntry::join_in(folder.path(), &wanted([None, Some(16_000)])).unwrap();
        let rates = |shared: &LimitRegistryEntry| {
            let status = shared.status(CommandResourceUsage::default());
            (status.send.limit_bps, status.receive.limit_bps)
        };
        assert_eq!(rates(&first), (Some(8_000), Some(16_000)));
        let path = first.path().to_owned();
        drop(first);
        assert_eq!(rates(&second), (Some(8_000), Some(16_000)));
        assert!(live(&path).is_some());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_a_killed_process_has_left_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("downloads");
        let left = File::create_new(&path).unwrap();
        let region = MappedPacingRegion::create_in(
            &OpenOptions::new().read(true).write(true).open(&path).unwrap(),
        );
        region.unwrap().begin(1, 0, PacingBudgetScope::Socket, [1, 1]);
        drop(left);
        let shared =
            LimitRegistryEntry::join_in(folder.path(), &wanted([Some(8_000), None])).unwrap();
        assert_eq!(
            (
                shared.status(CommandResourceUsage::default()).per,
                shared.status(CommandResourceUsage::default()).receive.limit_bps
            ),
            ("tree", None)
        );
        drop(shared);
        File::create_new(&path).unwrap();
        assert!(live(&path).is_none() && !path.exists());
    }

    #[test]
    fn a_group_has_one_kind_of_budgets() {
        let folder = tempfile::tempdir().unwrap();
        let first =
            LimitRegistryEntry::join_in(folder.path(), &wanted([Some(8_000), None])).unwrap();
        first.admit_others().unwrap();
        let other =
            CommandLimitOptions { per: Some(PacingBudgetScope::Socket), ..wanted([None; 2]) };
        let error = LimitRegistryEntry::join_in(folder.path(), &other).unwrap_err().to_string();
        assert_eq!(
            error,
            "the group \"downloads\" has a budget for each tree, and not for each socket"
        );
    }
}
