//! What the costs of single packets are measured by: a processor's time, and an engine that is handed one packet.

use std::hint::black_box;

use windtunnel_engine::Engine;
use windtunnel_model::{PortId, Time};
use windtunnel_wire::vnet;

/// Median, least and greatest of a column.
pub(crate) fn spread(costs: &mut [[f64; 3]], at: usize) -> String {
    costs.sort_by(|a, b| a[at].total_cmp(&b[at]));
    let [least, median, most] = [0, costs.len() / 2, costs.len() - 1].map(|row| costs[row][at]);
    format!("{median:.1} ({least:.1} to {most:.1})")
}

/// Time that this thread has had a processor (`/proc/[pid]/schedstat`), so that other programs beside
/// it do not count.
pub(crate) fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|ns| ns.parse().ok());
    first.expect("the kernel has CONFIG_SCHED_INFO")
}

/// Hands a packet of the first node to an engine, and takes out all that is due; how much came out.
#[inline]
pub(crate) fn pass(engine: &mut Engine, at_ns: u64, frame: &mut [u8]) -> usize {
    let (now, header) = (Time::from_nanos(at_ns), vnet::VirtioNetHeader::default());
    let mut bytes = usize::from(engine.handle_packet(now, PortId(0), header, frame).is_some());
    while let Some(departure) = engine.poll_output() {
        bytes += departure.frame.len();
        engine.recycle(departure.frame);
    }
    while engine.poll_handoff().is_some() {}
    black_box(engine.poll_timeout());
    bytes
}
