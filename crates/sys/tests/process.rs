//! Starting programs and waiting for them.

#![expect(clippy::unwrap_used, reason = "a test's helpers are tests as well")]

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use windtunnel_sys::process::{
    self, ProcessExitStatus, Signal, SpawnError, SpawnPlan, SpawnSession, SpawnStep,
};
use windtunnel_sys::{poll, terminal};

/// Runs a program and returns what it wrote and how it ended.
fn run(
    arguments: &[&str],
    environment: &[&str],
    change: impl Fn(&mut SpawnPlan<'_>),
) -> Result<(String, ProcessExitStatus), SpawnError> {
    let (arguments, environment) = (strings(arguments), strings(environment));
    let null = File::open("/dev/null").unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let stdio = [null.as_fd(), writer.as_fd(), writer.as_fd()];
    let mut plan = SpawnPlan::new(&arguments, &environment, stdio);
    change(&mut plan);
    let pid = process::spawn(&plan)?;
    drop(writer);
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    let status = process::wait_pid(pid, false).unwrap().expect("waited for");
    Ok((output, status))
}

fn strings(texts: &[&str]) -> Vec<CString> {
    texts.iter().map(|text| CString::new(*text).unwrap()).collect()
}

#[test]
fn a_program_gets_its_arguments_environment_and_folder() {
    let script = r#"echo "$1 $NAME $PWD"; exit 7"#;
    let (output, status) =
        run(&["sh", "-c", script, "sh", "word"], &["NAME=value", "PATH=/bin"], |plan| {
            plan.folder = Some(c"/usr");
        })
        .unwrap();
    assert_eq!(output, "word value /usr\n");
    assert_eq!(status, ProcessExitStatus::Exited(7));
}

#[test]
fn an_unknown_program_fails_at_exec_with_enoent() {
    let failure = run(&["no-such-program"], &["PATH=/bin:/usr/bin"], |_| {}).unwrap_err();
    assert_eq!((failure.step, failure.error.raw_os_error()), (SpawnStep::Exec, Some(libc::ENOENT)));
    assert_eq!(failure.to_string(), "cannot run the program");
}

#[test]
fn a_file_that_may_not_be_run_fails_at_exec_with_eacces() {
    let failure = run(&["/etc/passwd"], &[], |_| {}).unwrap_err();
    assert_eq!((failure.step, failure.error.raw_os_error()), (SpawnStep::Exec, Some(libc::EACCES)));
}

#[test]
fn a_missing_folder_fails_at_its_own_step() {
    let failure =
        run(&["true"], &["PATH=/bin"], |plan| plan.folder = Some(c"/no/such")).unwrap_err();
    assert_eq!(
        (failure.step, failure.error.raw_os_error()),
        (SpawnStep::Folder, Some(libc::ENOENT))
    );
}

#[test]
fn the_path_is_that_of_the_new_environment() {
    let failure = run(&["true"], &["PATH=/no/such:/etc"], |_| {}).unwrap_err();
    assert_eq!(failure.step, SpawnStep::Exec);
    assert!(run(&["true"], &["PATH=/no/such:/bin"], |_| {}).is_ok());
    assert!(run(&["true"], &[], |_| {}).is_ok());
}

#[test]
fn a_script_without_an_interpreter_is_for_the_shell() {
    let folder = std::env::temp_dir().join(format!("windtunnel-sys-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let script = folder.join("script");
    let script = script.to_str().unwrap();
    // Written by another process: a child that another test forks meanwhile would have our file
    // open for writing for a moment, and what is being written cannot be run.
    let write = r#"echo 'echo "$1"' > "$1"; chmod 755 "$1""#;
    run(&["sh", "-c", write, "sh", script], &["PATH=/bin"], |_| {}).unwrap();
    let result = run(&[script, "argument"], &["PATH=/bin"], |_| {});
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(result.unwrap(), ("argument\n".into(), ProcessExitStatus::Exited(0)));
}

#[test]
fn no_descriptor_of_ours_is_inherited() {
    // Descriptor 3 is the folder that ls itself has open.
    let (output, _) = run(&["ls", "/proc/self/fd"], &["PATH=/bin"], |_| {}).unwrap();
    assert_eq!(output, "0\n1\n2\n3\n");
}

#[test]
fn signals_are_back_at_their_defaults() {
    // The Rust runtime ignores SIGPIPE, and tests must not hand that on.
    let (output, _) = run(&["cat", "/proc/self/status"], &["PATH=/bin"], |_| {}).unwrap();
    for name in ["SigBlk", "SigIgn", "SigCgt"] {
        let line = output.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(line, format!("{name}:\t0000000000000000"));
    }
}

#[test]
fn no_new_privileges_are_had_when_asked_for() {
    let (output, _) =
        run(&["cat", "/proc/self/status"], &["PATH=/bin"], |plan| plan.no_new_privs = true)
            .unwrap();
    assert!(output.contains("NoNewPrivs:\t1\n"));
}

#[test]
fn a_new_session_can_have_its_standard_input_as_terminal() {
    let pair = terminal::open_pair().unwrap();
    let arguments = strings(&["sh", "-c", "echo typed > /dev/tty"]);
    let environment = strings(&["PATH=/bin"]);
    let end = pair.terminal.as_fd();
    let mut plan = SpawnPlan::new(&arguments, &environment, [end; 3]);
    plan.session = SpawnSession::NewWithTerminal;
    let pid = process::spawn(&plan).unwrap();
    let status = process::wait_pid(pid, false).unwrap();
    assert_eq!(status, Some(ProcessExitStatus::Exited(0)));
    let mut buffer = [0; 32];
    let read = rustix::io::read(&pair.controller, &mut buffer).unwrap();
    assert_eq!(&buffer[..read], b"typed\r\n");
}

#[test]
fn a_killed_group_ends_and_its_pidfd_says_so() {
    let arguments = strings(&["cat"]);
    let environment = strings(&["PATH=/bin"]);
    let (reader, _writer) = std::io::pipe().unwrap();
    let input: OwnedFd = reader.into();
    let mut plan = SpawnPlan::new(&arguments, &environment, [input.as_fd(); 3]);
    plan.session = SpawnSession::NewGroup;
    let pid = process::spawn(&plan).unwrap();
    let pidfd = process::open_pidfd(pid).unwrap();
    assert_eq!(process::wait_pidfd(&pidfd, true).unwrap(), None);
    process::kill_group(pid, Signal::TERM).unwrap();
    let mut watched = [poll::PollFd::new(&pidfd, poll::PollFlags::IN)];
    assert_eq!(poll::wait(&mut watched, None).unwrap(), 1);
    let status = process::wait_pidfd(&pidfd, false).unwrap().unwrap();
    assert_eq!((status, status.shell_code()), (ProcessExitStatus::Killed(15), 143));
}

#[test]
fn killing_everything_is_refused_outside_of_a_namespace_of_ones_own() {
    let error = process::kill_all(Signal::CONT).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
}
