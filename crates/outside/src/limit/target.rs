//! The process that `--pid` names: whether it can be one.

use std::fs;

use windtunnel_sys::process::Pid;

use super::error::LimitError;

/// A process that is to be limited.
#[derive(Debug)]
pub(super) struct LimitTargetProcess {
    pub(super) pid: Pid,
    /// As it was called.
    pub(super) words: Vec<String>,
}

impl LimitTargetProcess {
    /// Looks at the process of a number.
    pub(super) fn find(number: i32) -> Result<LimitTargetProcess, LimitError> {
        let refused =
            |why: &str, hint| Err(LimitError::NoTarget { pid: number, why: why.to_owned(), hint });
        let status = fs::read_to_string(format!("/proc/{number}/status"));
        let pid = Pid::from_raw(number.max(0));
        let (Some(pid), Ok(status)) = (pid, status) else {
            return refused("there is none", "`ps -e` lists all");
        };
        let field = |name| status.lines().find_map(|line: &str| line.strip_prefix(name));
        let process: i32 = field("Tgid:").and_then(|it| it.trim().parse().ok()).unwrap_or(number);
        if process != number {
            let why = format!("it is a thread of process {process}");
            return refused(&why, "all threads of a process are limited together: name that one");
        }
        if pid.is_init() {
            return refused("it is the first of all, and everything is below it", "");
        }
        if field("State:").is_some_and(|state| state.trim().starts_with(['Z', 'X'])) {
            return refused("it has ended", "");
        }
        // Threads of the kernel have no memory of their own.
        if field("VmSize:").is_none() {
            return refused("it is a part of the kernel", "");
        }
        let own = std::process::id().cast_signed();
        if number == own {
            return refused("it is this windtunnel itself", "");
        }
        if ancestors(own).contains(&number) {
            let hint = "limit a process below it, or start windtunnel elsewhere";
            return refused("this windtunnel is below it, and would limit itself", hint);
        }
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into());
        let mut words: Vec<String> = words.collect();
        words.pop();
        Ok(LimitTargetProcess { pid, words })
    }
}

/// The processes that a process is below, the next first.
fn ancestors(process: i32) -> Vec<i32> {
    let parent = |process: &i32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.split_ascii_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 0)
    };
    std::iter::successors(parent(&process), parent).take(DEPTH_MAX).collect()
}

/// More than any tree of processes has.
const DEPTH_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use super::*;

    fn refused(number: i32) -> String {
        LimitTargetProcess::find(number).unwrap_err().to_string()
    }

    #[test]
    fn only_a_process_that_this_one_is_not_below_can_be_limited() {
        let own = std::process::id().cast_signed();
        let words = ["sh", "-c", "echo; read line"];
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It has become that program.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let target = LimitTargetProcess::find(child.id().cast_signed()).unwrap();
        assert_eq!(target.words, words);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(refused(child.id().cast_signed()).ends_with("there is none"));
        assert!(refused(0).ends_with("there is none") && refused(-5).ends_with("there is none"));
        assert!(refused(1).contains("the first of all"));
        assert!(refused(own).contains("this windtunnel itself"));
        let parent = ancestors(own)[0];
        assert!(parent == 1 || refused(parent).contains("is below it"));
        let thread = windtunnel_sys::limits::current_thread().as_raw_nonzero().get();
        assert!(thread == own || refused(thread).contains(&format!("a thread of process {own}")));
    }
}
