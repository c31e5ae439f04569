//! Job control of a shell whose processes a duty cycle stops and continues.

use super::super::support::{Lab, any_user, is_missing};
use super::ended;

/// A shell on a terminal of its own; a job that computes for 0.3 s is brought to the foreground.
const JOB: &str = r#"
import os, pty, sys
job = "import time\nwhile time.process_time() < 0.3: pass\n"
open("job.py", "w").write(job)
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], [*sys.argv[1:], "--", "bash", "--norc", "-i"])
os.write(terminal, b"python3 job.py &\nfg; echo co''de $?; exit\n")
text = b""
try:
    while part := os.read(terminal, 65536):
        text += part
except OSError:
    pass
os.waitpid(child, 0)
print(text.decode())
"#;

#[test]
fn a_shell_under_a_duty_cycle_does_not_see_its_job_stop() {
    if is_missing(&["python3", "bash"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let windtunnel = env!("CARGO_BIN_EXE_windtunnel");
        let words =
            ["python3", "-c", JOB, windtunnel, "limit", "--out", "limit.json", "--cpu", "20%"];
        let output = lab.command(&words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("code 0") && !text.contains("Stopped"), "{text}");
        // It had stopped many times.
        assert!(ended(lab.path())["cpu"]["throttled_ns"].as_u64() > Some(0), "{text}");
    }
}
