//! Credentials that users have stored for a registry.
//!
//! They are looked up where the tools that store them say: `REGISTRY_AUTH_FILE`,
//! `$XDG_RUNTIME_DIR/containers/auth.json` (containers-auth.json(5)), then `config.json` in
//! `DOCKER_CONFIG` or `~/.docker`, with the helpers that these name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docker_credential::{CredentialRetrievalError, DockerCredential};
use ureq::http::HeaderValue;

use crate::error::RegistryError;
use crate::reference::ImageReference;

/// A name and a password.
pub(crate) struct RegistryCredentials {
    user: String,
    password: String,
}

impl RegistryCredentials {
    /// As they stand in a request's `Authorization` (RFC 7617, 2).
    pub(crate) fn header(&self) -> HeaderValue {
        let coded = STANDARD.encode(format!("{}:{}", self.user, self.password));
        secret(&format!("Basic {coded}"))
            .expect("base64 consists of letters, digits, `+`, `/` and `=`")
    }
}

/// A value that no log shows; `None` if it is none of HTTP.
pub(crate) fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// What is stored for the registry of a reference, if anything is.
pub(crate) fn stored(
    reference: &ImageReference,
) -> Result<Option<RegistryCredentials>, RegistryError> {
    let registry = reference.registry();
    // Docker knows its own registry by the address that its first version had.
    let docker = if registry == "docker.io" { "https://index.docker.io/v1/" } else { registry };
    let found = match docker_credential::get_podman_credential(registry) {
        Err(error) if is_absence(&error) => docker_credential::get_credential(docker),
        other => other,
    };
    let failed = |why: String| RegistryError::Credentials { registry: registry.to_owned(), why };
    match found {
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            Ok(Some(RegistryCredentials { user, password }))
        }
        Ok(DockerCredential::IdentityToken(_)) => {
            Err(failed("they are an identity token, which is not supported".to_owned()))
        }
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Whether it only means that there are none.
fn is_absence(error: &CredentialRetrievalError) -> bool {
    use CredentialRetrievalError as Error;
    // `ConfigReadError` is a file that is missing or cannot be parsed: the library does not say
    // which, and a registry that needs credentials answers so itself.
    matches!(error, Error::NoCredentialConfigured | Error::ConfigNotFound | Error::ConfigReadError)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7617, 2.
    #[test]
    fn a_name_and_a_password_are_sent_as_base64() {
        let (user, password) = ("Aladdin".to_owned(), "open sesame".to_owned());
        let header = RegistryCredentials { user, password }.header();
        assert_eq!(header.to_str().unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(!format!("{header:?}").contains("QWxh"));
    }
}
