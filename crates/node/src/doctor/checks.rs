//! The list of what is tried.

use std::io;
use std::net::TcpListener;
use std::num::NonZeroU64;
use std::path::Path;

use windtunnel_limit::LimitMechanismChoice;
use windtunnel_limit::place::GROUPED;
use windtunnel_model::{LimitMechanism, Resource};
use windtunnel_sys::mount::{self, BindMountAccess, Propagation};
use windtunnel_sys::namespace::{self, NamespaceFlags};
use windtunnel_sys::packet;
use windtunnel_sys::ping::{PingFamily, PingSocket};
use windtunnel_sys::schedule::{self, SchedulingPolicy};
use windtunnel_sys::{clock, limits, process};

use super::trial::{PrerequisiteContext, PrerequisiteProblem, PrerequisiteTrial};
use super::{PrerequisiteCheck, hint};
use crate::init;
use crate::netlink::request::{self, Veth};
use crate::netlink::{Netlink, NetlinkError};

/// A switch of the kernel that can forbid everything; where it is missing, it does not.
pub(super) struct KernelRestriction {
    name: &'static str,
    path: &'static str,
    /// The value that forbids.
    forbids: u64,
    hint: &'static str,
}

pub(super) const SETTINGS: [KernelRestriction; 3] = [
    KernelRestriction {
        name: "user.max_user_namespaces",
        path: "/proc/sys/user/max_user_namespaces",
        forbids: 0,
        hint: "sudo sysctl -w user.max_user_namespaces=15000",
    },
    KernelRestriction {
        name: "kernel.unprivileged_userns_clone",
        path: "/proc/sys/kernel/unprivileged_userns_clone",
        forbids: 0,
        hint: "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    },
    KernelRestriction {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        path: hint::APPARMOR_RESTRICTS,
        forbids: 1,
        hint: hint::APPARMOR,
    },
];

pub(super) const TRIALS: [PrerequisiteTrial; 12] = [
    PrerequisiteTrial {
        name: "user namespace",
        place: PrerequisiteContext::Here,
        body: user_namespace,
    },
    PrerequisiteTrial {
        name: "network namespace",
        place: PrerequisiteContext::Fabric,
        body: || found("can be made"),
    },
    PrerequisiteTrial { name: "node namespaces", place: PrerequisiteContext::Node, body: own_pid },
    PrerequisiteTrial {
        name: "virtual devices",
        place: PrerequisiteContext::Fabric,
        body: devices,
    },
    PrerequisiteTrial {
        name: "packet socket",
        place: PrerequisiteContext::Fabric,
        body: packet_socket,
    },
    PrerequisiteTrial { name: "/proc of a node", place: PrerequisiteContext::Node, body: proc },
    PrerequisiteTrial { name: "/sys of a node", place: PrerequisiteContext::Node, body: sys },
    PrerequisiteTrial {
        name: "/etc/hosts of a node",
        place: PrerequisiteContext::Node,
        body: hosts,
    },
    PrerequisiteTrial {
        name: "overlay of images",
        place: PrerequisiteContext::Node,
        body: super::files::overlay,
    },
    PrerequisiteTrial {
        name: "ports and ping",
        place: PrerequisiteContext::Node,
        body: ports_and_ping,
    },
    PrerequisiteTrial { name: "IPv6", place: PrerequisiteContext::Here, body: ipv6 },
    PrerequisiteTrial { name: "timers", place: PrerequisiteContext::Here, body: timers },
];

impl KernelRestriction {
    pub(super) fn check(&self) -> PrerequisiteCheck {
        match hint::setting(self.path) {
            None => PrerequisiteCheck::good(self.name, "this kernel has no such switch"),
            Some(value) if value != self.forbids => {
                PrerequisiteCheck::good(self.name, format!("is {value}"))
            }
            Some(value) if process::current_user().uid == 0 => PrerequisiteCheck::good(
                self.name,
                format!("is {value}, which does not concern root"),
            ),
            Some(value) => {
                PrerequisiteCheck::bad(self.name, format!("is {value}"), Some(self.hint.into()))
            }
        }
    }
}

/// How many descriptors a run may have. A node takes two, and each of its programs two more.
pub(super) fn open_files() -> PrerequisiteCheck {
    const NAME: &str = "open descriptors";
    match limits::open_files().hard {
        None => PrerequisiteCheck::good(NAME, "without limit"),
        Some(limit) if limit >= 1024 => {
            PrerequisiteCheck::good(NAME, format!("up to {limit}, for about {} nodes", limit / 6))
        }
        Some(limit) => {
            let hint = "raise the hard limit with `ulimit -Hn` as root, or in limits.conf";
            PrerequisiteCheck::bad(NAME, format!("only up to {limit}"), Some(hint.into()))
        }
    }
}

/// How the packet loop competes with programs and all else. Nothing fails without.
pub(super) fn priority() -> PrerequisiteCheck {
    let thread = || {
        schedule::set_policy(None, SchedulingPolicy::RealTime(2))?;
        schedule::set_policy(None, SchedulingPolicy::Normal)
    };
    let tried = std::thread::spawn(thread).join();
    let detail = match tried {
        Ok(Ok(())) => {
            "real-time (SCHED_RR): the packet loop comes before all other work".to_owned()
        }
        Ok(Err(error)) => format!(
            "the packet loop is an ordinary thread with short time slices; programs are nicer, \
             in sessions of the lowest priority (SCHED_RR is for root: {error})"
        ),
        Err(_) => "not known".to_owned(),
    };
    PrerequisiteCheck::good("priority", detail)
}

/// What holds nodes to `cpu`, `memory`, `pids` and `disk`. Some mechanism always does, but for
/// disks, which few runs ask for: none is a failure.
pub(super) fn limits_of_nodes() -> Vec<PrerequisiteCheck> {
    let choice = LimitMechanismChoice::of_machine();
    let names = ["processor limits", "memory limits", "process limits", "disk limits"];
    let all = names.into_iter().zip(GROUPED);
    all.map(|(name, resource)| limit_of_nodes(&choice, name, resource)).collect()
}

fn limit_of_nodes(
    choice: &LimitMechanismChoice,
    name: &'static str,
    resource: Resource,
) -> PrerequisiteCheck {
    let mechanism = choice.mechanism_of(resource);
    if resource == Resource::Disk {
        return limit_of_disks(choice, name, mechanism);
    }
    let found = PrerequisiteCheck::good(name, format!("by {mechanism}"));
    let less = match mechanism {
        LimitMechanism::GroupV1 | LimitMechanism::GroupV2 => return found,
        LimitMechanism::Watch if resource == Resource::Memory => {
            ", which looks every 1 to 20 ms: between two looks, programs can have more"
        }
        LimitMechanism::Watch => ", which looks every 1 to 20 ms: a fork bomb can be faster",
        _ => "",
    };
    let why = choice.refusals_of(resource).join("; ");
    let better = "control groups cost less, and hold limits of single programs, too: give the user a \
                  part of the tree of groups, as `systemd-run --user --scope -p Delegate=yes` does";
    let detail = format!("by {mechanism}{less} ({why})");
    PrerequisiteCheck { detail, hint: Some(better.into()), ..found }
}

fn limit_of_disks(
    choice: &LimitMechanismChoice,
    name: &'static str,
    mechanism: LimitMechanism,
) -> PrerequisiteCheck {
    match (mechanism, choice.undivided()) {
        (LimitMechanism::GroupV2, None) => {
            PrerequisiteCheck::good(name, format!("by {mechanism}, and divided by weight"))
        }
        (LimitMechanism::GroupV2, Some(why)) => {
            let hint = "weights need the scheduler BFQ (`echo bfq > /sys/block/DISK/queue/scheduler`) or \
                        io.cost on each disk";
            let detail = format!("by {mechanism}; not divided by weight ({why})");
            PrerequisiteCheck { hint: Some(hint.into()), ..PrerequisiteCheck::good(name, detail) }
        }
        (_, why) => {
            let detail = format!("none, `disk` is refused ({})", why.unwrap_or_default());
            let hint = "they need control groups of version 2 with the controllers io and memory";
            PrerequisiteCheck { hint: Some(hint.into()), ..PrerequisiteCheck::good(name, detail) }
        }
    }
}

fn user_namespace() -> Result<String, PrerequisiteProblem> {
    match namespace::unshare(NamespaceFlags::USER) {
        Ok(()) => found("can be made"),
        Err(error) if process::current_user().uid == 0 => {
            found(&format!("denied ({error}), but root can do without"))
        }
        Err(error) => Err(PrerequisiteProblem::new(
            "cannot be made",
            &error,
            Some(hint::user_namespace(&error)),
        )),
    }
}

fn own_pid() -> Result<String, PrerequisiteProblem> {
    let first = process::current().is_init();
    found(if first { "can be made" } else { "can be made, though not with processes of their own" })
}

fn devices() -> Result<String, PrerequisiteProblem> {
    let pair = Veth {
        fabric_name: "wt0".into(),
        fabric_index: 1000,
        node_name: "eth0",
        node_index: 100,
        node_pid: process::current().as_raw_nonzero().get().cast_unsigned(),
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        offload: true,
        on_lan: false,
    };
    let made = Netlink::open().and_then(|mut netlink| {
        netlink.create(request::veth(&pair), "make a pair of devices".into())?;
        netlink.flush()
    });
    made.map(|()| "veth pairs can be made".into()).map_err(|error| {
        let NetlinkError { action, source } = error;
        let hint = "the kernel may lack the module: sudo modprobe veth";
        PrerequisiteProblem::new(&format!("cannot {action}"), &source, Some(hint.into()))
    })
}

fn packet_socket() -> Result<String, PrerequisiteProblem> {
    let hint = "the kernel may lack the module: sudo modprobe af_packet";
    let failed = |error: io::Error| {
        PrerequisiteProblem::new(
            "cannot open a packet socket with a ring",
            &error,
            Some(hint.into()),
        )
    };
    let socket = packet::PacketSocket::open(1024).map_err(failed)?;
    found(&format!("a ring of {} slots, with virtio-net headers", socket.ring().slots()))
}

fn proc() -> Result<String, PrerequisiteProblem> {
    mounted(|| mount::proc("/proc"), "programs of nodes see all processes of the machine")
}

fn sys() -> Result<String, PrerequisiteProblem> {
    mounted(|| mount::sysfs("/sys"), "programs of nodes see the machine's devices in /sys")
}

/// Nodes do without, so that a refusal is not a failure.
fn mounted(mount: fn() -> io::Result<()>, otherwise: &str) -> Result<String, PrerequisiteProblem> {
    private()?;
    match mount() {
        Ok(()) => found("can be mounted"),
        Err(error) => found(&format!("cannot be mounted ({error}): {otherwise}")),
    }
}

fn hosts() -> Result<String, PrerequisiteProblem> {
    const HOSTS: &str = "/etc/hosts";
    private()?;
    if !Path::new(HOSTS).exists() {
        let hint = "create an empty /etc/hosts: sudo touch /etc/hosts";
        let detail = "does not exist, so nodes do not know each other by name".into();
        return Err(PrerequisiteProblem { detail, hint: Some(hint.into()) });
    }
    mount::bind(HOSTS, HOSTS, BindMountAccess::ReadOnly).map(|()| "can be replaced".into()).map_err(
        |error| {
            PrerequisiteProblem::new("cannot be replaced", &error, Some(hint::CONTAINER.into()))
        },
    )
}

pub(super) fn private() -> Result<(), PrerequisiteProblem> {
    mount::set_propagation("/", Propagation::Private).map_err(|error| {
        PrerequisiteProblem::new("mounts cannot be private", &error, Some(hint::CONTAINER.into()))
    })
}

fn ports_and_ping() -> Result<String, PrerequisiteProblem> {
    private()?;
    // Where it is refused, the settings are tried through the old one, as in a run.
    let _ = mount::proc("/proc");
    let mut notes = Vec::new();
    init::apply_settings(false, false, &mut notes)
        .map_err(|failure| PrerequisiteProblem { detail: failure.message, hint: failure.hint })?;
    let old = "needs Linux 4.11 or newer";
    TcpListener::bind("127.0.0.1:80").map_err(|error| {
        PrerequisiteProblem::new("port 80 cannot be bound", &error, Some(old.into()))
    })?;
    PingSocket::open(PingFamily::V4)
        .map_err(|error| PrerequisiteProblem::new("no ping socket", &error, Some(old.into())))?;
    found("programs may bind port 80 and ping")
}

fn ipv6() -> Result<String, PrerequisiteProblem> {
    if Path::new("/proc/sys/net/ipv6").exists() {
        return found("the kernel has it");
    }
    let hint = "boot without ipv6.disable=1, or leave IPv6 out of the file";
    Err(PrerequisiteProblem {
        detail: "the kernel does not have it".into(),
        hint: Some(hint.into()),
    })
}

/// How late a sleeper wakes up, which bounds how faithful delays can be.
fn timers() -> Result<String, PrerequisiteProblem> {
    let failed =
        |error: io::Error| PrerequisiteProblem::new("the timers do not work", &error, None);
    clock::set_timer_slack(NonZeroU64::MIN).map_err(failed)?;
    let mut late_ns = Vec::new();
    for _ in 0..SLEEPS {
        let at_ns = clock::monotonic_ns() + 500_000;
        clock::sleep_until(at_ns).map_err(failed)?;
        late_ns.push(clock::monotonic_ns().saturating_sub(at_ns));
    }
    late_ns.sort_unstable();
    let (half, worst) = (late_ns[SLEEPS / 2] / 1000, late_ns[SLEEPS - 1] / 1000);
    found(&format!("a sleeper wakes {half} µs late (median; at worst {worst} µs)"))
}

#[expect(clippy::unnecessary_wraps, reason = "the last line of what can fail")]
pub(super) fn found(detail: &str) -> Result<String, PrerequisiteProblem> {
    Ok(detail.into())
}

const SLEEPS: usize = 51;
