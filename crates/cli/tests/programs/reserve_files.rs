//! `reserve mount`: how a run divides what it has, as files.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Stdio};

use super::support::{Lab, Live, find_program, until, users};

const SCENARIO: &str = "nodes: {a: {cpu: 25%, run: sleep 600}, b: {memory: 64MB, run: sleep 600}}\n\
                        links: [{between: [a, b], name: wire, up: {rate: 8mbit}}]\n";

/// Mounts, if the machine lets this user do that: else it was refused as it must be.
fn mount(lab: &Lab, live: &Live<'_>) -> Option<Child> {
    let is_root = lab.user().number() == 0;
    let run = live.folder().to_str().unwrap();
    let mut command = lab.windtunnel(&["reserve", "mount", "--run", run]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let has_come = until("it is mounted, or refused", || match child.try_wait().unwrap() {
        Some(_) => Some(false),
        None => live.folder().join("reserve/refused").exists().then_some(true),
    });
    if has_come {
        return Some(child);
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("/dev/fuse, and root or fusermount3"), "{said}");
    assert!(!live.folder().join("reserve").exists(), "it was made for this mount");
    let can = Path::new("/dev/fuse").exists() && (is_root || find_program("fusermount3").is_some());
    assert!(!can, "{said}");
    None
}

#[test]
fn values_are_read_and_written_as_files_and_what_does_not_fit_is_busy() {
    for user in users() {
        let lab = Lab::new(user);
        let mut live = lab.start(SCENARIO);
        live.wait_for(&[("event", "program-started")]);
        let Some(mut child) = mount(&lab, &live) else {
            live.signal("INT");
            live.finish();
            continue;
        };
        let file = |name: &str| live.folder().join("reserve").join(name);
        let read = |name: &str| fs::read_to_string(file(name)).unwrap();
        assert_eq!(
            (read("a/cpu.limit"), read("b/memory.limit")),
            ("0.25\n".into(), "64000000\n".into())
        );
        assert_eq!(read("b/cpu.limit"), "-\n");
        assert_eq!((read("a/send.rate"), read("b/send.rate")), ("8000000\n".into(), "-\n".into()));
        fs::write(file("a/cpu.limit"), "50%\n").unwrap();
        assert_eq!((read("a/cpu.limit"), read("refused")), ("0.5\n".into(), String::new()));
        let error = fs::write(file("a/cpu.limit"), "9999").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}");
        assert!(read("refused").contains(" missing"), "{}", read("refused"));
        let error = fs::write(file("a/cpu.limit"), "fast").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let error = fs::write(file("a/cpu.used"), "1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        assert_eq!(read("a/cpu.limit"), "0.5\n");
        // Ten datagrams of which the link drops all.
        assert!(live.ask("set", &["wire", "loss=100%"]).status.success());
        let ping = ["a", "--", "ping", "-c", "10", "-i", "0.01", "-W", "0.1", "b"];
        assert!(!live.ask("exec", &ping).status.success());
        until("dropped packets", || (read("a/send.dropped") == "10\n").then_some(()));
        assert_eq!((read("b/send.dropped"), read("a/send.backlog")), ("0\n".into(), "0\n".into()));
        // It ends with the run, and leaves nothing.
        live.signal("INT");
        let outcome = live.finish();
        assert!(child.wait().unwrap().success());
        assert!(!outcome.path("reserve").exists());
        lab.assert_nothing_left();
    }
}

#[test]
fn the_mount_of_a_process_that_was_killed_goes_away() {
    for user in users() {
        let lab = Lab::new(user);
        let mut live = lab.start(SCENARIO);
        live.wait_for(&[("event", "program-started")]);
        if let Some(mut child) = mount(&lab, &live) {
            child.kill().unwrap();
            child.wait().unwrap();
            let folder = live.folder().join("reserve");
            until("the mount has gone", || {
                let gone =
                    folder.symlink_metadata().is_err_and(|it| it.kind() == ErrorKind::NotFound);
                gone.then_some(())
            });
        }
        live.signal("INT");
        live.finish();
        lab.assert_nothing_left();
    }
}

#[test]
fn nothing_is_made_or_removed_and_ctrl_c_leaves_no_dead_folder_beside_a_shell_inside() {
    for user in users() {
        let lab = Lab::new(user);
        let mut live = lab.start(SCENARIO);
        live.wait_for(&[("event", "program-started")]);
        if let Some(mut child) = mount(&lab, &live) {
            let top = live.folder().join("reserve");
            let refused = [
                fs::remove_dir(top.join("a")),
                fs::remove_file(top.join("a/cpu.limit")),
                fs::create_dir(top.join("c")),
                fs::write(top.join("c"), ""),
                fs::rename(top.join("a"), top.join("c")),
            ];
            let kinds = refused.map(|done| done.map_err(|error| error.kind()));
            assert_eq!(kinds, [Err(ErrorKind::PermissionDenied); 5]);
            let mut shell =
                lab.command(&["sleep", "600"]).current_dir(top.join("a")).spawn().unwrap();
            let pid = child.id().to_string();
            assert!(lab.command(&["kill", "-INT", &pid]).status().unwrap().success());
            assert!(child.wait().unwrap().success());
            assert!(!top.exists() && fs::symlink_metadata(&top).is_err(), "{}", top.display());
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
        live.signal("INT");
        live.finish();
        lab.assert_nothing_left();
    }
}
