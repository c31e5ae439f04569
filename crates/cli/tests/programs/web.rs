//! The live page's server over a real run: document, samples, an event, a command, the end.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

use serde_json::json;

use super::page::{Page, next};
use super::support::{Lab, any_user, is_missing, is_root, until};

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
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(NET);
        live.wait_for(&[("event", "program-started")]);
        let run = live.folder().to_str().unwrap().to_owned();
        let mut web = lab.windtunnel(&["web", &run, "--until-end"]);
        let mut web = web.stdout(Stdio::piped()).spawn().unwrap();
        let page = Page::of(&mut web);
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

/// A file of another user: root keeps the owner, and an ordinary user must not become it.
#[test]
fn a_file_of_another_owner_keeps_its_owner_or_is_not_saved() {
    for user in any_user() {
        let lab = Lab::new(user);
        let file = lab.write("net.yaml", "nodes: {a: {}}\n");
        let (other, saved) = match user.number() {
            0 => (65534, 200),
            65534 if is_root() => (0, 500),
            _ => continue,
        };
        std::os::unix::fs::chown(&file, Some(other), Some(other)).unwrap();
        let mut edit = lab.windtunnel(&["edit", file.to_str().unwrap()]);
        let mut edit = edit.stdout(Stdio::piped()).spawn().unwrap();
        let page = Page::of(&mut edit);
        let version = page.json("GET", "/api/file", "")["version"].clone();
        let draft = json!({ "text": "nodes: {b: {}}\n", "version": version }).to_string();
        let (status, answer) = page.ask("PUT", "/api/file", &draft);
        edit.kill().unwrap();
        edit.wait().unwrap();
        assert_eq!(status, saved, "{answer}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            text.contains('b'),
            saved == 200,
            "the file is changed if it was said so: {text}"
        );
        assert_eq!(file.metadata().unwrap().uid(), other);
        let beside = std::fs::read_dir(lab.path()).unwrap();
        let aside =
            beside.filter(|it| it.as_ref().unwrap().path().extension() == Some("new".as_ref()));
        assert_eq!(aside.count(), 0);
    }
}

/// The browser gets a file that only this user can read: arguments could be read by all.
#[test]
fn the_browser_is_opened_with_a_file_of_this_user_that_leads_to_the_page() {
    for user in any_user() {
        let lab = Lab::new(user);
        let folder = lab.folder("bin");
        let script =
            lab.write("bin/xdg-open", "#!/bin/sh\ncp -p \"$1\" seen.part && mv seen.part seen\n");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let file = lab.write("net.yaml", "nodes: {a: {}}\n");
        let mut edit = lab.windtunnel(&["edit", file.to_str().unwrap(), "--open"]);
        edit.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        let mut edit = edit.stdout(Stdio::piped()).spawn().unwrap();
        let page = Page::of(&mut edit);
        let seen = lab.path().join("seen");
        let text = until("the browser", || std::fs::read_to_string(&seen).ok());
        assert_eq!(seen.metadata().unwrap().mode() & 0o777, 0o600);
        let url = text.split("url=").nth(1).unwrap().trim_end_matches("\">");
        assert_eq!(url, page.url(), "{text}");
        edit.kill().unwrap();
        edit.wait().unwrap();
    }
}
