//! Limits by control groups of version 2, on a kernel that has them.

use serde_json::Value;

use super::support::{Lab, assert_limits_were_held, guest};

/// Computes in two processes for so many seconds, and prints the processor time of both, and how long
/// that took. With names of files: makes the first, and begins when the others are there.
const BURN: &str = "
import os, sys, time
for name in sys.argv[2:3]:
    open(name, 'w').close()
while not all(map(os.path.exists, sys.argv[3:])):
    time.sleep(0.01)
began, before = time.monotonic(), sum(os.times()[:4])
child = os.fork()
while time.monotonic() < began + float(sys.argv[1]):
    pass
if child:
    os.wait()
    print(sum(os.times()[:4]) - before, time.monotonic() - began, flush=True)
";

fn in_guest(script: &str) -> Option<Lab> {
    guest::run(script, ("burn.py", BURN), &[])
}

fn json(lab: &Lab, file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(lab.path().join(file)).unwrap()).unwrap()
}

fn numbers(lab: &Lab, file: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(lab.path().join(file)).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

fn number(lab: &Lab, file: &str) -> f64 {
    numbers(lab, file)[0]
}

/// What burned a quarter of a processor: a tick of the clock more, and a quota that was left.
#[track_caller]
fn assert_a_quarter(burned: &[f64]) {
    let (used, elapsed) = (burned[0], burned[1]);
    assert!(used > 0.1 && used <= 0.25 * elapsed * 1.03 + 0.05, "{used} s in {elapsed} s");
}

#[test]
fn a_command_has_a_group_of_version_two() {
    let script = "
./windtunnel limit --cpu 25% --memory 100MB --pids 20 --out limit.json -- \
    python3 burn.py 4 > burned || exit 1
./windtunnel limit --memory 32MB --out eaten.json -- python3 -c 'bytearray(200 << 20)'
echo $? > code
./windtunnel limit --pids 3 --out forked.json -- \
    sh -c 'for i in 1 2 3 4 5 6; do sleep 0.1 & done; wait'
ls /sys/fs/cgroup | grep -c windtunnel > left
true
";
    let Some(lab) = in_guest(script) else { return };
    let ended = json(&lab, "limit.json");
    assert_eq!(ended["cpu"]["mechanism"], "cgroup v2", "{ended}");
    assert_a_quarter(&numbers(&lab, "burned"));
    assert_eq!(number(&lab, "code"), 137.0, "the kernel ends what takes more memory");
    let memory = json(&lab, "eaten.json")["memory"].clone();
    assert_eq!((&memory["mechanism"], &memory["ended"]), (&"cgroup v2".into(), &1.into()));
    let pids = json(&lab, "forked.json")["pids"].clone();
    assert_eq!(pids["mechanism"], "cgroup v2", "{pids}");
    assert!(pids["met"].as_u64() > Some(0), "{pids}");
    assert_eq!(number(&lab, "left"), 0.0, "no group is left");
}

#[test]
fn programs_that_run_already_have_a_group_of_version_two_within_their_own() {
    // A service, whose group has no other process; and a job beside the shell of a session.
    let script = "
mkdir /sys/fs/cgroup/service /sys/fs/cgroup/session
echo '+cpu +memory +pids' > /sys/fs/cgroup/cgroup.subtree_control
(echo $BASHPID > /sys/fs/cgroup/service/cgroup.procs; exec python3 burn.py 6) > burned &
service=$!
until grep -q python /proc/$service/comm; do sleep 0.1; done
./windtunnel limit --pid $service --cpu 25% --memory 100MB --pids 20 --out limit.json &
limiting=$!
until grep -q windtunnel /proc/$service/cgroup; do sleep 0.1; done
sed 's/^0:://' /proc/$service/cgroup | tr -d '\\n' | sed 's/windtunnel.*//' > within
sleep 2
kill -INT $limiting
wait $limiting || exit 1
sed 's/^0::\\///' /proc/$service/cgroup > after
cat /sys/fs/cgroup/service/cgroup.subtree_control > given
find /sys/fs/cgroup/service -name 'windtunnel*' | wc -l > left
(echo $BASHPID > /sys/fs/cgroup/session/cgroup.procs; python3 burn.py 3 > /dev/null & sleep 6) &
until job=$(pgrep -f '^python3 burn.py 3'); do sleep 0.1; done
./windtunnel limit --pid $(echo $job | cut -d' ' -f1) --cpu 25% --out beside.json || exit 1
true
";
    let Some(lab) = guest::run(script, ("burn.py", BURN), &["pgrep"]) else { return };
    let text = |file: &str| std::fs::read_to_string(lab.path().join(file)).unwrap();
    let ended = json(&lab, "limit.json");
    assert_eq!(ended["cpu"]["mechanism"], "cgroup v2", "{ended}");
    assert_eq!(ended["memory"]["mechanism"], "cgroup v2 and watch", "{ended}");
    assert!(ended["cpu"]["delivered_cpus"].as_f64().unwrap() < 0.28, "{ended}");
    assert_eq!((text("within").as_str(), text("after").as_str()), ("/service/", "service\n"));
    assert_eq!((text("given").trim(), number(&lab, "left")), ("", 0.0), "all is as before");
    assert_eq!(json(&lab, "beside.json")["cpu"]["mechanism"], "duty cycle");
}

#[test]
fn nodes_and_reservations_are_groups_within_groups_of_version_two() {
    let script = "
cat > net.yaml <<'END'
ipv6: false
allow-unreachable: true
nodes:
  a: {cpu: 10%, memory: 100MB, pids: 30, run: python3 burn.py 8}
  b: {cpu: {weight: 1}, run: python3 burn.py 8 b-began c-began}
  c: {cpu: {weight: 3}, run: python3 burn.py 8 c-began b-began}
  hungry: {memory: 32MB, run: \"python3 -c 'bytearray(200 << 20)'\"}
reserve: {site: {of: [b, c], cpu: {limit: 60%}, memory: 500MB}}
links: [{between: [a, b]}]
END
./windtunnel run net.yaml --out out --max-lateness 10s > said 2>&1 &
until ./windtunnel reserve tree --run out > tree 2>/dev/null; do sleep 0.1; done
./windtunnel set --run out a.cpu=20% || exit 1
wait $!
echo $? > code
cat said
";
    let Some(lab) = in_guest(script) else { return };
    // The program that was ended is a failure of the run.
    assert_eq!(number(&lab, "code"), 1.0);
    let report = json(&lab, "out/run.json");
    assert_limits_were_held(&report);
    let limits = report["limits"].as_array().unwrap();
    assert_eq!(limits.len(), 2, "{limits:?}");
    for limit in limits {
        assert_eq!(limit["mechanism"], "cgroup v2", "{limit}");
        // All of its programs want more, all the time but at both ends; the machine may have less.
        let asked = if limit["node"] == "a" { 0.2 } else { 0.6 };
        let delivered = limit["delivered_median_cpus"].as_f64().unwrap();
        assert!(delivered > asked * 0.6 && delivered < asked * 1.03, "{limit}");
    }
    let bounds = report["bounds"].as_array().unwrap();
    for bound in bounds {
        assert_eq!(bound["mechanism"], "cgroup v2", "{bound}");
    }
    let of = |node: &str| number(&lab, &format!("out/nodes/{node}/stdout"));
    let (b, c) = (of("b"), of("c"));
    // They begin together: interpreters start at different speeds.
    assert!(c / b > 1.7 && c / b < 4.0, "{c} / {b}");
    let hungry = bounds.iter().find(|bound| bound["node"] == "hungry").unwrap();
    assert_eq!(hungry["ended"], 1, "{hungry}");
}

#[test]
fn an_ordinary_user_has_limits_in_a_group_that_is_delegated() {
    // As systemd delegates a scope: the group, and the files by which processes get into it.
    let script = "
mkdir -p /sys/fs/cgroup/user/session /sys/fs/cgroup/user/scope
echo '+cpu +memory +pids' > /sys/fs/cgroup/cgroup.subtree_control
chown -R 65534:65534 /sys/fs/cgroup/user
cat > net.yaml <<'END'
ipv6: false
nodes:
  a: {cpu: 25%, memory: 100MB, run: python3 burn.py 4}
  b: {}
links: [{between: [a, b]}]
END
mkdir /tmp/own && chown 65534 /tmp/own
as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp/own \"$@\"; }
(
  echo $BASHPID > /sys/fs/cgroup/user/session/cgroup.procs
  as_user ./windtunnel run net.yaml --out /tmp/own/out --max-lateness 10s
  as_user ./windtunnel limit --cpu 25% --out /tmp/own/limit.json -- python3 burn.py 4 > burned
)
find /sys/fs/cgroup/user -name 'windtunnel*' | wc -l > left
cat /sys/fs/cgroup/user/session/cgroup.type > kind
(
  echo $BASHPID > /sys/fs/cgroup/user/scope/cgroup.procs
  exec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp/own \\
    ./windtunnel run net.yaml --out /tmp/own/alone --max-lateness 10s
)
cp -r /tmp/own/out /tmp/own/alone /tmp/own/limit.json .
";
    let Some(lab) = in_guest(script) else { return };
    // In a group with a shell, which cannot be divided, and alone in one.
    for run in ["out", "alone"] {
        let report = json(&lab, &format!("{run}/run.json"));
        assert_limits_were_held(&report);
        assert_eq!(report["limits"][0]["mechanism"], "cgroup v2", "{report}");
        assert_eq!(report["bounds"][0]["mechanism"], "cgroup v2", "{report}");
        assert_a_quarter(&numbers(&lab, &format!("{run}/nodes/a/stdout")));
    }
    let kind = std::fs::read_to_string(lab.path().join("kind")).unwrap();
    assert_eq!(kind.trim(), "domain", "a threaded group can never be divided again");
    assert_eq!(json(&lab, "limit.json")["cpu"]["mechanism"], "cgroup v2");
    assert_a_quarter(&numbers(&lab, "burned"));
    assert_eq!(number(&lab, "left"), 0.0, "no group is left");
}

#[test]
fn what_left_a_group_of_version_two_and_ended_between_two_looks_is_said_of_whatever_it_limits() {
    let script = "
cat > net.yaml <<'END'
ipv6: false
allow-unreachable: true
nodes:
  a: {memory: 200MB, run: [sh, -c, 'python3 escape.py leave; sleep 1']}
  b: {pids: 20, run: [sh, -c, 'python3 escape.py leave; sleep 1']}
  c: {memory: 200MB, pids: 20, run: sleep 1.2}
links: [{between: [a, b]}, {between: [b, c]}]
END
./windtunnel run net.yaml --out out --max-lateness 10s > said 2>&1
./windtunnel limit --pids 20 --out alone.json -- python3 escape.py leave > escaped || exit 1
./windtunnel limit --group g --memory 200MB --out first.json -- sleep 8 &
until ./windtunnel limit list | grep -q '^g '; do sleep 0.1; done
./windtunnel limit --group g --out second.json -- python3 escape.py leave || exit 1
./windtunnel limit set g --memory 300MB || exit 1
wait $!
ls /sys/fs/cgroup | grep -c windtunnel > left
true
";
    let brief = super::limit::resources::ESCAPE.replace("1.5", "0.2");
    let Some(lab) = guest::run(script, ("escape.py", brief.as_str()), &[]) else { return };
    assert_eq!(std::fs::read_to_string(lab.path().join("escaped")).unwrap(), "escaped\n");
    let report = json(&lab, "out/run.json");
    let failure = |node: &str| {
        let bounds = report["bounds"].as_array().unwrap();
        bounds.iter().find(|bound| bound["node"] == node).unwrap()["failure"].clone()
    };
    // By its time, or where a look met it.
    let is_reported = |why: &Value| {
        ["outside its control group", "had left its control group"]
            .iter()
            .any(|words| why.to_string().contains(words))
    };
    for why in [failure("a"), failure("b"), json(&lab, "alone.json")["pids"]["failure"].clone()] {
        assert!(is_reported(&why), "{why}");
    }
    assert_eq!(failure("c"), Value::Null, "it has left nothing");
    let why = json(&lab, "second.json")["memory"]["failure"].clone();
    assert!(is_reported(&why), "{why}");
    let first = json(&lab, "first.json")["memory"].clone();
    assert_eq!((&first["failure"], &first["asked"]), (&Value::Null, &300_000_000.into()));
    assert_eq!(number(&lab, "left"), 0.0, "no group is left");
}
