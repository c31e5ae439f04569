//! Layers above others.

use super::*;
use crate::merged::MergedLayerTree;

pub(super) struct Layers {
    folder: tempfile::TempDir,
    /// The topmost first.
    paths: Vec<PathBuf>,
}

impl Layers {
    /// Unpacks layers onto each other, the lowest first; `None` where the file system has no extended
    /// attributes of users.
    ///
    /// Not on tmpfs before Linux 6.6, for example.
    pub(super) fn unpack(layers: &[&[TestLayerEntry]]) -> Option<Layers> {
        let folder = tempfile::tempdir().unwrap();
        let mut paths: Vec<PathBuf> = Vec::new();
        for (number, entries) in layers.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            match unpack(&tar(entries)[..], &path, &paths, &ImageOwnerMapping::One) {
                Err(EntryError::Failed(_, error)) if error.raw_os_error() == Some(95) => {
                    return None;
                }
                other => drop(other.unwrap()),
            }
            paths.insert(0, path);
        }
        Some(Layers { folder, paths })
    }

    pub(super) fn top(&self, name: &str) -> PathBuf {
        self.paths[0].join(name)
    }

    /// All as one tree.
    fn copy(&self) -> PathBuf {
        let target = self.folder.path().join("copy");
        fs::create_dir(&target).unwrap();
        MergedLayerTree::new(self.paths.clone()).copy(Path::new(""), &target).unwrap();
        target
    }
}

fn folder(name: &'static str, mode: u32) -> TestLayerEntry {
    TestLayerEntry { mode, ..other(name, EntryType::Directory, "") }
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn folders_without_an_entry_are_as_the_layers_below_have_them() {
    let lower = [
        folder("./", 0o711),
        folder("tmp", 0o1777),
        folder("secret", 0o700),
        folder("secret/deep", 0o2750),
        folder("gone", 0o700),
    ];
    let middle = [file("tmp/a", b"")];
    let upper = [
        file("secret/deep/key", b""),
        file("tmp/b", b""),
        file(".wh.gone", b""),
        file("gone/x", b""),
        file("new/deep/x", b""),
    ];
    let Some(layers) = Layers::unpack(&[&lower, &middle, &upper]) else { return };
    let top = |name: &str| mode(layers.top(name));
    assert_eq!(
        (top(""), top("tmp"), top("secret"), top("secret/deep")),
        (0o711, 0o1777, 0o700, 0o2750)
    );
    assert_eq!(top("gone"), 0o755, "what was taken away does not count");
    assert_eq!((top("new"), top("new/deep")), (0o755, 0o755));
    let time = |name: &str| fs::metadata(layers.top(name)).unwrap().mtime();
    assert_eq!((time("tmp"), time("secret/deep")), (1_000_000_000, 1_000_000_000));
    let copy = layers.copy();
    assert_eq!((mode(copy.join("tmp")), mode(copy.join("secret"))), (0o1777, 0o700));
}

#[test]
fn an_opaque_folder_without_an_entry_keeps_the_attributes_of_the_one_below() {
    let lower = [folder("d", 0o711), file("d/old", b"")];
    let upper = [file("d/.wh..wh..opq", b""), file("d/new", b"")];
    let Some(layers) = Layers::unpack(&[&lower, &upper]) else { return };
    let copy = layers.copy();
    assert_eq!(mode(copy.join("d")), 0o711);
    assert!(!copy.join("d/old").exists() && copy.join("d/new").exists());
}

#[test]
fn of_two_entries_of_a_layer_the_later_one_holds() {
    let lower = [folder("a", 0o711), file("a/old", b""), folder("b", 0o711), file("b/old", b"")];
    let upper = [
        // An opaque folder, then a file in its place.
        file("a/.wh..wh..opq", b""),
        file("a/new", b""),
        file("a", b"a file"),
        // A file, which takes the place of the folder below, then a folder in its own.
        file("b", b"a file"),
        folder("b", 0o700),
        file("b/new", b""),
    ];
    let Some(layers) = Layers::unpack(&[&lower, &upper]) else { return };
    let copy = layers.copy();
    assert_eq!(fs::read(copy.join("a")).unwrap(), b"a file");
    assert_eq!(mode(copy.join("b")), 0o700);
    assert!(!copy.join("b/old").exists() && copy.join("b/new").exists());
}

#[test]
fn a_folder_that_is_taken_away_is_gone_whatever_else_the_layer_hides_in_it() {
    let lower = [
        file("a/x", b""),
        file("a/d/x", b""),
        file("b/x", b""),
        folder("c/d", 0o700),
        file("e/f/x", b""),
    ];
    let upper = [
        file("a/.wh.x", b""),
        file("a/d/.wh..wh..opq", b""),
        file(".wh.a", b""),
        file("b/.wh.x", b""),
        file("b/new", b""),
        file(".wh.b", b""),
        folder("c/e", 0o700),
        file(".wh.c", b""),
        file("e/f/.wh.x", b""),
        file("e/.wh..wh..opq", b""),
    ];
    let Some(layers) = Layers::unpack(&[&lower, &upper]) else { return };
    let copy = layers.copy();
    assert!(!copy.join("a").exists());
    assert!(copy.join("b/new").exists() && !copy.join("b/x").exists(), "its own stays");
    assert!(copy.join("c/e").exists() && !copy.join("c/d").exists(), "a folder as well");
    assert!(copy.join("e").exists() && !copy.join("e/f").exists(), "the same of all that is in it");
    // Where no layer below has a folder, overlayfs lists its whiteouts.
    assert!(fs::symlink_metadata(layers.top("b/x")).is_err());
}

#[test]
fn a_folder_that_is_a_link_in_a_lower_layer_is_where_the_link_leads() {
    let lower = [folder("usr/lib", 0o750), other("lib", EntryType::Symlink, "usr/lib")];
    let upper = [file("lib/libx.so", b"x"), file("lib/.wh.liby.so", b"")];
    let Some(layers) = Layers::unpack(&[&lower, &upper]) else { return };
    assert!(!layers.top("lib").exists());
    assert_eq!(mode(layers.top("usr/lib")), 0o750);
    let copy = layers.copy();
    assert!(copy.join("lib").is_symlink());
    assert_eq!(fs::read_to_string(copy.join("lib/libx.so")).unwrap(), "x");
}

#[test]
fn a_hard_link_into_a_lower_layer_is_a_second_name_of_the_same_file() {
    let mut tool = file("bin/tool", b"#!");
    tool.mode = 0o4755;
    let lower = [folder("bin", 0o711), tool, other("sbin", EntryType::Symlink, "bin")];
    let upper = [other("again", EntryType::Link, "sbin/tool")];
    let Some(layers) = Layers::unpack(&[&lower, &upper]) else { return };
    let copy = layers.copy();
    assert_eq!(fs::read_to_string(copy.join("again")).unwrap(), "#!");
    assert_eq!((mode(copy.join("again")), mode(copy.join("bin"))), (0o4755, 0o711));
    let number = |name: &str| fs::metadata(copy.join(name)).unwrap().ino();
    assert_eq!(number("again"), number("bin/tool"));
}

#[test]
fn a_hard_link_to_what_no_layer_has_is_refused() {
    let link = other("x", EntryType::Link, "gone");
    let lower = [file("gone", b"")];
    let hidden = [file(".wh.gone", b""), link];
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("1"), folder.path().join("2"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    unpack(&tar(&lower)[..], &one, &[], &ImageOwnerMapping::One).unwrap();
    match unpack(&tar(&hidden)[..], &two, &[one], &ImageOwnerMapping::One) {
        Err(EntryError::Refused(entry, why)) => {
            assert_eq!(entry, "x");
            assert_eq!(why, "is a link to `gone`, which neither this layer nor one below it has");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whiteout_of_what_is_not_there_makes_nothing() {
    let Some(layers) = Layers::unpack(&[&[file("a", b"")], &[file("no/such/.wh.file", b"")]])
    else {
        return;
    };
    assert_eq!(fs::read_dir(layers.top("")).unwrap().count(), 0);
}
