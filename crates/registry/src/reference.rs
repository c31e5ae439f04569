//! What names an image in a registry.

use std::fmt;
use std::net::IpAddr;

use windtunnel_image::Digest;

use crate::error::RegistryError;

/// `[HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST]`. Without a host the registry is Docker Hub, without tag
/// and digest the tag is `latest`, as with Docker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    inner: oci_client::Reference,
    digest: Option<Digest>,
}

impl Reference {
    /// Reads one, without `oci://` before it.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Reference, RegistryError> {
        let not = |why: String| RegistryError::Reference { text: text.to_owned(), why };
        let inner: oci_client::Reference =
            text.parse().map_err(|error: oci_client::ParseError| not(error.to_string()))?;
        let digest = match inner.digest() {
            Some(text) => {
                let other = || not(format!("`{text}` is not `sha256:` and 64 digits"));
                Some(Digest::parse(text).ok_or_else(other)?)
            }
            None => None,
        };
        Ok(Reference { inner, digest })
    }

    /// The manifest or index that it names, whatever its tag leads to.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The same image for ever: its tag is only for people then.
    #[must_use]
    pub fn pinned(&self, digest: &Digest) -> Reference {
        let tag = self.inner.tag().map(str::to_owned);
        let pinned = self.inner.clone_with_digest(digest.to_string());
        let inner = match tag {
            Some(tag) => oci_client::Reference::with_tag_and_digest(
                pinned.registry().to_owned(),
                pinned.repository().to_owned(),
                tag,
                digest.to_string(),
            ),
            None => pinned,
        };
        Reference { inner, digest: Some(digest.clone()) }
    }

    pub(crate) fn inner(&self) -> &oci_client::Reference {
        &self.inner
    }

    /// Whether its registry is this machine's own, which needs no TLS.
    pub(crate) fn is_loopback(&self) -> bool {
        let registry = self.inner.resolve_registry();
        is_loopback(registry.rsplit_once(':').map_or(registry, |(host, _)| host))
    }
}

/// Whether a host, as it is written, is this machine itself.
pub(crate) fn is_loopback(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    plain == "localhost" || plain.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.whole())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest() -> Digest {
        Digest::of(b"x")
    }

    #[test]
    fn a_short_reference_is_of_docker_hub() {
        let whole = |text: &str| Reference::parse(text).unwrap().to_string();
        assert_eq!(whole("redis"), "docker.io/library/redis:latest");
        assert_eq!(whole("a/b:1"), "docker.io/a/b:1");
        assert_eq!(whole("example.org:5000/a/b:1"), "example.org:5000/a/b:1");
    }

    #[test]
    fn a_pinned_reference_keeps_its_tag_and_is_read_again() {
        let pinned = Reference::parse("example.org/a:1").unwrap().pinned(&digest());
        assert_eq!(pinned.to_string(), format!("example.org/a:1@{}", digest()));
        assert_eq!(Reference::parse(&pinned.to_string()).unwrap(), pinned);
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        let other = format!("a@sha512:{}", "0".repeat(128));
        for text in ["", "A", "a:", "a b", "http://x/a", "a@sha256:12", "../a", &other] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_loopback_addresses_need_no_tls() {
        let is = |text: &str| Reference::parse(text).unwrap().is_loopback();
        assert!(is("127.0.0.1:5000/a") && is("127.1.2.3/a") && is("localhost:80/a"));
        assert!(!is("localhost.example.org/a") && !is("10.0.0.1:5000/a") && !is("a"));
    }
}
