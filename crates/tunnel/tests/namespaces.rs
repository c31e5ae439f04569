//! The path MTU over a device of which the test sets the MTU, so in a network namespace of its own.
//! Not the usual harness: a process must be single-threaded to fork into namespaces. Works as root
//! and, where user namespaces are allowed, as anybody. `WINDTUNNEL_REQUIRE_NAMESPACES=1` makes a
//! failure of a skipped case.

#![expect(clippy::unwrap_used, reason = "a test's helpers are tests as well")]

use std::io::{self, Write};
use std::net::UdpSocket;
use std::panic;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use windtunnel_model::Time;
use windtunnel_sys::clock::monotonic_ns;
use windtunnel_sys::namespace::{
    self, IdMap, IdRange, NamespaceFlags, NamespaceFork, UserNamespaceTarget,
};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, ProcessExitStatus};
use windtunnel_tunnel::{
    Label, OutgoingFrame, Security, TunnelSettings, UdpTunnel, UnsentFrameCounts,
};

/// A case that did not panic either passed or returns the missing requirement.
type Outcome = Result<(), String>;
type Case = (&'static str, fn() -> Outcome);

const CASES: [Case; 2] = [
    ("the_mtu_of_the_device_is_found_and_followed_when_it_falls", found_and_followed),
    ("the_mtu_is_found_over_ipv6", found_over_ipv6),
];
const SKIPPED: i32 = 77;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let chosen = CASES.iter().filter(|(name, _)| {
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    });
    if arguments.iter().any(|argument| argument == "--list") {
        chosen.for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let required = std::env::var_os("WINDTUNNEL_REQUIRE_NAMESPACES").is_some_and(|v| v == "1");
    let mut failed = 0;
    for (name, body) in chosen {
        match run(name, *body) {
            Ok(ProcessExitStatus::Exited(0)) => println!("ok {name}"),
            Ok(ProcessExitStatus::Exited(SKIPPED)) if !required => {}
            Err(error) if !required => println!("skipped {name}: no namespaces: {error}"),
            other => {
                println!("FAILED {name}: {other:?}");
                failed += 1;
            }
        }
    }
    std::process::exit(i32::from(failed > 0));
}

/// Runs one case in a child with a network of its own, and waits for it.
fn run(name: &str, body: fn() -> Outcome) -> io::Result<ProcessExitStatus> {
    io::stdout().flush()?;
    let user = process::current_user();
    let flags = if user.uid == 0 {
        NamespaceFlags::NET
    } else {
        NamespaceFlags::NET | NamespaceFlags::USER
    };
    let only = |outside| vec![IdRange { inside: 0, outside, count: 1 }];
    let maps = IdMap { users: only(user.uid), groups: only(user.gid) };
    match namespace::fork_into(flags)? {
        NamespaceFork::Parent { pidfd, .. } => {
            Ok(process::wait_pidfd(&pidfd, false)?.expect("waited for"))
        }
        NamespaceFork::Child => {
            if flags.contains(NamespaceFlags::USER) {
                namespace::write_id_maps(UserNamespaceTarget::Current, &maps, true)
                    .expect("the own user maps");
            }
            process::exit_now(match panic::catch_unwind(body) {
                Ok(Ok(())) => 0,
                Ok(Err(reason)) => {
                    println!("skipped {name}: {reason}");
                    SKIPPED
                }
                Err(_) => 1,
            })
        }
    }
}

fn found_and_followed() -> Outcome {
    ip("link set lo mtu 1400 up")?;
    let mut tunnels = pair("127.0.0.1:0");
    // 1400 bytes less 20 of IPv4 and 8 of UDP.
    serve(&mut tunnels, |tunnels, _| sizes(tunnels) == [1372; 2]);
    let train = vec![7; 65_549];
    assert_eq!(send(&mut tunnels, &train), UnsentFrameCounts::default());
    serve(&mut tunnels, |_, arrived| arrived == [train.clone()]);

    ip("link set lo mtu 1300")?;
    let unsent = send(&mut tunnels, &train);
    assert_eq!(unsent, UnsentFrameCounts { too_big: 1, ..UnsentFrameCounts::default() });
    assert_eq!(tunnels[0].mtu(1), Some(1200));
    assert_eq!(
        send(&mut tunnels, &train),
        UnsentFrameCounts::default(),
        "at once with the safe size"
    );
    serve(&mut tunnels, |_, arrived| arrived == [train.clone()]);
    serve(&mut tunnels, |tunnels, _| {
        tunnels[0].mtu(1).is_some_and(|size| (1272 - 16..=1272).contains(&size))
    });
    assert_eq!(tunnels[1].counters().refused.total(), 0);
    Ok(())
}

fn found_over_ipv6() -> Outcome {
    ip("link set lo mtu 1500 up")?;
    if UdpSocket::bind("[::1]:0").is_err() {
        return Err("the kernel has no IPv6".to_owned());
    }
    let mut tunnels = pair("[::1]:0");
    serve(&mut tunnels, |tunnels, _| sizes(tunnels) == [1452; 2]);
    Ok(())
}

fn now() -> Time {
    Time::from_nanos(monotonic_ns())
}

fn sizes(tunnels: &[UdpTunnel; 2]) -> [usize; 2] {
    [tunnels[0].mtu(1).unwrap(), tunnels[1].mtu(0).unwrap()]
}

fn pair(at: &str) -> [UdpTunnel; 2] {
    let sockets = [UdpSocket::bind(at).unwrap(), UdpSocket::bind(at).unwrap()];
    let peers = sockets.each_ref().map(|socket| Some(socket.local_addr().unwrap()));
    let mut own = 0..;
    sockets.map(|socket| {
        let (own, peers) = (own.next().unwrap(), peers.to_vec());
        UdpTunnel::open(
            socket,
            TunnelSettings { run: 1, own, peers, security: Security::Sealed([5; 32]) },
        )
        .unwrap()
    })
}

fn send(tunnels: &mut [UdpTunnel; 2], frame: &[u8]) -> UnsentFrameCounts {
    let label = Label { port: 0, lane: 0, intended: 0, vnet: [0; 10] };
    tunnels[0].push(now(), &OutgoingFrame { to: 1, label, frame });
    tunnels[0].flush(now()).unsent
}

/// Serves both until `done`; waits for the sockets and their timers.
fn serve(tunnels: &mut [UdpTunnel; 2], done: impl Fn(&[UdpTunnel; 2], &[Vec<u8>]) -> bool) {
    let mut arrived = Vec::new();
    let mut idle = 0;
    while !done(tunnels, &arrived) {
        let mut taken = 0;
        for tunnel in tunnels.iter_mut() {
            tunnel.handle_timeout(now());
            let keep = |received: windtunnel_tunnel::ReceivedFrame<'_>| {
                arrived.push(received.frame.to_vec());
            };
            taken += tunnel.receive(now(), keep).unwrap();
        }
        idle = if taken == 0 { idle + 1 } else { 0 };
        assert!(idle < 500, "{tunnels:?}");
        if taken == 0 {
            let mut watched = [0, 1].map(|at| PollFd::new(&tunnels[at], PollFlags::IN));
            poll::wait(&mut watched, Some(Duration::from_millis(20))).unwrap();
        }
    }
}

/// Runs iproute2.
fn ip(arguments: &str) -> Outcome {
    let program = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .ok_or("the program ip of iproute2 is missing")?;
    let output = Command::new(program).args(arguments.split_ascii_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    Ok(())
}
