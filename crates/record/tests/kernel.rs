//! The kernel layer with real programs, in network namespaces made for it. As root of the machine.

#![allow(clippy::unwrap_used, reason = "a test")]

mod kernel {
    pub(crate) mod place;
    pub(crate) mod seen;
}

use kernel::place::{Place, python};
use kernel::seen::union;

use windtunnel_model::record::{Kind, flag};
use windtunnel_record::kernel::KernelTraceScope;

/// The bytes that the client sends, and those that it gets.
const THERE: u32 = 5_000_000;
const BACK: u32 = 300_000;

const SERVER: &str = "
import socket, sys
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], 8000), family=family)
print('ready', flush=True)
connection, _ = listener.accept()
while connection.recv(65536): pass
connection.sendall(bytes(300000))
connection.close()
";
const CLIENT: &str = "
import socket, sys
connection = socket.create_connection((sys.argv[1], 8000))
for _ in range(500): connection.sendall(bytes(10000))
connection.shutdown(socket.SHUT_WR)
while connection.recv(65536): pass
";

fn transfer(place: &Place, address: &str) {
    let server = place.start(1, &python(SERVER, &[address]));
    place.start(0, &python(CLIENT, &[address])).wait();
    server.wait();
}

#[test]
fn calls_and_packets_of_a_transfer_cover_every_byte_of_both_directions() {
    let Some(mut place) = Place::new(KernelTraceScope::Namespaces, None) else { return };
    for address in ["10.9.0.2", "fd09::2"] {
        place.kernel.start().unwrap();
        transfer(&place, address);
        place.kernel.stop().unwrap();
        let [client, server] = place.seen();
        for (seen, sends, receives) in [(&client, THERE, BACK), (&server, BACK, THERE)] {
            let flow = seen.flow_to_port(8000);
            assert_eq!(seen.ends_of_calls(Kind::KernelSend, flow), sends, "{address}");
            assert_eq!(seen.ends_of_calls(Kind::KernelReceive, flow), receives, "{address}");
            assert_eq!(seen.lost, 0);
            assert_eq!(union(&seen.ranges(Kind::DeviceSent, flow)), [(0, sends)], "{address}");
            let received = seen.ranges(Kind::DeviceReceived, flow);
            assert_eq!(union(&received), [(0, receives)], "{address}");
        }
        let queued = client.ranges(Kind::DeviceQueued, client.flow_to_port(8000));
        assert_eq!(union(&queued), [(0, THERE)], "{address}");
        assert_eq!(server.of(Kind::DeviceQueued).count(), 0, "its device has no queue");
        assert!(
            client.of(Kind::KernelProbe).count() > 0 && client.of(Kind::KernelState).count() > 0
        );
    }
}

#[test]
fn datagrams_are_numbered_and_their_payload_is_measured() {
    let Some(mut place) = Place::new(KernelTraceScope::Namespaces, None) else { return };
    place.kernel.start().unwrap();
    let receiver = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('10.9.0.2', 8000))
print('ready', flush=True)
for _ in range(5): s.recv(1000)
";
    let sender = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('10.9.0.2', 8000))
for n in range(5): s.send(bytes(100 + n))
";
    let receiving = place.start(1, &python(receiver, &[]));
    place.start(0, &python(sender, &[])).wait();
    receiving.wait();
    place.kernel.stop().unwrap();
    let [from, to] = place.seen();
    let expected: Vec<_> = (0..5).map(|number| (number, 100 + number)).collect();
    let flow = from.flow_to_port(8000);
    for kind in [Kind::KernelSend, Kind::DeviceQueued, Kind::DeviceSent] {
        assert_eq!(from.numbered(kind, flow), expected, "{kind:?}");
    }
    assert_eq!(to.numbered(Kind::DeviceReceived, to.flow_to_port(8000)), expected);
    let received: Vec<_> = to.of(Kind::KernelReceive).map(|it| (it.args[0], it.args[1])).collect();
    assert_eq!(received, expected);
}

#[test]
fn segments_that_were_lost_are_seen_sent_again() {
    let Some(mut place) = Place::new(KernelTraceScope::Namespaces, None) else { return };
    place.kernel.start().unwrap();
    let server = place.start(1, &python(SERVER, &["10.9.0.2"]));
    // The hardware address of the other end is wrong for a while: what is sent then is lost.
    let client = "
import socket, os, struct
c = socket.create_connection(('10.9.0.2', 8000))
neighbour = os.popen('ip neigh show 10.9.0.2').read().split()[4]
os.system('ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:99 dev near nud permanent')
c.sendall(bytes(5000))
retransmitted = lambda: struct.unpack('I', c.getsockopt(6, 11, 104)[100:104])[0]
while retransmitted() == 0: pass
os.system('ip neigh replace 10.9.0.2 lladdr ' + neighbour + ' dev near nud permanent')
c.shutdown(socket.SHUT_WR)
while c.recv(65536): pass
";
    place.start(0, &python(client, &[])).wait();
    server.wait();
    place.kernel.stop().unwrap();
    let [client, server] = place.seen();
    let flow = client.flow_to_port(8000);
    let again = client.ranges(Kind::KernelRetransmit, flow);
    assert!(!again.is_empty(), "nothing was sent again");
    let sent = client.ranges(Kind::DeviceSent, flow);
    let holds = |it: &&(u32, u32), range: &(u32, u32)| it.0 <= range.0 && range.1 <= it.1;
    let twice = |range| sent.iter().filter(|it| holds(it, range)).count() > 1;
    assert!(again.iter().all(twice), "{again:?} of {sent:?}");
    assert_eq!(union(&sent), [(0, 5000)]);
    let received = server.ranges(Kind::DeviceReceived, server.flow_to_port(8000));
    assert_eq!(union(&received), [(0, 5000)]);
}

#[test]
fn a_ring_that_overflows_loses_events_countably() {
    let Some(mut place) = Place::new(KernelTraceScope::Namespaces, Some(128)) else { return };
    place.kernel.start().unwrap();
    transfer(&place, "10.9.0.2");
    place.kernel.stop().unwrap();
    for (feed, seen) in place.counts().into_iter().zip(place.seen::<2>()) {
        assert!(seen.lost > 1000, "{} lost", seen.lost);
        assert_eq!(feed.lost, seen.lost);
        assert_eq!(feed.events, seen.records.len() as u64 + seen.lost);
        assert!(seen.records_are_of_defined_flows());
    }
}

#[test]
fn a_node_that_is_switched_off_is_not_recorded_and_its_flows_are_defined_later() {
    let Some(mut place) = Place::new(KernelTraceScope::Namespaces, None) else { return };
    place.kernel.set_recording(0, false);
    place.kernel.start().unwrap();
    transfer(&place, "10.9.0.2");
    let [client, server] = place.seen();
    assert_eq!(client.records.len(), 0);
    assert_eq!(server.ends_of_calls(Kind::KernelSend, server.flow_to_port(8000)), BACK);
    place.kernel.set_recording(0, true);
    transfer(&place, "fd09::2");
    place.kernel.stop().unwrap();
    let [client, _] = place.seen();
    assert_eq!(client.ends_of_calls(Kind::KernelSend, client.flow_to_port(8000)), THERE);
    assert!(client.records_are_of_defined_flows());
    assert_eq!(place.counts()[0].lost, 0);
}

#[test]
fn offsets_of_a_connection_that_was_there_before_are_found() {
    let Some(mut place) = Place::new(KernelTraceScope::Namespaces, None) else { return };
    let program = "
import socket, sys
listener = socket.create_server(('127.0.0.1', 8000))
client = socket.create_connection(('127.0.0.1', 8000))
server, _ = listener.accept()
def exchange(length):
    client.sendall(bytes(length)); server.recv(length, socket.MSG_WAITALL)
    server.sendall(bytes(length)); client.recv(length, socket.MSG_WAITALL)
exchange(1000)
print('ready', flush=True)
sys.stdin.readline()
for _ in range(3): exchange(100)
";
    let running = place.start(0, &python(program, &[]));
    place.kernel.start().unwrap();
    running.go_on();
    place.kernel.stop().unwrap();
    let [seen, _] = place.seen();
    for kind in [Kind::KernelSend, Kind::KernelReceive] {
        let known = seen.of(kind).filter(|it| it.flags & flag::OFFSET_UNKNOWN == 0);
        let mut offsets: Vec<_> = known.map(|it| it.args[0]).collect();
        offsets.sort_unstable();
        assert!(offsets.ends_with(&[1200, 1200]), "{kind:?}: {offsets:?}");
        assert!(offsets.iter().all(|offset| [1000, 1100, 1200].contains(offset)), "{offsets:?}");
    }
}

#[test]
fn only_processes_that_were_asked_for_and_their_children_are_recorded() {
    let Some(mut place) = Place::new(KernelTraceScope::Processes, None) else { return };
    place.kernel.start().unwrap();
    let server = place.start(1, &python(SERVER, &["10.9.0.2"]));
    let parent = "
import subprocess, sys
print('ready', flush=True)
sys.stdin.readline()
subprocess.run([sys.executable, '-c', sys.argv[1], '10.9.0.2'])
";
    let parent = place.start(0, &python(parent, &[CLIENT]));
    place.kernel.add_process(parent.id()).unwrap();
    parent.go_on();
    server.wait();
    place.kernel.stop().unwrap();
    let [seen] = place.seen();
    let flow = seen.flow_to_port(8000);
    assert_eq!(seen.ends_of_calls(Kind::KernelSend, flow), THERE);
    assert_eq!(seen.ends_of_calls(Kind::KernelReceive, flow), BACK);
    assert_eq!(union(&seen.ranges(Kind::DeviceSent, flow)), [(0, THERE)]);
    assert_eq!(union(&seen.ranges(Kind::DeviceReceived, flow)), [(0, BACK)]);
    assert!(seen.records.iter().all(|it| it.flow == flow), "the server was not asked for");
    let handshake = seen.of(Kind::DeviceSent).filter(|it| it.flags & flag::SYN != 0);
    assert_eq!(handshake.count(), 1);
}
