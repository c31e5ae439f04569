//! The whole file.

use windtunnel_model::Span;
use windtunnel_model::plan::{OnOverload, Routing};

use super::{
    At, EventDraft, ExpectDraft, Field, Fields, LanDraft, LinkDraft, LinkKeys, MachineKeys,
    ModelDraft, NodeDraft, Pools, RouteDraft,
};
use crate::decode::node::NodeKeys;
use crate::error::Findings;
use crate::keys;
use crate::position::Place;
use crate::text::shorten;
use crate::tree::{Kind, Value};

/// The file in its own terms, every single key valid.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) duration: Option<Span>,
    pub(crate) pools: Pools,
    pub(crate) link_defaults: LinkKeys,
    pub(crate) node_defaults: NodeKeys,
    pub(crate) nodes: Vec<NodeDraft>,
    pub(crate) routers: Vec<At<String>>,
    pub(crate) lans: Vec<LanDraft>,
    pub(crate) links: Vec<LinkDraft>,
    pub(crate) routing: Routing,
    pub(crate) routes: Vec<RouteDraft>,
    pub(crate) allow_unreachable: bool,
    pub(crate) on_overload: OnOverload,
    pub(crate) model: ModelDraft,
    pub(crate) machines: MachineKeys,
    pub(crate) events: Vec<EventDraft>,
    pub(crate) expect: Vec<ExpectDraft>,
}

/// The file's own terms; what is wrong goes to `found`, and its part of the draft is missing then.
pub(crate) fn decode_file(found: &mut Findings, root: &Value) -> Draft {
    let field = Field { key: "", place: root.place, value: root };
    if !matches!(root.kind, Kind::Map(_)) {
        found.wrong_type::<()>(field, "the keys of a scenario, such as `nodes:` and `links:`");
        return Draft::default();
    }
    let Some(file) = found.fields(field, "a scenario", keys::FILE) else {
        return Draft::default();
    };
    let mut draft = Draft::default();
    found.head(&file, &mut draft);
    found.network(&file, &mut draft);
    if let Some(field) = file.find("events").filter(Field::is_some) {
        draft.events = found.each(field, "a list of events", Findings::event);
    }
    if let Some(field) = file.find("expect").filter(Field::is_some) {
        draft.expect = found.each(field, "a list of expectations", Findings::expectation);
    }
    draft
}

impl Findings {
    fn head(&mut self, file: &Fields<'_>, draft: &mut Draft) {
        if let Some(field) = file.find("name") {
            draft.name = self.experiment_name(field);
        }
        if let Some(field) = file.find("seed") {
            draft.seed = self.integer(field, 0..=u64::MAX, "a whole number such as 7");
        }
        if let Some(field) = file.find("duration") {
            draft.duration = self.quantity(field, "a time such as 30s");
            if draft.duration == Some(Span::ZERO) {
                self.mistake(field.wrong(), "duration: a run of no time shows nothing");
            }
        }
        if let Some(pools) = self.pools(file) {
            draft.pools = pools;
        }
        if let Some(field) = file.find("defaults").filter(Field::is_some)
            && let Some(fields) = self.fields(field, "the defaults", keys::DEFAULTS)
        {
            if let Some(link) = fields.find("link") {
                draft.link_defaults = self.link_set(link, "the defaults of links");
            }
            if let Some(node) = fields.find("node") {
                draft.node_defaults = self.node_defaults(node);
            }
        }
        if let Some(field) = file.find("routing") {
            draft.routing = self.routing(field).unwrap_or_default();
        }
        if let Some(field) = file.find("on-overload") {
            let choices = [
                ("report", OnOverload::Report),
                ("abort", OnOverload::Abort),
                ("freeze", OnOverload::Freeze),
            ];
            draft.on_overload = self.choice(field, &choices).unwrap_or_default();
        }
        draft.model = self.model(file);
        draft.machines = self.machines(file);
        if let Some(field) = file.find("allow-unreachable") {
            draft.allow_unreachable = self.flag(field).unwrap_or_default();
        }
    }

    fn network(&mut self, file: &Fields<'_>, draft: &mut Draft) {
        match file.find("nodes") {
            Some(field) => {
                if let Some(nodes) = self.map(field, "a map of names and nodes") {
                    draft.nodes = nodes.all().filter_map(|node| self.node(node)).collect();
                    if draft.nodes.is_empty() && nodes.all().next().is_none() {
                        self.mistake(field.wrong(), "`nodes` is empty: there is nothing to run");
                    }
                }
            }
            None if file.unknown => {}
            None => self.mistake_with_hint(
                Place::START,
                "this scenario lacks `nodes`",
                "write `nodes: {a: {run: …}, b: {}}` and links between them",
            ),
        }
        if let Some(field) = file.find("routers").filter(Field::is_some)
            && let Some(items) = self.list(field, "a list of names")
        {
            draft.routers = items.filter_map(|item| self.text_at(item, "a name")).collect();
        }
        if let Some(field) = file.find("lans").filter(Field::is_some) {
            draft.lans = self.lans(field);
        }
        if let Some(field) = file.find("links").filter(Field::is_some) {
            draft.links = self.each(field, "a list of links", Findings::link);
        }
        if let Some(field) = file.find("routes").filter(Field::is_some) {
            draft.routes = self.each(field, "a list of routes", Findings::route);
        }
    }

    fn each<T>(
        &mut self,
        field: Field<'_>,
        needed: &str,
        read: fn(&mut Findings, Field<'_>) -> Option<T>,
    ) -> Vec<T> {
        match self.list(field, needed) {
            Some(items) => items.filter_map(|item| read(self, item)).collect(),
            None => Vec::new(),
        }
    }

    fn experiment_name(&mut self, field: Field<'_>) -> Option<String> {
        let name = self.text(field, "a text")?;
        // It becomes a part of the run folder's name.
        if !windtunnel_model::name::is_experiment(name) {
            let message = format!(
                "name: `{}` cannot be part of a folder's name: use letters, digits, `-`, `_`, `.`",
                shorten(name)
            );
            self.mistake(field.wrong(), message);
            return None;
        }
        Some(name.to_owned())
    }
}
