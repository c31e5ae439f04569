//! Pages: every file and folder that one names is in the tree, and every function that it names
//! behind a file, "`crates/x/src/y.rs`: `function`", is defined there.

use std::fs;
use std::path::Path;

/// What paths in pages begin with.
const TOP: [&str; 9] = [
    "crates/",
    "xtask/",
    "experiments/",
    "bench/",
    "docs/",
    "python/",
    "web/",
    "deploy/",
    "examples/",
];

/// Records of the past.
const EXEMPT: [&str; 2] = ["CHANGELOG.md", "docs/decisions/"];

/// What pages are checked against.
#[derive(Clone, Copy)]
pub(super) struct SourceTree<'a> {
    pub(super) root: &'a Path,
    /// Of its files, from there.
    pub(super) names: &'a [String],
}

/// Checks one page.
pub(super) fn check(name: &str, text: &str, tree: SourceTree<'_>, faults: &mut Vec<String>) {
    if !name.ends_with(".md") || EXEMPT.iter().any(|exempt| name.starts_with(exempt)) {
        return;
    }
    for (line, paragraph) in paragraphs(text) {
        let mut fault = |at: usize, what: String| {
            let line = line + paragraph[..at].matches('\n').count();
            faults.push(format!("{name}:{line}: {what}"));
        };
        for (at, target) in links(&paragraph) {
            if !tree.root.join(name).with_file_name(target).exists() {
                fault(at, format!("the link leads to `{target}`, which is not in the tree"));
            }
        }
        let spans = spans(&paragraph);
        for (at, path) in spans.iter().flat_map(|(at, span)| words(*at, span)) {
            if !tree.has(path) {
                fault(at, format!("`{path}` is not in the tree"));
            }
        }
        for (at, path, function) in steps(&paragraph, &spans) {
            if !defines(&tree.root.join(path), function) {
                fault(at, format!("`{path}` defines no function `{function}`"));
            }
        }
    }
}

impl SourceTree<'_> {
    /// Whether a path is that of a file or folder, as far as it is not to be filled in: `NAME.rs`.
    fn has(self, path: &str) -> bool {
        if !TOP.iter().any(|top| path.starts_with(top)) {
            let end = format!("/{path}");
            return self.names.iter().any(|name| name.ends_with(&end));
        }
        let known: Vec<&str> = path.split('/').take_while(|part| is_plain(part)).collect();
        self.root.join(known.join("/")).exists()
    }
}

/// Whether a part of a path is a name, and not a pattern or a place for one.
fn is_plain(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default();
    let is_place = part.ends_with(".rs") && stem.chars().all(|c| c.is_ascii_uppercase());
    !is_place && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Blocks of lines that belong together, with the number of the first, without blocks of code.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut is_code, mut goes_on) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || line.trim().is_empty() {
            goes_on = false;
            continue;
        }
        match found.last_mut().filter(|_| goes_on) {
            Some((_, paragraph)) => *paragraph += &format!("\n{line}"),
            None => found.push((index + 1, line.to_owned())),
        }
        goes_on = true;
    }
    found
}

/// What is between backticks, with its place.
fn spans(paragraph: &str) -> Vec<(usize, &str)> {
    let mut at = 0;
    let pieces = paragraph.split('`').map(|piece| {
        let begin = at;
        at += piece.len() + 1;
        (begin, piece)
    });
    pieces.skip(1).step_by(2).collect()
}

/// Targets of links to files, without the part of the page, with their places.
fn links(paragraph: &str) -> impl Iterator<Item = (usize, &str)> {
    paragraph.match_indices("](").filter_map(|(at, _)| {
        let (target, _) = paragraph[at + 2..].split_once(')')?;
        let file = target.split('#').next().unwrap_or_default();
        (!file.is_empty() && !file.contains(':')).then_some((at, file))
    })
}

/// Paths among the words of a span: from the top of the tree, or the ends of those of sources.
fn words(at: usize, span: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_path = |word: &&str| {
        let is_source = word.contains('/') && !word.contains("//") && word.ends_with(".rs");
        is_source || TOP.iter().any(|top| word.starts_with(top))
    };
    span.split_whitespace().filter(is_path).map(move |word| (at, word))
}

/// Functions behind a file, "`file.rs`: `one`, `other`", with the file.
fn steps<'a>(paragraph: &str, spans: &[(usize, &'a str)]) -> Vec<(usize, &'a str, &'a str)> {
    let (mut found, mut file) = (Vec::new(), None);
    for pair in spans.windows(2) {
        let [(before, last), (at, span)] = pair else { continue };
        file = match paragraph[before + last.len() + 1..at - 1].trim() {
            ":" => Some(*last).filter(|last| is_source(last)),
            "," | "and" | ", and" => file,
            _ => None,
        };
        let function = span.rsplit("::").next().unwrap_or_default();
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if let Some(file) = file.filter(|_| !function.is_empty() && function.chars().all(is_name)) {
            found.push((*at, file, function));
        }
    }
    found
}

/// Whether a span is the whole path of a source.
fn is_source(span: &str) -> bool {
    TOP.iter().any(|top| span.starts_with(top)) && span.ends_with(".rs")
}

/// Whether a source defines a function of that name.
fn defines(file: &Path, function: &str) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    ["(", "<"].iter().any(|end| text.contains(&format!("fn {function}{end}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(name: &str, text: &str) -> Vec<String> {
        let (root, names) = (crate::root(), ["xtask/src/tidy/paths.rs".to_owned()]);
        let mut faults = Vec::new();
        check(name, text, SourceTree { root: &root, names: &names }, &mut faults);
        faults
    }

    #[test]
    fn paths_that_are_not_in_the_tree_are_found_with_their_line() {
        let text = "fine: `xtask/src/tidy.rs`, `xtask/src/`\nand `cat xtask/src/none.rs`\n";
        assert_eq!(
            faults_of("docs/a.md", text),
            ["docs/a.md:2: `xtask/src/none.rs` is not in the tree"]
        );
        assert_eq!(faults_of("README.md", "`docs/none.md`").len(), 1);
    }

    #[test]
    fn ends_of_paths_of_sources_are_those_of_a_source() {
        for text in ["`tidy/paths.rs`", "`src/tidy/paths.rs`", "`paths.rs`", "`other.rs`"] {
            assert_eq!(faults_of("docs/a.md", text), [] as [&str; 0], "{text}");
        }
        for text in ["`idy/paths.rs`", "`docs/paths.rs`", "`tidy/none.rs`"] {
            assert_eq!(faults_of("docs/a.md", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_to_be_filled_in_is_not_looked_for() {
        for text in ["`xtask/src/NAME.rs`", "`xtask/src/*.rs`", "`xtask/{src,tests}`"] {
            assert_eq!(faults_of("docs/a.md", text), [] as [&str; 0], "{text}");
        }
        assert_eq!(faults_of("docs/a.md", "`xtask/none/NAME.rs`").len(), 1);
    }

    #[test]
    fn functions_behind_a_file_are_defined_there() {
        let step = |names: &str| {
            faults_of("docs/internals/a.md", &format!("1. `xtask/src/tidy/paths.rs`: {names}\n"))
        };
        assert_eq!(
            step("`check`, `Other::spans` and\n   `links`, in `none` of them"),
            [] as [&str; 0]
        );
        assert_eq!(
            step("`check`,\n`none`"),
            ["docs/internals/a.md:2: `xtask/src/tidy/paths.rs` defines no function `none`"]
        );
        assert_eq!(step("the name `none`, `const`"), [] as [&str; 0]);
    }

    #[test]
    fn links_lead_to_files_from_the_folder_of_their_page() {
        for link in ["../README.md", "README.md#none", "#none", "https://example.org/none"] {
            assert_eq!(faults_of("docs/a.md", &format!("[a]({link})")), [] as [&str; 0], "{link}");
        }
        assert_eq!(faults_of("docs/a.md", "a [b\nc](none.md#d)").len(), 1);
    }

    #[test]
    fn records_other_files_and_blocks_of_code_are_exempt() {
        let text = "`docs/none.md`";
        for name in ["CHANGELOG.md", "docs/decisions/1.md", "xtask/src/a.rs"] {
            assert_eq!(faults_of(name, text), [] as [&str; 0], "{name}");
        }
        let text = "a\n```text\n`docs/none.md`\n```\n`docs/none.md`\n";
        assert_eq!(
            faults_of("docs/a.md", text),
            ["docs/a.md:5: `docs/none.md` is not in the tree"]
        );
    }
}
