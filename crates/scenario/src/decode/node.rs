//! Nodes and what they and `defaults.node` say.

use std::collections::BTreeMap;
use std::net::IpAddr;

use windtunnel_model::plan::{InternetAllowRule, PortPublication, ProgramUser};
use windtunnel_model::profile::QueueLimit;

use super::account::{AccountDraft, AccountForm, CommonAccount};
use super::internet::{Allowed, Published};
use super::limits::{LimitKeys, LimitTable, RateKeys, RateTable, read_limits, read_rates};
use super::machine::Pin;
use super::program::{
    ProgramDraft, ProgramKeys, ProgramTable, RunTable, Startup, TextMapForm, merged,
    read_program_keys, read_programs,
};
use super::receive_queue::ReceiveQueue;
use super::root::{RootKeys, RootTable, read_root};
use crate::grammar::{
    BoundedInteger, Decoder, Fields, NameListForm, YamlMapEntry, form, map, one_or_two,
};
use crate::position::LocatedValue;
use crate::text::shorten;
use crate::tree::{YamlValue, YamlValueKind};

/// The most nodes after every `count` is expanded.
pub(crate) const MOST_NODES: u64 = windtunnel_model::Plan::NODES_MAX as u64;

/// A node as the file has it; what `defaults.node` says is mixed in later.
#[derive(Debug, Clone)]
pub(crate) struct NodeDraft {
    pub(crate) name: LocatedValue<String>,
    pub(crate) count: Option<LocatedValue<u64>>,
    pub(crate) addresses: Vec<LocatedValue<IpAddr>>,
    pub(crate) aliases: Vec<LocatedValue<String>>,
    pub(crate) allow: Option<LocatedValue<Vec<InternetAllowRule>>>,
    pub(crate) publish: Option<LocatedValue<Vec<LocatedValue<PortPublication>>>>,
    pub(crate) keys: NodeKeys,
    pub(crate) programs: Vec<ProgramDraft>,
    pub(crate) root: RootKeys,
}

/// What a node and `defaults.node` may say.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeKeys {
    pub(crate) forward: Option<bool>,
    pub(crate) user: Option<ProgramUser>,
    pub(crate) private: Option<bool>,
    pub(crate) results: Option<bool>,
    pub(crate) sysctl: BTreeMap<String, String>,
    pub(crate) pin: Option<LocatedValue<String>>,
    pub(crate) limits: LimitKeys,
    pub(crate) rates: RateKeys,
    pub(crate) receive_queue: Option<QueueLimit>,
    pub(crate) program: ProgramKeys,
}

impl NodeKeys {
    /// What is not said here is taken from `defaults`; maps are merged.
    pub(crate) fn or(&self, defaults: &NodeKeys) -> NodeKeys {
        NodeKeys {
            forward: self.forward.or(defaults.forward),
            user: self.user.or(defaults.user),
            private: self.private.or(defaults.private),
            results: self.results.or(defaults.results),
            sysctl: merged(&defaults.sysctl, &self.sysctl),
            pin: self.pin.clone().or_else(|| defaults.pin.clone()),
            limits: self.limits.or(&defaults.limits),
            rates: self.rates.or(&defaults.rates),
            receive_queue: self.receive_queue.or(defaults.receive_queue),
            program: self.program.or(&defaults.program),
        }
    }
}

map! {
    /// Properties of every node that does not say otherwise.
    NodeDefaults {
        ..ProgramTable,
        /// Whether nodes pass packets on between their interfaces; default false.
        "forward" FORWARD: bool,
        /// The user that programs run as: `invoker` (default) or `root` of the node.
        "user" USER: CommonAccount,
        /// Whether nodes have temporary folders and homes of their own, as in a container; default
        /// false.
        "private" PRIVATE: bool,
        /// Whether programs may leave files in the run folder, as for a node; default false.
        "results" RESULTS: bool,
        /// Settings of the nodes' network namespaces, such as `net.ipv4.tcp_sack: 0`.
        "sysctl" SYSCTL: Sysctl,
        ..LimitTable,
        ..RateTable,
        /// How much may wait at each before it is delivered, as for a node.
        "receive-queue" RECEIVE_QUEUE: ReceiveQueue,
    }
}

map! {
    /// A node: a host of its own for its programs. Without `run` it is there for `exec` and
    /// `shell`. The node called `internet` is the machine's outside: it runs no programs, and others
    /// reach through it what an ordinary program of the machine reaches, where `--allow-internet`
    /// allows that, and servers of the machine's loopback under the name `host`, with
    /// `--allow-host`.
    Node, NodeDraft, by read_node {
        ..RunTable,
        ..ProgramTable,
        ..Startup,
        /// Make so many nodes of this one, called `name-1`, `name-2` …; `name` then is their group.
        "count" COUNT: BoundedInteger<1, MOST_NODES>,
        /// Whether the node passes packets on between its interfaces, so that routes may lead
        /// through it; default false.
        "forward" FORWARD: bool,
        /// The user that its programs run as: `invoker` (default), `root` of the node, which may
        /// configure its network, or `image` (default with `image`): the user that the image names,
        /// or root. With `root` or `image` also a user of these files, by name or number, and perhaps
        /// a group: `1000`, `redis`, `redis:data`.
        "user" USER: AccountForm,
        ..RootTable,
        /// Whether it has a view of its own of files that processes share or that are private to
        /// other users, as a container has: `/tmp`, `/var/tmp`, `/dev/shm`, `/home`, `/root`, `/run`
        /// (but for folders and links in it) and the home of the user that runs windtunnel are empty
        /// at the beginning, and gone at the end. The folder of the file and the run folder stay;
        /// default false.
        "private" PRIVATE: bool,
        /// Whether its programs may leave files in its part of the run folder,
        /// `$WINDTUNNEL_RUN/nodes/$WINDTUNNEL_NODE`, where their output is, too; default false: they
        /// only read the run folder.
        "results" RESULTS: bool,
        /// Settings of its network namespace, such as `net.ipv4.tcp_sack: 0`.
        "sysctl" SYSCTL: Sysctl,
        /// The address of its first interface, or an IPv4 and an IPv6 one; one of a LAN's subnet is
        /// that of its interface there. Default: from the pools.
        "address" ADDRESS: Addresses,
        /// Further names by which nodes find it, such as `[db, db.example.org]`; a name that several
        /// nodes have, or all `count` of it, leads to the addresses of all.
        "aliases" ALIASES: Aliases,
        /// Where a run has several machines: the one that this node, or all `count` of it, must be
        /// on, by its name or one of its labels (any machine with that label then).
        "pin" PIN: Pin,
        /// Of the node `internet`: what of the outside may be reached, such as
        /// `[192.0.2.0/24:443, dns]`: addresses, each perhaps with a prefix and a port (or ports,
        /// `80-90`), and `dns` for names. Without a port, ICMP echo is included. Default: all.
        "allow" ALLOW: Allowed,
        /// TCP ports of the machine that lead to the node through `internet` and the links from
        /// there, such as `8080:80`: the machine's port, then the node's. Only programs of the
        /// machine get to it unless an address is written, as in `0.0.0.0:8080:80`.
        "publish" PUBLISH: Published,
        ..LimitTable,
        ..RateTable,
        /// Has packets that come to the node delivered within its processor time, and says how many
        /// (`1000p`) or how much (`1MB`) may wait for that; what comes beyond that is dropped, and
        /// counted. Default: 1000p for a node with `cpu`; for others the packet loop delivers.
        "receive-queue" RECEIVE_QUEUE: ReceiveQueue,
    }
}

/// Reads `defaults.node`.
pub(super) fn read_defaults(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<NodeKeys> {
    let fields = from.table::<NodeDefaults>(field, "the defaults of nodes")?;
    Some(NodeKeys {
        forward: from.read(&fields, NodeDefaults::FORWARD).flatten(),
        user: from.read(&fields, NodeDefaults::USER).flatten(),
        private: from.read(&fields, NodeDefaults::PRIVATE).flatten(),
        results: from.read(&fields, NodeDefaults::RESULTS).flatten(),
        sysctl: from.read(&fields, NodeDefaults::SYSCTL).flatten().unwrap_or_default(),
        pin: None,
        limits: read_limits(from, &fields),
        rates: read_rates(from, &fields),
        receive_queue: from.read(&fields, NodeDefaults::RECEIVE_QUEUE).flatten(),
        program: read_program_keys(from, &fields),
    })
}

fn read_node(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<NodeDraft> {
    let name = LocatedValue { value: field.key.to_owned(), place: field.place };
    // `box:` with nothing after it is a node without properties.
    let empty = YamlValue { place: field.place, kind: YamlValueKind::Map(Vec::new()) };
    let null = matches!(field.value.kind, YamlValueKind::Null);
    let field = if null { YamlMapEntry { value: &empty, ..field } } else { field };
    let fields = from.table::<Node>(field, "a node")?;
    let count = from.read_at(&fields, Node::COUNT);
    let addresses = from.read_or(&fields, Node::ADDRESS, Vec::new());
    let allow = from.read_at_key(&fields, Node::ALLOW);
    let publish = from.read_at_key(&fields, Node::PUBLISH);
    let mut keys = read_keys(from, &fields);
    let account = from.read(&fields, Node::USER).flatten();
    keys.user = account.as_ref().map(|account| match account {
        AccountDraft::User(user) => *user,
        AccountDraft::Written(_) => ProgramUser::Image,
    });
    let aliases = from.read_or(&fields, Node::ALIASES, Vec::new());
    let root = read_root(from, &fields, account.as_ref());
    let programs = read_programs(from, &fields);
    if fields.has(Node::COUNT) && count.is_none() {
        return None;
    }
    Some(NodeDraft {
        name,
        count,
        addresses: addresses?,
        aliases: aliases?,
        allow,
        publish,
        keys,
        programs: programs?,
        root: root?,
    })
}

fn read_keys(from: &mut Decoder<'_>, fields: &Fields<'_>) -> NodeKeys {
    NodeKeys {
        forward: from.read(fields, Node::FORWARD).flatten(),
        user: None,
        private: from.read(fields, Node::PRIVATE).flatten(),
        results: from.read(fields, Node::RESULTS).flatten(),
        sysctl: from.read(fields, Node::SYSCTL).flatten().unwrap_or_default(),
        pin: from.read_at_key(fields, Node::PIN),
        limits: read_limits(from, fields),
        rates: read_rates(from, fields),
        receive_queue: from.read(fields, Node::RECEIVE_QUEUE).flatten(),
        program: read_program_keys(from, fields),
    }
}

form! {
    /// Further names of a node.
    Aliases: Vec<LocatedValue<String>>, by read_aliases, like NameListForm::schema
}

fn read_aliases(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Vec<LocatedValue<String>>> {
    let texts = from.names(field, "a name or a list of names")?;
    if texts.len() > windtunnel_model::plan::Node::ALIASES_MAX {
        let most = windtunnel_model::plan::Node::ALIASES_MAX;
        from.mistake(field.wrong(), format!("aliases: a node has at most {most} of them"));
        return None;
    }
    for text in texts.iter().filter(|text| !windtunnel_model::name::is_alias(&text.value)) {
        let message = format!("aliases: `{}` is not a host's name", shorten(&text.value));
        let hint = "a host's name has letters, digits, `-`, `_` and `.`, and is no address";
        from.mistake_with_hint(text.place, message, hint);
    }
    Some(texts)
}

form! {
    /// An address, or one of each family.
    Addresses: Vec<LocatedValue<IpAddr>>, by read_addresses, like one_or_two
}

fn read_addresses(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Vec<LocatedValue<IpAddr>>> {
    let needed = "an address, or a list of an IPv4 and an IPv6 address";
    let texts = from.names(field, needed)?;
    let read = texts.into_iter().map(|text| read_address(from, &text));
    let addresses: Vec<_> = read.collect::<Option<_>>()?;
    let one_each = addresses.iter().filter(|a| a.value.is_ipv4()).count() <= 1
        && addresses.iter().filter(|a| a.value.is_ipv6()).count() <= 1;
    if !one_each || addresses.is_empty() {
        from.mistake(field.wrong(), format!("`address` must be {needed}"));
        return None;
    }
    Some(addresses)
}

fn read_address(
    from: &mut Decoder<'_>,
    text: &LocatedValue<String>,
) -> Option<LocatedValue<IpAddr>> {
    if let Ok(value) = text.value.parse() {
        return Some(LocatedValue { value, place: text.place });
    }
    let shown = shorten(&text.value);
    let message = format!("address: `{shown}` is not an IPv4 or IPv6 address");
    let hint = "a node has plain addresses without `/`: the pools are at the top";
    match shown.contains('/') {
        true => from.mistake_with_hint(text.place, message, hint),
        false => from.mistake(text.place, message),
    }
    None
}

form! {
    /// Settings of a network namespace.
    Sysctl: BTreeMap<String, String>, by read_sysctl, like TextMapForm::schema
}

fn read_sysctl(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<BTreeMap<String, String>> {
    let needed = "a map of `net.*` settings and their values";
    TextMapForm::read(from, field, needed, |from, key| {
        if !windtunnel_model::name::is_sysctl(&key.text) {
            let message = format!("sysctl: `{}` is not a `net.*` setting", shorten(&key.text));
            let hint = "a node has a network of its own, so only `net.*` can be set for it";
            from.mistake_with_hint(key.place, message, hint);
        }
    })
}
