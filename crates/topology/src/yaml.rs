//! The scenario file of a topology: stable, one thing a line, what was assumed at the top.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use windtunnel_model::profile::{Jitter, JitterDistribution};
use windtunnel_model::{Probability, Span};

use crate::topology::{
    ConversionRemark, LinkDirectionProperties, Topology, TopologyChange, TopologyEvent,
    TopologyLink, TopologyNode, TopologyRouter,
};

/// Comments are wrapped at this many columns.
const WIDTH: usize = 100;

/// A pool of addresses for networks whose interfaces are more than the default pool holds.
const LARGE_POOL: &str = "[10.0.0.0/8, \"fd00::/64\"]";
/// Usable addresses of the default pool 10.0.0.0/16, less a few.
const DEFAULT_POOL: usize = 65_000;

impl Topology {
    /// The scenario file: what it loads as is what this topology says.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        self.head(&mut text);
        let _ = writeln!(text, "name: {}", quoted(&self.name));
        if self.interfaces() > DEFAULT_POOL {
            let _ = writeln!(text, "address: {LARGE_POOL}");
        }
        if self.fewest_hops {
            text.push_str("routing: hops\n");
        }
        if self.unreachable {
            text.push_str("allow-unreachable: true\n");
        }
        text.push_str("nodes:\n");
        for node in &self.nodes {
            line(&mut text, &node_entry(node), node.comment.as_deref());
        }
        if !self.routers.is_empty() {
            routers(&mut text, &self.routers);
        }
        if !self.lans.is_empty() {
            let _ = writeln!(text, "lans: {}", self.lans());
        }
        if !self.links.is_empty() {
            text.push_str("links:\n");
        }
        for link in &self.links {
            line(&mut text, &link_entry(link), link.comment.as_deref());
        }
        if !self.events.is_empty() {
            text.push_str("events:\n");
        }
        for event in &self.events {
            line(&mut text, &event_entry(event), None);
        }
        text
    }

    fn head(&self, text: &mut String) {
        for about in &self.about {
            comment(text, about, "");
        }
        let notes = &self.notes;
        for (title, notes) in [
            ("Assumed:", &notes.assumed),
            ("Not carried over:", &notes.lost),
            ("Descriptions left out:", &notes.left_out),
        ] {
            if notes.is_empty() {
                continue;
            }
            text.push_str("#\n");
            comment(text, title, "");
            for note in notes {
                comment(text, &format!("- {}", ConversionRemark::shown(note, usize::MAX)), "  ");
            }
        }
    }

    /// LANs as a list of names, or as a map where some have subnets.
    fn lans(&self) -> String {
        if self.subnets.is_empty() {
            return names_of(&self.lans);
        }
        let entry = |lan: &String| match self.subnets.get(lan) {
            Some(subnets) => format!("{}: {{address: {}}}", quoted(lan), list_of(subnets)),
            None => format!("{}: {{}}", quoted(lan)),
        };
        format!("{{{}}}", self.lans.iter().map(entry).collect::<Vec<_>>().join(", "))
    }

    fn interfaces(&self) -> usize {
        let group = |name: &str| {
            let node = self.nodes.iter().find(|node| node.count.is_some() && node.name == name);
            node.and_then(|node| node.count).and_then(|count| usize::try_from(count).ok())
        };
        let members = |link: &TopologyLink| {
            link.between.iter().filter_map(|end| group(end)).max().unwrap_or(1)
        };
        match self.nodes.iter().any(|node| node.count.is_some()) {
            true => self.links.iter().map(|link| 2 * members(link)).sum(),
            false => 2 * self.links.len(),
        }
    }
}

/// Routers in one list over several lines, or one a line where they have something to say.
fn routers(text: &mut String, routers: &[TopologyRouter]) {
    if routers.iter().any(|router| router.comment.is_some()) {
        text.push_str("routers:\n");
        for router in routers {
            line(text, &format!("- {}", quoted(&router.name)), router.comment.as_deref());
        }
        return;
    }
    text.push_str("routers:\n  [");
    let mut column = 3;
    for (index, router) in routers.iter().enumerate() {
        let name = quoted(&router.name);
        if index > 0 {
            text.push(',');
            column += 1;
            if column + 1 + name.len() + 1 > WIDTH {
                text.push_str("\n  ");
                column = 2;
            }
            text.push(' ');
            column += 1;
        }
        text.push_str(&name);
        column += name.len();
    }
    text.push_str("]\n");
}

fn node_entry(node: &TopologyNode) -> String {
    let mut keys = Vec::new();
    if let Some(count) = node.count {
        keys.push(format!("count: {count}"));
    }
    if node.forward {
        keys.push("forward: true".to_owned());
    }
    if let Some(run) = &node.run {
        keys.push(format!("run: {}", text_of(run)));
    }
    if node.run.is_some() && !node.start.is_zero() {
        keys.push(format!("start: {}", node.start));
    }
    keys.extend(node.more.iter().map(|(key, value)| format!("{key}: {value}")));
    format!("{}: {{{}}}", quoted(&node.name), keys.join(", "))
}

fn link_entry(link: &TopologyLink) -> String {
    let [a, b] = &link.between;
    let mut keys = vec![format!("between: [{}, {}]", quoted(a), quoted(b))];
    if let Some(name) = &link.name {
        keys.push(format!("name: {}", quoted(name)));
    }
    let (up, down) = (pairs(&link.up), pairs(&link.down));
    let same = |pair: &&(&str, String)| up.contains(pair) && down.contains(pair);
    keys.extend(up.iter().filter(same).map(|(key, value)| format!("{key}: {value}")));
    for (direction, pairs) in [("up", &up), ("down", &down)] {
        let own: Vec<_> = pairs.iter().filter(|pair| !same(pair)).collect();
        if !own.is_empty() {
            let own = own.iter().map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>();
            keys.push(format!("{direction}: {{{}}}", own.join(", ")));
        }
    }
    format!("- {{{}}}", keys.join(", "))
}

/// The keys that differ from a link without properties, in the order of the reference.
fn pairs(properties: &LinkDirectionProperties) -> Vec<(&'static str, String)> {
    let LinkDirectionProperties { latency, jitter, reorders, loss, rate, overhead, queue, mtu } =
        properties;
    let mut pairs = Vec::new();
    if *latency != Span::ZERO {
        pairs.push(("latency", latency.to_string()));
    }
    if !jitter.is_none() {
        pairs.push(("jitter", jitter_value(jitter)));
    }
    if *reorders {
        pairs.push(("reorder", "jitter".to_owned()));
    }
    if *loss != Probability::NEVER {
        pairs.push(("loss", loss.to_string()));
    }
    if let Some(rate) = rate {
        pairs.push(("rate", rate.to_string()));
    }
    match overhead {
        Some(0) => pairs.push(("overhead", "none".to_owned())),
        Some(bytes) => pairs.push(("overhead", format!("{bytes}B"))),
        None => {}
    }
    if let Some(queue) = queue {
        pairs.push(("queue", queue.to_string()));
    }
    if let Some(mtu) = mtu {
        pairs.push(("mtu", mtu.to_string()));
    }
    pairs
}

/// The value of `jitter`.
pub(crate) fn jitter_value(jitter: &Jitter) -> String {
    let spread = jitter.spread;
    match &jitter.distribution {
        JitterDistribution::Uniform if spread.is_zero() => "none".to_owned(),
        JitterDistribution::Uniform => spread.to_string(),
        JitterDistribution::Normal => format!("{{spread: {spread}, distribution: normal}}"),
        JitterDistribution::Pareto => format!("{{spread: {spread}, distribution: pareto}}"),
        JitterDistribution::Table(quantiles) => {
            let quantiles: Vec<String> = quantiles.iter().map(Span::to_string).collect();
            format!("{{table: [{}]}}", quantiles.join(", "))
        }
    }
}

fn event_entry(event: &TopologyEvent) -> String {
    let at = event.at;
    match &event.change {
        TopologyChange::State { links, direction, up } => {
            let way =
                direction.map(|way| format!("direction: {}, ", way.name())).unwrap_or_default();
            let state = if *up { "up" } else { "down" };
            format!("- {{at: {at}, link: {}, {way}{state}: true}}", names(links))
        }
        TopologyChange::Set { link, direction, set } => {
            let way =
                direction.map(|way| format!("direction: {}, ", way.name())).unwrap_or_default();
            let set = set.iter().map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>();
            format!("- {{at: {at}, link: {}, {way}set: {{{}}}}}", quoted(link), set.join(", "))
        }
        TopologyChange::Reroute => format!("- {{at: {at}, reroute: true}}"),
        TopologyChange::Node { nodes, verb } => {
            format!("- {{at: {at}, node: {}, do: {}}}", names(nodes), verb.name())
        }
    }
}

fn names(names: &[String]) -> String {
    match names {
        [one] => quoted(one),
        many => names_of(many),
    }
}

fn names_of(names: &[String]) -> String {
    format!("[{}]", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
}

/// A list of texts.
pub(crate) fn list_of(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| text_of(text)).collect::<Vec<_>>().join(", "))
}

/// A map of texts.
pub(crate) fn map_of(pairs: &BTreeMap<String, String>) -> String {
    let pair = |(key, value): (&String, &String)| format!("{}: {}", text_of(key), text_of(value));
    format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
}

/// One entry of a map or list, with a comment behind it.
fn line(text: &mut String, entry: &str, comment: Option<&str>) {
    match comment {
        Some(comment) => {
            let _ = writeln!(text, "  {entry}  # {}", printable(comment).trim());
        }
        None => {
            let _ = writeln!(text, "  {entry}");
        }
    }
}

/// A paragraph of comment, wrapped; `indent` stands before its second and further lines.
fn comment(text: &mut String, paragraph: &str, indent: &str) {
    let mut current = String::new();
    for word in printable(paragraph).split_whitespace() {
        if !current.is_empty() && 2 + current.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "# {current}");
            current = format!("{indent}{word}");
            continue;
        }
        if !current.trim().is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    let _ = writeln!(text, "{}", format!("# {current}").trim_end());
}

/// What YAML lets stand in a comment (YAML 1.2, rule 1): everything that moves or ends a line
/// becomes a blank.
fn printable(text: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_control() => ' ',
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => ' ',
        c => c,
    };
    text.chars().map(plain).collect()
}

/// A name, in quotes where YAML would not read it as a text.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let safe = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain);
    match safe && name != "null" {
        true => name.to_owned(),
        false => text_of(name),
    }
}

/// A text in double quotes (YAML 1.2, 5.7).
pub(crate) fn text_of(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if printable(&c.to_string()) != c.to_string() => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_yaml_would_misread_and_commands_are_quoted() {
        assert_eq!(quoted("paris-2"), "paris-2");
        assert_eq!(quoted("null"), "\"null\"");
        assert_eq!(text_of("echo \"a\\b\"\n\u{7}"), "\"echo \\\"a\\\\b\\\"\\n\\U00000007\"");
    }

    #[test]
    fn a_comment_cannot_end_before_its_line() {
        let mut text = String::new();
        line(&mut text, "a: {}", Some("one\nlinks: []\u{2028}two"));
        assert_eq!(text, "  a: {}  # one links: [] two\n");
    }

    #[test]
    fn properties_of_both_directions_are_written_once() {
        let properties = |loss| LinkDirectionProperties {
            latency: Span::from_millis(5),
            loss: Probability::from_parts_per_billion(loss).unwrap(),
            ..LinkDirectionProperties::default()
        };
        let between = ["a".to_owned(), "b".to_owned()];
        let link = TopologyLink {
            between,
            up: properties(10_000_000),
            down: properties(0),
            ..TopologyLink::default()
        };
        assert_eq!(link_entry(&link), "- {between: [a, b], latency: 5ms, up: {loss: 1%}}");
    }

    #[test]
    fn long_notes_are_wrapped_below_their_mark() {
        let mut text = String::new();
        comment(&mut text, &format!("- {}", "word ".repeat(30)), "  ");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("# - word") && lines[0].len() <= WIDTH);
        assert!(lines[1].starts_with("#   word"));
    }
}
