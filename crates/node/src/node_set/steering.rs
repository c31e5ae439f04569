//! Which processor takes in the packets of a device.

use std::fs;
use std::io;

use windtunnel_sys::limits;

/// Steers the devices that are made from now on in the fabric, all packets of each to one processor
/// (receive packet steering, Documentation/networking/scaling.rst).
///
/// A program may send from several processors, one after the other, and each hands over its packets in
/// its own time: without steering, one TCP stream at 15 Gbit/s was reordered 150 to 300 times a second.
/// Steering by flow, over all processors, is not enough: the kernel knows the flow of a datagram by its
/// ports, which its fragments do not have.
pub(super) struct ReceivePacketSteering {
    cpus: Vec<usize>,
    /// Why it cannot be done.
    failure: Option<io::Error>,
}

impl ReceivePacketSteering {
    /// Over the processors that this thread may use.
    pub(super) fn new() -> ReceivePacketSteering {
        ReceivePacketSteering { cpus: limits::cpus().unwrap_or_default(), failure: None }
    }

    /// How many processors there are to choose from, 1 at the least.
    pub(super) fn processors(&self) -> usize {
        self.cpus.len().max(1)
    }

    /// Devices that are made from now on belong to the processor of this number, from 0.
    pub(super) fn turn_to(&mut self, number: usize) {
        let Some(&cpu) = self.cpus.get(number) else { return };
        match fs::write(DEFAULT_MASK, mask(cpu)) {
            // Since Linux 6.3; before, order is as good as the kernel's own.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.failure = Some(error),
            Ok(()) => {}
        }
    }

    /// That it could not be done, as a note of the run.
    pub(super) fn note(&self) -> Option<String> {
        let error = self.failure.as_ref()?;
        Some(format!("packets of a node may be reordered: {DEFAULT_MASK}: {error}"))
    }
}

/// A processor as the kernel reads bitmaps: groups of 32 in hexadecimal, the highest first, with commas.
fn mask(cpu: usize) -> String {
    let first = format!("{:x}", 1u32 << (cpu % GROUP));
    first + &",0".repeat(cpu / GROUP)
}

const GROUP: usize = 32;
const DEFAULT_MASK: &str = "/proc/sys/net/core/rps_default_mask";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_written_as_the_kernel_reads_it() {
        assert_eq!(mask(0), "1");
        assert_eq!(mask(5), "20");
        assert_eq!(mask(33), "2,0");
        assert_eq!(mask(64), "1,0,0");
    }
}
