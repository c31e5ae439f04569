//! Arrows between rooms, from the Cargo.toml files.

/// The pure rooms.
const RING_0: [&str; 15] = [
    "model",
    "wire",
    "nat",
    "routing",
    "scenario",
    "engine",
    "failover",
    "sharing",
    "budget",
    "mesh",
    "placement",
    "trace",
    "evidence",
    "topology",
    "plot",
];

/// The rooms that know Linux; they may use ring 0 and each other.
const RING_1: [&str; 18] = [
    "sys",
    "folder",
    "tunnel",
    "gateway",
    "image",
    "registry",
    "node",
    "notification",
    "record",
    "limit",
    "dataplane",
    "verdict",
    "outside",
    "resource",
    "host",
    "control",
    "cluster",
    "lead",
];

/// Crates from outside that ring 0 may use: values and texts only, nothing that reaches the system.
const PURE: [&str; 22] = [
    "serde",
    "serde_json",
    "thiserror",
    "sha2",
    "regex",
    "saphyr-parser",
    "roxmltree",
    "deunicode",
    "shell-words",
    "strsim",
    "hdrhistogram",
    "libm",
    "once_cell",
    "static_assertions",
    "foca",
    "bytes",
    "rand_core",
    "miniz_oxide",
    "crc32fast",
    "pdf-writer",
    "tiny-skia",
    "ttf-parser",
];

/// Rooms of ring 0 that are built without the standard library: a clock, a file, a thread or
/// entropy does not resolve there. The others parse or write texts with crates that need it.
const NO_STD: [&str; 10] = [
    "model",
    "wire",
    "nat",
    "routing",
    "engine",
    "failover",
    "sharing",
    "mesh",
    "placement",
    "budget",
];

/// Finds rooms of [`NO_STD`] that let the standard library in: the crate's page has to refuse it,
/// and no file may bring it back.
pub(super) fn check_std(name: &str, text: &str, faults: &mut Vec<String>) {
    let Some((room, file)) = name.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
    else {
        return;
    };
    if !NO_STD.contains(&room) {
        return;
    }
    let refuses = |line: &str| line.starts_with("#![cfg_attr(not(") && line.ends_with("no_std)]");
    if file == "lib.rs" && !text.lines().any(refuses) {
        faults.push(format!("{name}: {room} is built without the standard library (no_std)"));
    }
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("extern crate std") {
            faults.push(format!("{name}:{}: {room} may not link the standard library", index + 1));
        }
    }
}

/// Finds arrows that point outward.
pub(super) fn check(name: &str, text: &str, faults: &mut Vec<String>) {
    let Some(room) = name.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml"))
    else {
        return;
    };
    for (line, dependency) in dependencies(text) {
        let inside = dependency.strip_prefix("windtunnel-");
        let allowed = match (inside, RING_0.contains(&room), RING_1.contains(&room)) {
            (Some(other), true, _) => RING_0.contains(&other),
            (Some(other), _, true) => RING_0.contains(&other) || RING_1.contains(&other),
            (None, true, _) => PURE.contains(&dependency),
            _ => true,
        };
        if !allowed {
            faults.push(format!("{name}:{line}: {room} may not depend on {dependency}"));
        }
    }
}

/// Names below `[dependencies]` and `[target.….dependencies]`, with their lines. Those of tests
/// alone are free.
fn dependencies(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut inside) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = table == "dependencies" || table.ends_with(".dependencies");
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            found.push((index + 1, &line[..end]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(room: &str, dependencies: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let text = format!("[package]\nname = \"x\"\n\n[dependencies]\n{dependencies}\n");
        check(&format!("crates/{room}/Cargo.toml"), &text, &mut faults);
        faults
    }

    #[test]
    fn arrows_point_inward_only() {
        assert!(faults_of("engine", "windtunnel-model.workspace = true").is_empty());
        assert_eq!(
            faults_of("engine", "serde.workspace = true\nwindtunnel-sys.workspace = true"),
            ["crates/engine/Cargo.toml:6: engine may not depend on windtunnel-sys"]
        );
        assert_eq!(faults_of("wire", "rustix = \"1\"").len(), 1);
        assert_eq!(faults_of("wire", "windtunnel-simlab.workspace = true").len(), 1);
        assert_eq!(faults_of("host", "windtunnel-cli.workspace = true").len(), 1);
        assert!(faults_of("cli", "windtunnel-host.workspace = true").is_empty());
    }

    #[test]
    fn pure_rooms_refuse_the_standard_library_and_do_not_bring_it_back() {
        let faults_of = |name: &str, text: &str| {
            let mut faults = Vec::new();
            check_std(name, text, &mut faults);
            faults.len()
        };
        let refuses = "#![cfg_attr(not(test), no_std)]\n";
        assert_eq!(faults_of("crates/engine/src/lib.rs", refuses), 0);
        assert_eq!(faults_of("crates/engine/src/lib.rs", "mod a;\n"), 1);
        assert_eq!(faults_of("crates/engine/src/a.rs", "extern crate std;\n"), 1);
        assert_eq!(faults_of("crates/host/src/lib.rs", "mod a;\n"), 0);
    }

    #[test]
    fn dependencies_of_tests_alone_are_free() {
        assert!(faults_of("wire", "\n[dev-dependencies]\nproptest = \"1\"").is_empty());
    }
}
