//! The mappings of NATs in a table.

use windtunnel_control::NatStatus;

use crate::render::table::{ColumnAlignment, TextTable};

/// The mappings of all NATs, some of each.
pub(super) fn render(nats: &[NatStatus]) -> String {
    let mut table = TextTable::new(&[
        ("nat", ColumnAlignment::Left),
        ("type", ColumnAlignment::Left),
        ("protocol", ColumnAlignment::Left),
        ("inside", ColumnAlignment::Left),
        ("outside", ColumnAlignment::Left),
        ("remote", ColumnAlignment::Left),
        ("out", ColumnAlignment::Right),
        ("in", ColumnAlignment::Right),
    ]);
    for nat in nats {
        if nat.mappings.is_empty() {
            table.row([nat.router.clone(), nat.r#type.to_string()]);
        }
        for (position, mapping) in nat.mappings.iter().take(SHOWN_MAX).enumerate() {
            let first = |text: &str| if position == 0 { text.to_owned() } else { String::new() };
            let any = || if mapping.forwarded { "forwarded" } else { "any" }.to_owned();
            table.row([
                first(&nat.router),
                first(nat.r#type.as_str()),
                mapping.protocol.to_string(),
                mapping.internal.clone(),
                mapping.external.clone(),
                mapping.remote.clone().unwrap_or_else(any),
                mapping.outbound.to_string(),
                mapping.inbound.to_string(),
            ]);
        }
    }
    let mut text = table.render("");
    for nat in nats {
        let shown = nat.mappings.len().min(SHOWN_MAX);
        let more = nat.mappings_held.saturating_sub(shown.try_into().unwrap_or(u64::MAX));
        if more > 0 {
            text += &format!("{} has {more} mappings more\n", nat.router);
        }
    }
    text
}

/// Mappings of each NAT; with `--json` there are a thousand.
const SHOWN_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use windtunnel_control::NatMapping;

    use super::*;

    #[test]
    fn mappings_stand_below_their_nat() {
        let mapping = |port: u16, remote: Option<&str>| NatMapping {
            protocol: "udp".into(),
            internal: "10.0.0.1:5000".to_owned(),
            external: format!("10.0.0.9:{port}"),
            remote: remote.map(str::to_owned),
            outbound: 3,
            ..NatMapping::default()
        };
        let nat = NatStatus {
            router: "home".to_owned(),
            r#type: "symmetric".into(),
            mappings_held: 3,
            mappings: vec![mapping(7, Some("10.0.0.3:53")), mapping(8, None)],
            ..NatStatus::default()
        };
        let text = render(&[nat]);
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines[1..],
            [
                [
                    "home",
                    "symmetric",
                    "udp",
                    "10.0.0.1:5000",
                    "10.0.0.9:7",
                    "10.0.0.3:53",
                    "3",
                    "0"
                ]
                .to_vec(),
                ["udp", "10.0.0.1:5000", "10.0.0.9:8", "any", "3", "0"].to_vec(),
                ["home", "has", "1", "mappings", "more"].to_vec(),
            ]
        );
    }
}
