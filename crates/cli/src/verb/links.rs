//! `links`: the links of a live run, and their changes since it began.

use std::collections::BTreeMap;

use serde_json::Value;
use windtunnel_control::{ControlRequest, LaneProperties, LinkList};
use windtunnel_model::Span;
use windtunnel_model::word::LaneOperationalState;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::live::LiveRunSelector;
use crate::output;
use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// List the links of a live run with their properties, and changes since it began
#[derive(Debug, clap::Args)]
pub(crate) struct LinksArguments {
    /// List only link directions that are not as they were when the run began
    #[arg(long, env = "WINDTUNNEL_CHANGED", value_parser = clap::builder::FalseyValueParser::new())]
    changed: bool,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &LinksArguments) -> Outcome {
    let mut list = arguments.live.connect()?.ask(&ControlRequest::links())?;
    if arguments.changed {
        list.links.retain(is_changed);
    }
    if arguments.format.json {
        output::json(&list)?;
    } else {
        output::data(&render(&list))?;
    }
    Ok(ExitCategory::Fine.code())
}

fn is_changed(lane: &LaneProperties) -> bool {
    lane.state != LaneOperationalState::Up || !lane.changed_from.is_empty()
}

fn render(list: &LinkList) -> String {
    let mut table = TextTable::new(&[
        ("link", ColumnAlignment::Left),
        ("direction", ColumnAlignment::Left),
        ("state", ColumnAlignment::Left),
        ("properties", ColumnAlignment::Left),
        ("at the beginning", ColumnAlignment::Left),
    ]);
    for lane in &list.links {
        table.row([
            lane.link.clone(),
            lane.direction.clone(),
            lane.state.to_string(),
            text(&lane.properties, says_something),
            text(&lane.changed_from, |_| true),
        ]);
    }
    let elapsed = quantity::span(Span::from_nanos(list.elapsed_ns));
    format!("{}, {elapsed} after it began\n{}", list.name, table.render(""))
}

fn text(properties: &BTreeMap<String, Value>, shown: impl Fn(&Value) -> bool) -> String {
    let shown = properties.iter().filter(|(_, value)| shown(value));
    shown.map(|(key, value)| format!("{key}={}", word(value))).collect::<Vec<_>>().join(" ")
}

/// Absent and zero properties are left out.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !NOTHING.contains(&text.as_str()),
        Value::Object(parts) => parts.values().any(is_more_than_a_name),
        _ => true,
    }
}

/// A part of a property that is not only the name of a shape.
fn is_more_than_a_name(value: &Value) -> bool {
    says_something(value)
        && value.as_str().is_none_or(|text| text.starts_with(|c: char| c.is_ascii_digit()))
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

const NOTHING: [&str; 3] = ["0ns", "0%", "none"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lane(direction: &str, properties: Value, changed_from: Value) -> LaneProperties {
        LaneProperties {
            link: "a--b".into(),
            direction: direction.into(),
            state: "up".into(),
            properties: serde_json::from_value(properties).unwrap(),
            changed_from: serde_json::from_value(changed_from).unwrap(),
        }
    }

    #[test]
    fn properties_are_listed_without_those_that_do_nothing_and_changes_with_former_values() {
        let jitter = json!({"spread": "0ns", "distribution": "uniform"});
        let all =
            json!({"latency": "40ms", "jitter": jitter, "loss": "none", "mtu": 1500, "rate": null});
        let list = LinkList {
            name: "demo".into(),
            elapsed_ns: 1_500_000_000,
            links: vec![
                lane("a-b", all, json!({"latency": "5ms", "rate": null})),
                lane("b-a", json!({"latency": "5ms", "duplicate": "0%"}), json!({})),
            ],
        };
        assert_eq!(
            render(&list),
            "demo, 1.5s after it began\n\
             link  direction  state  properties             at the beginning\n\
             a--b  a-b        up     latency=40ms mtu=1500  latency=5ms rate=none\n\
             a--b  b-a        up     latency=5ms\n"
        );
    }

    #[test]
    fn a_direction_that_is_down_or_has_another_property_is_changed() {
        let same = lane("a-b", json!({"latency": "5ms"}), json!({}));
        assert!(!is_changed(&same));
        assert!(is_changed(&LaneProperties { state: "down".into(), ..same }));
        assert!(is_changed(&lane("a-b", json!({"latency": "5ms"}), json!({"latency": "1ms"}))));
    }
}
