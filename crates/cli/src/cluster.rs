//! The cluster's key, its machines, and what goes where, for the verbs that need it.

mod choosing;
mod command;
mod conduct;
pub(crate) mod machines;
pub(crate) mod over;
mod overdue;
pub(crate) mod placing;
mod proxy;
#[cfg(test)]
pub(crate) mod sample;
mod show;
mod starting;

use std::io;
use std::path::{Path, PathBuf};

use windtunnel_cluster::{ClusterKey, KeyError};

use crate::exit::Exit;
use crate::failure::Failure;

/// Which key.
#[derive(Debug, clap::Args)]
pub(crate) struct Key {
    /// The cluster's key, `-` for standard input [default: windtunnel/cluster.key in
    /// $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, value_name = "FILE", env = "WINDTUNNEL_KEY")]
    key: Option<PathBuf>,
}

impl Key {
    /// Whether it comes from standard input.
    pub(crate) fn is_standard_input(&self) -> bool {
        self.key.as_deref() == Some(Path::new("-"))
    }

    /// Whether none is named and none is kept.
    fn is_absent(&self) -> bool {
        self.key.is_none() && usual_path().is_ok_and(|path| !path.exists())
    }

    /// Reads the key; where none is named and none is kept, makes one that is nowhere else: it is
    /// for agents that this command starts, and ends with it.
    pub(crate) fn read_or_make(&self) -> Result<ClusterKey, Failure> {
        if self.is_absent() {
            protect_memory()?;
            return ClusterKey::generate().map(|(key, _)| key).map_err(failed);
        }
        self.read()
    }

    /// Reads the key. From standard input it can be read once. From now on no other process of the
    /// same user can look into this one.
    pub(crate) fn read(&self) -> Result<ClusterKey, Failure> {
        protect_memory()?;
        let path = match &self.key {
            Some(path) if path == Path::new("-") => {
                return ClusterKey::read_from(&mut io::stdin().lock(), "standard input")
                    .map_err(failed);
            }
            Some(path) => path.clone(),
            None => usual_path()?,
        };
        ClusterKey::read(&path).map_err(failed)
    }
}

impl Key {
    /// Where keys are, which no program of a node may see: this one, and those of the user.
    pub(crate) fn places(&self) -> Vec<PathBuf> {
        let named = match &self.key {
            // A file that standard input was taken from has a name as well.
            Some(path) if path == Path::new("-") => std::fs::read_link("/proc/self/fd/0").ok(),
            other => other.clone(),
        };
        let named = named.and_then(|path| std::path::absolute(path).ok());
        let named = named.filter(|path| path.is_file());
        named.into_iter().chain(places()).collect()
    }
}

/// No other process of the same user is to look into one that has a key.
fn protect_memory() -> Result<(), Failure> {
    windtunnel_sys::process::set_dumpable(false).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot protect the key in memory: {error}"))
    })
}

/// Where keys of this user are unless somebody says otherwise: the whole folder, so that a key
/// which takes the place of another is hidden from nodes as well.
pub(crate) fn places() -> Vec<PathBuf> {
    let usual = usual_path().ok().and_then(|path| path.parent().map(Path::to_owned));
    let named = std::env::var_os("WINDTUNNEL_KEY").filter(|path| !path.is_empty() && path != "-");
    let all = usual.into_iter().chain(named.map(PathBuf::from));
    all.filter_map(|path| std::path::absolute(path).ok()).collect()
}

/// Where the key is unless somebody says otherwise.
pub(crate) fn usual_path() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let config = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".config")));
    let config = config.ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            "no home folder is known: neither HOME nor XDG_CONFIG_HOME is set",
        )
        .hint("name the key's file")
    })?;
    Ok(config.join("windtunnel").join("cluster.key"))
}

/// A failure of a key. What the system does not allow is the machine's; all else is the command
/// line's.
pub(crate) fn failed(error: KeyError) -> Failure {
    let code = match error {
        KeyError::Make(_) => Exit::Machine,
        _ => Exit::Usage,
    };
    let hint = error.hint();
    Failure::Told { error: error.into(), hint, code: code.code() }
}
