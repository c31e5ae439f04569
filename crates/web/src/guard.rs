//! Which requests are answered at all.
//!
//! Loopback can be reached by every program and every browser page on the machine. A foreign page
//! can send requests here, and with a name of its own that resolves to this address it would even
//! be of the same origin (DNS rebinding). So: the name that was asked for is an address or
//! `localhost`, with the port of this server; where the browser says which page asks, it is a page
//! from here; and each request has the token, which no page elsewhere knows.

use std::net::IpAddr;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};

use crate::WebAccessToken;

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpRequestRefusal {
    Host,
    Origin,
    Token,
}

impl HttpRequestRefusal {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            HttpRequestRefusal::Host | HttpRequestRefusal::Origin => StatusCode::FORBIDDEN,
            HttpRequestRefusal::Token => StatusCode::UNAUTHORIZED,
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            HttpRequestRefusal::Host => {
                "the page was asked for under a name that is not an address of it"
            }
            HttpRequestRefusal::Origin => "another page has sent the request",
            HttpRequestRefusal::Token => "the token is missing or wrong",
        }
    }
}

/// Looks at a request to the server at this port.
pub(crate) fn check(
    headers: &HeaderMap,
    uri: &Uri,
    port: u16,
    token: &WebAccessToken,
) -> Result<(), HttpRequestRefusal> {
    let host =
        only(headers, &HOST).filter(|host| is_ours(host, port)).ok_or(HttpRequestRefusal::Host)?;
    if headers.contains_key(ORIGIN) {
        let origin = only(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        origin
            .filter(|origin| origin.eq_ignore_ascii_case(host))
            .ok_or(HttpRequestRefusal::Origin)?;
    }
    let bearer = only(headers, &AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let given = bearer.or_else(|| parameter(uri, "token"));
    given.filter(|given| token.is(given)).map(|_| ()).ok_or(HttpRequestRefusal::Token)
}

/// The value of a parameter of the address. Tokens and numbers need no decoding.
pub(crate) fn parameter<'u>(uri: &'u Uri, name: &str) -> Option<&'u str> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// A header that is there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// `localhost` or an address, with our port.
fn is_ours(host: &str, port: u16) -> bool {
    let Some((name, given)) = host.rsplit_once(':') else { return false };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_address = match bare {
        Some(address) => address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()),
        None => name.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4()),
    };
    (is_address || name.eq_ignore_ascii_case("localhost")) && given == port.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(headers: &[(HeaderName, &str)], uri: &str) -> Result<(), HttpRequestRefusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.clone(), value.parse().unwrap());
        }
        // The token of a test has to be known.
        let token = WebAccessToken::random().unwrap();
        let mut with_token = HeaderMap::new();
        for (name, value) in &map {
            let text = value.to_str().unwrap().replace("TOKEN", token.text());
            with_token.append(name.clone(), text.parse().unwrap());
        }
        let uri: Uri = uri.replace("TOKEN", token.text()).parse().unwrap();
        check(&with_token, &uri, 4000, &token)
    }

    #[test]
    fn a_request_with_the_token_under_an_address_is_answered() {
        for host in ["127.0.0.1:4000", "localhost:4000", "LOCALHOST:4000", "[::1]:4000"] {
            assert_eq!(checked(&[(HOST, host)], "/?token=TOKEN"), Ok(()), "{host}");
        }
        let header = [(HOST, "127.0.0.1:4000"), (AUTHORIZATION, "Bearer TOKEN")];
        assert_eq!(checked(&header, "/api/runs"), Ok(()));
    }

    #[test]
    fn names_that_others_can_have_are_refused() {
        for host in [
            "evil.example:4000",
            "127.0.0.1",
            "127.0.0.1:4001",
            "localhost.evil.example:4000",
            "127.0.0.1.evil.example:4000",
            "[127.0.0.1]:4000",
            "",
            ":4000",
            "::1:4000",
        ] {
            let found = checked(&[(HOST, host)], "/?token=TOKEN");
            assert_eq!(found, Err(HttpRequestRefusal::Host), "{host}");
        }
        assert_eq!(checked(&[], "/?token=TOKEN"), Err(HttpRequestRefusal::Host));
        let twice = [(HOST, "127.0.0.1:4000"), (HOST, "evil.example:4000")];
        assert_eq!(checked(&twice, "/?token=TOKEN"), Err(HttpRequestRefusal::Host));
    }

    #[test]
    fn pages_from_elsewhere_are_refused() {
        let from =
            |origin: &str| checked(&[(HOST, "localhost:4000"), (ORIGIN, origin)], "/?token=TOKEN");
        assert_eq!(from("http://localhost:4000"), Ok(()));
        for origin in ["http://evil.example", "null", "https://localhost:4000", "http://localhost"]
        {
            assert_eq!(from(origin), Err(HttpRequestRefusal::Origin), "{origin}");
        }
    }

    #[test]
    fn a_wrong_token_or_none_is_refused() {
        let ask = |headers: &[(HeaderName, &str)], uri: &str| {
            let host = [(HOST, "127.0.0.1:4000")];
            checked(&[&host, headers].concat(), uri)
        };
        for uri in ["/", "/?token=", "/?token=TOKEN0", "/?xtoken=TOKEN", "/api/runs?after=3"] {
            assert_eq!(ask(&[], uri), Err(HttpRequestRefusal::Token), "{uri}");
        }
        // The header counts, where there is one.
        let wrong = [(AUTHORIZATION, "Bearer no")];
        assert_eq!(ask(&wrong, "/?token=TOKEN"), Err(HttpRequestRefusal::Token));
        assert_eq!(ask(&[(AUTHORIZATION, "Basic TOKEN")], "/"), Err(HttpRequestRefusal::Token));
    }
}
