//! The live page's server over a real run: document, samples, an event, a command, the end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::{Lab, is_missing, users};

/// Two nodes; one writes, and sends packets.
const NET: &str = "nodes:
  box: {run: ping -i 0.1 other, daemon: true}
  other: {}
links: [{between: [box, other], name: wire, latency: 1ms}]
";

#[test]
fn a_run_is_seen_and_changed_by_its_page_until_it_ends() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let mut live = lab.start(NET);
        live.wait_for(&[("event", "program-started")]);
        let run = live.folder().to_str().unwrap().to_owned();
        let mut web = lab.windtunnel(&["web", &run, "--until-end"]);
        let mut web = web.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(web.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let page = Page::at(url.trim());
        let list = page.json("GET", "/api/runs", "");
        assert_eq!(list[0]["alive"], true, "{list}");
        let id = list[0]["id"].as_str().unwrap();
        let document = page.json("GET", &format!("/api/runs/{id}/document"), "");
        assert_eq!(document["runs"][0]["lanes"][0]["link"], "wire");
        let mut stream = page.open("GET", &format!("/api/runs/{id}/stream?after=0"), "");
        let sample = next(&mut stream, "sample");
        assert!(sample["lanes"][0][1].as_u64().unwrap() > 0, "{sample}");
        let argv = json!({ "argv": ["set", "wire", "latency=80ms"] }).to_string();
        let done = page.json("POST", &format!("/api/runs/{id}/command"), &argv);
        assert_eq!((&done["exit"], &done["stderr"]), (&0.into(), &"wire: latency=80ms\n".into()));
        let links = live.ask("links", &["--changed"]);
        assert!(String::from_utf8_lossy(&links.stdout).contains("latency=80ms"), "{links:?}");
        let changed = loop {
            let event = next(&mut stream, "event");
            if event["event"] == "link-set" {
                break event;
            }
        };
        assert_eq!((&changed["kind"], &changed["links"]), (&"change".into(), &json!(["wire"])));
        let argv = json!({ "argv": ["stop"] }).to_string();
        assert_eq!(page.json("POST", &format!("/api/runs/{id}/command"), &argv)["exit"], 0);
        let ended = next(&mut stream, "ended");
        assert!(ended["document"]["runs"][0]["summary"]["elapsed_ns"].is_u64(), "{ended}");
        live.finish().assert_code(0);
        assert!(web.wait().unwrap().success());
    }
}

/// The next message of this kind.
fn next(stream: &mut impl BufRead, kind: &str) -> Value {
    let wanted = format!("event: {kind}");
    let mut inside = false;
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the end came before {wanted}");
        inside = if line.starts_with("event: ") { line.trim() == wanted } else { inside };
        if let Some(data) = line.strip_prefix("data: ").filter(|_| inside) {
            return serde_json::from_str(data).unwrap();
        }
    }
}

/// The server, as a client knows it. HTTP/1.0 has no chunks.
struct Page {
    host: String,
    token: String,
}

impl Page {
    fn at(url: &str) -> Page {
        let (host, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        Page { host: host.to_owned(), token: token.to_owned() }
    }

    fn open(&self, method: &str, path: &str, body: &str) -> BufReader<TcpStream> {
        let Page { host, token } = self;
        let mut stream = TcpStream::connect(host).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        reader
    }

    fn json(&self, method: &str, path: &str, body: &str) -> Value {
        let mut text = String::new();
        self.open(method, path, body).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}
