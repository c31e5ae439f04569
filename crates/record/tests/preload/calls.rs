//! Each call, by a script of Python that makes it.

use windtunnel_model::record::flag;
use windtunnel_model::record::kind::{Call, CallBlindSpot};

use crate::{is_transfer, same};

/// A script of Python; `ours` and `theirs` are the ends of a connection there.
fn python(body: &str) -> String {
    let begin = "import array, ctypes, errno, os, signal, socket, struct, sys, threading, time
listener = socket.create_server(('127.0.0.1', 4000))
ours = socket.create_connection(('127.0.0.1', 4000))
theirs, _ = listener.accept()
libc = ctypes.CDLL(None, use_errno=True)
";
    format!("cat >script.py <<'END'\n{begin}{body}\nEND\n/usr/bin/python3 script.py")
}

#[test]
fn every_call_of_a_stream_has_a_record_with_its_bytes() {
    let Some(run) = same(&python(
        "
a, b = ours, theirs
a.send(b'x' * 1000); assert len(b.recv(4096)) == 1000
os.write(a.fileno(), b'x' * 100); assert len(os.read(b.fileno(), 4096)) == 100
os.writev(a.fileno(), [b'x' * 10, b'y' * 20]); buffer = bytearray(64)
assert os.readv(b.fileno(), [buffer]) == 30
a.sendmsg([b'x' * 5, b'y']); assert len(b.recvmsg(100)[0]) == 6
a.sendto(b'seven77', ('127.0.0.1', 4000)); assert len(b.recvfrom(100)[0]) == 7
open('file', 'wb').write(b'z' * 5000); file = os.open('file', os.O_RDONLY)
assert os.sendfile(a.fileno(), file, 0, 5000) == 5000
left = 5000
while left: left -= len(b.recv(left))
read, write = os.pipe(); os.write(write, b'p' * 40)
assert os.splice(read, a.fileno(), 40) == 40 and os.splice(b.fileno(), write, 40) == 40
a.shutdown(socket.SHUT_WR); assert b.recv(10) == b''
a.close(); b.close(); listener.close(); print('done')",
    )) else {
        return;
    };
    let flows = run.flows();
    let (ours, _) = flows.iter().find(|(_, flow)| flow.to.1 == 4000).unwrap();
    let (theirs, _) = flows.iter().find(|(_, flow)| flow.from.1 == 4000 && flow.to.1 != 0).unwrap();
    assert_eq!(flows[ours].from, flows[theirs].to);
    assert_eq!(flows[theirs].from, flows[ours].to);
    assert_eq!(&flows[ours].to.0[10..], [255, 255, 127, 0, 0, 1]);
    assert!(flows[ours].cookie != 0 && flows[ours].cookie != flows[theirs].cookie);
    let sent = ["send", "write", "writev", "sendmsg", "sendto", "sendfile", "splice_to"];
    assert_eq!(run.names(*ours), [&["connect"][..], &sent, &["shutdown", "close"]].concat());
    let bytes = 1000 + 100 + 30 + 6 + 7 + 5000 + 40;
    assert_eq!(run.moved()[&(*ours, false)], bytes);
    assert_eq!(run.moved()[&(*theirs, true)], bytes);
    let received = run.names(*theirs);
    assert_eq!(received[..6], ["accept", "recv", "read", "readv", "recvmsg", "recvfrom"]);
    assert_eq!(received[received.len() - 3..], ["splice_from", "recv", "close"]);
    let asked: Vec<u32> = run
        .calls()
        .filter(|call| call.flow == *ours && is_transfer(call))
        .map(|call| call.args[1])
        .collect();
    assert_eq!(asked, [1000, 100, 30, 6, 7, 5000, 40]);
    assert_eq!(run.entries_left, 0, "all sockets were closed");
}

#[test]
fn a_call_that_fails_has_its_errno_and_the_program_sees_it() {
    let Some(run) = same(&python(
        "
theirs.setblocking(False)
for attempt in range(2):
    try: theirs.recv(10)
    except BlockingIOError as error: print(error.errno)
other = socket.socket()
try: other.connect(('127.0.0.1', 4999))
except ConnectionRefusedError as error: print(error.errno)
# A pointer that cannot be read: EFAULT, and no fault.
print(libc.sendmsg(ours.fileno(), ctypes.c_void_p(8), 0), ctypes.get_errno())
print(libc.writev(ours.fileno(), ctypes.c_void_p(8), 3), ctypes.get_errno())
print(libc.connect(ours.fileno(), ctypes.c_void_p(8), 16), ctypes.get_errno())
ctypes.set_errno(77)
theirs.setblocking(True); ours.send(b'abc')
assert libc.recv(theirs.fileno(), ctypes.create_string_buffer(10), 10, 0) == 3
print('errno stays', ctypes.get_errno())",
    )) else {
        return;
    };
    let results = |call: Call| -> Vec<i32> {
        let of = run.calls().filter(|record| record.extra == call as u16);
        of.map(|record| record.args[2].cast_signed()).collect()
    };
    assert_eq!(results(Call::Recv), [-11, -11, 3]);
    assert_eq!(results(Call::Connect), [0, -111, -14]);
    assert_eq!((results(Call::Sendmsg), results(Call::Writev)), (vec![-14], vec![-14]));
    let refused = run.calls().find(|call| call.extra == Call::Recv as u16).unwrap();
    assert!(refused.flags & flag::NONBLOCKING != 0);
}

#[test]
fn bytes_that_are_looked_at_only_do_not_advance_the_stream() {
    let Some(run) = same(&python(
        "
ours.sendall(b'0123456789')
assert theirs.recv(4, socket.MSG_PEEK) == b'0123'
assert theirs.recv(4) == b'0123' and theirs.recv(10) == b'456789'
print('done')",
    )) else {
        return;
    };
    let offsets: Vec<_> = run
        .calls()
        .filter(|call| call.extra == Call::Recv as u16)
        .map(|call| (call.args[0], call.args[2], call.flags & flag::PEEK != 0))
        .collect();
    assert_eq!(offsets, [(0, 4, true), (0, 4, false), (4, 6, false)]);
}

#[test]
fn processes_that_share_a_socket_share_its_offsets() {
    let Some(run) = same(&python(
        "
ours.send(b'x' * 100)
for number in range(3):
    child = os.fork()
    if child == 0:
        ours.send(b'y' * 10)
        os._exit(0)
    os.waitpid(child, 0)
ours.send(b'z')
left = 131
while left: left -= len(theirs.recv(left))
print('done')",
    )) else {
        return;
    };
    let sent: Vec<_> = run
        .calls()
        .filter(|call| call.extra == Call::Send as u16)
        .map(|call| (call.args[0], call.args[2], call.flags & flag::SHARED))
        .collect();
    assert_eq!(sent, [(0, 100, 0), (100, 10, 0), (110, 10, 0), (120, 10, 0), (130, 1, 0)]);
    let processes = run.records.iter().filter(|record| record.kind == 8).count();
    assert_eq!(processes, 4, "each process is named");
}

#[test]
fn a_connection_that_a_child_keeps_goes_on_where_its_parent_was() {
    let Some(run) = same(&python(
        "
theirs.send(b'banner')
child = os.fork()
if child == 0:
    listener.close(); ours.close(); time.sleep(0.05)
    assert theirs.recv(100) == b'hello'
    theirs.send(b'answer')
    os._exit(0)
theirs.close()
ours.send(b'hello')
os.waitpid(child, 0)
left = 12
while left: left -= len(ours.recv(left))
print('done')",
    )) else {
        return;
    };
    let sent: Vec<_> = run
        .calls()
        .filter(|call| call.extra == Call::Send as u16 && call.args[2] == 6)
        .map(|call| (call.args[0], call.flags & flag::OFFSET_UNKNOWN))
        .collect();
    assert_eq!(sent, [(0, 0), (6, 0)]);
}

#[test]
fn calls_that_go_on_at_the_same_time_are_marked() {
    let Some(run) = same(&python(
        "
def receive(): theirs.recv(1, socket.MSG_WAITALL)
threads = [threading.Thread(target=receive) for _ in range(2)]
for thread in threads: thread.start()
time.sleep(0.2)
ours.send(b'ab')
for thread in threads: thread.join()
print('done')",
    )) else {
        return;
    };
    let received = run.calls().filter(|call| call.extra == Call::Recv as u16);
    let received: Vec<_> = received.collect();
    assert!(received.iter().all(|call| call.flags & flag::SHARED != 0), "{received:?}");
}

#[test]
fn datagrams_are_counted_for_each_peer() {
    let Some(run) = same(&python(
        "
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(('127.0.0.1', 5000))
clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for client in clients: client.bind(('127.0.0.1', 0))
clients[1].connect(('127.0.0.1', 5000))
for number in range(3):
    clients[0].sendto(b'x' * (10 + number), ('127.0.0.1', 5000))
    data, address = server.recvfrom(100); server.sendto(data, address)
    clients[1].send(b'y' * (20 + number))
    data, _, _, address = server.recvmsg(100); server.sendmsg([data], [], 0, address)
    assert len(clients[0].recvfrom(100)[0]) == 10 + number
    assert len(clients[1].recv(100)) == 20 + number
for socket in [server] + clients: socket.close()
print('done')",
    )) else {
        return;
    };
    let flows = run.flows();
    let udp: Vec<_> = flows.iter().filter(|(_, flow)| flow.protocol == 17).collect();
    let used: Vec<_> = udp.iter().filter(|(_, flow)| flow.to.1 != 0).collect();
    assert_eq!(used.len(), 4, "{udp:?}");
    for (number, _) in used {
        for direction in [0, flag::REVERSE] {
            let offsets: Vec<u32> = run
                .calls()
                .filter(|call| call.flow == **number && is_transfer(call))
                .filter(|call| call.flags & flag::REVERSE == direction)
                .map(|call| call.args[0])
                .collect();
            assert_eq!(offsets, [0, 1, 2]);
        }
    }
    assert_eq!(run.entries_left, 0, "with a socket its peers are gone");
}

#[test]
fn what_cannot_be_seen_is_said() {
    let Some(run) = same(&python(
        "
parameters = ctypes.create_string_buffer(120)
libc.syscall(425, 4, parameters)
stream = os.fdopen(os.dup(ours.fileno()), 'wb')
libc.fdopen.restype = ctypes.c_void_p
file = libc.fdopen(os.dup(ours.fileno()), b'w')
libc.fputs(b'by stdio', ctypes.c_void_p(file)); libc.fclose(ctypes.c_void_p(file))
assert theirs.recv(100) == b'by stdio'
ours.send(b'x')
print('done')",
    )) else {
        return;
    };
    let mut unseen = run.unseen();
    unseen.sort_unstable();
    assert_eq!(unseen, [CallBlindSpot::IoUring as u32, CallBlindSpot::Stdio as u32]);
    let sent = run.calls().find(|call| call.extra == Call::Send as u16).unwrap();
    assert!(sent.flags & flag::OFFSET_UNKNOWN != 0);
}

#[test]
fn times_are_those_of_the_clock_that_programs_read() {
    let script = python(
        "
data = b'x'
for number in range(20000):
    before = time.monotonic_ns(); ours.send(data); after = time.monotonic_ns()
    theirs.recv(1)
    print(before, after)
    if number % 1000 == 0: time.sleep(0.003)",
    );
    let Some(run) = crate::run(crate::Mode::Recording, &script) else { return };
    let text = run.text();
    let spans = text.lines().map(|line| line.split_once(' ').unwrap());
    let sent = run.calls().filter(|call| call.extra == Call::Send as u16);
    let outside: Vec<u64> = sent
        .zip(spans)
        .map(|(call, (before, after))| {
            let (before, after): (u64, u64) = (before.parse().unwrap(), after.parse().unwrap());
            let end = call.time + u64::from(call.args[3]);
            before.saturating_sub(call.time).max(end.saturating_sub(after))
        })
        .collect();
    assert_eq!(outside.len(), 20_000);
    // The counter that the library reads is set by the clock every millisecond.
    let worst = outside.iter().max().unwrap();
    assert!(*worst < 1_000, "{worst} ns outside of the time that the program measured");
    println!("{worst} ns");
}
