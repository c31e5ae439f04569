//! TLS 1.3 in which both ends show the cluster's certificate and prove that they have its key. The
//! certificate itself is the only root that is trusted, so no verification is our own.

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;

use crate::key::ClusterKey;

/// The protocol's name and version (RFC 7301): agents of other versions are refused in the handshake.
const ALPN: &[u8] = b"windtunnel-agent/1";

/// Both sides' settings for holders of `key`.
///
/// # Errors
/// What is wrong with the key.
pub(crate) fn settings(key: &ClusterKey) -> Result<(ServerConfig, ClientConfig), String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(key.certificate.clone()).map_err(|error| error.to_string())?;
    let roots = Arc::new(roots);
    let transport = Arc::new(transport());
    let mut server = ServerConfig::with_crypto(Arc::new(server(key, &provider, &roots)?));
    server.transport_config(Arc::clone(&transport));
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

/// A lost agent is noticed by the mesh; here, only what is left of its connections is cleared away.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_MS))));
    transport.keep_alive_interval(Some(KEEP_ALIVE));
    transport.datagram_send_buffer_size(DATAGRAM_BUFFER);
    transport
}

/// Bytes of datagrams that may wait in a connection.
pub(crate) const DATAGRAM_BUFFER: usize = 1 << 20;
const IDLE_MS: u32 = 5_000;
const KEEP_ALIVE: Duration = Duration::from_secs(1);
