//! Routes that are fixed, and how the others are found.

use serde_json::{Value as Json, json};
use windtunnel_model::Span;
use windtunnel_model::plan::{Routing, RoutingMetric};

use crate::grammar::{
    Decoder, Fields, ListElement, Name, NameListForm, SchemaAlternative, SchemaDefinitions,
    ValueForm, YamlMapEntry, form, map, texts, words,
};
use crate::position::{LocatedValue, SourceLocation};
use crate::tree::YamlValueKind;

/// A route that is fixed.
#[derive(Debug)]
pub(crate) struct RouteDraft {
    pub(crate) place: SourceLocation,
    pub(crate) way: WayDraft,
    pub(crate) one_way: bool,
}

/// Which way it is.
#[derive(Debug)]
pub(crate) enum WayDraft {
    /// Every vertex of it.
    Path(Vec<LocatedValue<String>>),
    /// The shortest from one to the next: two ends and those between.
    Via { from: LocatedValue<String>, to: LocatedValue<String>, via: Vec<LocatedValue<String>> },
    /// Between these ends none is fixed any longer.
    Shortest { from: LocatedValue<String>, to: LocatedValue<String> },
}

words! {
    /// What a shortest route minimises.
    Metric: RoutingMetric {
        /// The sum of latencies; ties go to fewer hops, then to the link named first.
        "latency" => RoutingMetric::Latency,
        /// The number of links; a LAN counts as one.
        "hops" => RoutingMetric::Hops,
    }
}

map! {
    /// How routers find their ways.
    RoutingForm {
        /// What a shortest route minimises; default latency.
        "metric" METRIC: Metric,
        /// Whether a router spreads flows over all its shortest ways, each flow on one of them,
        /// instead of using the first; default false. Nodes, also those that forward, use one.
        "ecmp" ECMP: bool,
        /// Computes the shortest routes again so long after a link went down or up, a partition or
        /// its end; default `never`. Fixed routes stay.
        "reroute" REROUTE: TimeOrNever,
    }
}

impl ValueForm for Routing {
    type Value = Routing;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Routing> {
        if !matches!(field.value.kind, YamlValueKind::Map(_)) {
            return Some(Metric::read(from, field)?.into());
        }
        let fields = from.table::<RoutingForm>(field, "the routing")?;
        let default = Routing::default();
        Some(Routing {
            metric: from.read_or(&fields, RoutingForm::METRIC, default.metric)?,
            ecmp: from.read_or(&fields, RoutingForm::ECMP, default.ecmp)?,
            reroute: from.read_or(&fields, RoutingForm::REROUTE, default.reroute)?,
        })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Routing",
            "How routers find their ways.",
            &[
                SchemaAlternative("What a shortest route minimises.", Metric::schema),
                SchemaAlternative("All of it.", RoutingForm::definition),
            ],
        )
    }
}

/// A time, or `never`.
struct TimeOrNever;

impl ValueForm for TimeOrNever {
    type Value = Option<Span>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Option<Span>> {
        match field.scalar() {
            Some("never") => Some(None),
            _ => from.quantity(field, "a time such as 200ms, or `never`").map(Some),
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let pattern = r"^(never|[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h))$";
        definitions.text("TimeOrNever", "A time with a unit, or `never`.", pattern, "200ms")
    }
}

map! {
    /// A route to use instead of the shortest: a whole `path`, or two ends (`from`, `to`) and what
    /// to pass on the shortest way in between (`via`).
    Route, RouteDraft, by read_fixed {
        /// The way from node to node, each neighbours joined by a link (the shortest if there are
        /// several). An end may be a group: its members all have such a route.
        "path" PATH: RoutePathForm,
        /// Where it begins: a node or group.
        "from" FROM: Name,
        /// Where it ends: a node or group.
        "to" TO: Name,
        /// A router or forwarding node, or several in order, that the route passes; shortest ways,
        /// as they are at the start, lead from one to the next. In an event also `shortest`: the
        /// route is no longer fixed.
        "via" VIA: Via,
        /// Whether the way back is left as it is; default false: it is the same way.
        "one-way" ONE_WAY: bool,
    }
}

impl ListElement for Route {
    const LIST: &'static str = "a list of routes";
}

/// The names of all vertices of a route.
struct RoutePathForm;

impl ValueForm for RoutePathForm {
    type Value = Vec<LocatedValue<String>>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<LocatedValue<String>>> {
        let items = from.list(field, "a list of names from node to node")?;
        items.map(|item| Name::read(from, item)).collect()
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let mut schema = texts(definitions);
        schema["minItems"] = json!(2);
        schema
    }
}

form! {
    /// What a route passes; nothing where it is the shortest.
    Via: Option<Vec<LocatedValue<String>>>, by read_via_form, like NameListForm::schema
}

fn read_via_form(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Option<Vec<LocatedValue<String>>>> {
    if field.scalar() == Some("shortest") {
        return Some(None);
    }
    from.names(field, "a router's name, a list of them, or `shortest`").map(Some)
}

/// An item of `routes`.
fn read_fixed(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RouteDraft> {
    let route = read_route(from, field)?;
    if let WayDraft::Shortest { .. } = route.way {
        let hint = "leave the route out; `via: shortest` is for events";
        from.mistake_with_hint(route.place, "a route that is the shortest anyway", hint);
        return None;
    }
    Some(route)
}

/// `route` of an event: a list of names, or a map.
pub(super) struct EventRoute;

impl ValueForm for EventRoute {
    type Value = RouteDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RouteDraft> {
        match &field.value.kind {
            YamlValueKind::List(_) => {
                let way = WayDraft::Path(RoutePathForm::read(from, field)?);
                Some(RouteDraft { place: field.place, way, one_way: false })
            }
            YamlValueKind::Map(_) => read_route(from, field),
            _ => from.wrong_type(field, "a list of names from node to node, or a map"),
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "EventRoute",
            "The route that an event fixes.",
            &[
                SchemaAlternative("The way from node to node and back.", RoutePathForm::schema),
                SchemaAlternative("All of it.", Route::definition),
            ],
        )
    }
}

fn read_route(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RouteDraft> {
    let fields = from.table::<Route>(field, "a route")?;
    let one_way = from.read_or(&fields, Route::ONE_WAY, false)?;
    let place = fields.place;
    let Some(path) = fields.get(Route::PATH) else {
        return Some(RouteDraft { place, way: read_via(from, &fields)?, one_way });
    };
    let ends = [fields.get(Route::FROM), fields.get(Route::TO), fields.get(Route::VIA)];
    if let Some(stray) = ends.into_iter().flatten().next() {
        let message = format!("`{}` does not go with `path`", stray.key);
        let hint = "write all names in `path`, or `from`, `to` and `via` without it";
        from.mistake_with_hint(stray.place, message, hint);
        return None;
    }
    Some(RouteDraft { place, way: WayDraft::Path(RoutePathForm::read(from, path)?), one_way })
}

fn read_via(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<WayDraft> {
    if !fields.has(Route::FROM) && !fields.has(Route::TO) && !fields.has(Route::VIA) {
        if !fields.unknown {
            let hint = "write `path: [a, r, b]`, or `from: a`, `to: b` and `via: r`";
            from.mistake_with_hint(fields.place, "this route lacks `path`", hint);
        }
        return None;
    }
    let start = from.need(fields, Route::FROM, "this route");
    let end = from.need(fields, Route::TO, "this route");
    let via = from.need(fields, Route::VIA, "this route");
    let (from_name, to) = (start?, end?);
    match via? {
        None => Some(WayDraft::Shortest { from: from_name, to }),
        Some(via) if via.is_empty() => {
            from.mistake(fields.place, "this route passes nothing: `via` is empty");
            None
        }
        Some(via) => Some(WayDraft::Via { from: from_name, to, via }),
    }
}
