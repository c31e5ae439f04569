//! A client of HTTP/1.1 without a library.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};

use serde_json::Value;
use windtunnel_web::WebServer;

/// A server in a thread; it ends with this value.
pub(crate) struct Served {
    pub(crate) port: u16,
    pub(crate) token: String,
    stop: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A response that goes on.
pub(crate) struct Open {
    stream: TcpStream,
    /// All that was read.
    pub(crate) all: String,
    seen: usize,
}

impl Served {
    pub(crate) fn start(server: WebServer) -> Self {
        let port = server.address().port();
        let token = server.url().split_once("token=").unwrap().1.to_owned();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            // A runtime's own thread waits for the end of the test.
            let (sender, receiver) = tokio::sync::oneshot::channel();
            thread::spawn(move || {
                let _ = stopped.recv();
                let _ = sender.send(());
            });
            server.run(async move { drop(receiver.await) }).unwrap();
        });
        Served { port, token, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn headers(&self) -> Vec<(&'static str, &str)> {
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        vec![
            ("Host", leak(format!("127.0.0.1:{}", self.port))),
            ("Authorization", leak(format!("Bearer {}", self.token))),
        ]
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        ask(self.port, "GET", path, &self.headers(), "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        ask(self.port, "POST", path, &self.headers(), body)
    }

    pub(crate) fn open(&self, method: &str, path: &str, body: &str) -> Open {
        let stream = send(self.port, method, path, &self.headers(), body);
        let mut open = Open { stream, all: String::new(), seen: 0 };
        let head = open.until("\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        open
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Open {
    /// Reads until the text comes, and to the end of its message; what was read.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let at = self.find(text, self.seen);
        let is_whole = text.ends_with("\n\n") || text.ends_with("\r\n\r\n") || text == "oops";
        let end = if is_whole { at + text.len() } else { self.find("\n\n", at) + 2 };
        let found = self.all[self.seen..end].to_owned();
        self.seen = end;
        found
    }

    /// Where the text is, from here on.
    fn find(&mut self, text: &str, mut from: usize) -> usize {
        loop {
            if let Some(at) = self.all.get(from..).and_then(|rest| rest.find(text)) {
                return from + at;
            }
            // What has been looked at is not looked at again; all texts are of ASCII.
            from = from.max(self.all.len().saturating_sub(text.len()));
            while !self.all.is_char_boundary(from) {
                from -= 1;
            }
            assert!(self.more(), "the end came before {text}");
        }
    }

    /// What comes until the connection is closed.
    pub(crate) fn rest(&mut self) -> String {
        while self.more() {}
        // The end of the last chunk and of all chunks.
        self.all[self.seen..].replace("0\r\n\r\n", "").trim().to_owned()
    }

    fn more(&mut self) -> bool {
        let mut buffer = vec![0; 64 << 10];
        let read = self.stream.read(&mut buffer).unwrap();
        self.all.push_str(&String::from_utf8_lossy(&buffer[..read]));
        read > 0
    }
}

fn send(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    // A server that refuses closes the connection before all is sent.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    stream
}

pub(crate) fn ask(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = send(port, method, path, headers, body);
    let mut bytes = Vec::new();
    // Likewise.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { dechunked(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

fn dechunked(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&rest[..size]);
        text = rest[size..].strip_prefix("\r\n").unwrap_or_default();
        if size == 0 {
            break;
        }
    }
    body
}
