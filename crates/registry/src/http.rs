//! Requests to registries and their services: over TLS with certificates that this machine knows, and
//! of its own loopback addresses without. Redirects are followed here and not by the library below: what
//! a request carries is decided anew for each server. Source: RFC 9110.

mod proxy;
mod url;

use std::io::{self, Read};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::uri::PathAndQuery;
use ureq::http::{HeaderValue, Response, StatusCode, Uri, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};

use crate::failure::RegistryExchangeError;
use crate::reference::is_loopback;
use proxy::Proxies;

pub(crate) use url::parse as parse_url;

/// The connections of one fetch, which end with it.
#[derive(Debug)]
pub(crate) struct Http {
    /// Any certificate will do: for addresses of this machine.
    lenient: Agent,
    /// Made when it is needed: not every fetch needs the machine's certificates.
    strict: OnceLock<Agent>,
    proxies: Proxies,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct RegistryRequest {
    pub(crate) url: Uri,
    pub(crate) accept: Option<String>,
    /// For the server of the URL alone.
    pub(crate) authorization: Option<HeaderValue>,
    /// When all of the answer has to be there.
    pub(crate) until: Option<Instant>,
}

/// What a server gave.
pub(crate) enum HttpBodyReadOutcome {
    Document(Vec<u8>),
    /// It goes on behind the most that was wanted.
    TooLong,
}

/// An answer, of which the body has not been read.
#[derive(Debug)]
pub(crate) struct RegistryResponse {
    inner: Response<Body>,
    /// What was asked for first.
    url: String,
}

impl Http {
    pub(crate) fn new() -> Http {
        let tls = tls().disable_verification(true).build();
        let proxies = Proxies::of(|name| std::env::var(name).ok());
        Http { lenient: agent(tls), strict: OnceLock::new(), proxies }
    }

    /// Asks, and asks again where that leads.
    pub(crate) fn get(
        &self,
        ask: &RegistryRequest,
    ) -> Result<RegistryResponse, RegistryExchangeError> {
        let url = shown(&ask.url);
        let mut ask = ask.clone();
        for _ in 0..=REDIRECTS_MAX {
            let mut inner = self.once(&ask).map_err(|error| match error {
                HttpExchangeError::Certificates => RegistryExchangeError::NoCertificates,
                HttpExchangeError::Exchange(source) => RegistryExchangeError::request(&url, source),
            })?;
            let Some(location) = location(&inner) else {
                return Ok(RegistryResponse { inner, url });
            };
            let text = String::from_utf8_lossy(location.as_bytes()).into_owned();
            let next = url::join(&ask.url, &text).ok_or(RegistryExchangeError::Url { text })?;
            if !url::is_same_server(&ask.url, &next) {
                ask.authorization = None;
            }
            ask.url = next;
            drain(&mut inner);
        }
        Err(RegistryExchangeError::Redirects { url })
    }

    /// Whether the server of a URL gives any answer in the URL's protocol.
    pub(crate) fn answers(&self, ask: &RegistryRequest) -> bool {
        self.once(ask).as_mut().map(drain).is_ok()
    }

    fn once(&self, ask: &RegistryRequest) -> Result<Response<Body>, HttpExchangeError> {
        let host = ask.url.host().unwrap_or_default();
        let agent = if is_loopback(host) { &self.lenient } else { self.strict()? };
        let mut request = agent.get(&ask.url);
        if let Some(authorization) = &ask.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if let Some(accept) = &ask.accept {
            request = request.header(header::ACCEPT, accept);
        }
        let left = ask.until.map(|until| until.saturating_duration_since(Instant::now()));
        let proxy = self.proxies.on_the_way_to(&ask.url);
        let request = request.config().timeout_global(left).proxy(proxy).build();
        request.call().map_err(HttpExchangeError::Exchange)
    }

    fn strict(&self) -> Result<&Agent, HttpExchangeError> {
        if let Some(made) = self.strict.get() {
            return Ok(made);
        }
        let known = certificates().ok_or(HttpExchangeError::Certificates)?;
        let tls = tls().root_certs(RootCerts::from(known)).build();
        Ok(self.strict.get_or_init(|| agent(tls)))
    }
}

/// Why one exchange failed.
enum HttpExchangeError {
    Certificates,
    Exchange(ureq::Error),
}

impl RegistryRequest {
    /// With no time limit but those of connecting and of silence.
    pub(crate) fn of(url: Uri) -> RegistryRequest {
        RegistryRequest { url, accept: None, authorization: None, until: None }
    }
}

impl RegistryResponse {
    pub(crate) fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// Of what was asked for, without its query.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The values of `WWW-Authenticate`.
    pub(crate) fn challenges(&self) -> impl Iterator<Item = &str> {
        let headers = self.inner.headers().get_all(header::WWW_AUTHENTICATE);
        headers.iter().filter_map(|header| header.to_str().ok())
    }

    /// Its body, of which no more than `most` bytes are read.
    pub(crate) fn read(
        &mut self,
        most: usize,
    ) -> Result<HttpBodyReadOutcome, RegistryExchangeError> {
        let mut body = Vec::new();
        let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let read = self.inner.body_mut().as_reader().take(limit).read_to_end(&mut body);
        read.map_err(|error| self.broken(error))?;
        Ok(if body.len() > most {
            HttpBodyReadOutcome::TooLong
        } else {
            HttpBodyReadOutcome::Document(body)
        })
    }

    pub(crate) fn body(&mut self) -> impl Read {
        self.inner.body_mut().as_reader()
    }

    /// That nothing of its body is wanted.
    pub(crate) fn end(mut self) {
        drain(&mut self.inner);
    }

    /// What an error of reading the body means.
    pub(crate) fn broken(&self, error: io::Error) -> RegistryExchangeError {
        RegistryExchangeError::body(&self.url, error)
    }

    /// What it means when it is not what was asked for.
    pub(crate) fn refusal(&mut self) -> Result<RegistryExchangeError, RegistryExchangeError> {
        let body = match self.read(REFUSAL_BYTES_MAX)? {
            HttpBodyReadOutcome::Document(body) => body,
            HttpBodyReadOutcome::TooLong => Vec::new(),
        };
        Ok(RegistryExchangeError::refusal(self.status(), &self.url, &body))
    }
}

/// Reads the rest of a short answer, whose connection can be used again then.
fn drain(answer: &mut Response<Body>) {
    // Another one is closed.
    let _ = io::copy(&mut answer.body_mut().as_reader().take(DRAINED_BYTES), &mut io::sink());
}

/// Where an answer says that what was asked for is.
fn location(answer: &Response<Body>) -> Option<HeaderValue> {
    let leads = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    answer.headers().get(header::LOCATION).filter(|_| leads).cloned()
}

/// A URL without its query, which may be a secret.
fn shown(url: &Uri) -> String {
    let path = url.path_and_query().map_or("/", PathAndQuery::path);
    let server = url.authority().map_or("", |authority| authority.as_str());
    format!("{}://{server}{path}", url.scheme_str().unwrap_or_default())
}

/// Those by which this machine knows servers, of `SSL_CERT_FILE` and `SSL_CERT_DIR` or of its
/// distribution; `None` if there are none.
fn certificates() -> Option<Vec<Certificate<'static>>> {
    // What is broken among many is left out, as other programs do it.
    let found = rustls_native_certs::load_native_certs().certs;
    let known: Vec<_> = found.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
    (!known.is_empty()).then_some(known)
}

fn tls() -> ureq::tls::TlsConfigBuilder {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    TlsConfig::builder().unversioned_rustls_crypto_provider(provider)
}

fn agent(tls: TlsConfig) -> Agent {
    let config = Config::builder()
        .tls_config(tls)
        .user_agent(USER_AGENT)
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_per_read(Some(SILENCE_TIMEOUT))
        .timeout_per_write(Some(SILENCE_TIMEOUT))
        .build();
    Agent::with_parts(config, DefaultConnector::default(), SameThreadResolver::default())
}

/// Looks up names by the calling thread: one that a time limit has left behind would be in the way of a
/// fork. The system's resolver has time limits of its own (resolv.conf(5)).
#[derive(Debug, Default)]
struct SameThreadResolver(DefaultResolver);

impl Resolver for SameThreadResolver {
    fn resolve(
        &self,
        url: &Uri,
        config: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        self.0.resolve(url, config, NextTimeout::default())
    }
}

const USER_AGENT: &str = concat!("windtunnel/", env!("CARGO_PKG_VERSION"));
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Without a single byte.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
const REDIRECTS_MAX: usize = 10;
/// Of a body that is not wanted, a sentence mostly.
const DRAINED_BYTES: u64 = 2048;
/// What is looked at of a refusal.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Asks a server of this machine that sends some bytes and no more, within a short time.
    fn ask_one_that_sends(
        bytes: &'static [u8],
    ) -> Result<HttpBodyReadOutcome, RegistryExchangeError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = parse_url(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(bytes).unwrap();
            // Until the client goes.
            io::copy(&mut stream, &mut io::sink())
        });
        let until = Some(Instant::now() + Duration::from_millis(200));
        let given = Http::new()
            .get(&RegistryRequest { until, ..RegistryRequest::of(url) })
            .and_then(|mut it| it.read(10));
        server.join().unwrap().unwrap();
        given
    }

    #[test]
    fn an_answer_that_is_not_whole_in_time_is_late() {
        let begun: [&[u8]; 4] = [
            b"",
            b"HTTP/1.1 200 x\r\n",
            b"HTTP/1.1 200 x\r\ncontent-length: 3\r\n\r\n12",
            b"HTTP/1.1 302 x\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n",
        ];
        for bytes in begun {
            let given = ask_one_that_sends(bytes);
            assert!(matches!(given, Err(RegistryExchangeError::Late { .. })), "{bytes:?}");
        }
    }

    #[test]
    fn no_more_is_read_than_was_wanted() {
        let length = |bytes| match ask_one_that_sends(bytes) {
            Ok(HttpBodyReadOutcome::Document(body)) => Some(body.len()),
            _ => None,
        };
        assert_eq!(length(b"HTTP/1.1 200 x\r\ncontent-length: 10\r\n\r\n0123456789"), Some(10));
        assert_eq!(length(b"HTTP/1.1 200 x\r\ncontent-length: 0\r\n\r\n"), Some(0));
        let more = ask_one_that_sends(b"HTTP/1.1 200 x\r\ncontent-length: 99\r\n\r\n0123456789a");
        assert!(matches!(more, Ok(HttpBodyReadOutcome::TooLong)));
    }

    #[test]
    fn an_error_names_a_url_without_its_query() {
        let named = |text: &str| shown(&parse_url(text).unwrap());
        assert_eq!(named("https://a:1/b/c?secret"), "https://a:1/b/c");
        assert_eq!(named("http://a"), "http://a/");
    }
}
