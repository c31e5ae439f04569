//! Presets and traces as a file uses them, and the page about presets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;

use common::load_text;
use windtunnel_model::plan::EventAction;
use windtunnel_model::profile::{LossModel, PropertySetting, QueueLimit};
use windtunnel_model::trace::TraceContent;
use windtunnel_model::{Plan, Rate, Span, TraceMode};
use windtunnel_scenario::{AccessLinkPreset, presets};

fn plan(links: &str) -> Plan {
    let text = format!("nodes: {{phone: {{}}, tower: {{}}}}\nlinks:\n  - {links}\n");
    load_text("preset", text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}")).plan
}

fn rate(text: &str) -> Option<Rate> {
    Some(text.parse().unwrap())
}

#[test]
fn up_is_from_the_first_end_to_the_second() {
    let plan = plan("{between: [phone, tower], preset: 3g}");
    let [up, down] = &plan.links[0].profiles;
    assert_eq!((up.rate, down.rate), (rate("768kbit"), rate("1.6mbit")));
    assert_eq!((up.latency, down.latency), (Span::from_millis(150), Span::from_millis(150)));
    assert_eq!(up.queue, Some(QueueLimit::Time(Span::from_secs(1))));
    assert_eq!(up.loss, LossModel::Independent("0.5%".parse().unwrap()));
}

#[test]
fn written_keys_override_the_links_preset_which_overrides_the_defaults() {
    let own = plan("{between: [phone, tower], preset: 3g, loss: none, down: {rate: 3mbit}}");
    let [up, down] = &own.links[0].profiles;
    assert_eq!((up.rate, down.rate), (rate("768kbit"), rate("3mbit")));
    assert_eq!((&up.loss, &down.loss), (&LossModel::None, &LossModel::None));
    let both = plan(
        "{between: [phone, tower], preset: cable}\ndefaults: {link: {preset: 3g, latency: 1ms, mtu: 1400}}",
    );
    let up = &both.links[0].profiles[0];
    assert_eq!((up.rate, up.latency, up.mtu), (rate("1mbit"), Span::from_millis(14), 1400));
}

#[test]
fn an_event_sets_each_directions_part_of_a_preset() {
    let plan = plan(
        "{between: [phone, tower], preset: lte}\nevents: [{at: 5s, link: phone--tower, set: {preset: 3g}}]",
    );
    let EventAction::Link(change) = &plan.events[0].action else { panic!("it changes a link") };
    let rates: Vec<_> = change.patches.iter().map(|(_, patch)| patch.rate).collect();
    let to = |text: &str| rate(text).map(PropertySetting::To);
    assert_eq!(rates, [to("768kbit"), to("1.6mbit")]);
}

#[test]
fn a_mahimahi_file_is_in_the_plan_once_and_the_rate_is_its_mean() {
    let plan = plan("{between: [phone, tower], rate: {trace: short.down, offset: 2s}}");
    let [up, down] = &plan.links[0].profiles;
    // Five opportunities of 1500 bytes in 9 ms.
    assert_eq!(up.rate, Rate::from_bits_per_second(5 * 12_000 * 1000 / 9));
    assert_eq!(up, down);
    let following = up.traces.rate.unwrap();
    assert_eq!((following.mode, following.repeat), (TraceMode::Opportunities, true));
    assert_eq!((following.trace, following.offset), (0, Span::from_secs(2)));
    assert_eq!((plan.traces.len(), plan.traces[0].file.as_str()), (1, "short.down"));
    let TraceContent::Opportunities(trace) = &plan.traces[0].content else { panic!("it is one") };
    let instants: Vec<_> = trace.instants().collect();
    assert_eq!(instants, [(0, 1), (3, 1), (5, 2), (9, 1)]);
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains(r#""delta_ms":"0 3 2 4","count":"1 1 2 1""#), "{json}");
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn a_value_of_one_direction_ends_the_trace_of_both_there() {
    let plan = plan("{between: [phone, tower], trace: drive.csv, up: {latency: 5ms}}");
    let [up, down] = &plan.links[0].profiles;
    assert_eq!((up.latency, up.traces.latency), (Span::from_millis(5), None));
    // Held: 10 Mbit/s, 40 ms and 0.1 % for the 2 s that the table lasts.
    assert_eq!((up.rate, down.latency), (rate("10mbit"), Span::from_millis(40)));
    assert!(up.traces.rate.is_some() && up.traces.loss.is_some());
    assert!(down.traces.latency.is_some());
    let plan = self::plan("{between: [phone, tower], trace: {file: drive.csv, mode: interpolate}}");
    let up = &plan.links[0].profiles[0];
    assert_eq!((up.rate, up.latency), (rate("20mbit"), Span::from_millis(50)));
    assert_eq!(up.loss, LossModel::Independent("0.05%".parse().unwrap()));
}

#[test]
fn links_with_presets_or_traces_are_described() {
    let text = "nodes: {a: {}, b: {}, c: {}}\nlinks:\n  - {between: [a, b], preset: lan}\n  - {between: [b, c]}\n  - {between: [a, c], trace: drive.csv}\n";
    let loaded =
        load_text("described", text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}"));
    let described: Vec<(u32, &str)> =
        loaded.described.iter().map(|(link, from)| (link.0, from.as_str())).collect();
    assert_eq!(described, [(0, "preset lan"), (2, "trace")]);
}

/// `BLESS=1` writes the table anew.
#[test]
fn the_page_about_presets_says_what_the_table_says() {
    let path = format!("{}/../../docs/presets.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).expect("the page");
    let start = page.find("| preset |").expect("it has a table");
    let end = start + page[start..].find("\n\n").expect("and text after it") + 1;
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{}{}{}", &page[..start], table(), &page[end..])).unwrap();
    } else {
        assert_eq!(page[start..end], table());
    }
    let text = words(&page);
    for AccessLinkPreset { name, about, source, .. } in presets() {
        let said = words(&format!("**{name}**: {about}. {source}"));
        assert!(text.contains(&said), "docs/presets.md does not say: {said}");
    }
}

fn table() -> String {
    let mut table =
        String::from("| preset | direction | latency | jitter | loss | rate | queue |\n");
    table.push_str("| -- | -- | -- | -- | -- | -- | -- |\n");
    for preset in presets() {
        for (lane, direction) in preset.lanes.iter().zip(["up", "down"]) {
            let name = if direction == "up" { format!(" `{}` ", preset.name) } else { "  ".into() };
            table.push_str(&format!(
                "|{name}| {direction} | {} | {} | {} | {} | {} |\n",
                lane.latency, lane.jitter, lane.loss, lane.rate, lane.queue
            ));
        }
    }
    table
}

/// Without line breaks, which are the formatter's.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
