//! The files of a part that is over, copied into a folder. Their names come from another machine,
//! which may be hostile: [`FetchedRunMessage::File`] is refused unless its path is plain
//! (`plain_path`), and files are made relative to the open folder, through no symbolic link, each
//! once.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use quinn::RecvStream;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::client::{AgentClient, AgentClientError};
use crate::protocol::answers::{AgentAnswer, FetchedRunMessage, no_answer};
use crate::protocol::{ANSWER_BYTES_MAX, AgentRequest};
use crate::stream;

impl AgentClient {
    /// Copies the files of a part that is over into `folder`, which is made.
    ///
    /// # Errors
    /// If there is no such part, the agent has gone, or a file cannot be written.
    pub fn fetch(&self, run: u64, folder: &Path) -> Result<(), AgentClientError> {
        let fetching = async {
            fs::create_dir_all(folder)?;
            let folder = OwnedFd::from(File::open(folder)?);
            let (mut to, mut from) = self.connection().open_bi().await?;
            stream::send(&mut to, AgentRequest::fetch(run).message()).await?;
            to.finish().map_err(io::Error::other)?;
            for _ in 0..FILES_MAX {
                let reply = stream::receive(&mut from, ANSWER_BYTES_MAX).await?;
                match FetchedRunMessage::of(reply).map_err(no_answer)? {
                    FetchedRunMessage::File { path, bytes, executable } => {
                        let file =
                            create(&folder, Path::new(&path), executable).map_err(|error| {
                                io::Error::new(error.kind(), format!("{path}: {error}"))
                            })?;
                        save(&mut from, file, bytes).await?;
                    }
                    FetchedRunMessage::End => return Ok(()),
                }
            }
            Err(io::Error::other(format!("it has more than {FILES_MAX} files")))
        };
        self.block_on(fetching)
    }
}

/// A new file below `folder`, with the folders before it.
fn create(folder: &OwnedFd, path: &Path, executable: bool) -> io::Result<File> {
    let strange =
        || io::Error::new(ErrorKind::InvalidData, "it is not the name of a file of a run");
    let names: Option<Vec<_>> = path
        .components()
        .map(|part| if let Component::Normal(name) = part { Some(name) } else { None })
        .collect();
    let names = names.ok_or_else(strange)?;
    let (file, folders) = names.split_last().ok_or_else(strange)?;
    let mut at = folder.try_clone()?;
    for name in folders {
        match mkdirat(&at, *name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = openat(&at, *name, flags, Mode::empty())?;
    }
    let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(&at, *file, flags, mode)?))
}

async fn save(from: &mut RecvStream, mut file: File, bytes: u64) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let chunk = from.read_chunk(most, true).await?;
        let chunk = chunk.ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))?;
        io::Write::write_all(&mut file, &chunk.bytes)?;
        left = left.saturating_sub(chunk.bytes.len() as u64);
    }
    Ok(())
}

/// Files of one part.
const FILES_MAX: usize = 1 << 20;
const PIECE: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain_path::{NAME_BYTES_MAX, PATH_BYTES_MAX, is_plain};

    #[test]
    fn a_file_is_made_below_its_folder_once_and_through_no_link() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let folder = OwnedFd::from(File::open(root.path()).unwrap());
        create(&folder, Path::new("nodes/a/stdout"), false).unwrap();
        assert!(root.path().join("nodes/a/stdout").is_file());
        create(&folder, Path::new("nodes/a/stdout"), false).unwrap_err();
        std::os::unix::fs::symlink(outside.path(), root.path().join("way")).unwrap();
        create(&folder, Path::new("way/x"), false).unwrap_err();
        for wrong in ["../x", "/x", ""] {
            create(&folder, Path::new(wrong), false).unwrap_err();
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_is_executable_if_it_was_and_the_longest_name_is_taken() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let folder = OwnedFd::from(File::open(root.path()).unwrap());
        let longest = "x".repeat(NAME_BYTES_MAX);
        assert!(is_plain(&longest) && !is_plain(&format!("{longest}x")));
        for (name, executable) in [("a/run", true), ("a/data", false), (&longest, false)] {
            create(&folder, Path::new(name), executable).unwrap();
            let mode = fs::metadata(root.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o100 != 0, executable, "{name}");
        }
        let deepest = format!("{}y", "x/".repeat((PATH_BYTES_MAX - 1) / 2));
        assert_eq!((deepest.len(), is_plain(&deepest)), (PATH_BYTES_MAX, true));
        assert!(!is_plain(&format!("{deepest}y")));
    }
}
