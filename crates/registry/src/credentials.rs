//! Credentials that users have stored for a registry.
//!
//! They are looked up where the tools that store them say: `REGISTRY_AUTH_FILE`,
//! `$XDG_RUNTIME_DIR/containers/auth.json` (containers-auth.json(5)), then `config.json` in
//! `DOCKER_CONFIG` or `~/.docker`, with the helpers that these name.

use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_client::secrets::RegistryAuth;

use crate::error::RegistryError;
use crate::reference::Reference;

/// What is stored for the registry of a reference; anonymous if nothing is.
pub(crate) fn stored(reference: &Reference) -> Result<RegistryAuth, RegistryError> {
    let registry = reference.inner().registry();
    // Docker knows its own registry by the address that its first version had.
    let docker = if registry == "docker.io" { "https://index.docker.io/v1/" } else { registry };
    let found = match docker_credential::get_podman_credential(registry) {
        Err(error) if is_absence(&error) => docker_credential::get_credential(docker),
        other => other,
    };
    let failed = |why: String| RegistryError::Credentials { registry: registry.to_owned(), why };
    match found {
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            Ok(RegistryAuth::Basic(user, password))
        }
        Ok(DockerCredential::IdentityToken(_)) => {
            Err(failed("they are an identity token, which is not supported".to_owned()))
        }
        Err(error) if is_absence(&error) => Ok(RegistryAuth::Anonymous),
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
