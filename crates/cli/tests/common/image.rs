//! Images that tests make of programs of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use windtunnel_image::Sha256Digest;

use super::{find_program, must};

/// An image that is being made: layers as tar files.
pub(crate) struct ImageBuilder<'a> {
    /// Where it is written to, for the user whose folder that is.
    pub(super) target: &'a Path,
    pub(super) folder: tempfile::TempDir,
    pub(super) layers: Vec<Vec<u8>>,
    /// What it is for, if it is one of several platforms.
    pub(super) architecture: Option<&'static str>,
}

/// The files of a layer that is being made.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Files(folder)
    }

    /// Copies programs of this machine with the libraries that they are linked with.
    pub(crate) fn programs(self, names: &[&str]) -> Files {
        let mut files = BTreeSet::new();
        for name in names {
            let program = find_program(name).unwrap_or_else(|| PathBuf::from(name));
            let linked = Command::new("ldd").arg(&program).output().unwrap();
            let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
            let words = linked.split_ascii_whitespace().filter(|word| word.starts_with('/'));
            files.extend(words.map(PathBuf::from));
            files.insert(program);
        }
        for file in files {
            self.put(&file, &fs::read(&file).unwrap(), 0o755);
        }
        self
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Files {
        self.put(Path::new(path), text.as_bytes(), 0o644);
        self
    }

    pub(super) fn put(&self, path: &Path, bytes: &[u8], mode: u32) {
        let path = self.0.path().join(path.strip_prefix("/").unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The folder that is to be the root of it.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl<'a> ImageBuilder<'a> {
    pub(crate) fn new(target: &'a Path) -> ImageBuilder<'a> {
        let folder = tempfile::tempdir().unwrap();
        ImageBuilder { target, folder, layers: Vec::new(), architecture: None }
    }

    /// A layer of files that all belong to one user of the image.
    pub(crate) fn layer(mut self, files: &Files, owner: u32) -> ImageBuilder<'a> {
        let path = self.folder.path().join("layer.tar");
        let owner = [format!("--owner={owner}"), format!("--group={owner}")];
        let mut tar = Command::new("tar");
        tar.args(["--numeric-owner", "--sort=name", "--mtime=@0"]).args(owner);
        must(tar.arg("-C").arg(files.path()).arg("-cf").arg(&path).arg("."));
        self.layers.push(fs::read(path).unwrap());
        self
    }

    /// Writes it as a tar file of an OCI layout.
    pub(crate) fn write(&self, name: &str, config: &Value) -> PathBuf {
        let layout = self.folder.path().join("layout");
        let _ = fs::remove_dir_all(&layout);
        self.layout(&layout, config, |_| ());
        let path = self.target.join(name);
        must(Command::new("tar").arg("-C").arg(&layout).arg("-cf").arg(&path).arg("."));
        let owner = fs::metadata(self.target).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        path
    }

    /// Writes it as the folder of an OCI layout; something may be done to its manifest.
    pub(super) fn layout(&self, layout: &Path, config: &Value, damage: impl Fn(&mut Value)) {
        fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
        let blob = |kind: &str, bytes: &[u8]| {
            let digest = Sha256Digest::of(bytes);
            fs::write(layout.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
            let kind = format!("application/vnd.oci.image.{kind}");
            json!({"mediaType": kind, "digest": digest.to_string(), "size": bytes.len()})
        };
        let layers: Vec<Value> =
            self.layers.iter().map(|layer| blob("layer.v1.tar", layer)).collect();
        let ids: Vec<String> =
            self.layers.iter().map(|layer| Sha256Digest::of(layer).to_string()).collect();
        let own = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            arch => arch,
        };
        let config = json!({
            "architecture": self.architecture.unwrap_or(own),
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": ids},
        });
        let config = blob("config.v1+json", config.to_string().as_bytes());
        let mut manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
        damage(&mut manifest);
        let mut manifest = blob("manifest.v1+json", manifest.to_string().as_bytes());
        manifest["annotations"] = json!({"org.opencontainers.image.ref.name": "latest"});
        let mut manifests = Vec::new();
        if let Some(architecture) = self.architecture {
            manifest["platform"] = json!({"os": "linux", "architecture": architecture});
            let before = fs::read(layout.join("index.json")).unwrap_or_default();
            let before: Value = serde_json::from_slice(&before).unwrap_or_default();
            manifests.extend(before["manifests"].as_array().cloned().unwrap_or_default());
        }
        manifests.push(manifest);
        let index = json!({"schemaVersion": 2, "manifests": manifests});
        fs::write(layout.join("index.json"), index.to_string()).unwrap();
        fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    }
}
