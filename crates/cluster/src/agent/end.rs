//! What ends an agent.

use std::io::{self, Read};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

use crate::carrier::CarrierEvent;

/// Waits for a signal that ends an agent.
pub(super) async fn signalled() -> io::Result<()> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [interrupt, terminate, hangup] = kinds.map(signal);
    let (mut interrupt, mut terminate, mut hangup) = (interrupt?, terminate?, hangup?);
    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {}, _ = hangup.recv() => {} }
    Ok(())
}

/// Sends an event when standard input closes. In a thread, because standard input may be a file,
/// which cannot be polled.
pub(super) fn watch_stdin(events: UnboundedSender<CarrierEvent>) {
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut bytes = [0; 256];
        loop {
            match input.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        // The agent may have ended for another reason.
        let _ = events.send(CarrierEvent::Released);
    });
}
