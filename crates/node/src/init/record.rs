//! Files in memory of the node's own, by which its programs leave records and declarations: the
//! library that they load, and regions that they share with the host process, one of records of their
//! calls, and one of datagrams that they declare, of sockets that several programs have.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windtunnel_sys::mount;

use super::setup::InitSetup;
use crate::message::{NodeSetupFailure, NodeSetupStage};
use crate::node_set::recording::ProgramRecordingSetup;

/// Where programs find the files, and which there are.
#[derive(Debug, Clone)]
pub(super) struct ProgramRecordingFiles {
    place: PathBuf,
    calls: bool,
    /// The number of what is no program of the node, if programs declare what they send.
    senders: Option<usize>,
}

/// Mounts those that a node needs at their place: where programs find them, and the regions, which
/// are empty, that of calls first. Without that of senders a run goes on.
pub(super) fn mount(
    setup: &InitSetup<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<(ProgramRecordingFiles, Vec<OwnedFd>)>, NodeSetupFailure> {
    let Some(recorded) = setup.recorded else { return Ok(None) };
    let senders = recorded.has_senders(setup.id).then(|| setup.node().programs.len());
    let left =
        ProgramRecordingFiles { place: recorded.place.clone(), calls: recorded.calls, senders };
    if !left.calls && left.senders.is_none() {
        return Ok(None);
    }
    match make(recorded, &left) {
        Ok(files) => Ok(Some((left, files))),
        Err(error) if left.calls => Err(NodeSetupFailure {
            stage: NodeSetupStage::Mounts,
            message: format!(
                "cannot show the files for recording at {}: {error}",
                recorded.place.display()
            ),
            hint: Some("write `record: off`, or leave `--record` out".into()),
        }),
        Err(error) => {
            notes.push(format!("programs that share a socket are not distinguished: {error}"));
            Ok(None)
        }
    }
}

fn make(
    recorded: &ProgramRecordingSetup,
    left: &ProgramRecordingFiles,
) -> io::Result<Vec<OwnedFd>> {
    mount::tmpfs(&recorded.place, "mode=755")?;
    let library = library(&recorded.place);
    fs::write(&library, recorded.library)?;
    // A node's programs may run as other users, whatever the umask is.
    fs::set_permissions(&library, Permissions::from_mode(0o755))?;
    let calls = left.calls.then(|| region(&recorded.place));
    let senders = left.senders.map(|_| senders(&recorded.place));
    let file = |path: PathBuf| -> io::Result<OwnedFd> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.set_permissions(Permissions::from_mode(0o666))?;
        Ok(file.into())
    };
    calls.into_iter().chain(senders).map(file).collect()
}

/// The library below the place of the files.
pub(crate) fn library(place: &Path) -> PathBuf {
    place.join("libwindtunnel.so")
}

fn region(place: &Path) -> PathBuf {
    place.join("region")
}

fn senders(place: &Path) -> PathBuf {
    place.join("senders")
}

impl ProgramRecordingFiles {
    /// The variables of one of the node's programs (`None`: another one), in addition to its own, of
    /// which `preload` is one.
    pub(super) fn variables(
        &self,
        preload: Option<&OsStr>,
        program: Option<usize>,
    ) -> Vec<(OsString, OsString)> {
        let place = &self.place;
        let mut list = preload.unwrap_or_default().to_owned();
        if !list.as_bytes().trim_ascii().is_empty() {
            list.push(":");
        }
        list.push(library(place));
        let mut variables = vec![(PRELOAD.into(), list)];
        if self.calls {
            variables.push((REGION.into(), region(place).into()));
        }
        if let Some(rest) = self.senders {
            let mut value = OsString::from(format!("{}:", program.unwrap_or(rest)));
            value.push(senders(place));
            variables.push((SENDS.into(), value));
        }
        variables
    }
}

/// Of ld.so(8).
pub(super) const PRELOAD: &str = "LD_PRELOAD";
/// Where the library finds the region.
const REGION: &str = "WINDTUNNEL_RECORD";
/// Where it finds the region of senders, behind the number of the program and a colon.
const SENDS: &str = "WINDTUNNEL_SENDS";

/// A folder that can be covered in every node without hiding anything, and that every user may
/// enter; `None`: this machine has none.
///
/// The kernel keeps an empty folder for line disciplines that no driver has used since 2.6.
#[must_use]
pub(crate) fn place() -> Option<PathBuf> {
    let is_empty = |path: &Path| {
        let enterable = fs::symlink_metadata(path)
            .is_ok_and(|about| about.is_dir() && about.permissions().mode() & 0o005 == 0o005);
        enterable && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
    };
    PLACES.iter().map(PathBuf::from).find(|path| is_empty(path))
}

const PLACES: [&str; 4] = ["/proc/tty/ldisc", "/media", "/mnt", "/srv"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_own_preload_libraries_stay_in_front() {
        let left = ProgramRecordingFiles { place: "/p".into(), calls: true, senders: None };
        let list = |own: Option<&str>| {
            let variables = left.variables(own.map(OsStr::new), None);
            let [(name, list), region] = &variables[..] else { panic!("{variables:?}") };
            assert_eq!((name.to_str(), region.1.to_str()), (Some("LD_PRELOAD"), Some("/p/region")));
            list.clone().into_string().unwrap()
        };
        assert_eq!(list(None), "/p/libwindtunnel.so");
        assert_eq!(list(Some("")), "/p/libwindtunnel.so");
        assert_eq!(list(Some("/a.so b.so")), "/a.so b.so:/p/libwindtunnel.so");
    }

    #[test]
    fn programs_that_say_what_they_send_have_numbers() {
        let left = ProgramRecordingFiles { place: "/p".into(), calls: false, senders: Some(3) };
        let last = |program| left.variables(None, program).pop().unwrap();
        let expected = |value: &str| (OsString::from("WINDTUNNEL_SENDS"), OsString::from(value));
        assert_eq!(last(Some(1)), expected("1:/p/senders"));
        assert_eq!(last(None), expected("3:/p/senders"));
    }
}
