//! From a reference to an image in the cache.

use std::path::PathBuf;
use std::time::Duration;

use oci_client::Client;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::manifest::OciDescriptor;
use oci_client::secrets::RegistryAuth;
use windtunnel_image::{Digest, Fetched, Missing, missing};

use crate::blob::Blob;
use crate::credentials;
use crate::error::RegistryError;
use crate::reference::Reference;

/// Is called with the bytes that are fetched, and with all that are to be.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// Makes sure that an image is in the cache: asks its registry what a tag leads to, and fetches what
/// is not there. The digest of its manifest or index, and the folder of its layout. No other thread
/// and no runtime of tokio's may be needed by the caller; none is left.
///
/// # Errors
/// What is wrong with the reference, the network, the registry, or what it gave. What has been fetched
/// of the image stays, and the next attempt goes on from there.
pub fn fetch(
    reference: &Reference,
    cache: &Fetched,
    progress: &mut Progress<'_>,
) -> Result<(Digest, PathBuf), RegistryError> {
    if let Some(there) = whole(reference, cache) {
        return Ok(there);
    }
    let _alone = cache.alone()?;
    // Another process may have fetched it in the meantime.
    if let Some(there) = whole(reference, cache) {
        return Ok(there);
    }
    let client = Session::new(reference, cache)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| RegistryError::Runtime { source })?;
    runtime.block_on(client.fetch(progress))
}

/// An image that is named by its digest and there.
fn whole(reference: &Reference, cache: &Fetched) -> Option<(Digest, PathBuf)> {
    let digest = reference.digest()?;
    let place = cache.place(digest);
    let is_whole = missing(&place).is_ok_and(|lacks| lacks.is_empty());
    is_whole.then(|| (digest.clone(), place))
}

struct Session<'a> {
    reference: &'a Reference,
    cache: &'a Fetched,
    client: Client,
    auth: RegistryAuth,
}

impl Session<'_> {
    fn new<'a>(reference: &'a Reference, cache: &'a Fetched) -> Result<Session<'a>, RegistryError> {
        // The first provider of a process stays; it is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let protocol =
            if reference.is_loopback() { ClientProtocol::Http } else { ClientProtocol::Https };
        let config = ClientConfig {
            protocol,
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(READ_TIMEOUT),
            user_agent: concat!("windtunnel/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        let auth = credentials::stored(reference)?;
        let client =
            Client::try_from(config).map_err(|error| RegistryError::fetch(reference, &error))?;
        Ok(Session { reference, cache, client, auth })
    }

    async fn fetch(&self, progress: &mut Progress<'_>) -> Result<(Digest, PathBuf), RegistryError> {
        let (root, document) = self.manifest(self.reference).await?;
        let place = self.cache.begin(&root, &document, &self.reference.to_string())?;
        for _ in 0..ROUNDS_MAX {
            let lacks =
                missing(&place).map_err(|error| RegistryError::image(self.reference, &error))?;
            if lacks.is_empty() {
                return Ok((root, place));
            }
            let total = lacks.iter().fold(0, |sum: u64, one| sum.saturating_add(one.bytes));
            let mut done = 0;
            for one in &lacks {
                let mut counted = |bytes| {
                    done += bytes;
                    progress(done, total);
                };
                match one.is_manifest {
                    true => self.manifest_blob(one).await?,
                    false => self.blob(one, &mut counted).await?,
                }
            }
        }
        Err(self.answer("names what it does not have"))
    }

    /// A manifest or index, and its digest.
    async fn manifest(&self, reference: &Reference) -> Result<(Digest, Vec<u8>), RegistryError> {
        let asked = self.client.pull_manifest_raw(reference.inner(), &self.auth, &MANIFESTS);
        let (bytes, _) =
            asked.await.map_err(|error| RegistryError::fetch(self.reference, &error))?;
        let digest = Digest::of(&bytes);
        match reference.digest() {
            Some(expected) if *expected != digest => {
                Err(self.answer(&format!("gave {digest} instead of {expected}")))
            }
            _ => Ok((digest, bytes.to_vec())),
        }
    }

    /// A manifest that an index names.
    async fn manifest_blob(&self, wanted: &Missing) -> Result<(), RegistryError> {
        let reference = self.reference.pinned(&wanted.digest);
        let (_, document) = self.manifest(&reference).await?;
        Ok(self.cache.keep(&wanted.digest, &document)?)
    }

    async fn blob(
        &self,
        wanted: &Missing,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), RegistryError> {
        let path = self.cache.blob(&wanted.digest);
        let failed = |error: OciDistributionError| RegistryError::fetch(self.reference, &error);
        let io = |error: std::io::Error| failed(error.into());
        let size = i64::try_from(wanted.bytes).map_err(|_| self.answer("names a blob too long"))?;
        let descriptor =
            OciDescriptor { digest: wanted.digest.to_string(), size, ..OciDescriptor::default() };
        let mut blob = Blob::create(&path, wanted.bytes, progress).map_err(io)?;
        self.client
            .pull_blob(self.reference.inner(), &descriptor, &mut blob)
            .await
            .map_err(failed)?;
        blob.finish(&path).map_err(io)
    }

    fn answer(&self, why: &str) -> RegistryError {
        RegistryError::Answer { reference: self.reference.to_string(), why: why.to_owned() }
    }
}

/// What registries are asked for: manifests and indexes of OCI and of Docker.
const MANIFESTS: [&str; 4] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Without a single byte.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// An index of indexes of manifests, and what these name.
const ROUNDS_MAX: usize = 8;
