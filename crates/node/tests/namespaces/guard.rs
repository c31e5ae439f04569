//! What a node's programs must not reach, also as root of the node.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use windtunnel_model::plan::ProgramUser;
use windtunnel_node::ExitStatus;
use windtunnel_sys::mount::{self, BindMountAccess, Propagation};
use windtunnel_sys::namespace::{self, NamespaceFlags};

use crate::account::{Account, OTHERS};
use crate::support::{Folder, World, star};
use crate::{Case, missing};

pub(crate) const CASES: &[Case] = &[
    ("a root program cannot uncover the machine's processes", processes),
    ("a root program cannot uncover the machine's names", names),
    ("no program can look into its init or take its descriptors", init),
    ("a root program keeps its rights over the node's network", network),
    (OTHERS, others),
    ("a root program finds the programs of root", sbin),
    ("a hidden file is empty under all its names in every node", hidden),
    ("a hidden file with hard links is reported", hard_links),
    ("a private node has temporary folders and homes of its own", private),
    ("programs write in their node's part of the run folder only", run_folder),
];

/// A node_set of one node whose programs are root, and of one whose programs are not.
fn world() -> World {
    let mut plan = star(&["a", "b"]);
    plan.nodes[0].user = ProgramUser::Root;
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
        mount -t tmpfs none /mnt && id -u && unshare --pid --fork --mount-proc sh -c 'echo $$'";
    assert_eq!(world.output("a", script), "changed\n33\n0\n1\n");
}

fn others() {
    let world = world();
    let identities = namespace::current_id_map().unwrap().users.len();
    if identities < 2 && world.namespaces.invoker().uid != 0 {
        // An account that has them runs this case too, where root runs the tests.
        if Account::of_test() != Some(Account::Plain) {
            missing("subordinate identities of this user (/etc/subuid, /etc/subgid, newuidmap)");
        }
        return;
    }
    let change = "setpriv --reuid 106 --regid 108 --clear-groups sh -c 'id -u; id -g'";
    assert_eq!(world.output("a", change), "106\n108\n");
    if world.shell("a", "command -v tcpdump").1 != ExitStatus::Code(0) {
        missing("the program tcpdump");
        return;
    }
    // Until it has seen one: the first ones may come before it is ready.
    let capture = "file=$(mktemp); tcpdump -i lo -c 1 -w $file icmp & \
        while kill -0 $!; do ping -c 1 -q 127.0.0.1; sleep 0.1; done >/dev/null 2>&1; wait $! && test -s $file && rm $file";
    world.output("a", capture);
}

fn sbin() {
    let world = world();
    let path = world.output("a", "echo :$PATH:");
    assert!(path.contains(":/usr/sbin:") && path.contains(":/sbin:"), "{path}");
}

fn hidden() {
    let folder = Folder::new("hidden");
    let (key, dir) = (folder.path().join("a key"), folder.path().join("keys"));
    fs::write(&key, SECRET).unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("inner"), SECRET).unwrap();
    symlink(&key, folder.path().join("link")).unwrap();
    let mut plan = star(&["a", "b"]);
    plan.nodes[0].user = ProgramUser::Root;
    let missing = folder.path().join("missing");
    let world = World::with(plan, |options, namespaces| {
        // A second mount of the same files, as machines have them for homes.
        assert!(namespaces.has_user_namespace());
        namespace::unshare(NamespaceFlags::MOUNT).unwrap();
        mount::set_propagation("/", Propagation::Private).unwrap();
        mount::bind(folder.path(), "/mnt", BindMountAccess::Same).unwrap();
        options.hidden = vec![folder.path().join("link"), dir.clone(), missing];
    });
    assert_eq!(fs::read_to_string(&key).unwrap(), SECRET);
    let place = folder.path().display();
    for node in ["a", "b"] {
        let script = format!(
            "cd '{place}'; for name in 'a key' link keys /mnt/keys; do umount -n -l \"$name\"; done 2>/dev/null; \
             cat 'a key' link '/mnt/a key' keys/* /mnt/keys/* /proc/1/root/'{place}'/*key 2>/dev/null; echo end"
        );
        assert_eq!(world.output(node, &script), "end\n", "in {node}");
        let nested = format!("unshare -Urm sh -c \"{}\"", script.replace('"', "\\\""));
        assert_eq!(world.output(node, &nested), "end\n", "in a namespace inside {node}");
    }
}

fn hard_links() {
    let folder = Folder::new("links");
    let key = folder.path().join("key");
    fs::write(&key, SECRET).unwrap();
    fs::hard_link(&key, folder.path().join("other")).unwrap();
    let plan = star(&["a"]);
    let world = World::with(plan, |options, _| options.hidden = vec![key.clone()]);
    let note = "has other names (hard links), by which programs can read it";
    assert_eq!(world.node_set.notes(), [format!("node a: {} {note}", key.display())]);
}

fn private() {
    let outside = Folder::new("outside");
    let experiment = Folder::new("experiment");
    fs::write(outside.path().join("file"), SECRET).unwrap();
    fs::write(experiment.path().join("input"), "42\n").unwrap();
    fs::set_permissions(experiment.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut plan = star(&["a", "b", "c"]);
    plan.nodes.iter_mut().take(2).for_each(|node| node.private = true);
    plan.nodes[0].user = ProgramUser::Root;
    let kept = experiment.path().to_owned();
    let world = World::with(plan, |options, _| options.kept = vec![kept]);
    let (file, kept) = (outside.path().join("file"), experiment.path().display());
    for node in ["a", "b"] {
        let empty = format!(
            "umount -n -l /tmp /home /root /run 2>/dev/null; find /root /var/tmp /dev/shm -mindepth 1; \
             find /run ! -type d ! -type l ! -name '*resolv.conf'; \
             test -e '{}' || echo none",
            file.display()
        );
        assert_eq!(world.output(node, &empty), "none\n", "in {node}");
        let own = format!(
            "echo own > /run/mine.pid; echo own > /tmp/mine && echo own > /dev/shm/mine && mkdir -p ~ && echo own > ~/mine && cat /tmp/mine ~/mine && \
             cat {kept}/input && echo {node} > {kept}/output-{node} && cd {kept} && ls"
        );
        assert!(world.output(node, &own).starts_with("own\nown\n42\n"), "in {node}");
        let output = experiment.path().join(format!("output-{node}"));
        assert_eq!(fs::read_to_string(output).unwrap(), format!("{node}\n"));
    }
    for mine in ["/tmp/mine", "/dev/shm/mine", "/run/mine.pid"] {
        assert!(!Path::new(mine).exists(), "{mine}");
    }
    // Names are the run's in a private node, too, where the machine's file is a link into `/run`.
    assert!(world.output("a", "cat /etc/hosts /etc/resolv.conf").contains("\tb\n"));
    // A node that is not private sees the machine's.
    let seen = world.output("c", &format!("cat '{}'", file.display()));
    assert_eq!(seen, SECRET);
}

fn run_folder() {
    let mut plan = star(&["a", "b", "c", "d"]);
    for node in &mut plan.nodes[..3] {
        node.results = true;
    }
    plan.nodes[1].private = true;
    plan.nodes[2].user = ProgramUser::Root;
    let world = World::with(plan, |_, _| ());
    let run = world.folder.path();
    for node in ["a", "b", "c", "d"] {
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(run.join("nodes").join(node), open).unwrap();
    }
    fs::set_permissions(run, fs::Permissions::from_mode(0o777)).unwrap();
    for (node, other) in [("a", "b"), ("b", "c"), ("c", "a")] {
        let command = format!(
            "cd {run} && umount -n -l {run} 2>/dev/null; mount -o remount,rw,bind {run} 2>/dev/null; \
             echo own > nodes/{node}/file && cat nodes/{node}/file; \
             for path in file nodes/{other}/file; do (echo x > $path) 2>/dev/null || echo refused; done; \
             ln -s /etc nodes/{other}/link 2>/dev/null || echo refused; cat nodes/{other}/hostname",
            run = run.display()
        );
        let seen = world.output(node, &command);
        assert_eq!(seen, format!("own\nrefused\nrefused\nrefused\n{other}\n"), "in {node}");
        let written = fs::read_to_string(run.join("nodes").join(node).join("file")).unwrap();
        assert_eq!(written, "own\n");
    }
    // One that did not ask for it has no part of its own.
    let seen = world.output(
        "d",
        &format!(
            "cd {run}/nodes/d && mount -o remount,rw,bind {run} 2>/dev/null; \
             for path in file stdout; do (echo x >> $path) 2>/dev/null || echo refused; done; \
             mv hostname other 2>/dev/null || echo refused; cat hostname",
            run = run.display()
        ),
    );
    assert_eq!(seen, "refused\nrefused\nrefused\nd\n");
    assert!(!run.join("file").exists() && !run.join("nodes/d/file").exists());
}

const SECRET: &str = "secret";
