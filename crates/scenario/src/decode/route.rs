//! `routing`, `routes` and the routes of events.

use windtunnel_model::plan::{Routing, RoutingMetric};

use super::{At, EventKind, Field, Fields};
use crate::error::Findings;
use crate::keys;
use crate::position::Place;
use crate::tree::Kind;

/// A route that is fixed.
#[derive(Debug)]
pub(crate) struct RouteDraft {
    pub(crate) place: Place,
    pub(crate) way: WayDraft,
    pub(crate) one_way: bool,
}

/// Which way it is.
#[derive(Debug)]
pub(crate) enum WayDraft {
    /// Every vertex of it.
    Path(Vec<At<String>>),
    /// The shortest from one to the next: two ends and those between.
    Via { from: At<String>, to: At<String>, via: Vec<At<String>> },
    /// Between these ends none is fixed any longer.
    Shortest { from: At<String>, to: At<String> },
}

const METRICS: [(&str, RoutingMetric); 2] =
    [("latency", RoutingMetric::Latency), ("hops", RoutingMetric::Hops)];

impl Findings {
    /// `routing`: a metric, or a map.
    pub(super) fn routing(&mut self, field: Field<'_>) -> Option<Routing> {
        if !matches!(field.value.kind, Kind::Map(_)) {
            return Some(self.choice(field, &METRICS)?.into());
        }
        let fields = self.fields(field, "the routing", keys::ROUTING)?;
        let mut routing = Routing::default();
        if let Some(field) = fields.find("metric") {
            routing.metric = self.choice(field, &METRICS)?;
        }
        if let Some(field) = fields.find("ecmp") {
            routing.ecmp = self.flag(field)?;
        }
        if let Some(field) = fields.find("reroute").filter(|field| field.scalar() != Some("never"))
        {
            routing.reroute = Some(self.quantity(field, "a time such as 200ms, or `never`")?);
        }
        Some(routing)
    }

    /// An item of `routes`.
    pub(super) fn route(&mut self, field: Field<'_>) -> Option<RouteDraft> {
        let route = self.route_map(field)?;
        if let WayDraft::Shortest { .. } = route.way {
            let hint = "leave the route out; `via: shortest` is for events";
            self.mistake_with_hint(route.place, "a route that is the shortest anyway", hint);
            return None;
        }
        Some(route)
    }

    /// `route` of an event: a list of names, or a map.
    pub(super) fn event_route(&mut self, field: Field<'_>) -> Option<EventKind> {
        let route = match &field.value.kind {
            Kind::List(_) => {
                let way = WayDraft::Path(self.way(field)?);
                RouteDraft { place: field.place, way, one_way: false }
            }
            Kind::Map(_) => self.route_map(field)?,
            _ => return self.wrong_type(field, "a list of names from node to node, or a map"),
        };
        Some(EventKind::Route(route))
    }

    fn route_map(&mut self, field: Field<'_>) -> Option<RouteDraft> {
        let fields = self.fields(field, "a route", keys::ROUTE)?;
        let one_way = match fields.find("one-way") {
            Some(field) => self.flag(field)?,
            None => false,
        };
        let place = fields.place;
        let way = match fields.find("path") {
            Some(path) => {
                let stray = ["from", "to", "via"].into_iter().find_map(|key| fields.find(key));
                if let Some(stray) = stray {
                    let message = format!("`{}` does not go with `path`", stray.key);
                    let hint = "write all names in `path`, or `from`, `to` and `via` without it";
                    self.mistake_with_hint(stray.place, message, hint);
                    return None;
                }
                WayDraft::Path(self.way(path)?)
            }
            None => self.way_via(&fields)?,
        };
        Some(RouteDraft { place, way, one_way })
    }

    fn way(&mut self, path: Field<'_>) -> Option<Vec<At<String>>> {
        let items: Vec<_> = self.list(path, "a list of names from node to node")?.collect();
        items.into_iter().map(|item| self.text_at(item, "a name")).collect()
    }

    fn way_via(&mut self, fields: &Fields<'_>) -> Option<WayDraft> {
        if !["from", "to", "via"].into_iter().any(|key| fields.has(key)) {
            if !fields.unknown {
                let hint = "write `path: [a, r, b]`, or `from: a`, `to: b` and `via: r`";
                self.mistake_with_hint(fields.place, "this route lacks `path`", hint);
            }
            return None;
        }
        let from = self.required(fields, "from", "this route");
        let to = self.required(fields, "to", "this route");
        let via = self.required(fields, "via", "this route");
        let from = self.text_at(from?, "a name")?;
        let to = self.text_at(to?, "a name")?;
        let via = via?;
        if via.scalar() == Some("shortest") {
            return Some(WayDraft::Shortest { from, to });
        }
        let via = self.names(via, "a router's name, a list of them, or `shortest`")?;
        if via.is_empty() {
            self.mistake(fields.place, "this route passes nothing: `via` is empty");
            return None;
        }
        Some(WayDraft::Via { from, to, via })
    }
}
