//! The runtime of all connections to agents that are made to ask something: on a thread of its own,
//! so that a connection lives on while the thread that made it does something else, such as waiting
//! for another machine.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

use tokio::runtime::{Builder, Handle};
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal;

/// The runtime, which is started when it is first needed and lives as long as the process.
///
/// # Errors
/// If there can be no such thread.
pub(crate) fn runtime() -> io::Result<Handle> {
    static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*known {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new().name("connections".to_owned()).spawn(move || {
        // The thread that leads a run reads the signals that end it: no other may take them.
        let _ = signal::block(&[Signal::INT, Signal::TERM, Signal::HUP]);
        runtime.block_on(std::future::pending::<()>());
    })?;
    *known = Some(handle.clone());
    Ok(handle)
}
