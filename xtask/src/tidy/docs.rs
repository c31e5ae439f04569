//! Documentation: every file and every public item is described. Fields of
//! structs and variants of enums may go without a sentence where their names say all, which
//! rustc's own lint does not allow.

use super::rust::{is_test, production};

/// Checks one source file of a library or program.
pub(super) fn check(name: &str, text: &str, faults: &mut Vec<String>) {
    let is_source = name.starts_with("crates/") && name.contains("/src/");
    if is_test(name) || !is_source && !name.starts_with("xtask/src/") {
        return;
    }
    let lines = production(text);
    if !lines.first().is_some_and(|line| line.starts_with("//!")) {
        faults.push(format!("{name}:1: the file does not say what it is (`//!`)"));
    }
    for (index, line) in lines.iter().enumerate() {
        if needs_words(&lines, index, line) && !has_words(&lines[..index]) {
            faults.push(format!("{name}:{}: a public item without documentation", index + 1));
        }
    }
}

/// Whether a line begins an item that others can name.
fn needs_words(lines: &[&str], index: usize, line: &str) -> bool {
    let code = line.trim_start();
    match code.strip_prefix("pub ") {
        // Another file, with documentation of its own.
        Some(item) if item.starts_with("mod ") && item.ends_with(';') => false,
        Some(item) => begins_item(item),
        None => {
            let indent = line.len() - code.len();
            indent > 0 && begins_item(code) && is_in_public_trait(&lines[..index], indent)
        }
    }
}

fn begins_item(code: &str) -> bool {
    let mut words = code.split_whitespace();
    let is_qualifier =
        |word: &&str| ["async", "unsafe", "extern"].contains(word) || word.starts_with('"');
    let keyword = words.find(|word| !is_qualifier(word)).unwrap_or_default();
    ITEMS.contains(&keyword)
}

/// Whether the innermost block around this indentation is that of a public trait.
fn is_in_public_trait(before: &[&str], indent: usize) -> bool {
    let outer = before.iter().rev().find(|line| {
        let code = line.trim_start();
        !code.is_empty() && line.len() - code.len() < indent && !code.starts_with(['}', ')'])
    });
    outer.is_some_and(|line| line.trim_start().starts_with("pub trait "))
}

/// Whether the lines before an item end with documentation, attributes left out.
fn has_words(before: &[&str]) -> bool {
    let mut lines = before.iter().rev().map(|line| line.trim_start());
    while let Some(line) = lines.next() {
        // In a macro, documentation is an attribute that the caller gives.
        let is_given = line.starts_with("$(#[");
        if line.starts_with("///") || line.starts_with("#[doc") || is_given {
            return true;
        }
        if line.starts_with("#[") {
            continue;
        }
        // The end of an attribute of several lines.
        let is_attribute = line.ends_with(")]") || line == "]";
        if !is_attribute || !lines.by_ref().any(|line| line.starts_with("#[")) {
            return false;
        }
    }
    false
}

const ITEMS: [&str; 9] =
    ["fn", "struct", "enum", "union", "trait", "mod", "const", "static", "type"];

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn faults_of(text: &str) -> Vec<String> {
        let text = format!("//! A file.\n\n{text}");
        testing::faults_of(check, "crates/x/src/a.rs", &text)
    }

    #[test]
    fn public_items_need_words_and_others_do_not() {
        for item in ["struct A;", "fn a() {}", "const fn a() {}", "enum A {", "mod a {"] {
            assert_eq!(faults_of(&format!("pub {item}\n")).len(), 1, "{item}");
            assert_eq!(faults_of(&format!("/// What it is.\npub {item}\n")).len(), 0, "{item}");
            assert_eq!(faults_of(&format!("pub(crate) {item}\n")).len(), 0, "{item}");
            assert_eq!(faults_of(&format!("{item}\n")).len(), 0, "{item}");
        }
        assert!(faults_of("pub use a::B;\npub mod other_file;\n").is_empty());
        assert_eq!(faults_of("impl A {\n    pub unsafe fn b() {}\n}\n").len(), 1);
    }

    #[test]
    fn fields_and_variants_may_go_without_words() {
        assert!(faults_of("/// A.\npub struct A {\n    pub b: u8,\n}\n").is_empty());
        assert!(faults_of("/// A.\npub enum A {\n    B,\n    C { d: u8 },\n}\n").is_empty());
    }

    #[test]
    fn words_may_stand_before_attributes_of_any_length() {
        let attribute = "#[error(\n    \"long\"\n)]\n#[must_use]\n";
        assert!(faults_of(&format!("/// A.\n{attribute}pub struct A;\n")).is_empty());
        assert_eq!(faults_of(&format!("{attribute}pub struct A;\n")).len(), 1);
    }

    #[test]
    fn methods_of_a_public_trait_need_words() {
        let method = "    fn b(&self) {\n        let c = 1;\n    }\n";
        assert_eq!(faults_of(&format!("/// A.\npub trait A {{\n{method}}}\n")).len(), 1);
        assert!(faults_of(&format!("/// A.\npub trait A {{\n    /// B.\n{method}}}\n")).is_empty());
        assert!(faults_of(&format!("impl A for B {{\n{method}}}\n")).is_empty());
    }

    #[test]
    fn a_file_without_a_first_sentence_is_found() {
        let mut faults = Vec::new();
        check("crates/x/src/a.rs", "use b;\n", &mut faults);
        assert_eq!(faults, ["crates/x/src/a.rs:1: the file does not say what it is (`//!`)"]);
    }
}
