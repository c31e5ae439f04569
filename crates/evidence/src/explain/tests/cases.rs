//! One request after the other, each with one reason to be slow.

use windtunnel_model::record::flag;
use windtunnel_model::record::kind::Call;

use super::wire::{LANES, Wire, ack, data};
use crate::explain::part::LatencyComponent;
use crate::explain::{Explanation, LossDetectionMethod, RequestKind, explain};
use crate::history::EndpointRole::{Client, Server};
use crate::history::{FlowSocketType, TcpSample};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// The parts that are not zero, of the only request.
fn parts_of(wire: Wire) -> Vec<(LatencyComponent, u64)> {
    let explained = only(wire);
    let parts: Vec<(LatencyComponent, u64)> = explained.parts().into_iter().collect();
    assert_eq!(parts.iter().map(|(_, ns)| ns).sum::<u64>(), explained.duration_ns());
    parts
}

fn only(wire: Wire) -> Explanation {
    let mut requests = explain(&wire.history(), &LANES).unwrap().requests;
    assert_eq!(requests.len(), 1, "{requests:?}");
    requests.remove(0)
}

/// 1 ns a byte and 1 ms on the first link, 2 ns a byte and 10 ms on the second.
fn quiet() -> Wire {
    Wire::new([(1, MS), (2, 10 * MS), (2, 10 * MS), (1, MS)])
}

#[test]
fn a_request_over_an_idle_network_is_propagation_transmission_and_the_programs() {
    // Written at 0, on the wire 5 µs later; the server reads at once and thinks for 3 ms.
    let mut wire = quiet();
    wire.write(Client, (0, 8 * US), (0, 1000));
    let arrived = wire.send(Client, 5 * US, data(0, 1000)).unwrap();
    assert_eq!(arrived, 11 * MS + 5 * US + 3000);
    wire.read(Server, (0, arrived + 20 * US), (0, 1000));
    let written = arrived + 20 * US + 3 * MS;
    wire.write(Server, (written, written + 9 * US), (0, 500));
    let answered = wire.send(Server, written + 7 * US, data(0, 500)).unwrap();
    wire.read(Client, (8 * US, answered + 30 * US), (0, 500));
    assert_eq!(
        parts_of(wire),
        [
            (LatencyComponent::Thinking(Server), 3 * MS),
            (LatencyComponent::Kernel(Client), 35 * US),
            (LatencyComponent::Kernel(Server), 27 * US),
            (LatencyComponent::Transmission(0), 1000),
            (LatencyComponent::Transmission(1), 2000),
            (LatencyComponent::Transmission(2), 1000),
            (LatencyComponent::Transmission(3), 500),
            (LatencyComponent::Propagation(0), MS),
            (LatencyComponent::Propagation(1), 10 * MS),
            (LatencyComponent::Propagation(2), 10 * MS),
            (LatencyComponent::Propagation(3), MS),
        ]
    );
}

#[test]
fn a_cause_that_seems_later_than_its_effect_by_the_clocks_error_is_still_the_cause() {
    // The server's clock is 100 µs behind: it seems to read before the packet has come.
    let mut wire = quiet();
    wire.history.order_error_ns = 200 * US;
    wire.write(Client, (0, 0), (0, 1000));
    let arrived = wire.send(Client, 0, data(0, 1000)).unwrap();
    let read = arrived - 100 * US;
    wire.read(Server, (0, read), (0, 1000));
    wire.write(Server, (read + 3 * MS, read + 3 * MS), (0, 1));
    let answered = wire.send(Server, read + 3 * MS, data(0, 1)).unwrap();
    wire.read(Client, (0, answered), (0, 1));
    let parts = parts_of(wire);
    // What would be negative is taken from the part before.
    assert!(parts.contains(&(LatencyComponent::Propagation(1), 10 * MS - 100 * US)), "{parts:?}");
    assert!(parts.contains(&(LatencyComponent::Propagation(0), MS)), "{parts:?}");
    assert!(!parts.iter().any(|(part, _)| *part == LatencyComponent::Network), "{parts:?}");
    assert!(parts.contains(&(LatencyComponent::Thinking(Server), 3 * MS)), "{parts:?}");
}

#[test]
fn time_behind_other_packets_is_the_queue_of_that_lane() {
    let mut wire = quiet();
    wire.lane_is_free_at(1, 7 * MS);
    wire.write(Client, (0, 0), (0, 1000));
    let arrived = wire.send(Client, 0, data(0, 1000)).unwrap();
    wire.read(Server, (0, arrived), (0, 1000));
    wire.write(Server, (arrived, arrived), (0, 1));
    let answered = wire.send(Server, arrived, data(0, 1)).unwrap();
    wire.read(Client, (0, answered), (0, 1));
    let parts = parts_of(wire);
    assert!(parts.contains(&(LatencyComponent::Queue(1), 6 * MS - 1000)), "{parts:?}");
}

#[test]
fn bytes_that_wait_behind_a_lost_one_wait_for_its_recovery() {
    // The answer has three packets; the first is dropped, the others come and are acknowledged
    // twice, and 25 ms after it was sent it is sent again.
    let mut wire = quiet();
    wire.write(Client, (0, 0), (0, 1));
    let arrived = wire.send(Client, 0, data(0, 1)).unwrap();
    wire.read(Server, (0, arrived), (0, 1));
    wire.write(Server, (arrived, arrived), (0, 3000));
    assert_eq!(wire.send(Server, arrived, data(0, 1000).dropped_on(2)), None);
    for offset in [1000, 2000] {
        let came = wire.send(Server, arrived, data(offset, 1000)).unwrap();
        wire.send(Client, came, ack(0));
    }
    let again = arrived + 25 * MS;
    let answered = wire.send(Server, again, data(0, 1000)).unwrap();
    wire.read(Client, (0, answered), (0, 3000));
    let explained = only(wire);
    assert_eq!(explained.parts()[&LatencyComponent::Recovery(Some(2))], 25 * MS);
    let loss = explained.losses[0];
    assert_eq!((loss.offset, loss.notice), (0, LossDetectionMethod::FastRetransmit));
    assert_eq!(loss.dropped, Some((2, arrived, 3)));
    assert_eq!(explained.losses.len(), 1);
}

#[test]
fn a_packet_that_is_sent_again_without_acknowledgements_ran_into_the_timeout() {
    let mut wire = quiet();
    wire.write(Client, (0, 0), (0, 1000));
    wire.send(Client, 0, data(0, 1000).dropped_on(1));
    wire.send(Client, 223 * MS, data(0, 1000).dropped_on(1));
    let arrived = wire.send(Client, 669 * MS, data(0, 1000)).unwrap();
    wire.read(Server, (0, arrived), (0, 1000));
    wire.write(Server, (arrived, arrived), (0, 1));
    let answered = wire.send(Server, arrived, data(0, 1)).unwrap();
    wire.read(Client, (0, answered), (0, 1));
    let explained = only(wire);
    assert_eq!(explained.parts()[&LatencyComponent::Recovery(Some(1))], 669 * MS);
    let notices: Vec<LossDetectionMethod> =
        explained.losses.iter().map(|loss| loss.notice).collect();
    assert_eq!(notices, [LossDetectionMethod::Timeout, LossDetectionMethod::Timeout]);
}

#[test]
fn a_server_that_reads_late_leaves_the_bytes_in_its_socket() {
    let mut wire = quiet();
    wire.write(Client, (0, 0), (0, 1000));
    let arrived = wire.send(Client, 0, data(0, 1000)).unwrap();
    let late = arrived + 400 * MS;
    wire.read(Server, (late, late + US), (0, 1000));
    wire.write(Server, (late + US, late + US), (0, 1));
    let answered = wire.send(Server, late + US, data(0, 1)).unwrap();
    wire.read(Client, (0, answered), (0, 1));
    let parts = parts_of(wire);
    assert!(parts.contains(&(LatencyComponent::Unread(Server), 400 * MS)), "{parts:?}");
    assert!(parts.contains(&(LatencyComponent::Kernel(Server), US)), "{parts:?}");
}

#[test]
fn a_stopped_server_in_a_read_has_the_bytes_once_its_stack_acknowledges_them() {
    let mut wire = quiet();
    wire.write(Client, (0, 0), (0, 1000));
    let arrived = wire.send(Client, 0, data(0, 1000)).unwrap();
    wire.send(Server, arrived + 15 * US, ack(1000));
    let resumed = arrived + 2000 * MS;
    wire.read(Server, (0, resumed), (0, 1000));
    wire.write(Server, (resumed, resumed), (0, 1));
    let answered = wire.send(Server, resumed, data(0, 1)).unwrap();
    wire.read(Client, (0, answered), (0, 1));
    let parts = parts_of(wire);
    assert!(parts.contains(&(LatencyComponent::Kernel(Server), 15 * US)), "{parts:?}");
    assert!(parts.contains(&(LatencyComponent::Unread(Server), 2000 * MS - 15 * US)), "{parts:?}");
}

#[test]
fn a_client_that_pauses_between_its_writes_was_thinking() {
    let mut wire = quiet();
    wire.write(Client, (0, 2), (0, 10));
    wire.send(Client, 1, data(0, 10));
    wire.write(Client, (50 * MS, 50 * MS), (10, 20));
    let arrived = wire.send(Client, 50 * MS, data(10, 10)).unwrap();
    wire.read(Server, (0, arrived), (0, 20));
    wire.write(Server, (arrived, arrived), (0, 1));
    let answered = wire.send(Server, arrived, data(0, 1)).unwrap();
    wire.read(Client, (50 * MS, answered), (0, 1));
    let parts = parts_of(wire);
    assert!(parts.contains(&(LatencyComponent::Thinking(Client), 50 * MS - 2)), "{parts:?}");
}

/// A server that writes 20 kB at once and may send 4 kB before each acknowledgement: five rounds.
fn windowed(sample: Option<TcpSample>, byte_ns: u64) -> (Explanation, u64) {
    let mut wire = Wire::new([(1, MS), (1, 9 * MS), (byte_ns, 9 * MS), (1, MS)]);
    wire.write(Client, (0, 0), (0, 1));
    let arrived = wire.send(Client, 0, data(0, 1)).unwrap();
    wire.read(Server, (0, arrived), (0, 1));
    wire.write(Server, (arrived, arrived + US), (0, 20_000));
    let (mut time, mut came) = (arrived, arrived);
    for round in 0..5 {
        for packet in 0..4 {
            let offset = round * 4000 + packet * 1000;
            came = wire.send(Server, time, data(offset, 1000)).unwrap();
        }
        time = wire.send(Client, came, ack(round * 4000 + 4000)).unwrap();
    }
    wire.read(Client, (0, came), (0, 20_000));
    if let Some(sample) = sample {
        wire.history.samples[1] = vec![TcpSample { time: arrived, ..sample }];
    }
    (only(wire), arrived)
}

#[test]
fn rounds_of_a_small_congestion_window_are_held_by_it() {
    let sample = TcpSample { cwnd: 4, segment: 1000, send_window: 65_536, ..TcpSample::default() };
    let (explained, _) = windowed(Some(sample), 1);
    let parts = explained.parts();
    // Each of four rounds is 20 ms of latency, and on the last lane 1 µs of the last packet, of
    // which the line was busy for 4 µs; the answer's own packets take their way once.
    assert_eq!(parts[&LatencyComponent::Congestion(Server)], 4 * (20 * MS + US));
    assert_eq!(parts[&LatencyComponent::Transmission(2)], 4 * 4 * US + US);
    assert!(!parts.contains_key(&LatencyComponent::SendBuffer(Server)));
    assert!(!parts.contains_key(&LatencyComponent::Acknowledgement(Server)));
}

#[test]
fn rounds_of_a_small_receive_window_are_held_by_that() {
    let sample = TcpSample { cwnd: 10, segment: 1000, send_window: 4096, ..TcpSample::default() };
    let (explained, _) = windowed(Some(sample), 1);
    assert_eq!(explained.parts()[&LatencyComponent::Window(Server)], 4 * (20 * MS + US));
}

#[test]
fn without_the_state_of_tcp_the_rounds_wait_for_acknowledgements() {
    let (explained, _) = windowed(None, 1);
    assert_eq!(explained.parts()[&LatencyComponent::Acknowledgement(Server)], 4 * (20 * MS + US));
}

#[test]
fn a_narrow_line_that_is_busy_is_no_fault_of_the_window() {
    // 10 µs a byte: four packets are 40 ms, longer than the way there and back.
    let (explained, _) = windowed(None, 10 * US);
    let parts = explained.parts();
    assert_eq!(parts[&LatencyComponent::Transmission(2)], 4 * 40 * MS + 10 * MS);
    assert_eq!(parts[&LatencyComponent::Acknowledgement(Server)], 4 * (20 * MS + US));
    assert_eq!(parts[&LatencyComponent::Queue(2)], 30 * MS);
}

#[test]
fn a_connection_whose_syn_was_lost_waited_for_the_timeout() {
    let mut wire = quiet();
    wire.history.calls[0].push(crate::history::CallSpan {
        begin: 0,
        end: 1022 * MS + 40 * US,
        call: Call::Connect,
        offset: 0,
        asked: 0,
        result: 0,
    });
    let syn = data(0, 0).with(flag::SYN);
    wire.send(Client, 10 * US, syn.dropped_on(0));
    let arrived = wire.send(Client, 1000 * MS + 10 * US, syn).unwrap();
    assert_eq!(wire.send(Server, arrived + 10 * US, syn), Some(1022 * MS + 20 * US));
    let explained = only(wire);
    assert_eq!((explained.kind, explained.number), (RequestKind::Connect, 0));
    let parts: Vec<(LatencyComponent, u64)> = explained.parts().into_iter().collect();
    assert_eq!(
        parts,
        [
            (LatencyComponent::Kernel(Client), 30 * US),
            (LatencyComponent::Kernel(Server), 10 * US),
            (LatencyComponent::Propagation(0), MS),
            (LatencyComponent::Propagation(1), 10 * MS),
            (LatencyComponent::Propagation(2), 10 * MS),
            (LatencyComponent::Propagation(3), MS),
            (LatencyComponent::Recovery(Some(0)), 1000 * MS),
        ]
    );
    assert_eq!(explained.losses[0].notice, LossDetectionMethod::Timeout);
}

#[test]
fn without_calls_the_packets_show_the_request_and_the_rest_is_named() {
    let mut wire = quiet();
    wire.history.calls_recorded = [false; 2];
    let arrived = wire.send(Client, 5 * US, data(0, 1000)).unwrap();
    let answered = wire.send(Server, arrived + 3 * MS, data(0, 500)).unwrap();
    let explained = only(wire);
    assert_eq!((explained.begin, explained.end), (5 * US, answered));
    assert_eq!(explained.parts()[&LatencyComponent::Unrecorded(Server)], 3 * MS);
    assert_eq!(explained.parts().values().sum::<u64>(), explained.duration_ns());
}

#[test]
fn without_packets_the_time_between_the_programs_is_the_networks() {
    let mut wire = quiet();
    wire.write(Client, (0, US), (0, 1000));
    wire.read(Server, (0, 12 * MS), (0, 1000));
    wire.write(Server, (15 * MS, 16 * MS), (0, 500));
    wire.read(Client, (US, 27 * MS), (0, 500));
    let parts = parts_of(wire);
    assert_eq!(
        parts,
        [(LatencyComponent::Thinking(Server), 3 * MS), (LatencyComponent::Network, 24 * MS)]
    );
}

#[test]
fn what_nothing_answers_is_a_message_that_ends_where_it_has_been_read() {
    let mut wire = quiet();
    for number in 0..3_u64 {
        let (time, from) = (number * 200 * MS, number * 1000);
        wire.write(Client, (time, time + US), (from, from + 1000));
        let arrived = wire.send(Client, time, data(from, 1000)).unwrap();
        wire.read(Server, (time, arrived), (from, from + 1000));
    }
    let requests = explain(&wire.history(), &LANES).unwrap().requests;
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert_eq!(request.kind, RequestKind::Message);
        assert_eq!(request.duration_ns(), 11 * MS + 3 * US);
        assert_eq!(request.asked, 1000);
    }
}

/// Requests of 40 bytes and answers of 100 as datagrams: number, when sent, how long the answer
/// takes; `None`: the request is dropped.
fn datagrams(requests: &[(u64, Option<u64>)]) -> Wire {
    let mut wire = quiet();
    wire.history.transport = FlowSocketType::Datagrams;
    let mut answers = 0;
    for (number, (time, think)) in (0..).zip(requests) {
        wire.write_datagram(Client, (*time, *time), number, 40);
        let packet = data(number, 40);
        let Some(think) = think else {
            wire.send(Client, *time, packet.dropped_on(1));
            continue;
        };
        let arrived = wire.send(Client, *time, packet).unwrap();
        wire.read_datagram(Server, (*time, arrived), answers, 40);
        wire.write_datagram(Server, (arrived + think, arrived + think), answers, 100);
        let came = wire.send(Server, arrived + think, data(answers, 100)).unwrap();
        wire.read_datagram(Client, (*time, came), answers, 100);
        answers += 1;
    }
    wire
}

#[test]
fn datagrams_join_by_their_numbers_and_a_lost_one_is_the_programs_to_repeat() {
    let wire = datagrams(&[(0, Some(MS)), (100 * MS, None), (1100 * MS, Some(2 * MS))]);
    let requests = explain(&wire.history(), &LANES).unwrap().requests;
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].parts()[&LatencyComponent::Thinking(Server)], MS);
    assert_eq!((requests[1].begin, requests[1].asked), (100 * MS, 2));
    let parts = requests[1].parts();
    assert_eq!(parts[&LatencyComponent::Thinking(Server)], 2 * MS);
    assert_eq!(parts[&LatencyComponent::Recovery(Some(1))], 1000 * MS);
    let loss = requests[1].losses[0];
    assert_eq!((loss.offset, loss.notice), (1, LossDetectionMethod::Program));
}

#[test]
fn datagrams_whose_lengths_contradict_are_not_joined() {
    let mut wire = datagrams(&[(0, Some(MS))]);
    wire.history.calls[1][0].result = 39;
    let contradiction = explain(&wire.history(), &LANES).unwrap_err();
    assert_eq!(
        contradiction.to_string(),
        "datagram 0 of the client was read with 39 bytes, but its packet has 40: \
         calls and packets do not join"
    );
}
