//! Signals as something to read. Each test sends to its own thread, so they can run side by side.

use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::signal::{self, Reader};

fn raise(signal: Signal) {
    // SAFETY: raise(3) takes no pointers.
    assert_eq!(unsafe { libc::raise(signal.as_raw()) }, 0);
}

#[test]
fn a_blocked_signal_is_read_with_its_sender() {
    let reader = Reader::open(&[Signal::USR1, Signal::USR2]).unwrap();
    assert_eq!(reader.read().unwrap(), None);
    raise(Signal::USR2);
    let received = reader.read().unwrap().unwrap();
    assert_eq!(received.signal, Signal::USR2.as_raw());
    assert_eq!(received.sender, Some(process::current()));
    assert_eq!(reader.read().unwrap(), None);
}

#[test]
fn an_ignored_signal_does_nothing_once_unblocked() {
    signal::ignore(Signal::WINCH).unwrap();
    signal::block(&[Signal::WINCH]).unwrap();
    raise(Signal::WINCH);
    signal::unblock(&[Signal::WINCH]).unwrap();
    signal::reset(Signal::WINCH).unwrap();
    signal::unblock_all().unwrap();
}

#[test]
fn the_disposition_of_kill_cannot_be_changed() {
    let error = signal::ignore(Signal::KILL).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}
