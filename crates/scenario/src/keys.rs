//! The keys of every map in the file: what the decoder reads, the schema offers and hints suggest.

/// Whether a key is for people and other programs: it means nothing here, as in compose files.
pub(crate) fn is_extension(key: &str) -> bool {
    key.starts_with("x-")
}

/// The file itself.
pub(crate) const FILE: &[&str] = &[
    "name",
    "seed",
    "duration",
    "address",
    "ipv4",
    "ipv6",
    "defaults",
    "nodes",
    "routers",
    "lans",
    "links",
    "routing",
    "routes",
    "allow-unreachable",
    "on-overload",
    "model",
    "sharing",
    "placement",
    "on-host-loss",
    "events",
    "expect",
];

/// `defaults`.
pub(crate) const DEFAULTS: &[&str] = &["link", "node"];

/// `defaults.node`: what makes sense for many nodes.
pub(crate) const NODE_DEFAULTS: &[&str] = &[
    "daemon", "start", "cwd", "env", "restart", "forward", "user", "private", "sysctl", "cpu",
    "memory",
];

/// A node.
pub(crate) const NODE: &[&str] = &[
    "run", "daemon", "ready", "after", "start", "cwd", "env", "restart", "count", "forward",
    "user", "private", "sysctl", "address", "pin", "cpu", "memory",
];

/// One program of a node with several.
pub(crate) const PROGRAM: &[&str] =
    &["run", "daemon", "ready", "after", "start", "cwd", "env", "restart"];

/// One direction of a link.
pub(crate) const DIRECTION: &[&str] = &[
    "latency",
    "jitter",
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "rate",
    "overhead",
    "mtu",
    "queue",
    "discipline",
    "trace",
];

/// Both directions: `defaults.link`, `set` of an event.
pub(crate) const BOTH: &[&str] = &[
    "latency",
    "jitter",
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "rate",
    "overhead",
    "mtu",
    "queue",
    "discipline",
    "trace",
    "preset",
    "up",
    "down",
];

/// A LAN.
pub(crate) const LAN: &[&str] = &["address"];

/// A link.
pub(crate) const LINK: &[&str] = &[
    "between",
    "name",
    "latency",
    "jitter",
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "rate",
    "overhead",
    "mtu",
    "queue",
    "discipline",
    "trace",
    "preset",
    "up",
    "down",
];

/// `rate` as a map.
pub(crate) const RATE: &[&str] = &["trace", "repeat", "offset"];

/// `trace` as a map.
pub(crate) const TRACE: &[&str] = &["file", "mode", "repeat", "offset"];

/// `jitter` as a map.
pub(crate) const JITTER: &[&str] = &["spread", "distribution", "table"];

/// `loss` as a map.
pub(crate) const LOSS: &[&str] =
    &["good-to-bad", "bad-to-good", "loss-in-bad", "loss-in-good", "packets"];

/// `reorder` as a map.
pub(crate) const REORDER: &[&str] = &["probability", "extra", "by-jitter"];

/// `ready` as a map.
pub(crate) const READY: &[&str] = &["tcp", "listen", "unix", "log", "exit", "timeout"];

/// `discipline` as a map.
pub(crate) const DISCIPLINE: &[&str] = &["codel", "red", "pie", "fq-codel", "fair"];

/// `discipline: {codel: …}`.
pub(crate) const CODEL: &[&str] = &["target", "interval", "ecn"];

/// `discipline: {red: …}`.
pub(crate) const RED: &[&str] =
    &["min", "max", "probability", "weight", "packet", "gentle", "adaptive", "ecn"];

/// `discipline: {pie: …}`.
pub(crate) const PIE: &[&str] = &["target", "update", "burst", "derandomise", "ecn"];

/// `discipline: {fq-codel: …}`.
pub(crate) const FQ_CODEL: &[&str] = &["flows", "quantum", "target", "interval", "ecn"];

/// `discipline: {fair: …}`.
pub(crate) const FAIR: &[&str] = &["by", "flows", "quantum", "target", "interval", "ecn"];

/// `routing` as a map.
pub(crate) const ROUTING: &[&str] = &["metric", "ecmp", "reroute"];

/// A fixed route.
pub(crate) const ROUTE: &[&str] = &["path", "from", "to", "via", "one-way"];

/// An event: what any of them may have.
pub(crate) const EVENT: &[&str] = &[
    "at",
    "every",
    "times",
    "for",
    "until",
    "link",
    "direction",
    "set",
    "down",
    "up",
    "node",
    "do",
    "some",
    "partition",
    "heal",
    "route",
    "reroute",
    "flap",
    "churn",
];

/// `partition` one way.
pub(crate) const PARTITION: &[&str] = &["from", "to"];

/// `flap`.
pub(crate) const FLAP: &[&str] =
    &["link", "direction", "every", "down", "random", "times", "for", "until"];

/// `churn`.
pub(crate) const CHURN: &[&str] = &[
    "nodes", "rate", "every", "away", "times", "for", "until", "script", "trace", "speed-up",
    "present", "leave",
];

/// `script` and `trace` in a file of their own.
pub(crate) const ELSEWHERE: &[&str] = &["file"];

/// An expectation.
pub(crate) const EXPECT: &[&str] = &[
    "node",
    "exit",
    "exited",
    "ready",
    "runtime",
    "log",
    "of",
    "path",
    "rtt",
    "throughput",
    "every",
    "link",
    "direction",
    "rate",
    "loss",
    "drops",
    "queue",
    "offered",
    "delivered",
    "marked",
    "lateness",
    "between",
];

/// Bounds of one figure.
pub(crate) const BOUNDS: &[&str] = &["min", "max"];

/// `log` of an expectation.
pub(crate) const LOG: &[&str] = &["match", "count", "stream"];

/// `rtt` of an expectation; percentiles besides.
pub(crate) const RTT: &[&str] = &["min", "max", "mean"];

/// `rate` and `throughput` of an expectation.
pub(crate) const RATE_FIGURES: &[&str] = &["min", "max", "mean", "peak", "lowest", "deviation"];

/// `queue` and `lateness` of an expectation; percentiles besides.
pub(crate) const LEVEL_FIGURES: &[&str] = &["min", "max"];

/// `drops` of an expectation.
pub(crate) const DROPS: &[&str] =
    &["min", "max", "share", "down", "partition", "mtu", "loss", "queue-full", "aqm", "memory"];
