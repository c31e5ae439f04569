//! Limits of disks, on a kernel that has control groups of version 2: Debian's for User-Mode Linux,
//! which an ordinary program is. Its disk is a file in memory, behind a loop device with ext4.

use serde_json::Value;

use super::support::{Lab, guest, users};

/// Makes the disk, which nothing but limits slows down, and mounts it at `/tmp/disk`.
const DISK: &str = "
modprobe loop
mkdir /tmp/memory /tmp/disk
mount -t tmpfs -o size=300m memory /tmp/memory
truncate -s 200M /tmp/memory/disk
mke2fs -q -t ext4 -E lazy_itable_init=0,lazy_journal_init=0 /tmp/memory/disk
losetup /dev/loop0 /tmp/memory/disk
mount -t ext4 /dev/loop0 /tmp/disk
";

/// Writes or reads so many MB in a way, and prints how many seconds that took.
const MOVE: &str = "
import mmap, os, sys, time
how, path, size = sys.argv[1], sys.argv[2], int(float(sys.argv[3]) * 1e6) >> 16
block = mmap.mmap(-1, 1 << 16)
flags = {'buffered': os.O_WRONLY | os.O_CREAT, 'direct': os.O_WRONLY | os.O_CREAT | os.O_DIRECT,
         'read': os.O_RDONLY}[how]
file = os.open(path, flags, 0o644)
began = time.monotonic()
for _ in range(size):
    if how == 'read':
        assert os.read(file, 1 << 16)
    else:
        os.write(file, block)
if how != 'read':
    os.fsync(file)
print(time.monotonic() - began, flush=True)
";

fn in_guest(script: &str) -> Option<Lab> {
    guest::run(script, ("move.py", MOVE), &["mke2fs", "losetup"])
}

fn text(lab: &Lab, file: &str) -> String {
    std::fs::read_to_string(lab.path().join(file)).unwrap()
}

fn number(lab: &Lab, file: &str) -> f64 {
    text(lab, file).trim().parse().unwrap()
}

/// The limits of disks of a faithful run.
fn bounds(lab: &Lab) -> Vec<Value> {
    let report: Value = serde_json::from_str(&text(lab, "out/run.json")).unwrap();
    assert_eq!(report["verdict"]["faithful"], true, "{}", report["verdict"]);
    let mut bounds = report["bounds"].as_array().unwrap().clone();
    bounds.retain(|bound| bound["limit"] == "disk");
    for bound in &bounds {
        assert_eq!(bound["mechanism"], "cgroup v2", "{bound}");
    }
    bounds
}

fn bound<'a>(bounds: &'a [Value], node: &str) -> &'a Value {
    bounds.iter().find(|bound| bound["node"] == node).expect(node)
}

fn seconds(lab: &Lab, node: &str) -> f64 {
    number(lab, &format!("out/nodes/{node}/stdout"))
}

#[test]
fn a_node_reads_and_writes_no_faster_than_it_may_in_whatever_way() {
    let script = format!(
        "{DISK}
python3 move.py buffered /tmp/disk/old 4 > /dev/null
echo 3 > /proc/sys/vm/drop_caches
cat > net.yaml <<'END'
ipv6: false
allow-unreachable: true
nodes:
  buffered: {{disk: 1MB/s, run: python3 move.py buffered /tmp/disk/a 4}}
  direct: {{disk: 2MB/s, run: python3 move.py direct /tmp/disk/b 8}}
  reading: {{disk: 1MB/s, run: python3 move.py read /tmp/disk/old 4}}
  free: {{run: python3 move.py direct /tmp/disk/c 8}}
links: [{{between: [buffered, direct]}}]
END
./windtunnel run net.yaml --out out --max-lateness 10s
echo $? > code
./windtunnel doctor | grep 'disk limits' > doctor
ls /sys/fs/cgroup | grep -c windtunnel > left
true
"
    );
    let Some(lab) = in_guest(&script) else { return };
    assert_eq!(number(&lab, "code"), 0.0);
    let bounds = bounds(&lab);
    for (node, way) in [("buffered", "written"), ("direct", "written"), ("reading", "read")] {
        // 4 s, but for two slices of the kernel.
        let taken = seconds(&lab, node);
        assert!(taken > 3.7, "{node}: {taken} s");
        let bound = bound(&bounds, node);
        let moved = bound[way].as_f64().unwrap();
        assert!(moved >= 3.9e6, "{bound}");
        let (asked, most) = (bound["asked"].as_f64().unwrap(), bound["peak"].as_f64().unwrap());
        assert!(most > 0.5 * asked && most < 1.5 * asked + 1e6, "{bound}");
    }
    assert_eq!(bounds.len(), 3, "{bounds:?}");
    assert!(text(&lab, "doctor").contains("by cgroup v2; not divided by weight"));
    assert_eq!(number(&lab, "left"), 0.0, "no group is left");
}

#[test]
fn programs_and_reservations_have_limits_of_their_own_within_each_other() {
    let script = format!(
        "{DISK}
cat > net.yaml <<'END'
ipv6: false
allow-unreachable: true
nodes:
  a:
    disk: 3MB/s
    run:
      - {{run: python3 move.py direct /tmp/disk/a0 2, disk: 500KB/s}}
      - {{run: python3 move.py direct /tmp/disk/a1 5}}
  b: {{run: python3 move.py direct /tmp/disk/b 4}}
  c: {{disk: 4MB/s, run: python3 move.py direct /tmp/disk/c 4}}
reserve: {{site: {{of: [b, c], disk: {{limit: 2MB/s}}}}}}
links: [{{between: [a, b]}}]
END
./windtunnel run net.yaml --out out --max-lateness 10s
echo $? > code
"
    );
    let Some(lab) = in_guest(&script) else { return };
    assert_eq!(number(&lab, "code"), 0.0);
    let bounds = bounds(&lab);
    let first = bounds.iter().find(|bound| bound["program"] == 0).unwrap();
    assert_eq!((&first["node"], &first["asked"]), (&"a".into(), &500_000.into()));
    assert!(number(&lab, "out/nodes/a/stdout.0") > 3.7);
    let site = bound(&bounds, "site");
    assert_eq!(site["reservation"], true);
    assert!(site["written"].as_f64() >= Some(7.9e6), "{site}");
    // 8 MB at 2 MB/s, by turns.
    let last = seconds(&lab, "b").max(seconds(&lab, "c"));
    assert!(last > 3.7, "{last}");
}

#[test]
fn a_limit_changes_while_the_node_runs_by_a_command_and_by_an_event() {
    let script = format!(
        "{DISK}
cat > net.yaml <<'END'
ipv6: false
allow-unreachable: true
nodes:
  a: {{disk: 100KB/s, run: python3 move.py direct /tmp/disk/a 4}}
  b: {{run: sh -c 'sleep 1.5; python3 move.py direct /tmp/disk/b 4'}}
  c: {{memory: 100MB}}
links: [{{between: [a, b]}}]
events: [{{at: 1s, node: b, limit: {{disk: 1MB/s}}}}]
END
./windtunnel run net.yaml --out out --max-lateness 10s &
until ./windtunnel ps --run out > /dev/null 2>&1; do sleep 0.1; done
./windtunnel set --run out a.disk=2MB/s || exit 1
./windtunnel set --run out c.disk=2MB/s 2> refused
echo $? > refusal
wait $!
echo $? > code
"
    );
    let Some(lab) = in_guest(&script) else { return };
    assert_eq!(number(&lab, "code"), 0.0);
    let bounds = bounds(&lab);
    assert_eq!(bound(&bounds, "a")["asked"], 2_000_000);
    assert_eq!(bound(&bounds, "b")["asked"], 1_000_000);
    let (a, b) = (seconds(&lab, "a"), seconds(&lab, "b"));
    assert!(a > 1.7 && a < 30.0, "{a}");
    assert!(b > 3.7, "{b}");
    let events = text(&lab, "out/events.jsonl");
    assert!(events.contains(r#""limit":"disk","value":2000000"#), "{events}");
    assert!(number(&lab, "refusal") > 0.0);
    let refused = text(&lab, "refused");
    assert!(refused.contains("no control group limits its disks"), "{refused}");
}

#[test]
fn what_nothing_can_hold_is_refused_with_its_reason_before_anything_starts() {
    let script = format!(
        "
net() {{
cat > net.yaml <<END
nodes: {{a: {{disk: $1, run: touch ran}}, b: {{}}}}
links: [{{between: [a, b]}}]
END
./windtunnel run net.yaml 2> $2
echo $? > $2.code
}}
net 1MB/s without-disk
{DISK}
net '{{weight: 2}}' without-weights
modprobe bfq
echo bfq > /sys/block/loop0/queue/scheduler
net '{{limit: 1MB/s, weight: 2}}' without-groups
test ! -e ran
"
    );
    let Some(lab) = in_guest(&script) else { return };
    for (case, reason) in [
        ("without-disk", "can be made: cgroup v2: /sys/fs/cgroup: the machine has no disk"),
        (
            "without-weights",
            "`disk` cannot have a weight: no disk has the scheduler BFQ or io.cost",
        ),
        ("without-groups", "`disk` cannot have a weight: io.bfq.weight of a group"),
    ] {
        let said = text(&lab, case);
        assert_eq!(number(&lab, &format!("{case}.code")), 4.0, "{said}");
        println!("{said}");
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn a_machine_without_groups_of_version_2_says_why_it_cannot_limit_disks() {
    for user in users() {
        let lab = Lab::new(user);
        let doctor = lab.command(&["./windtunnel"]).arg("doctor").output().unwrap();
        let doctor = String::from_utf8(doctor.stdout).unwrap();
        let line = doctor.lines().find(|line| line.contains("disk limits")).expect("disk limits");
        let scenario =
            "nodes: {a: {disk: 1MB/s, run: \"true\"}, b: {}}\nlinks: [{between: [a, b]}]";
        let outcome = lab.run(scenario);
        if line.contains("by cgroup v2") {
            outcome.assert_code(0);
            continue;
        }
        outcome.assert_code(4);
        assert!(line.contains("none, `disk` is refused"), "{line}");
        let said = outcome.describe();
        assert!(said.contains("node a") && said.contains("page cache"), "{said}");
    }
}
