//! Control of a run: by its owner and the machine's root, by no other user.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::Output;

use super::support::{Lab, Live, User, is_root, missing, users};

/// Starts a run of two nodes under an umask that leaves everything open.
fn open_run(lab: &Lab) -> Live<'_> {
    lab.write("net.yaml", NET);
    let openly = ["sh", "-c", "umask 0; exec \"$@\"", "sh"];
    let words = ["run", "net.yaml", "--out", "out-open", "--max-lateness", "5s"];
    let command = lab.windtunnel_behind(&openly, &words);
    // Others' ways to it lead through here.
    let mut live = Live::start(lab, command, lab.path().join("out-open"));
    live.wait_for(&[("event", "run-began")]);
    live
}

/// Has an account ask the run with each of the control verbs.
fn ask_all(lab: &Lab, live: &Live<'_>, becoming: &[&str]) -> Vec<(&'static str, Output)> {
    let run = live.folder().to_str().unwrap();
    let ask = |(verb, words): (&'static str, &[&str])| {
        let words = [&[verb, "--run", run], words].concat();
        (verb, lab.windtunnel_as(becoming, &words).output().unwrap())
    };
    let verbs: [(&str, &[&str]); 3] =
        [("ps", &[]), ("exec", &["box", "--", "true"]), ("set", &["wire", "latency=40ms"])];
    verbs.map(ask).into()
}

#[test]
fn a_run_answers_its_owner_and_root_and_no_other_account() {
    if !is_root() {
        missing("root, to be more than one account");
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let live = open_run(&lab);
        let socket = fs::metadata(live.folder().join("control.sock")).unwrap();
        assert!(socket.file_type().is_socket());
        assert_eq!(socket.permissions().mode() & 0o777, 0o600);
        let mut strangers = vec![STRANGER];
        if user == User::Invoker {
            strangers.push(User::Ordinary.prefix());
        }
        for becoming in strangers {
            for (verb, seen) in ask_all(&lab, &live, becoming) {
                let stderr = String::from_utf8_lossy(&seen.stderr);
                assert_eq!(seen.status.code(), Some(2), "{verb} by {becoming:?}: {stderr}");
                assert!(stderr.contains("is another user's"), "{verb} by {becoming:?}: {stderr}");
            }
        }
        // Root of the machine, and the owner.
        for becoming in [User::Invoker.prefix(), user.prefix()] {
            for (verb, seen) in ask_all(&lab, &live, becoming) {
                assert!(seen.status.success(), "{verb} by {becoming:?}: {seen:?}");
            }
        }
        let run = live.folder().to_str().unwrap();
        let stopped = lab.windtunnel_as(User::Invoker.prefix(), &["stop", "--run", run]).output();
        assert!(stopped.as_ref().unwrap().status.success(), "{stopped:?}");
        let outcome = live.finish();
        outcome.assert_code(0);
        assert_eq!(outcome.events(&[("event", "link-set")]).len(), 4, "one for each direction");
    }
}

/// An account that is neither root nor the other user of the tests. It needs no entry anywhere.
const STRANGER: &[&str] =
    &["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", "--"];

const NET: &str = "nodes: {box: {}, other: {}}
links: [{between: [box, other], name: wire, latency: 1ms}]
";
