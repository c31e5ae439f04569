//! A service, which becomes a node.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::plan::{NodeFilesystem, Platform};
use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::health::ComposeHealthcheck;
use super::network::Networks;
use super::port::{self, ComposePublishedPorts};
use super::reader::ComposeReader;
use super::{command, environment, health, key, limit, mounted, volume};
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::import::names;
use crate::topology::{ConversionReport, MOST_NODES, Topology, TopologyNode};
use crate::yaml::{list_of, map_of, text_of};

/// Which services others wait for, by node.
#[derive(Debug, Default)]
pub(super) struct ServiceDependencies {
    pub(super) started: BTreeSet<String>,
    pub(super) healthy: BTreeSet<String>,
    pub(super) completed: BTreeSet<String>,
    /// The nodes that a service waits for, by its name in the file.
    pub(super) after: BTreeMap<String, BTreeSet<String>>,
}

/// What another service waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DependencyCondition {
    Started,
    Healthy,
    Completed,
}

/// A service of the file.
pub(super) struct ComposeService<'a> {
    pub(super) reader: &'a ComposeReader<'a>,
    pub(super) key: &'a YamlKey,
    /// Names of nodes by those of services.
    pub(super) nodes: &'a BTreeMap<String, String>,
    pub(super) needs: &'a ServiceDependencies,
    /// The whole file.
    pub(super) root: &'a [(YamlKey, YamlValue)],
    /// Reads a file beside the first one.
    pub(super) read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
}

/// The nodes that `depends_on` names, and what of them is waited for; `dropped` are services that
/// are not there.
pub(super) fn dependencies(
    reader: &ComposeReader<'_>,
    value: &YamlValue,
    nodes: &BTreeMap<String, String>,
    dropped: &BTreeSet<String>,
    notes: &mut ConversionReport,
) -> Result<Vec<(String, DependencyCondition)>, ScenarioMistake> {
    let mut found = Vec::new();
    let mut add = |name: &str, condition, is_required: bool| match nodes.get(name) {
        Some(node) => {
            found.push((node.clone(), condition));
            Ok(())
        }
        None if !is_required || dropped.contains(name) => Ok(()),
        None => {
            let message = format!("no service is called `{}`", shorten(name));
            Err(reader.at(value.place, message))
        }
    };
    let YamlValueKind::Map(keys) = &value.kind else {
        for name in reader.texts(value, "depends_on", notes)? {
            add(&name, DependencyCondition::Started, true)?;
        }
        return Ok(found);
    };
    for (key, value) in keys {
        let inner = reader.map(value, "depends_on")?;
        let condition = match find(inner, "condition") {
            Some(condition) => reader.text(condition, "condition", notes)?,
            None => String::new(),
        };
        let condition = match condition.as_str() {
            "service_healthy" => DependencyCondition::Healthy,
            "service_completed_successfully" => DependencyCondition::Completed,
            _ => DependencyCondition::Started,
        };
        let required = find(inner, "required").map(|it| reader.text(it, "required", notes));
        let is_required = required.transpose()?.as_deref() != Some("false");
        for (inner, _) in
            inner.iter().filter(|(key, _)| !["condition", "required"].contains(&&*key.text))
        {
            let what = format!("depends_on.{}.{}", shorten(&key.text), shorten(&inner.text));
            notes.lose_once("Keys of dependencies", what);
        }
        add(&key.text, condition, is_required)?;
    }
    Ok(found)
}

/// Whether a service has no replicas.
pub(super) fn is_off(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    notes: &mut ConversionReport,
) -> Result<bool, ScenarioMistake> {
    match replicas(reader, keys)? {
        Some(value) => Ok(reader.text(value, "replicas", notes)? == "0"),
        None => Ok(false),
    }
}

/// What says how many replicas there are.
fn replicas<'v>(
    reader: &ComposeReader<'_>,
    keys: &'v [(YamlKey, YamlValue)],
) -> Result<Option<&'v YamlValue>, ScenarioMistake> {
    let deploy = find(keys, "deploy").map(|it| reader.map(it, "deploy")).transpose()?;
    Ok(find(keys, "scale").or_else(|| find(deploy?, "replicas")))
}

impl ComposeService<'_> {
    pub(super) fn read(
        &self,
        value: &YamlValue,
        networks: &mut Networks,
        published: &mut ComposePublishedPorts,
        topology: &mut Topology,
    ) -> Result<(), ScenarioMistake> {
        let keys = self.reader.map(value, "a service")?;
        let name = self.nodes.get(&self.key.text).cloned().unwrap_or_default();
        let comment = names::comment(&self.key.text, &name);
        let mut node = TopologyNode { name: name.clone(), comment, ..TopologyNode::default() };
        let notes = &mut topology.notes;
        node.count = self.count(keys, &name, notes)?;
        self.image(keys, &mut node, notes)?;
        self.command(keys, &mut node, notes)?;
        self.user(keys, &mut node, notes)?;
        self.environment(keys, &mut node, notes)?;
        limit::read(self.reader, keys, &mut node, notes)?;
        self.settings(keys, &mut node, notes)?;
        let mut volumes = match find(keys, "volumes") {
            Some(volumes) => volume::volumes(self.reader, volumes, &name, notes)?,
            None => Vec::new(),
        };
        volumes.extend(mounted::volumes(self.reader, self.root, keys, &node, notes)?);
        if !volumes.is_empty() {
            node.more.push(("volumes", list_of(&volumes)));
        }
        self.order(keys, &mut node, notes)?;
        published.add(&node, port::read(self.reader, keys, &name, notes)?, notes);
        key::note(self.reader, keys, &name, notes)?;
        let mode = find(keys, "network_mode").map(|it| self.reader.text(it, "network_mode", notes));
        let has_network = mode.transpose()?.as_deref() != Some("none");
        topology.nodes.push(node);
        match has_network {
            true => networks.link(self.reader, find(keys, "networks"), &name, topology),
            false => Ok(()),
        }
    }

    fn count(
        &self,
        keys: &[(YamlKey, YamlValue)],
        name: &str,
        notes: &mut ConversionReport,
    ) -> Result<Option<u32>, ScenarioMistake> {
        let Some(value) = replicas(self.reader, keys)? else { return Ok(None) };
        let text = self.reader.text(value, "replicas", notes)?;
        let count = text.parse::<u32>().ok().filter(|it| (1..=1000).contains(it));
        let Some(count) = count.filter(|it| u64::from(*it) <= MOST_NODES) else {
            let message =
                format!("`{}` is not a number of replicas from 1 to 1000", shorten(&text));
            return Err(self.reader.at(value.place, message));
        };
        if count == 1 {
            return Ok(None);
        }
        let text = "Services with replicas: their name leads to all of them, as with Docker; write `services:` for \
                    one address of several";
        notes.assume(text, format!("{name} is {name}-1 to {name}-{count}"));
        Ok(Some(count))
    }

    fn image(
        &self,
        keys: &[(YamlKey, YamlValue)],
        node: &mut TopologyNode,
        notes: &mut ConversionReport,
    ) -> Result<(), ScenarioMistake> {
        let image = match find(keys, "image") {
            Some(image) => self.reader.text(image, "image", notes)?,
            None => String::new(),
        };
        let is_built = find(keys, "build").is_some();
        if !is_built && !image.is_empty() {
            let text =
                "Images are fetched from their registries: for one in a file, write `image: FILE`";
            notes.assume(text, shorten(&image));
            node.more.push(("image", text_of(&format!("oci://{image}"))));
            return Ok(());
        }
        let reference = if image.is_empty() { self.key.text.as_str() } else { image.as_str() };
        let file = file_name(reference);
        let text = "Images are not built here: build them, and save them as tar files beside the scenario, \
                    `docker save -o FILE IMAGE` or `podman save -o FILE IMAGE`";
        notes.lose(text, format!("{file} ({})", shorten(reference)));
        node.more.push(("image", text_of(&file)));
        Ok(())
    }

    fn command(
        &self,
        keys: &[(YamlKey, YamlValue)],
        node: &mut TopologyNode,
        notes: &mut ConversionReport,
    ) -> Result<(), ScenarioMistake> {
        let mut words = |key: &'static str| {
            let value = find(keys, key).filter(|value| !matches!(value.kind, YamlValueKind::Null));
            value.map(|value| command::words(self.reader, value, key, notes)).transpose()
        };
        let (entrypoint, words) = (words("entrypoint")?, words("command")?);
        node.more.extend(command::keys(entrypoint, words));
        if let Some(folder) = find(keys, "working_dir") {
            let folder = self.reader.text(folder, "working_dir", notes)?;
            node.more.push(("cwd", text_of(&folder)));
        }
        Ok(())
    }

    fn user(
        &self,
        keys: &[(YamlKey, YamlValue)],
        node: &mut TopologyNode,
        notes: &mut ConversionReport,
    ) -> Result<(), ScenarioMistake> {
        let Some(value) = find(keys, "user") else { return Ok(()) };
        let user = self.reader.text(value, "user", notes)?;
        match user.as_str() {
            "" => {}
            "root" | "0" | "0:0" | "root:root" | "0:root" | "root:0" => {
                node.more.push(("user", "root".to_owned()));
            }
            // Words that have a meaning of their own in a scenario: as numbers they have none.
            "image" | "invoker" => {
                let what = format!("{user} of {}", node.name);
                notes.lose("Users: write the number of this one", what);
            }
            user if NodeFilesystem::is_account(user) => node.more.push(("user", text_of(user))),
            user => {
                let message = format!("user: `{}` is no user", shorten(user));
                return Err(self.reader.at(value.place, message));
            }
        }
        Ok(())
    }

    fn environment(
        &self,
        keys: &[(YamlKey, YamlValue)],
        node: &mut TopologyNode,
        notes: &mut ConversionReport,
    ) -> Result<(), ScenarioMistake> {
        let mut pairs = BTreeMap::new();
        if let Some(value) = find(keys, "env_file") {
            self.variables_of_files(value, &mut pairs, node, notes)?;
        }
        let own = find(keys, "environment");
        for (name, value) in
            own.map_or(Ok(Vec::new()), |value| self.reader.pairs(value, "environment", notes))?
        {
            self.variable(name, value, &mut pairs, node, notes);
        }
        if !pairs.is_empty() {
            node.more.push(("env", map_of(&pairs)));
        }
        Ok(())
    }

    /// A variable; one without a value has the shell's.
    fn variable(
        &self,
        name: String,
        value: Option<String>,
        pairs: &mut BTreeMap<String, String>,
        node: &TopologyNode,
        notes: &mut ConversionReport,
    ) {
        let value = value.or_else(|| self.reader.variables.get(&name).cloned());
        match value {
            Some(value) if !name.is_empty() && !name.contains(['=', '\0']) => {
                pairs.insert(name, value);
            }
            Some(_) => {
                let what = format!("{} of {}", shorten(&name), node.name);
                notes.lose("Variables that no environment can have", what);
            }
            // As with Docker.
            None => notes.assume(
                "Variables without a value, neither here nor in `.env`: programs have none of them",
                format!("{} of {}", shorten(&name), node.name),
            ),
        }
    }

    /// Reads `env_file`: a path, or a list of paths, each perhaps with `required: false`.
    fn variables_of_files(
        &self,
        value: &YamlValue,
        pairs: &mut BTreeMap<String, String>,
        node: &TopologyNode,
        notes: &mut ConversionReport,
    ) -> Result<(), ScenarioMistake> {
        let items = match &value.kind {
            YamlValueKind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(value),
        };
        for item in items {
            let (path, is_required) = match &item.kind {
                YamlValueKind::Map(keys) => {
                    let required = find(keys, "required")
                        .map(|it| self.reader.text(it, "required", notes))
                        .transpose()?;
                    (find(keys, "path").unwrap_or(item), required.as_deref() != Some("false"))
                }
                _ => (item, true),
            };
            let path_text = self.reader.text(path, "env_file", notes)?;
            let text = match (self.read)(&path_text) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(_) if !is_required => continue,
                Err(why) => {
                    let message = format!("cannot read `{}`: {why}", shorten(&path_text));
                    return Err(self.reader.at(path.place, message));
                }
            };
            let read = environment::read(&text, self.reader.variables).map_err(|why| {
                self.reader.at(path.place, format!("`{}`: {why}", shorten(&path_text)))
            })?;
            for (name, value) in read {
                self.variable(name, value, pairs, node, notes);
            }
        }
        Ok(())
    }

    /// When it starts, when it is ready, and whether the run waits for its end.
    fn order(
        &self,
        keys: &[(YamlKey, YamlValue)],
        node: &mut TopologyNode,
        notes: &mut ConversionReport,
    ) -> Result<(), ScenarioMistake> {
        let name = node.name.clone();
        if let Some(after) = self.needs.after.get(&self.key.text) {
            node.more.push(("after", list_of(&after.iter().cloned().collect::<Vec<_>>())));
        }
        let health = health::read(self.reader, keys, &name, notes)?;
        let port = match health.port() {
            Some(port) => Some(port),
            None => self.port(keys, notes)?,
        };
        if self.needs.completed.contains(&name) {
            node.more.push(("ready", "exit".to_owned()));
        } else if self.needs.healthy.contains(&name) {
            let ready = health.ready().unwrap_or_else(|| {
                let ready = port.map_or("listen".to_owned(), |port| format!("tcp:{port}"));
                let text = "Services without a health check that others wait for, which Docker refuses: \
                            they are ready when something listens";
                notes.assume(text, format!("{name} ({ready})"));
                ready
            });
            node.more.push(("ready", ready));
            if health != ComposeHealthcheck::Off {
                let text = "Health checks are first made at once, where Docker waits for an interval first";
                notes.assume(text, name.as_str());
            }
        } else if find(keys, "healthcheck").is_some() && health != ComposeHealthcheck::Off {
            let text = "Health checks of services that no other waits for (`service_healthy`)";
            notes.leave_out(text, name.as_str());
        }
        let restart = key::restart(self.reader, keys, &name, notes)?;
        node.more.extend(restart.map(|when| ("restart", when.to_owned())));
        let serves = port.is_some() || restart == Some("always");
        let needed = self.needs.started.contains(&name) || self.needs.healthy.contains(&name);
        if (serves || needed) && !self.needs.completed.contains(&name) {
            node.more.push(("daemon", "true".to_owned()));
        }
        Ok(())
    }

    /// The port that it serves at, by what it publishes or exposes.
    fn port(
        &self,
        keys: &[(YamlKey, YamlValue)],
        notes: &mut ConversionReport,
    ) -> Result<Option<u16>, ScenarioMistake> {
        for key in ["expose", "ports"] {
            let Some(YamlValue { kind: YamlValueKind::List(items), .. }) = find(keys, key) else {
                continue;
            };
            let Some(first) = items.first() else { continue };
            let text = match &first.kind {
                YamlValueKind::Map(keys) => match find(keys, "target") {
                    Some(target) => self.reader.text(target, "target", notes)?,
                    None => continue,
                },
                _ => self.reader.text(first, key, notes)?,
            };
            let target = text.rsplit(':').next().unwrap_or(&text);
            if target.ends_with("/udp") {
                continue;
            }
            let target = target.trim_end_matches("/tcp");
            let target = target.split('-').next().unwrap_or(target);
            if let Some(port) = target.parse().ok().filter(|port| *port > 0) {
                return Ok(Some(port));
            }
        }
        Ok(None)
    }

    /// `sysctls` of its network, and the platform.
    fn settings(
        &self,
        keys: &[(YamlKey, YamlValue)],
        node: &mut TopologyNode,
        notes: &mut ConversionReport,
    ) -> Result<(), ScenarioMistake> {
        if let Some(value) = find(keys, "platform") {
            let platform = self.reader.text(value, "platform", notes)?;
            let what = || format!("{} of {}", shorten(&platform), node.name);
            match read_platform(&platform) {
                Some(platform) => node.more.push(("platform", platform.to_string())),
                // Each machine's own.
                None if platform == "linux" => {
                    notes.leave_out("Platforms of every machine", what());
                }
                None if platform.is_empty() => {}
                None => notes.lose("Platforms: the image for this machine is chosen", what()),
            }
        }
        let Some(value) = find(keys, "sysctls") else { return Ok(()) };
        let mut settings = BTreeMap::new();
        for (name, value) in self.reader.pairs(value, "sysctls", notes)? {
            match value {
                Some(value) if windtunnel_model::name::is_sysctl(&name) => {
                    settings.insert(name, value);
                }
                _ => notes
                    .lose("Settings of the kernel", format!("{} of {}", shorten(&name), node.name)),
            }
        }
        if !settings.is_empty() {
            node.more.push(("sysctl", map_of(&settings)));
        }
        Ok(())
    }
}

/// A platform as Docker reads it: an architecture alone is of Linux.
fn read_platform(text: &str) -> Option<Platform> {
    text.parse().or_else(|_| format!("linux/{text}").parse()).ok()
}

/// A name for the file of an image: `redis:7` is `redis-7.tar`.
fn file_name(reference: &str) -> String {
    let last = reference.rsplit('/').next().unwrap_or(reference);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = last.chars().take(100).map(plain).collect();
    format!("{}.tar", name.trim_start_matches(['.', '-']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_files_by_their_name_and_tag() {
        assert_eq!(file_name("redis:7"), "redis-7.tar");
        assert_eq!(file_name("registry.example:5000/team/app@sha256:abc"), "app-sha256-abc.tar");
    }

    #[test]
    fn a_platform_is_read_as_docker_reads_it() {
        let read = |text: &str| read_platform(text).map(|it| it.to_string());
        assert_eq!(read("linux/x86_64").as_deref(), Some("linux/amd64"));
        assert_eq!(read("aarch64").as_deref(), Some("linux/arm64"));
        assert_eq!(read("linux/arm/v6").as_deref(), Some("linux/arm/v6"));
        for text in ["windows/amd64", "linux", "", "darwin"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
