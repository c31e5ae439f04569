//! Names of types: one name, one type, so that a name in a message or a stack trace says which it is.

use std::collections::BTreeMap;

use super::rust::{code_of, is_test, production};

/// Where each type is declared, by its name.
#[derive(Debug, Default)]
pub(super) struct DeclaredTypes(BTreeMap<String, Vec<String>>);

impl DeclaredTypes {
    /// Takes note of the types that a file declares: structures, enumerations, unions and traits at
    /// module level. Those of tests may have any name, but for those of `testing.rs`, which other
    /// rooms see.
    pub(super) fn add(&mut self, name: &str, text: &str) {
        if !name.contains("/src/") || is_test(name) && !name.ends_with("/testing.rs") {
            return;
        }
        for (index, line) in production(text).into_iter().enumerate() {
            if let Some(declared) = declared(&code_of(line)) {
                let at = format!("{name}:{}", index + 1);
                self.0.entry(declared.to_owned()).or_default().push(at);
            }
        }
    }

    /// Finds names that several types have.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        for (name, places) in self.0.iter().filter(|(_, places)| places.len() > 1) {
            let others = places[1..].join(", ");
            faults
                .push(format!("{}: `{name}` is also the name of the type at {others}", places[0]));
        }
    }
}

/// The type that a line at module level declares.
fn declared(line: &str) -> Option<&str> {
    let rest = without_visibility(line)?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let rest = KINDS.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end])
}

/// What a line at module level declares, without who may see it.
pub(super) fn without_visibility(line: &str) -> Option<&str> {
    let Some(public) = line.strip_prefix("pub") else { return Some(line) };
    let visible = public.strip_prefix('(').and_then(|inner| inner.split_once(')'));
    visible.map_or(public, |(_, rest)| rest).strip_prefix(' ')
}

const KINDS: [&str; 4] = ["struct ", "enum ", "union ", "trait "];

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let (mut types, mut faults) = (DeclaredTypes::default(), Vec::new());
        files.iter().for_each(|(name, text)| types.add(name, text));
        types.check(&mut faults);
        faults
    }

    #[test]
    fn a_name_of_two_types_is_a_fault_whatever_their_kind_and_visibility() {
        let one = "use x;\n\npub(crate) struct Flow<T> {\n    at: T,\n}\n";
        let other = "pub unsafe trait Flow: Sized {}\n";
        let found = faults(&[("crates/a/src/x.rs", one), ("crates/b/src/lib.rs", other)]);
        let said =
            "crates/a/src/x.rs:3: `Flow` is also the name of the type at crates/b/src/lib.rs:1";
        assert_eq!(found, [said]);
    }

    #[test]
    fn tests_comments_and_other_names_are_none() {
        let one = "#[cfg(test)]\nmod x;\nstruct Flow;\n// struct Flow;\nstruct FlowKey;\n\
                   #[cfg(test)]\nmod tests {\n}\nenum Flow {}\n";
        let test = "struct Flow;\n";
        let found = faults(&[("crates/a/src/x.rs", one), ("crates/a/tests/x.rs", test)]);
        assert!(found.is_empty(), "{found:?}");
    }
}
