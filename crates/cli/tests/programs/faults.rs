//! Lack of resources of the machine, and programs that misbehave.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::support::{Lab, User, is_missing, is_root, unprivileged, until, users};

#[test]
fn a_flood_of_output_is_bounded_and_reported() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(
            "nodes: {a: {run: [sh, -c, 'yes | head -c 30000000']}, b: {}}
links: [{between: [a, b]}]
",
            &["--output-limit", "1MB"],
        );
        outcome.assert_code(0);
        assert_eq!(outcome.output("a").len(), 1_000_000);
        let program = outcome.program("a");
        assert_eq!(program["output_bytes"], 30_000_000);
        assert_eq!(program["output_discarded_bytes"], 29_000_000);
        let warnings = outcome.report()["verdict"]["warnings"].to_string();
        assert!(warnings.contains("29000000 were not kept"), "{warnings}");
        // The terminal shows some lines of each second only, and a count of the others.
        assert!(outcome.stdout.len() < 3_000_000, "{}", outcome.stdout.len());
        assert!(outcome.stdout.contains("more lines, not shown"));
    }
}

#[test]
fn a_full_disk_ends_in_a_verdict_and_a_warning() {
    if is_missing(&["unshare", "mount"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        lab.folder("small");
        lab.write(
            "net.yaml",
            "nodes: {a: {run: [sh, -c, 'yes | head -c 20000000']}, b: {}}
links: [{between: [a, b]}]
",
        );
        let script = "mount -t tmpfs -o size=8m none small && chmod 777 small && \
                      ./windtunnel run net.yaml --out small/run --max-lateness 5s; \
                      echo code $?";
        let namespaces = if is_root() && user == User::Invoker { "-m" } else { "-Urm" };
        let words = [user.prefix(), &["unshare", namespaces, "sh", "-c", script]].concat();
        let mut command = Command::new(words[0]);
        let seen = command.args(&words[1..]).current_dir(lab.path()).output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&seen.stderr));
        let all = format!("{stdout}{stderr}");
        assert!(stdout.contains("\ncode 0\n"), "{all}");
        assert!(all.contains("PASSED"), "{all}");
        assert!(all.to_lowercase().contains("no space left on device"), "{all}");
    }
}

#[test]
fn too_few_descriptors_are_an_error_with_a_hint() {
    if is_missing(&["prlimit"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        lab.write(
            "net.yaml",
            "nodes: {a: {count: 100, run: 'true'}}
routers: [r]
links: [{between: [a, r]}]
",
        );
        let mut command = lab.windtunnel_behind(
            &["prlimit", "--nofile=64:64"],
            &["run", "net.yaml", "--out", "new", "--max-lateness", "5s"],
        );
        let seen = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&seen.stderr);
        assert_eq!(seen.status.code(), Some(4), "{stderr}");
        assert!(stderr.contains("Too many open files") && stderr.contains("hint:"), "{stderr}");
        assert!(!lab.path().join("new").exists(), "nothing is worth keeping");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_reader_that_goes_away_does_not_end_the_run() {
    for user in users() {
        let lab = Lab::new(user);
        lab.write(
            "net.yaml",
            "nodes: {a: {run: [sh, -c, 'yes | head -n 5000; echo over > over']}, b: {}}
links: [{between: [a, b]}]
",
        );
        let mut command =
            lab.windtunnel(&["run", "net.yaml", "--out", "new", "--max-lateness", "5s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let status = until("the end of the run", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0));
        assert!(lab.path().join("over").exists() && lab.path().join("new/run.json").exists());
        lab.assert_nothing_left();
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let Some(user) = unprivileged().filter(|user| user.number() != 0) else { return };
    let lab = Lab::new(user);
    let file = lab.write("net.yaml", "nodes: {a: {run: 'true'}}\n");
    let closed = lab.folder("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = lab.windtunnel(&["run", file.to_str().unwrap()]);
    let seen = command.current_dir(&closed).output().unwrap();
    let stderr = String::from_utf8_lossy(&seen.stderr);
    assert_eq!(seen.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("runs") && stderr.contains("ermission denied"), "{stderr}");
    assert!(stderr.contains("hint:"), "{stderr}");
    lab.assert_nothing_left();
}

#[test]
fn a_folder_with_other_results_is_left_alone() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass("nodes: {a: {run: 'true'}}\n");
        let before = outcome.file("run.json");
        let out = outcome.folder.to_str().unwrap();
        let mut command = lab.windtunnel(&["run", "scenario-0.yaml", "--out", out]);
        let seen = command.output().unwrap();
        assert_eq!(seen.status.code(), Some(4), "{seen:?}");
        assert!(String::from_utf8_lossy(&seen.stderr).contains("not empty"), "{seen:?}");
        assert_eq!(outcome.file("run.json"), before);
    }
}

#[test]
fn no_tun_device_is_needed() {
    if is_missing(&["unshare", "mount", "ping"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        lab.write(
            "net.yaml",
            "nodes: {a: {run: ping -c 1 b}, b: {}}
links: [{between: [a, b]}]
",
        );
        let script = "test ! -d /dev/net || mount -t tmpfs none /dev/net; \
                      test ! -e /dev/net/tun && \
                      exec ./windtunnel run net.yaml --out new --max-lateness 5s";
        let namespaces = if is_root() && user == User::Invoker { "-m" } else { "-Urm" };
        let words = [user.prefix(), &["unshare", namespaces, "sh", "-c", script]].concat();
        let mut command = Command::new(words[0]);
        let seen = command.args(&words[1..]).current_dir(lab.path()).output().unwrap();
        assert_eq!(seen.status.code(), Some(0), "{seen:?}");
    }
}

#[test]
fn a_mistake_in_the_file_is_reported_before_anything_exists() {
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run("nodes: {a: {run: touch started}}\nlinks: [{between: [a, q]}]\n");
        outcome.assert_code(3);
        assert!(outcome.stderr.contains("scenario-0.yaml:2:"), "{}", outcome.stderr);
        assert!(!lab.path().join("started").exists());
    }
}
