//! Processes that are forked while all of their node are stopped and go on again.

use super::support::{Lab, any_user, is_missing};

/// Forks of a process with much memory, which take milliseconds, each waited for.
const SLOW_FORKS: &str = "
import os, sys, time
memory = bytearray(b'x' * 200_000_000)
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    print('child', flush=True)
";

/// The run ends, which it does not if a child stays stopped.
#[track_caller]
fn assert_all_ended(scenario: &str) {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("forks.py", SLOW_FORKS);
        let outcome = lab.run(scenario);
        // Events of a busy machine come late.
        assert!(outcome.code <= 1, "{}", outcome.describe());
        assert!(outcome.output("a").lines().count() > 5, "{}", outcome.describe());
    }
}

#[test]
fn children_go_on_whose_forks_outlast_a_pause() {
    let mut scenario = "nodes: {a: {run: python3 forks.py 5}, b: {}}\n\
         links: [{between: [a, b]}]\n\
         expect: [{node: a, exit: 0}]\n\
         events:\n"
        .to_owned();
    for turn in 0..40 {
        let at = 1000 + turn * 50;
        scenario += &format!(
            "- {{at: {at}ms, node: a, do: pause}}\n- {{at: {at}.3ms, node: a, do: resume}}\n"
        );
    }
    assert_all_ended(&scenario);
}

#[test]
fn children_go_on_whose_forks_outlast_a_stop_of_the_duty_cycle() {
    assert_all_ended(
        "nodes: {a: {cpu: 20%, run: python3 forks.py 5}, b: {}}\n\
         links: [{between: [a, b]}]\n\
         expect: [{node: a, exit: 0}]\n",
    );
}
