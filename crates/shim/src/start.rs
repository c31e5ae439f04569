//! The start of the program: finds what its variables name.

#[cfg(preload)]
use crate::variables::{environ, variable};
#[cfg(preload)]
use crate::{c, clock, region};

/// Called by the loader before the program's own code.
#[cfg(preload)]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[cfg(preload)]
extern "C" fn start() {
    crate::next::find();
    // SAFETY: the C library has set it up; it is first in the order of initialisation.
    let variables = unsafe { environ };
    if variables.is_null() {
        return;
    }
    // SAFETY: the environment is a list of texts that a null ends.
    let record = unsafe { variable(variables, b"WINDTUNNEL_RECORD=") };
    // SAFETY: as above.
    let limit = unsafe { variable(variables, b"WINDTUNNEL_LIMIT=") };
    // SAFETY: as above.
    let sends = unsafe { variable(variables, b"WINDTUNNEL_SENDS=") };
    // Where calls are shown they are recorded, and wait, already.
    if record.is_none() && limit.is_none() && sends.is_none() || c::is_shown() {
        return;
    }
    crate::process::start();
    clock::start();
    // SAFETY: as above.
    let door = unsafe { variable(variables, b"WINDTUNNEL_HANDOVER=") };
    // SAFETY: the value of a variable ends with a zero.
    unsafe { crate::launch::start(door) };
    if let Some(path) = limit {
        // SAFETY: as above.
        unsafe { crate::environment::start(variables) };
        // SAFETY: as above.
        unsafe { crate::limit::open(path) };
        (0..3).for_each(crate::launch::hold_stream);
    }
    if let Some(sends) = sends {
        // SAFETY: as above.
        unsafe { crate::senders::open(sends) };
    }
    if let Some(path) = record {
        // SAFETY: as above.
        unsafe { region::open(path) };
    }
}
