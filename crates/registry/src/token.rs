//! Who may fetch: the token that a registry's token service gives. Source: Distribution's "Token
//! Authentication Specification"; RFC 6750, RFC 9110 (11.6.1).

use std::time::Instant;

use http_auth::ChallengeRef;
use serde::Deserialize;
use ureq::http::{HeaderValue, StatusCode, Uri};

use crate::credentials::{RegistryCredentials, secret};
use crate::failure::RegistryExchangeError;
use crate::http::{Http, HttpBodyReadOutcome, RegistryRequest, RegistryResponse, parse_url};
use crate::reference::{ImageReference, is_loopback};

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(transparent)]
    Exchange(#[from] RegistryExchangeError),
    /// What the registry did, behind "the registry".
    #[error("{0}")]
    Answer(String),
}

/// What a token service says.
#[derive(Deserialize)]
struct TokenServiceResponse {
    token: Option<String>,
    access_token: Option<String>,
}

/// The token with which an image may be fetched, as a request has it; `None`: the registry wants none.
pub(crate) fn token(
    http: &Http,
    reference: &ImageReference,
    scheme: &str,
    stored: Option<&RegistryCredentials>,
    until: Instant,
) -> Result<Option<HeaderValue>, TokenError> {
    let until = Some(until);
    let text = format!("{scheme}://{}/v2/", reference.authority());
    let url = parse_url(&text).ok_or(RegistryExchangeError::Url { text })?;
    let answer = http.get(&RegistryRequest { until, ..RegistryRequest::of(url) })?;
    let challenge = challenge(&answer);
    answer.end();
    let Some((realm, service)) = challenge else { return Ok(None) };
    let scope = format!("repository:{}:pull", reference.repository());
    let url = service_url(&realm, reference)?;
    let url = with_query(&url, &scope, service.as_deref()).ok_or_else(|| strange(&realm))?;
    let authorization = stored.map(RegistryCredentials::header);
    let mut answer =
        http.get(&RegistryRequest { until, authorization, ..RegistryRequest::of(url) })?;
    let HttpBodyReadOutcome::Document(body) = answer.read(TOKEN_BYTES_MAX)? else {
        return Err(TokenError::Answer(format!("{NAMED} gave more than 1 MiB")));
    };
    match answer.status() {
        StatusCode::OK => Ok(Some(token_in(&body)?)),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let reason = String::from_utf8_lossy(&body).into_owned();
            Err(RegistryExchangeError::Authentication(reason).into())
        }
        status => Err(RegistryExchangeError::refusal(status, answer.url(), &body).into()),
    }
}

fn token_in(body: &[u8]) -> Result<HeaderValue, TokenError> {
    let document = serde_json::from_slice(body).ok();
    let token =
        document.and_then(|TokenServiceResponse { token, access_token }| token.or(access_token));
    let token = token.filter(|token| !token.is_empty());
    let header = token.and_then(|token| secret(&format!("Bearer {token}")));
    header.ok_or_else(|| TokenError::Answer(format!("{NAMED} gave no token")))
}

/// Where the service is. A registry that is asked by TLS must not have its password sent without it.
fn service_url(realm: &str, reference: &ImageReference) -> Result<Uri, TokenError> {
    let url = parse_url(realm).ok_or_else(|| strange(realm))?;
    let is_here = is_loopback(url.host().unwrap_or_default()) && reference.is_loopback();
    if url.scheme_str() == Some("https") || is_here {
        return Ok(url);
    }
    let why = format!("names a token service without TLS, `{realm}`");
    Err(TokenError::Answer(why))
}

fn strange(realm: &str) -> TokenError {
    TokenError::Answer(format!("names `{realm}` as its token service"))
}

/// The service's URL with what is asked of it, behind what it has already.
fn with_query(url: &Uri, scope: &str, service: Option<&str>) -> Option<Uri> {
    let mark = if url.query().is_some() { '&' } else { '?' };
    let mut text = format!("{url}{mark}scope={}", encoded(scope));
    if let Some(service) = service {
        text += &format!("&service={}", encoded(service));
    }
    parse_url(&text)
}

/// A value in a query (RFC 3986, 2.1 and 2.3).
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(one).collect()
}

/// The realm and the service of the first challenge that wants a bearer token.
fn challenge(answer: &RegistryResponse) -> Option<(String, Option<String>)> {
    answer
        .challenges()
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

const NAMED: &str = "has a token service that";
/// A token has some kilobytes.
const TOKEN_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn realm(realm: &str, image: &str) -> Result<String, String> {
        let reference = ImageReference::parse(image).unwrap();
        let url = service_url(realm, &reference);
        url.map(|url| url.to_string()).map_err(|error| error.to_string())
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

    #[test]
    fn a_service_is_asked_behind_what_its_url_has() {
        let asked = |url: &str, service| {
            let url = parse_url(url).unwrap();
            with_query(&url, "repository:a/b:pull", service).unwrap().to_string()
        };
        let scope = "scope=repository%3Aa%2Fb%3Apull";
        assert_eq!(asked("https://a/t", None), format!("https://a/t?{scope}"));
        let two = asked("https://a/t?x=1", Some("my own & \"ä\""));
        let service = "my%20own%20%26%20%22%C3%A4%22";
        assert_eq!(two, format!("https://a/t?x=1&{scope}&service={service}"));
    }

    #[test]
    fn a_token_is_what_a_request_can_have() {
        assert_eq!(token_in(br#"{"token":"x.y-z"}"#).unwrap(), "Bearer x.y-z");
        for none in [r#"{"token":""}"#, "{}", "[]", r#"{"token":"a\r\nHost: b"}"#] {
            assert!(token_in(none.as_bytes()).is_err(), "{none}");
        }
    }
}
