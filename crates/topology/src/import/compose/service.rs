//! A service, which becomes a node.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_scenario::Mistake;
use windtunnel_scenario::yaml::{Key, Kind, Value};

use super::network::Networks;
use super::reader::{Map, Reader};
use super::{command, find, names, volume};
use crate::import::input::shorten;
use crate::topology::{MOST_NODES, Node, Notes, Topology};
use crate::yaml::{list_of, map_of, text_of};

/// Which services others wait for, by node.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub(super) started: BTreeSet<String>,
    pub(super) healthy: BTreeSet<String>,
    pub(super) completed: BTreeSet<String>,
}

/// What another service waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Started,
    Healthy,
    Completed,
}

/// A service of the file.
pub(super) struct Service<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) key: &'a Key,
    /// Names of nodes by those of services.
    pub(super) nodes: &'a BTreeMap<String, String>,
    pub(super) needs: &'a Needs,
}

/// The nodes that `depends_on` names, and what of them is waited for.
pub(super) fn dependencies(
    reader: &Reader<'_>,
    value: &Value,
    nodes: &BTreeMap<String, String>,
    notes: &mut Notes,
) -> Result<Vec<(String, Condition)>, Mistake> {
    let mut found = Vec::new();
    let mut add = |name: &str, condition| match nodes.get(name) {
        Some(node) => {
            found.push((node.clone(), condition));
            Ok(())
        }
        None => {
            let message = format!("no service is called `{}`", shorten(name));
            Err(reader.input.at(value.place, message, None))
        }
    };
    let Kind::Map(keys) = &value.kind else {
        for name in reader.texts(value, "depends_on", notes)? {
            add(&name, Condition::Started)?;
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
            "service_healthy" => Condition::Healthy,
            "service_completed_successfully" => Condition::Completed,
            _ => Condition::Started,
        };
        add(&key.text, condition)?;
    }
    Ok(found)
}

impl Service<'_> {
    pub(super) fn read(
        &self,
        value: &Value,
        networks: &mut Networks,
        topology: &mut Topology,
    ) -> Result<(), Mistake> {
        let keys = self.reader.map(value, "a service")?;
        let name = self.nodes.get(&self.key.text).cloned().unwrap_or_default();
        let comment = names::comment(&self.key.text, &name);
        let mut node = Node { name: name.clone(), comment, ..Node::default() };
        let notes = &mut topology.notes;
        node.count = self.count(keys, &name, notes)?;
        self.image(keys, &mut node, notes)?;
        self.command(keys, &mut node, notes)?;
        self.user(keys, &mut node, notes)?;
        self.environment(keys, &mut node, notes)?;
        if let Some(volumes) = find(keys, "volumes")
            && let Some(text) = volume::volumes(self.reader, volumes, &name, notes)?
        {
            node.more.push(("volumes", text));
        }
        self.order(keys, &mut node, notes)?;
        self.note_keys(keys, &name, notes);
        topology.nodes.push(node);
        networks.link(self.reader, find(keys, "networks"), &name, topology)
    }

    fn count(&self, keys: &Map, name: &str, notes: &mut Notes) -> Result<Option<u32>, Mistake> {
        let deploy = find(keys, "deploy").map(|it| self.reader.map(it, "deploy")).transpose()?;
        let replicas = deploy.and_then(|deploy| find(deploy, "replicas"));
        let Some(value) = find(keys, "scale").or(replicas) else { return Ok(None) };
        let text = self.reader.text(value, "replicas", notes)?;
        let count = text.parse::<u32>().ok().filter(|it| (1..=1000).contains(it));
        let Some(count) = count.filter(|it| u64::from(*it) <= MOST_NODES) else {
            let message =
                format!("`{}` is not a number of replicas from 1 to 1000", shorten(&text));
            return Err(self.reader.input.at(value.place, message, None));
        };
        if count == 1 {
            return Ok(None);
        }
        let text = "Names of services with replicas: write `services:` for one address of several";
        notes.lose(text, format!("{name} is {name}-1 to {name}-{count}"));
        Ok(Some(count))
    }

    fn image(&self, keys: &Map, node: &mut Node, notes: &mut Notes) -> Result<(), Mistake> {
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

    fn command(&self, keys: &Map, node: &mut Node, notes: &mut Notes) -> Result<(), Mistake> {
        let mut words = |key: &'static str| {
            let value = find(keys, key).filter(|value| !matches!(value.kind, Kind::Null));
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

    fn user(&self, keys: &Map, node: &mut Node, notes: &mut Notes) -> Result<(), Mistake> {
        let Some(user) = find(keys, "user") else { return Ok(()) };
        let user = self.reader.text(user, "user", notes)?;
        match user.split(':').next() {
            Some("root" | "0") => node.more.push(("user", "root".to_owned())),
            _ => {
                let text = "Users: the image's own runs its command";
                notes.lose(text, format!("{} of {}", shorten(&user), node.name));
            }
        }
        Ok(())
    }

    fn environment(&self, keys: &Map, node: &mut Node, notes: &mut Notes) -> Result<(), Mistake> {
        let Some(value) = find(keys, "environment") else { return Ok(()) };
        let mut pairs = BTreeMap::new();
        for (name, value) in self.reader.pairs(value, "environment", notes)? {
            match value {
                Some(value) if !name.is_empty() && !name.contains('=') => {
                    pairs.insert(name, value);
                }
                _ => notes.lose(
                    "Variables without a value",
                    format!("{} of {}", shorten(&name), node.name),
                ),
            }
        }
        if !pairs.is_empty() {
            node.more.push(("env", map_of(&pairs)));
        }
        Ok(())
    }

    /// When it starts, when it is ready, and whether the run waits for its end.
    fn order(&self, keys: &Map, node: &mut Node, notes: &mut Notes) -> Result<(), Mistake> {
        let name = node.name.clone();
        if let Some(value) = find(keys, "depends_on") {
            let after = dependencies(self.reader, value, self.nodes, notes)?;
            let after: BTreeSet<String> = after.into_iter().map(|(name, _)| name).collect();
            if !after.is_empty() {
                node.more.push(("after", list_of(&after.into_iter().collect::<Vec<_>>())));
            }
        }
        let port = self.port(keys, notes)?;
        if self.needs.completed.contains(&name) {
            node.more.push(("ready", "exit".to_owned()));
        } else if self.needs.healthy.contains(&name) {
            let ready = port.map_or("listen".to_owned(), |port| format!("tcp:{port}"));
            let text = "Services are healthy when something listens, instead of by `healthcheck`";
            notes.assume(text, format!("{name} ({ready})"));
            node.more.push(("ready", ready));
        }
        let restart = match find(keys, "restart") {
            Some(value) => self.reader.text(value, "restart", notes)?,
            None => String::new(),
        };
        let restart = match restart.split(':').next() {
            Some("always" | "unless-stopped") => Some("always"),
            Some("on-failure") => Some("on-failure"),
            _ => None,
        };
        node.more.extend(restart.map(|when| ("restart", when.to_owned())));
        let serves = port.is_some() || restart == Some("always");
        let needed = self.needs.started.contains(&name) || self.needs.healthy.contains(&name);
        if (serves || needed) && !self.needs.completed.contains(&name) {
            node.more.push(("daemon", "true".to_owned()));
        }
        Ok(())
    }

    /// The port that it serves at, by its health check, what it publishes or exposes.
    fn port(&self, keys: &Map, notes: &mut Notes) -> Result<Option<u16>, Mistake> {
        let check =
            find(keys, "healthcheck").map(|it| self.reader.map(it, "healthcheck")).transpose()?;
        if let Some(test) = check.and_then(|check| find(check, "test")) {
            let test = self.reader.texts(test, "test", notes)?.join(" ");
            if let Some(port) = local_port(&test) {
                return Ok(Some(port));
            }
        }
        for key in ["expose", "ports"] {
            let Some(Value { kind: Kind::List(items), .. }) = find(keys, key) else { continue };
            let Some(first) = items.first() else { continue };
            let text = match &first.kind {
                Kind::Map(keys) => match find(keys, "target") {
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
            if let Some(port) = target.parse().ok().filter(|port| *port > 0) {
                return Ok(Some(port));
            }
        }
        Ok(None)
    }

    fn note_keys(&self, keys: &Map, name: &str, notes: &mut Notes) {
        for (key, value) in keys {
            let what = format!("{} of {name}", shorten(&key.text));
            match key.text.as_str() {
                "image" | "build" | "command" | "entrypoint" | "working_dir" | "user"
                | "environment" | "volumes" | "depends_on" | "restart" | "networks" | "scale"
                | "healthcheck" => {}
                "deploy" => {
                    let Kind::Map(inner) = &value.kind else { continue };
                    for (inner, _) in inner.iter().filter(|(key, _)| key.text != "replicas") {
                        let what = format!("deploy.{} of {name}", shorten(&inner.text));
                        notes.lose("Keys of services", what);
                    }
                }
                "ports" => {
                    let text = "Ports of the machine: services are reached from other nodes, and by `exec`";
                    notes.lose(text, what);
                }
                "expose" | "labels" | "container_name" | "hostname" | "pull_policy"
                | "platform" | "stdin_open" | "tty" | "annotations" => {
                    notes.leave_out("Keys of services", what);
                }
                key if key.starts_with("x-") => notes.leave_out("Keys of services", what),
                _ => notes.lose("Keys of services", what),
            }
        }
    }
}

/// The port of `localhost:PORT`, `127.0.0.1:PORT` or `-p PORT` in a command.
fn local_port(test: &str) -> Option<u16> {
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse::<u16>().ok().filter(|port| *port > 0)
    };
    ["localhost:", "127.0.0.1:", "0.0.0.0:", "-p ", "localhost "]
        .iter()
        .find_map(|mark| number(&test[test.find(mark)? + mark.len()..]))
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
    fn a_health_check_names_its_port() {
        assert_eq!(local_port("CMD curl -f http://localhost:8080/health"), Some(8080));
        assert_eq!(local_port("CMD-SHELL redis-cli -p 6380 ping"), Some(6380));
        assert_eq!(local_port("CMD pg_isready"), None);
    }
}
