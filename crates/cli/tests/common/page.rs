//! The live page's server, as a client of HTTP knows it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The next message of this kind.
pub(crate) fn next(stream: &mut impl BufRead, kind: &str) -> Value {
    let wanted = format!("event: {kind}");
    let (mut inside, begun) = (false, Instant::now());
    loop {
        assert!(begun.elapsed() < PATIENCE, "no {wanted}");
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the end came before {wanted}");
        inside = if line.starts_with("event: ") { line.trim() == wanted } else { inside };
        if let Some(data) = line.strip_prefix("data: ").filter(|_| inside) {
            return serde_json::from_str(data).unwrap();
        }
    }
}

/// The server, as a client knows it. HTTP/1.0 has no chunks.
pub(crate) struct Page {
    host: String,
    token: String,
}

impl Page {
    /// The page whose address is the first line of this process.
    pub(crate) fn of(server: &mut Child) -> Page {
        let mut url = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim();
        let (host, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        Page { host: host.to_owned(), token: token.to_owned() }
    }

    /// What the command printed.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/?token={}", self.host, self.token)
    }

    /// The stream of what is answered, behind its heading; it must be a good answer.
    pub(crate) fn open(&self, method: &str, path: &str, body: &str) -> BufReader<TcpStream> {
        let (status, stream) = self.begin(method, path, body);
        assert_eq!(status, 200, "{method} {path}");
        stream
    }

    /// The answer to a request that is carried out.
    pub(crate) fn json(&self, method: &str, path: &str, body: &str) -> Value {
        let (status, text) = self.ask(method, path, body);
        assert_eq!(status, 200, "{method} {path}: {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Status and text of the answer to a request.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let (status, mut stream) = self.begin(method, path, body);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        (status, text)
    }

    fn begin(&self, method: &str, path: &str, body: &str) -> (u16, BufReader<TcpStream>) {
        let Page { host, token } = self;
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        (status, reader)
    }
}

/// What takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(60);
