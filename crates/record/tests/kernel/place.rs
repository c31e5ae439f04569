//! Two network namespaces with a cable, in which programs run and the kernel is watched. The device
//! of the first has a queue, that of the second has none.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use windtunnel_record::drain::RecordFeed;
use windtunnel_record::kernel::{
    Kernel, KernelEventCounts, KernelFeed, KernelTraceScope, KernelTraceSettings,
};

use super::seen::Seen;

pub(crate) struct Place {
    pub(crate) kernel: Kernel,
    feeds: Vec<KernelFeed>,
    spaces: [Running; 2],
}

impl Place {
    /// `None`, and why on standard error, where this process has not the rights.
    pub(crate) fn new(scope: KernelTraceScope, ring_slots: Option<u32>) -> Option<Place> {
        if !has_rights() {
            eprintln!("skipped: the kernel layer needs CAP_BPF and CAP_PERFMON of the machine");
            return None;
        }
        let mut kernel =
            Kernel::open(KernelTraceSettings { scope, ring_slots, counts_events: true })
                .expect("this process has the rights");
        assert!(kernel.missing().is_empty(), "{:?}", kernel.missing());
        let spaces = [(); 2].map(|()| {
            let mut shell = Command::new("unshare");
            shell.args(["-n", "sh", "-c", "ip link set lo up && echo ready && exec cat"]);
            Running::start(shell)
        });
        let inode = |it: &Running| {
            let file = fs::metadata(format!("/proc/{}/ns/net", it.id())).unwrap();
            u32::try_from(file.ino()).unwrap()
        };
        let feeds = match scope {
            KernelTraceScope::Namespaces => (0..2)
                .map(|node: usize| {
                    kernel.add_namespace(inode(&spaces[node]), u32::try_from(node).unwrap())
                })
                .collect::<Result<_, _>>()
                .unwrap(),
            KernelTraceScope::Processes => vec![kernel.add_processes(0).unwrap()],
        };
        let place = Place { kernel, feeds, spaces };
        place.cable();
        Some(place)
    }

    fn cable(&self) {
        let other = self.spaces[1].id();
        let near = format!(
            "ip link add near type veth peer name far netns {other} && ip addr add 10.9.0.1/24 dev near &&
             ip addr add fd09::1/64 dev near nodad && ip link set near up &&
             tc qdisc add dev near root pfifo limit 1000"
        );
        let far = "ip addr add 10.9.0.2/24 dev far && ip addr add fd09::2/64 dev far nodad &&
                   ip link set far up && ping -q -c 1 10.9.0.1 && ping -q -c 1 fd09::1";
        for (node, script) in [(0, near.as_str()), (1, far)] {
            let script = format!("{{ {script}; }} >/dev/null && echo ready");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]);
            self.start(node, &shell).wait();
        }
    }

    /// Starts a program in a namespace; one that says `ready` has said it then.
    pub(crate) fn start(&self, node: usize, program: &Command) -> Running {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.spaces[node].id()));
        command.arg(program.get_program()).args(program.get_args());
        Running::start(command)
    }

    /// What was recorded since the last time, by source.
    pub(crate) fn seen<const SOURCES: usize>(&mut self) -> [Seen; SOURCES] {
        let take = |feed: &mut KernelFeed| {
            let mut records = Vec::new();
            feed.take(usize::MAX, &mut records);
            Seen::new(records)
        };
        let seen: Vec<_> = self.feeds.iter_mut().map(take).collect();
        seen.try_into().unwrap_or_else(|_| panic!("there are not {SOURCES} sources"))
    }

    pub(crate) fn counts(&self) -> Vec<KernelEventCounts> {
        self.feeds.iter().map(KernelFeed::counts).collect()
    }
}

/// A Python program with arguments.
pub(crate) fn python(text: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", text]).args(arguments);
    command
}

/// A program that was started; its end is waited for, or its input ends.
pub(crate) struct Running {
    child: Child,
    input: Option<ChildStdin>,
}

impl Running {
    /// Waits until it writes a line or ends.
    fn start(mut command: Command) -> Running {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        Running { child, input }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn wait(mut self) {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Gives it a line, and waits for its end.
    pub(crate) fn go_on(mut self) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
        self.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether this process may load programs that trace this kernel: then it must be able to.
fn has_rights() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let effective = u64::from_str_radix(line.trim(), 16).unwrap();
    let users = fs::read_to_string("/proc/self/uid_map").unwrap();
    let of_machine = users.split_whitespace().eq(["0", "0", "4294967295"]);
    let wanted = 1 << 38 | 1 << 39 | 1 << 21;
    effective & wanted == wanted && of_machine && fs::exists("/sys/kernel/btf/vmlinux").unwrap()
}
