use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;
use crate::testing::{TestLayerEntry, file, other, tar};

struct Unpacked {
    folder: tempfile::TempDir,
    left_out: LeftOut,
}

impl Unpacked {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("layer").join(name)
    }
}

/// With a file beside the layer's folder that no layer may reach.
fn unpacked(entries: &[TestLayerEntry]) -> Result<Unpacked, EntryError> {
    let folder = tempfile::tempdir().unwrap();
    let layer = folder.path().join("layer");
    fs::create_dir(&layer).unwrap();
    fs::write(folder.path().join("beside"), "untouched").unwrap();
    let result = unpack(&tar(entries)[..], &layer, &[], &ImageOwnerMapping::One);
    assert_eq!(fs::read_to_string(folder.path().join("beside")).unwrap(), "untouched");
    let left_out = result?;
    Ok(Unpacked { folder, left_out })
}

fn refusal(entries: &[TestLayerEntry]) -> String {
    match unpacked(entries).map(|it| it.left_out) {
        Err(EntryError::Refused(entry, why)) => format!("{entry} {why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_folders_and_links_are_as_the_layer_says() {
    let mut tool = file("bin/tool", b"#!");
    tool.mode = 0o4755;
    let entries = [
        other("bin/", EntryType::Directory, ""),
        tool,
        other("bin/same", EntryType::Link, "bin/tool"),
        other("sbin", EntryType::Symlink, "bin"),
        file("sbin/more", b"x"),
        other("run/pipe", EntryType::Fifo, ""),
    ];
    let made = unpacked(&entries).unwrap();
    let tool = fs::metadata(made.path("bin/tool")).unwrap();
    assert_eq!((tool.permissions().mode() & 0o7777, tool.mtime()), (0o4755, 1_000_000_000));
    assert_eq!(fs::metadata(made.path("bin/same")).unwrap().ino(), tool.ino());
    assert_eq!(fs::read_to_string(made.path("bin/more")).unwrap(), "x", "by the link's target");
    assert_eq!(fs::metadata(made.path("bin")).unwrap().mtime(), 1_000_000_000);
    assert_eq!(made.left_out, LeftOut::default());
}

#[test]
fn entries_that_lead_out_of_the_layer_are_refused() {
    assert_eq!(refusal(&[file("../beside", b"!")]), "../beside leads out of its folder by `..`");
    assert_eq!(
        refusal(&[file("a/../../beside", b"!")]),
        "a/../../beside leads out of its folder by `..`"
    );
    assert_eq!(refusal(&[file("/etc/passwd", b"!")]), "/etc/passwd is an absolute path");
    let link = other("x", EntryType::Link, "../beside");
    assert_eq!(
        refusal(&[link]),
        "x is a link to `../beside`, which leads out of its folder by `..`"
    );
}

#[test]
fn a_symbolic_link_out_of_the_layer_is_not_followed() {
    // The target is looked for below the layer's root, and made there.
    let out = [other("out", EntryType::Symlink, "../"), file("out/beside", b"!")];
    let made = unpacked(&out).unwrap();
    assert_eq!(fs::read_to_string(made.path("beside")).unwrap(), "!");
    // A link in place of a file is replaced, and not written through.
    let through = [other("x", EntryType::Symlink, "../beside"), file("x", b"!")];
    let made = unpacked(&through).unwrap();
    assert!(made.path("x").symlink_metadata().unwrap().is_file());
    // One to nowhere leads to a folder below the layer's root, which is made (as umoci has it).
    let nowhere = [other("x", EntryType::Symlink, "/../no/where"), file("x/y", b"!")];
    let made = unpacked(&nowhere).unwrap();
    assert_eq!(fs::read_to_string(made.path("no/where/y")).unwrap(), "!");
    // A hard link to a link is a link, and leads nowhere else.
    let linked = [
        other("s", EntryType::Symlink, "../beside"),
        other("h", EntryType::Link, "s"),
        file("h", b"!"),
    ];
    unpacked(&linked).unwrap();
}

#[test]
fn device_nodes_are_refused_and_those_of_dev_are_left_out() {
    let device = other("etc/disk", EntryType::Block, "");
    assert_eq!(refusal(&[device]), "etc/disk is a device node, which no node gets");
    let made = unpacked(&[other("dev/null", EntryType::Char, "")]).unwrap();
    assert!(!made.path("dev/null").exists());
    assert_eq!(made.left_out.devices, 1);
}

#[test]
fn a_file_that_claims_to_be_larger_than_the_disk_is_refused_before_it_is_written() {
    let mut bytes = tar(&[file("huge", b"")]);
    // 2^62 bytes in base 256, as GNU tar writes large numbers.
    bytes[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0]);
    let sum: u32 =
        bytes[..148].iter().chain(&[b' '; 8]).chain(&bytes[156..512]).map(|b| u32::from(*b)).sum();
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let Err(EntryError::Refused(entry, why)) =
        unpack(&bytes[..], folder.path(), &[], &ImageOwnerMapping::One)
    else {
        panic!("it was unpacked");
    };
    assert_eq!(entry, "huge");
    assert!(why.starts_with("claims to have 4611686018427387904 bytes"), "{why}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_layer_that_ends_too_early_is_an_error() {
    let whole = tar(&[file("a", &[7; 5000])]);
    let folder = tempfile::tempdir().unwrap();
    let result = unpack(&whole[..3000], folder.path(), &[], &ImageOwnerMapping::One);
    assert!(matches!(result, Err(EntryError::Read(_))));
}

#[test]
fn whiteouts_become_those_of_overlayfs() {
    let entries = [
        file("a/.wh.gone", b""),
        file("b/.wh..wh..opq", b""),
        file("b/new", b""),
        file("c/.wh.replaced", b""),
        other("c/replaced/", EntryType::Directory, ""),
        file(".wh..wh.plnk", b""),
    ];
    let below = [file("a/gone", b""), file("b/old", b""), file("c/replaced/x", b"")];
    let Some(layers) = above::Layers::unpack(&[&below, &entries]) else { return };
    assert!(is_whiteout_at(&layers.top("a/gone")));
    assert!(is_opaque(&layers.top("b")) && layers.top("b/new").exists());
    assert!(is_opaque(&layers.top("c/replaced")), "nothing of what was there shows");
    assert!(!layers.top(".wh..wh.plnk").exists());
}

#[test]
fn owners_that_cannot_be_kept_are_counted() {
    let mut owned = file("a", b"");
    owned.owner = 33;
    let made = unpacked(&[owned, file("b", b"")]).unwrap();
    assert_eq!(made.left_out, LeftOut { owners: 1, ..LeftOut::default() });
}

mod above;
mod sparse;
