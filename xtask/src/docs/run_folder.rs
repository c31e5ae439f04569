//! `run-folder.md`, from the doc comments of the record types.

use std::fs;
use std::io;
use std::path::Path;

use super::{GENERATED, cell};

/// The page.
pub(super) fn page(root: &Path) -> io::Result<String> {
    let mut text = format!("{GENERATED}# The run folder\n\n{OVERVIEW}");
    for (heading, file) in RECORDS {
        let source = fs::read_to_string(root.join("crates").join(file))?;
        text.push_str(&format!("\n## {heading}\n"));
        for item in items(&source) {
            text.push_str(&section(&item));
        }
    }
    Ok(text)
}

const OVERVIEW: &str = "A run leaves a folder, `runs/NAME-DATE-TIME` or what `--out` names, with the link \
`runs/latest` to the newest.\n\n\
| file | what |\n| --- | --- |\n\
| `plan.json` | the scenario resolved: names, addresses, defaults |\n\
| `run.json` | the report: see below |\n\
| `links.csv` | a row for each link direction and 100 ms in which it did something: see below |\n\
| `lateness.csv` | how late packets left: a row for each bin of the histogram of all packets that nodes got (without a link), and of each link direction: lateness of at most so much, and packets |\n\
| `events.jsonl` | what happened, one JSON object a line: see below |\n\
| `junit.xml` | the verdict for CI systems: a test case for fidelity, for each program and each expectation |\n\
| `echoes.csv` | windtunnel's own echo requests, where an expectation asks for `rtt` or `loss` of a path |\n\
| `paths.csv` | payload delivered from node to node every 100 ms, where one asks for `throughput` |\n\
| `nat.csv` | a row for each mapping of a NAT: endpoints, when it was made and ended, packets out and in |\n\
| `limits.csv` | a row for each limited node and second: processors asked and delivered, time throttled |\n\
| `internet.csv` | where there is a node `internet`: a row for each flow between the network and the machine's outside, when it ended |\n\
| `bounds.csv` | a row for each limit of memory or processes and second: what was in use at its end, and how often the limit was met, processes ended, pages read from a disk, taken back, and read again in it |\n\
| `nodes/NODE/` | what the programs of a node wrote, and how they ended |\n\
| `captures/PLACE.pcapng` | frames of a node or link, where `run --pcap` asks for them |\n\
| `control.sock` | how other commands reach the run while it lives |\n";

const RECORDS: [(&str, &str); 8] = [
    ("run.json", "trace/src/report.rs"),
    ("Limits, in run.json", "trace/src/report/limits.rs"),
    ("What came of a limit, in run.json", "model/src/held.rs"),
    ("Receiving, in run.json", "trace/src/report/received.rs"),
    ("Machines, in run.json", "trace/src/report/machine.rs"),
    ("Lateness, in run.json", "trace/src/lateness.rs"),
    ("links.csv", "trace/src/sample.rs"),
    ("events.jsonl", "trace/src/event.rs"),
];

/// A public type with its members.
#[derive(Debug)]
struct DocumentedType {
    name: String,
    docs: String,
    variants: bool,
    members: Vec<DocumentedMember>,
}

/// A field or a variant.
#[derive(Debug)]
struct DocumentedMember {
    name: String,
    docs: String,
    /// A variant's fields stand below it.
    nested: bool,
}

/// The serialised types of a source file. Reads the one style that rustfmt leaves: a member a line.
fn items(source: &str) -> Vec<DocumentedType> {
    let mut items: Vec<DocumentedType> = Vec::new();
    let (mut docs, mut serialised, mut inside) = (String::new(), false, false);
    let mut written = None;
    for line in source.lines() {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim();
        if let Some(doc) = code.strip_prefix("///") {
            docs.push_str(doc);
        } else if code.starts_with("#[") {
            serialised |= code.contains("derive(") && code.contains("Serialize");
            written = written_name(code).or(written);
        } else if let Some((name, variants)) = opening(code).filter(|_| indent == 0) {
            inside = serialised;
            if inside {
                let docs = std::mem::take(&mut docs);
                items.push(DocumentedType { name, docs, variants, members: Vec::new() });
            }
            (serialised, docs) = (false, String::new());
        } else if inside && line == "}" {
            inside = false;
        } else {
            let docs = std::mem::take(&mut docs);
            if let (true, Some(item), Some(name)) = (inside, items.last_mut(), member(code)) {
                let nested = indent > 4;
                let name = if item.variants && !nested { kebab(name) } else { name.to_owned() };
                let name = match written.take() {
                    Some(WrittenName::Own(own)) => own,
                    Some(WrittenName::Flattened) => {
                        code.split_once(": ").map_or(name, |(_, of)| {
                            format!("the fields of {}", of.trim_end_matches(','))
                        })
                    }
                    None => name,
                };
                item.members.push(DocumentedMember { name, docs, nested });
            }
        }
    }
    items
}

/// How a member is written, where that is not by its name.
#[derive(Debug)]
enum WrittenName {
    Own(String),
    Flattened,
}

/// `#[serde(rename = "name")]` or `#[serde(flatten)]`.
fn written_name(code: &str) -> Option<WrittenName> {
    let own = code.strip_prefix("#[serde(rename = \"").and_then(|rest| rest.strip_suffix("\")]"));
    let own = own.map(|own| WrittenName::Own(own.to_owned()));
    own.or((code == "#[serde(flatten)]").then_some(WrittenName::Flattened))
}

fn opening(code: &str) -> Option<(String, bool)> {
    let (rest, variants) = match code.strip_prefix("pub struct ") {
        Some(rest) => (rest, false),
        None => (code.strip_prefix("pub enum ")?, true),
    };
    Some((rest.strip_suffix(" {")?.to_owned(), variants))
}

/// `name` of `pub name: Type,`, `name: Type,`, `Name {` or `Name,`.
fn member(code: &str) -> Option<&str> {
    let code = code.strip_prefix("pub ").unwrap_or(code);
    let end = code.find([':', ' ', ','])?;
    let name = &code[..end];
    let named = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    named.then_some(name)
}

/// `LinkSet` → `link-set`, as serde writes it.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

fn section(item: &DocumentedType) -> String {
    let heading = if item.variants { "value" } else { "field" };
    let mut text = format!("\n### {}\n\n{}\n\n", item.name, cell(&item.docs));
    text.push_str(&format!("| {heading} | meaning |\n| --- | --- |\n"));
    for member in &item.members {
        let indent = if member.nested { "&emsp;" } else { "" };
        text.push_str(&format!("| {indent}`{}` | {} |\n", member.name, cell(&member.docs)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_variants_are_found_with_their_docs() {
        let source = "/// A thing.\n#[derive(Debug, Serialize)]\npub enum What {\n    /// It began.\n    \
                      RunBegan,\n    /// A link.\n    LinkSet {\n        /// Which.\n        link: String,\n    \
                      },\n}\n\n/// Not a record.\npub struct Other {\n    pub x: u32,\n}\n";
        let items = items(source);
        assert_eq!(items.len(), 1);
        let members: Vec<_> =
            items[0].members.iter().map(|m| (m.name.as_str(), m.docs.trim(), m.nested)).collect();
        assert_eq!(
            members,
            [
                ("run-began", "It began.", false),
                ("link-set", "A link.", false),
                ("link", "Which.", true)
            ]
        );
    }
}
