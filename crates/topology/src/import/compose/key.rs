//! Keys of services that become nothing: which of them only describe, which hold in every node, and which
//! are not carried over.

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::reader::ComposeReader;
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::topology::ConversionReport;

/// Keys that other files of this folder read.
const READ: [&str; 31] = [
    "build",
    "cap_add",
    "command",
    "configs",
    "container_name",
    "cpus",
    "depends_on",
    "entrypoint",
    "env_file",
    "environment",
    "healthcheck",
    "hostname",
    "image",
    "links",
    "mem_limit",
    "network_mode",
    "networks",
    "pids_limit",
    "platform",
    "ports",
    "profiles",
    "restart",
    "scale",
    "secrets",
    "sysctls",
    "tmpfs",
    "ulimits",
    "user",
    "volumes",
    "working_dir",
    "deploy",
];

/// Keys that change nothing of what programs of a node find, or that every node has.
const DESCRIPTIONS: [&str; 10] = [
    "annotations",
    "attach",
    "develop",
    "expose",
    "init",
    "labels",
    "logging",
    "pull_policy",
    "stdin_open",
    "tty",
];

/// Keys of `deploy` that say where and how containers are put on machines.
const PLACED: [&str; 4] = ["labels", "placement", "rollback_config", "update_config"];

/// Capabilities that root of each node has in its own namespaces (capabilities(7), user_namespaces(7)).
const HELD: [&str; 15] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
    "SYS_PTRACE",
];

/// Notes the keys of the service of `node` that become nothing.
pub(super) fn note(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    node: &str,
    notes: &mut ConversionReport,
) -> Result<(), ScenarioMistake> {
    for (key, value) in keys {
        let what = format!("{} of {node}", shorten(&key.text));
        match key.text.as_str() {
            "cap_add" => {
                let names = reader.texts(value, "cap_add", notes)?;
                names.iter().for_each(|name| capability(name, node, notes));
            }
            "security_opt" => {
                for option in reader.texts(value, "security_opt", notes)? {
                    let what = format!("security_opt {} of {node}", shorten(&option));
                    // Nodes have neither filters of calls nor profiles.
                    match option.ends_with("unconfined") {
                        true => notes.leave_out("Keys of services", what),
                        false => notes.lose("Keys of services", what),
                    }
                }
            }
            "deploy" => deploy(reader, reader.map(value, "deploy")?, node, notes)?,
            "network_mode" => {
                let mode = reader.text(value, "network_mode", notes)?;
                if !["", "bridge", "default", "none"].contains(&mode.as_str()) {
                    let what = format!("network_mode ({}) of {node}", shorten(&mode));
                    notes.lose("Keys of services", what);
                }
            }
            key if READ.contains(&key) => {}
            key if DESCRIPTIONS.contains(&key) || key.starts_with("x-") => {
                notes.leave_out("Keys of services", what);
            }
            _ if matches!(value.kind, YamlValueKind::Null) => {}
            _ => notes.lose("Keys of services", what),
        }
    }
    Ok(())
}

fn capability(name: &str, node: &str, notes: &mut ConversionReport) {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("CAP_").unwrap_or(&upper);
    let what = format!("{} of {node}", shorten(name));
    match HELD.contains(&short) {
        true => notes.leave_out("Capabilities that root of a node has", what),
        false => notes.lose("Capabilities that no node can have", what),
    }
}

fn deploy(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    node: &str,
    notes: &mut ConversionReport,
) -> Result<(), ScenarioMistake> {
    for (key, value) in keys {
        let what = format!("deploy.{} of {node}", shorten(&key.text));
        match key.text.as_str() {
            "replicas" | "resources" => {}
            // On one machine there is one of those of which each machine has one.
            "mode" if ["replicated", "global"].contains(&&*reader.text(value, "mode", notes)?) => {}
            "restart_policy" => {
                for (key, _) in reader.map(value, "restart_policy")? {
                    if key.text != "condition" {
                        let what =
                            format!("deploy.restart_policy.{} of {node}", shorten(&key.text));
                        notes.lose("Keys of services", what);
                    }
                }
            }
            key if PLACED.contains(&key) => notes.leave_out("Keys of services", what),
            _ => notes.lose("Keys of services", what),
        }
    }
    Ok(())
}

/// What `restart` is, or else `deploy.restart_policy`.
pub(super) fn restart(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    node: &str,
    notes: &mut ConversionReport,
) -> Result<Option<&'static str>, ScenarioMistake> {
    let text = match find(keys, "restart") {
        Some(value) => reader.text(value, "restart", notes)?,
        None => deployed_restart(reader, keys, notes)?,
    };
    let (when, most) = text.split_once(':').unwrap_or((&text, ""));
    let known = match when {
        "always" | "any" | "unless-stopped" => Some(Some("always")),
        "on-failure" => Some(Some("on-failure")),
        "no" | "none" | "" => Some(None),
        _ => None,
    };
    // With 0, Docker does so any number of times, too.
    if known.is_none() || !["", "0"].contains(&most) {
        notes.lose("Keys of services", format!("restart ({}) of {node}", shorten(&text)));
    }
    Ok(known.flatten())
}

/// The condition of `deploy.restart_policy`, which is `any` where it says none.
fn deployed_restart(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    notes: &mut ConversionReport,
) -> Result<String, ScenarioMistake> {
    let Some(deploy) = find(keys, "deploy") else { return Ok(String::new()) };
    let Some(policy) = find(reader.map(deploy, "deploy")?, "restart_policy") else {
        return Ok(String::new());
    };
    match find(reader.map(policy, "restart_policy")?, "condition") {
        Some(condition) => reader.text(condition, "condition", notes),
        None => Ok("any".to_owned()),
    }
}
