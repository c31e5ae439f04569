//! Images for other processors. Emulators are registered in a user namespace of the test's own, which has a
//! `binfmt_misc` of its own since Linux 6.7; a program of the test stands in for one.

use std::process::{Command, Output};

use serde_json::json;

use crate::support::image::{Files, ImageBuilder};
use crate::support::{Lab, Live, Outcome, is_missing, missing, users};

/// A layout with an image for this machine, and one for another processor.
fn write_image(lab: &Lab) {
    let own = Files::new().programs(&["cat"]).file("/text", "of this machine\n");
    let config = json!({"Cmd": ["cat", "/text"], "Env": ["PATH=/usr/bin:/bin"]});
    let own = ImageBuilder::new(lab.path()).layer(&own, 0).for_architecture(own_architecture());
    own.write_layout("both", &config, |_| ());
    // The stand-in is opened when it is registered, and what it is linked with is in the image.
    let foreign = Files::new().programs(&["echo"]).copy(&program(lab), "/bin/hello");
    let config = json!({"Cmd": ["/bin/hello", "of", "another"]});
    let foreign = ImageBuilder::new(lab.path()).layer(&foreign, 0).for_architecture("s390x");
    foreign.write_layout("both", &config, |_| ());
}

fn own_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// What begins as a program for s390x does: 64 bits, the highest byte first, machine 22.
fn program(lab: &Lab) -> std::path::PathBuf {
    let mut bytes = b"\x7fELF\x02\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x16\0\0\0\x01".to_vec();
    bytes.resize(512, 0);
    lab.write("hello", bytes)
}

/// As the package qemu-user-static registers it, with these flags; the kernel reads the escapes.
fn registration(flags: &str) -> String {
    let magic = r"\x7f\x45\x4c\x46\x02\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x16";
    let mask = r"\xff\xff\xff\xff\xff\xff\xff\xfc\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff";
    format!("printf %s ':standin:M::{magic}:{mask}:/usr/bin/echo:{flags}' > {FOLDER}/register")
}

const FOLDER: &str = "/proc/sys/fs/binfmt_misc";
const SCENARIO: &str = "nodes:\n  a: {image: both}\n  b:\n    image: both\n    platform: linux/s390x\n\
                        links: [{between: [a, b]}]\n";

/// The command line that does something where `setup` has registered emulators, and no others are.
fn wrapper(setup: &str) -> String {
    format!("mount -t binfmt_misc none {FOLDER} && {setup} && exec \"$@\"")
}

/// Whether namespaces have emulators of their own here.
fn has_own_emulators(lab: &Lab) -> bool {
    let script = wrapper("true");
    let mut works = lab.command(&[&UNSHARE[..], &["sh", "-c", &script, "sh", "true"]].concat());
    let has = works.output().is_ok_and(|output| output.status.success());
    if !has {
        missing("a binfmt_misc of a user namespace's own (Linux 6.7)");
    }
    has
}

const UNSHARE: [&str; 3] = ["unshare", "-Ur", "-m"];

/// windtunnel with the file, behind a shell that registers emulators by `setup`.
fn command(lab: &Lab, setup: &str, words: &[&str]) -> Command {
    lab.write("net.yaml", SCENARIO);
    let script = wrapper(setup);
    lab.windtunnel_behind(&[&UNSHARE[..], &["sh", "-c", &script, "sh"]].concat(), words)
}

fn check(lab: &Lab, setup: &str) -> Output {
    command(lab, setup, &["check", "net.yaml"]).output().unwrap()
}

fn run(lab: &Lab, setup: &str) -> Outcome {
    let words = ["run", "net.yaml", "--out", "out", "--max-lateness", "5s"];
    Live::start(lab, command(lab, setup, &words), lab.folder("out")).finish()
}

/// With the image, for every user that can register emulators.
fn labs() -> Vec<Lab> {
    if is_missing(&["echo", "ldd", "unshare"]) {
        return Vec::new();
    }
    let labs = users().into_iter().map(Lab::new);
    let labs = labs.take_while(has_own_emulators);
    labs.inspect(write_image).collect()
}

#[test]
fn nodes_of_one_image_have_different_platforms_in_one_run() {
    for lab in labs() {
        let outcome = run(&lab, &registration("F"));
        outcome.assert_code(0);
        assert_eq!(outcome.output("a"), "of this machine\n");
        assert_eq!(outcome.output("b"), "/bin/hello of another\n");
        let plan = outcome.file("plan.json");
        assert!(plan.contains("\"platform\": \"linux/s390x\""), "{plan}");
        let own = format!("\"platform\": \"linux/{}\"", own_architecture());
        assert!(plan.contains(&own), "the default is in the plan as well: {plan}");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_platform_that_this_machine_cannot_execute_is_a_mistake_with_a_hint() {
    for lab in labs() {
        let cases = [
            (
                "true".to_owned(),
                "this machine cannot execute programs for linux/s390x",
                "qemu-user-static",
            ),
            (registration(""), "/usr/bin/echo, is registered without the flag F", "with `F`"),
        ];
        for (setup, why, hint) in cases {
            let output = check(&lab, &setup);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{text}");
            assert!(text.contains("net.yaml:5:5: platform: ") && text.contains(why), "{text}");
            assert!(text.contains(hint), "{text}");
        }
    }
}

#[test]
fn an_image_without_the_platform_is_a_mistake_that_names_what_it_has() {
    let Some(user) = users().pop() else { return };
    if is_missing(&["echo", "ldd"]) {
        return;
    }
    let lab = Lab::new(user);
    write_image(&lab);
    lab.write("net.yaml", SCENARIO.replace("s390x", "mips"));
    let output = lab.windtunnel(&["check", "net.yaml"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    let has =
        format!("has no image for linux/mips, only for linux/{}, linux/s390x", own_architecture());
    assert!(text.contains("net.yaml:5:5: platform: ") && text.contains(&has), "{text}");
}
