//! A disk that programs fill, and results that cannot be written.

use std::process::Command;

use super::support::{Lab, User, is_missing, is_root, missing, users};

/// The run folder `full/out` and the file for JUnit lie on a file system of 12 MB of their own, of
/// which a program takes all. The results are copied to `copy` when the run is over.
const SCRIPT: &str = "
mount -t tmpfs -o size=12m,mode=0777 tmpfs full || exit 99
./windtunnel run scenario.yaml --out full/out --junit full/results.xml --max-lateness 5s
code=$?
cp -a full copy
exit $code
";

const SCENARIO: &str = r#"nodes:
  filler: {run: "sh -c 'cat /dev/zero > full/zeros; echo full'"}
  a: {after: filler, run: sh ping-when-full.sh}
  b: {}
links: [{between: [a, b], name: wire}]
expect: [{link: wire, direction: up, delivered: {min: 30}}]
"#;

/// How full the disk is, the program sees itself: nothing that it wrote would be kept.
const PING_WHEN_FULL: &str = "
until test $(df --output=avail full | tail -n 1) -eq 0; do sleep 0.01; done
exec ping -c 30 -i 0.01 b
";

/// A shell of the test's user that may mount.
fn shell(lab: &Lab) -> Option<Command> {
    let namespaces: &[&str] = match lab.user() {
        User::Invoker if is_root() => &["unshare", "--mount"],
        _ => &["unshare", "--mount", "--user", "--map-root-user"],
    };
    let shell = |script| {
        let mut command = lab.command(namespaces);
        command.args(["sh", "-c", script]);
        command
    };
    if !shell("mount -t tmpfs tmpfs full").status().unwrap().success() {
        missing("a user namespace in which a tmpfs can be mounted");
        return None;
    }
    Some(shell(SCRIPT))
}

#[test]
fn a_disk_that_a_program_has_filled_has_room_for_the_whole_report() {
    if is_missing(&["ping", "unshare", "df"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        lab.folder("full");
        lab.write("scenario.yaml", SCENARIO);
        lab.write("ping-when-full.sh", PING_WHEN_FULL);
        let Some(mut command) = shell(&lab) else { continue };
        let output = command.output().unwrap();
        let read = |name: &str| std::fs::read_to_string(lab.path().join(name)).unwrap_or_default();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report: serde_json::Value = serde_json::from_str(&read("copy/out/run.json")).unwrap();
        assert_eq!(report["expectations"][0]["met"], true, "{report}");
        for results in ["copy/results.xml", "copy/out/junit.xml"] {
            assert!(read(results).trim_end().ends_with("</testsuites>"), "{results}");
        }
        let (links, events) = (read("copy/out/links.csv"), read("copy/out/events.jsonl"));
        assert!(links.ends_with('\n') && links.lines().count() > 2, "{links}");
        assert!(events.ends_with('\n') && events.contains("run-ended"), "{events}");
    }
}

#[test]
fn a_run_that_is_killed_leaves_files_of_whole_lines() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let mut live = lab.start(
            "nodes: {a: {run: ping -i 0.01 b}, b: {}}\nlinks: [{between: [a, b], name: wire}]\n",
        );
        live.wait_for_output("a", "icmp_seq=50 ");
        live.signal("KILL");
        let outcome = live.finish();
        for name in ["links.csv", "events.jsonl"] {
            let text = outcome.file(name);
            assert!(
                text.ends_with('\n') && text.contains(",wire,") == (name == "links.csv"),
                "{text}"
            );
            assert!(!text.contains('\0'), "room that was kept does not show: {text:?}");
        }
        assert!(!outcome.folder.join("run.json").exists());
    }
}

#[test]
fn a_run_with_a_report_that_cannot_be_written_fails_and_names_the_file() {
    for user in users() {
        let lab = Lab::new(user);
        let wait = "until test -d out-0/run.json; do sleep 0.05; done";
        let mut live =
            lab.start(&format!("nodes: {{a: {{run: [sh, -c, 'echo began; {wait}']}}}}\n"));
        live.wait_for_output("a", "began");
        std::fs::create_dir(live.folder().join("run.json")).unwrap();
        let outcome = live.finish();
        outcome.assert_code(1);
        let last = outcome.stdout.lines().last().unwrap();
        assert!(last.contains("FAITHFUL, FAILED: cannot write"), "{last}");
        assert!(last.contains("out-0/run.json"), "{last}");
    }
}
