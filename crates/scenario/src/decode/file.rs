//! The whole file.

use serde_json::{Value as Json, json};
use windtunnel_model::Span;
use windtunnel_model::plan::{OnOverload, Routing};

use super::event::{Event, EventDraft};
use super::expect::{Expect, ExpectDraft};
use super::lan::{LanDraft, Lans};
use super::link::{Both, Link, LinkDraft, LinkKeys, read_both};
use super::machine::{HostLoss, HostTimeout, MachineKeys, Placement, WhichDelays};
use super::model::{ModelDraft, ModelTable, read_model};
use super::node::{Node, NodeDefaults, NodeDraft, NodeKeys, read_defaults};
use super::pool::{AddressFamilyPools, PoolTable, read_pools};
use super::record::{RecordDraft, RecordingForm};
use super::reserve::{ReservationDraft, ReservationMapForm};
use super::route::{Route, RouteDraft};
use super::router::{RouterDraft, Routers};
use super::service::{ServiceDraft, ServiceMapForm};
use crate::grammar::{
    BoundedInteger, Decoder, Fields, ListForm, RequiredKeyForm, SchemaDefinitions, SchemaKey,
    ValueForm, YamlMapEntry, form, map, text, words,
};
use crate::position::{LocatedValue, SourceLocation};
use crate::text::shorten;
use crate::tree::{YamlValue, YamlValueKind};

/// The file in its own terms, every single key valid.
#[derive(Debug, Default)]
pub(crate) struct ScenarioDraft {
    pub(crate) name: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) duration: Option<Span>,
    pub(crate) pools: AddressFamilyPools,
    pub(crate) link_defaults: LinkKeys,
    pub(crate) node_defaults: NodeKeys,
    pub(crate) nodes: Vec<NodeDraft>,
    pub(crate) routers: Vec<RouterDraft>,
    pub(crate) lans: Vec<LanDraft>,
    pub(crate) links: Vec<LinkDraft>,
    pub(crate) routing: Routing,
    pub(crate) routes: Vec<RouteDraft>,
    pub(crate) allow_unreachable: bool,
    pub(crate) on_overload: Option<LocatedValue<OnOverload>>,
    pub(crate) model: ModelDraft,
    pub(crate) machines: MachineKeys,
    pub(crate) record: RecordDraft,
    pub(crate) reserve: Vec<ReservationDraft>,
    pub(crate) services: Vec<ServiceDraft>,
    pub(crate) events: Vec<EventDraft>,
    pub(crate) expect: Vec<ExpectDraft>,
}

map! {
    /// A Windtunnel scenario: nodes with real programs, and the network between them. As in compose
    /// files, keys that begin with `x-` mean nothing here and are free for other uses, and `<<:
    /// *name` merges a map that is marked with `&name` elsewhere (of several, `<<: [*first,
    /// *second]`, the first that has a key wins; keys that are written out win over all).
    File {
        /// Name of the experiment; default: the file's name without `.yaml`.
        "name" NAME: ExperimentName,
        /// Seed of every random stream; default 1. The same seed and the same packets give the same
        /// random decisions.
        "seed" SEED: BoundedInteger<0, { u64::MAX }>,
        /// How long the run lasts at the most; default: until every program except daemons has
        /// exited.
        "duration" DURATION: Duration,
        ..PoolTable,
        /// What holds for every link or node that does not say otherwise.
        "defaults" DEFAULTS: Defaults,
        /// The nodes by name. A name is a host name: lower-case letters, digits and `-`.
        "nodes" NODES: RequiredKeyForm<NodeMapForm>,
        /// Routers: they forward packets and answer ICMP, and run no programs. A list of names, or a
        /// map of names with what else they do: `nat`, `firewall`.
        "routers" ROUTERS: Routers,
        /// LANs: Ethernet segments that nodes and routers share, each attached by a link (`between:
        /// [laptop, office]`). A list of names, or a map with the subnet of each.
        "lans" LANS: Lans,
        /// The links. Nodes have one interface a link, `eth0`, `eth1` … in this order.
        "links" LINKS: ListForm<Link>,
        /// How routers find their ways: what a shortest route minimises (`latency`, the default, or
        /// `hops`), or a map that says more.
        "routing" ROUTING: Routing,
        /// Routes to use instead of the shortest.
        "routes" ROUTES: ListForm<Route>,
        /// Accept nodes that cannot reach each other; default false.
        "allow-unreachable" ALLOW_UNREACHABLE: bool,
        /// What is done when this machine has less processor time than programs and emulation need;
        /// default report.
        "on-overload" ON_OVERLOAD: Overload,
        ..ModelTable,
        /// Where a run has several machines: how nodes are put on them; default auto.
        "placement" PLACEMENT: Placement,
        /// Where a run has several machines: what is done when one of them is lost; default fail.
        "on-host-loss" ON_HOST_LOSS: HostLoss,
        /// Where a run has several machines: what of delays has to be right; default one-way.
        "delays" DELAYS: WhichDelays,
        /// Where a run has several machines: how long one of them may be silent before it is lost,
        /// from 500ms to 10s; default what its agents say, 5s.
        "host-timeout" HOST_TIMEOUT: HostTimeout,
        /// What is recorded of the run as evidence: `true`, `standby`, `off` (the default), a list of
        /// layers, or a map that says more.
        "record" RECORD: RecordingForm,
        /// What several nodes have together of their machine, by name: limits, minima and weights,
        /// each within another one or the machine. A name is none of a node.
        "reserve" RESERVE: ReservationMapForm,
        /// Addresses that several nodes answer for, by name: routers redirect new connections to one
        /// of these nodes. A name is none of a node.
        "services" SERVICES: ServiceMapForm,
        /// Changes at times after the run began.
        "events" EVENTS: ListForm<Event>,
        /// What must hold at the end; else the run fails.
        "expect" EXPECT: ListForm<Expect>,
    }
}

map! {
    /// What holds for every link or node that does not say otherwise.
    Defaults, (LinkKeys, NodeKeys), by read_both_defaults {
        /// Properties of links.
        "link" LINK: LinkDefaults,
        /// Properties of nodes and their programs; `env` and `sysctl` are merged with a node's own.
        "node" NODE: DefaultsOfNodes,
    }
}

words! {
    /// What is done when this machine has less processor time than programs and emulation need.
    Overload as "OnOverload"; OnOverload {
        /// It is reported, and the run goes on; if too many packets were late, it was not faithful.
        "report" => OnOverload::Report,
        /// The run ends at once, not faithful.
        "abort" => OnOverload::Abort,
        /// Every program is paused until the emulation has caught up; each time is counted and
        /// reported.
        "freeze" => OnOverload::Freeze,
    }
}

/// The file's own terms; what is wrong goes to `from`, and its part of the draft is missing then.
pub(crate) fn decode_file(from: &mut Decoder<'_>, root: &YamlValue) -> ScenarioDraft {
    let field = YamlMapEntry { key: "", place: root.place, value: root };
    if !matches!(root.kind, YamlValueKind::Map(_)) {
        from.wrong_type::<()>(field, "the keys of a scenario, such as `nodes:` and `links:`");
        return ScenarioDraft::default();
    }
    let Some(file) = from.table::<File>(field, "a scenario") else {
        return ScenarioDraft::default();
    };
    let (link_defaults, node_defaults) = read_some(from, &file, File::DEFAULTS);
    ScenarioDraft {
        name: from.read(&file, File::NAME).flatten(),
        seed: from.read(&file, File::SEED).flatten(),
        duration: from.read(&file, File::DURATION).flatten(),
        pools: read_pools(from, &file).unwrap_or_default(),
        link_defaults,
        node_defaults,
        nodes: read_nodes(from, &file),
        routers: read_some(from, &file, File::ROUTERS),
        lans: read_some(from, &file, File::LANS),
        links: read_some(from, &file, File::LINKS),
        routing: from.read(&file, File::ROUTING).flatten().unwrap_or_default(),
        routes: read_some(from, &file, File::ROUTES),
        allow_unreachable: from.read(&file, File::ALLOW_UNREACHABLE).flatten().unwrap_or_default(),
        on_overload: from.read_at_key(&file, File::ON_OVERLOAD),
        model: read_model(from, &file),
        machines: MachineKeys {
            placement: from.read_at_key(&file, File::PLACEMENT),
            on_host_loss: from.read_at_key(&file, File::ON_HOST_LOSS),
            delays: from.read_at_key(&file, File::DELAYS),
            host_timeout: from.read_at_key(&file, File::HOST_TIMEOUT),
            several: false,
        },
        record: read_some(from, &file, File::RECORD),
        reserve: read_some(from, &file, File::RESERVE),
        services: read_some(from, &file, File::SERVICES),
        events: read_some(from, &file, File::EVENTS),
        expect: read_some(from, &file, File::EXPECT),
    }
}

/// The value of a key; nothing where nothing is written after it.
fn read_some<F: ValueForm>(from: &mut Decoder<'_>, file: &Fields<'_>, key: SchemaKey<F>) -> F::Value
where
    F::Value: Default,
{
    let field = file.get(key).filter(YamlMapEntry::is_some);
    field.and_then(|field| F::read(from, field)).unwrap_or_default()
}

fn read_nodes(from: &mut Decoder<'_>, file: &Fields<'_>) -> Vec<NodeDraft> {
    if !file.has(File::NODES) && !file.unknown {
        let hint = "write `nodes: {a: {run: …}, b: {}}` and links between them";
        from.mistake_with_hint(SourceLocation::START, "this scenario lacks `nodes`", hint);
    }
    from.read(file, File::NODES).flatten().unwrap_or_default()
}

/// A map of nodes by name.
struct NodeMapForm;

impl ValueForm for NodeMapForm {
    type Value = Vec<NodeDraft>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<NodeDraft>> {
        let entries = from.map(field, "a map of names and nodes")?;
        if entries.all().next().is_none() {
            from.mistake(field.wrong(), "`nodes` is empty: there is nothing to run");
        }
        Some(entries.all().filter_map(|node| Node::read(from, node)).collect())
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let node = Node::schema(definitions);
        json!({"type": "object", "additionalProperties": {"anyOf": [node, {"type": "null"}]}})
    }
}

form! {
    /// `defaults.link`.
    LinkDefaults: LinkKeys, by read_link_defaults, like Both::schema
}

fn read_link_defaults(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LinkKeys> {
    read_both(from, field, "the defaults of links")
}

form! {
    /// `defaults.node`.
    DefaultsOfNodes: NodeKeys, by read_defaults_of_nodes, like NodeDefaults::definition
}

fn read_defaults_of_nodes(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<NodeKeys> {
    read_defaults(from, field)
}

fn read_both_defaults(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<(LinkKeys, NodeKeys)> {
    let fields = from.table::<Defaults>(field, "the defaults")?;
    let link = from.read(&fields, Defaults::LINK).flatten().unwrap_or_default();
    let node = from.read(&fields, Defaults::NODE).flatten().unwrap_or_default();
    Some((link, node))
}

form! {
    /// The name of an experiment.
    ExperimentName: String, by read_experiment_name, like text
}

fn read_experiment_name(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<String> {
    let name = from.text(field, "a text")?;
    // It becomes a part of the run folder's name.
    if !windtunnel_model::name::is_experiment(name) {
        let shown = shorten(name);
        let message = format!(
            "name: `{shown}` cannot be part of a folder's name: use letters, digits, `-`, \
             `_`, `.`"
        );
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(name.to_owned())
}

form! {
    /// How long a run lasts.
    Duration: Span, by read_duration, like Span::schema
}

fn read_duration(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Span> {
    let duration = Span::read(from, field)?;
    if duration == Span::ZERO {
        from.mistake(field.wrong(), "duration: a run of no time shows nothing");
        return None;
    }
    Some(duration)
}
