//! Signals as something to read. Each test sends to its own thread, so they can run side by side.

use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::signal::{self, SignalReader};

fn raise(signal: Signal) {
    // SAFETY: raise(3) takes no pointers.
    assert_eq!(unsafe { libc::raise(signal.as_raw()) }, 0);
}

#[test]
fn a_blocked_signal_is_read_with_its_sender() {
    let reader = SignalReader::open(&[Signal::USR1, Signal::USR2]).unwrap();
    assert_eq!(reader.read().unwrap(), None);
    raise(Signal::USR2);
    let received = reader.read().unwrap().unwrap();
    assert_eq!(received.signal, Signal::USR2.as_raw());
    assert_eq!(received.sender, Some(process::current()));
    assert_eq!(reader.read().unwrap(), None);
}

#[test]
fn signals_have_their_effects_again_after_their_reader_and_what_was_not_read_is_forgotten() {
    let reader = SignalReader::open(&[Signal::USR1]).unwrap();
    let inner = SignalReader::open(&[Signal::USR1, Signal::USR2]).unwrap();
    raise(Signal::USR1);
    raise(Signal::USR2);
    // Neither ends the test: they were pending, and are forgotten.
    drop(inner);
    assert_eq!(blocked(), [Signal::USR1.as_raw()], "the outer reader's stay blocked");
    drop(reader);
    assert_eq!(blocked(), []);
}

/// Which of the two user-defined signals this thread blocks.
fn blocked() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux has /proc");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).expect("a mask");
    let numbers = [Signal::USR1.as_raw(), Signal::USR2.as_raw()];
    numbers.into_iter().filter(|number| mask >> (number - 1) & 1 == 1).collect()
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
