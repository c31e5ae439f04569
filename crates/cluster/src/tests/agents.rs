//! Agents that find and lose each other over loopback, and strangers that try to join.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use super::{Live, key};
use crate::protocol::{AgentDescription, ClusterHosts};
use crate::{AgentClient, AgentClientError, AgentNotice};

/// Asks until all clocks are known.
fn complete(client: &AgentClient, count: usize) -> ClusterHosts {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let hosts = client.hosts(false).expect("the agent answers");
        let known = |host: &AgentDescription| {
            host.peers.len() == count - 1 && host.peers.iter().all(|peer| peer.clock.is_some())
        };
        if hosts.hosts.len() == count && hosts.hosts.iter().all(known) {
            return hosts;
        }
        assert!(Instant::now() < patience, "{hosts:?}");
        std::thread::yield_now();
    }
}

#[test]
fn three_agents_of_which_two_know_one_all_know_each_other() {
    let key = key();
    let a = Live::start("a", &key, &[]);
    let b = Live::start("b", &key, &[a.address]);
    let c = Live::start("c", &key, &[a.address]);
    b.until(|notice| *notice == AgentNotice::Joined(c.address));
    let hosts = complete(&b.client(&key).unwrap(), 3);
    let names: Vec<&str> = hosts.hosts.iter().map(|host| host.host.as_str()).collect();
    assert_eq!((names, hosts.asked), (vec!["a", "b", "c"], 1));
    assert!(hosts.silent.is_empty() && hosts.throughput.is_empty());
    for host in &hosts.hosts {
        assert_eq!((host.cpus, host.uplink), (3, Some("10gbit".parse().unwrap())));
        assert!(host.labels.contains("rack=7") && host.memory_free < host.memory);
        for other in hosts.hosts.iter().filter(|other| other.agent != host.agent) {
            // One machine has one clock; what an exchange says of it is within its own bound.
            let peer = host.peers.iter().find(|peer| peer.agent == other.agent).unwrap();
            let clock = peer.clock.unwrap();
            assert!(clock.offset_ns.unsigned_abs() <= clock.error_ns, "{clock:?}");
            assert!(hosts.rtt_ns(host, other).is_some_and(|rtt| rtt > 0));
        }
    }
}

#[test]
fn throughput_is_measured_between_each_two_in_both_directions() {
    let key = key();
    let a = Live::start("a", &key, &[]);
    let b = Live::start("b", &key, &[a.address]);
    let client = b.client(&key).unwrap();
    complete(&client, 2);
    let hosts = client.hosts(true).unwrap();
    let mut ends: Vec<_> = hosts.throughput.iter().map(|t| (t.from, t.to)).collect();
    ends.sort();
    let mut both = vec![(a.address, b.address), (b.address, a.address)];
    both.sort();
    assert_eq!(ends, both);
    for measured in &hosts.throughput {
        // Loopback carries more than a megabit, whatever else the machine does.
        assert!(measured.bit_per_s.is_some_and(|rate| rate > 1_000_000), "{measured:?}");
    }
}

#[test]
fn an_agent_that_ends_announces_it_and_comes_back_as_another() {
    let key = key();
    let a = Live::start("a", &key, &[]);
    let b = Live::start("b", &key, &[a.address]);
    let gone = b.address;
    a.until(|notice| *notice == AgentNotice::Joined(gone));
    b.until(|notice| *notice == AgentNotice::Joined(a.address));
    drop(b);
    a.until(|notice| *notice == AgentNotice::Left(gone));
    let again = Live::start("b", &key, &[a.address]);
    a.until(|notice| *notice == AgentNotice::Joined(again.address));
    complete(&a.client(&key).unwrap(), 2);
}

#[test]
fn a_client_or_agent_with_another_key_is_refused_and_learns_why() {
    let (ours, other) = (key(), key());
    let a = Live::start("a", &ours, &[]);
    let error = a.client(&other).unwrap_err();
    assert!(matches!(error, AgentClientError::OtherKey { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("key file"));
    // An agent with another key does not come in either.
    let stranger = Live::start("stranger", &other, &[a.address]);
    let from_stranger = |notice: &AgentNotice| matches!(notice, AgentNotice::Refused { .. });
    a.until(from_stranger);
    assert_eq!(a.client(&ours).unwrap().hosts(false).unwrap().hosts.len(), 1);
    assert_eq!(stranger.client(&other).unwrap().hosts(false).unwrap().hosts.len(), 1);
}

#[test]
fn nonsense_on_the_port_does_no_harm() {
    let key = key();
    let a = Live::start("a", &key, &[]);
    let hostile = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut noise: u64 = 1;
    for length in 0..2000 {
        let bytes: Vec<u8> = (0..length % 1300)
            .map(|_| {
                noise = noise
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                noise.to_be_bytes()[0]
            })
            .collect();
        hostile.send_to(&bytes, a.address).unwrap();
    }
    assert_eq!(a.client(&key).unwrap().hosts(false).unwrap().hosts.len(), 1);
}

#[test]
fn a_missing_agent_is_reported_with_the_port_to_check() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = AgentClient::connect(&free.local_addr().unwrap().to_string(), &key()).unwrap_err();
    assert!(matches!(error, AgentClientError::NoAgent { .. }), "{error:?}");
    let port = free.local_addr().unwrap().port().to_string();
    assert!(error.hint().unwrap().contains(&port));
}
