//! Listeners inside, one for each port that is asked for outside: the kernel accepts at them what
//! it is handed.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::log::FAILED;
use crate::poller::PollerToken;
use crate::report::GatewayCounterUpdate;
use crate::socket;
use crate::worker::GatewayContext;

/// Listeners inside.
#[derive(Debug, Default)]
pub(super) struct InsideTcpListeners {
    by_port: BTreeMap<(bool, u16), u64>,
    open: HashMap<u64, OwnedFd>,
    /// Those that are not looked at until the next second, as there are no descriptors.
    paused: Vec<u64>,
    next: u64,
}

impl InsideTcpListeners {
    /// Has one listen at a port of all addresses of a family.
    pub(super) fn ensure(
        &mut self,
        context: &mut GatewayContext,
        v6: bool,
        port: u16,
    ) -> io::Result<()> {
        if self.by_port.contains_key(&(v6, port)) {
            return Ok(());
        }
        if self.open.len() >= OPEN_MAX {
            self.close_some();
        }
        let listener = context.maker.listen(v6, port)?;
        self.next += 1;
        context.poller.add_readable(&listener, PollerToken::Listener(self.next))?;
        self.by_port.insert((v6, port), self.next);
        self.open.insert(self.next, listener);
        Ok(())
    }

    /// The next connection that waits at one.
    pub(super) fn accept(
        &mut self,
        context: &mut GatewayContext,
        listener: u64,
    ) -> Option<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let open = self.open.get(&listener)?;
        loop {
            match rustix::net::accept_with(open, flags) {
                Ok(accepted) => return Some(accepted),
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(lack) if socket::is_lack(lack) => {
                    context.report.count(GatewayCounterUpdate::Lost(FAILED, 1));
                    if context.poller.remove(open).is_ok() {
                        self.paused.push(listener);
                    }
                    return None;
                }
                Err(_) => return None,
            }
        }
    }

    /// Looks again at those that were left alone.
    pub(super) fn resume(&mut self, context: &mut GatewayContext) {
        for listener in std::mem::take(&mut self.paused) {
            let Some(socket) = self.open.get(&listener) else { continue };
            if context.poller.add_readable(socket, PollerToken::Listener(listener)).is_err() {
                self.paused.push(listener);
            }
        }
    }

    /// Closes the half that is oldest, but for that of names: the kernel keeps the connections that
    /// were accepted, and a client whose handshake is not over asks again.
    fn close_some(&mut self) {
        let mut ids: Vec<u64> = self.open.keys().copied().collect();
        ids.sort_unstable();
        let oldest = &ids[..ids.len() / 2];
        self.by_port.retain(|(_, port), id| *port == super::NAMES_PORT || !oldest.contains(id));
        let kept: Vec<u64> = self.by_port.values().copied().collect();
        self.open.retain(|id, _| kept.contains(id));
    }
}

const OPEN_MAX: usize = 512;
