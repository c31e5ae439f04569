//! What is recorded of redirected packets: the flow is the client's, whatever header is in front.

use windtunnel_model::record::{EventRecord, Kind};

use super::*;
use crate::support::MS;

fn of_kind(net: &Net, kind: Kind) -> Vec<EventRecord> {
    net.records.iter().filter(|record| record.kind == kind as u8).copied().collect()
}

#[test]
fn a_redirected_packet_has_one_flow_on_all_lanes_and_its_own_bytes() {
    let mut plan = network();
    plan.services.push(service());
    let mut net = Net::recorded(plan);
    for (replica, port) in net.everything() {
        net.update(0, ServiceUpdate::Registered { replica, port });
    }
    net.call(0, &syn(1));
    net.call(MS, &data(1, &[7; 100]));
    // The answer is of the same flow, in the other direction.
    net.send(20 * MS, NEAR, PLAIN, &build::tcp(www(), client(1), 7, tcp::ACK, &[7; 50]));
    net.finish();
    let delivered = of_kind(&net, Kind::Delivered);
    let flows: std::collections::BTreeSet<u32> = delivered.iter().map(|it| it.flow).collect();
    assert_eq!(flows.len(), 1, "{delivered:?}");
    // Payload bytes of each record: none of the SYN, 100 and 50 of data on each of three lanes.
    let bytes: Vec<u32> = delivered.iter().map(|record| record.args[1]).collect();
    let mut sorted = bytes.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 0, 0, 50, 50, 50, 100, 100, 100]);
}

#[test]
fn a_packet_whose_connection_is_lost_is_recorded_with_its_reason() {
    let mut plan = network();
    plan.services.push(service());
    let mut net = Net::recorded(plan);
    for (replica, port) in net.everything() {
        net.update(0, ServiceUpdate::Registered { replica, port });
    }
    net.ask(&syn(1));
    net.ask(&data(1, b"x"));
    let at = net.now.as_nanos();
    net.lose(at, NEAR);
    net.ask(&data(1, b"y"));
    let dropped = of_kind(&net, Kind::Dropped);
    assert_eq!(dropped.len(), 1);
    let reason = windtunnel_engine::DROP_REASON_NAMES[dropped[0].args[3] as usize];
    assert_eq!(reason, "replica_lost");
}
