//! What cannot be is refused with the object, the reason and a hint.

use windtunnel_model::plan::ProgramUser;
use windtunnel_node::{CreateError, diagnose};

use crate::Case;
use crate::support::{World, star};

pub(crate) const CASES: &[Case] = &[
    ("a setting that does not exist is refused", unknown),
    ("a value that the kernel does not accept is refused", unacceptable),
    ("a setting outside of the network is refused", outside),
    ("an unknown congestion control is refused with what there is", congestion),
    ("a host name that the kernel does not take is refused", long_name),
    ("a run folder that cannot be made is refused", folder),
    ("the doctor finds this machine well and leaves nothing behind", doctor),
];

/// The error and the hint of a node_set whose only peculiarity is one setting.
fn refusal(key: &str, value: &str) -> (String, String) {
    let mut plan = star(&["other", "odd"]);
    plan.nodes[1].sysctl.insert(key.into(), value.into());
    plan.nodes[1].user = ProgramUser::Root;
    let Err(error) = World::try_new(plan) else { panic!("{key} = {value} was taken") };
    (error.to_string(), error.hint().unwrap_or_default())
}

fn unknown() {
    let (error, hint) = refusal("net.ipv4.tcp_cogestion_control", "reno");
    let expected = "node odd: sysctl net.ipv4.tcp_cogestion_control = reno: this kernel has no such \
        setting in a network namespace (No such file or directory (os error 2))";
    assert_eq!(error, expected);
    assert_eq!(hint, "if the setting exists outside, it belongs to the whole machine");
}

fn unacceptable() {
    let (error, _) = refusal("net.ipv4.ip_default_ttl", "256");
    let expected = "node odd: sysctl net.ipv4.ip_default_ttl = 256: the kernel does not accept this \
        value (Invalid argument (os error 22))";
    assert_eq!(error, expected);
}

fn outside() {
    let (error, hint) = refusal("kernel.hostname", "x");
    assert_eq!(error, "node odd: sysctl kernel.hostname is not a setting of a network namespace");
    assert_eq!(hint, "only net.* can be set per node, with dots between the words");
}

fn congestion() {
    let (error, hint) = refusal("net.ipv4.tcp_congestion_control", "nonesuch");
    assert!(error.contains("this kernel does not have the algorithm"), "{error}");
    assert!(hint.contains("available: ") && hint.contains("reno"), "{hint}");
}

fn long_name() {
    let Err(error) = World::try_new(star(&["fine", &"x".repeat(65)])) else { panic!("taken") };
    assert!(error.to_string().contains("cannot set the host name"), "{error}");
}

fn folder() {
    let plan = star(&["a"]);
    let namespaces = windtunnel_node::enter().unwrap();
    let routes = windtunnel_routing::Routes::compute(&plan);
    let options = windtunnel_node::NodeSetOptions::new("/proc/no/such".into());
    let created = windtunnel_node::create(&plan, &routes, &namespaces, &options, |_, _| ());
    assert!(matches!(created, Err(CreateError::File { .. })));
}

fn doctor() {
    let checks = diagnose();
    assert!(checks.len() >= 10, "{checks:#?}");
    let bad: Vec<_> = checks.iter().filter(|check| !check.ok).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    assert_eq!(children, "");
}
