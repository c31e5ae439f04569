//! From a reference to an image in the cache.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ureq::http::uri::Scheme;
use windtunnel_image::{MissingImageBlob, RegistryImageCache, Sha256Digest, missing};
use windtunnel_model::plan::Platform;

use crate::blob::Blob;
use crate::credentials::{self, RegistryCredentials};
use crate::error::RegistryError;
use crate::failure::RegistryExchangeError;
use crate::http::{Http, HttpBodyReadOutcome, RegistryRequest, parse_url};
use crate::reference::ImageReference;
use crate::repository::Repository;
use crate::token::{TokenError, token};
use crate::waiting::shown;

/// Is called with the bytes that are fetched, and with all that are to be.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// Makes sure that an image is in the cache: asks its registry what a tag leads to, and fetches what
/// is not there for a platform, or else for this machine. The digest of its manifest or index, and the
/// folder of its layout. No thread is left.
///
/// # Errors
/// What is wrong with the reference, the network, the registry, or what it gave. What has been fetched
/// of the image stays, and the next attempt goes on from there.
pub fn fetch(
    reference: &ImageReference,
    platform: Option<&Platform>,
    cache: &RegistryImageCache,
    progress: &mut Progress<'_>,
) -> Result<(Sha256Digest, PathBuf), RegistryError> {
    if let Some(there) = whole(reference, platform, cache) {
        return Ok(there);
    }
    let _alone = cache.alone()?;
    // Another process may have fetched it in the meantime.
    if let Some(there) = whole(reference, platform, cache) {
        return Ok(there);
    }
    ImageFetchSession::new(reference, platform, cache)?.fetch(progress)
}

/// An image that is named by its digest and there.
fn whole(
    reference: &ImageReference,
    platform: Option<&Platform>,
    cache: &RegistryImageCache,
) -> Option<(Sha256Digest, PathBuf)> {
    let digest = reference.digest()?;
    let place = cache.place(digest);
    let is_whole = missing(&place, platform).is_ok_and(|lacks| lacks.is_empty());
    is_whole.then(|| (digest.clone(), place))
}

struct ImageFetchSession<'a> {
    reference: &'a ImageReference,
    platform: Option<&'a Platform>,
    cache: &'a RegistryImageCache,
    repository: Repository,
}

impl ImageFetchSession<'_> {
    fn new<'a>(
        reference: &'a ImageReference,
        platform: Option<&'a Platform>,
        cache: &'a RegistryImageCache,
    ) -> Result<ImageFetchSession<'a>, RegistryError> {
        let http = Http::new();
        let scheme = scheme(&http, reference);
        let scheme = scheme.as_str();
        let stored = credentials::stored(reference)?;
        let until = Instant::now() + DOCUMENT_TIMEOUT;
        let token = token(&http, reference, scheme, stored.as_ref(), until);
        let token = token.map_err(|error| match error {
            TokenError::Exchange(RegistryExchangeError::Late { .. }) => {
                silent(reference, "did not say who may fetch")
            }
            TokenError::Exchange(error) => RegistryError::fetch(reference, &error),
            TokenError::Answer(why) => {
                RegistryError::Answer { reference: reference.to_string(), why }
            }
        })?;
        let authorization = token.or_else(|| stored.as_ref().map(RegistryCredentials::header));
        let repository = Repository::new(http, scheme, reference, authorization);
        Ok(ImageFetchSession { reference, platform, cache, repository })
    }

    fn fetch(&self, progress: &mut Progress<'_>) -> Result<(Sha256Digest, PathBuf), RegistryError> {
        let (root, document) = self.manifest(self.reference, progress)?;
        let place = self.cache.begin(&root, &document, &self.reference.to_string())?;
        for _ in 0..ROUNDS_MAX {
            let lacks = missing(&place, self.platform)
                .map_err(|error| RegistryError::image(self.reference, &error))?;
            if lacks.is_empty() {
                return Ok((root, place));
            }
            let total = lacks.iter().fold(0, |sum: u64, one| sum.saturating_add(one.bytes));
            let mut done = 0;
            for one in &lacks {
                if one.is_manifest {
                    self.manifest_blob(one, progress)?;
                    continue;
                }
                let mut counted = |bytes| {
                    done += bytes;
                    progress(done, total);
                };
                self.blob(one, &mut counted)?;
            }
        }
        Err(self.answer("names what it does not have"))
    }

    /// A manifest or index, and its digest. That it is waited for is shown.
    fn manifest(
        &self,
        reference: &ImageReference,
        progress: &mut Progress<'_>,
    ) -> Result<(Sha256Digest, Vec<u8>), RegistryError> {
        let until = Instant::now() + DOCUMENT_TIMEOUT;
        let work = || self.repository.manifest(&reference.version(), until);
        let given = shown(work, &mut || progress(0, 0));
        let given = given.map_err(|source| RegistryError::Runtime { source })?;
        let given = given.map_err(|error| match error {
            RegistryExchangeError::Late { .. } => {
                silent(self.reference, "did not give its manifest")
            }
            error => RegistryError::fetch(self.reference, &error),
        })?;
        let HttpBodyReadOutcome::Document(bytes) = given else {
            return Err(self.answer("gave a manifest that is longer than 4 MiB"));
        };
        let digest = Sha256Digest::of(&bytes);
        match reference.digest() {
            Some(expected) if *expected != digest => {
                Err(self.answer(&format!("gave {digest} instead of {expected}")))
            }
            _ => Ok((digest, bytes)),
        }
    }

    /// A manifest that an index names.
    fn manifest_blob(
        &self,
        wanted: &MissingImageBlob,
        progress: &mut Progress<'_>,
    ) -> Result<(), RegistryError> {
        let reference = self.reference.pinned(&wanted.digest);
        let (_, document) = self.manifest(&reference, progress)?;
        Ok(self.cache.keep(&wanted.digest, &document)?)
    }

    fn blob(
        &self,
        wanted: &MissingImageBlob,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), RegistryError> {
        let path = self.cache.blob(&wanted.digest);
        let failed = |error: RegistryExchangeError| RegistryError::fetch(self.reference, &error);
        let io = |error: std::io::Error| failed(error.into());
        let mut blob = Blob::create(&path, wanted.bytes, progress).map_err(io)?;
        self.repository.blob(&wanted.digest, &mut blob).map_err(failed)?;
        blob.finish(&path).map_err(io)
    }

    fn answer(&self, why: &str) -> RegistryError {
        RegistryError::Answer { reference: self.reference.to_string(), why: why.to_owned() }
    }
}

/// By what a registry is asked: TLS. One of this machine needs none, and may have a certificate that
/// no other authority knows, as Docker has it: what speaks TLS there is asked by TLS.
fn scheme(http: &Http, reference: &ImageReference) -> Scheme {
    if !reference.is_loopback() {
        return Scheme::HTTPS;
    }
    let url = parse_url(&format!("https://{}/v2/", reference.authority()));
    let until = Some(Instant::now() + LOOPBACK_TIMEOUT);
    let speaks = |url| http.answers(&RegistryRequest { until, ..RegistryRequest::of(url) });
    if url.is_some_and(speaks) { Scheme::HTTPS } else { Scheme::HTTP }
}

fn silent(reference: &ImageReference, what: &str) -> RegistryError {
    let why = format!("{what} within {} s", DOCUMENT_TIMEOUT.as_secs());
    RegistryError::Answer { reference: reference.to_string(), why }
}

/// For a document of some kilobytes, however slowly it comes.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// A server of this machine that does not speak TLS mostly says so at once.
const LOOPBACK_TIMEOUT: Duration = Duration::from_secs(5);
/// An index of indexes of manifests, and what these name.
const ROUNDS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_elsewhere_is_asked_by_tls_alone() {
        for image in ["registry.invalid/a", "192.0.2.1:5000/a", "redis"] {
            let scheme = scheme(&Http::new(), &ImageReference::parse(image).unwrap());
            assert_eq!(scheme, Scheme::HTTPS, "{image}");
        }
    }
}
