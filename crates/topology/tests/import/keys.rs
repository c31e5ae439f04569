//! Each row of the tables of keys in `docs/import.md`, by a file of the tool: what is exact or
//! approximated stands in the scenario with the tool's own figure, the rest in the notes.

#[path = "keys/compose.rs"]
mod compose;
#[path = "keys/containerlab.rs"]
mod containerlab;
#[path = "keys/graphs.rs"]
mod graphs;
#[path = "keys/kollaps.rs"]
mod kollaps;

use std::collections::BTreeSet;

use windtunnel_topology::{
    ConversionRemark, ImportContext, ImportDocument, ImportOptions, import_with,
};

use crate::common::load;

const PAGE: &str = include_str!("../../../../docs/import.md");

/// A row, and a file that has what the row is about.
struct Case {
    tool: &'static str,
    key: &'static str,
    carried: &'static str,
    file: String,
    /// Files beside it.
    beside: &'static [(&'static str, &'static str)],
    /// What the scenario, or for what it does not carry a note, has then.
    figure: &'static str,
}

fn case(
    tool: &'static str,
    key: &'static str,
    carried: &'static str,
    file: impl Into<String>,
    figure: &'static str,
) -> Case {
    Case { tool, key, carried, file: file.into(), beside: &[], figure }
}

#[test]
fn each_row_of_the_page_has_a_file_and_each_file_a_row() {
    let rows: BTreeSet<[String; 3]> = rows().into_iter().collect();
    let cases = cases();
    let said: BTreeSet<[String; 3]> =
        cases.iter().map(|case| [case.tool, case.key, case.carried].map(str::to_owned)).collect();
    assert_eq!(rows.difference(&said).collect::<Vec<_>>(), Vec::<&[String; 3]>::new());
    assert_eq!(said.difference(&rows).collect::<Vec<_>>(), Vec::<&[String; 3]>::new());
}

#[test]
fn what_each_row_says_is_what_becomes_of_the_tools_file() {
    for Case { tool, key, carried, file, beside, figure } in cases() {
        let run = key.ends_with("of a service").then(|| "true".to_owned());
        let hosts = key.ends_with("several hosts").then_some(2);
        let options = ImportOptions { run, hosts, ..ImportOptions::default() };
        let original =
            ImportDocument { name: "in/net.txt", text: file.as_bytes(), default_name: "net" };
        let read = |name: &str| {
            let found = beside.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| "no such file".to_owned())
        };
        let surroundings = ImportContext { over: &[], read: &read };
        let (_, topology) = import_with(&original, &options, &surroundings)
            .unwrap_or_else(|error| panic!("{tool}: {key}: {error}\n{file}"));
        load(&topology);
        let yaml = topology.to_yaml();
        let scenario: Vec<&str> = yaml.lines().filter(|line| !line.starts_with('#')).collect();
        let listed = |notes: &[ConversionRemark]| {
            notes.iter().map(|note| note.shown(usize::MAX)).collect::<Vec<_>>().join("\n")
        };
        let place = match carried {
            "exact" | "approximated" => scenario.join("\n"),
            "not carried" => listed(&topology.notes.lost),
            "description" => listed(&topology.notes.left_out),
            other => panic!("{tool}: {key}: {other}"),
        };
        for part in figure.split(" … ") {
            assert!(place.contains(part), "{tool}: {key}: no `{part}` in\n{place}\nof\n{yaml}");
        }
        if carried == "approximated" {
            let of_images = |note: &&ConversionRemark| note.text.starts_with("Images are fetched");
            let says = topology.notes.assumed.iter().any(|note| !of_images(&note));
            assert!(says, "{tool}: {key}: nothing says how");
        }
    }
}

/// Tool, key and how it is carried, of each row.
fn rows() -> Vec<[String; 3]> {
    let start = PAGE.find("\n## Keys of each tool\n").expect("the section is there") + 1;
    let section = &PAGE[start..];
    let section = &section[..section[1..].find("\n## ").map_or(section.len(), |end| end + 1)];
    let (mut tool, mut rows) = ("", Vec::new());
    for line in section.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            tool = title;
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let is_row =
            line.starts_with("| ") && !line.starts_with("| key") && !line.starts_with("| -");
        if let (true, [key, carried, ..]) = (is_row, &cells[..]) {
            rows.push([tool, key.trim_start_matches("| "), carried.trim()].map(str::to_owned));
        }
    }
    rows
}

fn cases() -> Vec<Case> {
    let all = [kollaps::cases(), containerlab::cases(), graphs::cases(), compose::cases()];
    all.into_iter().flatten().collect()
}
