//! The cluster's key: a private key (ECDSA, P-256) and the certificate that it signs itself, in one
//! file of PEM blocks (RFC 7468). Machines that have it are the cluster.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The name in every certificate: agents are known by the key, not by the names of their machines.
pub(crate) const NAME: &str = "windtunnel";

/// A cluster's key.
pub struct ClusterKey {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) private: PrivateKeyDer<'static>,
    /// Both as they were read.
    text: Arc<str>,
}

/// A key could not be made, kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read the key {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the key {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others than its owner may read it.
    #[error("the key {path} is open to others (mode {mode:03o})")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file has no key.
    #[error("{path} is not a key of a cluster: {why}")]
    NoKey {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// No key could be made.
    #[error("cannot make a key: {0}")]
    Make(String),
}

/// Random bytes.
///
/// # Errors
/// [`KeyError::Make`] if the system has no entropy to give.
pub(crate) fn random() -> Result<[u8; 32], KeyError> {
    let mut bytes = [0; 32];
    let source = rustls::crypto::ring::default_provider().secure_random;
    let filled = source.fill(&mut bytes);
    filled.map_err(|_| KeyError::Make("the system gives no random numbers".to_owned()))?;
    Ok(bytes)
}

impl KeyError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            KeyError::Read { path, source } if source.kind() == io::ErrorKind::NotFound => {
                let path = path.display();
                Some(format!(
                    "make one with `windtunnel keygen {path}` and copy it to all machines of the \
                     cluster, or name another with --key FILE"
                ))
            }
            KeyError::Write { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => Some(
                "remove it first if it is not needed any more: agents with the old key and the \
                      new one do not talk to each other"
                    .to_owned(),
            ),
            KeyError::Open { path, .. } => Some(format!(
                "`chmod 600 {}`; and make a new one if others may have read it",
                path.display()
            )),
            KeyError::NoKey { .. } => Some("make one with `windtunnel keygen`".to_owned()),
            _ => None,
        }
    }
}

impl ClusterKey {
    /// A new key.
    ///
    /// # Errors
    /// [`KeyError::Make`] if there is no randomness.
    pub fn generate() -> Result<(Self, String), KeyError> {
        let failed = |error: rcgen::Error| KeyError::Make(error.to_string());
        let pair = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::new([NAME.to_owned()]).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, NAME);
        let certificate = params.self_signed(&pair).map_err(failed)?;
        let text = format!("{}{}", pair.serialize_pem(), certificate.pem());
        Ok((Self::parse(&text).map_err(KeyError::Make)?, text))
    }

    /// Makes a key and keeps it in a new file that only its owner can read.
    ///
    /// # Errors
    /// [`KeyError`]; a file that is there already is left alone.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Write { path: path.to_owned(), source };
        let (key, text) = Self::generate()?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if let Err(source) = written {
            // Half a key is none.
            let _ = fs::remove_file(path);
            return Err(failed(source));
        }
        Ok(key)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`KeyError`], also if others than the owner may read the file.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Read { path: path.to_owned(), source };
        let file = fs::File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open { path: path.to_owned(), mode });
        }
        let text = io::read_to_string(file).map_err(failed)?;
        Self::parse(&text).map_err(|why| KeyError::NoKey { path: path.to_owned(), why })
    }

    /// Reads a key from a stream up to its end, or to the end of the block that makes it complete:
    /// what follows is left there.
    ///
    /// # Errors
    /// [`KeyError`]; `name` is what the stream is called in it.
    pub fn read_from(stream: &mut impl BufRead, name: &str) -> Result<Self, KeyError> {
        let mut text = String::new();
        loop {
            let line = text.len();
            let read = stream.by_ref().take(KEY_BYTES_MAX).read_line(&mut text);
            let read = read.map_err(|source| KeyError::Read { path: name.into(), source })?;
            let too_much = text.len() as u64 > KEY_BYTES_MAX;
            if read == 0 || too_much || text[line..].starts_with(END) && Self::parse(&text).is_ok()
            {
                break;
            }
        }
        Self::parse(&text).map_err(|why| KeyError::NoKey { path: name.into(), why })
    }

    /// The key as its file has it: a secret.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    fn parse(text: &str) -> Result<Self, String> {
        let private = PrivateKeyDer::from_pem_slice(text.as_bytes());
        let private = private.map_err(|error| format!("it has no private key ({error})"))?;
        let certificate = CertificateDer::from_pem_slice(text.as_bytes());
        let certificate =
            certificate.map_err(|error| format!("it has no certificate ({error})"))?;
        Ok(ClusterKey { certificate, private, text: text.into() })
    }
}

impl Clone for ClusterKey {
    fn clone(&self) -> Self {
        ClusterKey {
            certificate: self.certificate.clone(),
            private: self.private.clone_key(),
            text: Arc::clone(&self.text),
        }
    }
}

impl fmt::Debug for ClusterKey {
    /// Nothing of the key gets into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterKey({self})")
    }
}

impl fmt::Display for ClusterKey {
    /// A short name that distinguishes keys; it gives nothing of the key away.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // FNV-1a (draft-eastlake-fnv) of the certificate, which every handshake shows anyway.
        let hash = self.certificate.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        write!(f, "{hash:016x}")
    }
}

/// The end of a block (RFC 7468, 2).
const END: &str = "-----END ";
/// More than any key has, comments included.
const KEY_BYTES_MAX: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_read_back_and_only_its_owner_can() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/cluster.key");
        let made = ClusterKey::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(ClusterKey::read(&path).unwrap().to_string(), made.to_string());
        let again = ClusterKey::create(&path).unwrap_err();
        assert!(again.hint().unwrap().contains("remove it"), "{again}");
        assert_eq!(ClusterKey::read(&path).unwrap().to_string(), made.to_string());
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        ClusterKey::create(&path).unwrap();
        for mode in [0o640, 0o604, 0o644, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = ClusterKey::read(&path).unwrap_err();
            assert!(error.to_string().contains(&format!("{mode:03o}")), "{error}");
            assert!(error.hint().unwrap().contains("chmod 600"));
        }
    }

    #[test]
    fn a_file_without_a_key_is_refused_with_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let (_, text) = ClusterKey::generate().unwrap();
        let (private, _) = text.split_once("-----BEGIN CERTIFICATE").unwrap();
        for (text, missing) in
            [("", "private key"), ("nonsense", "private key"), (private, "certificate")]
        {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let error = ClusterKey::read(&path).unwrap_err();
            assert!(error.to_string().contains(missing), "{error}");
        }
    }

    #[test]
    fn a_key_in_a_stream_ends_where_it_is_complete_and_the_rest_is_left() {
        let (key, text) = ClusterKey::generate().unwrap();
        let at = text.find("-----BEGIN CERTIFICATE").unwrap();
        let other_way_round = format!("{}{}", &text[at..], &text[..at]);
        for text in [text.clone(), other_way_round] {
            let stream = format!("{text}more\n");
            let mut stream = stream.as_bytes();
            let read = ClusterKey::read_from(&mut stream, "standard input").unwrap();
            assert_eq!((read.to_string(), stream), (key.to_string(), &b"more\n"[..]));
            assert_eq!(read.text(), text);
        }
        let cut = ClusterKey::read_from(&mut &text.as_bytes()[..at], "standard input").unwrap_err();
        assert!(cut.to_string().starts_with("standard input is not a key of a cluster: "), "{cut}");
        let endless = "x".repeat(100_000);
        assert!(ClusterKey::read_from(&mut endless.as_bytes(), "standard input").is_err());
    }

    #[test]
    fn a_key_in_a_log_gives_nothing_away() {
        let (key, _) = ClusterKey::generate().unwrap();
        assert_eq!(format!("{key:?}"), format!("ClusterKey({key})"));
    }

    #[test]
    fn two_keys_have_two_names() {
        let names = [(); 2].map(|()| ClusterKey::generate().unwrap().0.to_string());
        assert_ne!(names[0], names[1]);
    }
}
