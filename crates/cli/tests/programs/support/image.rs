//! Images and folders that tests make of programs of this machine.

#[path = "../../common/image.rs"]
mod made;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Lab, find_program, must};
pub(crate) use made::{Files, ImageBuilder};

impl ImageBuilder<'_> {
    /// A layer that is a tar file already.
    pub(crate) fn raw(mut self, layer: Vec<u8>) -> Self {
        self.layers.push(layer);
        self
    }

    /// It is one of several platforms of a layout.
    pub(crate) fn for_architecture(mut self, name: &'static str) -> Self {
        self.architecture = Some(name);
        self
    }

    /// Writes it as the folder of an OCI layout; something may be done to its manifest.
    pub(crate) fn write_layout(
        &self,
        name: &str,
        config: &serde_json::Value,
        damage: impl Fn(&mut serde_json::Value),
    ) {
        self.layout(&self.target.join(name), config, damage);
    }
}

impl Files {
    /// Copies a program of this machine to another place.
    pub(crate) fn copy(self, from: &Path, to: &str) -> Files {
        self.put(Path::new(to), &fs::read(from).unwrap(), 0o755);
        self
    }

    pub(crate) fn folder(self, path: &str, mode: u32) -> Files {
        let path = self.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// Gives the files to a folder of the lab instead of a layer.
    pub(crate) fn into_folder(self, lab: &Lab, name: &str) -> PathBuf {
        let target = lab.path().join(name);
        must(Command::new("cp").args(["-a"]).arg(self.path()).arg(&target));
        let owner = lab.user().number().to_string();
        must(Command::new("chown").args(["-R", &format!("{owner}:{owner}")]).arg(&target));
        target
    }
}
