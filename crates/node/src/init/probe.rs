//! Probes of the node's own programs, from inside of the node: whether they accept connections, what
//! they answer over HTTP, and whether they answer a datagram. Each has a thread, which ends with its time.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use windtunnel_model::plan::HealthProbeDatagram;
use windtunnel_sys::poll::EventFd;

use crate::message::{NodeInitReply, ProgramProbe, ProgramProbeMethod};

/// Probes that are under way.
pub(super) struct ProgramProbeSet {
    done: Arc<EventFd>,
    results: Receiver<NodeInitReply>,
    sender: Sender<NodeInitReply>,
    under_way: usize,
}

impl ProgramProbeSet {
    pub(super) fn new() -> io::Result<ProgramProbeSet> {
        let (sender, results) = channel();
        Ok(ProgramProbeSet { done: Arc::new(EventFd::open()?), results, sender, under_way: 0 })
    }

    /// For polling: readable when a probe is over.
    pub(super) fn done(&self) -> &EventFd {
        &self.done
    }

    /// # Errors
    /// The reply, where it cannot begin.
    pub(super) fn begin(
        &mut self,
        token: u64,
        probe: ProgramProbe,
        timeout_ns: u64,
    ) -> Result<(), NodeInitReply> {
        let failed = |why: String| NodeInitReply::Probed { token, failure: Some(why) };
        if self.under_way >= UNDER_WAY_MAX {
            return Err(failed(format!("{UNDER_WAY_MAX} probes are under way already")));
        }
        let (sender, done) = (self.sender.clone(), Arc::clone(&self.done));
        let thread = std::thread::Builder::new().name("probe".into()).stack_size(STACK_BYTES);
        let spawned = thread.spawn(move || {
            let failure = look(&probe, Duration::from_nanos(timeout_ns)).err();
            // An init that has ended takes its threads with it.
            let _ = sender.send(NodeInitReply::Probed { token, failure });
            let _ = done.raise();
        });
        spawned.map_err(|error| failed(format!("no thread for a probe: {error}")))?;
        self.under_way += 1;
        Ok(())
    }

    /// The result of one that is over.
    pub(super) fn take(&mut self) -> Option<NodeInitReply> {
        let _ = self.done.clear();
        let reply = self.results.try_recv().ok()?;
        self.under_way -= 1;
        Some(reply)
    }
}

/// Does a probe.
///
/// # Errors
/// What is wrong, in words.
fn look(probe: &ProgramProbe, timeout: Duration) -> Result<(), String> {
    let began = Instant::now();
    let too_long = || format!("it took longer than {} ms", timeout.as_millis());
    let reason = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => too_long(),
        _ => error.to_string(),
    };
    let left = || {
        let left = timeout.saturating_sub(began.elapsed());
        if left.is_zero() { Err(too_long()) } else { Ok(left) }
    };
    let address = SocketAddr::new(probe.address, probe.port);
    if let ProgramProbeMethod::Udp(question) = &probe.what {
        return answer(address, question, left, reason);
    }
    let mut stream = TcpStream::connect_timeout(&address, left()?).map_err(reason)?;
    let ProgramProbeMethod::Http { path, host } = &probe.what else { return Ok(()) };
    stream.set_write_timeout(Some(left()?)).map_err(reason)?;
    stream.write_all(request(path, host).as_bytes()).map_err(reason)?;
    let mut line = Vec::new();
    while !line.contains(&b'\n') && line.len() < LINE_BYTES_MAX {
        stream.set_read_timeout(Some(left()?)).map_err(reason)?;
        let mut part = [0; 512];
        match stream.read(&mut part).map_err(reason)? {
            0 => break,
            length => line.extend_from_slice(&part[..length]),
        }
    }
    match status(&line) {
        Some(status) if status < 400 => Ok(()),
        Some(status) => Err(format!("status {status}")),
        None => Err("no answer of HTTP".to_owned()),
    }
}

/// Asks for an answer to a datagram. What does not have what is expected is an answer to something
/// else, and the right one may still come.
fn answer(
    address: SocketAddr,
    question: &HealthProbeDatagram,
    left: impl Fn() -> Result<Duration, String>,
    reason: impl Fn(io::Error) -> String,
) -> Result<(), String> {
    let own: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0)).map_err(&reason)?;
    // So that only datagrams of this address are received, and ICMP errors are.
    socket.connect(address).map_err(&reason)?;
    socket.send(&question.send).map_err(&reason)?;
    let expect = &question.expect;
    let has = |all: &[u8]| {
        expect.is_empty() || all.windows(expect.len()).any(|part| part == expect.as_slice())
    };
    let mut others = 0;
    let mut datagram = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let patience = left().map_err(|late| match others {
            0 => late,
            _ => format!("{others} answers without what is expected"),
        })?;
        socket.set_read_timeout(Some(patience)).map_err(&reason)?;
        match socket.recv(&mut datagram) {
            Ok(length) if has(&datagram[..length]) => return Ok(()),
            Ok(_) => others += 1,
            // The next turn says that the time is over.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(reason(error)),
        }
    }
}

/// Of RFC 9112.
fn request(path: &str, host: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: windtunnel\r\nConnection: close\r\n\r\n"
    )
}

/// The status code of a status line (RFC 9112, 4).
fn status(line: &[u8]) -> Option<u16> {
    let mut words = line.split(|byte| *byte == b' ' || *byte == b'\r' || *byte == b'\n');
    words.next().filter(|version| version.starts_with(b"HTTP/1."))?;
    let digits = words.next().filter(|digits| digits.len() == 3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// At a time.
const UNDER_WAY_MAX: usize = 256;
/// They do little.
const STACK_BYTES: usize = 128 << 10;
/// Of UDP (RFC 768).
const DATAGRAM_BYTES_MAX: usize = 1 << 16;
/// More of a status line is not read.
const LINE_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::net::TcpListener;

    use super::*;

    fn probe(listener: &TcpListener, http: Option<&str>) -> ProgramProbe {
        let address = listener.local_addr().unwrap();
        let what = http.map_or(ProgramProbeMethod::Tcp, |path| ProgramProbeMethod::Http {
            path: path.to_owned(),
            host: "www".to_owned(),
        });
        ProgramProbe { address: address.ip(), port: address.port(), what }
    }

    fn server() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }

    const SECONDS: Duration = Duration::from_secs(10);

    #[test]
    fn a_server_that_listens_passes_and_one_that_does_not_fails() {
        let listener = server();
        let tcp = probe(&listener, None);
        assert_eq!(look(&tcp, SECONDS), Ok(()));
        drop(listener);
        let refused = look(&tcp, SECONDS).unwrap_err();
        assert!(refused.contains("refused"), "{refused}");
    }

    #[test]
    fn a_status_below_400_passes_and_others_fail_with_their_number() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n", Ok(())),
            ("HTTP/1.0 302 Found\r\n", Ok(())),
            ("HTTP/1.1 503 Service Unavailable\r\n\r\n", Err("status 503".to_owned())),
            ("SSH-2.0-x\r\n", Err("no answer of HTTP".to_owned())),
            ("", Err("no answer of HTTP".to_owned())),
        ] {
            let listener = server();
            let http = probe(&listener, Some("/health?x=1"));
            let serving = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let lines = io::BufReader::new(stream.try_clone().unwrap()).lines();
                let head: Vec<String> =
                    lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
                stream.write_all(answer.as_bytes()).unwrap();
                head
            });
            assert_eq!(look(&http, SECONDS), expected);
            let head = serving.join().unwrap();
            assert_eq!(head[..2], ["GET /health?x=1 HTTP/1.1", "Host: www"]);
        }
    }

    #[test]
    fn a_server_that_does_not_answer_fails_when_its_time_is_over() {
        let listener = server();
        let timeout = Duration::from_millis(30);
        let late = look(&probe(&listener, Some("/")), timeout).unwrap_err();
        assert_eq!(late, "it took longer than 30 ms");
    }

    /// What is seen of a server that answers a datagram with these, one after the other.
    fn answered(answers: &'static [&'static str], timeout: Duration) -> Result<(), String> {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let question = HealthProbeDatagram { send: b"ping".to_vec(), expect: b"pong".to_vec() };
        let (ip, port) = (address.ip(), address.port());
        let probe = ProgramProbe { address: ip, port, what: ProgramProbeMethod::Udp(question) };
        let serving = std::thread::spawn(move || {
            let mut asked = [0; 16];
            let (length, from) = server.recv_from(&mut asked).unwrap();
            assert_eq!(&asked[..length], b"ping");
            for answer in answers {
                server.send_to(answer.as_bytes(), from).unwrap();
            }
            server
        });
        let seen = look(&probe, timeout);
        serving.join().unwrap();
        seen
    }

    #[test]
    fn a_datagram_is_answered_when_an_answer_has_what_is_expected() {
        assert_eq!(answered(&["a pong!"], SECONDS), Ok(()));
        assert_eq!(answered(&["late of before", "pong"], SECONDS), Ok(()));
        let short = Duration::from_millis(200);
        let other = answered(&["pang"], short).unwrap_err();
        assert_eq!(other, "1 answers without what is expected");
        let silent = answered(&[], Duration::from_millis(30)).unwrap_err();
        assert_eq!(silent, "it took longer than 30 ms");
    }

    #[test]
    fn a_port_without_a_socket_is_refused_at_once() {
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let question = HealthProbeDatagram { send: Vec::new(), expect: Vec::new() };
        let (ip, port) = (address.ip(), address.port());
        let refused = look(
            &ProgramProbe { address: ip, port, what: ProgramProbeMethod::Udp(question) },
            SECONDS,
        );
        assert!(refused.unwrap_err().contains("refused"));
    }

    #[test]
    fn a_result_comes_with_its_token() {
        let (listener, mut probes) = (server(), ProgramProbeSet::new().unwrap());
        probes.begin(7, probe(&listener, None), 10_000_000_000).unwrap();
        let mut wanted =
            [windtunnel_sys::poll::PollFd::new(probes.done(), windtunnel_sys::poll::PollFlags::IN)];
        windtunnel_sys::poll::wait(&mut wanted, Some(SECONDS)).unwrap();
        assert_eq!(probes.take(), Some(NodeInitReply::Probed { token: 7, failure: None }));
        assert_eq!((probes.take(), probes.under_way), (None, 0));
    }
}
