//! Which files of records there are in the folder of a run.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use windtunnel_sys::below::FolderHandle;

/// The files of records of a run, by name, as paths below its folder; those of other machines lie in a
/// folder each.
///
/// # Errors
/// If a folder cannot be read, or has more in it than any run leaves.
pub fn record_files(run: &FolderHandle) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    match run.folder(FOLDER) {
        Ok(folder) => collect(&folder, Path::new(FOLDER), DEPTH_MAX, &mut found)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    found.sort();
    Ok(found)
}

fn collect(
    folder: &FolderHandle,
    path: &Path,
    depth: u32,
    found: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in folder.entries(ENTRIES_MAX)? {
        let inner = path.join(&entry.name);
        if !entry.is_folder {
            found.extend(Some(inner).filter(|file| file.extension().is_some_and(|it| it == "wtr")));
        } else if depth > 0 {
            collect(&folder.folder(&entry.name)?, &inner, depth - 1, found)?;
        }
    }
    Ok(())
}

const FOLDER: &str = "records";
/// A folder for each machine.
const DEPTH_MAX: u32 = 3;
const ENTRIES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_of_all_machines_are_found_by_name_and_links_are_not() {
        let root = tempfile::tempdir().unwrap();
        let records = root.path().join("records");
        assert_eq!(
            record_files(&FolderHandle::open(root.path()).unwrap()).unwrap(),
            [] as [PathBuf; 0]
        );
        fs::create_dir_all(records.join("b")).unwrap();
        for name in ["0002.wtr", "0001.wtr", "b/0001.wtr", "note"] {
            fs::write(records.join(name), "").unwrap();
        }
        symlink("..", records.join("up")).unwrap();
        symlink("0001.wtr", records.join("0003.wtr")).unwrap();
        let found = record_files(&FolderHandle::open(root.path()).unwrap()).unwrap();
        let names: Vec<&str> = found.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(names, ["records/0001.wtr", "records/0002.wtr", "records/b/0001.wtr"]);
    }
}
