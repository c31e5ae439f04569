//! Asks an agent.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use quinn::{Connection, Endpoint, EndpointConfig, TokioRuntime};
use tokio::runtime::Handle;

use crate::hello::{self, AgentHello, HelloError};
use crate::key::{ClusterKey, NAME};
use crate::ports::PORT;
use crate::protocol::answers::{AgentAnswer, OTHER_ANSWER};
use crate::protocol::questions::AgentQuestion;
use crate::protocol::{ANSWER_BYTES_MAX, AgentReply, AgentRequest, ClusterHosts};
use crate::refusal::HandshakeRefusal;
use crate::{background, machine, stream, tls};

/// A connection to an agent.
#[derive(Debug)]
pub struct AgentClient {
    runtime: Handle,
    endpoint: Endpoint,
    connection: Connection,
    name: String,
}

/// Why an agent cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentClientError {
    /// There is no such machine.
    #[error("no machine is called {host}")]
    NoHost {
        /// What was asked for.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// No agent answers there.
    #[error("no agent answers at {host}")]
    NoAgent {
        /// What was asked for.
        host: String,
        /// What was received, if anything.
        why: String,
    },
    /// The agent does not take the key, or has another one.
    #[error("the agent at {host} has another key")]
    OtherKey {
        /// What was asked for.
        host: String,
        /// What TLS says.
        why: String,
    },
    /// The agent is of another version.
    #[error("the agent at {host} is of another version of windtunnel: {why}")]
    OtherVersion {
        /// What was asked for.
        host: String,
        /// Both versions, as far as they are known.
        why: String,
    },
    /// The conversation broke off.
    #[error("the agent at {host} broke off")]
    Broken {
        /// What was asked for.
        host: String,
        /// How.
        source: io::Error,
    },
    /// It says that it cannot answer.
    #[error("the agent at {host} says: {message}")]
    Refused {
        /// What was asked for.
        host: String,
        /// Why.
        message: String,
    },
    /// It answers something else than was asked.
    #[error("the agent at {host} says: {OTHER_ANSWER}")]
    Unexpected {
        /// What was asked for.
        host: String,
    },
    /// Something of this machine.
    #[error("cannot {step}")]
    Step {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl AgentClientError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            AgentClientError::NoAgent { host, .. } => Some(format!(
                "start one there with `windtunnel agent`, or see that UDP port {} of {host} is reached",
                port_of(host)
            )),
            AgentClientError::OtherKey { .. } => Some(
                "all machines of a cluster need the same key file: name it with --key FILE".into(),
            ),
            AgentClientError::OtherVersion { .. } => {
                Some("use the same version on all machines of a cluster".to_owned())
            }
            AgentClientError::NoHost { .. } => {
                Some("write NAME, NAME:PORT or [IPv6]:PORT".to_owned())
            }
            _ => None,
        }
    }
}

impl AgentClient {
    /// Connects to the agent at `host`: a name or an address, with or without a port.
    ///
    /// # Errors
    /// [`AgentClientError`].
    pub fn connect(host: &str, key: &ClusterKey) -> Result<Self, AgentClientError> {
        let addresses = resolve(host)?;
        let runtime = background::runtime().map_err(step("start a runtime"))?;
        let mut last = None;
        for address in addresses {
            match runtime.block_on(reach(host, address, key)) {
                Ok((endpoint, connection)) => {
                    return Ok(AgentClient {
                        runtime,
                        endpoint,
                        connection,
                        name: host.to_owned(),
                    });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| AgentClientError::NoAgent {
            host: host.to_owned(),
            why: "it has no address".to_owned(),
        }))
    }

    /// Whether nothing has come from the agent for so long that the connection is over.
    #[must_use]
    pub fn has_timed_out(&self) -> bool {
        matches!(self.connection.close_reason(), Some(quinn::ConnectionError::TimedOut))
    }

    /// Asks and waits for the answer, the first one if there are several.
    ///
    /// # Errors
    /// [`AgentClientError::Broken`], [`AgentClientError::Refused`] or [`AgentClientError::Unexpected`].
    pub fn ask<A: AgentAnswer>(&self, question: &AgentQuestion<A>) -> Result<A, AgentClientError> {
        let host = || self.name.clone();
        let broken = |source| AgentClientError::Broken { host: host(), source };
        let asking = ask(&self.connection, question);
        self.runtime.block_on(asking).map_err(broken)?.map_err(|reply| match reply {
            AgentReply::Error { message } => AgentClientError::Refused { host: host(), message },
            _ => AgentClientError::Unexpected { host: host() },
        })
    }

    /// The round trip to the agent, as the connection sees it.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        self.connection.rtt()
    }

    /// All agents of the cluster.
    ///
    /// # Errors
    /// As [`AgentClient::ask`].
    pub fn hosts(&self, measure: bool) -> Result<ClusterHosts, AgentClientError> {
        self.ask(&AgentRequest::hosts(measure))
    }
}

impl AgentClient {
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn block_on<T>(
        &self,
        work: impl Future<Output = io::Result<T>>,
    ) -> Result<T, AgentClientError> {
        let broken = |source| AgentClientError::Broken { host: self.name.clone(), source };
        self.runtime.block_on(work).map_err(broken)
    }
}

impl Drop for AgentClient {
    fn drop(&mut self) {
        self.endpoint.close(0_u32.into(), b"done");
        // So that the agent receives the close.
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(FAREWELL, self.endpoint.wait_idle()).await;
        });
    }
}

/// Asks over a connection: the answer, or a reply that is none.
pub(crate) async fn ask<A: AgentAnswer>(
    connection: &Connection,
    question: &AgentQuestion<A>,
) -> io::Result<Result<A, AgentReply>> {
    let (mut to, mut from) = connection.open_bi().await?;
    stream::send(&mut to, question.message()).await?;
    to.finish().map_err(io::Error::other)?;
    Ok(A::of(stream::receive(&mut from, ANSWER_BYTES_MAX).await?))
}

/// The addresses that a host's name means.
///
/// # Errors
/// [`AgentClientError::NoHost`].
pub fn resolve(host: &str) -> Result<Vec<SocketAddr>, AgentClientError> {
    let failed = |source| AgentClientError::NoHost { host: host.to_owned(), source };
    let resolved = match host.to_socket_addrs() {
        Ok(addresses) => addresses,
        // No port: ours. An IPv6 address needs no brackets then, and may have them.
        Err(_) => (bare(host), PORT).to_socket_addrs().map_err(failed)?,
    };
    Ok(resolved.collect())
}

/// A host without the brackets around an IPv6 address.
#[must_use]
pub fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

async fn reach(
    host: &str,
    address: SocketAddr,
    key: &ClusterKey,
) -> Result<(Endpoint, Connection), AgentClientError> {
    let socket = UdpSocket::bind(any_for(address)).map_err(step("open a UDP socket"))?;
    let settings =
        tls::command_settings(key).map_err(io::Error::other).map_err(step("use the key"))?;
    let runtime = std::sync::Arc::new(TokioRuntime);
    let mut endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime)
        .map_err(step("open a UDP socket"))?;
    endpoint.set_default_client_config(settings);
    let no_agent = |why: String| AgentClientError::NoAgent { host: host.to_owned(), why };
    let connecting =
        endpoint.connect(address, NAME).map_err(|error| no_agent(error.to_string()))?;
    let connection = tokio::select! {
        connection = tokio::time::timeout(PATIENCE, connecting) => connection,
        () = refused(address) => return Err(no_agent("no process listens there".to_owned())),
    };
    let connection = match connection {
        Ok(connection) => connection.map_err(|error| closed(host, &error))?,
        Err(_) => {
            return Err(no_agent(format!("nothing was received within {} s", PATIENCE.as_secs())));
        }
    };
    // In TLS 1.3 the client has finished before the server has seen its certificate: only the
    // server's first message shows that the key was accepted.
    let own = AgentHello::own(machine::name());
    match tokio::time::timeout(PATIENCE, hello::exchange(&connection, &own)).await {
        Ok(Ok(_)) => Ok((endpoint, connection)),
        Ok(Err(HelloError::Version(why))) => {
            Err(AgentClientError::OtherVersion { host: host.to_owned(), why })
        }
        Ok(Err(HelloError::Broken(error))) => Err(match connection.close_reason() {
            Some(reason) => closed(host, &reason),
            None => AgentClientError::Broken { host: host.to_owned(), source: error },
        }),
        Err(_) => Err(no_agent("it does not answer".to_owned())),
    }
}

/// Is ready when the other machine's kernel says that no process listens on that port (ICMP, RFC
/// 1122, 4.1.3.1), which QUIC ignores because any machine could forge it. Here it only decides how
/// soon we give up.
async fn refused(address: SocketAddr) {
    let probe = async {
        let socket = tokio::net::UdpSocket::bind(any_for(address)).await?;
        socket.connect(address).await?;
        // No packet of QUIC is as short: an agent drops it.
        socket.send(&[0]).await?;
        loop {
            socket.recv(&mut [0; 1]).await?;
        }
    };
    let probed: io::Result<std::convert::Infallible> = probe.await;
    let is_refused = probed.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if !is_refused {
        std::future::pending::<()>().await;
    }
}

fn any_for(address: SocketAddr) -> &'static str {
    match address {
        SocketAddr::V4(_) => "0.0.0.0:0",
        SocketAddr::V6(_) => "[::]:0",
    }
}

/// What the end of a connection means.
fn closed(host: &str, error: &quinn::ConnectionError) -> AgentClientError {
    let host = host.to_owned();
    match HandshakeRefusal::of(error) {
        Some(HandshakeRefusal::Key) => AgentClientError::OtherKey { host, why: error.to_string() },
        Some(refusal @ HandshakeRefusal::Version) => {
            AgentClientError::OtherVersion { host, why: refusal.text() }
        }
        Some(refusal @ HandshakeRefusal::Busy) => {
            AgentClientError::Refused { host, message: refusal.text() }
        }
        None => AgentClientError::NoAgent { host, why: error.to_string() },
    }
}

fn port_of(host: &str) -> u16 {
    // The colons of an IPv6 address without a port are its own.
    if bare(host).parse::<IpAddr>().is_ok() {
        return PORT;
    }
    let port = host.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    port.unwrap_or(PORT)
}

fn step(step: &'static str) -> impl FnOnce(io::Error) -> AgentClientError {
    move |source| AgentClientError::Step { step, source }
}

const PATIENCE: Duration = Duration::from_secs(3);
const FAREWELL: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_be_named_with_and_without_a_port() {
        let first = |host: &str| resolve(host).unwrap()[0].to_string();
        assert_eq!(first("127.0.0.1"), "127.0.0.1:7447");
        assert_eq!(first("127.0.0.1:9"), "127.0.0.1:9");
        assert_eq!(first("::1"), "[::1]:7447");
        assert_eq!(first("[::1]"), "[::1]:7447");
        assert_eq!(first("[::1]:9"), "[::1]:9");
        assert!(matches!(resolve("no such host"), Err(AgentClientError::NoHost { .. })));
    }

    #[test]
    fn the_hint_names_the_port_that_was_asked_also_of_an_ipv6_address() {
        let hint = |host: &str| {
            let error = AgentClientError::NoAgent { host: host.to_owned(), why: String::new() };
            error.hint().unwrap()
        };
        let named = [("a", 7447), ("a:80", 80), ("10.0.0.1:81", 81), ("[::1]:82", 82)];
        let without = [
            ("::1", 7447),
            ("fd00::99", 7447),
            ("[fd00::99]", 7447),
            ("10.0.0.1", 7447),
            ("[fd00::9]", 7447),
        ];
        for (host, port) in named.into_iter().chain(without) {
            let expected = format!("see that UDP port {port} of {host} is reached");
            assert!(hint(host).ends_with(&expected), "{}", hint(host));
        }
    }

    #[test]
    fn each_error_names_the_host_and_says_what_to_do_about_it() {
        let (host, why) = (|| "b".to_owned(), || "c".to_owned());
        let other_key = AgentClientError::OtherKey { host: host(), why: why() };
        assert_eq!(other_key.to_string(), "the agent at b has another key");
        assert!(other_key.hint().unwrap().contains("--key FILE"));
        let other_version = AgentClientError::OtherVersion { host: host(), why: why() };
        assert_eq!(
            other_version.to_string(),
            "the agent at b is of another version of windtunnel: c"
        );
        assert!(other_version.hint().unwrap().contains("same version"));
        let refused = AgentClientError::Refused { host: host(), message: why() };
        assert_eq!(
            (refused.to_string().as_str(), refused.hint()),
            ("the agent at b says: c", None)
        );
    }
}
