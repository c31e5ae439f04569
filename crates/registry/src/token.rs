//! Who may fetch: the token that a registry's token service gives. Source: Distribution's "Token
//! Authentication Specification"; RFC 6750, RFC 9110 (11.6.1).
//!
//! The answers are not the library's to read, because it reads them whole, whatever their length, and asks any
//! service that a registry names, with a password and without TLS.

use http_auth::ChallengeRef;
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, header};
use serde::Deserialize;

use crate::manifest::{Given, read, refusal};
use crate::reference::{Reference, is_loopback};

/// What registries and their services are asked by.
pub(crate) struct Asking {
    /// Any certificate will do: for addresses of this machine.
    pub(crate) lenient: Client,
    pub(crate) strict: Client,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(transparent)]
    Library(#[from] OciDistributionError),
    /// What the registry did, behind "the registry".
    #[error("{0}")]
    Answer(String),
}

/// What a token service says.
#[derive(Deserialize)]
struct Document {
    token: Option<String>,
    access_token: Option<String>,
}

impl Asking {
    fn of(&self, host: &str) -> &Client {
        if is_loopback(host) { &self.lenient } else { &self.strict }
    }

    /// The token with which an image may be fetched; `None`: the registry wants none.
    pub(crate) async fn token(
        &self,
        reference: &Reference,
        scheme: &str,
        auth: &RegistryAuth,
    ) -> Result<Option<String>, TokenError> {
        let registry = reference.inner().resolve_registry();
        let client = if reference.is_loopback() { &self.lenient } else { &self.strict };
        let asked = client.get(format!("{scheme}://{registry}/v2/")).send().await;
        let answer = asked.map_err(OciDistributionError::from)?;
        let Some((realm, service)) = challenge(&answer) else { return Ok(None) };
        let url = service_url(&realm, reference)?;
        let scope = format!("repository:{}:pull", reference.inner().repository());
        let mut asked = self.of(url.host_str().unwrap_or_default()).get(url.clone());
        asked = asked.query(&[("scope", &scope)]);
        if let Some(service) = service {
            asked = asked.query(&[("service", &service)]);
        }
        let mut answer = with(asked, auth).send().await.map_err(OciDistributionError::from)?;
        let (status, body) = (answer.status(), read(&mut answer, TOKEN_BYTES_MAX).await?);
        let Given::Document(body) = body else {
            return Err(TokenError::Answer(format!("{NAMED} gave more than 1 MiB")));
        };
        if status != StatusCode::OK {
            return Err(match status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    let reason = String::from_utf8_lossy(&body).into_owned();
                    OciDistributionError::AuthenticationFailure(reason).into()
                }
                _ => refusal(status, url.into(), &body).into(),
            });
        }
        let token =
            serde_json::from_slice(&body).ok().and_then(|Document { token, access_token }| {
                token.or(access_token).filter(|token| !token.is_empty())
            });
        token.map(Some).ok_or_else(|| TokenError::Answer(format!("{NAMED} gave no token")))
    }
}

/// Where the service is. A registry that is asked by TLS must not have its password sent without it.
fn service_url(realm: &str, reference: &Reference) -> Result<Url, TokenError> {
    let strange = || TokenError::Answer(format!("names `{realm}` as its token service"));
    let url = Url::parse(realm).map_err(|_| strange())?;
    let host = url.host_str().ok_or_else(strange)?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(host) && reference.is_loopback() => Ok(url),
        "http" => {
            let why = format!("names a token service without TLS, `{realm}`");
            Err(TokenError::Answer(why))
        }
        _ => Err(strange()),
    }
}

/// The realm and the service of the first challenge that wants a bearer token.
fn challenge(answer: &Response) -> Option<(String, Option<String>)> {
    let headers = answer.headers().get_all(header::WWW_AUTHENTICATE);
    let texts = headers.iter().filter_map(|header| header.to_str().ok());
    texts
        .filter_map(|text| http_auth::parse_challenges(text).ok())
        .flatten()
        .find_map(|one| bearer(&one))
}

fn bearer(of: &ChallengeRef<'_>) -> Option<(String, Option<String>)> {
    let named = |wanted: &str| {
        let found = of.params.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.to_unescaped())
    };
    let is_bearer = of.scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| Some((named("realm")?, named("service")))).flatten()
}

fn with(asked: RequestBuilder, auth: &RegistryAuth) -> RequestBuilder {
    match auth {
        RegistryAuth::Anonymous => asked,
        RegistryAuth::Basic(user, password) => asked.basic_auth(user, Some(password)),
        RegistryAuth::Bearer(token) => asked.bearer_auth(token),
    }
}

const NAMED: &str = "has a token service that";
/// A token has some kilobytes.
const TOKEN_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn realm(realm: &str, image: &str) -> Result<String, String> {
        let reference = Reference::parse(image).unwrap();
        let url = service_url(realm, &reference);
        url.map(String::from).map_err(|error| error.to_string())
    }

    #[test]
    fn a_password_is_not_sent_without_tls_but_on_this_machine() {
        let outside = "https://auth.example/token";
        assert_eq!(realm(outside, "registry.example/a").as_deref(), Ok(outside));
        assert_eq!(realm(outside, "127.0.0.1:5000/a").as_deref(), Ok(outside));
        let inside = "http://127.0.0.1:5001/token";
        assert_eq!(realm(inside, "localhost:5000/a").as_deref(), Ok(inside));
        let plain = realm("http://auth.example/token", "registry.example/a").unwrap_err();
        assert_eq!(plain, "names a token service without TLS, `http://auth.example/token`");
        assert!(realm("http://auth.example/token", "127.0.0.1:5000/a").is_err());
        assert!(realm(inside, "registry.example/a").is_err(), "nor to a server of this machine");
        for strange in ["", "token", "file:///etc/passwd", "ftp://x/"] {
            assert!(realm(strange, "registry.example/a").is_err(), "{strange}");
        }
    }

    #[test]
    fn a_bearer_challenge_is_found_among_others() {
        let text = r#"Basic realm="x", bearer Realm="https://a/t", service="s \"1\"", scope="y""#;
        let found = http_auth::parse_challenges(text).unwrap().iter().find_map(bearer);
        assert_eq!(found, Some(("https://a/t".into(), Some("s \"1\"".into()))));
        let basic = http_auth::parse_challenges(r#"Basic realm="x""#).unwrap();
        assert_eq!(basic.iter().find_map(bearer), None);
    }
}
