//! The editor's part.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use windtunnel_web::{WebServer, WebServerContent, WebServerOptions};

use crate::client::{Served, ask};

fn serve(path: &Path) -> Served {
    let check = Arc::new(|text: &str| json!({ "errors": [], "length": text.len() }));
    let shown = WebServerContent::File { path: path.to_owned(), check };
    let options =
        WebServerOptions { listen: "127.0.0.1:0".parse().unwrap(), program: "/none".into(), shown };
    Served::start(WebServer::bind(options).unwrap())
}

#[test]
fn a_file_is_read_checked_and_saved_unless_it_has_changed_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.yaml");
    fs::write(&path, "nodes: {}\n").unwrap();
    let served = serve(&path);
    let page = served.get(&format!("/?token={}", served.token));
    assert!(page.body.contains("id=\"windtunnel-edit\""));
    let content = served.get("/api/file").json();
    assert_eq!(content["text"], "nodes: {}\n");
    assert_eq!(served.post("/api/check", r#"{"text": "four"}"#).json()["length"], 4);
    let put = |text: &str, version: &serde_json::Value| {
        let body = json!({ "text": text, "version": version }).to_string();
        ask(served.port, "PUT", "/api/file", &served.headers(), &body)
    };
    let saved = put("nodes: {a: {}}\n", &content["version"]);
    assert_eq!(saved.status, 200);
    assert_eq!(fs::read_to_string(&path).unwrap(), "nodes: {a: {}}\n");
    // The version of before.
    let conflict = put("nodes: {b: {}}\n", &content["version"]);
    assert_eq!((conflict.status, &conflict.json()["text"]), (409, &"nodes: {a: {}}\n".into()));
    assert_eq!(put("nodes: {b: {}}\n", &saved.json()["version"]).status, 200);
    assert_eq!(served.get("/api/runs").status, 404);
}

#[test]
fn a_change_by_another_program_is_streamed_and_own_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.yaml");
    fs::write(&path, "a\n").unwrap();
    let served = serve(&path);
    let mut stream = served.open("GET", "/api/file/stream", "");
    let version = served.get("/api/file").json()["version"].clone();
    let body = json!({ "text": "own\n", "version": version }).to_string();
    assert_eq!(ask(served.port, "PUT", "/api/file", &served.headers(), &body).status, 200);
    fs::write(&path, "another's\n").unwrap();
    let changed = stream.until("event: changed");
    assert!(changed.contains("another's"), "{changed}");
    assert!(!stream.all.contains("own\\n"));
}
