//! Real programs under a filter, and a watcher that answers as a test says.

use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};

use windtunnel_sys::process::{self, Pid, ProcessExitStatus, Signal, SpawnPlan};
use windtunnel_sys::seccomp::filter::number;

use super::*;
use crate::NotificationThread;

/// Answers writing to the standard output as a script says, lets all else go on, and notes what it
/// is shown.
struct ScriptedWatcher {
    /// Given whether the call is shown again because a descriptor is readable; `None`: it has come.
    #[expect(clippy::type_complexity, reason = "of a test, and written once")]
    script: Box<dyn FnMut(&WaitingCall, Option<bool>) -> io::Result<CallAnswer> + Send>,
    added: Vec<u64>,
    ended: Vec<u64>,
    missed: Vec<(usize, String, String)>,
    shown: u64,
    answered: u64,
    failures: Vec<String>,
    /// Calls of the script that were answered, or have gone.
    over: Option<Sender<u64>>,
    /// Whether all that is held is to be looked at now.
    looks_at_all: Arc<AtomicBool>,
}

impl ScriptedWatcher {
    fn new(
        script: impl FnMut(&WaitingCall, Option<bool>) -> io::Result<CallAnswer> + Send + 'static,
    ) -> ScriptedWatcher {
        ScriptedWatcher {
            script: Box::new(script),
            added: Vec::new(),
            ended: Vec::new(),
            missed: Vec::new(),
            shown: 0,
            answered: 0,
            failures: Vec::new(),
            over: None,
            looks_at_all: Arc::default(),
        }
    }
}

fn is_output(call: &WaitingCall) -> bool {
    call.shown.call == number::WRITE && call.shown.arguments[0] == 1
}

impl CallWatcher for ScriptedWatcher {
    fn listener_added(&mut self, listener: u64) {
        self.added.push(listener);
    }

    fn program_missed(&mut self, door: usize, program: String, why: String) {
        self.missed.push((door, program, why));
    }

    fn listener_ended(&mut self, listener: u64, _door: usize) {
        self.ended.push(listener);
    }

    fn look(&mut self, call: &WaitingCall) -> io::Result<CallAnswer> {
        self.shown += 1;
        if is_output(call) { (self.script)(call, None) } else { Ok(CallAnswer::Continue) }
    }

    fn look_again(
        &mut self,
        call: &WaitingCall,
        _now_ns: u64,
        is_readable: bool,
    ) -> io::Result<CallAnswer> {
        (self.script)(call, Some(is_readable))
    }

    fn cannot_look(&mut self, _call: &WaitingCall, why: String) {
        self.failures.push(why);
    }

    fn answered(&mut self, call: &WaitingCall) {
        self.answered += 1;
        if let Some(over) = self.over.as_ref().filter(|_| is_output(call)) {
            over.send(call.shown.id).unwrap();
        }
    }

    fn next_ns(&self) -> Option<u64> {
        self.looks_at_all.load(Ordering::Relaxed).then_some(1)
    }

    fn do_due(&mut self, _now_ns: u64) -> bool {
        self.looks_at_all.swap(false, Ordering::Relaxed)
    }
}

fn held_until(until_ns: u64) -> io::Result<CallAnswer> {
    Ok(CallAnswer::Hold { until_ns, readable: None })
}

/// A shell's command that runs under a filter.
struct SupervisedShell {
    thread: NotificationThread<ScriptedWatcher>,
    pid: Pid,
    output: io::PipeReader,
}

impl SupervisedShell {
    fn start(watcher: ScriptedWatcher, command: &str) -> SupervisedShell {
        let (ours, theirs) = unix::seqpacket_pair().unwrap();
        let thread = NotificationThread::start(watcher, [ours]).unwrap();
        let (output, end) = io::pipe().unwrap();
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let arguments = ["sh", "-c", command].map(|word| CString::new(word).unwrap());
        let environment = [CString::new("PATH=/bin:/usr/bin").unwrap()];
        let stdio = [null.as_fd(), end.as_fd(), null.as_fd()];
        let mut plan = SpawnPlan::new(&arguments, &environment, stdio);
        plan.supervisor = Some(theirs.as_fd());
        (plan.must_show, plan.no_new_privs) = (true, true);
        let pid = process::spawn(&plan).expect("the kernel shows calls, from Linux 5.19 on");
        SupervisedShell { thread, pid, output }
    }

    /// Waits until it and all under its filter have ended: what was written, and its end.
    fn end(mut self) -> (String, ProcessExitStatus, ScriptedWatcher) {
        let mut written = String::new();
        self.output.read_to_string(&mut written).unwrap();
        let status = process::wait_pid(self.pid, false).unwrap().unwrap();
        while self.thread.living() > 0 {
            thread::yield_now();
        }
        (written, status, self.thread.finish().expect("the watcher"))
    }
}

#[test]
fn calls_that_go_on_do_what_they_would_and_each_is_answered_once() {
    let watcher = ScriptedWatcher::new(|_, _| Ok(CallAnswer::Continue));
    let (written, status, watcher) = SupervisedShell::start(watcher, "echo x; (echo y)").end();
    assert_eq!((written.as_str(), status), ("x\ny\n", ProcessExitStatus::Exited(0)));
    assert_eq!((watcher.added.len(), &watcher.ended), (1, &watcher.added));
    assert!(watcher.shown >= 2, "{}", watcher.shown);
    assert_eq!(watcher.shown, watcher.answered);
}

#[test]
fn a_call_that_is_refused_fails_and_does_nothing() {
    let watcher = ScriptedWatcher::new(|_, _| Ok(CallAnswer::Fail(13)));
    let command = "echo x 2>/dev/null || exit 7";
    let (written, status, _) = SupervisedShell::start(watcher, command).end();
    assert_eq!((written.as_str(), status), ("", ProcessExitStatus::Exited(7)));
}

#[test]
fn a_held_call_goes_on_when_its_descriptor_is_readable_and_delays_no_other() {
    let (end, mut write) = io::pipe().unwrap();
    let mut end = Some(OwnedFd::from(end));
    let mut held = None;
    let watcher = ScriptedWatcher::new(move |call, again| match (end.take(), again) {
        (Some(end), _) => {
            held = Some(call.shown.id);
            let readable = Some(end);
            Ok(CallAnswer::Hold { until_ns: u64::MAX, readable })
        }
        (None, None) => {
            io::Write::write_all(&mut write, b".").unwrap();
            Ok(CallAnswer::Continue)
        }
        (None, Some(is_readable)) => {
            assert!(is_readable && held == Some(call.shown.id));
            Ok(CallAnswer::Continue)
        }
    });
    let (written, _, watcher) = SupervisedShell::start(watcher, "echo x & echo x; wait").end();
    assert_eq!(written, "x\nx\n");
    assert_eq!((watcher.failures.len(), watcher.shown), (0, watcher.answered));
}

#[test]
fn a_held_call_is_looked_at_again_when_its_time_has_come() {
    let watcher = ScriptedWatcher::new(|_, again| match again {
        None => held_until(clock::monotonic_ns() + 1_000),
        Some(is_readable) => {
            Ok(if is_readable { CallAnswer::Fail(5) } else { CallAnswer::Continue })
        }
    });
    let (written, _, watcher) = SupervisedShell::start(watcher, "echo x").end();
    assert_eq!((written.as_str(), watcher.shown), ("x\n", watcher.answered));
}

#[test]
fn all_that_are_held_are_looked_at_where_the_watcher_wants_that() {
    let looks_at_all = Arc::new(AtomicBool::new(false));
    let wants = Arc::clone(&looks_at_all);
    let mut watcher = ScriptedWatcher::new(move |_, again| match again {
        None => {
            wants.store(true, Ordering::Relaxed);
            held_until(u64::MAX)
        }
        Some(_) => Ok(CallAnswer::Continue),
    });
    watcher.looks_at_all = looks_at_all;
    assert_eq!(SupervisedShell::start(watcher, "echo x").end().0, "x\n");
}

#[test]
fn a_held_call_of_a_program_that_is_killed_is_over() {
    let (held, is_held) = channel();
    let mut watcher = ScriptedWatcher::new(move |call, again| {
        if again.is_none() {
            held.send(call.shown.id).unwrap();
        }
        held_until(u64::MAX)
    });
    let (over, is_over) = channel();
    watcher.over = Some(over);
    let shell = SupervisedShell::start(watcher, "echo x");
    let id = is_held.recv().unwrap();
    process::kill(shell.pid, Signal::KILL).unwrap();
    assert_eq!(is_over.recv(), Ok(id));
    let (written, status, _) = shell.end();
    assert_eq!((written.as_str(), status), ("", ProcessExitStatus::Killed(9)));
}

#[test]
fn a_call_goes_on_where_looking_at_it_fails_or_panics() {
    let mut looked = 0;
    let watcher = ScriptedWatcher::new(move |_, _| {
        looked += 1;
        assert!(looked != 1, "panics for this test");
        Err(io::ErrorKind::NotFound.into())
    });
    let (written, _, watcher) = SupervisedShell::start(watcher, "echo x; echo y").end();
    assert_eq!(written, "x\ny\n");
    assert_eq!(watcher.failures, ["looking at a call panicked", "entity not found"]);
}

#[test]
fn a_door_hands_over_listeners_and_other_doors_until_all_are_closed() {
    let watcher = ScriptedWatcher::new(|_, _| Ok(CallAnswer::Continue));
    let mut work = NotificationLoop::new(watcher).unwrap();
    let (ours, theirs) = unix::seqpacket_pair().unwrap();
    let (door, through) = unix::seqpacket_pair().unwrap();
    work.open_door(3, ours).unwrap();
    let missed = |program: &str, errno| {
        SeccompListenerHandover { errno, program: program.to_owned() }.write()
    };
    unix::send(&theirs, b"what is not understood", &[]).unwrap();
    unix::send(&theirs, ANOTHER_DOOR, &[door.as_fd()]).unwrap();
    unix::send(&theirs, &missed("one", 1), &[]).unwrap();
    unix::send(&through, &missed("two", 2), &[]).unwrap();
    drop((theirs, through, door));
    let watcher = work.run();
    let why = |errno| format!("no filter: {}", io::Error::from_raw_os_error(errno));
    let mut missed = watcher.missed;
    missed.sort();
    assert_eq!(missed, [(3, "one".to_owned(), why(1)), (3, "two".to_owned(), why(2))]);
    assert!(watcher.added.is_empty());
}
