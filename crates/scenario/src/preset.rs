//! Access links by name. This table is the only place where their values are; docs/presets.md is
//! checked against it.

use windtunnel_model::profile::{
    Jitter, JitterDistribution, LossModel, PropertySetting, QueueLimit,
};
use windtunnel_model::{Bytes, LinkPatch, Packets, Span};

/// A kind of access link.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessLinkPreset {
    /// Its name in the file.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// From the first end of `between` to the second, and back: where the first is the user's end,
    /// up is what the user sends.
    pub lanes: [PresetLane; 2],
    /// Where the values are from; Markdown.
    pub source: &'static str,
}

/// One direction of it, in the file's own words.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PresetLane {
    /// `latency`.
    pub latency: &'static str,
    /// `jitter`, uniform.
    pub jitter: &'static str,
    /// `loss`.
    pub loss: &'static str,
    /// `rate`.
    pub rate: &'static str,
    /// `queue`.
    pub queue: &'static str,
}

/// All presets, by name.
#[must_use]
pub fn presets() -> &'static [AccessLinkPreset] {
    PRESETS
}

impl AccessLinkPreset {
    /// Names and presets, as the decoder chooses from them.
    pub(crate) fn choices() -> Vec<(&'static str, &'static AccessLinkPreset)> {
        PRESETS.iter().map(|preset| (preset.name, preset)).collect()
    }

    /// What it sets in a direction.
    pub(crate) fn patch(&self, direction: usize) -> LinkPatch {
        let lane = &self.lanes[direction];
        let spread = lane.jitter.parse().ok();
        let loss = lane.loss.parse().ok();
        LinkPatch {
            latency: lane.latency.parse().ok(),
            jitter: spread
                .map(|spread| Jitter { spread, distribution: JitterDistribution::Uniform }),
            loss: Some(loss.map_or(LossModel::None, LossModel::Independent)),
            rate: lane.rate.parse().ok().map(PropertySetting::To),
            queue: Some(
                parse_queue(lane.queue).map_or(PropertySetting::Default, PropertySetting::To),
            ),
            ..LinkPatch::default()
        }
    }
}

/// A queue's limit, if `text` is one.
fn parse_queue(text: &str) -> Option<QueueLimit> {
    if let Ok(packets) = text.parse::<Packets>() {
        return Some(QueueLimit::Packets(packets));
    }
    let bytes = text.parse::<Bytes>().map(QueueLimit::Bytes);
    bytes.or_else(|_| text.parse::<Span>().map(QueueLimit::Time)).ok()
}

/// Both directions of a line: latency and queue are alike, rates are not.
const fn line(
    latency: &'static str,
    [up, down]: [&'static str; 2],
    queue: &'static str,
) -> [PresetLane; 2] {
    [lane(latency, "0ms", "none", up, queue), lane(latency, "0ms", "none", down, queue)]
}

const fn lane(
    latency: &'static str,
    jitter: &'static str,
    loss: &'static str,
    rate: &'static str,
    queue: &'static str,
) -> PresetLane {
    PresetLane { latency, jitter, loss, rate, queue }
}

const PRESETS: &[AccessLinkPreset] = &[
    AccessLinkPreset {
        name: "3g",
        about: "a phone on a third-generation mobile network",
        lanes: [
            lane("150ms", "50ms", "0.5%", "768kbit", "1s"),
            lane("150ms", "50ms", "0.5%", "1.6mbit", "1s"),
        ],
        source: "Rates and round trip (300 ms, halved): WebPageTest, `connectivity.ini.sample`, profile \
                 `3G`. Jitter and loss: Loadero, *Network conditions*, mode 3G (50 ms, 0.5 %).",
    },
    AccessLinkPreset {
        name: "cable",
        about: "a cable modem of a home",
        lanes: line("14ms", ["1mbit", "5mbit"], "250ms"),
        source: "WebPageTest, `connectivity.ini.sample`, profile `Cable`: 5/1 Mbit/s, round trip 28 ms, \
                 no loss.",
    },
    AccessLinkPreset {
        name: "dsl",
        about: "a telephone line of a home",
        lanes: line("25ms", ["384kbit", "1.5mbit"], "250ms"),
        source: "WebPageTest, `connectivity.ini.sample`, profile `DSL`: 1.5 Mbit/s and 384 kbit/s, round \
                 trip 50 ms, no loss.",
    },
    AccessLinkPreset {
        name: "fiber",
        about: "a fibre to a home",
        lanes: line("2ms", ["5mbit", "20mbit"], "250ms"),
        source: "WebPageTest, `connectivity.ini.sample`, profile `FIOS`: 20/5 Mbit/s, round trip 4 ms, \
                 no loss. Many fibres are faster today: write a `rate` beside the preset.",
    },
    AccessLinkPreset {
        name: "geo",
        about: "a geostationary satellite",
        lanes: line("300ms", ["10mbit", "100mbit"], "500ms"),
        source: "Rates: the 100/10 Mbit/s subscription that F. Michel et al. measured beside Starlink (*A \
                 First Look at Starlink Performance*, IMC 2022; APNIC blog, 28 November 2022). Latency: \
                 half of the 600 ms that the paper names as the least round trip of such links. Of each \
                 300 ms, 2 × 35 786 km / 299 792 km/s = 239 ms are the way up and down again; the rest is \
                 slant, access to the shared channel and coding.",
    },
    AccessLinkPreset {
        name: "lan",
        about: "a wired network in a house",
        lanes: line("50us", ["1gbit", "1gbit"], "default"),
        source: "IEEE 802.3ab (1999), 1000BASE-T. Latency: computed. A switch that stores and forwards \
                 a full frame takes 1538 × 8 bit / 1 Gbit/s = 12.3 µs, 2 × 100 m of cable at 5 ns/m 1 µs; \
                 with some 35 µs for interrupts and drivers of the two hosts 50 µs.",
    },
    AccessLinkPreset {
        name: "leo",
        about: "satellites in low orbits",
        lanes: [
            lane("20ms", "10ms", "0.4%", "17mbit", "100ms"),
            lane("20ms", "10ms", "0.4%", "178mbit", "100ms"),
        ],
        source: "F. Michel et al., *A First Look at Starlink Performance*, IMC 2022 (Belgium; APNIC blog, \
                 28 November 2022): median rates; round trips to European servers with quartiles 40 and \
                 60 ms and median 50 ms, which two ways of 20 ms and 0 to 10 ms more span; losses of \
                 small messages. Handovers every 15 s are not in it: use a `trace`.",
    },
    AccessLinkPreset {
        name: "lte",
        about: "a phone on a fourth-generation mobile network",
        lanes: [
            lane("35ms", "15ms", "0.2%", "12mbit", "500ms"),
            lane("35ms", "5ms", "0.2%", "12mbit", "500ms"),
        ],
        source: "Rates and round trip (70 ms, halved): WebPageTest's profile `LTE` (12/12 Mbit/s). Jitter \
                 and loss: Loadero, *Network conditions*, mode 4G (5 ms down, 15 ms up, 0.2 %). A \
                 recorded link is closer to life: `rate: {trace: …}`.",
    },
    AccessLinkPreset {
        name: "wifi",
        about: "a wireless network in a house",
        lanes: line("1ms", ["33mbit", "40mbit"], "250ms"),
        source: "Apple, Network Link Conditioner (Additional Tools for Xcode), profile `Wi-Fi`: 40/33 \
                 Mbit/s, 1 ms each way, no loss.",
    },
];

#[cfg(test)]
mod tests {
    use windtunnel_model::LinkProfile;

    use super::*;

    #[test]
    fn every_value_of_the_table_can_be_read() {
        for preset in PRESETS {
            for direction in [0, 1] {
                let (lane, patch) = (&preset.lanes[direction], preset.patch(direction));
                assert!(patch.latency.is_some() && patch.jitter.is_some(), "{}", preset.name);
                assert!(patch.rate.is_some(), "{}", preset.name);
                assert_eq!(
                    lane.loss == "none",
                    patch.loss == Some(LossModel::None),
                    "{}",
                    preset.name
                );
                let default = patch.queue == Some(PropertySetting::Default);
                assert_eq!(lane.queue == "default", default, "{}", preset.name);
                let mut profile = LinkProfile::default();
                patch.apply_to(&mut profile);
                assert_eq!(profile.latency.to_string(), lane.latency);
            }
        }
        assert!(PRESETS.is_sorted_by_key(|preset| preset.name));
    }
}
