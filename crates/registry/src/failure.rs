//! Why something did not come from a registry or its token service.

use std::fmt;
use std::io;

use serde::Deserialize;
use ureq::http::StatusCode;

/// What went wrong in one exchange.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistryExchangeError {
    #[error("error sending request for url ({url})")]
    Request { url: String, source: ureq::Error },
    #[error("error reading the answer from url ({url})")]
    Body { url: String, source: ureq::Error },
    /// The time that was given for all of it is over.
    #[error("no answer in time from url ({url})")]
    Late { url: String },
    #[error("`{text}` is not a url")]
    Url { text: String },
    #[error("too many redirects, of which the last is from url ({url})")]
    Redirects { url: String },
    #[error("no CA certificates were loaded from the system")]
    NoCertificates,
    #[error("authentication failure: {0}")]
    Authentication(String),
    #[error("not authorized: url {url}")]
    Unauthorized { url: String },
    #[error("registry error: url {url}, envelope: {envelope}")]
    Registry { envelope: RegistryErrorResponse, url: String },
    #[error("server error: url {url}, code: {code}, message: {message}")]
    Server { code: u16, url: String, message: String },
    #[error("digest error: invalid digest, expected {expected}, got {actual}")]
    Digest { expected: String, actual: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl RegistryExchangeError {
    pub(crate) fn request(url: &str, source: ureq::Error) -> RegistryExchangeError {
        let url = url.to_owned();
        if is_late(&source) {
            RegistryExchangeError::Late { url }
        } else {
            RegistryExchangeError::Request { url, source }
        }
    }

    pub(crate) fn body(url: &str, source: io::Error) -> RegistryExchangeError {
        let (url, source) = (url.to_owned(), source.into());
        if is_late(&source) {
            RegistryExchangeError::Late { url }
        } else {
            RegistryExchangeError::Body { url, source }
        }
    }

    /// What an answer means that is not what was asked for.
    pub(crate) fn refusal(status: StatusCode, url: &str, body: &[u8]) -> RegistryExchangeError {
        let url = url.to_owned();
        if status == StatusCode::UNAUTHORIZED {
            return RegistryExchangeError::Unauthorized { url };
        }
        match serde_json::from_slice::<RegistryErrorResponse>(body) {
            Ok(envelope) if status.is_client_error() => {
                RegistryExchangeError::Registry { envelope, url }
            }
            _ => {
                let message = String::from_utf8_lossy(body).into_owned();
                RegistryExchangeError::Server { code: status.as_u16(), url, message }
            }
        }
    }

    /// What the user can do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            RegistryExchangeError::Unauthorized { .. }
            | RegistryExchangeError::Authentication(_)
            | RegistryExchangeError::Server { code: 401 | 403, .. } => Some(LOG_IN),
            RegistryExchangeError::Server { code: 404, .. } => Some(UNKNOWN),
            RegistryExchangeError::Registry { envelope, .. } if envelope.has(&UNKNOWN_CODES) => {
                Some(UNKNOWN)
            }
            RegistryExchangeError::Registry { envelope, .. } if envelope.has(&DENIED_CODES) => {
                Some(LOG_IN)
            }
            RegistryExchangeError::NoCertificates => Some(NO_CERTIFICATES),
            RegistryExchangeError::Request { .. }
            | RegistryExchangeError::Body { .. }
            | RegistryExchangeError::Redirects { .. } => Some(BY_DIGEST),
            RegistryExchangeError::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
                Some(FULL)
            }
            _ => None,
        }
    }
}

fn is_late(error: &ureq::Error) -> bool {
    matches!(error, ureq::Error::Timeout(ureq::Timeout::Global))
}

/// What a registry says in the body of a refusal. Source: OCI Distribution Specification, "Error Codes".
#[derive(Debug, Deserialize)]
pub(crate) struct RegistryErrorResponse {
    errors: Vec<RegistryErrorEntry>,
}

#[derive(Debug, Deserialize)]
struct RegistryErrorEntry {
    code: String,
    #[serde(default)]
    message: String,
}

impl RegistryErrorResponse {
    fn has(&self, codes: &[&str]) -> bool {
        self.errors.iter().any(|error| codes.contains(&error.code.as_str()))
    }
}

impl fmt::Display for RegistryErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = self.errors.iter().map(|error| format!("OCI API error: {}", error.message));
        write!(f, "OCI API errors: [{}]", said.collect::<Vec<_>>().join("\n"))
    }
}

const UNKNOWN_CODES: [&str; 3] = ["MANIFEST_UNKNOWN", "NAME_UNKNOWN", "NOT_FOUND"];
const DENIED_CODES: [&str; 2] = ["UNAUTHORIZED", "DENIED"];

pub(crate) const LOG_IN: &str = "`docker login`, `podman login` or `skopeo login` stores credentials; \
     `skopeo copy` fetches an image into a file";
const UNKNOWN: &str = "is the name right, and is there such a tag?";
const NO_CERTIFICATES: &str = "this machine has no certificates to know a registry by: install the package \
                               ca-certificates, or set SSL_CERT_FILE";
const BY_DIGEST: &str = "an image that was fetched once is found without the registry by its digest, \
                         `NAME@sha256:DIGEST`; one in a file needs none: `skopeo copy docker://NAME \
                         oci-archive:FILE.tar`";
const FULL: &str = "the cache's disk is full: `windtunnel images --clear` frees what no run uses, and \
                    WINDTUNNEL_IMAGE_CACHE names another folder";

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, body: &str) -> RegistryExchangeError {
        RegistryExchangeError::refusal(
            StatusCode::from_u16(code).unwrap(),
            "http://x/",
            body.as_bytes(),
        )
    }

    #[test]
    fn the_words_of_a_registry_are_in_what_it_refuses() {
        let body = r#"{"errors":[{"code":"TOOMANYREQUESTS","message":"slowly","detail":{"a":1}},{"code":"X"}]}"#;
        let text = "registry error: url http://x/, envelope: OCI API errors: [OCI API error: slowly\n\
                    OCI API error: ]";
        assert_eq!(refused(429, body).to_string(), text);
        // Servers' own faults have no codes.
        let server = refused(500, body).to_string();
        assert!(
            server.starts_with("server error: url http://x/, code: 500, message: {"),
            "{server}"
        );
    }

    #[test]
    fn a_hint_follows_from_a_code_of_the_registry_or_else_of_http() {
        let with = |code: &str| format!(r#"{{"errors":[{{"code":"{code}","message":"m"}}]}}"#);
        let cases = [
            (404, with("MANIFEST_UNKNOWN"), Some(UNKNOWN)),
            (404, with("NAME_UNKNOWN"), Some(UNKNOWN)),
            (403, with("DENIED"), Some(LOG_IN)),
            (400, with("UNAUTHORIZED"), Some(LOG_IN)),
            (401, with("NAME_UNKNOWN"), Some(LOG_IN)),
            (404, String::new(), Some(UNKNOWN)),
            (403, "<html>".to_owned(), Some(LOG_IN)),
            (400, with("NAME_INVALID"), None),
            (502, String::new(), None),
        ];
        for (code, body, hint) in cases {
            assert_eq!(refused(code, &body).hint(), hint, "{code} {body}");
        }
    }
}
