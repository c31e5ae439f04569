//! Datagrams: a server on the wildcard address, as most name servers are.

use super::*;

#[test]
fn a_flow_stays_with_its_replica_and_moves_when_that_is_withdrawn() {
    for lab in labs() {
        let file = file("ports: 53/udp, address: 10.1.0.53", "udp 0.0.0.0 53", "udp www 53");
        let mut live = lab.start(&file);
        wait_for_replicas(&mut live);
        let known = wait_for_line(&live, 0, "new s1");
        // What is nearer now gets new flows; this one stays.
        good(&live.ask_service(&["drain", "www", "s1"]));
        let known = wait_for_line(&live, known + 2, "new s1");
        good(&live.ask_service(&["drain", "www", "s1", "--undo"]));
        happen(&live, "{node: s1, do: stop}");
        live.wait_for(&[("event", "service-withdrawn"), ("replica", "s1")]);
        wait_for_line(&live, known, "new s2");
        let outcome = stop(live);
        let output = outcome.output("c");
        // Replies come from the address that was asked, though the socket is bound to none.
        let answers = output.lines().filter(|line| line.starts_with("new s"));
        for answer in answers {
            assert!(answer.ends_with(" from 10.1.0.53"), "{answer}");
        }
        let www = &outcome.report()["services"][0];
        let flows = |at: usize| www["replicas"][at]["flows"].as_u64().unwrap();
        assert_eq!((flows(0), flows(1), flows(2)), (1, 1, 0), "{www}");
    }
}

#[test]
fn replies_over_ipv6_have_the_services_address_too() {
    for lab in labs() {
        let service = "ports: 53/udp, address: fd00:1::53";
        let file = file(service, "udp :: 53", "udp www 53").replace("ipv6: false", "ipv4: false");
        let mut live = lab.start(&file);
        wait_for_replicas(&mut live);
        wait_for_line(&live, 0, "new s1");
        let outcome = stop(live);
        let output = outcome.output("c");
        let answers: Vec<&str> =
            output.lines().filter(|line| line.starts_with("new s1 sees fd00:")).collect();
        assert!(!answers.is_empty(), "{output}");
        for answer in answers {
            assert!(answer.ends_with(" from fd00:1::53"), "{answer}");
        }
    }
}
