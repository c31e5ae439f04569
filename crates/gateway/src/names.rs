//! Names: the node's own address answers at port 53 with what the machine's resolvers say (RFC
//! 1035).

mod question;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, recvfrom, sendto};
use windtunnel_sys::clock;

use crate::log::{FlowLine, InternetFlowEnd, InternetFlowKind};
use crate::poller::PollerToken;
use crate::report::GatewayCounterUpdate;
use crate::socket;
use crate::worker::GatewayContext;
use question::{REFUSED, SERVER_FAILURE};

/// Questions for names.
#[derive(Debug, Default)]
pub(crate) struct DnsForwarder {
    /// The node's own sockets.
    inside: Vec<OwnedFd>,
    open: HashMap<u64, ForwardedDnsQuery>,
    next: u64,
}

#[derive(Debug)]
struct ForwardedDnsQuery {
    /// Which of the node's sockets it came by.
    by: usize,
    client: SocketAddr,
    bytes: Vec<u8>,
    socket: UdpSocket,
    /// How many resolvers were asked.
    asked: usize,
    since_ns: u64,
    line: FlowLine,
}

impl DnsForwarder {
    /// Opens the node's sockets.
    pub(crate) fn listen(&mut self, context: &mut GatewayContext) -> std::io::Result<()> {
        for own in context.settings.own.clone() {
            let socket = context.maker.datagrams(SocketAddr::new(own, PORT))?;
            let number = u64::try_from(self.inside.len()).unwrap_or(0);
            context.poller.add_readable(&socket, PollerToken::Names(number))?;
            self.inside.push(socket);
        }
        Ok(())
    }

    /// Questions have come.
    pub(crate) fn questions(&mut self, context: &mut GatewayContext, number: u64) {
        let by = usize::try_from(number).unwrap_or(usize::MAX);
        let mut buffer = [0; MESSAGE_MAX];
        for _ in 0..TURN {
            let Some(socket) = self.inside.get(by) else { return };
            let Ok((length, _, from)) = recvfrom(socket, &mut buffer[..], RecvFlags::DONTWAIT)
            else {
                return;
            };
            let client = from.and_then(|from| SocketAddr::try_from(from).ok());
            let bytes = buffer.get(..length).unwrap_or_default();
            match client {
                Some(client) if question::is_one(bytes) => self.ask(context, by, client, bytes),
                _ => context.report.count(GatewayCounterUpdate::Ignored("malformed")),
            }
        }
    }

    /// A resolver has answered.
    pub(crate) fn answer(&mut self, context: &mut GatewayContext, id: u64) {
        let Some(question) = self.open.get(&id) else { return };
        let mut buffer = vec![0; 65_536];
        match question.socket.recv(&mut buffer) {
            Ok(length) if buffer[..length].get(..2) == question.bytes.get(..2) => {
                let answer = &buffer[..length];
                self.reply(question.by, question.client, answer);
                self.end(
                    context,
                    id,
                    InternetFlowEnd::Answered,
                    u64::try_from(length).unwrap_or(0),
                );
            }
            // Not its answer.
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            // Nothing listens there.
            Err(_) => self.ask_next(context, id),
        }
    }

    /// Asks the next resolver where one has been silent.
    pub(crate) fn expire(&mut self, context: &mut GatewayContext) {
        let now_ns = clock::monotonic_ns();
        let patience_ns = u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
        let late =
            self.open.iter().filter(|(_, it)| now_ns.saturating_sub(it.since_ns) > patience_ns);
        let late: Vec<u64> = late.map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.ask_next(context, id));
    }

    fn ask(&mut self, context: &mut GatewayContext, by: usize, client: SocketAddr, bytes: &[u8]) {
        if let Err(refusal) = context.policy.names() {
            context.report.count(GatewayCounterUpdate::Refused(refusal));
            return self.reply(by, client, &question::failure(bytes, REFUSED));
        }
        let resolver = context.resolvers().into_iter().next();
        let opened = resolver.map(connect);
        let Some(Ok(socket)) = opened.filter(|_| self.open.len() < OPEN_MAX) else {
            return self.reply(by, client, &question::failure(bytes, SERVER_FAILURE));
        };
        self.next += 1;
        let id = self.next;
        let own = context.settings.own_like(client.ip()).unwrap_or(client.ip());
        let line = FlowLine::new(InternetFlowKind::Dns, client, SocketAddr::new(own, PORT));
        let sent = socket.send(bytes);
        let added = context.poller.add_readable(&socket, PollerToken::Question(id));
        if sent.is_err() || added.is_err() {
            return self.reply(by, client, &question::failure(bytes, SERVER_FAILURE));
        }
        context.report.count(GatewayCounterUpdate::Flow(InternetFlowKind::Dns));
        let (bytes, since_ns) = (bytes.to_vec(), clock::monotonic_ns());
        self.open
            .insert(id, ForwardedDnsQuery { by, client, bytes, socket, asked: 1, since_ns, line });
    }

    /// Asks the next resolver; where there is none, the question fails.
    fn ask_next(&mut self, context: &mut GatewayContext, id: u64) {
        let Some(question) = self.open.get_mut(&id) else { return };
        let resolver = context.resolvers().into_iter().nth(question.asked);
        let opened = resolver.and_then(|resolver| {
            let socket = connect(resolver).ok()?;
            context.poller.add_readable(&socket, PollerToken::Question(id)).ok()?;
            socket.send(&question.bytes).ok()?;
            Some(socket)
        });
        if let Some(socket) = opened {
            question.socket = socket;
            question.asked += 1;
            question.since_ns = clock::monotonic_ns();
            return;
        }
        let (by, client) = (question.by, question.client);
        let failure = question::failure(&question.bytes, SERVER_FAILURE);
        self.reply(by, client, &failure);
        self.end(context, id, InternetFlowEnd::Unanswered, 0);
    }

    fn end(
        &mut self,
        context: &mut GatewayContext,
        id: u64,
        how: InternetFlowEnd,
        received_bytes: u64,
    ) {
        let Some(question) = self.open.remove(&id) else { return };
        let sent_bytes = u64::try_from(question.bytes.len()).unwrap_or(0);
        let line = FlowLine { sent_bytes, received_bytes, ..question.line };
        context.carried(&line);
        context.log.ended(&line, how);
    }

    /// A client that takes no answer asks again.
    fn reply(&self, by: usize, client: SocketAddr, bytes: &[u8]) {
        if let Some(socket) = self.inside.get(by).filter(|_| !bytes.is_empty()) {
            let _ = sendto(socket, bytes, SendFlags::DONTWAIT, &client);
        }
    }
}

/// The addresses of `resolv.conf` (resolv.conf(5)); those of one link only are left out.
pub(crate) fn resolvers(text: &str) -> Vec<IpAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).take(RESOLVERS).collect()
}

/// For fuzzers: reads a message as a question.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn read_question(bytes: &[u8]) {
    if question::is_one(bytes) {
        let answer = question::failure(bytes, SERVER_FAILURE);
        assert!(answer.len() <= bytes.len());
    }
}

fn connect(resolver: IpAddr) -> std::io::Result<UdpSocket> {
    let socket = socket::datagrams(resolver.is_ipv6())?;
    socket.connect(SocketAddr::new(resolver, PORT))?;
    Ok(socket)
}

/// Of RFC 1035, 4.2.
const PORT: u16 = 53;
/// Half of what resolvers of C libraries wait (`timeout` of resolv.conf(5)).
pub(crate) const PATIENCE: Duration = Duration::from_millis(2500);
const OPEN_MAX: usize = 1024;
const TURN: usize = 64;
/// No question is longer.
const MESSAGE_MAX: usize = 4096;
/// As many as C libraries ask (`MAXNS`).
const RESOLVERS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_are_those_that_the_machine_names() {
        let text = "# comment\nsearch example\nnameserver 192.0.2.53\n nameserver ::1 # own\n\
                    nameserver fe80::1%eth0\nnameserver\noptions edns0\n";
        let expected: Vec<IpAddr> = vec!["192.0.2.53".parse().unwrap(), "::1".parse().unwrap()];
        assert_eq!(resolvers(text), expected);
        assert_eq!(resolvers(&"nameserver 192.0.2.1\n".repeat(9)).len(), 3);
    }
}
