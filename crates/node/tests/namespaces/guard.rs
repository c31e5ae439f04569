//! What a node's programs must not reach, also as root of the node.

use windtunnel_model::plan::User;
use windtunnel_node::ExitStatus;

use crate::Case;
use crate::support::{World, star};

pub(crate) const CASES: &[Case] = &[
    ("a root program cannot uncover the machine's processes", processes),
    ("a root program cannot uncover the machine's names", names),
    ("no program can look into its init or take its descriptors", init),
    ("a root program keeps its rights over the node's network", network),
];

/// A village of one node whose programs are root, and of one whose programs are not.
fn world() -> World {
    let mut plan = star(&["a", "b"]);
    plan.nodes[0].user = User::Root;
    World::new(plan)
}

fn processes() {
    let world = world();
    // Without /proc (umount would like to read its table), and as often as there may be layers.
    let script = "for i in 1 2 3; do umount -n /proc; umount -n -l /proc; done 2>/dev/null; cat /proc/1/comm";
    assert_eq!(world.output("a", script), "wt:a\n");
    let nested = format!("unshare -m sh -c '{script}'");
    assert_eq!(world.output("a", &nested), "wt:a\n");
    let moved = "mkdir -p /tmp/wt-moved.$$ && mount --move /proc /tmp/wt-moved.$$ 2>/dev/null; \
        rmdir /tmp/wt-moved.$$; cat /proc/1/comm";
    assert_eq!(world.output("a", moved), "wt:a\n");
}

fn names() {
    let world = world();
    let script = "umount -n -l /etc/hosts 2>/dev/null; getent hosts b";
    assert!(world.output("a", script).contains("fd00::2"));
}

/// Asks the kernel for each of the init's descriptors and for its memory.
const PRY: &str = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(what, returned):
    assert returned == -1, f"{what} was allowed"
    assert ctypes.get_errno() == 1, f"{what}: errno {ctypes.get_errno()}"
init = os.pidfd_open(1)
PIDFD_GETFD, PTRACE_ATTACH, PTRACE_SEIZE = 438, 16, 0x4206
for number in range(64):
    refused(f"pidfd_getfd {number}", libc.syscall(PIDFD_GETFD, init, number, 0))
refused("ptrace attach", libc.ptrace(PTRACE_ATTACH, 1, 0, 0))
refused("ptrace seize", libc.ptrace(PTRACE_SEIZE, 1, 0, 0))
for name in ["mem", "environ", "maps", "root/etc/passwd", "fd/0", "ns/mnt"]:
    try:
        open(f"/proc/1/{name}", "rb").read(16)
    except OSError:
        continue
    raise SystemExit(f"/proc/1/{name} was read")
"#;

fn init() {
    let world = world();
    for node in ["a", "b"] {
        let (said, status) = world.shell(node, &format!("python3 -c '{PRY}'"));
        assert_eq!((status, said.as_str()), (ExitStatus::Code(0), ""), "in {node}");
    }
}

fn network() {
    let world = world();
    let script = "ip link add v0 type veth peer name v1 && ip addr add 192.0.2.7/32 dev v0 && \
        hostname changed && hostname && sysctl -n -w net.ipv4.ip_default_ttl=33 && \
        mount -t tmpfs none /mnt && id -u";
    assert_eq!(world.output("a", script), "changed\n33\n0\n");
}
