//! Manifests and indexes: read no further than an image's documents may be long. The library reads an
//! answer whole, whatever its length, so these come by the HTTP client below it.

use oci_client::errors::{OciDistributionError, OciEnvelope};
use oci_client::secrets::RegistryAuth;
use reqwest::{Client, Response, StatusCode, header};

use crate::reference::Reference;

/// What manifests of a registry are asked for by.
pub(crate) struct Manifests {
    http: Client,
    scheme: &'static str,
    token: Option<String>,
    auth: RegistryAuth,
}

/// What a registry gave.
pub(crate) enum Given {
    Document(Vec<u8>),
    /// It goes on behind the most that a document may have.
    TooLong,
}

impl Manifests {
    pub(crate) fn new(
        http: Client,
        scheme: &'static str,
        token: Option<String>,
        auth: RegistryAuth,
    ) -> Manifests {
        Manifests { http, scheme, token, auth }
    }

    /// The manifest or index that a reference leads to.
    pub(crate) async fn get(&self, of: &Reference) -> Result<Given, OciDistributionError> {
        let inner = of.inner();
        let which = inner.digest().or(inner.tag()).unwrap_or("latest");
        let (registry, repository) = (inner.resolve_registry(), inner.repository());
        let url = format!("{}://{registry}/v2/{repository}/manifests/{which}", self.scheme);
        let asked = self.http.get(&url).header(header::ACCEPT, MANIFESTS.join(", "));
        let asked = match (&self.token, &self.auth) {
            (Some(token), _) => asked.bearer_auth(token),
            (None, RegistryAuth::Basic(user, password)) => asked.basic_auth(user, Some(password)),
            (None, RegistryAuth::Bearer(token)) => asked.bearer_auth(token),
            (None, RegistryAuth::Anonymous) => asked,
        };
        let mut answer = asked.send().await?;
        let status = answer.status();
        let body = read(&mut answer, DOCUMENT_BYTES_MAX).await?;
        match (status, body) {
            (StatusCode::OK, body) => Ok(body),
            (status, Given::Document(body)) => Err(refusal(status, url, &body)),
            (status, Given::TooLong) => Err(refusal(status, url, &[])),
        }
    }
}

/// The body of an answer, of which no more than `most` bytes are read.
pub(crate) async fn read(
    answer: &mut Response,
    most: usize,
) -> Result<Given, OciDistributionError> {
    let mut body = Vec::new();
    while let Some(more) = answer.chunk().await? {
        if body.len() + more.len() > most {
            return Ok(Given::TooLong);
        }
        body.extend_from_slice(&more);
    }
    Ok(Given::Document(body))
}

/// What the library makes of an answer that is not what was asked for.
pub(crate) fn refusal(status: StatusCode, url: String, body: &[u8]) -> OciDistributionError {
    if status == StatusCode::UNAUTHORIZED {
        return OciDistributionError::UnauthorizedError { url };
    }
    match serde_json::from_slice::<OciEnvelope>(body) {
        Ok(envelope) if status.is_client_error() => {
            OciDistributionError::RegistryError { envelope, url }
        }
        _ => {
            let message = String::from_utf8_lossy(body).into_owned();
            OciDistributionError::ServerError { code: status.as_u16(), url, message }
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
