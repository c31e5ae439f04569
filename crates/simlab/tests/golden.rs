//! A bulk sender's throughput over loss × rate × queue × discipline, as a table that is committed:
//! a change of the engine's behaviour shows here as a changed number.

use std::fmt::Write;

use windtunnel_model::{DropReason, Span};
use windtunnel_simlab::{FrameDelivery, RenoReceiver, RenoSender, World, ms};

const SECONDS: u64 = 10;
const DISCIPLINES: [&str; 7] =
    ["drop-tail", "drop-head", "codel", "red", "pie", "fq-codel", "fair"];

/// One row: a window sender for ten seconds over one bottleneck of 10 ms each way.
fn row(loss: &str, rate: &str, queue: &str, discipline: &str) -> String {
    let text = format!(
        "nodes: {{a: {{}}, b: {{}}}}\nlinks:\n  - between: [a, b]\n    latency: 10ms\n    up: {{loss: {loss}, rate: {rate}, \
         queue: {queue}, discipline: {discipline}}}\n"
    );
    let mut world = World::new(&text);
    world.attach("b", RenoReceiver::default());
    let (a, b) = (world.socket("a"), world.socket("b"));
    world.attach("a", RenoSender::new(a, b, 1472, Span::from_millis(300)));
    world.run_until(ms(SECONDS * 1000));
    world.assert_conservation();
    let counters = world.engine().lane(world.lane("a-b"));
    let goodput = counters.delivered_bytes * 8 / SECONDS / 1000;
    let [lost, full, aqm] = [DropReason::Loss, DropReason::QueueFull, DropReason::Aqm]
        .map(|reason| counters.dropped[reason]);
    let delay = mean_delay_us(&world);
    let most = counters.queue_packets_max;
    format!(
        "{loss:>5} {rate:>7} {queue:>6} {discipline:>9} {goodput:>8} {lost:>6} {full:>6} {aqm:>6} {most:>6} {delay:>8}"
    )
}

/// Mean time from sending to delivery, in µs: the sender writes its time into each packet.
fn mean_delay_us(world: &World) -> u64 {
    let deliveries = world.deliveries("b");
    let delay = |delivery: &FrameDelivery| {
        let stamp = delivery.frame[50..58].try_into().map_or(0, u64::from_be_bytes);
        delivery.at.as_nanos() - stamp
    };
    let count = u64::try_from(deliveries.len()).unwrap_or(u64::MAX);
    deliveries.iter().map(delay).sum::<u64>() / count.max(1) / 1000
}

#[test]
fn a_window_sender_achieves_what_it_achieved_before() {
    let mut table = String::from(
        " loss     rate  queue discipline  kbit/s   lost   full    aqm  queue delay/us\n",
    );
    for loss in ["0%", "0.1%", "2%"] {
        for rate in ["2mbit", "20mbit"] {
            for queue in ["10p", "100p"] {
                for discipline in DISCIPLINES {
                    let _ = writeln!(table, "{}", row(loss, rate, queue, discipline));
                }
            }
        }
    }
    insta::assert_snapshot!(table);
}
