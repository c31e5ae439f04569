//! Circles of files: those that use each other in a ring can only be read, tested and moved together.

use std::collections::{BTreeMap, BTreeSet};

use super::rust::{code_of, is_test, production};

/// The most files in one circle.
const FILES_MAX: usize = 10;

/// The files of each crate, by the names of their modules: none for `lib.rs`.
#[derive(Debug, Default)]
pub(super) struct ModuleGraph(BTreeMap<String, BTreeMap<Vec<String>, String>>);

impl ModuleGraph {
    /// Takes note of a file. Uses in tests make no circle.
    pub(super) fn add(&mut self, name: &str, text: &str) {
        let inside = name.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
        let Some((room, file)) = inside.filter(|_| !is_test(name)) else { return };
        let path = file.trim_end_matches(".rs").split('/').map(str::to_owned);
        let modules: Vec<String> = path.filter(|part| part != "lib").collect();
        let code: Vec<String> = production(text).into_iter().map(code_of).collect();
        self.0.entry(room.to_owned()).or_default().insert(modules, code.join("\n"));
    }

    /// Finds crates with a circle that is larger than it may be.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        for (room, files) in &self.0 {
            let circle = largest_circle(files);
            if circle.len() > FILES_MAX {
                let (count, names) = (circle.len(), circle.join(", "));
                faults.push(format!(
                    "crates/{room}: {count} files use each other in a circle, at most {FILES_MAX} may: {names}"
                ));
            }
        }
    }
}

/// The largest set of files of which each uses, over others, all of them; their names.
fn largest_circle(files: &BTreeMap<Vec<String>, String>) -> Vec<String> {
    let uses: BTreeMap<&Vec<String>, BTreeSet<&Vec<String>>> =
        files.iter().map(|(file, code)| (file, uses(file, code, files))).collect();
    let reached: BTreeMap<&Vec<String>, BTreeSet<&Vec<String>>> =
        uses.keys().map(|file| (*file, reach(file, &uses))).collect();
    let circles = reached.iter().map(|(file, all)| {
        let back = all.iter().filter(|other| reached[*other].contains(file));
        back.copied().collect::<Vec<_>>()
    });
    let largest = circles.max_by_key(Vec::len).unwrap_or_default();
    let name = |file: &Vec<String>| if file.is_empty() { "lib".into() } else { file.join("/") };
    largest.into_iter().map(name).collect()
}

/// All files that one uses, directly or over others.
fn reach<'a>(
    from: &'a Vec<String>,
    uses: &BTreeMap<&'a Vec<String>, BTreeSet<&'a Vec<String>>>,
) -> BTreeSet<&'a Vec<String>> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for next in &uses[file] {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

/// The files that the code of one names: by `crate::`, `self::`, `super::`, or a module below it.
fn uses<'a>(
    file: &[String],
    code: &str,
    files: &'a BTreeMap<Vec<String>, String>,
) -> BTreeSet<&'a Vec<String>> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("::") {
        let before = code[..at].rsplit(|c| !is_word(c)).next().unwrap_or_default();
        let outer = &code[..at - before.len()];
        // A visibility uses nothing of what it names.
        if outer.ends_with("::") || outer.ends_with("pub(in ") {
            continue;
        }
        let Some(base) = base(file, before, files) else { continue };
        for path in paths(base, &code[at + 2..]) {
            let known = (0..=path.len()).rev().find_map(|end| files.get_key_value(&path[..end]));
            found.extend(known.map(|(known, _)| known).filter(|known| *known != file));
        }
    }
    found
}

/// What the first name of a path stands for.
fn base(
    file: &[String],
    first: &str,
    files: &BTreeMap<Vec<String>, String>,
) -> Option<Vec<String>> {
    match first {
        "crate" => Some(Vec::new()),
        "self" => Some(file.to_vec()),
        "super" => Some(file.split_last()?.1.to_vec()),
        _ => {
            let below = [file, &[first.to_owned()]].concat();
            files.contains_key(&below).then_some(below)
        }
    }
}

/// The paths that begin with `base` and go on as the code does: one, or those of a list in brackets.
fn paths(mut base: Vec<String>, mut code: &str) -> Vec<Vec<String>> {
    loop {
        if let Some(list) = code.strip_prefix('{') {
            let parts = list_of(list).into_iter();
            return parts.flat_map(|part| paths(base.clone(), part.trim_start())).collect();
        }
        let end = code.find(|c| !is_word(c)).unwrap_or(code.len());
        let (name, rest) = code.split_at(end);
        match name {
            "super" => drop(base.pop()),
            "self" | "" => return vec![base],
            name => base.push(name.to_owned()),
        }
        let Some(rest) = rest.strip_prefix("::") else { return vec![base] };
        code = rest;
    }
}

/// The parts of a list, of the code behind its bracket.
fn list_of(code: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&code[begin..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&code[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(files: &[(&str, &str)]) -> Vec<String> {
        let mut graph = ModuleGraph::default();
        files.iter().for_each(|(name, text)| graph.add(&format!("crates/a/src/{name}"), text));
        largest_circle(&graph.0["a"])
    }

    #[test]
    fn files_that_use_each_other_over_others_are_a_circle() {
        let files = [
            ("lib.rs", "mod x;\nmod y;\n"),
            ("x.rs", "use crate::y::{Z, self};\nmod z;\n"),
            ("y.rs", "fn f() { crate::x::z::g() }\n"),
            ("x/z.rs", "use super::super::{x::X, w};\n"),
            ("w.rs", "use std::fmt;\n"),
        ];
        assert_eq!(circle(&files), ["x", "x/z", "y"]);
    }

    #[test]
    fn a_parent_that_uses_what_is_below_it_and_is_used_there_is_one() {
        assert_eq!(circle(&[("x.rs", "z::f();\n"), ("x/z.rs", "super::g();\n")]), ["x", "x/z"]);
    }

    #[test]
    fn uses_in_tests_and_comments_are_none() {
        let test = "#[cfg(test)]\nmod tests {\n    use crate::y;\n}\n";
        assert!(circle(&[("x.rs", test), ("y.rs", "use crate::x;\n// crate::y::z\n")]).is_empty());
    }

    #[test]
    fn a_visibility_is_no_use() {
        let below = "pub(in crate::x) fn g() {}\n";
        assert!(circle(&[("x.rs", "z::g();\n"), ("x/z.rs", below)]).is_empty());
    }

    #[test]
    fn a_circle_beyond_the_bound_is_a_fault_of_its_crate() {
        let (mut graph, mut faults) = (ModuleGraph::default(), Vec::new());
        for file in 0..=FILES_MAX {
            let next = (file + 1) % (FILES_MAX + 1);
            graph.add(&format!("crates/a/src/f{file}.rs"), &format!("use crate::f{next};\n"));
        }
        graph.check(&mut faults);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("crates/a: 11 files use each other"), "{faults:?}");
    }
}
