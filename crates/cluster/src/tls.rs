//! TLS 1.3 in which both ends show the cluster's certificate and prove that they have its key. The
//! certificate itself is the only root that is trusted, so no verification is our own.

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;

use crate::key::ClusterKey;
use crate::stream_limit::STREAMS_AT_FIRST;

/// The protocol's name (RFC 7301), with the version of the first message on a connection
/// ([`crate::hello`]). That message has the versions of all others.
const ALPN: &[u8] = b"windtunnel-agent/2";

/// An agent's settings as a server and as a client, for holders of `key`.
///
/// # Errors
/// What is wrong with the key.
pub(crate) fn settings(key: &ClusterKey) -> Result<(ServerConfig, ClientConfig), String> {
    with_transport(key, between_agents())
}

/// A command's settings. It keeps its connection open for as long as it lives, and notices soon if
/// the agent has gone.
///
/// # Errors
/// What is wrong with the key.
pub(crate) fn command_settings(key: &ClusterKey) -> Result<ClientConfig, String> {
    let mut transport = between_agents();
    transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(COMMAND_IDLE_MS))));
    transport.keep_alive_interval(Some(COMMAND_KEEP_ALIVE));
    with_transport(key, transport).map(|(_, client)| client)
}

fn with_transport(
    key: &ClusterKey,
    transport: TransportConfig,
) -> Result<(ServerConfig, ClientConfig), String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(key.certificate.clone()).map_err(|error| error.to_string())?;
    let roots = Arc::new(roots);
    let transport = Arc::new(transport);
    let mut server = ServerConfig::with_crypto(Arc::new(server(key, &provider, &roots)?));
    server.transport_config(Arc::clone(&transport));
    // Each is looked at as soon as it is there: this bounds what waits if that takes long.
    server.max_incoming(INCOMING_MAX);
    server.incoming_buffer_size(INCOMING_BYTES_MAX);
    server.incoming_buffer_size_total(INCOMING_BYTES_MAX_TOTAL);
    let mut client = ClientConfig::new(Arc::new(client(key, &provider, roots)?));
    client.transport_config(transport);
    Ok((server, client))
}

fn server(
    key: &ClusterKey,
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
) -> Result<QuicServerConfig, String> {
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .build()
            .map_err(|error| error.to_string())?;
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?;
    let mut config = builder
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![key.certificate.clone()], key.private.clone_key())
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    QuicServerConfig::try_from(config).map_err(|error| error.to_string())
}

fn client(
    key: &ClusterKey,
    provider: &Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
) -> Result<QuicClientConfig, String> {
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?;
    let mut config = builder
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![key.certificate.clone()], key.private.clone_key())
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    QuicClientConfig::try_from(config).map_err(|error| error.to_string())
}

/// A connection between agents ends when nothing has gone over it for some time, and is made again
/// when it is needed: an idle cluster of many agents keeps only those of neighbours open. That an
/// agent is lost, the mesh notices.
fn between_agents() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_MS))));
    transport.max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_AT_FIRST));
    // The hello of each end.
    transport.max_concurrent_uni_streams(VarInt::from_u32(1));
    transport.datagram_send_buffer_size(DATAGRAM_BUFFER);
    let mut path = MtuDiscoveryConfig::default();
    path.upper_bound(PATH_MTU).minimum_change(PATH_MTU - INITIAL_MTU);
    transport.mtu_discovery_config(Some(path));
    transport
}

/// QUIC's packets in Ethernet's 1500 bytes, with IPv6's header and UDP's; and those that need no
/// proof (RFC 9000, 14). Only these two sizes are tried: a search in between sends 5 kB at the
/// beginning of each connection, more than half of what one costs that is made for one message.
const PATH_MTU: u16 = 1452;
const INITIAL_MTU: u16 = 1200;
/// Bytes of datagrams that may wait in a connection.
pub(crate) const DATAGRAM_BUFFER: usize = 1 << 20;
/// Three times as long as a neighbour is asked again at the latest.
pub(crate) const IDLE_MS: u32 = 15_000;
/// A command waits so long for a machine that has no processor time to give.
const COMMAND_IDLE_MS: u32 = 10_000;
const COMMAND_KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Connections that are not looked at yet, and bytes that wait with each and with all of them.
const INCOMING_MAX: usize = 1024;
const INCOMING_BYTES_MAX: u64 = 16 << 10;
const INCOMING_BYTES_MAX_TOTAL: u64 = 4 << 20;
