//! Why an image could not be fetched.

use std::io;

use oci_client::errors::{OciDistributionError, OciErrorCode};
use windtunnel_image::{ImageError, UnpackError};

/// Why an image is not in the cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    #[error("`{text}` is not a reference to an image in a registry: {why}")]
    Reference { text: String, why: String },
    #[error("the stored credentials for {registry} cannot be used: {why}")]
    Credentials { registry: String, why: String },
    #[error("cannot fetch {reference}")]
    Fetch { reference: String, source: Box<OciDistributionError> },
    /// The registry gave something else than was asked for.
    #[error("cannot fetch {reference}: the registry {why}")]
    Answer { reference: String, why: String },
    #[error("cannot use what the registry gave for {reference}")]
    Image { reference: String, source: ImageError },
    #[error(transparent)]
    Cache(#[from] UnpackError),
    #[error("cannot talk to a registry")]
    Runtime { source: io::Error },
}

impl RegistryError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            RegistryError::Reference { .. } => {
                Some("write `HOST/NAME:TAG` or `HOST/NAME@sha256:DIGEST`".into())
            }
            RegistryError::Credentials { .. } => Some(LOG_IN.into()),
            RegistryError::Fetch { source, .. } => hint_of(source),
            RegistryError::Image { source, .. } => source.hint(),
            RegistryError::Cache(source) => source.hint(),
            RegistryError::Answer { .. } | RegistryError::Runtime { .. } => None,
        }
    }
}

fn hint_of(error: &OciDistributionError) -> Option<String> {
    use OciDistributionError as Error;
    let unknown = |code: &OciErrorCode| {
        use OciErrorCode as Code;
        matches!(code, Code::ManifestUnknown | Code::NameUnknown | Code::NotFound)
    };
    match error {
        Error::UnauthorizedError { .. } | Error::AuthenticationFailure(_) => Some(LOG_IN.into()),
        Error::RegistryError { envelope, .. } => {
            let codes = || envelope.errors.iter().map(|error| &error.code);
            if codes().any(unknown) {
                return Some("is the name right, and is there such a tag?".into());
            }
            let denied = |code: &OciErrorCode| {
                matches!(code, OciErrorCode::Unauthorized | OciErrorCode::Denied)
            };
            codes().any(denied).then(|| LOG_IN.into())
        }
        Error::ServerError { code: 401 | 403, .. } => Some(LOG_IN.into()),
        Error::ServerError { code: 404, .. } | Error::ImageManifestNotFoundError(_) => {
            Some("is the name right, and is there such a tag?".into())
        }
        Error::RequestError(error) if error.is_builder() => Some(
            "this machine has no certificates to know a registry by: install the package ca-certificates, \
             or set SSL_CERT_FILE"
                .into(),
        ),
        Error::RequestError(_) => Some(
            "an image that was fetched once is found without the registry by its digest, \
             `NAME@sha256:DIGEST`; one in a file needs none: `skopeo copy docker://NAME \
             oci-archive:FILE.tar`"
                .into(),
        ),
        Error::IoError(error) if error.kind() == io::ErrorKind::StorageFull => Some(
            "the cache's disk is full: `windtunnel images --clear` frees what no run uses, and \
             WINDTUNNEL_IMAGE_CACHE names another folder"
                .into(),
        ),
        _ => None,
    }
}

const LOG_IN: &str = "`docker login`, `podman login` or `skopeo login` stores credentials; \
                      `skopeo copy` fetches an image into a file";
