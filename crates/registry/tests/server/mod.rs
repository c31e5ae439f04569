//! A server of HTTP/1.1 that answers with what a test gives it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What is answered to a GET.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    Code(u16, Vec<u8>),
    /// A body that goes on until the client closes the connection.
    Endless,
}

#[derive(Default)]
struct State {
    answers: BTreeMap<String, Answer>,
    asked: Vec<String>,
    ended: bool,
}

/// On a port of the loopback interface, as long as it is there.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let known = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if known.lock().unwrap().ended {
                    break;
                }
                let known = Arc::clone(&known);
                // A client that closes early is none of the test's concern.
                thread::spawn(move || drop(answer(&stream, &known)));
            }
        });
        Server { address, state }
    }

    /// Gives an answer to a path, instead of a former one.
    pub(crate) fn give(self, path: &str, answer: Answer) -> Server {
        self.state.lock().unwrap().answers.insert(path.to_owned(), answer);
        self
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The paths that were asked for, in their order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.lock().unwrap().ended = true;
        // Wakes the listener, which goes with its thread.
        drop(TcpStream::connect(self.address));
    }
}

fn answer(stream: &TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let found = {
            let mut state = state.lock().unwrap();
            state.asked.push(path.clone());
            state.answers.get(&path).cloned()
        };
        let (code, body) = match found {
            Some(Answer::Bytes(body)) => (200, body),
            Some(Answer::Code(code, body)) => (code, body),
            Some(Answer::Endless) => return endless(writer),
            None if path == "/v2/" => (200, Vec::new()),
            None => (404, Vec::new()),
        };
        write!(writer, "HTTP/1.1 {code} x\r\ncontent-length: {}\r\n\r\n", body.len())?;
        writer.write_all(&body)?;
    }
}

fn endless(mut writer: &TcpStream) -> std::io::Result<()> {
    write!(writer, "HTTP/1.1 200 x\r\n\r\n")?;
    loop {
        writer.write_all(&[0; 512])?;
    }
}
