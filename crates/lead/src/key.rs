//! The cluster's key: where it comes from, and which processes must not see it.

use std::io;
use std::path::{Path, PathBuf};

use windtunnel_cluster::ClusterKey;

use crate::error::{LeadError, LeadErrorKind};

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// Where the user's own is, by [`KeySource::usual_path`].
    Usual,
    File(PathBuf),
    /// It can be read from there once.
    StandardInput,
}

impl KeySource {
    /// Reads the key. From now on no other process of the same user can look into this one.
    ///
    /// # Errors
    /// If there is none, or it is not a key.
    pub fn read(&self) -> Result<ClusterKey, LeadError> {
        protect_memory()?;
        let path = match self {
            KeySource::StandardInput => {
                return Ok(ClusterKey::read_from(&mut io::stdin().lock(), "standard input")?);
            }
            KeySource::File(path) => path.clone(),
            KeySource::Usual => Self::usual_path()?,
        };
        Ok(ClusterKey::read(&path)?)
    }

    /// Reads the key; where the user has none, makes one that is nowhere else: it is for agents
    /// that are started for one run, and ends with it.
    ///
    /// # Errors
    /// As [`KeySource::read`].
    pub fn read_or_make(&self) -> Result<ClusterKey, LeadError> {
        if self.is_absent() {
            protect_memory()?;
            return Ok(ClusterKey::generate().map(|(key, _)| key)?);
        }
        self.read()
    }

    /// Where keys are, which no program of a node may see: this one, and those of the user.
    #[must_use]
    pub fn places(&self) -> Vec<PathBuf> {
        let named = match self {
            // A file that standard input was taken from has a name as well.
            KeySource::StandardInput => std::fs::read_link("/proc/self/fd/0").ok(),
            KeySource::File(path) => Some(path.clone()),
            KeySource::Usual => None,
        };
        let named = named.and_then(|path| std::path::absolute(path).ok());
        let named = named.filter(|path| path.is_file());
        named.into_iter().chain(Self::usual_places()).collect()
    }

    /// The default path of the key.
    ///
    /// # Errors
    /// If the user has no home folder.
    pub fn usual_path() -> Result<PathBuf, LeadError> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let config = set("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(set("HOME")?).join(".config")));
        let config = config.ok_or_else(|| {
            let text = "no home folder is known: neither HOME nor XDG_CONFIG_HOME is set";
            LeadError::new(LeadErrorKind::Usage, text).with_hint("name the key's file")
        })?;
        Ok(config.join("windtunnel").join("cluster.key"))
    }

    /// The default places of this user's keys: the whole folder, so that a key
    /// which takes the place of another is hidden from nodes as well.
    #[must_use]
    pub fn usual_places() -> Vec<PathBuf> {
        let usual = Self::usual_path().ok().and_then(|path| path.parent().map(Path::to_owned));
        let named =
            std::env::var_os("WINDTUNNEL_KEY").filter(|path| !path.is_empty() && path != "-");
        let all = usual.into_iter().chain(named.map(PathBuf::from));
        all.filter_map(|path| std::path::absolute(path).ok()).collect()
    }

    /// Whether none is named and none is kept.
    fn is_absent(&self) -> bool {
        *self == KeySource::Usual && Self::usual_path().is_ok_and(|path| !path.exists())
    }
}

/// No other process of the same user is to look into one that has a key.
fn protect_memory() -> Result<(), LeadError> {
    windtunnel_sys::process::set_dumpable(false).map_err(|error| {
        LeadError::new(LeadErrorKind::Machine, format!("cannot protect the key in memory: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_nodes_may_not_see_have_the_named_file_first_if_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let source = KeySource::File(path.clone());
        let usual = KeySource::usual_places();
        assert_eq!(source.places(), usual);
        std::fs::write(&path, "").unwrap();
        let all: Vec<PathBuf> = [path].into_iter().chain(usual.clone()).collect();
        assert_eq!(source.places(), all);
        assert_eq!(KeySource::Usual.places(), usual);
    }

    #[test]
    fn a_named_key_is_never_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!KeySource::File(folder.path().join("missing")).is_absent());
        assert!(!KeySource::StandardInput.is_absent());
    }
}
