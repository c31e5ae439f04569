//! Settings of the network namespace in which all nodes' devices end.

use std::fs;
use std::io;

use windtunnel_sys::limits;

use super::EnterError;

/// Silences the fabric's own IP stack and keeps packets in order.
///
/// Order: a node may send from several processors at once, and each processor hands its packets
/// over in its own time. Steering by flow (receive packet steering,
/// Documentation/networking/scaling.rst) sends all packets of one flow through one processor.
/// Without it, one TCP stream at 15 Gbit/s across no-property links was reordered 150 to 300 times
/// a second; with it, never.
pub(super) fn settle(notes: &mut Vec<String>) -> Result<(), EnterError> {
    for path in IPV6_OFF {
        // A kernel without IPv6 needs no silencing.
        write_if_there(path, "1").map_err(|source| EnterError::Fabric { path, source })?;
    }
    // Since Linux 6.3; before, order at the very highest rates is as good as the kernel's own.
    if let Err(error) = write_if_there(STEERING, &mask(&limits::cpus().unwrap_or_default())) {
        notes.push(format!("packets may be reordered at the highest rates: {STEERING}: {error}"));
    }
    Ok(())
}

fn write_if_there(path: &str, value: &str) -> io::Result<()> {
    match fs::write(path, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}

/// Processors as the kernel reads bitmaps: groups of 32 in hexadecimal, the highest first, with
/// commas.
fn mask(cpus: &[usize]) -> String {
    let groups = cpus.iter().max().map_or(0, |highest| highest / GROUP + 1);
    let group = |index: usize| {
        let own = cpus.iter().filter(|&&cpu| cpu / GROUP == index);
        own.fold(0u32, |bits, cpu| bits | 1 << (cpu % GROUP))
    };
    let words: Vec<String> = (0..groups).rev().map(|index| format!("{:x}", group(index))).collect();
    if words.is_empty() { "0".to_owned() } else { words.join(",") }
}

const GROUP: usize = 32;
const STEERING: &str = "/proc/sys/net/core/rps_default_mask";
const IPV6_OFF: [&str; 2] =
    ["/proc/sys/net/ipv6/conf/all/disable_ipv6", "/proc/sys/net/ipv6/conf/default/disable_ipv6"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_written_as_the_kernel_reads_them() {
        assert_eq!(mask(&[]), "0");
        assert_eq!(mask(&[0, 1]), "3");
        assert_eq!(mask(&[0, 33, 64]), "1,2,1");
    }
}
