//! From a reference to an image in the cache.

use std::path::PathBuf;
use std::time::Duration;

use oci_client::Client;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::manifest::OciDescriptor;
use oci_client::secrets::RegistryAuth;
use windtunnel_image::{Digest, Fetched, Missing, missing};
use windtunnel_model::plan::Platform;

use crate::blob::Blob;
use crate::credentials;
use crate::error::RegistryError;
use crate::manifest::{Given, Manifests};
use crate::reference::Reference;
use crate::token::{Asking, TokenError};

/// Is called with the bytes that are fetched, and with all that are to be.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// Makes sure that an image is in the cache: asks its registry what a tag leads to, and fetches what
/// is not there for a platform, or else for this machine. The digest of its manifest or index, and the
/// folder of its layout. No other thread and no runtime of tokio's may be needed by the caller; none is
/// left.
///
/// # Errors
/// What is wrong with the reference, the network, the registry, or what it gave. What has been fetched
/// of the image stays, and the next attempt goes on from there.
pub fn fetch(
    reference: &Reference,
    platform: Option<&Platform>,
    cache: &Fetched,
    progress: &mut Progress<'_>,
) -> Result<(Digest, PathBuf), RegistryError> {
    if let Some(there) = whole(reference, platform, cache) {
        return Ok(there);
    }
    let _alone = cache.alone()?;
    // Another process may have fetched it in the meantime.
    if let Some(there) = whole(reference, platform, cache) {
        return Ok(there);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| RegistryError::Runtime { source })?;
    runtime
        .block_on(async { Session::new(reference, platform, cache).await?.fetch(progress).await })
}

/// An image that is named by its digest and there.
fn whole(
    reference: &Reference,
    platform: Option<&Platform>,
    cache: &Fetched,
) -> Option<(Digest, PathBuf)> {
    let digest = reference.digest()?;
    let place = cache.place(digest);
    let is_whole = missing(&place, platform).is_ok_and(|lacks| lacks.is_empty());
    is_whole.then(|| (digest.clone(), place))
}

struct Session<'a> {
    reference: &'a Reference,
    platform: Option<&'a Platform>,
    cache: &'a Fetched,
    client: Client,
    manifests: Manifests,
}

impl Session<'_> {
    async fn new<'a>(
        reference: &'a Reference,
        platform: Option<&'a Platform>,
        cache: &'a Fetched,
    ) -> Result<Session<'a>, RegistryError> {
        // The first provider of a process stays; it is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |error: OciDistributionError| RegistryError::fetch(reference, &error);
        let protocol = protocol(reference).await;
        let config = ClientConfig {
            protocol: protocol.clone(),
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(READ_TIMEOUT),
            user_agent: USER_AGENT,
            accept_invalid_certificates: reference.is_loopback(),
            ..ClientConfig::default()
        };
        let auth = credentials::stored(reference)?;
        let client = Client::try_from(config).map_err(failed)?;
        let built = |lenient| http(lenient).build().map_err(OciDistributionError::from);
        let (lenient, strict) = (built(true).map_err(failed)?, built(false).map_err(failed)?);
        let scheme = if matches!(protocol, ClientProtocol::Http) { "http" } else { "https" };
        let asking = Asking { lenient, strict };
        let asked = asking.token(reference, scheme, &auth);
        let token = tokio::time::timeout(MANIFEST_TIMEOUT, asked).await;
        let token = token.map_err(|_| silent(reference, "did not say who may fetch"))?;
        let token = token.map_err(|error| match error {
            TokenError::Library(error) => failed(error),
            TokenError::Answer(why) => {
                RegistryError::Answer { reference: reference.to_string(), why }
            }
        })?;
        // With a token, the library asks for none.
        let of_blobs = token.clone().map_or_else(|| auth.clone(), RegistryAuth::Bearer);
        client.store_auth_if_needed(reference.inner().resolve_registry(), &of_blobs).await;
        let Asking { lenient, strict } = asking;
        let http = if reference.is_loopback() { lenient } else { strict };
        let manifests = Manifests::new(http, scheme, token, auth);
        Ok(Session { reference, platform, cache, client, manifests })
    }

    async fn fetch(&self, progress: &mut Progress<'_>) -> Result<(Digest, PathBuf), RegistryError> {
        let (root, document) = self.manifest(self.reference, progress).await?;
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
                    self.manifest_blob(one, progress).await?;
                    continue;
                }
                let mut counted = |bytes| {
                    done += bytes;
                    progress(done, total);
                };
                self.blob(one, &mut counted).await?;
            }
        }
        Err(self.answer("names what it does not have"))
    }

    /// A manifest or index, and its digest. That it is waited for is shown.
    async fn manifest(
        &self,
        reference: &Reference,
        progress: &mut Progress<'_>,
    ) -> Result<(Digest, Vec<u8>), RegistryError> {
        let mut asked = std::pin::pin!(self.manifests.get(reference));
        let mut waited = Duration::ZERO;
        let given = loop {
            match tokio::time::timeout(TICK, asked.as_mut()).await {
                Ok(given) => break given,
                Err(_) if waited >= MANIFEST_TIMEOUT => {
                    return Err(silent(self.reference, "did not give its manifest"));
                }
                Err(_) => waited += TICK,
            }
            progress(0, 0);
        };
        let given = given.map_err(|error| RegistryError::fetch(self.reference, &error))?;
        let Given::Document(bytes) = given else {
            return Err(self.answer("gave a manifest that is longer than 4 MiB"));
        };
        let digest = Digest::of(&bytes);
        match reference.digest() {
            Some(expected) if *expected != digest => {
                Err(self.answer(&format!("gave {digest} instead of {expected}")))
            }
            _ => Ok((digest, bytes)),
        }
    }

    /// A manifest that an index names.
    async fn manifest_blob(
        &self,
        wanted: &Missing,
        progress: &mut Progress<'_>,
    ) -> Result<(), RegistryError> {
        let reference = self.reference.pinned(&wanted.digest);
        let (_, document) = self.manifest(&reference, progress).await?;
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

/// By what a registry is asked: TLS. One of this machine needs none, and may have a certificate that
/// no other authority knows, as Docker has it: what speaks TLS there is asked by TLS.
async fn protocol(reference: &Reference) -> ClientProtocol {
    if !reference.is_loopback() {
        return ClientProtocol::Https;
    }
    let Ok(http) = http(true).build() else { return ClientProtocol::Http };
    let url = format!("https://{}/v2/", reference.inner().resolve_registry());
    match tokio::time::timeout(LOOPBACK_TIMEOUT, http.get(url).send()).await {
        Ok(Ok(_)) => ClientProtocol::Https,
        _ => ClientProtocol::Http,
    }
}

/// A client as the library makes one; a lenient one takes any certificate.
fn http(lenient: bool) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .user_agent(USER_AGENT)
        .tls_danger_accept_invalid_certs(lenient)
}

fn silent(reference: &Reference, what: &str) -> RegistryError {
    let why = format!("{what} within {} s", MANIFEST_TIMEOUT.as_secs());
    RegistryError::Answer { reference: reference.to_string(), why }
}

const USER_AGENT: &str = concat!("windtunnel/", env!("CARGO_PKG_VERSION"));
/// For a document of some kilobytes, however slowly it comes.
const MANIFEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How often it is shown that something is waited for.
const TICK: Duration = Duration::from_millis(500);
/// A server of this machine that does not speak TLS mostly says so at once.
const LOOPBACK_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Without a single byte.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// An index of indexes of manifests, and what these name.
const ROUNDS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_elsewhere_is_asked_by_tls_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for image in ["registry.invalid/a", "192.0.2.1:5000/a", "redis"] {
            let protocol = runtime.block_on(protocol(&Reference::parse(image).unwrap()));
            assert!(matches!(protocol, ClientProtocol::Https), "{image}");
        }
    }
}
