//! What can be drawn.

use std::str::FromStr;

use windtunnel_plot::{Axis, Quantity};

use super::document::LaneSeries;

/// A panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Throughput,
    Offered,
    Queue,
    QueueBytes,
    Drops,
    Marked,
    Lateness,
    Cpu,
    RttCdf,
    LatenessCdf,
}

/// How the bins of a step become one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Merge {
    /// Their sum over their time, times this.
    Rate(f64),
    Largest,
}

/// The values of a link direction, by bin.
pub(super) type Column = fn(&LaneSeries) -> Vec<f64>;

impl What {
    const ALL: [(&'static str, What); 10] = [
        ("throughput", What::Throughput),
        ("offered", What::Offered),
        ("queue", What::Queue),
        ("queue-bytes", What::QueueBytes),
        ("drops", What::Drops),
        ("marked", What::Marked),
        ("lateness", What::Lateness),
        ("cpu", What::Cpu),
        ("rtt-cdf", What::RttCdf),
        ("lateness-cdf", What::LatenessCdf),
    ];

    pub(super) fn axis(self) -> Axis {
        match self {
            What::Throughput => Axis::new("throughput", Quantity::BitRate),
            What::Offered => Axis::new("offered", Quantity::BitRate),
            What::Queue => Axis::new("queue", Quantity::Packets),
            What::QueueBytes => Axis::new("queue", Quantity::Bytes),
            What::Drops => Axis::new("drops", Quantity::PacketRate),
            What::Marked => Axis::new("ECN marks", Quantity::PacketRate),
            What::Lateness => Axis::new("lateness", Quantity::Nanoseconds),
            What::Cpu => Axis::new("processors", Quantity::Cpus),
            What::RttCdf => cdf("share of samples"),
            What::LatenessCdf => cdf("share of packets"),
        }
    }

    /// The column of a link direction, of panels that draw one.
    pub(super) fn column(self) -> Option<(Column, Merge)> {
        const BITS: f64 = 8.0;
        let column: (Column, Merge) = match self {
            What::Throughput => (|lane| lane.delivered_bytes.clone(), Merge::Rate(BITS)),
            What::Offered => (|lane| lane.offered_bytes.clone(), Merge::Rate(BITS)),
            What::Queue => (|lane| lane.queue_max_packets.clone(), Merge::Largest),
            What::QueueBytes => (|lane| lane.queue_max_bytes.clone(), Merge::Largest),
            What::Drops => (LaneSeries::dropped, Merge::Rate(1.0)),
            What::Marked => (|lane| lane.marked_packets.clone(), Merge::Rate(1.0)),
            What::Lateness => (|lane| lane.lateness_max_ns.clone(), Merge::Largest),
            What::Cpu | What::RttCdf | What::LatenessCdf => return None,
        };
        Some(column)
    }
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = What::ALL.iter().find(|(name, _)| *name == text);
        let names = || What::ALL.map(|(name, _)| name);
        found.map(|(_, what)| *what).ok_or_else(|| {
            let near = windtunnel_scenario::nearest(text, names());
            let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            format!("{near}there are {}", names().join(", "))
        })
    }
}

fn cdf(label: &str) -> Axis {
    Axis { range: Some((0.0, 1.0)), ..Axis::new(label, Quantity::Share) }
}
