//! What can be drawn.

use std::str::FromStr;

use windtunnel_plot::{Axis, AxisQuantity};

use super::document::PlotLinkSeries;

/// A panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlotPanelKind {
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
pub(super) enum BinAggregation {
    /// Their sum over their time, times this.
    Rate(f64),
    Largest,
}

/// What is drawn of a link direction.
#[derive(Clone, Copy)]
pub(super) struct PlotColumn {
    /// Its values, by bin.
    pub(super) values: fn(&PlotLinkSeries) -> Vec<f64>,
    pub(super) aggregation: BinAggregation,
}

impl PlotPanelKind {
    const ALL: [(&'static str, PlotPanelKind); 10] = [
        ("throughput", PlotPanelKind::Throughput),
        ("offered", PlotPanelKind::Offered),
        ("queue", PlotPanelKind::Queue),
        ("queue-bytes", PlotPanelKind::QueueBytes),
        ("drops", PlotPanelKind::Drops),
        ("marked", PlotPanelKind::Marked),
        ("lateness", PlotPanelKind::Lateness),
        ("cpu", PlotPanelKind::Cpu),
        ("rtt-cdf", PlotPanelKind::RttCdf),
        ("lateness-cdf", PlotPanelKind::LatenessCdf),
    ];

    pub(super) fn axis(self) -> Axis {
        match self {
            PlotPanelKind::Throughput => Axis::new("throughput", AxisQuantity::BitRate),
            PlotPanelKind::Offered => Axis::new("offered", AxisQuantity::BitRate),
            PlotPanelKind::Queue => Axis::new("queue", AxisQuantity::Packets),
            PlotPanelKind::QueueBytes => Axis::new("queue", AxisQuantity::Bytes),
            PlotPanelKind::Drops => Axis::new("drops", AxisQuantity::PacketRate),
            PlotPanelKind::Marked => Axis::new("ECN marks", AxisQuantity::PacketRate),
            PlotPanelKind::Lateness => Axis::new("lateness", AxisQuantity::Nanoseconds),
            PlotPanelKind::Cpu => Axis::new("processors", AxisQuantity::Cpus),
            PlotPanelKind::RttCdf => cdf("share of samples"),
            PlotPanelKind::LatenessCdf => cdf("share of packets"),
        }
    }

    /// The column of a link direction, of panels that draw one.
    pub(super) fn column(self) -> Option<PlotColumn> {
        const BITS: f64 = 8.0;
        let of = |values: fn(&PlotLinkSeries) -> Vec<f64>, aggregation| {
            Some(PlotColumn { values, aggregation })
        };
        match self {
            PlotPanelKind::Throughput => {
                of(|lane| lane.delivered_bytes.clone(), BinAggregation::Rate(BITS))
            }
            PlotPanelKind::Offered => {
                of(|lane| lane.offered_bytes.clone(), BinAggregation::Rate(BITS))
            }
            PlotPanelKind::Queue => {
                of(|lane| lane.queue_max_packets.clone(), BinAggregation::Largest)
            }
            PlotPanelKind::QueueBytes => {
                of(|lane| lane.queue_max_bytes.clone(), BinAggregation::Largest)
            }
            PlotPanelKind::Drops => of(PlotLinkSeries::dropped, BinAggregation::Rate(1.0)),
            PlotPanelKind::Marked => {
                of(|lane| lane.marked_packets.clone(), BinAggregation::Rate(1.0))
            }
            PlotPanelKind::Lateness => {
                of(|lane| lane.lateness_max_ns.clone(), BinAggregation::Largest)
            }
            PlotPanelKind::Cpu | PlotPanelKind::RttCdf | PlotPanelKind::LatenessCdf => None,
        }
    }
}

impl FromStr for PlotPanelKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = PlotPanelKind::ALL.iter().find(|(name, _)| *name == text);
        let names = || PlotPanelKind::ALL.map(|(name, _)| name);
        found.map(|(_, what)| *what).ok_or_else(|| {
            let near = windtunnel_scenario::nearest(text, names());
            let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            format!("{near}there are {}", names().join(", "))
        })
    }
}

fn cdf(label: &str) -> Axis {
    Axis { range: Some((0.0, 1.0)), ..Axis::new(label, AxisQuantity::Share) }
}
