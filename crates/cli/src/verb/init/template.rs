//! The common cases that a first file can be about.

use clap::ValueEnum;

/// A case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScenarioTemplate {
    /// A server, a client and the network between them
    ClientServer,
    /// A service in Europe, America and Asia
    ThreeRegions,
    /// A phone on LTE, on 3G and without signal
    Mobile,
    /// Five machines on a switch, a partition and a crash
    Cluster,
    /// A ship behind satellites
    Satellite,
    /// One address, and the nearest of several servers
    Cdn,
    /// Peers behind NATs that find each other
    P2p,
    /// A consensus group over three sites, and its faults
    Raft,
    /// A wireless link with bursts of loss
    LossyWifi,
    /// Racks below two spines, with ways of equal cost
    DataCenter,
}

impl ScenarioTemplate {
    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        self.parts().0
    }

    /// The file's text. Its first line leads editors to the schema, where there is one.
    pub(super) fn text(self, schema: Option<&str>) -> String {
        let line = schema.map(|name| format!("# yaml-language-server: $schema={name}\n"));
        format!("{}{}", line.unwrap_or_default(), self.parts().1)
    }

    fn parts(self) -> (&'static str, &'static str) {
        match self {
            ScenarioTemplate::ClientServer => {
                ("client-server", include_str!("../../../templates/client-server.yaml"))
            }
            ScenarioTemplate::ThreeRegions => {
                ("three-regions", include_str!("../../../templates/three-regions.yaml"))
            }
            ScenarioTemplate::Mobile => ("mobile", include_str!("../../../templates/mobile.yaml")),
            ScenarioTemplate::Cluster => {
                ("cluster", include_str!("../../../templates/cluster.yaml"))
            }
            ScenarioTemplate::Satellite => {
                ("satellite", include_str!("../../../templates/satellite.yaml"))
            }
            ScenarioTemplate::Cdn => ("cdn", include_str!("../../../templates/cdn.yaml")),
            ScenarioTemplate::P2p => ("p2p", include_str!("../../../templates/p2p.yaml")),
            ScenarioTemplate::Raft => ("raft", include_str!("../../../templates/raft.yaml")),
            ScenarioTemplate::LossyWifi => {
                ("lossy-wifi", include_str!("../../../templates/lossy-wifi.yaml"))
            }
            ScenarioTemplate::DataCenter => {
                ("data-center", include_str!("../../../templates/data-center.yaml"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_is_a_valid_file_named_as_on_the_command_line() {
        for template in ScenarioTemplate::value_variants() {
            let name = template.to_possible_value().unwrap().get_name().to_owned();
            assert_eq!(template.name(), name);
            let text = template.text(Some("s.json"));
            assert!(text.starts_with("# yaml-language-server: $schema=s.json\n# "), "{name}");
            let text = text.as_bytes();
            let source = windtunnel_scenario::ScenarioSource {
                name: &name,
                text,
                default_name: &name,
                base_dir: "/",
            };
            let loaded = windtunnel_scenario::load(&source)
                .unwrap_or_else(|mistakes| panic!("{name}: {mistakes:?}"));
            assert!(!loaded.plan.expectations.is_empty(), "{name} says what must hold");
        }
    }
}
