//! The guest kernel: Debian's for User-Mode Linux, which an ordinary program is. It has control groups
//! of version 2 and one processor, and sees this machine's files.

use std::path::Path;
use std::process::{Command, Output};

use super::{Lab, User, is_missing, is_root, missing};

/// Runs a shell script in the guest as root, in the folder of the test, where it can write and finds
/// the program of that name and text. `None` where the guest cannot run, or lacks a command.
pub(crate) fn run(script: &str, program: (&str, &str), commands: &[&str]) -> Option<Lab> {
    if !is_root() {
        missing("root, as which the guest sees all files of this machine");
        return None;
    }
    let needed = ["linux.uml", "busybox", "gcc", "python3"];
    if is_missing(&[&needed, commands].concat()) {
        return None;
    }
    let lab = Lab::new(User::Invoker);
    lab.write(program.0, program.1);
    let script = lab.write("script.sh", format!("set -u\ncd '{}'\n{script}", lab.path().display()));
    let boot = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/guest/boot.sh");
    let words = ["-m", "1G", "-s", lab.path().to_str().unwrap(), "bash", script.to_str().unwrap()];
    let mut guest = Command::new(boot);
    let output: Output = guest.args(words).env("TMPDIR", lab.path()).output().unwrap();
    assert!(output.status.success(), "{}", described(&output));
    println!("{}", described(&output));
    Some(lab)
}

fn described(output: &Output) -> String {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("the guest ended with {}:\n{out}{err}", output.status)
}
