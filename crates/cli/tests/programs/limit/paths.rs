//! Files and folders that a command may not see.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use super::super::support::{Lab, User, any_user, find_program, is_missing};

/// A lab with a file and a folder of secrets, which all users of the machine could read.
fn lab(user: User) -> Lab {
    let lab = Lab::new(user);
    let folder = lab.folder("secret");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    lab.write("secret/key", "hush");
    lab.write("file", "hush");
    lab.write("other", "open");
    lab
}

fn denied(lab: &Lab, options: &[&str], words: &[&str]) -> Output {
    let deny = ["limit", "--deny-path", "secret", "--deny-path", "file"];
    lab.windtunnel(&[&deny, options, &["--"], words].concat()).output().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// Whether the machine lets this user have a mount namespace; else it was refused as it must be.
fn is_possible(lab: &Lab) -> bool {
    let output = denied(lab, &[], &["true"]);
    match output.status.code() {
        Some(0) => true,
        Some(4) => {
            assert!(said(&output).contains("no namespace can be made"), "{output:?}");
            false
        }
        _ => panic!("{output:?}"),
    }
}

#[test]
fn what_is_denied_can_be_neither_read_nor_written_nor_moved_and_all_else_can() {
    for user in any_user() {
        let lab = lab(user);
        if !is_possible(&lab) {
            continue;
        }
        let tries = [
            "cat secret/key",
            "ls secret/",
            "cat file",
            "echo x > file",
            "echo x > secret/new",
            "mv secret elsewhere",
            "rm -r secret",
            "sh -c 'cat $PWD/secret/key'",
            "unshare -rm sh -c 'umount secret; cat secret/key'",
        ];
        for words in tries {
            let output = denied(&lab, &[], &["sh", "-c", words]);
            assert!(!said(&output).contains("hush"), "{words}: {output:?}");
            // Root is not refused what covers it: an empty folder and an empty file.
            assert!(
                (user == User::Invoker && user.number() == 0) || !output.status.success(),
                "{words}: {output:?}"
            );
        }
        assert_eq!(fs::read_to_string(lab.path().join("file")).unwrap(), "hush");
        assert_eq!(fs::read_to_string(lab.path().join("secret/key")).unwrap(), "hush");
        assert!(!lab.path().join("secret/new").exists());
        let output = denied(
            &lab,
            &[],
            &["sh", "-c", "cat other; echo fine > made; ls made secret* -d; id -u"],
        );
        assert!(output.status.success(), "{output:?}");
        let expected = format!("openmade\nsecret\n{}\n", user.number());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        assert!(output.stderr.is_empty(), "nothing else is limited");
    }
}

#[test]
fn static_programs_and_links_to_it_are_denied_as_well_beside_a_rate() {
    if is_missing(&["busybox"]) {
        return;
    }
    let busybox = find_program("busybox").unwrap();
    for user in any_user() {
        let lab = lab(user);
        std::os::unix::fs::symlink("secret", lab.path().join("link")).unwrap();
        if !is_possible(&lab) {
            continue;
        }
        let busybox = busybox.to_str().unwrap();
        for path in ["secret/key", "link/key", "file"] {
            let output = denied(&lab, &["--send", "1MB/s"], &[busybox, "cat", path]);
            assert!(!said(&output).contains("hush"), "{path}: {output:?}");
            assert!(said(&output).contains("limit: sent "), "{output:?}");
        }
        // A link names what it leads to.
        let words = ["limit", "--deny-path", "link", "--", "cat", "secret/key"];
        let output = lab.windtunnel(&words).output().unwrap();
        assert!(!said(&output).contains("hush"), "{output:?}");
    }
}

#[test]
fn a_path_that_is_not_there_or_holds_the_working_folder_is_refused_before_anything_starts() {
    for user in any_user() {
        let lab = lab(user);
        let refused = |path: &str, why: &str| {
            let words = ["limit", "--deny-path", path, "--", "touch", "started"];
            let output = lab.windtunnel(&words).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(said(&output).contains(why), "{output:?}");
            assert!(!Path::new(&lab.path().join("started")).exists());
        };
        refused("nowhere", "cannot deny \"nowhere\"");
        refused("..", "the working folder is in it");
    }
}

#[test]
fn another_name_of_a_denied_file_is_said() {
    for user in any_user() {
        let lab = lab(user);
        fs::hard_link(lab.path().join("file"), lab.path().join("again")).unwrap();
        if !is_possible(&lab) {
            continue;
        }
        let output = denied(&lab, &["--out", "out.json"], &["cat", "again"]);
        assert!(said(&output).contains("NOT DENIED: "), "{output:?}");
        let json = fs::read_to_string(lab.path().join("out.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["denied"].as_array().unwrap().len(), 2, "{json}");
        assert_eq!(json["not_denied"].as_array().unwrap().len(), 1, "{json}");
    }
}
