//! Licences and sources of dependencies, against deny.toml: the checks of cargo-deny that need
//! nothing but cargo. Whether every package builds with our oldest Rust, and how many there may be.

mod budget;
mod licence;

use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Every package of the dependency tree that deny.toml does not let in, and each budget that is exceeded.
///
/// # Errors
/// If deny.toml cannot be read, or cargo does not print the tree.
pub fn faults(root: &Path) -> io::Result<Vec<String>> {
    let policy = LicencePolicy::read(&std::fs::read_to_string(root.join("deny.toml"))?);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("cargo metadata: {text}")));
    }
    let tree: Value = serde_json::from_slice(&output.stdout)?;
    let packages = tree["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = packages.iter().find(|package| package["source"].is_null());
    let oldest = ours.map_or((0, 0), rust_version);
    let mut faults: Vec<String> =
        packages.iter().filter_map(|package| policy.fault(package)).collect();
    faults.extend(packages.iter().filter_map(|package| too_new(package, oldest)));
    let of_others = packages.iter().filter(|package| !package["source"].is_null()).count();
    faults.extend(budget::faults(root, of_others)?);
    Ok(faults)
}

/// Why a package cannot be built with our oldest Rust.
fn too_new(package: &Value, oldest: (u64, u64)) -> Option<String> {
    let (major, minor) = rust_version(package);
    ((major, minor) > oldest).then(|| {
        let name = package["name"].as_str().unwrap_or_default();
        format!("{name}: needs Rust {major}.{minor}, and ours is {}.{}", oldest.0, oldest.1)
    })
}

/// `rust-version` of a manifest; the first Rust for one that does not say.
fn rust_version(package: &Value) -> (u64, u64) {
    let text = package["rust_version"].as_str().unwrap_or_default();
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The lists of allowed licences in deny.toml.
#[derive(Debug, Default, PartialEq, Eq)]
struct LicencePolicy {
    licences: Vec<String>,
    /// Packages with licences of their own.
    exceptions: Vec<(String, Vec<String>)>,
}

impl LicencePolicy {
    /// Reads the two keys of `[licenses]`, each of which is on one line.
    fn read(text: &str) -> Self {
        let mut policy = LicencePolicy::default();
        for line in text.lines() {
            if let Some(list) = line.strip_prefix("allow = ") {
                policy.licences = quoted(list);
            } else if let Some(list) = line.strip_prefix("exceptions = ") {
                let tables = list.split('{').skip(1).map(quoted);
                policy.exceptions = tables
                    .filter_map(|words| {
                        let (name, licences) = words.split_first()?;
                        Some((name.clone(), licences.to_vec()))
                    })
                    .collect();
            }
        }
        policy
    }

    /// Why a package may not be in the tree.
    fn fault(&self, package: &Value) -> Option<String> {
        let name = package["name"].as_str().unwrap_or_default();
        match package["source"].as_str() {
            None => return None,
            Some(source) if source.starts_with("registry+") => {}
            Some(source) => return Some(format!("{name}: comes from {source}, not a registry")),
        }
        let own = self.exceptions.iter().filter(|(crate_name, _)| crate_name == name);
        let allowed: Vec<&str> = own
            .flat_map(|(_, licences)| licences)
            .chain(&self.licences)
            .map(String::as_str)
            .collect();
        match package["license"].as_str() {
            None => Some(format!("{name}: has no licence in its manifest")),
            Some(licence) if licence::is_met(licence, &allowed) => None,
            Some(licence) => Some(format!("{name}: deny.toml does not allow `{licence}`")),
        }
    }
}

/// The texts between quotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = "[licenses]
allow = [\"MIT\", \"ISC\"]
exceptions = [{ crate = \"foca\", allow = [\"MPL-2.0\"] }]
";

    fn fault(name: &str, source: Option<&str>, licence: Option<&str>) -> Option<String> {
        let package = serde_json::json!({"name": name, "source": source, "license": licence});
        LicencePolicy::read(DENY).fault(&package)
    }

    #[test]
    fn a_package_has_an_allowed_licence_or_one_of_its_own() {
        let registry = Some("registry+x");
        assert_eq!(fault("a", registry, Some("MIT OR GPL-3.0")), None);
        assert_eq!(fault("foca", registry, Some("MPL-2.0")), None);
        let other = "a: deny.toml does not allow `MPL-2.0`";
        assert_eq!(fault("a", registry, Some("MPL-2.0")).as_deref(), Some(other));
        assert!(fault("a", registry, None).is_some());
    }

    #[test]
    fn a_package_that_needs_a_newer_rust_is_found() {
        let package = |version| serde_json::json!({"name": "a", "rust_version": version});
        assert_eq!(too_new(&package(Some("1.89.0")), (1, 89)), None);
        assert_eq!(too_new(&package(Some("1.9")), (1, 89)), None);
        assert_eq!(too_new(&package(None), (1, 89)), None);
        let newer = too_new(&package(Some("1.90")), (1, 89)).unwrap();
        assert_eq!(newer, "a: needs Rust 1.90, and ours is 1.89");
    }

    #[test]
    fn a_package_comes_from_a_registry_or_this_tree() {
        assert_eq!(fault("a", None, None), None);
        let git = fault("a", Some("git+https://example.org/a"), Some("MIT"));
        assert_eq!(git.unwrap(), "a: comes from git+https://example.org/a, not a registry");
    }
}
