//! A server of HTTP/1.1 that answers with what a test gives it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What is answered to a GET.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    Code(u16, Vec<u8>),
    /// A body that goes on until the client closes the connection.
    Endless,
    /// 401, with what authentication is wanted.
    Challenge(String),
    /// To a client that has this token; 401 to others.
    For(String, Vec<u8>),
    /// 307, to another path or URL.
    Elsewhere(String),
}

#[derive(Default)]
struct State {
    answers: BTreeMap<String, Answer>,
    asked: Vec<String>,
    /// The first byte of each connection.
    begun: Vec<u8>,
    /// Connections that are there.
    open: usize,
    ended: bool,
}

/// On a port of the loopback interface, as long as it is there.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    closed: Arc<Condvar>,
}

impl Server {
    pub(crate) fn new() -> Server {
        Server::with(None)
    }

    /// One that speaks TLS, with a certificate that it has made itself.
    pub(crate) fn with_tls() -> Server {
        let made = rcgen::generate_simple_self_signed(["registry.invalid".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.unwrap())
            .unwrap();
        Server::with(Some(Arc::new(config)))
    }

    fn with(tls: Option<Arc<ServerConfig>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let closed = Arc::new(Condvar::new());
        let (known, news) = (Arc::clone(&state), Arc::clone(&closed));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if known.lock().unwrap().ended {
                    break;
                }
                let (known, news, tls) = (Arc::clone(&known), Arc::clone(&news), tls.clone());
                known.lock().unwrap().open += 1;
                thread::spawn(move || {
                    // A client that closes early is none of the test's concern.
                    drop(serve(stream, tls, &known));
                    known.lock().unwrap().open -= 1;
                    news.notify_all();
                });
            }
        });
        Server { address, state, closed }
    }

    /// Gives an answer to a path, instead of a former one.
    pub(crate) fn give(self, path: &str, answer: Answer) -> Server {
        self.state.lock().unwrap().answers.insert(path.to_owned(), answer);
        self
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until its clients have closed all connections.
    pub(crate) fn wait_until_closed(&self) {
        let (state, patience) = (self.state.lock().unwrap(), Duration::from_secs(30));
        let waited = self.closed.wait_timeout_while(state, patience, |state| state.open > 0);
        assert!(!waited.unwrap().1.timed_out(), "a connection is left");
    }

    /// The paths that were asked for, in their order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }

    /// The first byte of each connection: 22 is a handshake of TLS (RFC 8446, 5.1).
    pub(crate) fn begun(&self) -> Vec<u8> {
        self.state.lock().unwrap().begun.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.lock().unwrap().ended = true;
        // Wakes the listener, which goes with its thread.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    state: &Mutex<State>,
) -> std::io::Result<()> {
    let mut first = [0];
    if stream.peek(&mut first)? == 1 {
        state.lock().unwrap().begun.push(first[0]);
    }
    match tls {
        None => answer(stream, state),
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
            answer(StreamOwned::new(connection, stream), state)
        }
    }
}

fn answer(stream: impl Read + Write, state: &Mutex<State>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = String::new();
        if stream.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let (mut line, mut token) = (String::new(), String::new());
        while stream.read_line(&mut line)? > 2 {
            if let Some((name, value)) = line.split_once(": Bearer ")
                && name.eq_ignore_ascii_case("authorization")
            {
                value.trim_end().clone_into(&mut token);
            }
            line.clear();
        }
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let found = {
            let mut state = state.lock().unwrap();
            state.asked.push(path.clone());
            state.answers.get(&path).cloned()
        };
        let writer = stream.get_mut();
        let (code, body) = match found {
            Some(Answer::Bytes(body)) => (200, body),
            Some(Answer::Code(code, body)) => (code, body),
            Some(Answer::Endless) => return endless(writer),
            Some(Answer::For(wanted, body)) if wanted == token => (200, body),
            Some(Answer::For(..)) => (401, Vec::new()),
            Some(Answer::Challenge(wanted)) => {
                write!(
                    writer,
                    "HTTP/1.1 401 x\r\nwww-authenticate: {wanted}\r\ncontent-length: 0\r\n\r\n"
                )?;
                continue;
            }
            Some(Answer::Elsewhere(place)) => {
                write!(
                    writer,
                    "HTTP/1.1 307 x\r\nlocation: {place}\r\ncontent-length: 5\r\n\r\nthere"
                )?;
                continue;
            }
            None if path == "/v2/" => (200, Vec::new()),
            None => (404, Vec::new()),
        };
        write!(writer, "HTTP/1.1 {code} x\r\ncontent-length: {}\r\n\r\n", body.len())?;
        writer.write_all(&body)?;
        writer.flush()?;
    }
}

fn endless(writer: &mut impl Write) -> std::io::Result<()> {
    write!(writer, "HTTP/1.1 200 x\r\n\r\n")?;
    loop {
        writer.write_all(&[0; 512])?;
    }
}
