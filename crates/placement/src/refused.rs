//! Why a plan does not fit.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use windtunnel_model::{Bytes, Rate, Resource, Span};

use crate::outcome::NodePlacement;

/// A plan that these machines cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.reasons))]
pub struct PlacementRefusal {
    /// Every reason that was found, at least one.
    pub reasons: Vec<PlacementRefusalReason>,
    /// The best placement found, to show its faults; `None` if the search did not begin.
    pub attempt: Option<NodePlacement>,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlacementRefusalReason {
    /// There is no machine.
    NoHosts,
    /// A pin means none of the machines.
    UnknownPin {
        /// The first node with it.
        node: String,
        /// How many more nodes have it.
        more: usize,
        /// The pin's text.
        pin: String,
        /// The names of the machines.
        known: Vec<String>,
    },
    /// More is asked for than is free.
    TooLittle {
        /// The resource.
        resource: Resource,
        /// The demand.
        asked: u64,
        /// The amount free.
        free: u64,
        /// On which machine; `None`: on all together.
        host: Option<String>,
    },
    /// There are more nodes than there is room for.
    TooMany {
        /// How many nodes are to be there.
        asked: u64,
        /// For how many there is room.
        free: u64,
        /// On which machine; `None`: on all together.
        host: Option<String>,
    },
    /// A path between nodes on different machines is shorter than the one between the machines.
    TooClose {
        /// Names along the path.
        path: Vec<String>,
        /// Its latency, the least that it has in the file.
        latency: Span,
        /// The machine of its start.
        from_host: String,
        /// The machine of its end.
        to_host: String,
        /// Between the machines.
        rtt: Span,
    },
    /// Nodes can send more than the uplink carries.
    Uplink {
        /// The machine.
        host: String,
        /// To other machines, or from them.
        way: UplinkDirection,
        /// The most that can be sent, in bits a second.
        asked: u64,
        /// The uplink's rate.
        uplink: Rate,
        /// The part of it that no other run has reserved.
        free: u64,
    },
}

/// A direction of an uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UplinkDirection {
    /// To other machines.
    Up,
    /// From other machines.
    Down,
}

impl PlacementRefusalReason {
    /// A remedy for the user.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            PlacementRefusalReason::NoHosts => "name at least one machine".to_owned(),
            PlacementRefusalReason::UnknownPin { known, .. } => {
                format!("the machines are {}", known.join(", "))
            }
            PlacementRefusalReason::TooLittle { .. } | PlacementRefusalReason::TooMany { .. } => {
                "add machines, or ask for less (`cpu`, `memory`, `count`)".to_owned()
            }
            PlacementRefusalReason::TooClose { path, from_host, .. } => {
                let ends = [path.first(), path.last()].into_iter().flatten().map(String::as_str);
                let ends = ends.collect::<Vec<_>>().join("` and `");
                format!("`pin: {from_host}` for `{ends}`, or give their links more latency")
            }
            PlacementRefusalReason::Uplink { host, .. } => format!(
                "lower the `rate` of links that lead away from the nodes on {host}, or `pin` those that talk \
                 most to one machine"
            ),
        }
    }
}

impl fmt::Display for PlacementRefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementRefusalReason::NoHosts => f.write_str("there is no machine"),
            PlacementRefusalReason::UnknownPin { node, more, pin, .. } => {
                write!(
                    f,
                    "node {node} is pinned to `{pin}`, which is not a name or label of a machine"
                )?;
                match more {
                    0 => Ok(()),
                    more => write!(f, " (and {})", counted(&more.to_string(), "more node")),
                }
            }
            PlacementRefusalReason::TooMany { asked, free, host } => {
                let nodes = counted(&asked.to_string(), "node");
                let are = if *asked == 1 { "is" } else { "are" };
                match host {
                    Some(host) => {
                        write!(f, "host {host}: {nodes} {are} put there, it has room for {free}")
                    }
                    None => write!(
                        f,
                        "{nodes} {are} asked for, all hosts together have room for {free}"
                    ),
                }
            }
            PlacementRefusalReason::TooLittle { resource, asked, free, host } => {
                let (asked, free) = (amount(*resource, *asked), free_amount(*resource, *free));
                match host {
                    Some(host) => write!(
                        f,
                        "host {host}: the nodes put there need {asked}, it has {free} free"
                    ),
                    None => {
                        write!(f, "the nodes need {asked}, all hosts together have {free} free")
                    }
                }
            }
            PlacementRefusalReason::TooClose { path, latency, from_host, to_host, rtt } => write!(
                f,
                "the path {} takes {latency} one way, its ends are on {from_host} and {to_host}, a round trip \
                 of {rtt} apart",
                path.join(" - ")
            ),
            PlacementRefusalReason::Uplink { host, way, asked, uplink, free } => {
                let can = match way {
                    UplinkDirection::Up => "nodes there can send",
                    UplinkDirection::Down => "nodes there can be sent",
                };
                let (to, asked) = (way.preposition(), bits(*asked));
                write!(
                    f,
                    "host {host}: {can} {asked} {to} other hosts, its uplink has {uplink}, free {}",
                    bits(*free)
                )
            }
        }
    }
}

fn amount(resource: Resource, value: u64) -> String {
    if resource == Resource::Cpu {
        let text = format!("{}.{:03}", value / 1000, value % 1000);
        return counted(text.trim_end_matches('0').trim_end_matches('.'), "processor");
    }
    format!("{} of memory", Bytes(rounded(value)))
}

/// A free amount is rounded down, so that too little never looks like enough.
fn free_amount(resource: Resource, value: u64) -> String {
    let is_memory = resource == Resource::Memory;
    amount(resource, if is_memory { value / 1_000_000 * 1_000_000 } else { value })
}

impl UplinkDirection {
    const fn preposition(self) -> &'static str {
        match self {
            UplinkDirection::Up => "to",
            UplinkDirection::Down => "from",
        }
    }
}

fn counted(number: &str, noun: &str) -> String {
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn lines(reasons: &[PlacementRefusalReason]) -> String {
    reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Bits a second with at most four digits that matter.
fn bits(value: u64) -> String {
    Rate::from_bits_per_second(rounded(value))
        .map_or_else(|| "0bit".to_owned(), |rate| rate.to_string())
}

/// To four digits, upwards, so that too large a demand never looks like it fits.
fn rounded(value: u64) -> u64 {
    let digits = value.checked_ilog10().unwrap_or(0);
    let step = 10u64.pow(digits.saturating_sub(3));
    value.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_resource_is_printed_in_the_singular() {
        let too_many = |asked, free, host: Option<&str>| {
            let host = host.map(str::to_owned);
            PlacementRefusalReason::TooMany { asked, free, host }.to_string()
        };
        assert_eq!(too_many(1, 0, Some("a")), "host a: 1 node is put there, it has room for 0");
        assert_eq!(
            too_many(2, 1, None),
            "2 nodes are asked for, all hosts together have room for 1"
        );
        let too_little = PlacementRefusalReason::TooLittle {
            resource: Resource::Cpu,
            asked: 1500,
            free: 1000,
            host: Some("a".to_owned()),
        };
        assert_eq!(
            too_little.to_string(),
            "host a: the nodes put there need 1.5 processors, it has 1 processor free"
        );
        let pin = |more| PlacementRefusalReason::UnknownPin {
            node: "n".to_owned(),
            more,
            pin: "z".to_owned(),
            known: Vec::new(),
        };
        assert!(pin(1).to_string().ends_with("(and 1 more node)"));
        assert!(pin(2).to_string().ends_with("(and 2 more nodes)"));
    }
}
