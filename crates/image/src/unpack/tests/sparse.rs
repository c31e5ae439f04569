//! Sparse files, as GNU tar writes them.

use std::io::{Seek, SeekFrom, Write};
use std::process::Command;

use super::*;

/// A file of 64 MiB with data at three places, and one that is a hole only.
fn originals(folder: &Path) {
    let mut file = fs::File::create(folder.join("disk")).unwrap();
    file.set_len(SIZE).unwrap();
    for (at, text) in DATA {
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(text).unwrap();
    }
    fs::File::create(folder.join("hole")).unwrap().set_len(5_000_000).unwrap();
    fs::write(folder.join("after"), "what comes behind it").unwrap();
    // With more parts than a header has room for.
    let mut many = fs::File::create(folder.join("many")).unwrap();
    for number in 0..100_u64 {
        many.seek(SeekFrom::Start(number << 16)).unwrap();
        many.write_all(&[b'm'; 4096]).unwrap();
    }
}

fn archive(arguments: &[&str], folder: &Path) -> Option<Vec<u8>> {
    let mut tar = Command::new("tar");
    tar.args(["--sparse", "-cf", "-"]).args(arguments).arg("-C").arg(folder);
    let output = tar.args(["disk", "hole", "many", "after"]).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}

fn blocks(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks()
}

#[test]
fn sparse_files_of_all_formats_have_their_content_and_their_holes() {
    let folder = tempfile::tempdir().unwrap();
    originals(folder.path());
    let formats: [&[&str]; 4] = [
        &["--format=gnu"],
        &["--format=pax", "--sparse-version=0.0"],
        &["--format=pax", "--sparse-version=0.1"],
        &["--format=pax", "--sparse-version=1.0"],
    ];
    for (number, format) in formats.into_iter().enumerate() {
        // Every Debian and Fedora has GNU tar; elsewhere there is nothing to compare with.
        let Some(bytes) = archive(format, folder.path()) else { return };
        let layer = folder.path().join(number.to_string());
        fs::create_dir(&layer).unwrap();
        unpack(&bytes[..], &layer, &[], &ImageOwnerMapping::One).unwrap();
        for name in ["disk", "hole", "many", "after"] {
            let (original, copy) = (folder.path().join(name), layer.join(name));
            assert!(fs::read(&original).unwrap() == fs::read(&copy).unwrap(), "{name}: {format:?}");
            assert!(blocks(&copy) <= blocks(&original), "{name} takes more room: {format:?}");
        }
        assert_eq!(fs::read_dir(&layer).unwrap().count(), 4, "no other names: {format:?}");
    }
}

#[test]
fn a_sparse_file_that_is_larger_than_the_disk_takes_what_its_data_takes() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("disk")).unwrap();
    // A file system that has no files of a tebibyte (ext3) has nothing to unpack.
    if file.set_len(1 << 40).is_err() {
        return;
    }
    for name in ["hole", "many", "after"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let Some(bytes) = archive(&["--format=gnu"], folder.path()) else { return };
    let layer = folder.path().join("layer");
    fs::create_dir(&layer).unwrap();
    unpack(&bytes[..], &layer, &[], &ImageOwnerMapping::One).unwrap();
    let about = fs::metadata(layer.join("disk")).unwrap();
    assert_eq!((about.len(), about.blocks()), (1 << 40, 0));
}

#[test]
fn a_map_that_does_not_fit_its_file_is_an_error() {
    let records = |map: &str, size: &str| {
        let pairs = [("GNU.sparse.map", map), ("GNU.sparse.size", size)];
        let header = crate::testing::pax(&pairs);
        let mut bytes = header;
        bytes.extend(tar(&[file("x", b"12345678")]));
        let folder = tempfile::tempdir().unwrap();
        match unpack(&bytes[..], folder.path(), &[], &ImageOwnerMapping::One) {
            Ok(_) => fs::read(folder.path().join("x")).map_err(|error| error.to_string()),
            Err(EntryError::Read(error)) => Err(error.to_string()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(records("2,4,8,4", "13").unwrap(), b"\0\x001234\0\x005678\0");
    let order = "it has a sparse file whose parts do not follow each other";
    assert_eq!(records("8,4,2,4", "20").unwrap_err(), order);
    assert_eq!(records("2,4,8,4", "11").unwrap_err(), order);
    let huge = format!("0,4,{},4", u64::MAX - 1);
    assert_eq!(records(&huge, "99").unwrap_err(), order);
    let data = "it has a sparse file whose parts are not its data";
    assert_eq!(records("2,4,8,5", "20").unwrap_err(), data);
    assert_eq!(records("2,4", "20").unwrap_err(), data);
    let malformed = "it has a malformed map of a sparse file";
    assert_eq!(records("2,4,8", "20").unwrap_err(), malformed);
    assert_eq!(records("2,x", "20").unwrap_err(), malformed);
}

const SIZE: u64 = 64 << 20;
const DATA: [(u64, &[u8]); 3] = [(0, b"first"), (10_000_000, b"middle"), (SIZE - 4, b"last")];
