//! Every key of the file with its description: what the JSON Schema and the reference are made
//! from.
//!
//! Nothing is read through these types (`decode` reads the tree itself, for the sake of its
//! messages); a test holds that both know the same keys.

mod discipline;
mod event;
mod expect;
mod routing;
mod text;
mod trace;

use std::collections::BTreeMap;

use schemars::JsonSchema;

use discipline::Discipline;
use event::Event;
use expect::Expect;
pub(crate) use expect::OccupancyBounds;
use routing::Routing;
use text::{Overhead, Probability, Queue, Ready, ReorderText, Size, Time, TimeOrNone};
use trace::{PresetName, RateOrTrace, TraceFile};

/// A Windtunnel scenario: nodes with real programs, and the network between them. As in compose
/// files, keys that begin with `x-` mean nothing here and are free for other uses, and `<<: *name`
/// merges a map that is marked with `&name` elsewhere (of several, `<<: [*first, *second]`, the
/// first that has a key wins; keys that are written out win over all).
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct File {
    /// Name of the experiment; default: the file's name without `.yaml`.
    name: Option<String>,
    /// Seed of every random stream; default 1. The same seed and the same packets give the same
    /// luck.
    seed: Option<u64>,
    /// How long the run lasts at the most; default: until every program that is no daemon has
    /// exited.
    duration: Option<Time>,
    /// Pools that addresses come from: an IPv4 range, an IPv6 range, or a list of both; default
    /// 10.0.0.0/16 and fd00::/64.
    address: Option<OneOrTwo>,
    /// Whether nodes have IPv4 addresses; default true.
    ipv4: Option<bool>,
    /// Whether nodes have IPv6 addresses; default true.
    ipv6: Option<bool>,
    /// What holds for every link or node that does not say otherwise.
    defaults: Option<Defaults>,
    /// The nodes by name. A name is a host name: lower-case letters, digits and `-`.
    nodes: BTreeMap<String, Option<Node>>,
    /// Names of routers: they forward packets and answer ICMP, and run no programs.
    routers: Option<Vec<String>>,
    /// LANs: Ethernet segments that nodes and routers share, each attached by a link (`between:
    /// [laptop, office]`). A list of names, or a map with the subnet of each.
    lans: Option<Lans>,
    /// The links. Nodes have one interface a link, `eth0`, `eth1` … in this order.
    links: Option<Vec<Link>>,
    /// How routers find their ways: what a shortest route minimises (`latency`, the default, or
    /// `hops`), or a map that says more.
    routing: Option<Routing>,
    /// Routes to use instead of the shortest.
    routes: Option<Vec<Route>>,
    /// Accept nodes that cannot reach each other; default false.
    allow_unreachable: Option<bool>,
    /// What is done when this machine has less processor time than programs and emulation need;
    /// default report.
    on_overload: Option<OnOverload>,
    /// How the network between nodes is emulated; default hops.
    model: Option<NetworkModel>,
    /// With `model: paths`: how flows divide the bandwidth of a link that they share; default
    /// rtt-aware.
    sharing: Option<Sharing>,
    /// Where a run has several machines: how nodes are put on them; default auto.
    placement: Option<Placement>,
    /// Where a run has several machines: what is done when one of them is lost; default fail.
    on_host_loss: Option<OnHostLoss>,
    /// Changes at times after the run began.
    events: Option<Vec<Event>>,
    /// What must hold at the end; else the run fails.
    expect: Option<Vec<Expect>>,
}

/// What holds for every link or node that does not say otherwise.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Defaults {
    /// Properties of links.
    link: Option<Both>,
    /// Properties of nodes and their programs; `env` and `sysctl` are merged with a node's own.
    node: Option<NodeDefaults>,
}

/// The LANs.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Lans {
    /// Their names.
    Names(Vec<String>),
    /// With what is known of each.
    Map(BTreeMap<String, Option<Lan>>),
}

/// A LAN.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Lan {
    /// Its subnet, such as 192.168.1.0/24, or an IPv4 and an IPv6 one; default: from the end of
    /// the pools.
    address: Option<OneOrTwo>,
}

/// How the network between nodes is emulated.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum NetworkModel {
    /// Each packet passes the queue of every link on its way.
    Hops,
    /// Each packet waits at its source only, for the share of its path that its flow has; delay and
    /// loss are those of the path.
    Paths,
}

/// How flows divide the bandwidth of a link that they share.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Sharing {
    /// In inverse proportion to their round-trip times, as long-lived TCP connections do.
    RttAware,
    /// Equally.
    Equal,
}

/// How nodes are put on machines. Whatever is chosen, no machine gets more than it has free, pinned
/// nodes stay where they are pinned, and neighbours over fast or short links stay together where
/// that is possible.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Placement {
    /// Over all machines in proportion to what they have free, give or take a tenth where that
    /// keeps more neighbours together.
    Auto,
    /// On as few machines as carry it.
    Pack,
    /// Over all machines in proportion to what they have free, as exactly as whole nodes allow.
    Spread,
}

/// What is done when one of a run's machines is lost.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum OnHostLoss {
    /// The run stops and has failed.
    Fail,
    /// The nodes of that machine are lost; the others go on.
    Continue,
}

/// What is done when this machine has less processor time than programs and emulation need.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum OnOverload {
    /// It is reported, and the run goes on; if too many packets were late, it was not faithful.
    Report,
    /// The run ends at once, not faithful.
    Abort,
    /// Every program is paused until the emulation has caught up; each time is counted and
    /// reported.
    Freeze,
}

/// A struct with the keys of programs in front of its own.
macro_rules! with_program_keys {
    ($(#[$attribute:meta])* struct $name:ident { $($own:tt)* }) => {
        $(#[$attribute])*
        #[derive(JsonSchema)]
        #[schemars(rename_all = "kebab-case", deny_unknown_fields)]
        pub(crate) struct $name {
            /// Whether the run may end while this still runs; default false.
            daemon: Option<bool>,
            /// It starts no earlier than this after the run began; default 0s.
            start: Option<Time>,
            /// Working folder; a relative one starts at the file's folder. Default: the file's folder.
            cwd: Option<String>,
            /// Environment variables on top of windtunnel's own environment.
            env: Option<BTreeMap<String, Word>>,
            /// Whether it is started again after it exited: `never` (default, or `false`),
            /// `on-failure`, or `always` (or `true`).
            restart: Option<Restart>,
            $($own)*
        }
    };
}

with_program_keys! {
    /// Properties of every node that does not say otherwise.
    struct NodeDefaults {
        /// Whether nodes pass packets on between their interfaces; default false.
        forward: Option<bool>,
        /// Who programs are: `invoker` (default) or `root` of the node.
        user: Option<User>,
        /// Whether nodes have temporary folders and homes of their own, as in a container; default false.
        private: Option<bool>,
        /// Settings of the nodes' network namespaces, such as `net.ipv4.tcp_sack: 0`.
        sysctl: Option<BTreeMap<String, Word>>,
        /// Processors that each is expected to use, for placement over several machines only.
        #[schemars(range(min = 0, max = 100_000))]
        cpu: Option<f64>,
        /// Memory that each is expected to use, for placement over several machines only.
        memory: Option<Size>,
    }
}

with_program_keys! {
    /// A node: a host of its own for its programs. Without `run` it is there for `exec` and `shell`.
    struct Node {
        /// The command: a text that is split into words as a shell would (no shell runs it: write
        /// `[sh, -c, "…"]` for one), a list of words, or a list of programs `{run: …, …}`.
        run: Option<Run>,
        /// When a program counts as ready for those that come `after` it: `tcp:PORT`, `listen`, `unix:PATH`,
        /// `log:REGEX` (a line of its output matches) or `exit` (it has exited with 0), or a map with a
        /// `timeout`; default: as soon as it has started.
        ready: Option<ReadyCondition>,
        /// Nodes or groups whose programs must be ready first.
        after: Option<Names>,
        /// Make so many nodes of this one, called `name-1`, `name-2` …; `name` then is their group.
        #[schemars(range(min = 1, max = 10000))]
        count: Option<u32>,
        /// Whether the node passes packets on between its interfaces, so that routes may lead through
        /// it; default false.
        forward: Option<bool>,
        /// Who its programs are: `invoker` (default), or `root` of the node, who may configure its
        /// network.
        user: Option<User>,
        /// Whether it has a view of its own of files that processes share or that are nobody else's
        /// business, as a container has: `/tmp`, `/var/tmp`, `/dev/shm`, `/home`, `/root`, `/run/user` and
        /// the home of whoever runs windtunnel are empty at the beginning, and gone at the end. The
        /// folder of the file and the run folder stay; default false.
        private: Option<bool>,
        /// Settings of its network namespace, such as `net.ipv4.tcp_sack: 0`.
        sysctl: Option<BTreeMap<String, Word>>,
        /// The address of its first interface, or an IPv4 and an IPv6 one; one of a LAN's subnet is that
        /// of its interface there. Default: from the pools.
        address: Option<OneOrTwo>,
        /// Where a run has several machines: the one that this node, or all `count` of it, must be on, by its
        /// name or one of its labels (any machine with that label then).
        pin: Option<String>,
        /// Processors that it, each of `count`, is expected to use, such as 0.5. Placement over several
        /// machines counts with it; it limits nothing.
        #[schemars(range(min = 0, max = 100_000))]
        cpu: Option<f64>,
        /// Memory that it, each of `count`, is expected to use. Placement over several machines counts with
        /// it; it limits nothing.
        memory: Option<Size>,
    }
}

with_program_keys! {
    /// One of several programs of a node; what it does not say is taken from its node.
    struct Program {
        /// The command: a text of words or a list of words.
        run: Words,
        /// When it counts as ready: `tcp:PORT`, `listen`, `unix:PATH`, `log:REGEX` or `exit`, or a map with a
        /// `timeout`.
        ready: Option<ReadyCondition>,
        /// Nodes or groups whose programs must be ready first.
        after: Option<Names>,
    }
}

/// When a program counts as ready.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum ReadyCondition {
    /// The condition.
    Short(Ready),
    /// The condition, and how long it may take.
    Form(ReadyForm),
}

/// When a program counts as ready, by one condition, and how long that may take.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ReadyForm {
    /// Something in the node listens on this TCP port.
    #[schemars(range(min = 1, max = 65535))]
    tcp: Option<u16>,
    /// `true`: something in the node listens on some TCP port, or has bound some UDP port.
    listen: Option<bool>,
    /// Something in the node listens on the Unix socket with this path.
    unix: Option<String>,
    /// A line of its output matches this regular expression.
    log: Option<String>,
    /// `true`: it has exited with 0.
    exit: Option<bool>,
    /// How long after its start; then the run ends as failed. Default: 1min, for `exit` as long as
    /// it takes.
    timeout: Option<Time>,
}

/// A struct with the properties of one direction in front of its own keys.
macro_rules! with_link_keys {
    ($(#[$attribute:meta])* struct $name:ident { $($own:tt)* }) => {
        $(#[$attribute])*
        #[derive(JsonSchema)]
        #[schemars(rename_all = "kebab-case", deny_unknown_fields)]
        pub(crate) struct $name {
            /// Propagation delay, the least that a packet takes; default 0ms.
            latency: Option<Time>,
            /// Random delay on top of the latency, never negative: a time J (uniform from 0 to J), or
            /// a distribution; default `none`.
            jitter: Option<Jitter>,
            /// Packets that vanish: a probability (each independently), bursts, a list of packet
            /// numbers, or `none` (default).
            loss: Option<Loss>,
            /// Probability that a packet arrives twice; default 0%.
            duplicate: Option<Probability>,
            /// Probability that one bit of a packet is flipped; default 0%.
            corrupt: Option<Probability>,
            /// Packets that overtake others: `none` (default: jitter keeps the order), `jitter` (it
            /// may reorder), or a probability of being held back by 1ms.
            reorder: Option<Reorder>,
            /// Bandwidth; `none` (default) for no limit, no queue and no overhead; or a file of delivery
            /// opportunities (mahimahi's format).
            rate: Option<RateOrTrace>,
            /// Framing bytes that each packet costs on top of the IP packet: `ethernet` (38B, the
            /// default where there is a rate; with delivery opportunities it is 4B, as in mahimahi),
            /// `none`, or a size.
            overhead: Option<Overhead>,
            /// The largest IP packet in bytes; default 1500. At least 1280, without IPv6 68.
            mtu: Option<Mtu>,
            /// Room in front of the rate, in packets, bytes or time; default: the larger of 100
            /// packets and what the rate carries in 50ms; with `pie` 1000 packets, with `fq-codel` and
            /// `fair` 10240. With a trace, times count at its mean rate.
            queue: Option<Queue>,
            /// Who is dropped when packets wait: `drop-tail` (default), `drop-head`, `codel`, `red`,
            /// `pie`, `fq-codel` or `fair`.
            discipline: Option<Discipline>,
            /// A table (CSV) of `time` with `rate`, `latency` or `loss`, which these then follow: its file,
            /// or a map with more.
            trace: Option<TraceFile>,
            $($own)*
        }
    };
}

with_link_keys! {
    /// Properties of one direction.
    struct Direction {}
}

with_link_keys! {
    /// Properties of both directions, and of each.
    struct Both {
        /// A kind of access link, whose latency, jitter, loss, rate and queue hold where nothing else
        /// is written; the first named end is the user's.
        preset: Option<PresetName>,
        /// What differs from the first named end to the second.
        up: Option<Direction>,
        /// What differs from the second named end to the first.
        down: Option<Direction>,
    }
}

with_link_keys! {
    /// A link between two ends. Properties hold for both directions; `up` and `down` win over them.
    struct Link {
        /// The two ends: names of nodes, groups (one link a member), routers or LANs.
        #[schemars(length(equal = 2))]
        between: Vec<String>,
        /// Its name; default `a--b`, then `a--b-2` … The links of a group are called `name-1` ….
        name: Option<String>,
        /// A kind of access link, whose latency, jitter, loss, rate and queue hold where nothing else
        /// is written; the first named end is the user's.
        preset: Option<PresetName>,
        /// What differs from the first named end to the second.
        up: Option<Direction>,
        /// What differs from the second named end to the first.
        down: Option<Direction>,
    }
}

/// Random delay.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Jitter {
    /// Uniform from 0 to this; or `none`.
    Uniform(TimeOrNone),
    /// A distribution.
    Distribution(JitterForm),
}

/// The distribution of a random delay: `spread` with `distribution`, or a `table`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct JitterForm {
    /// The scale: the most for `uniform`, the standard deviation of the whole normal variable for
    /// `normal`, the mean for `pareto`. As only delays are added, `normal` is its absolute
    /// value: a spread of 10ms has a mean of 7.98 ms and a standard deviation of 6.03 ms.
    spread: Option<Time>,
    /// `uniform` (default), `normal` (half-normal, cut at 4 spreads) or `pareto` (Lomax with shape
    /// 3, cut at 40 spreads).
    distribution: Option<Distribution>,
    /// Quantiles at equal steps of probability, two or more, not decreasing, linear in between.
    #[schemars(length(min = 2, max = 1000))]
    table: Option<Vec<Time>>,
}

/// The form of a distribution.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Distribution {
    /// From 0 to the spread.
    Uniform,
    /// The absolute value of a normal variable.
    Normal,
    /// Pareto of the second kind.
    Pareto,
}

/// Packets that vanish.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Loss {
    /// Each with this probability, or `none`.
    Independent(Probability),
    /// In bursts, or listed.
    Model(LossForm),
}

/// Loss in bursts (Gilbert–Elliott: `good-to-bad`, `bad-to-good` …), or of listed `packets`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct LossForm {
    /// Probability per packet that bad times begin.
    good_to_bad: Option<Probability>,
    /// Probability per packet that bad times end; its inverse is their mean length in packets.
    bad_to_good: Option<Probability>,
    /// Probability of loss in bad times; default 100%.
    loss_in_bad: Option<Probability>,
    /// Probability of loss in good times; default 0%.
    loss_in_good: Option<Probability>,
    /// Exactly the packets with these numbers, counted from 1 in each direction.
    packets: Option<Vec<PacketNumber>>,
}

/// The number of a packet, from 1.
#[derive(JsonSchema)]
pub(crate) struct PacketNumber(#[schemars(range(min = 1))] u64);

/// Packets that overtake others.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Reorder {
    /// `none`, `jitter`, or the probability of being held back by 1ms.
    Short(ReorderText),
    /// All of it.
    Form(ReorderForm),
}

/// Packets that are held back so that others overtake them.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ReorderForm {
    /// Probability that a packet is held back; default 0%.
    probability: Option<Probability>,
    /// How long; default 1ms.
    extra: Option<Time>,
    /// Whether jitter may reorder as well; default false.
    by_jitter: Option<bool>,
}

/// A route to use instead of the shortest: a whole `path`, or two ends (`from`, `to`) and what to
/// pass on the shortest way in between (`via`).
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Route {
    /// The way from node to node, each neighbours joined by a link (the shortest if there are
    /// several). An end may be a group: its members all have such a route.
    #[schemars(length(min = 2))]
    path: Option<Vec<String>>,
    /// Where it begins: a node or group.
    from: Option<String>,
    /// Where it ends: a node or group.
    to: Option<String>,
    /// A router or forwarding node, or several in order, that the route passes; shortest ways, as
    /// they are at the start, lead from one to the next. In an event also `shortest`: the
    /// route is no longer fixed.
    via: Option<Names>,
    /// Whether the way back is left as it is; default false: it is the same way.
    one_way: Option<bool>,
}

/// One name or a list of names.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Names {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

/// One text, or one for IPv4 and one for IPv6.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum OneOrTwo {
    /// One.
    One(String),
    /// Both.
    Two(#[schemars(length(min = 1, max = 2))] Vec<String>),
}

/// What a node runs.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Run {
    /// One program.
    One(Words),
    /// Several programs.
    Several(Vec<Program>),
}

/// A command.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Words {
    /// Words with blanks between them, quoted as for a shell.
    Text(String),
    /// A list of words.
    List(#[schemars(length(min = 1))] Vec<Word>),
}

/// A text; numbers and booleans are taken as they are written.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Word {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// A boolean.
    Flag(bool),
}

/// Who programs are.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum User {
    /// Whoever runs windtunnel.
    Invoker,
    /// Root of the node.
    Root,
}

/// Whether a program is started again.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Restart {
    /// When.
    When(RestartWhen),
    /// Always, or never.
    Flag(bool),
}

/// When a program is started again.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum RestartWhen {
    /// Never.
    Never,
    /// After an exit code other than 0, or a signal.
    OnFailure,
    /// Always.
    Always,
}

/// Bytes as a number, or a size.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Mtu {
    /// A number of bytes.
    Number(#[schemars(range(min = 68, max = 65535))] u32),
    /// A size with its unit.
    Size(Size),
}
