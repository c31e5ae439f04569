//! A test's double of an agent: it has the key, and answers as the test wants. For tests, here and
//! of other crates.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;

use quinn::{Endpoint, EndpointConfig, TokioRuntime};
use tokio::sync::oneshot;

use crate::hello::{self, AgentHello};
use crate::key::ClusterKey;
use crate::protocol::{ASK_BYTES_MAX, AgentRequest};
use crate::{stream, tls};

/// Listens on loopback until it is dropped.
#[derive(Debug)]
pub struct FakeAgent {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeAgent {
    /// Answers each question with the bytes that `answer` makes of it.
    ///
    /// # Panics
    /// Without loopback.
    #[must_use]
    pub fn start(
        key: &ClusterKey,
        answer: impl Fn(AgentRequest) -> Vec<u8> + Send + 'static,
    ) -> Self {
        FakeAgent::start_as(key, AgentHello::own("hostile".to_owned()), answer)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn start_as(
        key: &ClusterKey,
        own: AgentHello,
        answer: impl Fn(AgentRequest) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let (server, client) = tls::settings(key).expect("the key is good");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("there is loopback");
        let address = socket.local_addr().expect("it is bound");
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().expect("there is a runtime");
            runtime.block_on(async {
                let runtime = Arc::new(TokioRuntime);
                let mut endpoint =
                    Endpoint::new(EndpointConfig::default(), Some(server), socket, runtime)
                        .expect("there is an endpoint");
                endpoint.set_default_client_config(client);
                tokio::select! {
                    () = serve(&endpoint, &own, &answer) => {}
                    _ = ended => {}
                }
                endpoint.close(0_u32.into(), b"");
                endpoint.wait_idle().await;
            });
        });
        FakeAgent { address, end: Some(end), thread: Some(thread) }
    }
}

async fn serve(endpoint: &Endpoint, own: &AgentHello, answer: &impl Fn(AgentRequest) -> Vec<u8>) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else { continue };
        if hello::exchange(&connection, own).await.is_err() {
            // So that the other end receives the reason.
            connection.closed().await;
            continue;
        }
        while let Ok((mut to, mut from)) = connection.accept_bi().await {
            let Ok(ask) = stream::receive::<AgentRequest>(&mut from, ASK_BYTES_MAX).await else {
                continue;
            };
            let _ = to.write_all(&answer(ask)).await;
            let _ = to.finish();
        }
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
