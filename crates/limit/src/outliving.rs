//! What a small process does first that has to outlive the one that forked it.

use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::signal;

/// The calling process gets a name and a session of its own, and none of the signals that a user sends
/// to all processes of this program ends it. It works without any of these.
pub(crate) fn begin(name: &str) {
    let _ = process::begin_session();
    let _ = process::set_name(name);
    let _ = signal::block(&ENDING);
}

const ENDING: [Signal; 7] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
];
