//! Output of which much is missing: what the client waits for is always taken.

use windtunnel_failover::ReplicationConfig;

use crate::hand::{Hand, Sent, from_replica};

/// What the client was sent.
fn to_client(sent: Vec<Sent>) -> Vec<u8> {
    let data = sent.into_iter().filter(|(to, _)| to.is_none());
    data.flat_map(|(_, seg)| seg.payload).collect()
}

#[test]
fn what_the_client_waits_for_is_taken_while_a_replica_has_all_the_gaps_that_it_may() {
    let mut hand = Hand::open(ReplicationConfig::default(), 2);
    for replica in 0..2 {
        for gap in 0..2_000 {
            hand.replica(replica, &from_replica(replica, 10 + 2 * gap, 1, b"x"));
        }
    }
    assert_eq!(to_client(hand.replica(0, &from_replica(0, 1, 1, b"first"))), b"");
    assert_eq!(to_client(hand.replica(1, &from_replica(1, 1, 1, b"first"))), b"first");
}

#[test]
fn what_the_client_waits_for_is_taken_while_the_memory_for_output_is_full() {
    let mut config = ReplicationConfig::default();
    config.limits.output_total = 2_000;
    let mut hand = Hand::open(config, 2);
    // The first is ahead until there is no room at all.
    for replica in 0..2 {
        hand.replica(replica, &from_replica(replica, 2, 1, &[7; 999]));
        hand.replica(replica, &from_replica(replica, 1_001 + 500 * replica, 1, &[7; 500]));
    }
    assert_eq!(to_client(hand.replica(0, &from_replica(0, 1, 1, b"7"))), b"");
    assert_eq!(to_client(hand.replica(1, &from_replica(1, 1, 1, b"7"))), b"7");
}
