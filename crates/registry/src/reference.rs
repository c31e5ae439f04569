//! What names an image in a registry.

mod grammar;

use std::fmt;
use std::net::IpAddr;

use windtunnel_image::Sha256Digest;

use crate::error::RegistryError;
use grammar::ImageReferenceParts;

/// `[HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST]`. Without a host the registry is Docker Hub, without tag
/// and digest the tag is `latest`, as with Docker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReference {
    /// As users write it and tools store credentials for it.
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Sha256Digest>,
}

impl ImageReference {
    /// Reads one, without `oci://` before it.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<ImageReference, RegistryError> {
        let not = |why: String| RegistryError::Reference { text: text.to_owned(), why };
        let ImageReferenceParts { name, tag, digest } =
            ImageReferenceParts::of(text).map_err(not)?;
        let digest = match digest {
            Some(text) => {
                let other = || not(format!("`{text}` is not `sha256:` and 64 digits"));
                Some(Sha256Digest::parse(text).ok_or_else(other)?)
            }
            None => None,
        };
        let (registry, repository) = grammar::registry_and_repository(name).map_err(not)?;
        let tag = tag.or_else(|| digest.is_none().then_some("latest")).map(str::to_owned);
        Ok(ImageReference { registry, repository, tag, digest })
    }

    /// The manifest or index that it names, whatever its tag leads to.
    #[must_use]
    pub fn digest(&self) -> Option<&Sha256Digest> {
        self.digest.as_ref()
    }

    /// The same image for ever: its tag is only for people then.
    #[must_use]
    pub fn pinned(&self, digest: &Sha256Digest) -> ImageReference {
        ImageReference { digest: Some(digest.clone()), ..self.clone() }
    }

    pub(crate) fn registry(&self) -> &str {
        &self.registry
    }

    pub(crate) fn repository(&self) -> &str {
        &self.repository
    }

    /// The host, and the port if one is written, that answer for the registry.
    pub(crate) fn authority(&self) -> &str {
        // What Docker asks as well.
        if self.registry == grammar::DOCKER_HUB { grammar::DOCKER_INDEX } else { &self.registry }
    }

    /// By what its manifest is asked for: the digest if there is one.
    pub(crate) fn version(&self) -> String {
        let tag = || self.tag.clone().unwrap_or_default();
        self.digest.as_ref().map_or_else(tag, Sha256Digest::to_string)
    }

    /// Whether its registry is this machine's own, which needs no TLS.
    pub(crate) fn is_loopback(&self) -> bool {
        let registry = self.authority();
        is_loopback(registry.rsplit_once(':').map_or(registry, |(host, _)| host))
    }
}

/// Whether a host, as it is written, is this machine itself.
pub(crate) fn is_loopback(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    plain.eq_ignore_ascii_case("localhost")
        || plain.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest() -> Sha256Digest {
        Sha256Digest::of(b"x")
    }

    #[test]
    fn a_short_reference_is_of_docker_hub() {
        let whole = |text: &str| ImageReference::parse(text).unwrap().to_string();
        assert_eq!(whole("redis"), "docker.io/library/redis:latest");
        assert_eq!(whole("a/b:1"), "docker.io/a/b:1");
        assert_eq!(whole("example.org:5000/a/b:1"), "example.org:5000/a/b:1");
    }

    #[test]
    fn a_pinned_reference_keeps_its_tag_and_is_read_again() {
        let pinned = ImageReference::parse("example.org/a:1").unwrap().pinned(&digest());
        assert_eq!(pinned.to_string(), format!("example.org/a:1@{}", digest()));
        assert_eq!(ImageReference::parse(&pinned.to_string()).unwrap(), pinned);
    }

    #[test]
    fn a_digest_is_asked_for_before_a_tag() {
        let version = |text: &str| ImageReference::parse(text).unwrap().version();
        assert_eq!((version("a"), version("a:1")), ("latest".to_owned(), "1".to_owned()));
        let digest = digest().to_string();
        assert_eq!(version(&format!("a:1@{digest}")), digest);
        assert_eq!(version(&format!("a@{digest}")), digest);
        let whole = ImageReference::parse(&format!("a@{digest}")).unwrap().to_string();
        assert_eq!(whole, format!("docker.io/library/a@{digest}"), "no tag is added to a digest");
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        let other = format!("a@sha512:{}", "0".repeat(128));
        for text in ["", "A", "a:", "a b", "http://x/a", "a@sha256:12", "../a", &other] {
            assert!(ImageReference::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_loopback_addresses_need_no_tls() {
        let is = |text: &str| ImageReference::parse(text).unwrap().is_loopback();
        assert!(is("127.0.0.1:5000/a") && is("127.1.2.3/a") && is("localhost:80/a"));
        assert!(is("LocalHost:80/a"));
        assert!(!is("localhost.example.org/a") && !is("10.0.0.1:5000/a") && !is("a"));
    }

    #[test]
    fn docker_hub_is_asked_at_its_index() {
        let authority = |text: &str| ImageReference::parse(text).unwrap().authority().to_owned();
        assert_eq!(authority("redis"), "index.docker.io");
        assert_eq!(authority("example.org:5000/redis"), "example.org:5000");
    }
}
