//! A repository of a registry, as it is asked for manifests and blobs. Source: OCI Distribution
//! Specification, "Pull".

use std::io::{self, Read};
use std::time::Instant;

use ureq::http::{HeaderValue, StatusCode};
use windtunnel_image::{HashingReader, Sha256Digest};

use crate::blob::Blob;
use crate::failure::RegistryExchangeError;
use crate::http::{Http, HttpBodyReadOutcome, RegistryRequest, parse_url};
use crate::reference::ImageReference;

/// Who is asked, by what, and with what right.
pub(crate) struct Repository {
    http: Http,
    /// `https://HOST/v2/NAME`.
    url: String,
    authorization: Option<HeaderValue>,
}

impl Repository {
    pub(crate) fn new(
        http: Http,
        scheme: &str,
        reference: &ImageReference,
        authorization: Option<HeaderValue>,
    ) -> Repository {
        let (registry, name) = (reference.authority(), reference.repository());
        Repository { http, url: format!("{scheme}://{registry}/v2/{name}"), authorization }
    }

    /// A manifest or index by its tag or digest, which has to be there at an instant.
    pub(crate) fn manifest(
        &self,
        version: &str,
        until: Instant,
    ) -> Result<HttpBodyReadOutcome, RegistryExchangeError> {
        let ask = self.ask(&format!("manifests/{version}"))?;
        let accept = Some(MANIFESTS.join(", "));
        let mut answer = self.http.get(&RegistryRequest { accept, until: Some(until), ..ask })?;
        if answer.status() != StatusCode::OK {
            return Err(answer.refusal()?);
        }
        answer.read(DOCUMENT_BYTES_MAX)
    }

    /// Writes a blob into its file, whose name it may have if nothing is said against it.
    pub(crate) fn blob(
        &self,
        digest: &Sha256Digest,
        into: &mut Blob<'_>,
    ) -> Result<(), RegistryExchangeError> {
        let mut answer = self.http.get(&self.ask(&format!("blobs/{digest}"))?)?;
        if !answer.status().is_success() {
            return Err(answer.refusal()?);
        }
        let read = copy(HashingReader::new(answer.body()), into)?;
        let actual = read.map_err(|error| answer.broken(error))?;
        if actual != *digest {
            let (expected, actual) = (digest.to_string(), actual.to_string());
            return Err(RegistryExchangeError::Digest { expected, actual });
        }
        Ok(())
    }

    fn ask(&self, what: &str) -> Result<RegistryRequest, RegistryExchangeError> {
        let text = format!("{}/{what}", self.url);
        let url = parse_url(&text).ok_or(RegistryExchangeError::Url { text })?;
        Ok(RegistryRequest {
            authorization: self.authorization.clone(),
            ..RegistryRequest::of(url)
        })
    }
}

/// Copies a body into a file; its digest, or why it could not be read to its end.
fn copy(
    mut body: HashingReader<impl Read>,
    into: &mut Blob<'_>,
) -> io::Result<io::Result<Sha256Digest>> {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match body.read(&mut buffer) {
            Ok(0) => return Ok(body.finish().map(|(digest, _)| digest)),
            Ok(length) => into.write(&buffer[..length])?,
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// What registries are asked for: manifests and indexes of OCI and of Docker.
const MANIFESTS: [&str; 4] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// What registries must take at least, and an image's documents may have (OCI Distribution
/// Specification, "Pushing Manifests").
const DOCUMENT_BYTES_MAX: usize = 4 << 20;
/// How much of a blob is in memory.
const PIECE_BYTES: usize = 64 << 10;
