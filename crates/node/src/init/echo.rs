//! Round-trip times by ICMP echo, through the node's own stack.

use std::io;
use std::net::IpAddr;

use windtunnel_sys::clock;
use windtunnel_sys::ping::{PingFamily, PingSocket};

use crate::message::{ECHO_PATIENCE_NS, NodeInitReply};

/// One measurement under way. Times are of the monotonic clock, in nanoseconds.
pub(super) struct EchoMeasurement {
    token: u64,
    socket: PingSocket,
    address: IpAddr,
    count: u16,
    interval_ns: u64,
    next_at_ns: u64,
    /// When each request was sent, and its round trip once the reply is there.
    requests: Vec<(u64, Option<u64>)>,
    error: Option<String>,
}

impl EchoMeasurement {
    /// # Errors
    /// The reply, when nothing can be measured.
    pub(super) fn start(
        token: u64,
        address: IpAddr,
        count: u16,
        interval_ns: u64,
    ) -> Result<EchoMeasurement, NodeInitReply> {
        let family = if address.is_ipv4() { PingFamily::V4 } else { PingFamily::V6 };
        let lost = |error: String| NodeInitReply::EchoDone {
            token,
            began_ns: clock::monotonic_ns(),
            echoes: Vec::new(),
            error: Some(error),
        };
        if count > COUNT_MAX {
            return Err(lost(format!("more than {COUNT_MAX} echo requests")));
        }
        let socket = PingSocket::open(family)
            .map_err(|error| lost(format!("cannot open a ping socket: {error}")))?;
        let next_at_ns = clock::monotonic_ns();
        let requests = Vec::with_capacity(usize::from(count));
        Ok(EchoMeasurement {
            token,
            socket,
            address,
            count,
            interval_ns,
            next_at_ns,
            requests,
            error: None,
        })
    }

    /// Sends no more requests; replies to those that were sent are still waited for.
    pub(super) fn end(&mut self) {
        if let Some(sequence) = self.next_sequence() {
            self.count = sequence;
            self.next_at_ns = clock::monotonic_ns().saturating_add(ECHO_PATIENCE_NS);
        }
    }

    pub(super) fn token(&self) -> u64 {
        self.token
    }

    /// For polling.
    pub(super) fn socket(&self) -> &PingSocket {
        &self.socket
    }

    /// Sends what is due and takes in what has come; the result when it is complete.
    pub(super) fn advance(&mut self) -> io::Result<Option<NodeInitReply>> {
        self.receive()?;
        let now_ns = clock::monotonic_ns();
        while let Some(sequence) = self.next_sequence().filter(|_| now_ns >= self.next_at_ns) {
            let sent_ns = clock::monotonic_ns();
            if let Err(error) = self.socket.send(self.address, sequence, &PAYLOAD) {
                self.error.get_or_insert_with(|| error.to_string());
            }
            self.requests.push((sent_ns, None));
            // What could not be asked in time is not asked in a burst later.
            self.next_at_ns = sent_ns.saturating_add(match self.next_sequence() {
                Some(_) => self.interval_ns.max(1),
                None => ECHO_PATIENCE_NS,
            });
        }
        let answered = self.requests.iter().all(|(_, rtt)| rtt.is_some());
        let over = self.next_sequence().is_none() && (answered || now_ns >= self.next_at_ns);
        Ok(over.then(|| self.result()))
    }

    /// When to [`advance`](Self::advance) even though nothing has come.
    pub(super) fn wake_at_ns(&self) -> u64 {
        self.next_at_ns
    }

    fn next_sequence(&self) -> Option<u16> {
        u16::try_from(self.requests.len()).ok().filter(|sequence| *sequence < self.count)
    }

    /// The kernel has noted the arrival by the real-time clock, which may be set at any time: only
    /// the short while since then is taken from it.
    fn receive(&mut self) -> io::Result<()> {
        while let Some(reply) = self.socket.receive(&mut [])? {
            let (now_ns, real_ns) = (clock::monotonic_ns(), clock::realtime_ns());
            let waited_ns = reply.arrival_ns.map_or(0, |at| real_ns.saturating_sub(at));
            if let Some((sent_ns, rtt)) = self.requests.get_mut(usize::from(reply.sequence)) {
                let whole_ns = now_ns.saturating_sub(*sent_ns);
                rtt.get_or_insert(whole_ns.checked_sub(waited_ns).unwrap_or(whole_ns));
            }
        }
        Ok(())
    }

    fn result(&self) -> NodeInitReply {
        let began_ns = self.requests.first().map_or(0, |(sent_ns, _)| *sent_ns);
        let echo = |&(sent_ns, rtt): &(u64, Option<u64>)| ((sent_ns - began_ns) / 1000, rtt);
        let echoes = self.requests.iter().map(echo).collect();
        NodeInitReply::EchoDone { token: self.token, began_ns, echoes, error: self.error.clone() }
    }
}

/// As many bytes as ping(8) sends.
const PAYLOAD: [u8; 56] = [0; 56];

/// So that the result fits into a message.
const COUNT_MAX: u16 = 5000;
