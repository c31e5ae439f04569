//! Expectations and their bounds.

use schemars::JsonSchema;

use super::text::{Occupancy, PlainRate, Probability, SignalOrAny, Time, TimeOrEnd};

/// What must hold at the end: of the programs of a `node`, of the `path` between two nodes, or of
/// one `direction` of a `link`. Everything named must hold; of a group, for each member.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Expect {
    /// The node or group whose programs are meant.
    node: Option<String>,
    /// How its programs exit: a code (128+n also for a signal n), a signal such as `SIGTERM`, or
    /// `any`.
    exit: Option<ExitCode>,
    /// When its programs have exited, after the run began.
    exited: Option<TimeBounds>,
    /// When its programs became ready, after the run began.
    ready: Option<TimeBounds>,
    /// How long the last life of its programs lasted, to the end of the run at the most.
    runtime: Option<TimeBounds>,
    /// What its programs write: a regular expression that a line must match, or more.
    log: Option<Log>,
    /// Of a group: `each` (default) member must do it, or `any` suffices.
    of: Option<Of>,
    /// The two nodes of a path.
    #[schemars(length(equal = 2))]
    path: Option<Vec<String>>,
    /// Bounds of the round-trip time of windtunnel's own echo requests: sent in the window
    /// `between`, or without one 20 before the programs start.
    rtt: Option<RttBounds>,
    /// Bounds of the rate of TCP and UDP payload that the path's first node got delivered to its
    /// second, repetitions included.
    throughput: Option<RateFigures>,
    /// How often echo requests are sent in the window; default 100ms.
    every: Option<Time>,
    /// The link, or a group's links, each.
    link: Option<String>,
    /// Its direction: `up`, `down` or `from-to`.
    direction: Option<String>,
    /// Bounds of the rate that it delivered, with overhead.
    rate: Option<RateFigures>,
    /// Of a link, the share of packets that its loss took; of a path, of echo requests without
    /// reply.
    loss: Option<ShareBounds>,
    /// Bounds of the number of packets dropped, of its share, or by cause; a number alone is
    /// exact.
    drops: Option<Drops>,
    /// Bounds of what waited in its queue, in packets, bytes or time.
    queue: Option<QueueBounds>,
    /// Bounds of the number of packets that came to its start.
    offered: Option<Count>,
    /// Bounds of the number of packets that came out at its end.
    delivered: Option<Count>,
    /// Bounds of the number of packets marked with ECN congestion experienced.
    marked: Option<Count>,
    /// Bounds of how late packets left it.
    lateness: Option<LatenessBounds>,
    /// The part of the run that is meant: two times after the run began, such as `[10s, 20s]`, or
    /// `[10s, end]`; default: all of it.
    #[schemars(length(equal = 2))]
    between: Option<Vec<TimeOrEnd>>,
}

/// What programs write.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Log {
    /// A regular expression that at least one line must match.
    Pattern(String),
    /// All of it.
    Form(LogForm),
}

/// Lines of output, and how many.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct LogForm {
    /// The regular expression that a line must match.
    r#match: String,
    /// How many lines; default `{min: 1}`. 0 for none.
    count: Option<Count>,
    /// Only `stdout` or only `stderr`; default: both.
    stream: Option<StreamName>,
}

/// A stream of a program.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum StreamName {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Who of a group.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Of {
    /// All members.
    Each,
    /// One member at the least.
    Any,
}

/// Bounds of a number, or exactly this number.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Count {
    /// Exactly this.
    Exactly(u64),
    /// Bounds.
    Bounds(CountBounds),
}

/// A struct of a least and a greatest value, one of them at the least, in front of its own keys.
macro_rules! bounds {
    ($(#[$attribute:meta])* struct $name:ident of $value:ty { $($own:tt)* }) => {
        #[derive(JsonSchema)]
        $(#[$attribute])*
        #[schemars(rename_all = "kebab-case", deny_unknown_fields)]
        pub(crate) struct $name {
            /// At least this.
            min: Option<$value>,
            /// At most this.
            max: Option<$value>,
            $($own)*
        }
    };
}

bounds! {
    /// A least and a greatest number, one of them at the least.
    struct CountBounds of u64 {}
}

bounds! {
    /// A least and a greatest time, one of them at the least.
    struct TimeBounds of Time {}
}

bounds! {
    /// A least and a greatest rate, one of them at the least.
    struct RateBounds of PlainRate {}
}

bounds! {
    /// A least and a greatest share, one of them at the least.
    struct ShareBounds of Probability {}
}

bounds! {
    /// Bounds of round-trip times: `min` and `max` bound the median; or bounds of the mean, or of a
    /// percentile by nearest rank such as `p50`, `p99.9` or `p100` (the greatest).
    #[schemars(extend("patternProperties" = {PERCENTILE: {"$ref": "#/definitions/TimeBounds"}}))]
    struct RttBounds of Time {
        /// Bounds of the mean.
        mean: Option<TimeBounds>,
    }
}

bounds! {
    /// Bounds of a rate: `min` and `max` bound the best second.
    struct RateFigures of PlainRate {
        /// Bounds of the mean.
        mean: Option<RateBounds>,
        /// Bounds of the best second.
        peak: Option<RateBounds>,
        /// Bounds of the worst second.
        lowest: Option<RateBounds>,
        /// Bounds of the standard deviation of consecutive seconds, as a share of their mean.
        deviation: Option<ShareBounds>,
    }
}

bounds! {
    /// Bounds of a queue: `min` and `max` bound the most that waited; a percentile such as `p95` is one of
    /// samples taken every 100ms.
    #[schemars(extend("patternProperties" = {PERCENTILE: {"$ref": "#/definitions/OccupancyBounds"}}))]
    struct QueueBounds of Occupancy {}
}

bounds! {
    /// A least and a greatest length of a queue, one of them at the least.
    struct OccupancyBounds of Occupancy {}
}

bounds! {
    /// Bounds of lateness: `min` and `max` bound the greatest; or, of the whole run, a percentile such as
    /// `p99`.
    #[schemars(extend("patternProperties" = {PERCENTILE: {"$ref": "#/definitions/TimeBounds"}}))]
    struct LatenessBounds of Time {}
}

/// Bounds of dropped packets, or exactly so many.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Drops {
    /// Exactly this.
    Exactly(u64),
    /// Bounds.
    Bounds(Box<DropBounds>),
}

bounds! {
    /// Bounds of dropped packets: `min` and `max` bound all together.
    struct DropBounds of u64 {
        /// Bounds of the share of all offered packets.
        share: Option<ShareBounds>,
        /// Dropped because the link was down.
        down: Option<Count>,
        /// Dropped by a partition.
        partition: Option<Count>,
        /// Dropped because they were larger than the MTU.
        mtu: Option<Count>,
        /// Dropped by the link's loss.
        loss: Option<Count>,
        /// Dropped because the queue was full.
        queue_full: Option<Count>,
        /// Dropped by active queue management.
        aqm: Option<Count>,
        /// Dropped for want of memory.
        memory: Option<Count>,
    }
}

/// The names of percentiles.
const PERCENTILE: &str = r"^p([0-9]{1,2}(\.[0-9]{1,3})?|100)$";

/// An exit code, the name of a signal, or `any`.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum ExitCode {
    /// The code.
    Code(u8),
    /// A signal, or whatever it is.
    Word(SignalOrAny),
}
