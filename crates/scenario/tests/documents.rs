//! Scenarios in documents load: each block of YAML, together with what an invisible comment right
//! before it says is in the rest of the file:
//!
//! ```text
//! <!-- rest of the file:
//! nodes: {a: {}, b: {}}
//! -->
//! ```
//!
//! A block that is not a scenario has `<!-- not a scenario -->` before it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use windtunnel_scenario::{ScenarioSource, load_with};

/// A block of YAML in a document.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The line after the fence, from 1.
    line: usize,
    text: String,
    /// What the comment before it says.
    comment: String,
}

/// The blocks of a document that are marked as YAML.
fn blocks(document: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut comment = String::new();
    let mut lines = document.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(start) = line.strip_prefix("<!--") {
            comment = start.to_owned();
            while !comment.contains("-->") {
                let (_, next) = lines.next().expect("a comment ends");
                comment = format!("{comment}\n{next}");
            }
            comment.truncate(comment.find("-->").unwrap());
        } else if line == "```yaml" {
            let inside = lines.by_ref().take_while(|(_, line)| *line != "```");
            let text = inside.flat_map(|(_, line)| [line, "\n"]).collect();
            found.push(Block { line: index + 2, text, comment: std::mem::take(&mut comment) });
        } else if !line.is_empty() {
            comment.clear();
        }
    }
    found
}

/// Why the block is not a scenario that loads.
fn fault(name: &str, block: &Block) -> Option<String> {
    let comment = block.comment.trim();
    let rest = match comment.strip_prefix("rest of the file:") {
        Some(rest) => rest.trim_start(),
        None if comment == "not a scenario" => return None,
        None => "",
    };
    let name = format!("{name}, block at line {}", block.line);
    let text = format!("{}{rest}\n", block.text);
    let source =
        ScenarioSource { name: &name, text: text.as_bytes(), default_name: "x", base_dir: "/" };
    let read = |file: &str| {
        let known = TRACES.iter().find(|(trace, _)| *trace == file);
        known.map(|(_, text)| text.as_bytes().to_vec()).ok_or(format!("no trace is called {file}"))
    };
    load_with(&source, &read).err().map(|errors| errors.to_string())
}

/// README.md, and every Markdown file below docs.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_scenario_in_a_document_loads() {
    let mut read = 0;
    let mut faults = Vec::new();
    for path in documents() {
        let document = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for block in blocks(&document) {
            read += 1;
            faults.extend(fault(&name, &block));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(read >= 16, "only {read} blocks were found");
}

#[test]
fn a_block_is_found_with_its_line_and_the_comment_right_before_it() {
    let document =
        "# A\n<!-- not\nme -->\ntext\n<!-- rest of the file:\nb: 1\n-->\n\n```yaml\na: 1\n```\n";
    let comment = " rest of the file:\nb: 1\n".to_owned();
    assert_eq!(blocks(document), [Block { line: 10, text: "a: 1\n".to_owned(), comment }]);
}

#[test]
fn a_block_that_does_not_load_is_a_fault_unless_it_is_marked() {
    let block = |comment: &str| Block {
        line: 7,
        text: "nodes: {a: {}}\nlinks: [{between: [a, b]}]\n".to_owned(),
        comment: comment.to_owned(),
    };
    assert!(fault("x.md", &block("")).unwrap().contains("x.md, block at line 7"));
    assert_eq!(fault("x.md", &block(" not a scenario ")), None);
    assert!(fault("x.md", &block("rest of the file: routers: [b]")).is_none());
}

/// Files that scenarios in documents name.
const TRACES: [(&str, &str); 4] = [
    ("lte.up", "1\n3\n"),
    ("lte.down", "1\n2\n"),
    ("drive.csv", "time,rate,latency,loss\n0s,10mbit,20ms,0%\n60s,2mbit,50ms,1%\n"),
    ("overnet.trace", "0 300 450.5\n10\n20\n"),
];
