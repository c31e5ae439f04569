//! Programs behave as they do without the library.

use crate::same;

#[test]
fn a_program_may_close_all_descriptors_that_it_has() {
    let Some(run) = same(
        "cat >script.py <<'END'
import os, socket, ctypes
os.closerange(3, 1024)
ctypes.CDLL(None).close_range(3, 0xffffffff, 0)
listener = socket.create_server(('127.0.0.1', 4000))
for number in range(100):
    ours = socket.create_connection(('127.0.0.1', 4000)); theirs, _ = listener.accept()
    ours.sendall(b'hello'); assert theirs.recv(100) == b'hello'
    for fd in ours.fileno(), theirs.fileno(): os.close(fd)
    ours.detach(); theirs.detach()
    # The numbers are those of files now, and nothing is recorded of these.
    file = os.open('file', os.O_RDWR | os.O_CREAT); os.write(file, b'x' * 77); os.close(file)
print('done')
END
/usr/bin/python3 script.py",
    ) else {
        return;
    };
    assert!(run.calls().all(|call| call.args[2] != 77));
    assert_eq!(run.moved().len(), 200);
    assert!(run.moved().values().all(|bytes| *bytes == 5));
}

#[test]
fn a_socket_that_takes_the_place_of_a_standard_stream_and_back_is_followed() {
    let Some(run) = same(
        "cat >script.py <<'END'
import os, socket, subprocess
listener = socket.create_server(('127.0.0.1', 4000))
ours = socket.create_connection(('127.0.0.1', 4000)); theirs, _ = listener.accept()
before = os.dup(1)
os.dup2(ours.fileno(), 1); os.write(1, b'to the socket'); os.dup2(before, 1)
os.write(1, b'to the terminal\\n')
assert theirs.recv(100) == b'to the socket'
# A child whose output is the socket (vfork), and one that is a program of its own.
subprocess.run(['/bin/echo', 'by a child'], stdout=ours, close_fds=True)
assert theirs.recv(100) == b'by a child\\n'
os.write(1, b'again to the terminal\\n')
END
/usr/bin/python3 script.py",
    ) else {
        return;
    };
    let sent: u64 = run.moved().iter().filter(|((_, reverse), _)| !reverse).map(|(_, n)| n).sum();
    assert_eq!(sent, 13, "and nothing of the terminal, nor what echo's stdio wrote");
}

#[test]
fn signals_interrupt_calls_as_ever() {
    let Some(run) = same(
        "cat >script.py <<'END'
import ctypes, os, signal, socket
listener = socket.create_server(('127.0.0.1', 4000))
ours = socket.create_connection(('127.0.0.1', 4000)); theirs, _ = listener.accept()
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGALRM, lambda *_: ours.send(b'in a handler'))
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.05)
buffer = ctypes.create_string_buffer(10)
print(libc.recv(theirs.fileno(), buffer, 10, 0), ctypes.get_errno())
assert theirs.recv(100) == b'in a handler'
END
/usr/bin/python3 script.py",
    ) else {
        return;
    };
    assert!(run.calls().any(|call| call.args[2].cast_signed() == -4));
}

#[test]
fn a_program_of_another_architecture_or_none_is_not_recorded_and_runs() {
    let Some(run) = crate::run(crate::Mode::Recording, "unset WINDTUNNEL_RECORD; echo fine") else {
        return;
    };
    assert_eq!(run.text(), "fine\n");
    let script =
        "WINDTUNNEL_RECORD=/nowhere /bin/echo a; WINDTUNNEL_RECORD=/etc/passwd /bin/echo b";
    assert_eq!(crate::run(crate::Mode::Recording, script).unwrap().text(), "a\nb\n");
}
