//! First files: `init` writes them, `run` and `check` find them.

use super::support::{Lab, is_missing, unprivileged, users};

/// As on the command line.
const TEMPLATES: [&str; 10] = [
    "client-server",
    "three-regions",
    "mobile",
    "cluster",
    "satellite",
    "cdn",
    "p2p",
    "raft",
    "lossy-wifi",
    "data-center",
];

#[test]
fn each_first_file_runs_as_it_is_and_its_expectations_hold() {
    if is_missing(&["curl", "python3"]) {
        return;
    }
    let Some(user) = unprivileged() else { return };
    let lab = Lab::new(user);
    for template in TEMPLATES {
        let file = format!("{template}.yaml");
        let written = lab.windtunnel(&["init", &file, "--template", template]).output().unwrap();
        assert!(written.status.success(), "{written:?}");
        lab.start_file(&file, &["--quiet"]).finish().assert_code(0);
    }
    lab.assert_nothing_left();
}

#[test]
fn a_file_is_found_in_the_folder_and_above_it_and_never_overwritten() {
    for user in users() {
        let lab = Lab::new(user);
        let ask = |words: &[&str]| lab.windtunnel(words).output().unwrap();
        let none = ask(&["check"]);
        let text = String::from_utf8_lossy(&none.stderr).into_owned();
        assert_eq!(none.status.code(), Some(2), "{text}");
        assert!(text.contains("no windtunnel.yaml is here or above"), "{text}");
        assert!(text.contains("windtunnel init"), "{text}");

        let written = ask(&["init", "--template", "raft", "--json"]);
        let written: serde_json::Value = serde_json::from_slice(&written.stdout).unwrap();
        assert_eq!(
            (&written["file"], &written["template"]),
            (&"windtunnel.yaml".into(), &"raft".into())
        );
        let first = std::fs::read_to_string(lab.path().join("windtunnel.yaml")).unwrap();
        assert!(first.starts_with("# yaml-language-server: $schema=windtunnel.schema.json\n"));
        let schema = std::fs::read(lab.path().join("windtunnel.schema.json")).unwrap();
        let schema: serde_json::Value = serde_json::from_slice(&schema).unwrap();
        assert!(schema["properties"]["nodes"].is_object());

        let again = ask(&["init"]);
        assert_eq!(again.status.code(), Some(2), "{again:?}");
        assert_eq!(std::fs::read_to_string(lab.path().join("windtunnel.yaml")).unwrap(), first);

        // From a folder below, by its whole path; relative paths still start at the file.
        let mut below = lab.windtunnel(&["check", "--json"]);
        let below = below.current_dir(lab.folder("deep")).output().unwrap();
        let checked: serde_json::Value = serde_json::from_slice(&below.stdout).unwrap();
        assert_eq!((&checked["name"], &checked["nodes"]), (&"windtunnel".into(), &6.into()));
    }
}
