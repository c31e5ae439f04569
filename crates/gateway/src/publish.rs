//! Published ports: connections from the machine to nodes, through the node's own link.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::SocketFlags;
use std::net::SocketAddr;
use windtunnel_sys::socket as state;

use crate::log::{FAILED, FlowLine, InternetFlowEnd, InternetFlowKind};
use crate::poller::PollerToken;
use crate::process::Listening;
use crate::report::GatewayCounterUpdate;
use crate::socket;
use crate::splice::SplicedConnectionPair;
use crate::tcp::Tcp;
use crate::worker::GatewayContext;

/// The machine's ports that lead to nodes.
#[derive(Debug)]
pub(crate) struct PublishedPortListeners {
    listening: Vec<Listening>,
    /// Those that are not looked at until the next second, as there are no descriptors.
    paused: Vec<usize>,
}

impl PublishedPortListeners {
    pub(crate) fn open(
        context: &GatewayContext,
        listening: Vec<Listening>,
    ) -> std::io::Result<PublishedPortListeners> {
        for (number, listener) in listening.iter().enumerate() {
            let token = PollerToken::Publish(u64::try_from(number).unwrap_or(0));
            context.poller.add_readable(&listener.socket, token)?;
        }
        Ok(PublishedPortListeners { listening, paused: Vec::new() })
    }

    /// Connections wait at a port.
    pub(crate) fn accept(&mut self, context: &mut GatewayContext, tcp: &mut Tcp, number: u64) {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        for _ in 0..TURN {
            let Some(listener) = self.listening.get(number) else { return };
            match rustix::net::accept_with(&listener.socket, flags) {
                Ok(accepted) => begin(context, tcp, accepted, listener.to),
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(lack) if socket::is_lack(lack) => {
                    context.report.count(GatewayCounterUpdate::Lost(FAILED, 1));
                    if context.poller.remove(&listener.socket).is_ok() {
                        self.paused.push(number);
                    }
                    return;
                }
                Err(_) => return,
            }
        }
    }

    /// Looks again at those that were left alone.
    pub(crate) fn resume(&mut self, context: &GatewayContext) {
        for number in std::mem::take(&mut self.paused) {
            let Some(listener) = self.listening.get(number) else { continue };
            let token = PollerToken::Publish(u64::try_from(number).unwrap_or(0));
            if context.poller.add_readable(&listener.socket, token).is_err() {
                self.paused.push(number);
            }
        }
    }
}

/// Connects to the node for a connection of the machine, and joins the two. A node that refuses
/// tears it.
fn begin(context: &mut GatewayContext, tcp: &mut Tcp, accepted: OwnedFd, to: SocketAddr) {
    // Where that fails, small pieces wait for one another.
    let _ = rustix::net::sockopt::set_tcp_nodelay(&accepted, true);
    let Ok(Some(peer)) = state::peer(&accepted) else { return };
    let line = FlowLine::new(InternetFlowKind::Publish, to, peer);
    match context.maker.connect(to) {
        Ok(inside) => {
            context.report.count(GatewayCounterUpdate::Flow(InternetFlowKind::Publish));
            tcp.join(context, SplicedConnectionPair::new(inside, accepted, line, None));
        }
        Err(_) => {
            socket::tear(accepted);
            context.log.ended(&line, InternetFlowEnd::Unreachable);
        }
    }
}

const TURN: usize = 64;
