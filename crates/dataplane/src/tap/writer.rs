//! The thread that writes a capture.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use windtunnel_evidence::export::pcapng;

use super::CaptureBlockBuffer;
use super::counts::{CaptureCounters, CaptureStopReason};

/// Writes blocks until there are no more; then what was left, and the counters.
pub(super) fn run(
    blocks: Receiver<CaptureBlockBuffer>,
    counts: &CaptureCounters,
    mut out: impl Write,
) -> Result<(), CaptureStopReason> {
    let written = blocks.iter().try_for_each(|some| {
        write(&some, counts, &mut out)?;
        counts.queued_bytes.fetch_sub(some.bytes.len(), Ordering::Relaxed);
        Ok(())
    });
    drop(blocks);
    if written.is_err() {
        // The packet loop finds out at once, when it next has something to hand on.
        counts.queued_bytes.store(0, Ordering::Relaxed);
        return written;
    }
    if let Some(rest) = counts.take_rest() {
        write(&rest, counts, &mut out)?;
    }
    let mut last = Vec::new();
    for (interface, count) in (0..).zip(&counts.interfaces) {
        let [until, seen, lost] = [&count.until_ns, &count.seen, &count.lost]
            .map(|number| number.load(Ordering::Relaxed));
        pcapng::statistics(&mut last, interface, until, seen, lost);
    }
    out.write_all(&last)?;
    Ok(out.flush()?)
}

fn write(
    blocks: &CaptureBlockBuffer,
    counts: &CaptureCounters,
    out: &mut impl Write,
) -> Result<(), CaptureStopReason> {
    out.write_all(&blocks.bytes)?;
    out.flush()?;
    counts.written.fetch_add(blocks.packets, Ordering::Release);
    Ok(())
}
