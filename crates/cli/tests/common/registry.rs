//! A registry of images: Debian's `docker-registry`, filled by `skopeo`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{is_missing, must};

/// On a port of the machine's loopback, as long as it is there.
pub(crate) struct Registry {
    process: Child,
    address: String,
}

impl Registry {
    /// Starts one without passwords; `None`: its programs are missing.
    pub(crate) fn start(folder: &Path) -> Option<Registry> {
        if is_missing(&["docker-registry", "skopeo"]) {
            return None;
        }
        let config = folder.join("registry.yml");
        fs::write(&config, configuration(folder, "127.0.0.1:0", "")).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(config).env("OTEL_TRACES_EXPORTER", "none");
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| address_in(&line));
        let address = address.expect("it says where it listens");
        // What it writes would block it otherwise.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Some(Registry { process, address })
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Gives it an image of an archive of an OCI layout: `NAME:TAG`.
    pub(crate) fn push(&self, archive: &Path, name: &str) {
        let to = format!("docker://{}/{name}", self.address);
        must(&mut push(archive, &to));
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a registry reads at its start; `more` belongs below `http`.
pub(crate) fn configuration(folder: &Path, address: &str, more: &str) -> String {
    let folder = folder.join("registry");
    fs::create_dir_all(&folder).unwrap();
    format!(
        "version: 0.1\nlog: {{level: info, formatter: text}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
         http:\n  addr: {address}\n{more}",
        folder.display()
    )
}

/// The command that gives an archive to a registry.
pub(crate) fn push(archive: &Path, to: &str) -> Command {
    let mut command = Command::new("skopeo");
    command.args(["--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false"]);
    command.arg(format!("oci-archive:{}", archive.display())).arg(to);
    command
}

fn address_in(line: &str) -> Option<String> {
    let rest = line.split("listening on ").nth(1)?;
    Some(
        rest.trim_end_matches(|c: char| !c.is_ascii_digit())
            .split(['"', ',', ' '])
            .next()?
            .to_owned(),
    )
}
