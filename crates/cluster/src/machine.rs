//! What this machine has, and how busy it is: sysinfo(2), uname(2).

use windtunnel_model::Bytes;
use windtunnel_sys::limits;

/// Name of the machine.
#[must_use]
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The kernel's release.
#[must_use]
pub fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Processors that this process may run on.
#[must_use]
pub fn cpus() -> u32 {
    limits::cpus().map_or(1, |cpus| u32::try_from(cpus.len()).unwrap_or(u32::MAX))
}

/// All memory, and what programs can still have without swapping (proc_meminfo(5), `MemAvailable`).
#[must_use]
pub fn memory() -> (Bytes, Bytes) {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
    };
    let kib = |name| Bytes(field(name).unwrap_or(0).saturating_mul(1024));
    (kib("MemTotal"), kib("MemAvailable"))
}

/// Processes that want a processor, on average over the last minute, times 100 (sysinfo(2)).
#[must_use]
pub fn load_hundredths() -> u64 {
    let load = rustix::system::sysinfo().loads[0];
    u64::try_from(u128::from(load) * 100 / LOAD_ONE).unwrap_or(u64::MAX)
}

/// `1 << SI_LOAD_SHIFT`.
const LOAD_ONE: u128 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_name_a_processor_and_memory_of_which_some_is_free() {
        let (all, free) = memory();
        assert!(!name().is_empty() && cpus() > 0);
        assert!(free.0 > 0 && free.0 < all.0, "{free} of {all}");
    }
}
