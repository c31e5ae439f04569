//! Changes at a time, and everything that goes wrong on purpose.

use schemars::JsonSchema;

use super::text::{Probability, Time};
use super::{Both, Names, Route};

/// The route that an event fixes.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum EventRoute {
    /// The way from node to node and back.
    Path(#[schemars(length(min = 2))] Vec<String>),
    /// All of it.
    Form(Route),
}

/// A change at a time: of links (`link` with `set`, `down`, `up`), of a node's programs (`node`
/// with `do`), a `partition`, its end (`heal`), a `route`, or of all shortest routes (`reroute`), a
/// `flap`, or `churn`. With `every` it happens again and again.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Event {
    /// When, counted from the start of the run. Only `churn` may leave it out: then it is 0s.
    at: Option<Time>,
    /// It happens again each time that this has passed, until `times`, `for`, `until` or the
    /// duration of the run ends it.
    every: Option<Time>,
    /// How often it happens.
    #[schemars(range(min = 1))]
    times: Option<u64>,
    /// For so long after `at` it happens again.
    r#for: Option<Time>,
    /// Until this time of the run it happens again.
    until: Option<Time>,
    /// The link or links that change; the name of a group's links means all of them.
    link: Option<Names>,
    /// Only this direction: `up`, `down` or `from-to`.
    direction: Option<String>,
    /// New properties; what is not named stays as it is.
    set: Option<Both>,
    /// Takes the link down, or only one `direction` of it: it drops everything until it is up.
    down: Option<bool>,
    /// Brings the link up again.
    up: Option<bool>,
    /// The nodes or groups whose programs are concerned.
    node: Option<Names>,
    /// What happens to them.
    r#do: Option<Verb>,
    /// Only so many of the nodes, or this share of them (rounded, at least one), chosen by the
    /// seed.
    some: Option<Amount>,
    /// Cuts every link between these groups of nodes, routers and LANs, and on a LAN every frame
    /// between attachments of different groups; it takes the place of an earlier partition.
    partition: Option<Partition>,
    /// Ends the partition. Links that are down or flapping stay so.
    heal: Option<bool>,
    /// Fixes a route from now on, or with `via: shortest` sets it free. Packets under way may
    /// arrive out of order.
    route: Option<EventRoute>,
    /// Computes all shortest routes again, for the latencies and links as they are now, and around
    /// links that are down. Packets under way may arrive out of order.
    reroute: Option<bool>,
    /// Cuts links again and again for a short time.
    flap: Option<Flap>,
    /// Nodes leave and join.
    churn: Option<Churn>,
}

/// The sides of a partition.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Partition {
    /// Nothing passes between these groups.
    Both(#[schemars(length(min = 2))] Vec<Vec<String>>),
    /// Nothing passes one way.
    OneWay(OneWay),
}

/// A partition of one way: nothing passes `from` these `to` those; the way back stays open.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct OneWay {
    /// Nodes and routers.
    from: Names,
    /// Nodes and routers.
    to: Names,
}

/// A link that comes and goes: every `every` it is cut for `down`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Flap {
    /// The link or links; they flap together.
    link: Names,
    /// Only this direction: `up`, `down` or `from-to`.
    direction: Option<String>,
    /// From one cut to the next.
    every: Time,
    /// How long each cut lasts; less than `every`.
    down: Time,
    /// Whether each phase lasts from nothing to twice as long, uniformly, by the seed; default
    /// false.
    random: Option<bool>,
    /// How many cuts.
    #[schemars(range(min = 1))]
    times: Option<u64>,
    /// For so long after `at`.
    r#for: Option<Time>,
    /// Until this time of the run.
    until: Option<Time>,
}

/// Nodes that leave and join: by `rate` with `every`, by a `script` in the churn language, or by a
/// `trace`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Churn {
    /// The nodes or groups that take part.
    nodes: Names,
    /// The share of the nodes that leaves in each period, and comes back.
    rate: Option<Probability>,
    /// The period.
    every: Option<Time>,
    /// How long each stays away; default: half a period.
    away: Option<Time>,
    /// How many periods.
    #[schemars(range(min = 1))]
    times: Option<u64>,
    /// For so long after `at`.
    r#for: Option<Time>,
    /// Until this time of the run.
    until: Option<Time>,
    /// Statements such as `at 30s join 10` and `from 5m to 10m keep churn 50%`, one a line.
    script: Option<Text>,
    /// For each node a line with the seconds at which it joins, leaves, joins …
    trace: Option<Text>,
    /// How many times faster a script or trace passes; default 1.
    speed_up: Option<f64>,
    /// How many nodes, or which share of them, are there before a `script` begins; default: none.
    present: Option<Amount>,
    /// How programs end when their node leaves: `kill` (default) or `stop`.
    leave: Option<Leave>,
}

/// How programs end.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Leave {
    /// SIGKILL.
    Kill,
    /// SIGTERM.
    Stop,
}

/// A text of several lines, here or in a file.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Text {
    /// The text itself.
    Here(String),
    /// In a file.
    There(Elsewhere),
}

/// A file of its own.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Elsewhere {
    /// Its path; a relative one starts at the scenario's folder.
    file: String,
}

/// A number of nodes or a share of them.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Amount {
    /// So many.
    Count(#[schemars(range(min = 1))] u64),
    /// A share.
    Share(Probability),
}

/// What can be done to a node's programs.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Verb {
    /// SIGKILL, and no restart.
    Kill,
    /// SIGTERM, and no restart.
    Stop,
    /// SIGSTOP.
    Pause,
    /// SIGCONT.
    Resume,
    /// SIGKILL, then started again.
    Restart,
}
